"""Silver parses as numbers, for training."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

import silver
from captions import plain
from spicegraph_parser.caption_pipeline.network import KINDS, Vocabulary, features

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """How silver parses become training data."""

    held_out: int
    longest: int
    least: Sequence[int]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Sentences of one length as numbers: features (b, n, kinds), tags, heads and labels (b, n)."""

    features: Tensor
    tags: Tensor
    heads: Tensor
    labels: Tensor

    def take(self, rows: Tensor) -> "Encoded":
        """Return some of the sentences."""
        return Encoded(self.features[rows], self.tags[rows], self.heads[rows], self.labels[rows])


def sentences(captions: Sequence[silver.Caption]) -> list[silver.Sentence]:
    """Return the captions' sentences."""
    return [sentence for caption in captions for sentence in caption.sentences]


def read(
    paths: Sequence[Path], evaluation: Sequence[Path], data: Data, seed: int
) -> tuple[list[silver.Sentence], list[list[silver.Caption]]]:
    """Return the sentences to train on, and the held-out captions of the first two files.

    A held-out caption's text, case and end punctuation aside, is nowhere in the training data.
    """
    files = [silver.without_evaluation(silver.read(path), evaluation) for path in paths]
    held = [silver.hold_out(captions, data.held_out, seed=seed)[1] for captions in files[:2]]
    texts = {plain(caption.text) for part in held for caption in part}
    training = [caption for captions in files for caption in captions if plain(caption.text) not in texts]
    return [s for s in sentences(training) if len(s.words) <= data.longest], held


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


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read the vocabulary of a network that was trained before."""
    return Vocabulary.from_lists(json.loads((folder / "vocabulary.json").read_text(encoding="utf-8")))


def encode(training: Sequence[silver.Sentence], known: Vocabulary) -> dict[int, Encoded]:
    """Turn sentences into numbers, by length; a sentence with a tag or label unknown is left out."""
    tags = {name: number for number, name in enumerate(known.tags)}
    labels = {name: number for number, name in enumerate(known.labels)}
    rows = {word: known.feature_rows(word) for word in {word for sentence in training for word in sentence.words}}
    by_length: dict[int, list[silver.Sentence]] = {}
    for sentence in training:
        if tags.keys() >= set(sentence.tags) and labels.keys() >= set(sentence.labels):
            by_length.setdefault(len(sentence.words), []).append(sentence)
    return {
        length: Encoded(
            torch.tensor([[rows[word] for word in sentence.words] for sentence in group]),
            torch.tensor([[tags[tag] for tag in sentence.tags] for sentence in group]),
            torch.tensor([sentence.heads for sentence in group]),
            torch.tensor([[labels[label] for label in sentence.labels] for sentence in group]),
        )
        for length, group in sorted(by_length.items())
    }


def batches(data: dict[int, Encoded], words: int, random: np.random.Generator) -> Iterator[Encoded]:
    """Yield one pass over the data in random order, each batch of sentences of one length."""
    parts: list[tuple[int, NDArray[np.intp]]] = []
    for length, group in data.items():
        order = random.permutation(len(group.heads))
        size = max(1, words // length)
        parts += [(length, order[start : start + size]) for start in range(0, len(order), size)]
    for part in random.permutation(len(parts)):
        length, rows = parts[part]
        yield data[length].take(torch.from_numpy(rows))
