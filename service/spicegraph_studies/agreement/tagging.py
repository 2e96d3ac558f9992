"""The tagged words of captions: parsed in one process or several, and kept from run to run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_service.kit import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.pipelines import CaptionPipeline
    from spicegraph_parser.spice.parse import Caption
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_service.kit import ParseSource

WORD_CLASSES: Mapping[str, tuple[str, ...]] = {
    "noun": ("NN", "NNS", "NNP", "NNPS"),
    "adjective": ("JJ", "JJR", "JJS"),
    "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"),
}
"""The word classes and their Penn Treebank tags."""

_CLASS_OF = {tag: name for name, tags in WORD_CLASSES.items() for tag in tags}


class Tagged(NamedTuple):
    """A word in lower case, and its class."""

    word: str
    kind: str


def tagged_words(captions: Iterable[Caption], *, lemmas: bool = False) -> Iterator[frozenset[Tagged]]:
    """Yield the nouns, adjectives and verbs of each parsed caption, once each; with ``lemmas``, ``dogs`` is ``dog``."""
    for caption in captions:
        yield frozenset(
            Tagged(word, _CLASS_OF[tag])
            for sentence in caption.sentences
            for form, tag, lemma in zip(sentence.forms, sentence.tags, sentence.lemmas, strict=True)
            if tag in _CLASS_OF and (word := lemma if lemmas else form.lower()).isalpha()
        )


def encoded_words(pipeline: CaptionPipeline, texts: Iterable[str], *, lemmas: bool) -> Iterator[bytes]:
    """Yield the tagged words of each caption as stores keep them: MessagePack, and equal words give equal bytes."""
    return (msgspec.msgpack.encode(sorted(words)) for words in tagged_words(pipeline.parse(texts), lemmas=lemmas))


def words_of_images(
    images: Mapping[ItemId, Sequence[str]],
    source: ParseSource,
    *,
    lemmas: bool,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[ItemId, list[frozenset[Tagged]]]:
    """Return the words of every caption of every image; equal captions are tagged once.

    Raises:
        StoreError: the cache holds something else.
    """
    texts = list(dict.fromkeys(text for captions in images.values() for text in captions))
    decoder = msgspec.msgpack.Decoder(list[Tagged])
    kept_as = f"{source.signature} {'lemmas' if lemmas else 'words'}"
    words: dict[str, frozenset[Tagged]] = {}
    for text, data in zip(texts, source.encoded(texts, partial(encoded_words, lemmas=lemmas), kept_as), strict=True):
        try:
            words[text] = frozenset(decoder.decode(data))
        except msgspec.DecodeError as error:
            raise StoreError(
                f"the cache contains an entry that is not a list of words ({error}); use another cache"
            ) from error
        if progress is not None:
            progress("tagging captions", len(words), len(texts))
    return {image: [words[text] for text in captions] for image, captions in images.items()}


def held_words(caption: frozenset[Tagged]) -> frozenset[str]:
    """Return the words of a caption, whatever their class there."""
    return frozenset(word for word, _ in caption)


def said_words(images: Mapping[ItemId, Sequence[frozenset[Tagged]]]) -> dict[ItemId, dict[str, float]]:
    """Return for each image the share of a system's captions that hold a word."""
    shares: dict[ItemId, dict[str, float]] = {}
    for image, captions in images.items():
        row = shares.setdefault(image, {})
        for caption in captions:
            for word in held_words(caption):
                row[word] = row.get(word, 0.0) + 1 / len(captions)
    return shares
