"""The caption pipeline's network, as it runs: plain numpy, float32.

A vector a word; a bidirectional LSTM over the sentence (Hochreiter and Schmidhuber 1997); tags read off its
first layer and fed to the next; heads from biaffine scores (Dozat and Manning 2017), and labels from both
ends of an edge. Sentences of any lengths go through together, longest first: at each step of an LSTM those
that still have a word are the first ones, so that only the scores of heads are padded.
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
    """What the network says of the words of sentences, sentence after sentence, each (words,).

    ``tags`` and ``labels`` are numbers in the vocabulary; ``heads`` count from 1 in their sentence, and 0 is
    the root.
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
        known, words = self._known, list(forms)
        new = [form for form in dict.fromkeys(words) if form not in known]
        if new:
            known.update(zip(new, self._vectors(new), strict=True))
        return np.concatenate([known[form] for form in words]).reshape(-1, self._bias.size)

    def _vectors(self, forms: Sequence[str]) -> Floats:
        rows = np.array(list(map(self._vocabulary.feature_rows, forms)))
        parts = np.concatenate([table[rows[:, kind]] for kind, table in enumerate(self._tables)], axis=1)
        # A product for each word, not one for all: sums of many words together would be rounded otherwise.
        mixed = np.matmul(parts[:, None], self._mix)[:, 0] + self._bias
        centred = mixed - mixed.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + _NORM_EPSILON)
        vectors: Floats = centred / spread * self._scale + self._shift
        return vectors


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

    def analyse(self, words: Floats, lengths: Integers) -> Analysis:
        """Analyse sentences.

        Args:
            words: (words, width) vectors of the words, sentence after sentence.
            lengths: (sentences,) words of each sentence, at least 1, longest first.
        """
        layout = _Layout.of(lengths)
        states, tags = self._encode(words, layout)
        ends = states @ self._ends + self._ends_bias
        arc_child, arc_head, label_child, label_head = np.split(ends, self._end_bounds, axis=1)
        heads = best_heads(self._arc_scores(_relu(arc_child), _relu(arc_head), layout))[layout.is_word]
        labels = self._labels(label_child, label_head, heads, layout)
        return Analysis(tags, heads, labels)

    def _encode(self, vectors: Floats, layout: _Layout) -> tuple[Floats, Integers]:
        """Word vectors (words, width) to states (words, both directions) and best tags."""
        states = self._layers[0](vectors, layout)
        tags = states @ self._weights["tagger"] + self._weights["tagger.bias"]
        odds: Floats = np.exp(tags - tags.max(axis=1, keepdims=True))
        hints = (odds / odds.sum(axis=1, keepdims=True)) @ self._weights["tag_vectors"]
        for layer, lstm in enumerate(self._layers[1:], start=1):
            states = lstm(np.concatenate([states, hints], axis=1) if layer == 1 else states, layout)
        return states, tags.argmax(axis=1)

    def _arc_scores(self, children: Floats, parents: Floats, layout: _Layout) -> Floats:
        """Scores of heads (sentences, n, 1 + n) from vectors (words, width) of words at either end.

        What pads a shorter sentence is no word's head, and each piece of it hangs on what stands before it:
        that changes neither which trees there are nor which of them is the best.
        """
        bilinear = children @ self._weights["arc_scores"] + self._weights["arc_scores.bias"]
        padded = parents[layout.padded]
        root = np.broadcast_to(self._weights["root_arc"], (len(padded), 1, padded.shape[2]))
        heads = np.concatenate([root, padded], axis=1)
        scores: Floats = np.matmul(bilinear[layout.padded], heads.transpose(0, 2, 1), dtype=np.float32)
        sentences, places = np.nonzero(~layout.is_word)
        scores[sentences, :, places + 1] = -np.inf
        scores[sentences, places] = -np.inf
        scores[sentences, places, places] = 0.0
        return scores

    def _labels(self, children: Floats, parents: Floats, heads: Integers, layout: _Layout) -> Integers:
        """Best labels (words,) of the edges from the given heads; only a root's edge is labelled so."""
        rows = np.where(heads == 0, 0, layout.firsts + heads)
        above = np.concatenate([self._weights["root_label"].reshape(1, -1), parents])[rows]
        edges = np.concatenate([_relu(children + above), children * above], axis=1)
        scores = edges @ self._weights["labeller"] + self._weights["labeller.bias"]
        scores[:, self._root_label] = -np.inf
        labels: Integers = scores.argmax(axis=1)
        labels[heads == 0] = self._root_label
        return labels


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the words of sentences stand: sentence after sentence, longest first.

    Attributes:
        firsts: (words,) the place of the first word of each word's sentence.
        steps: for each step of an LSTM, how many sentences have a word for it: always the first ones.
        read: (2, words) the places of the words in the order in which each direction reads them.
        padded: (sentences, n) the places of each sentence's words, then any place.
        is_word: (sentences, n) whether it is a word's place.
    """

    firsts: Integers
    steps: tuple[int, ...]
    read: Integers
    padded: Integers
    is_word: NDArray[np.bool_]

    @classmethod
    def of(cls, lengths: Integers) -> Self:
        """Lay out sentences of the given lengths, longest first."""
        starts = np.cumsum(lengths) - lengths
        at = np.arange(lengths[0])
        is_word = at < lengths[:, None]
        # One direction reads from the first word on, the other from the last word back: at every step both
        # have a word of the same sentences.
        step, sentence = np.nonzero(is_word.T)
        read = np.stack([starts[sentence] + step, (starts + lengths - 1)[sentence] - step])
        padded = np.minimum(starts[:, None] + at, starts[-1] + lengths[-1] - 1)
        return cls(np.repeat(starts, lengths), tuple(is_word.sum(axis=0).tolist()), read, padded, is_word)


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

    def __call__(self, inputs: Floats, layout: _Layout) -> Floats:
        """Inputs (words, width) to states (words, 2 * hidden), forward before backward."""
        projected = inputs[layout.read] @ self._input
        projected += self._bias[:, None]
        read = self._read(projected, layout.steps)
        states = np.empty((len(inputs), 2, self._hidden), dtype=np.float32)
        for direction in (0, 1):
            states[layout.read[direction], direction] = read[direction]
        return states.reshape(len(inputs), -1)

    def _read(self, projected: Floats, steps: Sequence[int]) -> Floats:
        """Gates without the state's part (2, words, 4 * hidden) to states (2, words, hidden), step after step."""
        hidden = self._hidden
        states = np.empty((*projected.shape[:2], hidden), dtype=np.float32)
        recurrent = np.empty((2, steps[0], 4 * hidden), dtype=np.float32)
        cells = np.zeros((2, steps[0], hidden), dtype=np.float32)
        before = states[:, :0]
        end = 0
        for size in steps:
            start, end = end, end + size
            gates, state, cell = projected[:, start:end], states[:, start:end], cells[:, :size]
            if start:
                gates += np.matmul(before[:, :size], self._state, out=recurrent[:, :size])
            np.tanh(gates, out=gates)
            gates[:, :, : 2 * hidden] += 1.0
            gates[:, :, 3 * hidden :] += 1.0
            cell *= gates[:, :, hidden : 2 * hidden]
            np.multiply(gates[:, :, :hidden], gates[:, :, 2 * hidden : 3 * hidden], out=state)
            cell += state
            cell *= 0.5
            np.tanh(cell, out=state)
            state *= gates[:, :, 3 * hidden :]
            state *= 0.5
            before = state
        return states


def _relu(values: Floats) -> Floats:
    return np.maximum(values, 0.0, out=values)
