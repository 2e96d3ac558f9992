"""What a worker computes: parses, statistics, scores, and the messages that carry them."""

from __future__ import annotations

import logging
import pickle
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from spicegraph_api.v1 import scores_pb2
from spicegraph_parser.errors import DataError, SpicegraphError
from spicegraph_parser.graph import merge
from spicegraph_parser.lexicon import load_lexicon
from spicegraph_scorer.core.items import Corpus, Item
from spicegraph_scorer.evidence import without_evidence
from spicegraph_scorer.metrics import METRICS, Resources
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.spice.custom import make_categories
from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic
from spicegraph_service.server import convert
from spicegraph_service.server.parts import collect_part, finish_parts, needs_whole_corpus
from spicegraph_service.server.reference_tuples import ReferenceTuples
from spicegraph_service.server.tasks import (
    CaptionsWork,
    GroupReply,
    Hello,
    ItemsWork,
    MetricHello,
    Task,
    Totals,
    TotalsReply,
    Work,
    WorkReply,
)
from spicegraph_service.store.parses import StoredParse, decode_parse, encode_parse, stored_parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.extract import ParsedCaption
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.metric import Metric, Score
    from spicegraph_scorer.metrics.graded.vectors import Vectors
    from spicegraph_scorer.metrics.spice.custom import CategoryDefinition

__all__ = ["CaptionSource", "Evaluator"]

_categories = lru_cache(maxsize=8)(make_categories)  # a training loop asks for the same again and again
_CHANGES = 3  # of SPICE-G, at most
_log = logging.getLogger(__name__)


class CaptionSource(Protocol):
    """What parses captions: a :class:`~spicegraph_parser.CaptionPipeline`."""

    @property
    def signature(self) -> str:
        """Name and version."""
        ...

    def captions(self, texts: Iterable[str]) -> Iterator[ParsedCaption]:
        """Parse captions, in order."""
        ...


@dataclass(slots=True)
class _FactTable:
    """The facts of the batch in hand, as a metric's source of facts."""

    signature: str
    parses: Mapping[str, StoredParse] = field(default_factory=dict)

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return map(self.of, texts)

    def of(self, text: str) -> tuple[Fact, ...]:
        return self.parses[text].facts


class Evaluator:
    """A loaded pipeline and the metrics that can be made here; ``vectors`` are SPICE-G's, if not the bundled ones."""

    def __init__(self, pipeline: CaptionSource, vectors: Vectors | None = None) -> None:
        self._pipeline = pipeline
        self._vectors = vectors
        self._table = _FactTable(pipeline.signature)
        self._references = ReferenceTuples(self._table.of)
        self._lexicon = load_lexicon()
        self._metrics: dict[str, Metric[Any]] = {}
        self._parsing: set[str] = set()
        self._corpus_dependent: set[str] = set()
        self._missing: dict[str, str] = {}
        self._signatures: dict[str, dict[str, str]] = {}
        for name in METRICS:
            self._add(name)

    def _add(self, name: str) -> None:
        def facts() -> _FactTable:
            self._parsing.add(name)
            return self._table

        try:
            metric = METRICS[name](Resources(facts, vectors=self._vectors))
            self._signatures[name] = dict(metric.signature())
        except DataError as error:
            self._missing[name] = str(error)
        else:
            self._metrics[name] = metric
            if needs_whole_corpus(metric):
                self._corpus_dependent.add(name)

    def hello(self) -> Hello:
        """Return what this worker can do."""
        metrics = tuple(
            MetricHello(
                name,
                signature,
                name in self._corpus_dependent,
                name in self._parsing,
                tuple(score.name for score in self._metrics[name].total(())),
            )
            for name, signature in self._signatures.items()
        )
        return Hello(version("spicegraph"), self._pipeline.signature, metrics, self._missing)

    def run(self, task: Task) -> WorkReply | TotalsReply:
        """Do a task; what fails is told in the reply of its group."""
        return self._totals(task) if isinstance(task, Totals) else self._work(task)

    def _work(self, work: Work) -> WorkReply:
        wanted = dict.fromkeys(text for group in work.groups for text in self._texts(group))
        known = _decode(work.parses)
        fresh, failures = self._parse([text for text in wanted if text not in known])
        self._table.parses = known | fresh
        replies = tuple(self._guarded(group, failures) for group in work.groups)
        return WorkReply(replies, {text: encode_parse(parse) for text, parse in fresh.items()})

    def _texts(self, group: ItemsWork | CaptionsWork) -> Iterator[str]:
        if isinstance(group, CaptionsWork):
            yield from group.texts
        elif not self._parsing.isdisjoint(group.metrics):
            for item in group.items:
                yield item.candidate
                yield from item.references

    def _parse(self, texts: Sequence[str]) -> tuple[dict[str, StoredParse], dict[str, str]]:
        """Parse in one batch; if that fails, one by one, so that a caption does not fail others' requests."""
        try:
            return dict(zip(texts, map(stored_parse, self._pipeline.captions(texts)), strict=True)), {}
        except Exception:  # noqa: BLE001 (untrusted captions may hit a bug of a library)
            _log.exception("a batch of %d captions failed; parsing them one by one", len(texts))
        parsed, failures = {}, {}
        for text in texts:
            try:
                parsed[text] = stored_parse(next(iter(self._pipeline.captions([text]))))
            except Exception as error:  # noqa: BLE001 (as above)
                _log.exception("a caption of %d characters cannot be parsed", len(text))
                failures[text] = _reason(error)
        return parsed, failures

    def _guarded(self, group: ItemsWork | CaptionsWork, failures: Mapping[str, str]) -> GroupReply:
        """Evaluate a group; a failure stays in the group, whose request alone is answered with an error."""
        for text in self._texts(group) if failures else ():
            if text in failures:
                return GroupReply(error=failures[text])
        try:
            return self._captions(group) if isinstance(group, CaptionsWork) else self._items(group)
        except Exception as error:  # noqa: BLE001 (as above)
            _log.exception("a group cannot be evaluated")
            return GroupReply(error=_reason(error))

    def _captions(self, work: CaptionsWork) -> GroupReply:
        if not work.graphs:
            return GroupReply()
        results = []
        for text in work.texts:
            parse = self._table.parses[text]
            graph = merge([parse.facts], self._lexicon)
            results.append(convert.caption_message(text, parse, graph).SerializeToString())
        return GroupReply(tuple(results))

    def _items(self, work: ItemsWork) -> GroupReply:
        corpus = Corpus(tuple(Item(item.id, item.candidate, item.references) for item in work.items))
        metrics = self._counting(work.categories)
        later = set() if work.finish else self._corpus_dependent
        statistics: dict[str, Sequence[Any]] = {
            name: collect_part(metrics[name], corpus) if name in later else self._collect(metrics[name], corpus)
            for name in work.metrics
        }
        now = [name for name in self._listed(work.metrics) if name not in later]
        totals = {name: metrics[name].total(statistics[name]) for name in now}
        each = _by_item([score for name in now for score in totals[name]], len(work.items))
        results = [
            scores_pb2.ItemResult(id=item.id, scores=convert.score_messages(scores))
            for item, scores in zip(work.items, each, strict=True)
        ]
        for name in work.metrics:
            _add_evidence(results, name, metrics[name], statistics[name], detail=work.detail)
        serialized = tuple(result.SerializeToString() for result in results)
        if work.finish:
            return GroupReply(serialized, self._corpus(len(work.items), totals, work.categories))
        return GroupReply(serialized, statistics=_pack(statistics))

    def _collect(self, metric: Metric[Any], corpus: Corpus) -> Sequence[Any]:
        if isinstance(metric, Spice):
            return self._references.collect(metric, corpus.items)
        return metric.collect(corpus)

    def _counting(self, definitions: tuple[CategoryDefinition, ...]) -> Mapping[str, Metric[Any]]:
        """Return the metrics, those that parse with a request's own categories."""
        if not definitions:
            return self._metrics
        own = Resources(lambda: self._table, categories=_categories(definitions), vectors=self._vectors)
        return {**self._metrics, **{name: METRICS[name](own) for name in self._parsing}}

    def _totals(self, work: Totals) -> TotalsReply:
        try:
            return self._total(work)
        except Exception as error:  # noqa: BLE001 (as above)
            _log.exception("the totals of a request cannot be computed")
            return TotalsReply(error=_reason(error))

    def _total(self, work: Totals) -> TotalsReply:
        metrics = self._counting(work.categories)
        statistics: dict[str, list[Any]] = {name: [] for name in work.metrics}
        for chunk in work.statistics:
            for name, values in _unpack(chunk).items():
                statistics[name] += values
        count = len(statistics[work.metrics[0]])
        for name in self._corpus_dependent.intersection(statistics):
            statistics[name] = finish_parts(metrics[name], statistics[name])
        totals = {name: metrics[name].total(values) for name, values in statistics.items()}
        late = [score for name in work.metrics if name in self._corpus_dependent for score in totals[name]]
        each = (
            scores_pb2.ItemResult(scores=convert.score_messages(scores)).SerializeToString()
            for scores in (_by_item(late, count) if late else ())
        )
        return TotalsReply(self._corpus(count, totals, work.categories), tuple(each))

    def _corpus(
        self, count: int, totals: Mapping[str, Sequence[Score]], categories: tuple[CategoryDefinition, ...]
    ) -> bytes:
        names = self._listed(totals)
        metrics = self._counting(categories)
        signatures = {name: metrics[name].signature() if categories else self._signatures[name] for name in names}
        return convert.corpus_message(
            count,
            [score for name in names for score in totals[name]],
            [convert.signature_message(name, signatures[name]) for name in names],
        ).SerializeToString()

    def _listed(self, names: Iterable[str]) -> list[str]:
        """Return metrics in the order in which scores are listed: those that depend on the corpus last."""
        return sorted(names, key=self._corpus_dependent.__contains__)


def _decode(parses: Mapping[str, bytes]) -> dict[str, StoredParse]:
    """Return stored parses; one that cannot be read is left out, and so parsed again."""
    decoded = {}
    for text, data in parses.items():
        try:
            decoded[text] = decode_parse(data)
        except msgspec.DecodeError:
            _log.warning("the store holds a damaged parse")
    return decoded


def _by_item(scores: Sequence[Score], count: int) -> list[list[tuple[str, float | None]]]:
    return [[(score.name, score.each[index]) for score in scores] for index in range(count)]


def _add_evidence(
    results: Sequence[scores_pb2.ItemResult], name: str, metric: Metric[Any], statistics: Sequence[Any], *, detail: int
) -> None:
    """Add categories and tuples where the metric has them and the request wants them."""
    if detail < scores_pb2.DETAIL_CATEGORIES:
        return
    for result, statistic in zip(results, statistics, strict=True):
        if isinstance(statistic, SpiceStatistic):
            result.breakdowns.append(convert.breakdown_message(name, statistic))
            if detail >= scores_pb2.DETAIL_TUPLES:
                result.matches.append(convert.match_message(name, statistic.match))
        elif isinstance(metric, SpiceG):
            result.breakdowns.append(convert.graded_breakdown_message(name, statistic))
            if detail >= scores_pb2.DETAIL_TUPLES:
                changes = _CHANGES if detail >= scores_pb2.DETAIL_CHANGES else 0
                explanation = metric.explain(statistic, changes=changes)
                result.graded_matches.append(convert.graded_match_message(name, explanation))


def _pack(statistics: Mapping[str, Sequence[Any]]) -> bytes:
    """Return statistics without the evidence, which the item's result has already."""
    return pickle.dumps({name: [without_evidence(value) for value in values] for name, values in statistics.items()})


def _unpack(data: bytes) -> dict[str, list[Any]]:
    unpacked: dict[str, list[Any]] = pickle.loads(data)  # noqa: S301
    return unpacked


def _reason(error: Exception) -> str:
    """Return what may be told of an error: our own errors are written for users, others are not."""
    return str(error) if isinstance(error, SpicegraphError) else f"an unexpected {type(error).__name__}"
