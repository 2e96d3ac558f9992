"""Parsing on this machine: in one process or several, and no caption twice.

The result does not depend on the number of processes, and comes in the order of the captions.
"""

from __future__ import annotations

import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_parser.pipelines import CaptionPipeline, load_pipeline
from spicegraph_service.store import Store, StoreError, open_store, parse_signature
from spicegraph_service.store.parses import StoredParse, decode_parse, encode_parse, stored_parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.spice.metric import FactSource

__all__ = ["local_facts"]

_TASK: Final = 1024
"""Captions that a process gets at a time."""

_LOOK_UP: Final = 8192
"""Captions that are looked up, parsed and stored at a time: what a crash loses of the work."""


@contextmanager
def local_facts(pipeline: str, *, workers: int = 1, cache: str | None = None) -> Iterator[FactSource]:
    """Give a source of facts.

    Args:
        pipeline: name of the spaCy pipeline.
        workers: processes that parse; 1 is this one.
        cache: where parses are kept from run to run: an SQLite file, or ``redis://HOST``; ``None``: nowhere.
            The server's store is such a place too.

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
        def source() -> _Source:
            if workers == 1:
                parses: _Source = _Here(load_pipeline(pipeline))
            else:
                parses = stack.enter_context(_processes(pipeline, workers))
            return parses if store is None else _Stored(parses, store)

        yield _Facts(source)


class _Source(Protocol):
    """Turns captions into parses, in order."""

    @property
    def signature(self) -> str: ...

    def parses(self, texts: Iterable[str]) -> Iterator[StoredParse]: ...


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the scorer asks for: facts alone. Nothing is loaded before it asks."""

    source: Callable[[], _Source]

    @property
    def signature(self) -> str:
        return self.source().signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return (parse.facts for parse in self.source().parses(texts))


@dataclass(frozen=True, slots=True)
class _Here:
    """Parses in this process."""

    pipeline: CaptionPipeline

    @property
    def signature(self) -> str:
        return self.pipeline.signature

    def parses(self, texts: Iterable[str]) -> Iterator[StoredParse]:
        return map(stored_parse, self.pipeline.captions(texts))


@dataclass(frozen=True, slots=True)
class _Stored:
    """Looks into a store before it parses, and keeps what is new."""

    source: _Source
    store: Store

    @property
    def signature(self) -> str:
        return self.source.signature

    def parses(self, texts: Iterable[str]) -> Iterator[StoredParse]:
        stream = iter(texts)
        signature = parse_signature(self.signature)
        while batch := list(islice(stream, _LOOK_UP)):
            found = self.store.get_parses(signature, batch)
            try:
                known = {text: decode_parse(data) for text, data in found.items()}
            except msgspec.DecodeError as error:
                raise StoreError(f"the cache holds something that is no parse ({error}); name another") from error
            new = [text for text in dict.fromkeys(batch) if text not in known]
            if new:
                fresh = dict(zip(new, self.source.parses(new), strict=True))
                self.store.put_parses(signature, {text: encode_parse(parse) for text, parse in fresh.items()})
                known |= fresh
            for text in batch:
                yield known[text]


@dataclass(frozen=True, slots=True)
class _Processes:
    """Parses in several processes."""

    executor: ProcessPoolExecutor
    signature: str

    def parses(self, texts: Iterable[str]) -> Iterator[StoredParse]:
        wanted = list(texts)
        tasks = [wanted[start : start + _TASK] for start in range(0, len(wanted), _TASK)]
        try:
            for data in self.executor.map(_parse, tasks):
                yield from _decoder.decode(data)
        except BrokenProcessPool as error:
            raise _process_ended() from error


_decoder = msgspec.msgpack.Decoder(list[StoredParse])


@contextmanager
def _processes(pipeline: str, workers: int) -> Iterator[_Processes]:
    """Give ``workers`` processes, each with the pipeline loaded."""
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of numpy and grpc
    with ProcessPoolExecutor(workers, context, initializer=_load, initargs=(pipeline,)) as executor:
        try:
            yield _Processes(executor, executor.submit(_signature).result())
        except BrokenProcessPool as error:
            raise _process_ended() from error
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _process_ended() -> DataError:
    return DataError(
        "a parsing process ended unexpectedly (killed, or out of memory); with a cache, earlier parses are kept"
    )


# What follows runs in the processes; each holds its one pipeline, or why it has none.
_loaded: list[CaptionPipeline] = []
_failed: list[DataError] = []


def _load(pipeline: str) -> None:
    try:
        _loaded.append(load_pipeline(pipeline))
    except DataError as error:  # raised here, it would only break the pool, and the reason would be lost
        _failed.append(error)


def _signature() -> str:
    for error in _failed:
        raise error
    return _loaded[0].signature


def _parse(texts: Sequence[str]) -> bytes:
    return msgspec.msgpack.encode([stored_parse(caption) for caption in _loaded[0].captions(texts)])
