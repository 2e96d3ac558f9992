"""The order of words in SPICE-G: what is learned from captions, and what it leaves of a candidate's score."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded.spice_g.matching import TextMatch
from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_graded.spice_g.texts import WordOrder, learn_order, words_of_text
from spicegraph_graded.spice_g.vectors import Vectors, VectorTable, load_table, load_vectors
from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CAPTIONS = ["A red bus on a street.", "a blue bus on a road", "two red dogs on a sofa", "a dog on a red sofa"] * 20
_WORDS = st.sampled_from(["a", "the", "red", "dog", "dogs", "on", "two", "of", "sofa", "running", "zzz", "7"])
_TEXTS = st.lists(_WORDS, max_size=8).map(" ".join)


@dataclass(frozen=True)
class Words:
    """A source of facts in which every word is an object."""

    signature: str = "words"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            yield tuple(Fact((word,), "", ()) for word in text.split())


@given(st.text(st.characters(max_codepoint=127)))
def test_words_are_letters_digits_and_inner_signs_in_lower_case(text: str) -> None:
    assert words_of_text(text) == re.findall(r"\w+(?:['-]\w+)*", text.lower())


@pytest.fixture(scope="module")
def bundled() -> WordOrder:
    order = load_table().order
    assert order is not None
    return order


def test_words_flow_as_they_do_in_the_captions() -> None:
    order = learn_order(CAPTIONS)
    assert order.flow("a red dog on a street") > 2
    assert order.flow("street a on dog red a") < -2


def test_case_and_punctuation_do_not_matter(bundled: WordOrder) -> None:
    assert bundled.flow("A man, on a RED couch.") == bundled.flow("a man on a red couch")


def test_rare_words_are_known_by_their_endings_and_others_not_at_all() -> None:
    order = learn_order(CAPTIONS, frequent=3, endings=1)
    assert set(order.kinds) == {"", "-", "a", "on", "red", "-fa"}
    assert order.flow("a alfalfa on a road") == order.flow("a sofa on a road") != order.flow("a dog on a road")
    assert order.flow("a zebra on a road") == order.flow("a dog on a road")


@given(texts=st.lists(_TEXTS, max_size=6))
def test_any_captions_give_a_table_and_their_sequence_does_not_matter(texts: list[str]) -> None:
    order, backwards = learn_order(texts), learn_order(reversed(texts))
    assert order.kinds == backwards.kinds
    assert np.array_equal(order.information, backwards.information)
    assert all(0 <= order.share(text, []) <= 1 for text in texts)


@given(candidate=_TEXTS, references=st.lists(_TEXTS, max_size=4))
def test_no_caption_loses_anything_beside_a_reference_like_it(candidate: str, references: list[str]) -> None:
    order = learn_order(CAPTIONS)
    share = order.share(candidate, references)
    assert 0 < share <= order.share(candidate, [*references, candidate]) == 1


@pytest.mark.parametrize("text", ["", "dog", "  ?! ", "犬", "street"])
def test_what_has_no_order_keeps_its_score(bundled: WordOrder, text: str) -> None:
    assert bundled.share(text, []) == 1


@pytest.mark.parametrize(
    "text", ["Ein Hund liegt auf dem Sofa.", "no acute cardiopulmonary abnormality", "un perro duerme en el sofá"]
)
def test_captions_of_other_kinds_are_not_taken_for_disorder(bundled: WordOrder, text: str) -> None:
    """Words that the table does not know say little, and references of the same kind say how little to expect."""
    assert bundled.share(text, [text.replace("o", "e")]) > 0.9


def test_disorder_costs_precision_recall_and_every_category(bundled: WordOrder) -> None:
    metric, plain = (SpiceG(Words(), vectors=replace(load_vectors(), order=order)) for order in (bundled, None))
    items = Corpus((Item(1, "stands a red bus the street on", ("a red bus stands on the street",)),))
    scored, without = (one.collect(items)[0] for one in (metric, plain))
    share = bundled.share(items.items[0].candidate, items.items[0].references)
    assert 0 < share < 1
    for category in scored.weights:
        mine, theirs = scored.scores(category), without.scores(category)
        for key in ("f", "pr", "re"):
            value = getattr(theirs, key)
            assert getattr(mine, key) == (value and pytest.approx(value * share))


def test_an_explanation_says_what_the_order_leaves(bundled: WordOrder) -> None:
    metric = SpiceG(Words())
    item = Item(1, "stands a red bus the street on", ("a red bus stands on the green street",))
    statistic = metric.collect(Corpus((item,)))[0]
    found = metric.explain(statistic)
    assert found.order == found.to_dict()["order"] == bundled.share(item.candidate, item.references)
    assert found.changes
    for change in found.changes:
        assert change.score == pytest.approx(statistic.weights[ALL].f1 + change.gain)
        assert change.score <= found.order


def test_graphs_alone_have_no_order() -> None:
    metric = SpiceG(Words())
    graph = metric.graph(metric.source.facts(["couch a on red dog"]))
    assert metric.compare(graph, graph).weights[ALL].f1 == pytest.approx(1)
    assert metric.compare(graph, graph, texts=TextMatch(order=0.25)).weights[ALL].f1 == pytest.approx(0.25)


def test_a_table_keeps_its_order_in_its_file_its_signature_and_another_process(tmp_path: Path) -> None:
    learned = np.eye(3, dtype=np.int8)
    table = VectorTable("toy", 9, ("dog", "cat", "bus"), np.array([3, 4, 5], np.int32), learned, learn_order(CAPTIONS))
    table.write(tmp_path / "toy.npz")
    read = VectorTable.read(tmp_path / "toy.npz")
    assert read.signature == table.signature != replace(table, order=None).signature
    sent = pickle.loads(pickle.dumps(Vectors.of(read)))
    assert read.order is not None
    assert table.order is not None
    assert sent.order.flow("a red dog") == table.order.flow("a red dog")


def test_a_table_without_order_is_read_as_one(tmp_path: Path) -> None:
    table = VectorTable("toy", 9, ("dog", "cat", "bus"), np.array([3, 4, 5], np.int32), np.eye(3, dtype=np.int8))
    table.write(tmp_path / "toy.npz")
    assert VectorTable.read(tmp_path / "toy.npz").order is None


@pytest.mark.parametrize("kinds", [("", "a"), ("", "-", "a")])
def test_a_damaged_order_is_refused(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    order = WordOrder(("", "-"), np.zeros((2, 2), np.int8))
    table = VectorTable("toy", 9, ("dog", "cat", "bus"), np.array([3, 4, 5], np.int32), np.eye(3, dtype=np.int8), order)
    path = tmp_path / "toy.npz"
    table.write(path)
    with np.load(path) as arrays:
        damaged = dict(arrays) | {"kinds": np.frombuffer("\n".join(kinds).encode(), np.uint8)}
    with path.open("wb") as file:
        np.savez(file, **damaged)
    with pytest.raises(DataError, match="cannot be read as a table of vectors"):
        VectorTable.read(path)
