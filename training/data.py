"""Silver parses as numbers, for training."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import silver
from heldout import Hashes, Held, is_held_out, kind_of
from spicegraph_parser.caption_pipeline.encoder import KINDS, Vocabulary, features


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """How silver parses become training data; ``times``: passes over a kind in one pass over all (else 1)."""

    longest: int
    least: Sequence[int]
    times: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Sentences of one length as numbers, each (b, n): words (rows of ``Codes``), tags, heads and labels."""

    words: Tensor
    tags: Tensor
    heads: Tensor
    labels: Tensor

    @property
    def wanted(self) -> tuple[Tensor, Tensor, Tensor]:
        """What is to be learnt for each word: its tag, its head, its label."""
        return self.tags.flatten(), self.heads.flatten(), self.labels.flatten()


@dataclass(frozen=True, slots=True)
class Taught:
    """Sentences of one length with teachers' probabilities (half floats) in place of parses.

    Words and best heads are (b, n), tags (b, n, tags), ``likely`` heads (b, n, 1 + n; 0 is the root), labels of the
    best heads (b, n, labels).
    """

    words: Tensor
    tags: Tensor
    heads: Tensor
    likely: Tensor
    labels: Tensor

    @property
    def wanted(self) -> tuple[Tensor, Tensor, Tensor]:
        """What is to be learnt for each word: probabilities of its tag, its head, its label."""
        tags, heads, labels = (values.float().flatten(0, 1) for values in (self.tags, self.likely, self.labels))
        return tags, heads, labels


Batch = Encoded | Taught


def take(batch: Batch, rows: Tensor) -> Batch:
    """Return some of the sentences."""
    return type(batch)(*(getattr(batch, field.name)[rows] for field in fields(batch)))


def joined(parts: Sequence[Batch]) -> Batch:
    """Return the sentences of several groups of one length and one type as one group."""
    return type(parts[0])(*(torch.cat([getattr(part, f.name) for part in parts]) for f in fields(parts[0])))


def sentences(captions: Sequence[silver.Caption]) -> list[silver.Sentence]:
    """Return the captions' sentences."""
    return [sentence for caption in captions for sentence in caption.sentences]


def read(
    paths: Sequence[Path], evaluation: Sequence[Path], hashes: Hashes
) -> tuple[dict[str, list[silver.Caption]], dict[str, list[silver.Caption]]]:
    """Return the captions to train on, and the held-out ones, both by kind; files of one kind are joined."""
    training: dict[str, list[silver.Caption]] = {}
    held: dict[str, list[silver.Caption]] = {}
    for path in paths:
        kind = kind_of(path)
        for caption in silver.without_evaluation(silver.read(path, hashes), evaluation):
            side = held if is_held_out(caption.text, kind) else training
            side.setdefault(kind, []).append(caption)
    out = Held([caption.text for captions in held.values() for caption in captions])
    kept = {kind: [c for c in captions if not out.covers(c.text)] for kind, captions in training.items()}
    return kept, held


def counts(training: Sequence[silver.Sentence]) -> list[Counter[str]]:
    """Count the features of all words, one counter for each kind."""
    words = Counter(word for sentence in training for word in sentence.words)
    counters: list[Counter[str]] = [Counter() for _ in KINDS]
    for word, count in words.items():
        for counter, feature in zip(counters, features(word), strict=True):
            counter[feature] += count
    return counters


def vocabulary(
    training: Sequence[silver.Sentence], counters: Sequence[Counter[str]], least: Sequence[int]
) -> Vocabulary:
    """Number the tags, labels and features that training data hold."""
    lists = {
        "tags": sorted({tag for sentence in training for tag in sentence.tags}),
        "labels": sorted({label for sentence in training for label in sentence.labels}),
    }
    for kind, counter, fewest in zip(KINDS, counters, least, strict=True):
        lists[kind] = sorted(name for name, count in counter.items() if count >= fewest)
    return Vocabulary.from_lists(lists)


class Codes:
    """The distinct words of all sentences, numbered as they come, and the table rows of their features."""

    def __init__(self, known: Vocabulary) -> None:
        self.known = known
        self._numbers: dict[str, int] = {}
        self._tags = {name: number for number, name in enumerate(known.tags)}
        self._labels = {name: number for number, name in enumerate(known.labels)}

    def rows(self) -> Tensor:
        """Return (words, kinds) the rows of every word so far."""
        return torch.tensor([self.known.feature_rows(word) for word in self._numbers])

    def number(self, word: str) -> int:
        """Return a word's number, a new one where it has none."""
        return self._numbers.setdefault(word, len(self._numbers))

    def encode(self, group: Sequence[silver.Sentence]) -> dict[int, Encoded]:
        """Turn sentences into numbers, by length; a sentence with a tag or label unknown is left out."""
        by_length: dict[int, list[silver.Sentence]] = {}
        for sentence in group:
            if self._tags.keys() >= set(sentence.tags) and self._labels.keys() >= set(sentence.labels):
                by_length.setdefault(len(sentence.words), []).append(sentence)
        return {
            length: Encoded(
                torch.tensor([[self.number(word) for word in s.words] for s in own]),
                torch.tensor([[self._tags[tag] for tag in sentence.tags] for sentence in own]),
                torch.tensor([sentence.heads for sentence in own]),
                torch.tensor([[self._labels[label] for label in sentence.labels] for sentence in own]),
            )
            for length, own in sorted(by_length.items())
        }


def batches(
    data: Sequence[tuple[float, Mapping[int, Batch]]], words: int, random: np.random.Generator
) -> Iterator[Batch]:
    """Yield one pass over the data in random order, each batch of sentences of one length, parsed or taught.

    ``data``: kinds with their times; of 1.5 times, every other sentence comes twice, others once, chosen anew.
    """
    lengths = sorted({length for _, kind in data for length in kind})
    parts: list[Batch] = []
    for length in lengths:
        chosen: dict[type[Batch], list[Batch]] = {}
        for times, kind in data:
            if length in kind:
                size = len(kind[length].heads)
                extra = random.permutation(size)[: int(size * (times % 1) + random.random())]
                rows = np.concatenate([np.tile(np.arange(size), int(times)), extra])
                own = take(kind[length], torch.from_numpy(rows.astype(np.int64)))
                chosen.setdefault(type(own), []).append(own)
        for groups in chosen.values():
            group = joined(groups)
            order = torch.from_numpy(random.permutation(len(group.heads)))
            parts += [take(group, rows) for rows in order.split(max(1, words // length))]
    for part in random.permutation(len(parts)):
        yield parts[part]
