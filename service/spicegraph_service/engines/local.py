"""Parsing and tagging on this machine: in one process or several, and no caption twice.

The result does not depend on the number of processes, and comes in the order of the captions. Captions go out in tasks
of about equal text; a process parses those of a task sorted by length, so that what goes through a network together has
about one length.
"""

from __future__ import annotations

import functools
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
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, runtime_checkable

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_parser.extract import RARE
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, CaptionPipeline, load_pipeline
from spicegraph_parser.rules import Fact
from spicegraph_service.store import (
    Store,
    StoreError,
    StoreFullError,
    encode_parse,
    open_store,
    parse_signature,
    stored_parse,
    unpack_parse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future, ProcessPoolExecutor

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_service.store import StoredParse

_LOOK_UP: Final = 8192
"""Captions that are looked up, parsed and stored at a time: what a crash loses of the work."""

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Parsed = TypeVar("Parsed")


class Spread(Protocol):
    """What applies a function to many arguments and gives the results in order: ``map``, or that of processes."""

    def __call__(self, function: Callable[[Argument], Result], arguments: Iterable[Argument], /) -> Iterator[Result]:
        """Return the results in the order of the arguments."""
        ...


class Encode(Protocol):
    """Makes one byte string of each caption, with a pipeline."""

    def __call__(self, pipeline: CaptionPipeline, texts: Iterable[str], /) -> Iterator[bytes]:
        """Return the byte strings in the order of the captions."""
        ...


_fact_lists = msgspec.msgpack.Decoder(list[tuple[Fact, ...]])
_byte_lists = msgspec.msgpack.Decoder(list[bytes])

_TASK: Final = 24_000
"""Characters that a process gets at a time, some 450 captions: 0.15 s."""

_FEWEST: Final = 64
"""Captions of the shortest tasks: shorter ones cost more than the time that they save."""

_AHEAD: Final = 4
"""Tasks for each process that are handed out while earlier results are used: no process is idle, memory is bounded."""

_SCORING_ENDED: Final = "a scoring process ended unexpectedly (killed, or out of memory)"
_PARSING_ENDED: Final = (
    "a parsing process ended unexpectedly (killed, or out of memory); with a cache, earlier parses are kept"
)


@contextmanager
def local_facts(
    pipeline: str, *, workers: int = 1, cache: str | None = None, loose: bool = True
) -> Iterator[FactSource]:
    """Give a source of facts.

    Args:
        pipeline: name of the spaCy pipeline.
        workers: processes that parse; 1 is this one.
        cache: where parses are kept from run to run: an SQLite file, or ``redis://HOST``; ``None``: nowhere.
            The server's store is such a place too.
        loose: facts come with those of loose words, which SPICE-G needs; without, they may lack.

    The pipeline is loaded, and processes are started, when the first caption is to be parsed.

    Raises:
        DataError: the pipeline is not installed.
        StoreError: the cache cannot be opened.
    """
    with ExitStack() as stack:
        store = None
        if cache is not None:
            store = open_store(cache)
            stack.callback(store.close)

        @functools.cache
        def source() -> PackedSource:
            if workers == 1:
                parses: PackedSource = _Here(replace(load_pipeline(pipeline), loose=loose))
            else:
                parses = stack.enter_context(parsing_processes(pipeline, workers, loose=loose))
            return parses if store is None else Stored(parses, store)

        yield _Lazy(source)


class Packing(Protocol):
    """Turns captions into what a store keeps of them, in order."""

    @property
    def signature(self) -> str:
        """What the result depends on beside the text: name and version of the pipeline."""
        ...

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        """Return what the store keeps of each caption."""
        ...


@runtime_checkable
class PackedSource(Packing, Protocol):
    """Turns captions into facts, or into parses as the store keeps them, in order."""

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption."""
        ...


@dataclass(frozen=True, slots=True)
class _Lazy:
    """What the scorer asks for. Nothing is loaded before it asks."""

    source: Callable[[], PackedSource]

    @property
    def signature(self) -> str:
        return self.source().signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return self.source().facts(texts)

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        return self.source().packed(texts)


@dataclass(frozen=True, slots=True)
class _Here:
    """Parses in this process."""

    pipeline: CaptionPipeline

    @property
    def signature(self) -> str:
        return self.pipeline.signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return self.pipeline.facts(texts)

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        return (encode_parse(stored_parse(caption)) for caption in self.pipeline.captions(texts))


@dataclass(frozen=True, slots=True)
class Stored:
    """Looks into a store before it parses, and keeps what is new."""

    source: Packing
    store: Store

    @property
    def signature(self) -> str:
        """That of the source."""
        return self.source.signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, where the store keeps parses."""
        return (parse.facts for parse in unpacked(self.packed(texts)))

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        """Return what the store keeps of each caption."""
        stream = iter(texts)
        signature = parse_signature(self.signature)
        is_full = False
        while batch := list(islice(stream, _LOOK_UP)):
            known = self.store.get_parses(signature, batch)
            new = [text for text in dict.fromkeys(batch) if text not in known]
            if new:
                fresh = dict(zip(new, self.source.packed(new), strict=True))
                if not is_full:
                    is_full = self._is_full(signature, fresh)
                known |= fresh
            for text in batch:
                yield known[text]

    def _is_full(self, signature: str, parses: Mapping[str, bytes]) -> bool:
        """Keep parses, and say whether there was no room: the work goes on without the store then."""
        try:
            self.store.put_parses(signature, parses)
        except StoreFullError as error:
            warnings.warn(f"new parses are no longer kept: {error}", stacklevel=2)
            return True
        return False


def unpacked(parses: Iterable[bytes]) -> Iterator[StoredParse]:
    """Yield the parses that a source has packed.

    Raises:
        StoreError: the source's store holds something else.
    """
    for data in parses:
        try:
            yield unpack_parse(data)
        except msgspec.DecodeError as error:
            raise StoreError(f"the cache contains an entry that is not a parse ({error}); use another cache") from error


@dataclass(frozen=True, slots=True)
class Pool:
    """Processes that apply functions; ``ended`` is the error's message where one of them ends unexpectedly."""

    executor: ProcessPoolExecutor
    workers: int
    ended: str

    def results(self, function: Callable[[Argument], Result], arguments: Iterable[Argument], /) -> Iterator[Result]:
        """Yield the function's results in the order of its arguments, which are read a few at a time.

        Raises:
            DataError: a process ended unexpectedly.
        """
        stream = iter(arguments)
        waiting: deque[Future[Result]] = deque()
        with self.watched():
            while True:
                room = _AHEAD * self.workers - len(waiting)
                waiting.extend(self.executor.submit(function, argument) for argument in islice(stream, room))
                if not waiting:
                    return
                yield waiting.popleft().result()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Say in an error of ours that a process ended unexpectedly."""
        try:
            yield
        except BrokenExecutor as error:
            raise DataError(self.ended) from error


@contextmanager
def _pool(workers: int, ended: str, start: Callable[[], None] | None = None) -> Iterator[Pool]:
    """Give a pool whose processes begin with ``start``; they start with the first task."""
    import multiprocessing  # noqa: PLC0415 (most runs have one process)
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of numpy and grpc
    with ProcessPoolExecutor(workers, context, initializer=start) as executor:
        pool = Pool(executor, workers, ended)
        try:
            with pool.watched():
                yield pool
        finally:
            executor.shutdown(cancel_futures=True)


@contextmanager
def spread_over(workers: int) -> Iterator[Spread]:
    """Give what applies a function to many arguments in ``workers`` processes; 1 is this process.

    Processes are started when the first argument comes.

    Raises:
        DataError: a process ended unexpectedly.
    """
    if workers == 1:
        yield map
        return
    with _pool(workers, _SCORING_ENDED) as pool:
        yield pool.results


@contextmanager
def parsing_processes(pipeline: str, workers: int, *, loose: bool = True) -> Iterator[ParsingProcesses]:
    """Give ``workers`` processes, each with the pipeline loaded; they start with the first captions.

    Args:
        pipeline: name of the pipeline.
        workers: how many.
        loose: facts come with those of loose words.

    Raises:
        DataError: the pipeline is not installed, or a process was killed.
    """
    with _pool(workers, _PARSING_ENDED, partial(_load, pipeline)) as pool:
        yield ParsingProcesses(pipeline, pool, loose=loose)


class ParsingProcesses:
    """Turns captions into facts, or into parses as the store keeps them, in several processes."""

    def __init__(self, pipeline: str, pool: Pool, *, loose: bool) -> None:
        self._pipeline = pipeline
        self._loose = loose
        self.pool = pool

    @cached_property
    def signature(self) -> str:
        """Name and version of the pipeline; one that spaCy loads is asked in a process."""
        if self._pipeline == DEFAULT_PIPELINE:
            return load_pipeline(self._pipeline).signature
        return self.pool.executor.submit(_signature).result()

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        return self._parsed(texts, partial(_facts, loose=self._loose), _fact_lists.decode)

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        """Return what the store keeps of each caption, in order."""
        return self.encoded(texts, encoded_parses)

    def encoded(self, texts: Iterable[str], encode: Encode) -> Iterator[bytes]:
        """Return what a function, which other processes can import, makes of each caption, in order."""
        return self._parsed(texts, partial(_encoded, encode=encode), _byte_lists.decode)

    def _parsed(
        self, texts: Iterable[str], parse: Callable[[list[str]], bytes], decode: Callable[[bytes], list[Parsed]]
    ) -> Iterator[Parsed]:
        tasks = in_tasks(texts, characters=_TASK, processes=self.pool.workers)
        for results in self.pool.results(parse, tasks):
            yield from decode(results)


def in_tasks(texts: Iterable[str], *, characters: int, processes: int = 1) -> Iterator[list[str]]:
    """Yield captions in lists of up to so many characters (or one caption), in order.

    Where the number of captions is known, the last lists get shorter and shorter, so that all processes end at about
    one time: a list has at most half of each one's share of what is left (as in guided self-scheduling,
    Polychronopoulos and Kuck 1987).

    >>> list(in_tasks(iter(["a dog runs", "a cat", "a bus"]), characters=12))
    [['a dog runs'], ['a cat', 'a bus']]
    """
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
    """Parse captions, the shortest first, and return the results in the captions' own order.

    >>> by_length(["three", "one", "four"], lambda texts: [f"{at} {text}" for at, text in enumerate(texts)])
    ['2 three', '0 one', '1 four']
    """
    order = sorted(range(len(texts)), key=[len(text) for text in texts].__getitem__)
    found = dict(zip(order, parse([texts[index] for index in order]), strict=True))
    return [found[index] for index in range(len(texts))]


def encoded_parses(pipeline: CaptionPipeline, texts: Iterable[str]) -> Iterator[bytes]:
    """Yield the parse of each caption as stores keep it."""
    return (encode_parse(stored_parse(caption)) for caption in pipeline.captions(texts))


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


def _signature() -> str:
    return _pipeline().signature


def _facts(texts: list[str], *, loose: bool) -> bytes:
    return msgspec.msgpack.encode(by_length(texts, replace(_pipeline(), loose=loose).facts))


def _encoded(texts: list[str], *, encode: Encode) -> bytes:
    return msgspec.msgpack.encode(by_length(texts, partial(encode, _pipeline())))
