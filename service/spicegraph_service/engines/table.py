"""The engines of ``spicegraph score`` by name, and the local one: a file is read whole and scored on this machine."""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.facts import FactCache, FactSource
from spicegraph_scorer.metrics import needs_of
from spicegraph_scorer.readers import Dataset, read_items
from spicegraph_scorer.readers.checks import check_items, notes_on, shown
from spicegraph_scorer.readers.parses import check_graphs, graph_texts, is_graph, read_parses
from spicegraph_scorer.scoring import choose_best, score
from spicegraph_service.engines import CandidateRule, Engine, Task
from spicegraph_service.engines.local import local_facts
from spicegraph_service.registry import engines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.extraction import ParsedCaption
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.results import Json, Result


def score_here(task: Task) -> Result:
    """Read and score a task on this machine; candidates that look like copies of references give a warning."""
    dataset = _read(task)
    with _facts_of(task, [dataset]) as facts:
        if task.candidates is CandidateRule.BEST:  # which is best, the facts say before they are scored
            return _scored(task, dataset, FactCache(facts, task.progress))
        return _scored(task, dataset, facts)


def score_systems_here(tasks: Sequence[Task]) -> Iterator[Result]:
    """Score systems, of which only the source differs, one after another; no caption is parsed twice."""
    first, *others = datasets = [_read(task) for task in tasks]
    expected = _references(first)
    for other, references in zip(others, map(_references, others), strict=True):
        for image in {**expected, **references}:
            if expected.get(image) != references.get(image):
                is_shared = image in expected and image in references
                what = "has other references" if is_shared else "is in only one of the two"
                raise InputError(
                    f"{other.source}: can't be scored beside {first.source}: image {shown(image)} {what}; score the "
                    "systems one by one"
                )
    task = tasks[0]
    with _facts_of(task, datasets) as facts:
        shared = FactCache(facts, task.progress)
        for system_task, dataset in zip(tasks, datasets, strict=True):
            yield _scored(system_task, dataset, shared)


def _references(dataset: Dataset) -> dict[ItemId, tuple[str, ...]]:
    images = dataset.images or [item.id for item in dataset.items]
    return {image: item.references for image, item in zip(images, dataset.items, strict=True)}


def _read(task: Task) -> Dataset:
    dataset = read_items(
        task.source,
        references=task.references,
        partial=task.partial,
        ids=task.ids,
        split=task.split,
        caption_language=task.caption_language,
        drop_empty_references=task.drop_empty_references,
        empty=task.empty if task.rewrite is None else "zero",
        control_tokens=task.control_tokens if task.rewrite is None else "keep",
        several=task.candidates is not CandidateRule.ONE,
        columns=task.columns,
    )
    if task.rewrite is not None:
        made = (replace(item, candidate=task.rewrite.make(item.candidate)) for item in dataset.items)
        dataset = replace(dataset, items=check_items(made, empty="zero", control_tokens=task.control_tokens))
    if task.say is not None:
        for line in dataset.describe():
            task.say(line)
    looks = is_graph if task.graphs else None
    for note in notes_on(dataset.source, dataset.items, is_graph=looks, language=task.data.language):
        warnings.warn(note, stacklevel=3)
    return dataset


@contextmanager
def _facts_of(task: Task, datasets: Iterable[Dataset]) -> Iterator[FactSource]:
    """Give the source of facts for a task's captions."""
    graphs: dict[str, ParsedCaption] = {}
    if task.graphs:
        for dataset in datasets:
            graphs |= check_graphs(dataset.items, source=dataset.source)
    given = read_parses(task.parses, language=task.data.language or "en") if task.parses is not None else None
    loose = bool(task.more) or any(needs.loose for needs in needs_of(task.metrics))
    with local_facts(task.pipeline, workers=task.workers, cache=task.cache, loose=loose) as parsing:
        parsed: FactSource = given or parsing
        yield graph_texts(parsed, graphs) if task.graphs else parsed


def _scored(task: Task, dataset: Dataset, facts: FactSource) -> Result:
    items = dataset.items
    chosen: dict[str, Json] = {}
    if dataset.images:  # some have several candidates
        numbers = Counter(dataset.images).values()
        by = task.candidates.value
        if task.candidates is CandidateRule.BEST:
            choice = choose_best(items, dataset.images, facts, data=task.data)
            items, by = choice.items, f"best by {choice.by}"
        chosen = {"candidates": {"min": min(numbers), "max": max(numbers), "scored": by}}
    if task.candidates is CandidateRule.SET:
        scored = _scored_together(task, dataset, facts)
    else:
        scored = score(
            items,
            task.metrics,
            pipeline=facts,
            progress=task.progress,
            confidence=task.confidence,
            data=task.data,
            explain=task.explain,
            credit=task.credit,
            more=task.more,
            evidence=task.evidence,
        )
    for note in scored.empty_graphs.notes():
        warnings.warn(f"{dataset.source}: {note}", stacklevel=3)
    if task.rewrite is not None:
        chosen[task.rewrite.key] = task.rewrite.value
    return replace(scored, signature={**scored.signature, **chosen})


def _scored_together(task: Task, dataset: Dataset, facts: FactSource) -> Result:
    """Score the candidates of each image as a set."""
    from spicegraph_scorer.sets import score_sets  # noqa: PLC0415 (it reads SPICE, which most runs do not need)

    if task.explain or task.credit or task.evidence:
        raise InputError("--candidates set: a set has no --explain, no --credit and no --format spice; use each")
    sets: dict[ItemId, list[str]] = {}
    for image, item in zip(dataset.images or [item.id for item in dataset.items], dataset.items, strict=True):
        sets.setdefault(image, []).append(item.candidate)
    scored = score_sets(
        sets,
        _references(dataset),
        task.metrics,
        pipeline=facts,
        progress=task.progress,
        confidence=task.confidence,
        data=task.data,
        empty="zero",
        control_tokens="keep",
    )
    marks = check_items(dataset.items, empty="zero").marks
    return replace(scored, signature={**scored.signature, **({"control_tokens": marks.signature()} if marks else {})})


LOCAL: Final = Engine(score=score_here, score_systems=score_systems_here)
ENGINES: Mapping[str, Engine | str] = {"local": LOCAL, **engines()}
"""To add one: a module with an :class:`~spicegraph_service.engines.Engine`, and where it is, in a package's table."""


def find_engine(name: str) -> Engine:
    """Return the engine of a name; its module is loaded now."""
    if name not in ENGINES:
        raise InputError(f"--engine {name!a:.60}: there is no such engine; there are {', '.join(ENGINES)}")
    place = ENGINES[name]
    engine: Engine = resolve_name(place) if isinstance(place, str) else place
    return engine
