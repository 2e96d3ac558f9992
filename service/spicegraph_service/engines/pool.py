"""Work in several processes of this machine; results come in the order of their arguments, however many processes.

Captions go out in tasks of about equal text; a process parses those of a task sorted by length, so that what goes
through a network together has about one length.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_parser.extract import RARE
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, CaptionPipeline, load_pipeline
from spicegraph_parser.rules import Fact
from spicegraph_service.store.base import encode_parse, stored_parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spicegraph_scorer.studies.bounds import Spread


Argument = TypeVar("Argument")
Result = TypeVar("Result")
Parsed = TypeVar("Parsed")

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
        except BrokenProcessPool as error:
            raise DataError(self.ended) from error


@contextmanager
def _pool(workers: int, ended: str, start: Callable[[], None] | None = None) -> Iterator[Pool]:
    """Give a pool whose processes begin with ``start``; they start with the first task."""
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
        return self._parsed(texts, _packed, _byte_lists.decode)

    def packed_words(self, texts: Iterable[str], *, lemmas: bool) -> Iterator[bytes]:
        """Return the tagged words of each caption as the store keeps them, in order."""
        return self._parsed(texts, partial(_packed_words, lemmas=lemmas), _byte_lists.decode)

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


def encoded_words(pipeline: CaptionPipeline, texts: Iterable[str], *, lemmas: bool) -> Iterator[bytes]:
    """Yield the tagged words of each caption as stores keep them: MessagePack, and equal words give equal bytes."""
    # Imported here: the study of words brings scipy's statistics, half a second that no other command should take.
    from spicegraph_scorer.studies.agreement.words import tagged_words  # noqa: PLC0415

    return (msgspec.msgpack.encode(sorted(words)) for words in tagged_words(pipeline.parse(texts), lemmas=lemmas))


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


def _packed(texts: list[str]) -> bytes:
    def packed(texts: list[str]) -> Iterator[bytes]:
        return (encode_parse(stored_parse(caption)) for caption in _pipeline().captions(texts))

    return msgspec.msgpack.encode(by_length(texts, packed))


def _packed_words(texts: list[str], *, lemmas: bool) -> bytes:
    return msgspec.msgpack.encode(by_length(texts, partial(encoded_words, _pipeline(), lemmas=lemmas)))
