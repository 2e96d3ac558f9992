"""Tagging on this machine: the nouns, adjectives and verbs of captions, and no caption twice."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.pipelines import CaptionPipeline, load_pipeline
from spicegraph_scorer.studies.agreement.words import Tagged
from spicegraph_service.engines.local import Packing, Stored
from spicegraph_service.engines.pool import ParsingProcesses, encoded_words, parsing_processes
from spicegraph_service.store import StoreError, open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_words = msgspec.msgpack.Decoder(list[Tagged])


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
        for data in self.source.packed(texts):
            try:
                yield frozenset(_words.decode(data))
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
        source: Packing
        if workers == 1:
            loaded = load_pipeline(pipeline)
            signature, source = loaded.signature, _Here(loaded, lemmas)
        else:
            processes = stack.enter_context(parsing_processes(pipeline, workers))
            signature, source = processes.signature, _There(processes, lemmas)
        if cache is not None:
            store = open_store(cache)
            stack.callback(store.close)
            source = Stored(source, store)
        yield WordSource(signature, source)


def _unit(*, lemmas: bool) -> str:
    return "lemmas" if lemmas else "words"


@dataclass(frozen=True, slots=True)
class _Here:
    """Tags in this process."""

    pipeline: CaptionPipeline
    lemmas: bool

    @property
    def signature(self) -> str:
        return f"{self.pipeline.signature} {_unit(lemmas=self.lemmas)}"

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        return encoded_words(self.pipeline, texts, lemmas=self.lemmas)


@dataclass(frozen=True, slots=True)
class _There:
    """Tags in other processes."""

    processes: ParsingProcesses
    lemmas: bool

    @property
    def signature(self) -> str:
        return f"{self.processes.signature} {_unit(lemmas=self.lemmas)}"

    def packed(self, texts: Iterable[str]) -> Iterator[bytes]:
        return self.processes.packed_words(texts, lemmas=self.lemmas)
