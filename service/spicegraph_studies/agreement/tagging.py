"""The tagged words of captions: parsed in one process or several, and kept from run to run."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.pipelines import load_pipeline
from spicegraph_service.engines.local import Stored, parsing_processes
from spicegraph_service.store import StoreError, open_store
from spicegraph_studies.agreement.words import Tagged, tagged_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from spicegraph_parser.pipelines import CaptionPipeline
    from spicegraph_service.engines.local import Packing, ParsingProcesses


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
            source = _Tagging(processes.signature, partial(_in_processes, processes, lemmas=lemmas), lemmas)
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


def encoded_words(pipeline: CaptionPipeline, texts: Iterable[str], *, lemmas: bool) -> Iterator[bytes]:
    """Yield the tagged words of each caption as stores keep them: MessagePack, and equal words give equal bytes."""
    return (msgspec.msgpack.encode(sorted(words)) for words in tagged_words(pipeline.parse(texts), lemmas=lemmas))


def _in_processes(processes: ParsingProcesses, texts: Iterable[str], *, lemmas: bool) -> Iterator[bytes]:
    return processes.encoded(texts, partial(encoded_words, lemmas=lemmas))
