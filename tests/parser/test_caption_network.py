"""The numpy network computes what its description says, written out here word by word in float64."""

from __future__ import annotations

import io
import json
import pickle
import platform
import subprocess
import sys
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pytest

from spicegraph_parser.caption_pipeline import encoder as encoder_module
from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.caption_pipeline.encoder import (
    KINDS,
    Encoder,
    Vocabulary,
    features,
    read_weights,
    stored_weights,
)
from spicegraph_parser.caption_pipeline.layout import Layout, ranges
from spicegraph_parser.caption_pipeline.network import (
    NETWORK_FILES,
    Network,
    analyse_sentences,
    cut_sentences,
    network_from,
)
from spicegraph_parser.caption_pipeline.trees import projective_heads

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HIDDEN, _WORD, _ARC, _LABEL, _HINT = 5, 6, 4, 3, 2
_VOCABULARY = Vocabulary.from_lists(
    {
        "tags": ["DT", "NN", "VBZ"],
        "labels": ["det", "nsubj", "root", "dobj"],
        "form": ["a", "dog", "runs"],
        **{kind: sorted({features(w)[at] for w in ("a", "dog", "runs")}) for at, kind in enumerate(KINDS) if at},
    }
)


def _weights() -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(3)
    tags, labels, both = len(_VOCABULARY.tags), len(_VOCABULARY.labels), 2 * _HIDDEN
    shapes: dict[str, tuple[int, ...]] = {
        **{f"words.tables.{at}": (1 + len(rows), 3) for at, rows in enumerate(_VOCABULARY.rows)},
        "words.mix": (3 * len(KINDS), _WORD),
        "words.mix.bias": (_WORD,),
        "words.norm": (_WORD,),
        "words.norm.bias": (_WORD,),
        "tagger": (both, tags),
        "tagger.bias": (tags,),
        "tag_vectors": (tags, _HINT),
        "late_tagger": (both, tags),
        "late_tagger.bias": (tags,),
        "arc_child": (both, _ARC),
        "arc_child.bias": (_ARC,),
        "arc_head": (both, _ARC),
        "arc_head.bias": (_ARC,),
        "arc_scores": (_ARC, _ARC),
        "arc_scores.bias": (_ARC,),
        "root_arc": (_ARC,),
        "label_child": (both, _LABEL),
        "label_child.bias": (_LABEL,),
        "label_head": (both, _LABEL),
        "label_head.bias": (_LABEL,),
        "root_label": (_LABEL,),
        "labeller": (2 * _LABEL, labels),
        "labeller.bias": (labels,),
    }
    for layer, width in enumerate((_WORD, both + _HINT)):
        shapes |= {
            f"lstm.{layer}.input": (width, 8 * _HIDDEN),
            f"lstm.{layer}.state": (2, _HIDDEN, 4 * _HIDDEN),
            f"lstm.{layer}.bias": (8 * _HIDDEN,),
        }
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


class _Plain:
    """The same network for one sentence."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self.w = {name: values.astype(np.float64) for name, values in weights.items()}

    def linear(self, x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x @ self.w[name] + self.w[f"{name}.bias"]

    def word(self, form: str) -> NDArray[np.float64]:
        rows = _VOCABULARY.feature_rows(form)
        parts = [self.w[f"words.tables.{kind}"][row] for kind, row in enumerate(rows)]
        mixed = self.linear(np.concatenate(parts), "words.mix")
        normal: NDArray[np.float64] = (mixed - mixed.mean()) / np.sqrt(mixed.var() + 1e-5)
        return normal * self.w["words.norm"] + self.w["words.norm.bias"]

    def lstm(self, inputs: list[NDArray[np.float64]], layer: int) -> list[NDArray[np.float64]]:
        directions = []
        for side in (0, 1):
            gates = slice(side * 4 * _HIDDEN, (side + 1) * 4 * _HIDDEN)
            state, cell = np.zeros(_HIDDEN), np.zeros(_HIDDEN)
            states = []
            for x in inputs if side == 0 else inputs[::-1]:
                total = x @ self.w[f"lstm.{layer}.input"][:, gates] + self.w[f"lstm.{layer}.bias"][gates]
                i, f, g, o = np.split(total + state @ self.w[f"lstm.{layer}.state"][side], 4)
                cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
                state = _sigmoid(o) * np.tanh(cell)
                states.append(state)
            directions.append(states if side == 0 else states[::-1])
        return [np.concatenate(pair) for pair in zip(*directions, strict=True)]

    def analyse(self, forms: list[str]) -> tuple[list[int], list[int], list[int]]:
        first = self.lstm([self.word(form) for form in forms], 0)
        early = np.array([self.linear(state, "tagger") for state in first])
        odds = [np.exp(scores) / np.exp(scores).sum() for scores in early]
        seen = [np.concatenate([s, p @ self.w["tag_vectors"]]) for s, p in zip(first, odds, strict=True)]
        states = np.array(self.lstm(seen, 1))
        tags = early + (self.linear(states, "late_tagger") if "late_tagger" in self.w else 0)
        children = self.linear(np.maximum(self.linear(states, "arc_child"), 0), "arc_scores")
        parents = np.vstack([self.w["root_arc"], np.maximum(self.linear(states, "arc_head"), 0)])
        scores = children @ parents.T
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        heads = projective_heads(scores[None].astype(np.float32))[0].tolist()
        below = self.linear(states, "label_child")
        above = np.vstack([self.w["root_label"], self.linear(states, "label_head")])[heads]
        labels = self.linear(np.hstack([np.maximum(below + above, 0), below * above]), "labeller")
        root = _VOCABULARY.labels.index("root")
        labels[:, root] = [np.inf if head == 0 else -np.inf for head in heads]
        return [int(t.argmax()) for t in tags], heads, labels.argmax(axis=1).tolist()


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    "sentences",
    [
        [["dog"]],
        [["a", "dog"], ["The", "CAT"]],
        [["a", "dog", "runs", "a", "dog"], ["x-1", "dog", "dog", "runs", "Runs"], ["a", "a", "a", "a", "a"]],
        [["a", "dog", "runs", "a", "dog"], ["dog", "runs", "a"], ["runs", "A", "a"], ["The", "CAT"], ["dog"]],
    ],
)
@pytest.mark.parametrize("is_late", [True, False])
def test_the_network_is_what_it_says(sentences: list[list[str]], *, is_late: bool) -> None:
    """With or without a second layer that corrects the tags."""
    weights = _weights()
    if not is_late:
        weights = {name: values for name, values in weights.items() if not name.startswith("late_tagger")}
    network = Network(weights, _VOCABULARY)
    vectors = network.words(form for forms in sentences for form in forms)
    analysis = network.analyse(vectors, np.array([len(forms) for forms in sentences]))
    plain = [_Plain(weights).analyse(forms) for forms in sentences]
    tags, heads, labels = (list(chain.from_iterable(column)) for column in zip(*plain, strict=True))
    assert analysis.tolist() == [tags, heads, labels]


@pytest.mark.model
def test_company_does_not_change_an_analysis() -> None:
    """Sentences of all lengths go through the network together, and yet each is analysed as if it were alone."""
    network = network_from({name: (pipeline_path() / "parser" / name).read_bytes() for name in NETWORK_FILES})
    random = np.random.default_rng(5)
    known = list(network.vocabulary.rows[0])
    sentences = [random.choice(known[:400], size).tolist() for size in random.integers(1, 40, 150)]
    together = analyse_sentences(network, chain.from_iterable(sentences), list(map(len, sentences)))
    end = 0
    for forms in sentences:
        start, end = end, end + len(forms)
        alone = analyse_sentences(network, forms, [len(forms)])
        assert alone.tolist() == together[:, start:end].tolist()


@pytest.mark.model
def test_company_does_not_change_a_words_inputs() -> None:
    """Words that are new come together, and each has the inputs, to the last bit, that it has alone."""
    files = {name: (pipeline_path() / "parser" / name).read_bytes() for name in NETWORK_FILES}
    together, alone = network_from(files).words, network_from(files).words
    forms = [*list(network_from(files).vocabulary.rows[0])[:200], "Zebracorn", "x-1", "DOG"]
    many = together(forms)
    for form, row in zip(forms, many.rows, strict=True):
        (own,), table = alone([form]).rows, alone([form]).table
        assert np.array_equal(many.table[:, row], table[:, own])


def test_a_full_table_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words read before keep their inputs, and a form has the same inputs in the next table."""
    monkeypatch.setattr(encoder_module, "_MOST_FORMS", 3)
    network = Network(_weights(), _VOCABULARY)
    before = network.words(["a", "dog", "runs"])
    inputs = before.table[:, before.rows].copy()
    after = network.words(["dog", "Zebra", "x-1", "dog", "CAT"])
    assert after.table is not before.table
    assert np.array_equal(before.table[:, before.rows], inputs)
    assert np.array_equal(after.table[:, after.rows[0]], inputs[:, 1])
    assert after.rows[0] == after.rows[3]


def test_a_network_goes_to_another_process() -> None:
    """spaCy sends a pipeline's parts to the processes of ``n_process``."""
    network = Network(_weights(), _VOCABULARY)
    network.words(["a", "dog"])
    copy = pickle.loads(pickle.dumps(network))
    lengths = np.array([3])
    ours, theirs = (one.analyse(one.words(["a", "dog", "runs"]), lengths) for one in (network, copy))
    assert ours.tolist() == theirs.tolist()


@pytest.mark.model
def test_labels_of_edges_that_are_the_same_are_kept() -> None:
    """Another tree's labels have the scores that they have when all of them are computed."""
    network = network_from({name: (pipeline_path() / "parser" / name).read_bytes() for name in NETWORK_FILES})
    forms = ["a", "dog", "runs", "on", "grass", "dogs", "run", "fast"]
    lengths = np.array([5, 3])
    read = network._read(network.words(forms), lengths)
    rows = np.array([0, 0, 1])
    own = read.heads[rows]
    for row, word in ((0, 0), (2, 1)):
        other = own.copy()
        other[row, word] = next(head for head in (3, 1) if head not in (own[row, word], word + 1))
        kept = read.labels[[0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7]]
        computed = network.label_scores(read.scored, rows, other)
        np.testing.assert_allclose(network.label_scores(read.scored, rows, other, (kept, own)), computed, rtol=1e-5)
        assert not np.allclose(computed, network.label_scores(read.scored, rows, own))


@pytest.mark.model
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory in their own way")
def test_the_memory_of_a_batch_is_kept_for_the_next_one() -> None:
    """Pages that each batch fetches anew cost a twentieth of the time; in a process of its own, whose memory is fresh.

    Arrays of sentences with twice as many words pass the 32 MiB from which the system never keeps memory.
    """
    program = """
import resource
from collections import deque
from spicegraph_parser import load_pipeline
texts = ["a dog runs on grass near trees and " * (number % 2 + 1) + str(number) for number in range(1200)]
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    deque(load_pipeline().parse(texts), maxlen=0)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2_000  # 20,800 where nothing is kept


def test_features_of_a_word() -> None:
    assert features("T-Shirt2") == ("t-shirt2", "irt2", "rt2", "t2", "t-s", "mixed+digit+hyphen")
    assert [features(word)[-1] for word in ("dog", "Dog", "DOG", "dOG", "A", "3")] == [
        *("lower", "title", "upper", "mixed", "title", "lower+digit")
    ]


def test_vocabulary_round_trip() -> None:
    assert Vocabulary.from_lists(_VOCABULARY.to_lists()) == _VOCABULARY
    assert _VOCABULARY.feature_rows("zzz")[0] == 0


def test_tables_of_features_take_a_byte_per_weight() -> None:
    """They are most of a network, and every worker process has them; what is looked up is as it was."""
    data = (pipeline_path() / "parser" / NETWORK_FILES[0]).read_bytes()
    stored, whole = stored_weights(data), read_weights(data)
    assert sum(values.nbytes for values in stored.values()) < sum(values.nbytes for values in whole.values()) / 1.9
    tables = [f"words.tables.{at}" for at in range(len(KINDS))]
    assert {stored[name].dtype for name in tables} == {np.dtype(np.int8)}
    vocabulary = Vocabulary.from_lists(json.loads((pipeline_path() / "parser" / NETWORK_FILES[1]).read_bytes()))
    forms = ["a", "Dog", "zzyzx", "skateboards"]
    compact, floats = (Network(weights, vocabulary).words(forms) for weights in (stored, whole))
    assert np.array_equal(compact.table[:, compact.rows], floats.table[:, floats.rows])


def test_the_second_layer_may_read_less_of_the_first() -> None:
    """It reads numbers that states are turned into: the same as reading the states by the product of both."""
    weights, narrow = _weights(), np.random.default_rng(4).normal(size=(2 * _HIDDEN, 3)).astype(np.float32)
    of_states, hints = np.split(weights["lstm.1.input"], [3]), weights["lstm.1.input"][-_HINT:]
    less = weights | {"narrow": narrow, "lstm.1.input": np.concatenate([of_states[0], hints])}
    same = weights | {"lstm.1.input": np.concatenate([narrow @ of_states[0], hints])}
    layout = Layout.of(np.array([3, 2]))
    forms = ["a", "dog", "runs", "a", "dog"]
    (states, tags), (wanted, wanted_tags) = (
        encoder.encode(encoder.words(forms), layout) for encoder in (Encoder(w, _VOCABULARY) for w in (less, same))
    )
    assert np.allclose(states, wanted, atol=1e-5)
    assert np.array_equal(tags, wanted_tags)


def test_words_of_a_style_are_read_with_its_biases() -> None:
    """Sentences of several styles go through together, and each has the states that its own biases give."""
    weights, random = _weights(), np.random.default_rng(6)
    shapes = {f"lstm.{layer}.styles": (3, weights[f"lstm.{layer}.bias"].size) for layer in (0, 1)}
    shifts = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    layout, forms, styles = (
        Layout.of(np.array([3, 2, 2])),
        ["a", "dog", "runs", "a", "dog", "a", "dog"],
        [2] * 3 + [1] * 4,
    )
    encoder = Encoder(weights | shifts, _VOCABULARY)
    states, tags = encoder.encode(encoder.words(forms, np.array(styles)), layout)
    for style in (1, 2):
        biases = {
            f"lstm.{layer}.bias": weights[f"lstm.{layer}.bias"] + shifts[f"lstm.{layer}.styles"][style]
            for layer in (0, 1)
        }
        plain = Encoder(weights | biases, _VOCABULARY)
        wanted, wanted_tags = plain.encode(plain.words(forms), layout)
        own = np.array(styles)[layout.place] == style
        assert np.allclose(states[own], wanted[own], atol=1e-5)
        assert np.array_equal(tags[own], wanted_tags[own])
    plain = Encoder(weights, _VOCABULARY)  # has one style for all
    (states, _), (wanted, _) = (plain.encode(plain.words(forms, own), layout) for own in (np.array(styles), None))
    assert np.array_equal(states, wanted)


def test_matrices_may_be_stored_as_integers_with_a_scale_per_row() -> None:
    data = io.BytesIO()
    rows = np.array([[1, -2], [3, 4]], dtype=np.int8)
    scale = np.array([[0.5], [2.0]], dtype=np.float16)
    arrays = {
        name: own for kind in ("matrix", "words.tables.0") for name, own in ((kind, rows), (f"{kind}.scale", scale))
    }
    np.savez(data, allow_pickle=False, **arrays)
    found = stored_weights(data.getvalue())
    assert found["matrix"].tolist() == [[0.5, -1.0], [6.0, 8.0]]
    assert found["matrix"].dtype == np.float32
    assert found["words.tables.0"].tolist() == rows.tolist()
    assert set(found) == {"matrix", "words.tables.0", "words.tables.0.scale"}


def test_long_sentences_are_cut_and_ranges_follow_each_other() -> None:
    """Sentences beyond 128 words and lists beyond 32 are parsed in parts; of starts and lengths all are counted."""
    assert cut_sentences(["dog"] * 131, [3, 128]) == [3, 128]
    assert cut_sentences(["dog"] * 203, [3, 200]) == [3, 64, 64, 64, 8]
    assert cut_sentences([*["dog"] * 60, ",", *["dog"] * 100], [161]) == [61, 64, 36]
    assert cut_sentences([*["dog"] * 50, "and", *["dog"] * 100], [151]) == [50, 64, 37]
    assert cut_sentences(["a", "dog", ","] * 11, [33]) == [30, 3]
    assert cut_sentences(["a", "big", "dog", ","] * 9, [36]) == [36]
    assert ranges(np.array([5, 0]), np.array([2, 3])).tolist() == [5, 6, 0, 1, 2]
