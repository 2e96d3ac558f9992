"""What people said about captions (ratings, or a choice between two), and the values of metrics for these captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.facts import FactCache, FactSource, Progress
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.metrics import lower_is_better
from spicegraph_scorer.readers.checks import Empty, Fault, refuse_faults
from spicegraph_scorer.scoring import score

if TYPE_CHECKING:
    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.results import Json

GivenScores = Mapping[str, float | None]
"""Scores that stand in the input, by the metric's name: of metrics that are not ours."""

Content = TypeVar("Content")
MetricScores: TypeAlias = "Mapping[str, Sequence[float | None]]"
"""Each score's values for each caption, by its name (``SPICE``, ``Bleu_4``); ``1 - CHAIRi`` where less is better."""

Scored: TypeAlias = "tuple[MetricScores, Mapping[str, Json]]"  # scores and the metrics' signatures


@dataclass(frozen=True, slots=True)
class Judgement:
    """One caption of an image with the ratings that people gave it."""

    place: str  # where it stands in its file, for messages
    image: str  # whose captions are drawn together when intervals are made
    candidate: str
    references: tuple[str, ...]  # of the image; empty only where all scores are given
    ratings: tuple[float, ...]  # one a rater, at least one; on whatever scale, more is better
    given: GivenScores = field(default_factory=dict)
    system: str | None = None  # what wrote the caption, where that is known
    wrong: tuple[tuple[int, int], ...] = ()  # where the words stand that people marked as wrong, as character offsets


@dataclass(frozen=True, slots=True)
class CaptionPair:
    """Two captions of an image, and which of them people prefer: 0 or 1; ``None``: people are tied."""

    place: str  # where it stands in its file
    image: str
    category: str  # the kind of pair, such as ``HC``; empty without kinds
    captions: tuple[str, str]
    preferred: int | None
    references: tuple[str, ...]
    given: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)  # one for each caption
    second: tuple[str, ...] | None = None  # the references of the second caption, where they differ

    def references_of(self, side: int) -> tuple[str, ...]:
        """Return the references of the first (0) or second (1) caption."""
        return self.second if side and self.second is not None else self.references


@dataclass(frozen=True, slots=True)
class Judged(Generic[Content]):
    """The content of a file: judgements or pairs, name, format, and number of unrated rows."""

    items: tuple[Content, ...]
    source: str
    format: str
    unrated: int = 0

    @property
    def title(self) -> str:
        """The names of the files, without their folders."""
        return ", ".join(PurePath(path).name for path in self.source.split(", "))


@dataclass(frozen=True, slots=True)
class JudgementScoring:
    """Which of our metrics are computed, and with what."""

    metrics: tuple[str, ...] = ("spice",)  # may be empty: then only the scores that stand in the input are looked at
    pipeline: str | FactSource = DEFAULT_PIPELINE
    data: MetricData | None = None  # see :func:`spicegraph_scorer.score`
    progress: Progress | None = None
    empty: Empty = "refuse"

    def shared(self) -> JudgementScoring:
        """Return the same with a pipeline that parses no caption twice, however often it is asked."""
        if not self.metrics or isinstance(self.pipeline, FactCache):
            return self
        source = load_pipeline(self.pipeline) if isinstance(self.pipeline, str) else self.pipeline
        return replace(self, pipeline=FactCache(source, self.progress))


def caption_scores(judgements: Sequence[Judgement], scoring: JudgementScoring) -> Scored:
    """Score every judged caption, all as one corpus, and add the scores that they carry."""
    rows = [(each.place, each.candidate, each.references, each.given) for each in judgements]
    return _scored(rows, scoring)


def pair_scores(pairs: Sequence[CaptionPair], scoring: JudgementScoring) -> tuple[Scored, Scored]:
    """Score both captions of every pair: all first captions as one corpus, all second ones as another."""
    first, second = (
        _scored(
            [
                (p.place, p.captions[side], p.references_of(side), {name: of[side] for name, of in p.given.items()})
                for p in pairs
            ],
            scoring,
        )
        for side in (0, 1)
    )
    return first, second


def _computed(
    rows: Sequence[tuple[str, str, tuple[str, ...], GivenScores]], scoring: JudgementScoring
) -> tuple[dict[str, Sequence[float | None]], Mapping[str, Json]]:
    """Compute metrics of rows; one of which the lowest score is the best becomes 1 minus its score."""
    missing = [
        Fault(place, "references", "are missing, but a metric is to be computed")
        for place, _, references, _ in rows
        if not references
    ]
    refuse_faults("judgements", missing)
    result = score(
        [Item(index, caption, references) for index, (_, caption, references, _) in enumerate(rows)],
        scoring.metrics,
        pipeline=scoring.pipeline,
        progress=scoring.progress,
        data=scoring.data,
        empty=scoring.empty,
        control_tokens="keep",  # people judged the captions as they are
    )
    each: dict[str, Sequence[float | None]] = {}
    lower = lower_is_better(scoring.metrics)
    for headline in chain.from_iterable(run.headline for run in result.runs):
        if headline.name in lower:
            each[f"1 - {headline.name}"] = [None if value is None else 1 - value for value in headline.each]
        else:
            each[headline.name] = headline.each
    return each, result.signature


def _scored(rows: Sequence[tuple[str, str, tuple[str, ...], GivenScores]], scoring: JudgementScoring) -> Scored:
    """Score rows of place, caption, references and given scores; a given score must stand in all rows."""
    each, signature = _computed(rows, scoring) if scoring.metrics else ({}, {})
    names = list(dict.fromkeys(name for *_, given in rows for name in given))
    missing = [
        Fault(place, f"metrics.{name}", "is missing, but other rows have it")
        for place, *_, given in rows
        for name in names
        if name not in given
    ]
    twice = [Fault("", f"metrics.{name}", "is computed, too: give it another name") for name in each if name in names]
    refuse_faults("judgements", [*missing, *twice])
    each |= {name: [given[name] for *_, given in rows] for name in names}
    if not each:
        raise InputError('there is no metric: none is asked for, and the input has no "metrics"')
    return each, signature
