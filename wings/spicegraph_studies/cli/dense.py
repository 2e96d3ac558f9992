"""``spicegraph dense``: captions of parts of videos in, scores by overlap and in order out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer import FactCache
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.metrics import make_metrics, metric_names, needs_of
from spicegraph_service import kit
from spicegraph_studies.cli import OutputOptions
from spicegraph_studies.dense import THRESHOLDS, SodaOrder, find_dense
from spicegraph_studies.dense.events import Missing, read_dense
from spicegraph_studies.pages.dense import DENSE_TABLES, dense_study

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseScoring(kit.ScoringOptions):
    """The metrics of captions and paragraphs: what the public evaluation prints, and SPICE."""

    metrics: kit.MetricsOption = "bleu,meteor,rouge,cider,spice"


def _check_soda(metrics: Mapping[str, Metric[Any]]) -> None:
    weighed = [name for name, metric in metrics.items() if metric.weigh is not None]
    if weighed:
        raise InputError(f"--soda: {', '.join(weighed)}: depends on all pairs together, SODA scores each by itself")


def dense(
    results: Annotated[str, typer.Argument(metavar="RESULTS")],
    *,
    references: Annotated[list[str], typer.Option(metavar="FILE")],
    scoring: DenseScoring,
    soda: Annotated[str, typer.Option(metavar="NAMES")] = "meteor,spice,spice-g",
    soda_order: Annotated[SodaOrder, typer.Option()] = SodaOrder.SCRIPT,
    thresholds: Annotated[list[float] | None, typer.Option("--tiou", metavar="N", min=0.0, max=1.0)] = None,
    missing: Annotated[Missing, typer.Option()] = Missing.REFUSE,
    inverted: Annotated[Missing, typer.Option()] = Missing.REFUSE,
    most: Annotated[int, typer.Option("--proposals", metavar="N", min=1)] = 1000,
    paragraphs: Annotated[bool, typer.Option("--paragraphs/--no-paragraphs")] = True,
    options: OutputOptions,
    parsing: kit.ParsingOptions,
) -> None:
    """Score captions of parts of videos: by temporal overlap, in order (SODA), and as paragraphs.

    Input:
        results: The captions: {"results": {video: [{"sentence", "timestamp": [start, end]}]}}.
        references: References: {video: {"timestamps": [[start, end]], "sentences": [...]}}. May be given several times.
        soda: The metrics that SODA matches by, or none.
        soda_order: Which text of a pair SODA scores against the other: the reference against the caption, as its
            authors' script does, or the caption against the reference.
        thresholds: A least overlap (intersection over union). May be given several times. Default: .3, .5, .7 and .9.
        missing: Refuse results that lack a video of the references or have others, score a missing video zero (and
            leave it out of SODA, both as the public scripts do), or skip it.
        inverted: Refuse captions whose part ends before it starts, score them zero, or skip them.
        most: Score no more than the first N captions of each video.
        paragraphs: Also score all captions of a video as one text.
    """
    write = options.writer(DENSE_TABLES)
    names = scoring.names
    of_soda = metric_names(soda) if soda != "none" else ()
    data = scoring.data(*of_soda)
    corpus = read_dense(results, references, missing=missing, most=most, empty=scoring.empty, inverted=inverted)
    if corpus.left_out:
        kit.say(f"{results}: {counted(corpus.left_out, 'video')} left out")
    with kit.warned_progress() as progress, parsing.facts() as facts:
        cache = FactCache(facts, progress, places=any(needs.loose for needs in needs_of((*names, *of_soda))))
        made = make_metrics((*names, *of_soda), Resources(lambda: cache, progress, data, evidence=False))
        _check_soda({name: made[name] for name in of_soda})
        found = find_dense(
            corpus,
            {name: made[name] for name in names},
            {name: made[name] for name in of_soda},
            thresholds=tuple(thresholds or THRESHOLDS),
            order=soda_order,
            paragraphs=paragraphs,
            progress=progress,
        )
    write(dense_study(found))
