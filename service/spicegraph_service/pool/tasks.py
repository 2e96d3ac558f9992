"""What the server and its worker processes send each other, as MessagePack (see ``processes``)."""
# The server's own data for metrics is read once and handed to every process, so that none answers with another table.

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias

import msgspec

from spicegraph_scorer.core.tokens import SpiceText, toolkit_text
from spicegraph_scorer.metrics.spice.categories import CategoryDefinition  # noqa: TC001 (msgspec reads the annotation)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.items import Item


GraphStyle: TypeAlias = Literal["spice", "scene"]  # Of the server's pipeline, or the scene parser.


class StyledText(NamedTuple):
    """A text and its graph style: the key of cached parses."""

    text: str
    style: GraphStyle = "spice"


Setup: TypeAlias = tuple[str, bytes]  # The first frame to a worker: its pipeline, the metrics' data (empty: their own).


class ItemWork(NamedTuple):
    """An item to score; ``draft``: the candidate's draft, ``more``: further captions of a set."""

    id: str
    candidate: str
    references: tuple[str, ...]
    draft: str | None = None
    more: tuple[str, ...] = ()

    @property
    def candidates(self) -> tuple[str, ...]:
        """The captions under test: several of a set."""
        return (self.candidate, *self.more)

    @property
    def captions(self) -> tuple[str, ...]:
        """All that is read for the item."""
        return (*self.candidates, *self.references, *(() if self.draft is None else (self.draft,)))


class MadeMetric(NamedTuple):
    """A metric that a service has made for a request: ``module:function``, which is given a text and the resources."""

    name: str
    maker: str
    text: str


class RequestData(msgspec.Struct, frozen=True):
    """A request's settings for metrics: own categories, SPICE text, style, languages."""

    categories: tuple[CategoryDefinition, ...] = ()
    spice_text: SpiceText = "written"
    graph_style: GraphStyle = "spice"
    made: MadeMetric | None = None
    confidence: tuple[int, int] | None = None  # draws and seed of intervals of the corpus scores
    language: str | None = None
    reference_language: str | None = None
    sets: bool = False  # items are sets of captions


NOTHING_GIVEN: Final = RequestData()


def parsed_texts(
    metrics: Iterable[str], parsing: Mapping[str, bool], spice_text: SpiceText
) -> tuple[Callable[[str], str], ...]:
    """Return functions from a caption to each text to parse; ``parsing``: whether ``spice_text`` applies."""
    toolkit = {spice_text == "coco" and parsing[name] for name in metrics if name in parsing}
    return tuple(make for kind, make in ((False, str), (True, toolkit_text)) if kind in toolkit)


class ItemsWork(msgspec.Struct, frozen=True, tag="items"):
    """Items of one request that are scored together."""

    metrics: tuple[str, ...]
    detail: int
    items: tuple[ItemWork, ...]
    finish: bool  # they are all of it; else the reply holds statistics for :class:`Totals`
    given: RequestData = NOTHING_GIVEN
    errors: bool = False  # statistics tell the kinds and words of each item's errors

    def texts(self, parsing: Mapping[str, bool]) -> Iterator[StyledText]:
        """Yield the texts that are parsed for the items; ``parsing`` as for :func:`parsed_texts`."""
        wanted = parsed_texts(self.metrics, parsing, self.given.spice_text)
        for text in self.captions:
            for make in wanted:
                yield StyledText(make(text), self.given.graph_style)

    @property
    def captions(self) -> tuple[str, ...]:
        """All captions of the items."""
        return tuple(text for item in self.items for text in item.captions)

    @property
    def passing(self) -> frozenset[StyledText]:
        """The texts whose parses stay out of the store."""
        if self.given.made is None:
            return frozenset()
        made = {text for item in self.items for text in (item.candidate, item.draft) if text is not None}
        return frozenset(
            StyledText(text, self.given.graph_style)
            for text in made.difference(*{item.references for item in self.items})
        )


class CaptionsWork(msgspec.Struct, frozen=True, tag="captions"):
    """Captions to parse; ``graphs`` asks for the parses themselves, otherwise only the store is filled."""

    captions: tuple[str, ...]
    graphs: bool
    style: GraphStyle = "spice"

    def texts(self, parsing: Mapping[str, bool]) -> Iterator[StyledText]:
        """Yield the texts that are parsed."""
        del parsing  # no metric is computed
        return (StyledText(caption, self.style) for caption in self.captions)


class Work(msgspec.Struct, frozen=True, tag="work"):
    """Groups of several requests, with the stored parses that they can use; the worker parses the rest."""

    groups: tuple[ItemsWork | CaptionsWork, ...]
    parses: dict[StyledText, bytes]


class ChunkStatistics(NamedTuple):
    """A chunk's statistics by metric name, kept for the end of the request."""

    metrics: Mapping[str, Sequence[Any]]
    items: Sequence[Item] = ()  # where credits need them at the end
    errors: Sequence[frozenset[tuple[str, tuple[str, ...]]]] = ()  # kinds and words of each item's

    def pack(self) -> bytes:
        """Return the bytes that :meth:`unpack` reads."""
        return pickle.dumps(self)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Unpickle statistics packed by one of our own workers."""
        statistics: Self = pickle.loads(packed)  # noqa: S301
        return statistics


class Totals(msgspec.Struct, frozen=True, tag="totals"):
    """Statistics of a whole request, in chunks, to be made into scores of ``metrics``."""

    metrics: tuple[str, ...]
    detail: int
    statistics: tuple[bytes, ...]
    given: RequestData = NOTHING_GIVEN


class GroupReply(msgspec.Struct, frozen=True, tag="group"):
    """Reply for a group or totals: serialized messages, in order; or ``error``, the reason."""

    results: tuple[bytes, ...] = ()  # of totals the scores that depend on the corpus, if there are such
    corpus: bytes = b""
    statistics: bytes = b""
    error: str = ""
    refused: Literal["", "limit", "input"] = ""  # the error is for the sender to know


class WorkReply(msgspec.Struct, frozen=True, tag="work"):
    """One reply per group, and the parses that are new."""

    groups: tuple[GroupReply, ...]
    parsed: dict[StyledText, bytes]


class ServedMetric(msgspec.Struct, frozen=True):
    """A metric that the worker computes, with the names of its scores."""

    name: str
    signature: dict[str, str]
    corpus_dependent: bool
    parses: bool  # it needs captions parsed
    chosen_text: bool = False  # it parses the text that a request names
    scores: tuple[str, ...] = ()


class WorkerInfo(msgspec.Struct, frozen=True, tag="info"):
    """A worker's first frame: it is ready, or ``error`` says why it never will be."""

    version: str = ""
    pipeline: str = ""
    metrics: tuple[ServedMetric, ...] = ()
    missing: dict[str, str] = {}  # why some metrics are not available
    scene_pipeline: str = ""
    error: str = ""

    @property
    def parsing(self) -> dict[str, bool]:
        """The metrics that need parses, and whether each parses the text that a request names."""
        return {metric.name: metric.chosen_text for metric in self.metrics if metric.parses}

    @property
    def vectors(self) -> str:
        """The signature of SPICE-G's vectors; empty where SPICE-G is not available."""
        return next((vectors for metric in self.metrics if (vectors := metric.signature.get("vectors"))), "")


Task: TypeAlias = Work | Totals
Reply: TypeAlias = WorkerInfo | WorkReply | GroupReply

# What goes through the pipe: setups and tasks one way, replies the other.
encode: Callable[[Setup | Task | Reply], bytes] = msgspec.msgpack.Encoder().encode
decode_setup: Callable[[bytes], Setup] = msgspec.msgpack.Decoder(Setup).decode
decode_task: Callable[[bytes], Task] = msgspec.msgpack.Decoder(Task).decode
decode_reply: Callable[[bytes], Reply] = msgspec.msgpack.Decoder(Reply).decode


def pack_data(**files: Path | None) -> bytes:
    """Return the data of files, by their fields of ``MetricData``, as :func:`unpack_data` reads it."""
    given = {name: str(path) for name, path in files.items() if path is not None}
    if not given:
        return b""
    # Imported here: a server with the bundled vectors leaves them, and numpy, to its workers.
    from spicegraph_scorer.metrics import read_data  # noqa: PLC0415

    return pickle.dumps(read_data(given))


def unpack_data(packed: bytes) -> MetricData:
    """Return the data that the server has sent."""
    from spicegraph_scorer.core.data import MetricData  # noqa: PLC0415 (only in processes that compute)

    data: MetricData = pickle.loads(packed) if packed else MetricData()  # noqa: S301 (our own server's)
    return data
