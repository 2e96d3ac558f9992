"""``--server``: files are read here, and a server does the work."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import grpc

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.categories import CategoryMeans, CategoryScore, Counts
from spicegraph_scorer.core.items import Fingerprint, empty_candidates
from spicegraph_scorer.core.results import CATEGORIES_KEY, CorpusScore, Json, RunSummary, Summary, signature_of
from spicegraph_scorer.core.significance import Interval
from spicegraph_scorer.metrics.spice.categories import KINDS, read_definitions
from spicegraph_service.cli.options import METRIC_DATA, GraphStyle
from spicegraph_service.client import Client, TlsOptions, category, item, values_of
from spicegraph_service.report.data import Provenance

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.facts import Progress
    from spicegraph_scorer.core.items import Item, ItemId
    from spicegraph_scorer.core.significance import Resampling
    from spicegraph_service.cli.options import ParsingOptions, RemoteOptions, ScoringOptions
    from spicegraph_service.engines import System
    from spicegraph_service.report import ReportFormat, ReportOptions

_FORMS: Final = {"html": pb.PAGE_FORMAT_HTML, "markdown": pb.PAGE_FORMAT_MARKDOWN, "json": pb.PAGE_FORMAT_JSON}
_TEXTS: Final = {"written": scores_pb2.SPICE_TEXT_WRITTEN, "coco": scores_pb2.SPICE_TEXT_COCO}
_KINDS: Final = {name: scores_pb2.CategoryKind.Value(f"CATEGORY_KIND_{name.upper()}") for name in KINDS}
_SENT: Final = frozenset({"spice_text", "categories"})  # fields of MetricData that a request carries


class ServerError(SpicegraphError):
    """The server refused a call, or cannot be reached."""


@contextmanager
def connected(remote: RemoteOptions) -> Iterator[Client]:
    """Give a client; what the server says against a call becomes an error of the command."""
    address = remote.server or ""
    try:
        authority = remote.tls_ca.read_bytes() if remote.tls_ca is not None else None
    except OSError as error:
        raise InputError(f"{remote.tls_ca}: can't be read ({error.strerror})") from error
    tls = TlsOptions(authority) if remote.tls or authority else None
    try:
        with Client(address, token=remote.token or None, tls=tls) as client:
            yield client
    except grpc.RpcError as error:
        text = error.details() or "no reason given"
        if error.code() is grpc.StatusCode.UNAVAILABLE and "connect" in text:
            text = "no server answers there"
        raise ServerError(f"{address}: {text}") from error


def settings(scoring: ScoringOptions, parsing: ParsingOptions) -> dict[str, Any]:
    """Return what a request says of metrics and parsing; an :class:`InputError` names what only this machine can do."""
    if refused := list(_of_this_machine(scoring, parsing)):
        raise InputError(f"{', '.join(refused)}: the server has its own; leave it out with --server")
    text = scoring.data("spice").spice_text
    defined = read_definitions(scoring.categories) if scoring.categories is not None else ()
    return {
        "metrics": list(scoring.names),
        "spice_text": _TEXTS[text or "written"],
        "empty": scores_pb2.EMPTY_CANDIDATES_ZERO if scoring.empty == "zero" else scores_pb2.EMPTY_CANDIDATES_REFUSE,
        "graph_style": scene_graph_pb2.GRAPH_STYLE_SCENE
        if parsing.graph_style is GraphStyle.SCENE
        else scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED,
        "categories": [
            category(d.name, kind=_KINDS[d.kind], words=d.words, subtrees=d.subtree, synonyms=d.synonyms)
            for d in defined
        ],
    }


def _of_this_machine(scoring: ScoringOptions, parsing: ParsingOptions) -> Iterator[str]:
    """Yield the options that are given and that a server does not take."""
    for name, option in METRIC_DATA.items():
        if name not in _SENT and getattr(scoring, name) is not None:
            yield option
    usual = {"pipeline": DEFAULT_PIPELINE, "cache": "none", "workers": 1}
    yield from (f"--{name}" for name, value in usual.items() if getattr(parsing, name) != value)


def rendered(
    systems: Sequence[System],
    form: ReportFormat,
    options: ReportOptions,
    settings: Mapping[str, Any],
    *,
    remote: RemoteOptions,
    progress: Progress | None,
) -> str:
    """Return the page that a server makes of systems."""
    if options.images is not None:
        raise InputError("--images: pictures are not sent to a server; leave it out with --server")
    captions = {system.name: {each.id: each.candidate for each in system.items} for system in systems}
    references = _references(systems)
    made = options.provenance or Provenance("")
    draws = options.resampling
    with connected(remote) as client:
        page = client.render(
            captions,
            references,
            form=_FORMS[form],
            progress=progress,
            resampling=scores_pb2.Resampling(draws=draws.draws, seed=draws.seed),
            without_human=not options.human,
            title=options.title or "",
            made=pb.Provenance(command=made.command or "", inputs=[pb.InputFile(**file) for file in made.inputs]),
            **settings,
        )
    return page.decode()


def _references(systems: Sequence[System]) -> dict[ItemId, tuple[str, ...]]:
    """Return the references of each item, which all systems must share."""
    references = {each.id: each.references for each in systems[0].items}
    for system in systems:
        for each in system.items:
            if references.get(each.id) != each.references or len(system.items) != len(references):
                raise InputError(f"{system.name}: item {each.id!a}: other ids or references than {systems[0].name}")
    return references


def scored(
    items: Sequence[Item], settings: Mapping[str, Any], confidence: Resampling | None, remote: RemoteOptions
) -> tuple[Summary, list[dict[str, Json]]]:
    """Return the corpus scores that a server gives, and the scores of each item."""
    asked = None if confidence is None else scores_pb2.Resampling(draws=confidence.draws, seed=confidence.seed)
    found: dict[str, scores_pb2.ItemResult] = {}
    corpus = scores_pb2.CorpusResult()
    sent = (item(each.id, each.candidate, each.references) for each in items)
    with connected(remote) as client:
        for response in client.stream(sent, detail=scores_pb2.DETAIL_CATEGORIES, confidence=asked, **settings):
            for result in response.message.items:
                found.setdefault(result.id, scores_pb2.ItemResult()).MergeFrom(result)
            corpus = response.message.corpus
    results = [found[str(each.id)] for each in items]
    runs = list(_runs(corpus, results))
    fingerprint = replace(Fingerprint.of(items), empty=empty_candidates(items))
    signatures = {each.metric: dict(each.fields) for each in corpus.signatures}
    signature = signature_of(fingerprint, signatures)
    if confidence is not None:
        signature["confidence"] = confidence.signature()
    heads = {run.scores[0].name for run in runs}
    rows: list[dict[str, Json]] = [
        {"image_id": each.id, "scores": _row(result, heads, runs)} for each, result in zip(items, results, strict=True)
    ]
    return Summary(signature, tuple(runs)), rows


def _runs(corpus: scores_pb2.CorpusResult, results: Sequence[scores_pb2.ItemResult]) -> Iterator[RunSummary]:
    """Yield the scores of each metric with categories, and every other score by itself."""
    defined = Counter(score.name for result in results for score in result.scores if score.HasField("value"))
    scores = [CorpusScore(score.name, _known(score, "value"), defined[score.name]) for score in corpus.scores]
    bounds = [Interval(s.name, *_ends(s.interval)) for s in corpus.scores if s.HasField("interval")]
    breakdowns = list(corpus.breakdowns)
    while scores:
        means = _means_of(scores, breakdowns[0].categories) if breakdowns else {}
        if means:
            del breakdowns[0]
        size = max(1, len(means))
        yield RunSummary(tuple(scores[:size]), means, tuple(bounds[:size]))
        scores, bounds = scores[size:], bounds[size:]


def _means_of(scores: Sequence[CorpusScore], rows: Sequence[scores_pb2.CorpusCategory]) -> dict[str, CategoryMeans]:
    """Return the means of categories, if they are those of the first score: their scores come next."""
    names = [scores[0].name, *(f"{scores[0].name}_{row.category}" for row in rows[1:])]
    if len(names) == 1 or [score.name for score in scores[: len(names)]] != names:
        return {}
    return {row.category: _means(row) for row in rows}


def _ends(interval: scores_pb2.Interval) -> tuple[float | None, float | None]:
    return _known(interval, "low"), _known(interval, "high")


def _known(message: Any, field: str) -> float | None:
    return getattr(message, field) if message.HasField(field) else None


def _means(row: scores_pb2.CorpusCategory) -> CategoryMeans:
    sums = row.sums
    micro = None
    if row.HasField("sums"):
        micro = Counts(sums.matched, sums.matched + sums.invented, sums.matched + sums.missed)
    return CategoryMeans(*_shares(row), row.item_count, micro)


def _shares(
    row: scores_pb2.CorpusCategory | scores_pb2.CategoryScore,
) -> tuple[float | None, float | None, float | None]:
    return _known(row, "f1"), _known(row, "precision"), _known(row, "recall")


def _row(result: scores_pb2.ItemResult, heads: Container[str], runs: Sequence[RunSummary]) -> dict[str, Json]:
    row: dict[str, Json] = {name: value for name, value in values_of(result.scores).items() if name in heads}
    for run, breakdown in zip((run for run in runs if run.categories), result.breakdowns, strict=True):
        counted = all(means.micro is not None for means in run.categories.values())
        row[run.scores[0].name + CATEGORIES_KEY] = {
            c.category: CategoryScore(
                *_shares(c), Counts(c.matched, c.candidate, c.reference) if counted else None
            ).to_dict()
            for c in breakdown.categories
        }
    return row
