"""Sentences with labels or probabilities as batches of numbers, for training the scene parser's network."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from scene_data import Labelled
from spicegraph_parser.caption_pipeline.encoder import Vocabulary
from spicegraph_scenes.network import OBJECT, PAIR_LABELS, WHOLE, Stated
from spicegraph_scenes.relations import stems

IGNORED = -100  # a class that is not counted


@dataclass(frozen=True, slots=True)
class Taught:
    """A sentence with probabilities in place of labels.

    Attributes:
        words: its words.
        pairs: (n, n, labels) of pairs of words.
        objects: (n,) of being an object.
        ends: subject and object of the pairs that may be relations.
        relations: (ends, relations) how likely each relation is; sums are those pairs' probabilities of having one.
        tags: numbers of its words' tags, or nothing.
        style: as in ``Labelled``.
    """

    words: tuple[str, ...]
    pairs: np.ndarray
    objects: np.ndarray
    ends: Sequence[tuple[int, int]]
    relations: np.ndarray
    tags: Sequence[int] = ()
    style: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences of one length and one style as numbers."""

    words: Tensor  # (b, n)
    pairs: Tensor  # (b, n, n, labels), probabilities
    objects: Tensor  # (b, n), probabilities
    chosen: Tensor  # (p, 3)
    stated: Tensor  # (3, p, relations), as Codes.state gives it
    relations: Tensor  # (p, relations), probabilities times those of the pairs
    tags: Tensor  # (b, n); IGNORED where they are not known
    style: int


class Codes:
    """Distinct words, numbered as they come, with the table rows of their features; relations; and tags by sentence."""

    def __init__(
        self, vocabulary: Vocabulary, relations: Sequence[str], tags: Mapping[tuple[str, ...], list[int]]
    ) -> None:
        self.vocabulary = vocabulary
        self.relations = {name: number for number, name in enumerate(relations)}
        self.stated = Stated(relations, stems)
        self.numbers: dict[str, int] = {}
        self.tags = tags

    def number(self, word: str) -> int:
        """Return a word's number."""
        return self.numbers.setdefault(word, len(self.numbers))

    def rows(self, vocabulary: Vocabulary | None = None) -> Tensor:
        """Return (words, kinds) the table rows of every word so far, in another network's tables if one is given."""
        return torch.tensor([(vocabulary or self.vocabulary).feature_rows(word) for word in self.numbers])

    def state(self, pairs: Sequence[tuple[Sequence[str], int, int]]) -> Tensor:
        """Return (3, pairs, relations): stated by the sentence, by the words between both ends, share of the latter."""
        sides = [words for words, _, _ in pairs], [words[low + 1 : high] for words, low, high in pairs]
        inside, between = (shares[rows] for shares, rows in map(self.stated, sides))
        return torch.from_numpy(np.stack([inside > WHOLE, between > WHOLE, between]).astype(np.float32))

    def taught(self, own: Labelled) -> Taught:
        """Return people's labels as probabilities."""
        size = len(own.words)
        labels = np.zeros((size, size), dtype=np.intp)
        for ends, label in own.pairs.items():
            labels[ends] = label
        objects = labels.diagonal() == OBJECT
        np.fill_diagonal(labels, 0)
        known = [(ends, self.relations[name]) for ends, name in own.relations.items() if name in self.relations]
        relations = np.zeros((len(known), len(self.relations)), dtype=np.float32)
        relations[np.arange(len(known)), [number for _, number in known]] = 1.0
        pairs = np.eye(len(PAIR_LABELS), dtype=np.float32)[labels]
        tags = self.tags.get(tuple(map(str.lower, own.words)), ())
        ends = [ends for ends, _ in known]
        return Taught(own.words, pairs, objects.astype(np.float32), ends, relations, tags, own.style)

    def batch(self, group: Sequence[Labelled | Taught]) -> Batch:
        """Turn sentences of one length and one style into numbers."""
        rows = [self.taught(own) if isinstance(own, Labelled) else own for own in group]
        size = len(rows[0].words)
        chosen = [(sentence, *ends) for sentence, own in enumerate(rows) for ends in own.ends]
        return Batch(
            torch.tensor([[self.number(word) for word in own.words] for own in rows]),
            torch.from_numpy(np.stack([own.pairs for own in rows])).float(),
            torch.from_numpy(np.stack([own.objects for own in rows])).float(),
            torch.tensor(chosen, dtype=torch.long).reshape(-1, 3),
            self.state([(rows[at].words, *sorted(ends)) for at, *ends in chosen]),
            torch.from_numpy(np.concatenate([own.relations for own in rows])).float(),
            torch.tensor([list(own.tags) or [IGNORED] * size for own in rows]),
            rows[0].style,
        )


def batches(
    codes: Codes, data: Sequence[Labelled | Taught], words: int, random: np.random.Generator
) -> Iterator[Batch]:
    """Yield one pass over sentences in random order, each batch of sentences of one length and one style."""
    by_length: dict[tuple[int, int], list[Labelled | Taught]] = {}
    for position in random.permutation(len(data)):
        own = data[position]
        by_length.setdefault((len(own.words), own.style), []).append(own)
    parts = [
        alike[start : start + step]
        for (length, _), alike in by_length.items()
        for step in [max(1, words // length)]
        for start in range(0, len(alike), step)
    ]
    for part in random.permutation(len(parts)):
        yield codes.batch(parts[part])
