"""Parsing and tagging on this machine: in one process or several, and no caption twice."""
# Captions go out in tasks of about equal text; a process parses those of a task sorted by length, so that what goes
# through a network together has about one length.

from __future__ import annotations

import gc
import signal
import sys
import warnings
from collections import deque
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, CaptionPipeline, load_pipeline
from spicegraph_parser.runtime import RARE
from spicegraph_parser.spice.rules import Fact
from spicegraph_service import store as stores
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future, ProcessPoolExecutor  # loads multiprocessing


_LOOK_UP: Final = 8192  # captions that are looked up, parsed and stored at a time: what a crash loses of the work

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Parsed = TypeVar("Parsed")


class Spread(Protocol):
    """Ordered map of a function over arguments: ``map``, or that of a process pool."""

    def __call__(self, function: Callable[[Argument], Result], arguments: Iterable[Argument], /) -> Iterator[Result]:
        """Return the results in the order of the arguments."""


Encode: TypeAlias = "Callable[[CaptionPipeline, Iterable[str]], Iterator[bytes]]"  # Makes one byte string each.

_fact_lists = msgspec.msgpack.Decoder(list[tuple[Fact, ...]])
_byte_lists = msgspec.msgpack.Decoder(list[bytes])

_TASK: Final = 24_000  # characters that a process gets at a time, some 450 captions: 0.15 s

_FEWEST: Final = 64  # captions of the shortest tasks: shorter ones cost more than the time that they save

_AHEAD: Final = 4  # Tasks for each process that are handed out: none is idle, memory is bounded.

_SCORING_ENDED: Final = "a scoring process ended unexpectedly (killed, or out of memory)"
_PARSING_ENDED: Final = (
    "a parsing process ended unexpectedly (killed, or out of memory); with a cache, earlier parses are kept"
)


@contextmanager
def local_facts(
    pipeline: str, *, workers: int = 1, cache: str | None = None, loose: bool = True
) -> Iterator[ParseSource]:
    """Give a source of facts and parses; nothing is loaded before the first caption.

    ``cache`` (an SQLite file, or ``redis://HOST``; a server's store too): parses are kept from run to run. ``loose``:
    facts come with those of loose words, which SPICE-G needs.
    """
    with ExitStack() as stack:
        store = None
        if cache is not None:
            store = open_store(cache)
            stack.callback(store.close)

        def start() -> Pool:
            return stack.enter_context(_pool(workers, _PARSING_ENDED, partial(_load, pipeline)))

        yield ParseSource(pipeline, loose=loose, start=None if workers == 1 else start, store=store)


class ParseSource:
    """Source of facts, parses or encoded captions, which parses only captions missing in the store."""

    def __init__(
        self, pipeline: str, *, loose: bool, start: Callable[[], Pool] | None, store: stores.Store | None
    ) -> None:
        self._name = pipeline
        self._loose = loose
        self._start = start
        self._store = store

    @cached_property
    def pool(self) -> Pool | None:
        """The processes that parse; ``None``: this one does."""
        return self._start and self._start()

    @cached_property
    def _pipeline(self) -> CaptionPipeline:
        return replace(load_pipeline(self._name), loose=self._loose)

    @cached_property
    def signature(self) -> str:
        """Name and version of the pipeline; one that spaCy loads is asked in a process."""
        if self._name == DEFAULT_PIPELINE or self.pool is None:
            return self._pipeline.signature
        return next(self.pool.results(_read, ["signature"]))

    @cached_property
    def language(self) -> str:
        """The code of the language that the pipeline reads."""
        if self._name == DEFAULT_PIPELINE or self.pool is None:
            return self._pipeline.language
        return next(self.pool.results(_read, ["language"]))

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        if self._store is not None:
            return (parse.facts for parse in self.parses(texts))
        if self.pool is None:
            return self._pipeline.facts(texts)
        return _in_pool(self.pool, texts, partial(_facts, loose=self._loose), _fact_lists.decode)

    def parses(self, texts: Iterable[str]) -> Iterator[stores.StoredParse]:
        """Yield the parse of each caption, in order."""
        for data in self.encoded(texts, encoded_parses, self.signature):
            try:
                yield stores.unpack_parse(data)
            except msgspec.DecodeError as error:
                raise stores.StoreError(
                    f"the cache contains an entry that is not a parse ({error}); use another cache"
                ) from error

    def encoded(self, texts: Iterable[str], encode: Encode, signature: str) -> Iterator[bytes]:
        """Return each caption as encoded by an importable function; ``signature`` is its cache signature."""
        if self._store is None:
            return self._made(texts, encode)
        return self._kept(texts, encode, stores.parse_signature(signature), self._store)

    def _made(self, texts: Iterable[str], encode: Encode) -> Iterator[bytes]:
        if self.pool is None:
            if self._store is None:
                return encode(self._pipeline, texts)
            # As processes get them: a pipeline gives nothing before all captions of a call are parsed.
            tasks = in_tasks(texts, characters=_TASK, processes=1)
            return (parse for task in tasks for parse in encode(self._pipeline, task))
        return _in_pool(self.pool, texts, partial(_encoded, encode=encode), _byte_lists.decode)

    def _kept(self, texts: Iterable[str], encode: Encode, signature: str, store: stores.Store) -> Iterator[bytes]:
        stream = iter(texts)
        is_full = False
        while batch := list(islice(stream, _LOOK_UP)):
            known = store.get_parses(signature, batch)
            new = [text for text in dict.fromkeys(batch) if text not in known]
            if new:
                fresh: dict[str, bytes] = {}
                try:
                    fresh.update(zip(new, self._made(new, encode), strict=True))
                finally:  # also where Ctrl-C or an error ends the work: what is parsed is kept
                    if fresh and not is_full:
                        try:
                            store.put_parses(signature, fresh)
                        except stores.StoreFullError as error:  # the work goes on without the store
                            warnings.warn(f"new parses are no longer kept: {error}", stacklevel=1)
                            is_full = True
                known |= fresh
            for text in batch:
                yield known[text]


def _in_pool(
    pool: Pool, texts: Iterable[str], parse: Callable[[list[str]], bytes], decode: Callable[[bytes], list[Parsed]]
) -> Iterator[Parsed]:
    for results in pool.results(parse, in_tasks(texts, characters=_TASK, processes=pool.workers)):
        yield from decode(results)


@dataclass(frozen=True, slots=True)
class Pool:
    """Processes that apply functions; ``ended`` is the error's message where one of them ends unexpectedly."""

    executor: ProcessPoolExecutor
    workers: int
    ended: str

    def results(self, function: Callable[[Argument], Result], arguments: Iterable[Argument], /) -> Iterator[Result]:
        """Yield the function's results in the order of its arguments, which are read a few at a time."""
        stream = iter(arguments)
        waiting: deque[Future[Result]] = deque()
        try:
            while True:
                room = _AHEAD * self.workers - len(waiting)
                waiting.extend(self.executor.submit(function, argument) for argument in islice(stream, room))
                if not waiting:
                    return
                yield waiting.popleft().result()
        except BrokenExecutor as error:
            raise DataError(self.ended) from error


@contextmanager
def _pool(workers: int, ended: str, start: Callable[[], None] | None = None) -> Iterator[Pool]:
    """Give a pool whose processes begin with ``start``; they start with the first task."""
    import multiprocessing  # noqa: PLC0415 (most runs have one process)
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of numpy and grpc
    with ProcessPoolExecutor(workers, context, initializer=start) as executor:
        try:
            yield Pool(executor, workers, ended)
        finally:
            executor.shutdown(cancel_futures=True)


@contextmanager
def spread_over(workers: int) -> Iterator[Spread]:
    """Give an ordered map over ``workers`` processes, started on first use; 1: this process."""
    if workers == 1:
        yield map
        return
    with _pool(workers, _SCORING_ENDED) as pool:
        yield pool.results


def in_tasks(texts: Iterable[str], *, characters: int, processes: int = 1) -> Iterator[list[str]]:
    """Yield captions in lists of up to so many characters (or one caption), in order."""
    # The last lists get shorter, so that all processes end at about one time: a list has at most half of each one's
    # share of what is left (as in guided self-scheduling, Polychronopoulos and Kuck 1987).
    known = length_hint(texts)
    task: list[str] = []
    room, most = characters, _most(known, processes)
    for done, text in enumerate(texts):
        if task and (len(text) > room or len(task) == most):
            yield task
            task = []
            room, most = characters, _most(known - done, processes)
        task.append(text)
        room -= len(text)
    if task:
        yield task


def _most(left: int, processes: int) -> int:
    return max(_FEWEST, left // (2 * processes)) if left > 0 else sys.maxsize


def by_length(texts: Sequence[str], parse: Callable[[list[str]], Iterable[Parsed]]) -> list[Parsed]:
    """Parse captions, the shortest first, and return the results in the captions' own order."""
    order = sorted(range(len(texts)), key=[len(text) for text in texts].__getitem__)
    parsed = dict(zip(order, parse([texts[index] for index in order]), strict=True))
    return [parsed[index] for index in range(len(texts))]


def encoded_parses(pipeline: CaptionPipeline, texts: Iterable[str]) -> Iterator[bytes]:
    """Yield the parse of each caption as stores keep it."""
    return (stores.encode_parse(stores.stored_parse(caption)) for caption in pipeline.captions(texts))


# What follows runs in the processes; each has its one pipeline, or the reason why it could not be loaded.
_loaded: list[CaptionPipeline] = []
_failed: list[DataError] = []


def _load(pipeline: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches all; who started the work ends it
    try:
        _loaded.append(load_pipeline(pipeline))
    except DataError as error:  # raised here, it would only break the pool, and the reason would be lost
        _failed.append(error)
    gc.set_threshold(*RARE)


def _pipeline() -> CaptionPipeline:
    for error in _failed:
        raise error
    return _loaded[0]


def _read(name: str) -> str:
    value: str = getattr(_pipeline(), name)
    return value


def _facts(texts: list[str], *, loose: bool) -> bytes:
    return msgspec.msgpack.encode(by_length(texts, replace(_pipeline(), loose=loose).facts))


def _encoded(texts: list[str], *, encode: Encode) -> bytes:
    return msgspec.msgpack.encode(by_length(texts, partial(encode, _pipeline())))
