"""The table of meanings, and what formula 5 of SPICE-G makes of it."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_graded.spice_g.texts import Meaning, MeaningTable, likeness, load_meaning, meaning_of
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import DataError, InputError
from spicegraph_scorer import Corpus, Item, score
from spicegraph_scorer.core.facts import FactCache, FunctionSource
from spicegraph_scorer.readers import read_items

if TYPE_CHECKING:
    from collections.abc import Iterable

COCO = Path(__file__).parents[2] / "examples" / "coco"
WORDS = ("dog", "cat", "red", "the")
TOY = MeaningTable.of("toy", WORDS, np.array([[2, 0, 0], [1, 1, 0], [0, 1, -1], [0, 0, 0.01]], np.float32))
_WORD = st.sampled_from(["man", "dog", "horse", "red", "blue", "rides", "on", "a", "the", "puppies", "zzz", "no"])
_TEXTS = st.lists(_WORD, min_size=1, max_size=9).map(" ".join)


def test_a_table_comes_back_as_it_was_written(tmp_path: Path) -> None:
    TOY.write(tmp_path / "toy.npz")
    again = MeaningTable.read(tmp_path / "toy.npz")
    assert (again.signature, again.words) == (TOY.signature, WORDS)
    assert (again.vectors == TOY.vectors).all()
    assert Meaning.of(again).vectors[:4] == pytest.approx(
        np.array([[2, 0, 0], [1, 1, 0], [0, 1, -1], [0, 0, 0.01]]), 1e-6
    )


def test_what_is_no_table_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "toy.npz"
    with pytest.raises(DataError, match=r"toy.npz: cannot be read as a table of meanings \(No such file"):
        Meaning.read(path)
    path.write_text("dog 1 2 3")
    with pytest.raises(DataError, match=r"cannot be read as a table of meanings \(it is something else\)"):
        Meaning.read(path)
    replace(TOY, scales=TOY.scales[:3]).write(path)
    with pytest.raises(DataError, match="of another version, or damaged"):
        Meaning.read(path)


def test_only_a_meaning_is_taken_as_one() -> None:
    assert meaning_of(None) is load_meaning()
    with pytest.raises(InputError, match=r"expected a Meaning, as Meaning\.read returns it; got Vectors"):
        meaning_of(load_vectors())


def test_the_bundled_table_stays_one_object_in_another_process() -> None:
    assert pickle.loads(pickle.dumps(load_meaning())) is load_meaning()


def test_near_captions_are_alike_and_others_are_not() -> None:
    texts = ("a dog runs on the grass", "a puppy is running across a lawn", "a man is playing the guitar on stage")
    vectors = load_meaning().of_texts(texts)
    near, far = vectors[1] @ vectors[0], vectors[2] @ vectors[0]
    assert near > 0.6 > 0.3 > far


@given(_TEXTS, st.randoms(use_true_random=False))
def test_the_order_of_words_changes_no_bit(text: str, dice: object) -> None:
    words = text.split()
    dice.shuffle(words)  # type: ignore[attr-defined]
    one, other = load_meaning().of_texts([text, " ".join(words)])
    assert (one == other).all()


@given(st.lists(_TEXTS, min_size=1, max_size=6))
def test_a_text_points_where_it_does_alone(texts: list[str]) -> None:
    meaning = load_meaning()
    together = meaning.of_texts([*texts, ""])
    assert not together[-1].any()
    for text, vector in zip(texts, together, strict=False):
        assert (meaning.of_texts([text])[0] == vector).all()


@given(_TEXTS, st.lists(_TEXTS, min_size=1, max_size=4))
def test_the_shares_of_words_add_up_on_both_sides(candidate: str, references: list[str]) -> None:
    found = likeness(load_meaning(), candidate, references)
    assert 0 <= found.value <= 1 + 1e-6
    assert sum(share for _, share in found.candidate) == pytest.approx(found.value, abs=1e-5)
    assert sum(share for _, share in found.references) == pytest.approx(found.value, abs=1e-5)
    assert [word for word, _ in found.candidate] == candidate.split()


def test_unknown_words_say_nothing() -> None:
    assert likeness(load_meaning(), "qwxyz", ["a dog"]).value == 0
    assert likeness(load_meaning(), "a dog", ["qwxyz"]).value == 0


REFERENCES = ("A man in a red shirt is riding a brown horse.", "A man rides a horse next to two dogs.")
CHANGED = {
    "roles": ("a man is riding a horse", "a horse is riding a man"),
    "colour": ("a man in a red shirt rides a brown horse", "a man in a blue shirt rides a brown horse"),
    "count": ("a man rides a horse next to two dogs", "a man rides a horse next to five dogs"),
}


def costs(changes: Iterable[tuple[str, str, tuple[str, ...]]]) -> tuple[list[float], list[float]]:
    """Return what each change of a caption costs in formulas 5 and 4."""
    texts = [(text, references) for before, after, references in changes for text in (before, after)]
    corpus = Corpus(tuple(Item(number, *one) for number, one in enumerate(texts)))
    metric = SpiceG(FactCache(load_pipeline()), categories={}, evidence=False)
    found = []
    for one in (metric, replace(metric, meaning=None)):
        each = [value or 0.0 for value in one.total(one.collect(corpus))[0].each]
        found.append([before - after for before, after in zip(each[::2], each[1::2], strict=True)])
    return found[0], found[1]


@pytest.mark.model
@pytest.mark.parametrize("kind", CHANGED)
def test_what_the_graph_alone_can_see_costs_no_less_than_before(kind: str) -> None:
    """Swapped roles and contradicted colours and counts cost at least what they cost in formula 4."""
    ((new,), (old,)) = costs([(*CHANGED[kind], REFERENCES)])
    assert new >= old - 1e-9 > 0


@pytest.mark.model
def test_denials_cost_no_less_than_before() -> None:
    """Of 200 captions by people, "no dog" in place of "a dog", on average; and few cost nothing."""
    people = read_items(str(COCO / "human.json"), references=[str(COCO / "captions_without_first.json")]).items
    changes = [
        (text, changed, item.references)
        for item in people
        for text in [item.candidate.lower()]
        for changed in [re.sub(r"\ban? ", "no ", text, count=1)]
        if changed != text
    ]
    new, old = costs(changes)
    assert len(new) > 150
    assert fmean(new) >= fmean(old)
    assert sum(cost > 0 for cost in new) >= sum(cost > 0 for cost in old)


@pytest.mark.model
def test_without_a_table_the_graph_alone_is_scored() -> None:
    corpus = Corpus((Item(1, "A puppy runs on grass.", ("A dog is running on the lawn.",)),))
    whole = SpiceG(FactCache(load_pipeline()))
    graph = replace(whole, meaning=None)
    value, more = (one.total(one.collect(corpus))[0].value for one in (graph, whole))
    assert value == pytest.approx(0.4738, abs=5e-5)
    assert more > value  # type: ignore[operator]
    assert (graph.signature()["formula"], whole.signature()["formula"]) == ("4", "5")
    assert "meaning" not in graph.signature()
    assert whole.signature()["meaning"] == load_meaning().signature


@pytest.mark.model
def test_a_table_of_a_users_own_is_named() -> None:
    items = [Item(1, "a dog", ("a cat",)), Item(2, "a cat", ("a cat",))]
    result = score(items, ["spice-g"], meaning=Meaning.of(TOY))
    assert result.signature["metrics"]["spice-g"]["meaning"] == TOY.signature
    assert result.corpus != score(items, ["spice-g"]).corpus


@pytest.mark.model
def test_an_explanation_has_the_share_of_each_word() -> None:
    metric = SpiceG(load_pipeline())
    (statistic,) = metric.collect(Corpus((Item(1, "a dog on a couch", ("a puppy lies on a sofa",)),)))
    explained = metric.explain(statistic, changes=0)
    assert statistic.match is not None
    assert explained.meaning is not None
    assert explained.meaning.value == pytest.approx(statistic.match.texts.meaning, abs=1e-6)
    shares = dict(explained.meaning.candidate)
    assert min(shares["dog"], shares["couch"]) > 5 * abs(shares["on"])
    assert explained.to_dict()["meaning"]["candidate"][1] == ["dog", shares["dog"]]  # type: ignore[index, call-overload]
    assert replace(metric, meaning=None).explain(statistic, changes=0).meaning is None


def test_facts_alone_have_no_meaning_of_a_whole() -> None:
    source = FunctionSource.of_table("none", {"a dog": (), "a cat": ()})
    metric = SpiceG(source, texts=False)
    found = metric.collect(Corpus((Item(1, "a dog", ("a cat",)),)))
    assert fmean(value or 0.0 for value in metric.total(found)[0].each) == 0
    assert metric.signature()["texts"] == "unread"
