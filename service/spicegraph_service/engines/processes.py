"""Parsing in several processes of this machine.

Captions go out in their order, in tasks of about equal text; a process parses those of a task sorted by length, so that
what goes through a network together has about one length. The results come back in the captions' order.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_parser.extract import RARE
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, CaptionPipeline, load_pipeline
from spicegraph_parser.rules import Fact
from spicegraph_service.store.parses import encode_parse, stored_parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

Parsed = TypeVar("Parsed")

_fact_lists = msgspec.msgpack.Decoder(list[tuple[Fact, ...]])
_byte_lists = msgspec.msgpack.Decoder(list[bytes])

_TASK: Final = 24_000
"""Characters that a process gets at a time, some 450 captions: 0.15 s."""

_FEWEST: Final = 64
"""Captions of the shortest tasks: shorter ones cost more than the time that they save."""

_AHEAD: Final = 4
"""Tasks for each process that are handed out while the results of earlier ones are used."""


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
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of numpy and grpc
    with ProcessPoolExecutor(workers, context, initializer=_load, initargs=(pipeline,)) as executor:
        try:
            yield ParsingProcesses(pipeline, executor, loose=loose, workers=workers)
        except BrokenProcessPool as error:
            raise _process_ended() from error
        finally:
            executor.shutdown(cancel_futures=True)


class ParsingProcesses:
    """Turns captions into facts, or into parses as the store keeps them, in several processes."""

    def __init__(self, pipeline: str, executor: ProcessPoolExecutor, *, loose: bool, workers: int) -> None:
        self._pipeline = pipeline
        self._loose = loose
        self._workers = workers
        self.executor = executor

    @cached_property
    def signature(self) -> str:
        """Name and version of the pipeline; one that spaCy loads is asked in a process."""
        if self._pipeline == DEFAULT_PIPELINE:
            return load_pipeline(self._pipeline).signature
        return self.executor.submit(_signature).result()

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
        ahead = _AHEAD * self._workers
        tasks = in_tasks(texts, characters=_TASK, processes=self._workers)
        waiting: deque[Future[bytes]] = deque()
        try:
            while True:
                waiting.extend(self.executor.submit(parse, task) for task in islice(tasks, ahead - len(waiting)))
                if not waiting:
                    return
                yield from decode(waiting.popleft().result())
        except BrokenProcessPool as error:
            raise _process_ended() from error


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


def _process_ended() -> DataError:
    return DataError(
        "a parsing process ended unexpectedly (killed, or out of memory); with a cache, earlier parses are kept"
    )


# What follows runs in the processes; each holds its one pipeline, or why it has none.
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
    # Imported here: the study of words brings scipy's statistics, half a second that no other command should take.
    from spicegraph_scorer.studies.agreement.words import tagged_words  # noqa: PLC0415
    from spicegraph_service.store.words import encode_words  # noqa: PLC0415

    def packed(texts: list[str]) -> Iterator[bytes]:
        return map(encode_words, tagged_words(_pipeline().parse(texts), lemmas=lemmas))

    return msgspec.msgpack.encode(by_length(texts, packed))
