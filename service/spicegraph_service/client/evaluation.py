"""Connections to a server, and the clients of evaluation and reference sets, synchronous and asynchronous."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack

import grpc
import grpc.aio

from spicegraph_api.report.v1.report_pb2 import PAGE_FORMAT_HTML, PageFormat
from spicegraph_api.report.v1.report_pb2_grpc import ReportServiceStub
from spicegraph_api.v1 import evaluation_service_pb2 as evaluation
from spicegraph_api.v1 import reference_service_pb2 as references
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_api.v1.methods import METHODS, Method
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceStub
from spicegraph_service.client import inputs, reports
from spicegraph_service.client.address import proxy_options
from spicegraph_service.client.errors import refusals
from spicegraph_service.client.patience import Waiting
from spicegraph_service.client.replies import ScoreReply


def service_config(methods: Mapping[str, Mapping[str, Method]]) -> str:
    """Return the retry policy of services' methods, as JSON."""
    # Calls that may be repeated are where no server is available or the queue is full; calls go in turn to all servers
    # of a name.
    names = [
        {"service": service, "method": name}
        for service, of_service in methods.items()
        for name, method in of_service.items()
        if method.repeatable
    ]
    policy = {
        "maxAttempts": 5,
        "initialBackoff": "0.2s",
        "maxBackoff": "5s",
        "backoffMultiplier": 2,
        # The server says when to call again, and which calls not to repeat at all.
        "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
    }
    config = {"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [{"name": names, "retryPolicy": policy}]}
    return json.dumps(config)


SERVICE_CONFIG = service_config(METHODS)  # Retries of the evaluation and reference services.
PAGE = 1_000  # Reference sets in one page of a list.
STREAM_BATCH = 64  # Items in one message of a stream.

_UNANSWERED_S = 20.0  # keepalives
UPLOAD_BATCH = 200  # Entries in one message of an upload.


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """PEM data: authorities to trust (``None``: the system's), and for mutual TLS the client's own pair."""

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return them as gRPC takes them."""
        return grpc.ssl_channel_credentials(self.authorities, self.key, self.certificate)


class ConnectionOptions(TypedDict, total=False):
    """What may be said of a connection; :class:`Client` has what each means."""

    token: str | None
    tls: TlsOptions | None
    timeout_s: float | None
    keepalive_s: float | None
    silence_s: float | None


GivenItem: TypeAlias = scores_pb2.Item | Mapping[str, Any] | tuple[Any, ...] | Any
"""A message, or what :func:`spicegraph_scorer.score` takes for an item."""


class Paged(Protocol):
    """A request for a page of a list."""

    page_token: str


class Page(Protocol):
    """A page of a list."""

    next_page_token: str


Request = TypeVar("Request")
Reply = TypeVar("Reply")
PagedRequest = TypeVar("PagedRequest", bound=Paged)
PageReply = TypeVar("PageReply", bound=Page)


class _Opened:
    """A client's channel to a server, by gRPC's library of either kind, and what goes with every call."""

    _config: ClassVar[str] = SERVICE_CONFIG
    _library: ClassVar[Any] = grpc
    _channel: Any

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        tls: TlsOptions | None = None,
        timeout_s: float | None = 60.0,
        keepalive_s: float | None = 30.0,
        silence_s: float | None = 60.0,
    ) -> None:
        """Open a channel; ``None``: no token, no TLS, no deadline, no pings, no limit of silence."""
        # What a copy of it is made with, in another process, say.
        self._given = {"address": address, "token": token, "tls": tls, "timeout_s": timeout_s}
        self._given |= {"keepalive_s": keepalive_s, "silence_s": silence_s}
        options: list[tuple[str, str | int]] = [
            ("grpc.service_config", self._config),
            ("grpc.max_receive_message_length", -1),
            *proxy_options(address),
        ]
        if keepalive_s is not None:
            options += [
                ("grpc.keepalive_time_ms", round(1000 * keepalive_s)),
                ("grpc.keepalive_timeout_ms", round(1000 * _UNANSWERED_S)),
                ("grpc.http2.max_pings_without_data", 0),  # any number, while a call is under way
            ]
        if tls is None:
            self._channel = self._library.insecure_channel(address, options)
        else:
            self._channel = self._library.secure_channel(address, tls.credentials(), options)
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._timeout_s = timeout_s
        self._address, self._silence_s = address, silence_s

    def _waiting(self, what: str, size: Callable[[Any], int] = lambda _: 1) -> Waiting:
        """Return what counts a stream's messages and answers."""
        return Waiting(self._address, self._silence_s, size=size, what=what)

    def __getstate__(self) -> dict[str, Any]:
        """Return what makes a client like this one: a copy, as in another process, connects anew."""
        return self._given

    def __setstate__(self, given: dict[str, Any]) -> None:
        """Connect."""
        self.__init__(**given)  # type: ignore[misc]


class Connection(_Opened):
    """A synchronous client's channel to a server, and what goes with every call."""

    _channel: grpc.Channel

    def _call(self, method: grpc.UnaryUnaryMultiCallable[Request, Reply], request: Request) -> Reply:
        """Make a call of one message each way."""
        with refusals():
            return method(request, timeout=self._timeout_s, metadata=self._metadata)

    def _pages(
        self, method: grpc.UnaryUnaryMultiCallable[PagedRequest, PageReply], request: PagedRequest
    ) -> Iterator[PageReply]:
        """Yield the pages of a list."""
        while True:
            page = self._call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()


def item(
    item_id: str | int, candidate: str, references: Sequence[str] = (), *, reference_id: str | int | None = None
) -> scores_pb2.Item:
    """Return an item: with its references, or for a reference set without any; a TypeError for what is no caption."""
    return inputs.item(item_id, candidate, references, reference_id=reference_id)


def item_set(
    item_id: str | int,
    candidates: Sequence[str],
    references: Sequence[str] = (),
    *,
    reference_id: str | int | None = None,
) -> scores_pb2.Item:
    """Return an item with several candidates that are scored together, as by :func:`spicegraph_scorer.score_sets`."""
    return inputs.item_set(item_id, candidates, references, reference_id=reference_id)


class ScoreOptions(TypedDict, total=False):
    """What a caller may say of scoring.

    Attributes:
        metrics: names of metrics and groups, in a list or with commas between; SPICE alone by default.
        detail: what the reply says of each item; its scores by default.
        reference_set: the set that has the references of items without any.
        categories: categories of one's own for SPICE; see :func:`category`.
        spice_text: the text that SPICE parses; captions as written by default.
        empty: what is done with empty candidates; they are scored, which gives 0, by default.
        graph_style: whose scene graphs are compared; those of the server's pipeline by default.
        control_tokens: what is done with captions that hold what models leave behind (``<eos>``); they are refused by
            default.
        confidence: how 95 % intervals of corpus scores are drawn; without by default.
        language: what captions are in, by code; what the server's pipeline reads by default.
        reference_language: what references are in, if that is another language: ``en``.
    """

    metrics: str | Sequence[str]
    detail: scores_pb2.Detail.ValueType
    reference_set: str | None
    categories: Sequence[scores_pb2.CategoryDefinition]
    spice_text: scores_pb2.SpiceText.ValueType
    empty: scores_pb2.EmptyCandidates.ValueType
    graph_style: scene_graph_pb2.GraphStyle.ValueType
    control_tokens: scores_pb2.ControlTokens.ValueType
    confidence: scores_pb2.Resampling | None
    language: str
    reference_language: str


_DEFAULTS: ScoreOptions = {"metrics": ("spice",), "detail": scores_pb2.DETAIL_SCORES}


def _complete(options: ScoreOptions) -> ScoreOptions:
    """Return options with the defaults of others."""
    inputs.check_options(options, ScoreOptions.__annotations__)
    whole = _DEFAULTS | options
    return whole | {"metrics": inputs.names(whole["metrics"], "metrics")}


def settings_message(options: ScoreOptions) -> evaluation.ScoreStreamRequest:
    """Return the first message of a stream."""
    return evaluation.ScoreStreamRequest(settings=evaluation.ScoreStreamSettings(**_complete(options)))


def category(
    name: str,
    *,
    kind: scores_pb2.CategoryKind.ValueType = scores_pb2.CATEGORY_KIND_OBJECT,
    words: Sequence[str] = (),
    subtrees: Sequence[str] = (),
    synonyms: bool = False,
) -> scores_pb2.CategoryDefinition:
    """Return a category of one's own: words, everything under synsets of WordNet (``animal.n.01``), or both."""
    return scores_pb2.CategoryDefinition(name=name, kind=kind, words=words, subtrees=subtrees, synonyms=synonyms)


def _items_of(message: evaluation.ScoreStreamRequest | evaluation.ScoreStreamResponse) -> int:
    return len(message.items.items if isinstance(message, evaluation.ScoreStreamRequest) else message.items)


def item_batch(items: Iterable[scores_pb2.Item]) -> evaluation.ScoreStreamRequest:
    """Return a message with items of a stream."""
    return evaluation.ScoreStreamRequest(items=evaluation.ItemBatch(items=items))


def upload_messages(
    entries: Mapping[str, Sequence[str]],
    display_name: str,
    graph_style: scene_graph_pb2.GraphStyle.ValueType,
    control_tokens: scores_pb2.ControlTokens.ValueType,
) -> Iterator[references.CreateReferenceSetRequest]:
    """Yield the messages of an upload: its settings, then the entries in batches."""
    settings = references.ReferenceSetSettings(
        display_name=display_name, graph_style=graph_style, control_tokens=control_tokens
    )
    yield references.CreateReferenceSetRequest(settings=settings)
    for batch in inputs.batches(entries.items(), UPLOAD_BATCH):
        rows = [
            references.ReferenceEntry(id=str(entry_id), references=inputs.captions(texts, f"entries[{entry_id!r}]"))
            for entry_id, texts in batch
        ]
        yield references.CreateReferenceSetRequest(entries=references.ReferenceEntryBatch(entries=rows))


class Client(Connection):
    """A synchronous client. Its calls raise :class:`ServiceError`; it may be shared by threads.

    Args:
        address: ``HOST:PORT``, ``unix:PATH`` or ``dns:///NAME:PORT`` (all servers behind the name).
        token: a bearer token, if the server demands one.
        tls: how to trust the server; ``None``: no TLS.
        timeout_s: the deadline of calls but of streams and uploads, in seconds; ``None``: none.
        keepalive_s: how often a server that is silent in the middle of a call is asked whether it is there; where it
            does not say so within 20 seconds, the call ends as ``UNAVAILABLE``. ``None``: never.
        silence_s: how long a stream or an upload waits for an answer that is due; then it ends as ``DEADLINE_EXCEEDED``
            with what it waits for. ``None``: for ever.

    It can be pickled, with its token: the copy connects anew, so that data loaders may hand it to other processes.
    """

    def __init__(self, address: str, **options: Unpack[ConnectionOptions]) -> None:
        super().__init__(address, **options)
        self._evaluation = EvaluationServiceStub(self._channel)
        self._references = ReferenceServiceStub(self._channel)
        self._reports = ReportServiceStub(self._channel)

    def parse(
        self,
        captions: Sequence[str],
        *,
        graph_style: scene_graph_pb2.GraphStyle.ValueType = scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED,
    ) -> Sequence[scene_graph_pb2.ParsedCaption]:
        """Parse captions to scene graphs."""
        request = evaluation.ParseCaptionsRequest(
            captions=inputs.captions(captions, "captions"), graph_style=graph_style
        )
        reply = self._call(self._evaluation.ParseCaptions, request)
        return reply.captions

    def score(self, items: Iterable[GivenItem], **options: Unpack[ScoreOptions]) -> ScoreReply:
        """Score a batch of items."""
        request = evaluation.ScoreRequest(items=inputs.items(items), **_complete(options))
        return ScoreReply(self._call(self._evaluation.Score, request))

    def stream(self, items: Iterable[GivenItem], **options: Unpack[ScoreOptions]) -> Iterator[ScoreReply]:
        """Score items of any number: results as they come, the corpus result last."""
        waiting = self._waiting("items", _items_of)
        requests = chain(
            [settings_message(options)], map(item_batch, inputs.batches(inputs.items(items), STREAM_BATCH))
        )
        call = self._evaluation.ScoreStream(waiting.messages(requests), metadata=self._metadata)
        yield from map(ScoreReply, waiting.responses(call))

    def analyze(
        self,
        systems: reports.Systems,
        references: reports.References | None = None,
        *,
        progress: reports.Told | None = None,
        **options: Unpack[reports.AnalysisOptions],
    ) -> reports.Analysis:
        """Say which of one to eight systems is better at what, and what each gets wrong; captions by image."""
        reports.check_systems(systems, references)
        messages = reports.analyze_messages(systems, references, options)
        with refusals():
            for step in self._reports.Analyze(messages, metadata=self._metadata):
                reports.tell(step, progress)
        return reports.Analysis(step.report, lambda form: self.render(systems, references, form=form, **options))

    def render(
        self,
        systems: reports.Systems,
        references: reports.References | None = None,
        *,
        form: PageFormat.ValueType = PAGE_FORMAT_HTML,
        progress: reports.Told | None = None,
        **options: Unpack[reports.AnalysisOptions],
    ) -> bytes:
        """Return the page that ``spicegraph report`` writes."""
        reports.check_systems(systems, references)
        page = bytearray()
        messages = reports.render_messages(systems, references, form, options)
        with refusals():
            for step in self._reports.RenderReport(messages, metadata=self._metadata):
                reports.tell(step, progress)
                page += step.chunk
        return bytes(page)

    def server_info(self) -> evaluation.GetServerInfoResponse:
        """Return what runs on the server."""
        return self._call(self._evaluation.GetServerInfo, evaluation.GetServerInfoRequest())

    def create_reference_set(
        self,
        entries: Mapping[str, Sequence[str]],
        *,
        display_name: str = "",
        graph_style: scene_graph_pb2.GraphStyle.ValueType = scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED,
        control_tokens: scores_pb2.ControlTokens.ValueType = scores_pb2.CONTROL_TOKENS_UNSPECIFIED,
    ) -> references.ReferenceSet:
        """Store the references of images by id, parsed for a graph style; the same content gives the same set."""
        waiting = self._waiting("messages")
        requests = waiting.messages(upload_messages(entries, display_name, graph_style, control_tokens))
        reply = waiting.reply(self._references.CreateReferenceSet.future(requests, metadata=self._metadata))
        uploaded: references.ReferenceSet = reply.reference_set
        return uploaded

    def get_reference_set(self, set_id: str) -> references.ReferenceSet:
        """Return what is known of a set."""
        request = references.GetReferenceSetRequest(id=set_id)
        return self._call(self._references.GetReferenceSet, request).reference_set

    def list_reference_sets(self) -> Iterator[references.ReferenceSet]:
        """Return all sets, ordered by id."""
        request = references.ListReferenceSetsRequest(page_size=PAGE)
        for page in self._pages(self._references.ListReferenceSets, request):
            yield from page.reference_sets

    def delete_reference_set(self, set_id: str) -> None:
        """Delete a set."""
        request = references.DeleteReferenceSetRequest(id=set_id)
        self._call(self._references.DeleteReferenceSet, request)

    def share_reference_set(
        self, set_id: str, tenant: str, rights: Iterable[references.ReferenceRight.ValueType]
    ) -> references.ReferenceSet:
        """Give a tenant these rights on a set of one's own, and no others; none: it is no longer shared with it."""
        request = references.ShareReferenceSetRequest(id=set_id, tenant=tenant, rights=rights)
        return self._call(self._references.ShareReferenceSet, request).reference_set


class AsyncClient(_Opened):
    """An asynchronous client, with the same calls as :class:`Client`. Use it in one event loop."""

    _library: ClassVar[Any] = grpc.aio
    _channel: grpc.aio.Channel

    def __init__(self, address: str, **options: Unpack[ConnectionOptions]) -> None:
        super().__init__(address, **options)
        self._evaluation = EvaluationServiceStub(self._channel)
        self._references = ReferenceServiceStub(self._channel)
        self._reports = ReportServiceStub(self._channel)

    async def _call(self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Reply], request: Request) -> Reply:
        """Make a call of one message each way."""
        with refusals():
            return await method(request, timeout=self._timeout_s, metadata=self._metadata)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self.close()

    async def parse(
        self,
        captions: Sequence[str],
        *,
        graph_style: scene_graph_pb2.GraphStyle.ValueType = scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED,
    ) -> Sequence[scene_graph_pb2.ParsedCaption]:
        """Parse captions to scene graphs."""
        request = evaluation.ParseCaptionsRequest(
            captions=inputs.captions(captions, "captions"), graph_style=graph_style
        )
        reply = await self._call(self._evaluation.ParseCaptions, request)
        return reply.captions

    async def score(self, items: Iterable[GivenItem], **options: Unpack[ScoreOptions]) -> ScoreReply:
        """Score a batch of items."""
        request = evaluation.ScoreRequest(items=inputs.items(items), **_complete(options))
        reply = await self._call(self._evaluation.Score, request)
        return ScoreReply(reply)

    async def stream(
        self, items: Iterable[GivenItem] | AsyncIterable[GivenItem], **options: Unpack[ScoreOptions]
    ) -> AsyncIterator[ScoreReply]:
        """Score items of any number: results as they come, the corpus result last."""

        async def requests() -> AsyncIterator[evaluation.ScoreStreamRequest]:
            yield settings_message(options)
            if isinstance(items, AsyncIterable):
                number = 0
                async for value in items:
                    yield item_batch([inputs.as_item(value, number)])
                    number += 1
            else:
                for batch in inputs.batches(inputs.items(items), STREAM_BATCH):
                    yield item_batch(batch)

        waiting = self._waiting("items", _items_of)
        call = self._evaluation.ScoreStream(waiting.messages_async(requests()), metadata=self._metadata)
        async for response in waiting.responses_async(call):
            yield ScoreReply(response)

    async def analyze(
        self,
        systems: reports.Systems,
        references: reports.References | None = None,
        *,
        progress: reports.Told | None = None,
        **options: Unpack[reports.AnalysisOptions],
    ) -> reports.Analysis:
        """Say which of one to eight systems is better at what, and what each gets wrong; captions by image."""
        reports.check_systems(systems, references)
        messages = reports.analyze_messages(systems, references, options)
        with refusals():
            async for step in self._reports.Analyze(messages, metadata=self._metadata):
                reports.tell(step, progress)
        return reports.Analysis(step.report, lambda form: self.render(systems, references, form=form, **options))

    async def render(
        self,
        systems: reports.Systems,
        references: reports.References | None = None,
        *,
        form: PageFormat.ValueType = PAGE_FORMAT_HTML,
        progress: reports.Told | None = None,
        **options: Unpack[reports.AnalysisOptions],
    ) -> bytes:
        """Return the page that ``spicegraph report`` writes."""
        reports.check_systems(systems, references)
        page = bytearray()
        messages = reports.render_messages(systems, references, form, options)
        with refusals():
            async for step in self._reports.RenderReport(messages, metadata=self._metadata):
                reports.tell(step, progress)
                page += step.chunk
        return bytes(page)

    async def server_info(self) -> evaluation.GetServerInfoResponse:
        """Return what runs on the server."""
        return await self._call(self._evaluation.GetServerInfo, evaluation.GetServerInfoRequest())

    async def create_reference_set(
        self,
        entries: Mapping[str, Sequence[str]],
        *,
        display_name: str = "",
        graph_style: scene_graph_pb2.GraphStyle.ValueType = scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED,
        control_tokens: scores_pb2.ControlTokens.ValueType = scores_pb2.CONTROL_TOKENS_UNSPECIFIED,
    ) -> references.ReferenceSet:
        """Store the references of images by id, parsed for a graph style; the same content gives the same set."""
        waiting = self._waiting("messages")
        requests = waiting.messages(upload_messages(entries, display_name, graph_style, control_tokens))
        call = self._references.CreateReferenceSet(requests, metadata=self._metadata)
        uploaded: references.ReferenceSet = (await waiting.reply_async(call)).reference_set
        return uploaded

    async def get_reference_set(self, set_id: str) -> references.ReferenceSet:
        """Return what is known of a set."""
        request = references.GetReferenceSetRequest(id=set_id)
        reply = await self._call(self._references.GetReferenceSet, request)
        return reply.reference_set

    async def list_reference_sets(self) -> AsyncIterator[references.ReferenceSet]:
        """Return all sets, ordered by id."""
        request = references.ListReferenceSetsRequest(page_size=PAGE)
        while True:
            page = await self._call(self._references.ListReferenceSets, request)
            for reference_set in page.reference_sets:
                yield reference_set
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def delete_reference_set(self, set_id: str) -> None:
        """Delete a set."""
        request = references.DeleteReferenceSetRequest(id=set_id)
        await self._call(self._references.DeleteReferenceSet, request)

    async def share_reference_set(
        self, set_id: str, tenant: str, rights: Iterable[references.ReferenceRight.ValueType]
    ) -> references.ReferenceSet:
        """Give a tenant these rights on a set of one's own, and no others; none: it is no longer shared with it."""
        request = references.ShareReferenceSetRequest(id=set_id, tenant=tenant, rights=rights)
        return (await self._call(self._references.ShareReferenceSet, request)).reference_set
