"""How many of an image's captions hold a word."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.parse import Caption
    from spicegraph_scorer.core.items import ItemId

__all__ = ["WORD_CLASSES", "Tagged", "Vocabulary", "WordTable", "count_words", "held_words", "tagged_words"]

WORD_CLASSES: Mapping[str, tuple[str, ...]] = {
    "noun": ("NN", "NNS", "NNP", "NNPS"),
    "adjective": ("JJ", "JJR", "JJS"),
    "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"),
}
"""The word classes and their Penn Treebank tags."""

_CLASS_OF = {tag: name for name, tags in WORD_CLASSES.items() for tag in tags}
_FEWEST = 2

Counts = np.ndarray[tuple[int, int], np.dtype[np.int16]]


class Tagged(NamedTuple):
    """A word in lower case, and its class."""

    word: str
    kind: str


def tagged_words(captions: Iterable[Caption], *, lemmas: bool = False) -> Iterator[frozenset[Tagged]]:
    """Yield the nouns, adjectives and verbs of each parsed caption, once each.

    Args:
        captions: from :meth:`spicegraph_parser.pipelines.CaptionPipeline.parse`.
        lemmas: count ``dogs`` as ``dog``.
    """
    for caption in captions:
        yield frozenset(
            Tagged(word, _CLASS_OF[tag])
            for sentence in caption.sentences
            for form, tag, lemma in zip(sentence.forms, sentence.tags, sentence.lemmas, strict=True)
            if tag in _CLASS_OF and (word := lemma if lemmas else form.lower()).isalpha()
        )


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words that are looked at, each with the class that it has most often, most frequent words first."""

    classes: Mapping[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """The words."""
        return tuple(self.classes)


@dataclass(frozen=True, slots=True)
class WordTable:
    """Images by words: how many of the image's ``people`` captions hold the word.

    ``left_out`` counts images that have fewer captions; of those with more, the first are used.
    """

    vocabulary: Vocabulary
    images: tuple[ItemId, ...]
    people: int
    counts: Counts
    left_out: int

    def histogram(self, word: int) -> list[int]:
        """Return how many images have the word at a place of the vocabulary in 0, 1 ... captions."""
        return [int(count) for count in np.bincount(self.counts[:, word], minlength=self.people + 1)]


def count_words(
    images: Mapping[ItemId, Sequence[frozenset[Tagged]]], *, people: int | None = None, words: int = 1000
) -> WordTable:
    """Count the most frequent words of a set of captioned images.

    Args:
        images: the words of each caption of each image, from :func:`tagged_words`.
        people: captions that are used of each image; ``None``: as many as every image has.
        words: size of the vocabulary.

    Raises:
        InputError: fewer than two captions an image would be used, no image has as many, or no word is found.
    """
    fewest = min((len(captions) for captions in images.values()), default=0)
    used = fewest if people is None else people
    if used < _FEWEST:
        raise InputError(
            f"agreement needs at least {_FEWEST} captions an image: "
            + (f"got {used}" if people is not None else f"some image has {used}; say how many with --people")
        )
    kept = {image: captions[:used] for image, captions in images.items() if len(captions) >= used}
    if not kept:
        raise InputError(f"no image has {counted(used, 'caption')}")
    vocabulary = _vocabulary((caption for captions in kept.values() for caption in captions), words)
    place = {word: index for index, word in enumerate(vocabulary.words)}
    counts: Counts = np.zeros((len(kept), len(place)), dtype=np.int16)
    for row, captions in enumerate(kept.values()):
        for caption in captions:
            for word in held_words(caption):
                if word in place:
                    counts[row, place[word]] += 1
    return WordTable(vocabulary, tuple(kept), used, counts, len(images) - len(kept))


def held_words(caption: frozenset[Tagged]) -> frozenset[str]:
    """Return the words of a caption, whatever their class there."""
    return frozenset(word for word, _ in caption)


def _vocabulary(captions: Iterable[frozenset[Tagged]], size: int) -> Vocabulary:
    if size < 1:
        raise InputError(f"words: at least 1 is needed, got {size}")
    kinds: dict[str, Counter[str]] = {}
    for caption in captions:
        for word, kind in caption:
            kinds.setdefault(word, Counter())[kind] += 1
    if not kinds:
        raise InputError("the captions hold no noun, adjective or verb")
    ordered = sorted(kinds, key=lambda word: (-kinds[word].total(), word))
    return Vocabulary({word: _most_common(kinds[word]) for word in islice(ordered, size)})


def _most_common(counts: Counter[str]) -> str:
    return max(WORD_CLASSES, key=lambda kind: counts[kind])
