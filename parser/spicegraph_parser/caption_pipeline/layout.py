"""How the words of several sentences stand in the network's arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the words of sentences are ordered inside the network: all first words, then all second words, and so on."""

    # Sentences stand longest first, so that the sentences that have a word at a step are always the first ones.
    lengths: Integers  # (sentences,) words
    sentence: Integers  # (words,) the number of each word's sentence
    step: Integers  # (words,) the word's place in its sentence
    place: Integers  # (words,) where each word stands sentence after sentence
    back: Integers  # (words,) the word of the same sentence that the backward direction reads at the same step
    steps: tuple[int, ...]  # for each step, how many sentences have a word for it
    padded: Integers  # (sentences, n) the words of each sentence, then any word
    padding: tuple[Integers, Integers]  # sentences and steps without a word

    @classmethod
    def of(cls, lengths: Integers) -> Self:
        """Lay out sentences of the given lengths, longest first."""
        is_word = np.arange(lengths[0]) < lengths[:, None]
        step, sentence = np.nonzero(is_word.T)
        steps = is_word.sum(axis=0)
        firsts = np.cumsum(steps) - steps
        positions = (np.cumsum(lengths) - lengths)[sentence] + step
        back = firsts[lengths[sentence] - 1 - step] + sentence
        padded = np.where(is_word, firsts + np.arange(len(lengths))[:, None], 0)
        empty_sentence, empty_step = np.nonzero(~is_word)
        return cls(
            lengths, sentence, step, positions, back, tuple(steps.tolist()), padded, (empty_sentence, empty_step)
        )

    def words_of(self, sentences: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Return the words of sentences, one sentence after the other, and where they stand in (sentences, n)."""
        is_word = np.arange(self.padded.shape[1]) < self.lengths[sentences, None]
        return self.padded[sentences][is_word], is_word

    def part(self, sentences: Integers, steps: Integers) -> LayoutPart:
        """Lay out some of the sentences anew, longest first as here, each as often as it is named with a word of it."""
        laid_out = type(self).of(self.lengths[sentences])
        return LayoutPart(laid_out, steps, self.padded[sentences[laid_out.sentence], laid_out.step])


class LayoutPart(NamedTuple):
    """Some sentences of a layout, each with one of its words."""

    layout: Layout  # how their words are ordered
    steps: Integers  # (sentences,) the place of each one's word in it
    source: Integers  # (words,) where each word stands in the whole

    @property
    def words(self) -> Integers:
        """Where the sentences' words stand."""
        words: Integers = self.layout.padded[np.arange(len(self.steps)), self.steps]
        return words

    def way(self, direction: int) -> Way:
        """Return the way from each sentence's word to its end (0) or to its beginning (1)."""
        lengths = self.steps + 1 if direction else self.layout.lengths - self.steps
        order = np.argsort(-lengths, kind="stable")
        laid_out = Layout.of(lengths[order])
        sentence = order[laid_out.sentence]
        sign = -1 if direction else 1
        words = self.layout.padded[sentence, self.steps[sentence] + sign * laid_out.step]
        before = self.steps[order] - sign
        is_first = (before < 0) | (before == self.layout.lengths[order])
        return Way(order, words, laid_out.steps, self.layout.padded[order, before * ~is_first], is_first)


class Way(NamedTuple):
    """A way through sentences in one direction, the longest first, step after step."""

    order: Integers  # (sentences,) their numbers, the longest way first
    words: Integers  # (words on the way,) where they stand in the layout
    steps: tuple[int, ...]  # for each step, how many sentences have a word for it
    before: Integers  # (sentences,) the word that is read before the way begins; any word where there is none
    is_first: NDArray[np.bool_]  # (sentences,) whether there is none


def ranges(starts: Integers, lengths: Integers) -> Integers:
    """Return the numbers from each start on, as many as its length says, one range behind the other."""
    before = lengths.cumsum() - lengths
    numbers: Integers = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return numbers
