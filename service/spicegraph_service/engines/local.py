"""Parsing and tagging on this machine: in one process or several, and no caption twice.

The result does not depend on the number of processes, and comes in the order of the captions.
"""

from __future__ import annotations

import functools
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import msgspec

from spicegraph_parser.pipelines import CaptionPipeline, load_pipeline
from spicegraph_service.engines.pool import encoded_words, parsing_processes
from spicegraph_service.store import Store, StoreError, StoreFullError, open_store, parse_signature
from spicegraph_service.store.base import encode_parse, stored_parse, unpack_parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.studies.agreement.words import Tagged
    from spicegraph_service.store.base import StoredParse


_LOOK_UP: Final = 8192
"""Captions that are looked up, parsed and stored at a time: what a crash loses of the work."""


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
class WordSource:
    """Turns captions into their tagged words, in order; ``signature`` names the pipeline."""

    signature: str
    source: Packing

    def words(self, texts: Iterable[str]) -> Iterator[frozenset[Tagged]]:
        """Return the nouns, adjectives and verbs of each caption.

        Raises:
            StoreError: the cache holds something else.
        """
        # Imported here: the study of words brings scipy's statistics, half a second that no other command should take.
        from spicegraph_scorer.studies.agreement.words import Tagged  # noqa: PLC0415

        decoder = msgspec.msgpack.Decoder(list[Tagged])
        for data in self.source.packed(texts):
            try:
                yield frozenset(decoder.decode(data))
            except msgspec.DecodeError as error:
                raise StoreError(
                    f"the cache contains an entry that is not a list of words ({error}); use another cache"
                ) from error


@contextmanager
def local_words(
    pipeline: str, *, lemmas: bool = False, workers: int = 1, cache: str | None = None
) -> Iterator[WordSource]:
    """Give a source of tagged words.

    Args:
        pipeline: name of the spaCy pipeline.
        lemmas: count ``dogs`` as ``dog``.
        workers: processes that tag; 1 is this one.
        cache: where words are kept from run to run: an SQLite file, or ``redis://HOST``; ``None``: nowhere.
            It may be one that keeps parses.

    Raises:
        DataError: the pipeline is not installed.
        StoreError: the cache cannot be opened.
    """
    with ExitStack() as stack:
        if workers == 1:
            loaded = load_pipeline(pipeline)
            source = _Tagging(loaded.signature, partial(encoded_words, loaded, lemmas=lemmas), lemmas)
        else:
            processes = stack.enter_context(parsing_processes(pipeline, workers))
            source = _Tagging(processes.signature, partial(processes.packed_words, lemmas=lemmas), lemmas)
        if cache is None:
            yield WordSource(source.pipeline, source)
            return
        store = open_store(cache)
        stack.callback(store.close)
        yield WordSource(source.pipeline, Stored(source, store))


@dataclass(frozen=True, slots=True)
class _Tagging:
    """Tags, in this process or in others."""

    pipeline: str
    tag: Callable[[Iterable[str]], Iterator[bytes]]
    lemmas: bool

    @property
    def signature(self) -> str:
        return f"{self.pipeline} {'lemmas' if self.lemmas else 'words'}"

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        return self.tag(texts)
