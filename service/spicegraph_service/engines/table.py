"""The engines of ``spicegraph score`` by name, and the local one: a file is read whole and scored on this machine."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.metrics import needs_of
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.notes import notes_on
from spicegraph_scorer.readers.parses import GraphTexts, check_graphs, read_parses
from spicegraph_scorer.scoring import choose_best, score
from spicegraph_service.engines.engine import CandidateRule, Engine
from spicegraph_service.engines.local import local_facts
from spicegraph_service.engines.ray import RAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Json, Result
    from spicegraph_scorer.readers import Dataset
    from spicegraph_service.engines.engine import Task


def score_here(task: Task) -> Result:
    """Read and score a task on this machine; candidates that look like copies of references give a warning.

    Raises:
        InputError: there is no such file, or items are faulty; the message lists every fault.
        DataError: the pipeline or the data of a metric is not installed.
        StoreError: the cache can't be opened.
    """
    given = read_parses(task.parses) if task.parses is not None else None
    dataset = read_items(
        task.source,
        references=task.references,
        partial=task.partial,
        empty=task.empty,
        several=task.candidates is not CandidateRule.ONE,
        columns=task.columns,
    )
    if task.say is not None:
        task.say(_description(dataset))
    for note in notes_on(dataset.source, dataset.items):
        warnings.warn(note, stacklevel=2)
    if task.graphs:
        check_graphs(dataset.items, source=dataset.source)
    loose = any(needs.loose for needs in needs_of(task.metrics))
    with local_facts(task.pipeline, workers=task.workers, cache=task.cache, loose=loose) as parsing:
        parsed = given or parsing
        facts: FactSource = GraphTexts(parsed) if task.graphs else parsed
        if task.candidates is CandidateRule.BEST:  # which is best, the facts say before they are scored
            facts = FactCache(facts, task.progress)
        items, chosen = _chosen(dataset, task, facts)
        scored = score(
            items,
            task.metrics,
            pipeline=facts,
            progress=task.progress,
            confidence=task.confidence,
            data=task.data,
            explain=task.explain,
            evidence=task.evidence,
        )
    return replace(scored, signature={**scored.signature, **chosen})


def _description(dataset: Dataset) -> str:
    items = counted(len(dataset.items), "item")
    images = f" of {counted(len(set(dataset.images)), 'image')}" if dataset.images else ""
    references = f"; references: {dataset.references}" if dataset.references else ""
    left_out = f"; {counted(dataset.left_out, 'image')} without a result left out" if dataset.left_out else ""
    return f"{dataset.source}: {dataset.format}, {items}{images}{references}{left_out}"


def _chosen(dataset: Dataset, task: Task, facts: FactSource) -> tuple[tuple[Item, ...], dict[str, Json]]:
    """Return the candidates to score, and what the signature says of them."""
    if not dataset.images:
        return dataset.items, {}
    numbers = Counter(dataset.images).values()
    counts: dict[str, Json] = {"min": min(numbers), "max": max(numbers)}
    if task.candidates is CandidateRule.EACH:
        return dataset.items, {"candidates": {**counts, "scored": "each"}}
    choice = choose_best(dataset.items, dataset.images, facts, data=task.data)
    return choice.items, {"candidates": {**counts, "scored": f"best by {choice.by}"}}


LOCAL: Final = Engine(score=score_here)


ENGINES: Mapping[str, Engine] = {"local": LOCAL, "ray": RAY}
"""To add one: a module with an :class:`~spicegraph_service.engines.engine.Engine`, and a line here."""
