"""What a worker computes: parses, statistics, scores, and the messages that carry them."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import chain
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from spicegraph_api.v1 import scores_pb2
from spicegraph_parser.errors import DataError, InputError, LimitError, SpicegraphError
from spicegraph_parser.pipelines import SCENE, CaptionPipeline, load_pipeline, registered_pipelines
from spicegraph_parser.spice.graph import merge
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_scorer.core.data import MetricData, Resources
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.results import Run, run_of
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.errors import error_words
from spicegraph_scorer.metrics import METRICS, check_language
from spicegraph_scorer.metrics.spice.categories import make_categories
from spicegraph_scorer.sets import as_sets
from spicegraph_service.pool import convert, tasks
from spicegraph_service.store import StoredParse, decode_parse, encode_parse, stored_parse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.metric import Metric

_Parses: TypeAlias = "dict[tasks.StyledText, StoredParse]"
_REQUESTED = frozenset({"categories", "spice_text", "language"})
_CHANGES = 3  # of SPICE-G, at most
MOST_DRAWN = 200_000_000  # items, over all draws of an interval: some seconds
_IMAGES = 2_000  # whose merged references SPICE keeps: a training loop scores the same images again and again
_log = logging.getLogger(__name__)


class Evaluator:
    """Parses and scores: with a pipeline, the scene parser if it is registered, and the metrics that can be made here.

    ``data`` is that of the metrics.
    """

    def __init__(self, pipeline: CaptionPipeline, data: MetricData | None = None) -> None:
        self._pipelines: dict[tasks.GraphStyle, CaptionPipeline] = {"spice": pipeline}
        if SCENE in registered_pipelines():
            self._pipelines["scene"] = load_pipeline(SCENE)
        self._data = data or MetricData()
        self._parses: _Parses = {}  # of the batch in hand
        self._known: dict[tasks.GraphStyle, dict[str, tuple[Fact, ...]]] = {"spice": {}, "scene": {}}
        self._tables = {
            style: FunctionSource(pipeline.signature, partial(self._facts, style), pipeline.language)
            for style, pipeline in self._pipelines.items()
        }
        self._lexicon = load_lexicon()
        self._metrics: dict[str, Metric[Any]] = {}
        self._missing: dict[str, str] = {}
        self._signatures: dict[str, dict[str, str]] = {}
        for name in METRICS:
            try:
                metric = METRICS[name].make(self._resources(self._data, "spice"))
                self._signatures[name] = dict(metric.signature())
            except DataError as error:
                self._missing[name] = str(error)
            else:
                self._metrics[name] = metric
        self._parsing = {
            name: "spice_text" in metric.needs.data for name, metric in self._metrics.items() if metric.needs.facts
        }
        self._made = lru_cache(maxsize=8)(self._make)  # a training loop gives the same again and again
        self._corpus_dependent = {name for name, metric in self._metrics.items() if metric.weigh is not None}

    def _facts(self, style: tasks.GraphStyle, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of captions of the batch in hand; other texts, which a metric makes of them, are parsed."""
        known, wanted = self._known[style], list(texts)
        new = [text for text in dict.fromkeys(wanted) if text not in known]
        parses = map(stored_parse, self._pipelines[style].captions(new))
        known.update(zip(new, (parse.facts for parse in parses), strict=True))
        return map(known.__getitem__, wanted)

    def _resources(self, data: MetricData, style: tasks.GraphStyle, *, evidence: bool = True) -> Resources:
        return Resources(lambda: self._tables[style], data=data, evidence=evidence, images=_IMAGES)

    def info(self) -> tasks.WorkerInfo:
        """Return this worker's capabilities."""
        metrics = tuple(
            tasks.ServedMetric(
                name,
                signature,
                name in self._corpus_dependent,
                name in self._parsing,
                self._parsing.get(name, False),
                tuple(score.name for score in self._metrics[name].total(())),
            )
            for name, signature in self._signatures.items()
        )
        scenes = self._pipelines.get("scene")
        return tasks.WorkerInfo(
            version("spicegraph"),
            self._pipelines["spice"].signature,
            metrics,
            self._missing,
            scenes.signature if scenes is not None else "",
        )

    def make_ready(self) -> None:
        """Load metrics' resources ahead of the first calls."""
        for metric in self._metrics.values():
            metric.make_ready()

    def warm_up(self) -> None:
        """Parse one caption per pipeline, so that the first call need not load models."""
        self._parse([tasks.StyledText("A man rides a horse on the beach.", style) for style in self._pipelines])

    def run(self, task: tasks.Task) -> tasks.WorkReply | tasks.GroupReply:
        """Run a task; errors are reported in the reply of its group."""
        if isinstance(task, tasks.Work):
            return self._work(task)
        return _answered(lambda: self._total(task), "the totals of a request cannot be computed")

    def _work(self, work: tasks.Work) -> tasks.WorkReply:
        """Parse a batch's new texts, and evaluate its groups."""
        wanted = dict.fromkeys(text for group in work.groups for text in group.texts(self._parsing))
        known = _decoded(work.parses)
        fresh, failures = self._parse([text for text in wanted if text not in known])
        self._hold(known | fresh)
        replies = tuple(self._guarded(group, failures) for group in work.groups)
        return tasks.WorkReply(replies, {text: encode_parse(parse) for text, parse in fresh.items()})

    def _hold(self, parses: _Parses) -> None:
        """Keep the parses of the batch in hand, and no others."""
        self._parses = parses
        for facts in self._known.values():
            facts.clear()
        for text, parse in parses.items():
            self._known[text.style][text.text] = parse.facts

    def _parse(self, texts: Sequence[tasks.StyledText]) -> tuple[_Parses, dict[tasks.StyledText, str]]:
        """Parse in a batch for each style; if that fails, one by one, so that a caption fails no other request."""
        try:
            return self._parsed(texts), {}
        except Exception:  # noqa: BLE001 (untrusted captions may hit a bug of a library)
            _log.exception("a batch of %d captions failed; parsing them one by one", len(texts))
        parsed: _Parses = {}
        failures: dict[tasks.StyledText, str] = {}
        for text in texts:
            try:
                parsed |= self._parsed([text])
            except Exception as error:  # noqa: BLE001 (as above)
                _log.exception("a caption of %d characters cannot be parsed", len(text.text))
                failures[text] = _reason(error)
        return parsed, failures

    def _parsed(self, texts: Sequence[tasks.StyledText]) -> _Parses:
        parsed: _Parses = {}
        for style, pipeline in self._pipelines.items():
            styled = [text for text in texts if text.style == style]
            captions = pipeline.captions(text.text for text in styled)
            parsed.update(zip(styled, map(stored_parse, captions), strict=True))
        return parsed

    def _guarded(
        self, group: tasks.ItemsWork | tasks.CaptionsWork, failures: Mapping[tasks.StyledText, str]
    ) -> tasks.GroupReply:
        """Evaluate a group; a failure stays in the group, whose request alone is answered with an error."""
        for text in group.texts(self._parsing) if failures else ():
            if text in failures:
                return tasks.GroupReply(error=failures[text])
        return _answered(
            lambda: self._captions(group) if isinstance(group, tasks.CaptionsWork) else self._items(group),
            "a group cannot be evaluated",
        )

    def _captions(self, work: tasks.CaptionsWork) -> tasks.GroupReply:
        if not work.graphs:
            return tasks.GroupReply()
        results = []
        for text in work.texts(self._parsing):
            parse = self._parses[text]
            graph = merge([parse.drawn], self._lexicon)
            results.append(convert.caption_message(text.text, parse, graph).SerializeToString())
        return tasks.GroupReply(tuple(results))

    def _items(self, work: tasks.ItemsWork) -> tasks.GroupReply:
        corpus = Corpus(tuple(Item(item.id, item.candidate, item.references) for item in work.items))
        _check_languages(work)
        metrics = self._chosen(work, evidence=work.errors or work.detail >= scores_pb2.DETAIL_TUPLES)
        later, resampling = self._corpus_dependent, None
        if work.finish:
            later, resampling = set(), _resampling(work.given, len(work.items))
        statistics = _collected(work, corpus, metrics, later)
        now = [name for name in self._listed(metrics) if name not in later]
        runs = [run_of(name, metrics[name], statistics[name], confidence=resampling) for name in now]
        serialized = self._messages(work, runs, metrics, corpus)
        if work.finish:
            return tasks.GroupReply(serialized, _corpus(len(work.items), runs, work.detail))
        errors = _words_of_errors(metrics, statistics) if work.errors else []
        statistics |= {name: list(map(metrics[name].compact, statistics[name])) for name in now}
        items = corpus.items if _level(work.detail) >= scores_pb2.DETAIL_CREDIT else ()
        return tasks.GroupReply(serialized, statistics=tasks.ChunkStatistics(statistics, items, errors).pack())

    def _messages(
        self, work: tasks.ItemsWork, runs: Sequence[Run], metrics: Mapping[str, Metric[Any]], corpus: Corpus
    ) -> tuple[bytes, ...]:
        """Return each item's message, with the evidence or the errors that the request wants."""
        results = [scores_pb2.ItemResult(id=item.id) for item in work.items]
        if work.detail == scores_pb2.DETAIL_ERRORS:
            self._add_errors(results, runs, metrics, corpus, work.given.graph_style)
        return _filled(results, runs, metrics, corpus, _level(work.detail))

    def _add_errors(
        self,
        results: Sequence[scores_pb2.ItemResult],
        runs: Iterable[Run],
        metrics: Mapping[str, Metric[Any]],
        corpus: Corpus,
        style: tasks.GraphStyle,
    ) -> None:
        """Add error kinds to each item's result, for every metric that matches tuples."""
        spans = {text.text: parse.spans for text, parse in self._parses.items() if text.style == style}
        for run in runs:
            metric = metrics[run.name]
            if not metric.matches:
                continue
            for result, item, statistic in zip(results, corpus.items, run.statistics, strict=True):
                match = metric.explain(statistic)
                result.errors.append(convert.errors_message(run.name, metric.reads(item), match, spans))

    def _chosen(self, work: tasks.ItemsWork | tasks.Totals, *, evidence: bool = True) -> Mapping[str, Metric[Any]]:
        """Return the metrics to compute, with the request's data; wrapped for sets of captions."""
        # How intervals are drawn, and of what, is nothing to a metric.
        given = msgspec.structs.replace(work.given, confidence=None, sets=False)
        made = self._made(given, evidence=evidence)
        metrics = {name: made[name] for name in _computed(work)}
        if not work.given.sets:
            return metrics
        items = work.items if isinstance(work, tasks.ItemsWork) else ()
        sets: dict[ItemId, Sequence[str]] = {item.id: item.candidates for item in items}
        return as_sets(metrics, sets)

    def _make(self, given: tasks.RequestData, *, evidence: bool = True) -> Mapping[str, Metric[Any]]:
        """Return the metrics, rebuilt with the request's data where used; ``evidence``: facts keep theirs."""
        if given == tasks.NOTHING_GIVEN and evidence:
            return self._metrics
        data = replace(
            self._data,
            spice_text=given.spice_text,
            language=given.language,
            reference_language=given.reference_language,
        )
        if given.categories:
            data = replace(data, categories=make_categories(given.categories))
        resources = self._resources(data, given.graph_style, evidence=evidence)
        using = [name for name, metric in self._metrics.items() if metric.needs.facts or metric.needs.data & _REQUESTED]
        made = self._metrics | {name: METRICS[name].make(resources) for name in using}
        if given.made is not None:
            made[given.made.name] = resolve_name(given.made.maker)(given.made.text, resources)
        return made

    def _total(self, work: tasks.Totals) -> tasks.GroupReply:
        metrics = self._chosen(work)
        chunks = [tasks.ChunkStatistics.unpack(chunk) for chunk in work.statistics]
        statistics = {name: list(chain.from_iterable(chunk.metrics[name] for chunk in chunks)) for name in metrics}
        corpus = Corpus(tuple(chain.from_iterable(chunk.items for chunk in chunks)))
        count = len(next(iter(statistics.values())))
        resampling = _resampling(work.given, count)
        runs = [
            run_of(name, metrics[name], metrics[name].finish(statistics[name]), confidence=resampling)
            for name in self._listed(metrics)
        ]
        late = [run for run in runs if run.name in self._corpus_dependent]
        results = [scores_pb2.ItemResult() for _ in range(count if late else 0)]
        serialized = _filled(results, late, metrics, corpus, _level(work.detail))
        return tasks.GroupReply(serialized, _corpus(count, runs, work.detail))

    def _listed(self, names: Iterable[str]) -> list[str]:
        """Return metrics in the order in which scores are listed: those that depend on the corpus last."""
        return sorted(names, key=self._corpus_dependent.__contains__)


def _answered(do: Callable[[], tasks.GroupReply], failure: str) -> tasks.GroupReply:
    """Return the result or its error; unexpected errors are logged under ``failure``."""
    try:
        return do()
    except LimitError as error:
        return tasks.GroupReply(error=str(error), refused="limit")
    except InputError as error:
        return tasks.GroupReply(error=str(error), refused="input")
    except Exception as error:  # noqa: BLE001 (the callers of other groups must get their answers)
        _log.exception("%s", failure)
        return tasks.GroupReply(error=_reason(error))


def _decoded(parses: Mapping[tasks.StyledText, bytes]) -> _Parses:
    """Return parses of the store; a damaged one is left out, and so parsed again."""
    known: _Parses = {}
    for text, data in parses.items():
        try:
            known[text] = decode_parse(data)
        except msgspec.DecodeError:
            _log.warning("the store holds a damaged parse")
    return known


def _check_languages(work: tasks.ItemsWork) -> None:
    """Refuse metrics that do not know the languages of a request."""
    given = work.given
    if given.language or given.reference_language:
        languages = MetricData(language=given.language, reference_language=given.reference_language)
        check_language([name for name in _computed(work) if name in METRICS], languages)


def _collected(
    work: tasks.ItemsWork, corpus: Corpus, metrics: Mapping[str, Metric[Any]], later: Collection[str]
) -> dict[str, Sequence[Any]]:
    """Return each metric's statistics; for metrics in ``later``, deferred until all items are there."""
    # A metric without credits, such as another package's, need not know this argument.
    credits_too = {"evidence": True} if _level(work.detail) >= scores_pb2.DETAIL_CREDIT else {}
    drafts = Corpus(tuple(Item(i.id, i.draft, i.references) for i in work.items if i.draft is not None))
    statistics: dict[str, Sequence[Any]] = {}
    metric: Any
    for name, metric in metrics.items():
        if name in later:
            statistics[name] = metric.defer(corpus, **credits_too)
        elif drafts.items:  # the metric is one that compares candidates with them
            statistics[name] = metric.compare(corpus, drafts)
        else:
            statistics[name] = metric.collect(corpus)
    return statistics


def _words_of_errors(
    metrics: Mapping[str, Metric[Any]], statistics: Mapping[str, Sequence[Any]]
) -> list[frozenset[tuple[str, tuple[str, ...]]]]:
    """Return the words of each item's errors, by the first metric that matches tuples."""
    matching = next((name for name in statistics if metrics[name].matches), None)
    if matching is None:
        return []
    return [error_words(metrics[matching].explain(statistic)) for statistic in statistics[matching]]


def _corpus(count: int, runs: Sequence[Run], detail: int) -> bytes:
    """Return the serialized corpus scores, by category at detail levels that have categories."""
    message = convert.corpus_message(count, runs, categories=detail >= scores_pb2.DETAIL_CATEGORIES)
    return message.SerializeToString()


def _level(detail: int) -> int:
    """Return the evidence that a detail stands for, apart from errors."""
    return scores_pb2.DETAIL_TUPLES if detail == scores_pb2.DETAIL_ERRORS else detail


def _resampling(given: tasks.RequestData, count: int) -> Resampling | None:
    """Return how intervals are drawn; a :class:`LimitError` where it would take a worker too long."""
    if given.confidence is None:
        return None
    draws, seed = given.confidence
    if draws * count > MOST_DRAWN:
        raise LimitError(f"{draws:,} draws of {count:,} items: the limit is {MOST_DRAWN:,} drawn items; ask for fewer")
    return Resampling(draws, seed)


def _filled(
    results: Sequence[scores_pb2.ItemResult],
    runs: Sequence[Run],
    metrics: Mapping[str, Metric[Any]],
    corpus: Corpus,
    detail: int,
) -> tuple[bytes, ...]:
    """Give each item's message its scores and the evidence that the request wants, and return the messages' bytes."""
    for run in runs:
        for score in run.scores:
            for result, value in zip(results, score.each, strict=True):
                result.scores.add(name=score.name, value=value)
        if detail >= scores_pb2.DETAIL_CATEGORIES:
            _add_evidence(results, run, metrics[run.name], corpus, detail)
    return tuple(result.SerializeToString() for result in results)


def _add_evidence(
    results: Sequence[scores_pb2.ItemResult], run: Run, metric: Metric[Any], corpus: Corpus, detail: int
) -> None:
    """Give each item's message the categories of a metric, and its tuples and credits where they are wanted."""
    # CIDEr is undefined with the references of a single image: there is nothing to divide.
    if detail >= scores_pb2.DETAIL_CREDIT and metric.credits and None not in run.scores[0].each:
        for result, credit in zip(results, metric.credit(corpus, run.statistics), strict=True):
            result.credits.append(convert.credit_message(run.name, credit))
    changes = _CHANGES if detail >= scores_pb2.DETAIL_CHANGES else 0
    for result, statistic in zip(results, run.statistics, strict=True):
        if categories := run.by_category(statistic):
            result.breakdowns.append(convert.breakdown_message(run.name, categories))
        if detail >= scores_pb2.DETAIL_TUPLES:
            explanation = metric.explain(statistic, changes=changes)
            convert.add_explanation(result, run.name, explanation, verdicts=detail >= scores_pb2.DETAIL_VERDICTS)


def _computed(work: tasks.ItemsWork | tasks.Totals) -> Sequence[str]:
    """Return the metrics that are computed: the one that is made for the request alone, if there is one."""
    return work.metrics if work.given.made is None else (work.given.made.name,)


def _reason(error: Exception) -> str:
    """Return the error message for clients: ours in full, of others only the type."""
    return str(error) if isinstance(error, SpicegraphError) else f"an unexpected {type(error).__name__}"
