"""The tagged words of captions: parsed in one process or several, and kept from run to run."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from spicegraph_service.kit import StoreError, local_facts
from spicegraph_studies.agreement.words import Tagged, tagged_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_parser.pipelines import CaptionPipeline
    from spicegraph_service.kit import ParseSource


@dataclass(frozen=True, slots=True)
class WordSource:
    """Turns captions into their tagged words, in order; with ``lemmas``, ``dogs`` count as ``dog``."""

    source: ParseSource
    lemmas: bool

    @property
    def signature(self) -> str:
        """Name and version of the pipeline."""
        return self.source.signature

    def words(self, texts: Iterable[str]) -> Iterator[frozenset[Tagged]]:
        """Return the nouns, adjectives and verbs of each caption."""
        decoder = msgspec.msgpack.Decoder(list[Tagged])
        kept_as = f"{self.signature} {'lemmas' if self.lemmas else 'words'}"
        for data in self.source.encoded(texts, partial(encoded_words, lemmas=self.lemmas), kept_as):
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
    """Give a source of tagged words."""
    with local_facts(pipeline, workers=workers, cache=cache) as source:
        yield WordSource(source, lemmas)


def encoded_words(pipeline: CaptionPipeline, texts: Iterable[str], *, lemmas: bool) -> Iterator[bytes]:
    """Yield the tagged words of each caption as stores keep them: MessagePack, and equal words give equal bytes."""
    return (msgspec.msgpack.encode(sorted(words)) for words in tagged_words(pipeline.parse(texts), lemmas=lemmas))
