"""The layers that read a sentence, as they run: plain numpy, float32.

A vector for each word; a bidirectional LSTM over the sentence (Hochreiter and Schmidhuber 1997); tags read off its
first layer, fed to the second and corrected by it. Sentences of any lengths go through together, longest first: at each
step of an LSTM those that still have a word are the first ones.
Files are compact on disk. In memory weights are float32, but the tables of word features, which are larger than all
else, stay 8-bit integers.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from spicegraph_parser.caption_pipeline.trees import best_choices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from spicegraph_parser.caption_pipeline.layout import Floats, Integers, Layout, LayoutPart

KINDS = ("form", "suffix4", "suffix3", "suffix2", "prefix3", "case")


def features(form: str) -> tuple[str, ...]:
    """Return the word's feature strings, one for each of ``KINDS``."""
    # Endings and beginnings stand in for words that the training data did not hold. How the form is written is a
    # feature of its own: "Dog", "dog" and "DOG" share all others.
    lower = form.lower()
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
    return lower, lower[-4:], lower[-3:], lower[-2:], lower[:3], letters + digit + hyphen


Weights: TypeAlias = "Mapping[str, NDArray[Any]]"  # input before output: see ``training/export.py``

_SCALE: Final = ".scale"
_TABLES: Final = "words.tables."
_MOST_FORMS = 4096  # whose inputs are kept (21 MB); beyond so many distinct forms the table starts anew


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names behind numbers: tags, labels, and for each kind of word feature its row (0: unknown)."""

    tags: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[Mapping[str, int], ...]

    @classmethod
    def from_lists(cls, lists: Mapping[str, Sequence[str]]) -> Self:
        """Return the vocabulary of lists of names: ``tags``, ``labels`` and one for each kind of feature."""
        rows = tuple({name: row for row, name in enumerate(lists[kind], start=1)} for kind in KINDS)
        return cls(tuple(lists["tags"]), tuple(lists["labels"]), rows)

    def to_lists(self) -> dict[str, list[str]]:
        """Return the lists that ``from_lists`` reads."""
        named = {kind: list(rows) for kind, rows in zip(KINDS, self.rows, strict=True)}
        return {"tags": list(self.tags), "labels": list(self.labels), **named}

    def feature_rows(self, form: str) -> list[int]:
        """Return the table rows of a word's features."""
        return [rows.get(name, 0) for rows, name in zip(self.rows, features(form), strict=True)]


class WordNumbers(NamedTuple):
    """Words as the network reads them."""

    table: Floats  # (2, forms, gates): the first layer's inputs
    rows: Integers  # (words,) of the table
    forms: Integers  # (words,) their rows in the vocabulary, 0 where it lacks one
    styles: Integers | None = None  # (words,) by which of its styles a network reads them; without, by the first


class _WordInputs:
    """Cached inputs of the first layer's gates by word form; threads may share it."""

    # Forms are computed one by one, so that they never depend on the words that they came with. A table is only added
    # to, and a full one is replaced.

    def __init__(self, weights: Weights, vocabulary: Vocabulary, first: _Lstm) -> None:
        self._vocabulary = vocabulary
        self._weights = weights
        self._first = first
        self._made_of = weights, vocabulary, first
        self._lock = Lock()
        self._start_anew(_MOST_FORMS)

    def __call__(self, forms: Iterable[str], styles: Integers | None = None) -> WordNumbers:
        """Return the words of PTB forms; ``styles`` (words,): by which style each is read, by default the first."""
        words = list(forms)
        with self._lock:
            new = [form for form in dict.fromkeys(words) if form not in self._known]
            if len(self._known) + len(new) > self._table.shape[1]:
                new = list(dict.fromkeys(words))
                self._start_anew(max(_MOST_FORMS, len(new)))
            if new:
                start = len(self._known)
                features = np.array(list(map(self._vocabulary.feature_rows, new)))
                self._table[:, start : start + len(new)] = self._inputs(features)
                self._forms[start : start + len(new)] = features[:, 0]
                self._known.update(zip(new, range(start, start + len(new)), strict=True))
            rows = np.array(list(map(self._known.__getitem__, words)), dtype=np.intp)
            return WordNumbers(self._table, rows, self._forms[rows], styles)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._made_of  # neither the table nor the lock

    def _start_anew(self, capacity: int) -> None:
        self._known: dict[str, int] = {}
        self._table = np.empty((2, capacity, self._first.gates), dtype=np.float32)
        self._forms = np.empty(capacity, dtype=np.intp)

    def _inputs(self, rows: Integers) -> Floats:
        tables = (_rows_of(self._weights, f"{_TABLES}{kind}", rows[:, kind]) for kind in range(len(KINDS)))
        parts = np.concatenate(list(tables), axis=1)
        # A product for each word, not one for all: sums of many words together would be rounded otherwise.
        mixed = np.matmul(parts[:, None], self._weights["words.mix"])[:, 0] + self._weights["words.mix.bias"]
        centred = mixed - mixed.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)  # as torch's LayerNorm has it
        vectors = centred / spread * self._weights["words.norm"] + self._weights["words.norm.bias"]
        inputs: Floats = np.stack([np.matmul(vectors[:, None], weights)[:, 0] for weights in self._first.input])
        inputs += self._first.bias[:, None]
        return inputs


class Product(Protocol):
    """Weights (width, columns) by which rows are multiplied: the large products, which are most of the time."""

    def __call__(self, rows: Floats, out: Floats | None = None, /) -> Floats:
        """Return the product with ``rows`` (rows, width), nearly all from -1 to 1; it may be written to ``out``."""


MakeProduct: TypeAlias = "Callable[[Floats], Product]"
"""What makes a network's large products from their weights: :func:`float_product`, or one of ``pipelines.RUNTIMES``."""


def float_product(weights: Floats) -> Product:
    """Return products as numpy computes them."""
    return partial(_multiply, weights)


def _multiply(weights: Floats, rows: Floats, out: Floats | None = None, /) -> Floats:
    return np.matmul(rows, weights, out=out)


class Encoder:
    """States and tags of words: the layers that read a sentence; ``product`` makes the large products."""

    # Where the weights hold a late tagger, the second layer corrects the tags. Where they hold ``narrow`` (states of
    # the first layer, width), the second layer reads the states through it, which is cheaper. Where they hold
    # ``lstm.0.styles`` and ``lstm.1.styles`` (styles, gates of both directions), each style has biases of its own.

    def __init__(self, weights: Weights, vocabulary: Vocabulary, product: MakeProduct = float_product) -> None:
        self._weights = weights
        self._first, self._second = _Lstm(weights, 0, product), _Lstm(weights, 1, product)
        hints_width = weights["tag_vectors"].shape[1]
        of_states, hints = np.split(self._second.input, [-hints_width], axis=1)
        self._narrow = None
        if "narrow" in weights:
            # What it gives is brought between -1 and 1, by powers of two, which change no digit of the results. States
            # are far from 1 most often: most of a sum of them is 3 norms of their weights.
            narrow = weights["narrow"]
            size = np.exp2(np.ceil(np.log2(3.0 * np.linalg.norm(narrow, axis=0))))
            self._narrow, of_states = product(narrow / size), of_states * size[:, None]
        # Probabilities of tags add up to 1, so that what stands in all of their rows is added once.
        self._of_odds = np.matmul(weights["tag_vectors"], hints) + self._second.bias[:, None]
        rows = [of_states, self._of_odds, self._second.styles]
        self._of_read = [product(weights) for weights in np.concatenate(rows, axis=1)]
        self._marks = np.eye(self._second.styles.shape[1], dtype=np.float32)
        self.words = _WordInputs(weights, vocabulary, self._first)
        # A large block that is given back untouched: glibc then keeps the memory of arrays up to this size, which each
        # batch would fetch from the system anew. From 32 MiB on it never keeps memory.
        np.empty(31 << 20, dtype=np.uint8)

    def encode(self, words: WordNumbers, layout: Layout) -> tuple[Floats, Integers]:
        """Return the states (words, both directions) and best tags of words, step after step."""
        read = self.second(self.first(words, layout), layout)
        return read.states, read.tags.argmax(axis=1)

    def first(self, words: WordNumbers, layout: Layout) -> FirstStates:
        """Return the first layer's outputs."""
        rows = words.rows[layout.place]
        styles = None
        if len(self._marks):
            styles = np.zeros(len(rows), dtype=np.intp) if words.styles is None else words.styles[layout.place]
        ways = (rows, rows[layout.back])
        states, _ = self._first.states((words.table[0], words.table[1]), layout, ways, styles=styles)
        tags = states @ self._weights["tagger"]
        tags += self._weights["tagger.bias"]
        odds = softmax(tags)
        parts = [states if self._narrow is None else self._narrow(states), odds]
        if styles is not None:
            parts.append(self._marks[styles])
        read = np.concatenate(parts, axis=1)
        inputs = self._of_read[0](read), self._of_read[1](read.take(layout.back, axis=0))
        return FirstStates(inputs, tags, odds)

    def second(self, first: FirstStates, layout: Layout) -> SecondStates:
        """Return the second layer's outputs."""
        states, cells = self._second.states(first.inputs, layout)
        return SecondStates(states, self._late_tags(first.tags, states), cells, (np.arange(len(states)), layout.back))

    def again(
        self, first: FirstStates, second: SecondStates, part: LayoutPart, tags: Integers
    ) -> tuple[Floats, Floats]:
        """Return the second layer's states and scores of tags where one word's tag is given: the part's, ``tags``."""
        # Before that word nothing changes in the direction that comes from there: only what follows is read again.
        states = second.states[part.source]
        change = -first.odds[part.source[part.words]]
        change[np.arange(len(tags)), tags] += 1.0
        for direction, part_states in enumerate(np.split(states, 2, axis=1)):
            way = part.way(direction)
            rows = second.rows[direction]
            before = part_states[way.before], second.cells[direction][rows[part.source[way.before]]]
            for values in before:
                values[way.is_first] = 0.0
            start = (*before, change[way.order] @ self._of_odds[direction])
            inputs = first.inputs[direction].take(rows[part.source[way.words]], axis=0)
            part_states[way.words], _ = self._second.read(direction, inputs, way.steps, start=start)
        return states, self._late_tags(first.tags[part.source], states)

    def _late_tags(self, tags: Floats, states: Floats) -> Floats:
        """Return the scores of tags as the second layer corrects them."""
        if "late_tagger" in self._weights:
            tags = tags + states @ self._weights["late_tagger"]
            tags += self._weights["late_tagger.bias"]
        return tags


class FirstStates(NamedTuple):
    """The first layer's outputs for words, step after step."""

    # (words, gates) of each direction of the second layer, in the order in which it reads
    inputs: tuple[Floats, Floats]
    tags: Floats  # (words, tags) scores
    odds: Floats  # (words, tags) probabilities


class SecondStates(NamedTuple):
    """The second layer's outputs for words, step after step."""

    states: Floats  # (words, both directions)
    tags: Floats  # (words, tags) scores
    cells: tuple[Floats, Floats]  # (words, hidden) of each direction, in the order in which it reads
    rows: tuple[Integers, Integers]  # (words,) of each direction: where the cells of a word stand


class _Lstm:
    """One bidirectional layer. In memory the gates stand in the order input, forget, output, cell."""

    def __init__(self, weights: Weights, layer: int, product: MakeProduct) -> None:
        name = f"lstm.{layer}"
        hidden = weights[f"{name}.state"].shape[1]
        self._hidden = hidden
        self.gates = 4 * hidden  # of a direction
        # The weights of what it reads (2, width, gates), and what is added to these products (2, gates).
        self.input = np.stack([_for_tanh(part) for part in np.split(weights[f"{name}.input"], 2, axis=1)])
        self.bias = np.stack([_for_tanh(part) for part in np.split(weights[f"{name}.bias"], 2)])
        self._state = [product(_for_tanh(part)) for part in weights[f"{name}.state"]]
        # What each style adds to the biases (2, styles, gates).
        styles = weights.get(f"{name}.styles", np.empty((0, 2 * self.gates), dtype=np.float32))
        self.styles = np.stack([_for_tanh(part) for part in np.split(styles, 2, axis=1)])

    def states(
        self,
        inputs: tuple[Floats, Floats],
        layout: Layout,
        rows: tuple[Integers, Integers] | tuple[None, None] = (None, None),
        *,
        styles: Integers | None = None,
    ) -> tuple[Floats, tuple[Floats, Floats]]:
        """Return the states (words, 2 * hidden), and each direction's cells (words, hidden) in reading order."""
        shifted = (styles, styles[layout.back]) if styles is not None and styles.any() else (None, None)
        (forward, forward_cells), (backward, backward_cells) = (
            self.read(direction, inputs[direction], layout.steps, rows[direction], styles=shifted[direction])
            for direction in (0, 1)
        )
        return np.concatenate([forward, backward[layout.back]], axis=1), (forward_cells, backward_cells)

    def read(
        self,
        direction: int,
        inputs: Floats,
        steps: Sequence[int],
        rows: Integers | None = None,
        *,
        styles: Integers | None = None,
        start: tuple[Floats, Floats, Floats] | None = None,
    ) -> tuple[Floats, Floats]:
        """Return states and cells (words, hidden) of a direction, step after step."""
        # ``inputs`` are (rows, gates) without the state's part, ``rows`` those that are read (all of them by default).
        # ``styles`` are those of the rows, whose biases are added.
        # ``start`` has states and cells where sentences do not begin at their ends, and what the first step's gates get
        # more. What a step computes stays in a core's own cache.
        hidden = self._hidden
        multiply = self._state[direction]
        is_same = styles is not None and bool((styles == styles[0]).all())
        states, cells = np.empty((2, sum(steps), hidden), dtype=np.float32)
        sums, others = np.empty((2, steps[0], self.gates), dtype=np.float32)
        before = None if start is None else start[:2]
        end = 0
        for size in steps:
            begin, end = end, end + size
            state, cell = states[begin:end], cells[begin:end]
            if rows is None:
                total = inputs[begin:end]
            else:
                total = inputs.take(rows[begin:end], axis=0, out=others[:size], mode="clip")
                if styles is not None:
                    own = styles[begin:end]
                    shifts = self.styles[direction]
                    total += shifts[own[0]] if is_same else shifts.take(own, axis=0)
            if before is not None:
                total = np.add(total, multiply(before[0][:size], sums[:size]), out=sums[:size])
            if start is not None and not begin:
                total += start[2]
            # Each gate of all sentences in one piece, in the memory that the sums do not need.
            gates = (sums if before is None else others)[:size].reshape(4, size, hidden)
            np.tanh(total.reshape(size, 4, hidden).transpose(1, 0, 2), out=gates)
            gates[:3] += 1.0
            np.multiply(gates[0], gates[3], out=cell)
            if before is not None:
                cell += np.multiply(before[1][:size], gates[1], out=state)
            cell *= 0.5
            np.tanh(cell, out=state)
            state *= gates[2]
            state *= 0.5
            before = state, cell
        return states, cells


def _for_tanh(weights: Floats) -> Floats:
    """Put gates (..., gates) stored as input, forget, cell, output into the order in which they are computed."""
    # sigmoid(x) = (tanh(x / 2) + 1) / 2: with the halving in the weights one tanh does for all gates.
    input_gate, forget, cell, output = np.split(weights, 4, axis=-1)
    return np.concatenate([0.5 * input_gate, 0.5 * forget, 0.5 * output, cell], axis=-1)


def softmax(scores: Floats) -> Floats:
    """Return the probabilities (rows, choices) that scores stand for."""
    odds: Floats = np.exp(scores - best_choices(scores)[1][:, None])
    odds /= odds.sum(axis=1, keepdims=True)
    return odds


def relu(values: Floats) -> Floats:
    """Set negative values to 0, in place."""
    return np.maximum(values, 0.0, out=values)


def stored_weights(data: bytes) -> dict[str, NDArray[Any]]:
    """Read weights as float32, large tables as they are: 8-bit integers beside one scale per row (``<name>.scale``)."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    weights = {name: array if array.dtype == np.int8 else array.astype(np.float32) for name, array in arrays.items()}
    large = _TABLES, "reranker.table"  # of which few rows are read at a time
    for name in [name for name in weights if name.endswith(_SCALE) and not name.startswith(large)]:
        weights[name.removesuffix(_SCALE)] = weights[name.removesuffix(_SCALE)] * weights.pop(name)
    return weights


def read_weights(data: bytes) -> dict[str, Floats]:
    """Read weights, all of them as float32."""
    weights = stored_weights(data)
    return {name: _rows_of(weights, name, slice(None)) for name in weights if not name.endswith(_SCALE)}


def _rows_of(weights: Weights, name: str, rows: Integers | slice) -> Floats:
    """Return rows of a weight as float32."""
    values = weights[name][rows]
    return values * weights[name + _SCALE][rows] if name + _SCALE in weights else values
