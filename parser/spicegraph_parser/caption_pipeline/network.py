"""The caption pipeline's network, as it runs: plain numpy, float32.

A vector for each word; a bidirectional LSTM over the sentence (Hochreiter and Schmidhuber 1997); tags read off its
first layer and fed to the next; heads from biaffine scores (Dozat and Manning 2017), and labels from both
ends of an edge. Sentences of any lengths go through together, longest first: at each step of an LSTM those
that still have a word are the first ones, so that only the scores of heads are padded.
``training/network.py`` is the trainable form. Files are compact on disk, weights float32 in memory.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it has no stubs

from spicegraph_parser.caption_pipeline.trees import best_heads
from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

KINDS = ("form", "suffix4", "suffix3", "suffix2", "prefix3", "case")


def features(form: str) -> tuple[str, ...]:
    """Return the word's feature strings, one for each of ``KINDS``.

    The form is lower-cased; how it was written is a feature of its own, so that "Dog", "dog" and "DOG" share
    what can be shared. Endings and beginnings stand in for words that the training data did not hold.

    >>> features("Skateboards")
    ('skateboards', 'ards', 'rds', 'ds', 'ska', 'title')
    """
    lower = form.lower()
    return lower, lower[-4:], lower[-3:], lower[-2:], lower[:3], _case(form, lower)


def _case(form: str, lower: str) -> str:
    if form == lower:
        letters = "lower"
    elif form[1:] == lower[1:]:
        letters = "title"
    elif form == form.upper():
        letters = "upper"
    else:
        letters = "mixed"
    digit = "+digit" if any(map(str.isdigit, form)) else ""
    hyphen = "+hyphen" if "-" in form else ""
    return letters + digit + hyphen


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

        What pads a shorter sentence is never a word's head, and each piece of it hangs on what stands before it:
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


# Words of a sentence: what is longer is parsed in parts, or its n * n scores would take all memory.
_LONGEST: Final = 200
_SENTENCES_AT_ONCE: Final = 96  # what keeps a layer's numbers in a core's own cache
_SCORES_AT_ONCE: Final = 1 << 16  # of heads, n * n a sentence: a long sentence's do not pad many short ones


def cut_sentences(lengths: Sequence[int]) -> Sequence[int]:
    """Return the lengths of sentences after cutting those that are too long for the network.

    >>> cut_sentences([3, 450])
    [3, 200, 200, 50]
    """
    if not lengths or max(lengths) <= _LONGEST:
        return lengths
    return [min(_LONGEST, length - start) for length in lengths for start in range(0, length, _LONGEST)]


def analyse_sentences(network: Network, forms: Iterable[str], lengths: Sequence[int]) -> Analysis:
    """Analyse sentences, whichever captions they come from; company does not change a sentence's analysis.

    Args:
        network: what analyses.
        forms: the PTB forms of the words of all sentences, one after the other.
        lengths: the number of words of each sentence, each from 1 to what :func:`cut_sentences` leaves.

    Returns:
        Tags, heads and labels, each (words,), in the order of ``forms``; heads count from 1 in their sentence.
    """
    words = network.words(forms)
    found = np.empty((3, len(words)), dtype=np.intp)
    sizes = np.array(lengths, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    # The products are small: threads of the linear algebra library wait for each other, ten times slower
    # on a busy machine; several cores are better used by several processes.
    with _blas().limit(limits=1, user_api="blas"):
        for part in _parts(sizes):
            own = sizes[part]
            where = np.repeat(starts[part] - (np.cumsum(own) - own), own) + np.arange(own.sum())
            analysis = network.analyse(words[where], own)
            found[:, where] = analysis.tags, analysis.heads, analysis.labels
    return Analysis(*found)


def _parts(lengths: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Return the numbers of the sentences that go through the network together, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        size = max(1, min(_SENTENCES_AT_ONCE, _SCORES_AT_ONCE // longest**2))
        yield order[start : start + size]
        start += size


@cache
def _blas() -> ThreadpoolController:
    """Return what sets the number of numpy's threads."""
    return ThreadpoolController()


_WEIGHTS: Final = "network.npz"
_VOCABULARY: Final = "vocabulary.json"
NETWORK_FILES: Final = (_WEIGHTS, _VOCABULARY)
_SCALE: Final = ".scale"


def network_from(files: Mapping[str, bytes]) -> Network:
    """Build a network from the contents of ``NETWORK_FILES``.

    Raises:
        DataError: a file is damaged.
    """
    try:
        lists = json.loads(files[_VOCABULARY])
        return Network(read_weights(files[_WEIGHTS]), Vocabulary.from_lists(lists))
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise DataError(f"the caption pipeline's network is damaged ({error}); install the package again") from error


def read_weights(data: bytes) -> dict[str, Floats]:
    """Read weights: half floats, or 8-bit integers with one scale per row (``<name>.scale``)."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return {
        name: values.astype(np.float32) * arrays.get(name + _SCALE, np.float32(1)).astype(np.float32)
        for name, values in arrays.items()
        if not name.endswith(_SCALE)
    }
