"""The caption pipeline's network, as it runs: plain numpy, float32.

A vector a word; a bidirectional LSTM over the sentence (Hochreiter and Schmidhuber 1997); tags read off its
first layer and fed to the next; heads from biaffine scores (Dozat and Manning 2017), and labels from both
ends of an edge. Sentences of one length go through together, so nothing is padded or masked.
``training/network.py`` is the trainable form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spicegraph_parser.caption_pipeline.features import KINDS, features
from spicegraph_parser.caption_pipeline.trees import best_heads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Analysis", "Floats", "Network", "Vocabulary", "WordVectors"]

Floats: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.intp]

_ENDS = ("arc_child", "arc_head", "label_child", "label_head")
_NORM_EPSILON = 1e-5  # torch's LayerNorm adds it to the variance
_MOST_FORMS = 100_000  # word vectors kept (50 MB); beyond so many distinct forms the cache starts anew


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the network says of sentences of one length, each (sentences, n).

    ``tags`` and ``labels`` are numbers in the vocabulary; ``heads`` count from 1, and 0 is the root.
    """

    tags: Integers
    heads: Integers
    labels: Integers


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names behind numbers: tags, labels, and for each kind of word feature its row (0: unknown)."""

    tags: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[Mapping[str, int], ...]

    @classmethod
    def from_lists(cls, lists: Mapping[str, Sequence[str]]) -> Self:
        """Build from lists of names: ``tags``, ``labels`` and one for each kind of feature."""
        rows = tuple({name: row for row, name in enumerate(lists[kind], start=1)} for kind in KINDS)
        return cls(tuple(lists["tags"]), tuple(lists["labels"]), rows)

    def to_lists(self) -> dict[str, list[str]]:
        """Return the lists that ``from_lists`` reads."""
        named = {kind: list(rows) for kind, rows in zip(KINDS, self.rows, strict=True)}
        return {"tags": list(self.tags), "labels": list(self.labels), **named}

    def feature_rows(self, form: str) -> list[int]:
        """Return the table rows of a word's features."""
        return [rows.get(name, 0) for rows, name in zip(self.rows, features(form), strict=True)]


class WordVectors:
    """Vectors of words, computed once for each distinct form and kept.

    A word's vector is computed alone, so it never depends on the words it came with. Threads may share one:
    they only ever add equal vectors.
    """

    def __init__(self, weights: Mapping[str, Floats], vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tables = [weights[f"words.tables.{kind}"] for kind in range(len(KINDS))]
        self._mix = weights["words.mix"]
        self._bias = weights["words.mix.bias"]
        self._scale = weights["words.norm"]
        self._shift = weights["words.norm.bias"]
        self._known: dict[str, Floats] = {}

    def __call__(self, forms: Iterable[str]) -> Floats:
        """Return the vectors (words, width) of words given by their PTB forms."""
        if len(self._known) > _MOST_FORMS:
            self._known = {}
        known = self._known
        vectors = [known[form] if form in known else known.setdefault(form, self._vector(form)) for form in forms]
        return np.concatenate(vectors).reshape(-1, self._bias.size)

    def _vector(self, form: str) -> Floats:
        parts = [table[at] for table, at in zip(self._tables, self._vocabulary.feature_rows(form), strict=True)]
        mixed = np.concatenate(parts) @ self._mix + self._bias
        centred = mixed - mixed.mean()
        spread = np.sqrt((centred**2).mean() + _NORM_EPSILON)
        vector: Floats = centred / spread * self._scale + self._shift
        return vector


class Network:
    """Tags, heads and labels for sentences given as words.

    Args:
        weights: arrays by name, input before output: see ``training/export.py``.
        vocabulary: the names behind the network's numbers.
    """

    def __init__(self, weights: Mapping[str, Floats], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.words = WordVectors(weights, vocabulary)
        self._weights = weights
        layers = sum(name.startswith("lstm.") and name.endswith(".input") for name in weights)
        self._layers = [_Lstm(weights, layer) for layer in range(layers)]
        self._ends = np.concatenate([weights[name] for name in _ENDS], axis=1)
        self._ends_bias = np.concatenate([weights[f"{name}.bias"] for name in _ENDS])
        self._end_bounds = np.cumsum([weights[name].shape[1] for name in _ENDS])[:-1]
        self._root_label = vocabulary.labels.index("root")

    def analyse(self, words: Floats) -> Analysis:
        """Analyse sentences of one length.

        Args:
            words: (n, sentences, width) vectors of the words, n >= 1.
        """
        states, tags = self._encode(words)
        ends = (states @ self._ends + self._ends_bias).transpose(1, 0, 2)
        arc_child, arc_head, label_child, label_head = np.split(ends, self._end_bounds, axis=2)
        heads = best_heads(self._arc_scores(_relu(arc_child), _relu(arc_head)))
        labels = self._labels(label_child, label_head, heads)
        return Analysis(tags.T, heads, labels)

    def _encode(self, vectors: Floats) -> tuple[Floats, Integers]:
        """Word vectors (n, sentences, width) to states (n, sentences, both directions) and best tags."""
        states = self._layers[0](vectors)
        tags = states @ self._weights["tagger"] + self._weights["tagger.bias"]
        odds: Floats = np.exp(tags - tags.max(axis=-1, keepdims=True))
        hints = (odds / odds.sum(axis=-1, keepdims=True)) @ self._weights["tag_vectors"]
        for layer, lstm in enumerate(self._layers[1:], start=1):
            states = lstm(np.concatenate([states, hints], axis=-1) if layer == 1 else states)
        return states, tags.argmax(axis=-1)

    def _arc_scores(self, children: Floats, parents: Floats) -> Floats:
        """Scores of heads (sentences, n, 1 + n) from vectors (sentences, n, width) of words at either end."""
        bilinear = children @ self._weights["arc_scores"] + self._weights["arc_scores.bias"]
        heads = _after_root(self._weights["root_arc"], parents)
        scores: Floats = np.matmul(bilinear, heads.transpose(0, 2, 1), dtype=np.float32)
        return scores

    def _labels(self, children: Floats, parents: Floats, heads: Integers) -> Integers:
        """Best labels (sentences, n) of the edges from the given heads; only a root's edge is labelled so."""
        above = _after_root(self._weights["root_label"], parents)[np.arange(len(heads))[:, None], heads]
        edges = np.concatenate([_relu(children + above), children * above], axis=2)
        scores = edges @ self._weights["labeller"] + self._weights["labeller.bias"]
        scores[:, :, self._root_label] = -np.inf
        labels: Integers = scores.argmax(axis=2)
        labels[heads == 0] = self._root_label
        return labels


def _after_root(root: Floats, words: Floats) -> Floats:
    """Put the root's vector in front of the words' (sentences, n, width)."""
    sentences, _, width = words.shape
    return np.concatenate([np.broadcast_to(root, (sentences, 1, width)), words], axis=1)


class _Lstm:
    """One bidirectional layer; gates in the order input, forget, cell, output."""

    def __init__(self, weights: Mapping[str, Floats], layer: int) -> None:
        name = f"lstm.{layer}"
        hidden = weights[f"{name}.state"].shape[1]
        # sigmoid(x) = (tanh(x / 2) + 1) / 2: with the halving in the weights one tanh does for all gates.
        half = np.full(4 * hidden, 0.5, dtype=np.float32)
        half[2 * hidden : 3 * hidden] = 1.0
        self._hidden = hidden
        self._input = np.stack(np.split(weights[f"{name}.input"] * np.tile(half, 2), 2, axis=1))
        self._bias = np.stack(np.split(weights[f"{name}.bias"] * np.tile(half, 2), 2))
        self._state = weights[f"{name}.state"] * half  # (2, hidden, gates)

    def __call__(self, inputs: Floats) -> Floats:
        """Inputs (n, sentences, width) to states (n, sentences, 2 * hidden), forward before backward."""
        length, sentences, _ = inputs.shape
        states = np.empty((length, sentences, 2 * self._hidden), dtype=np.float32)
        for direction, own in enumerate(np.split(states, 2, axis=2)):
            self._read(inputs, direction, own)
        return states

    def _read(self, inputs: Floats, direction: int, states: Floats) -> None:
        """Write the states (n, sentences, hidden) of one direction."""
        length, sentences, width = inputs.shape
        hidden = self._hidden
        projected = inputs.reshape(-1, width) @ self._input[direction]
        projected += self._bias[direction]
        steps = projected.reshape(length, sentences, 4 * hidden)
        weights = self._state[direction]
        recurrent = np.empty((sentences, 4 * hidden), dtype=np.float32)
        state = np.empty((sentences, hidden), dtype=np.float32)
        cell = np.zeros_like(state)
        order = range(length) if direction == 0 else range(length - 1, -1, -1)
        for step in order:
            gates = steps[step]
            if step != order[0]:
                gates += np.matmul(state, weights, out=recurrent)
            np.tanh(gates, out=gates)
            gates[:, : 2 * hidden] += 1.0
            gates[:, 3 * hidden :] += 1.0
            cell *= gates[:, hidden : 2 * hidden]
            np.multiply(gates[:, :hidden], gates[:, 2 * hidden : 3 * hidden], out=state)
            cell += state
            cell *= 0.5
            np.tanh(cell, out=state)
            state *= gates[:, 3 * hidden :]
            state *= 0.5
            states[step] = state


def _relu(values: Floats) -> Floats:
    return np.maximum(values, 0.0, out=values)
