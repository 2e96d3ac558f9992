"""``spicegraph diversity``: several captions of each image in, how different they are out."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer import FactCache, score_sets
from spicegraph_scorer.metrics import metric_names
from spicegraph_scorer.readers.references import read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS
from spicegraph_service import kit
from spicegraph_studies.cli import OutputOptions
from spicegraph_studies.diversity import FIGURES, find_diversity
from spicegraph_studies.pages.diversity import DIVERSITY_TABLES, SystemDiversity, diversity_study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.items import ItemId

_Captions = dict["ItemId", "Sequence[str]"]


def diversity(
    sources: Annotated[list[str], typer.Argument(metavar="[NAME=]FILE...")],
    *,
    references: Annotated[list[str] | None, typer.Option(metavar="FILE")] = None,
    training: Annotated[list[str] | None, typer.Option(metavar="FILE")] = None,
    graphs: Annotated[bool, typer.Option("--graphs/--no-graphs")] = True,
    metrics: Annotated[str, typer.Option(metavar="NAMES")] = "cider,spice",
    options: OutputOptions,
    parsing: kit.ParsingOptions,
) -> None:
    """Measure how different several captions of one image are: samples, beams, or several annotators.

    Input:
        sources: One file for each system, with several captions of each image: a list of captions by id, or several
            records of one id.
        references: References of the images: CIDEr's document frequencies, and the mean quality of the captions. May be
            given several times.
        training: Captions that the model has seen: says how many of its own are new. May be given several times.
        graphs: Also compare what captions state: distinct objects, attributes and relations, and contradictions.
        metrics: The metrics of quality, where there are references. With div-1, div-2, mbleu, self-cider, vocabulary or
            novel among them, only these figures are found.
    """
    write = options.writer(DIVERSITY_TABLES)
    figures, names = _asked(metrics, has_training=bool(training))
    seen = list(chain.from_iterable(_read(training).values())) if training else None
    truth = _read(references) if references else None
    systems = []
    with kit.warned_progress() as progress, parsing.facts() as facts:
        for name, source in zip(kit.system_names(sources), sources, strict=True):
            sets = _read([kit.system_name(source)[1]])
            cache = FactCache(facts, progress) if graphs and not figures else None
            found = find_diversity(sets, references=truth, training=seen, facts=cache, progress=progress)
            systems.append(SystemDiversity(name, found, _quality(sets, truth, names, cache or facts, progress)))
    if len({frozenset(one.id for one in system.diversity.sets) for system in systems}) > 1:
        kit.say_warning("the systems have captions of different images; their figures are not comparable")
    write(diversity_study(systems, figures))


def _asked(metrics: str, *, has_training: bool) -> tuple[list[str], tuple[str, ...]]:
    """Return how the names of the figures begin that alone are wanted, if any are, and the metrics of quality."""
    asked = [name.strip().lower() for name in metrics.split(",") if name.strip()]
    if "novel" in asked and not has_training:
        raise InputError("--metrics: novel says which captions are not in --training FILE, which is not given")
    of_quality = [name for name in asked if name not in FIGURES]
    return [FIGURES[name] for name in asked if name in FIGURES], metric_names(of_quality) if of_quality else ()


def _read(paths: Sequence[str]) -> _Captions:
    return dict(read_reference_files(paths, limits=DEFAULT_LIMITS).captions)


def _quality(
    sets: Mapping[ItemId, Sequence[str]],
    truth: Mapping[ItemId, Sequence[str]] | None,
    metrics: Sequence[str],
    facts: FactSource,
    progress: Progress | None,
) -> dict[str, float | None]:
    """Return mean and best of each metric over the captions of an image, and what they say together."""
    if truth is None or not metrics:
        return {}
    missing = [image for image in sets if image not in truth]
    if missing:
        shown = ", ".join(f"{image!a}" for image in missing[:5])
        raise InputError(f"--references: {counted(len(missing), 'image')} without references: {shown}")
    result = score_sets(sets, truth, metrics, pipeline=facts, progress=progress)
    return {headline.name: headline.value for run in result.runs for headline in run.headline}
