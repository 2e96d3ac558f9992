"""What one description adds to another and removes from it, judged by references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import Item, score_tuples
from spicegraph_scorer.metrics.spice.difference import difference, differences
from spicegraph_scorer.metrics.spice.metric import Spice

_TUPLES = st.lists(
    st.lists(st.sampled_from(["man", "sofa", "couch", "dog", "red", "ride", "grey"]), min_size=1, max_size=3),
    max_size=6,
)
_REFERENCES = [["man"], ["couch"], ["couch", "red"], ["man", "couch", "ride"]]


class Words:
    """Facts without a parser: every word is an object."""

    signature = "words-1"

    def facts(self, texts):
        return (tuple(Fact((word,), "objects", ((0,),)) for word in text.split()) for text in texts)


def _between(before, after, references=_REFERENCES):
    return difference(*(score_tuples(tuples, [references]).statistic.match for tuples in (before, after)))


def test_each_change_is_told_by_its_kind():
    found = _between(
        [["man"], ["dog"], ["sofa"], ["sofa", "red"]], [["man"], ["cat"], ["couch"], ["man", "couch", "ride"]]
    )
    printed = {name: [each.strings for each in tuples] for name, tuples in found.tuples().items()}
    assert printed == {
        "added_right": [("man", "ride", "couch")],
        "added_wrong": [("cat",)],
        "removed_right": [("sofa", "red")],
        "removed_wrong": [("dog",)],
        "covered": [("man", "ride", "couch")],
        "uncovered": [("couch", "red")],
    }
    assert (found.precision, found.recall, found.net, found.gain) == (0.5, 1.0, 0, 0.0)


def test_other_words_for_the_same_change_nothing():
    found = _between([["sofa"], ["sofa", "red"]], [["couch"], ["couch", "red"]])
    assert not any(found.tuples().values())
    assert (found.precision, found.net, found.gain) == (None, 0, 0.0)


def test_where_nothing_is_to_mend_recall_is_undefined():
    assert _between(_REFERENCES, _REFERENCES).recall is None


@given(_TUPLES, _TUPLES)
def test_the_way_back_undoes_the_changes(before, after):
    there, back = _between(before, after), _between(after, before)
    assert there.gain == -back.gain
    assert there.net == -back.net
    assert (there.added_right, there.added_wrong) == (back.removed_right, back.removed_wrong)
    assert there.covered == back.uncovered
    for value in (there.precision, there.recall):
        assert value is None or 0 <= value <= 1


def test_references_must_be_the_same():
    matches = [score_tuples([["man"]], [[[word]]]).statistic.match for word in ("man", "dog")]
    with pytest.raises(InputError, match="same references"):
        difference(*matches)


def test_systems_are_compared_item_by_item_and_summed():
    references = ("man dog", "man grass")
    first = [Item(1, "man cat", references), Item(2, "dog", references)]
    second = [Item(2, "dog bird", references), Item(1, "man dog", references)]
    found = differences(first, second, Spice(Words()))
    assert [item.net for item in found.items] == [2, -1]
    corpus = found.corpus()
    assert corpus["gain"] == pytest.approx(sum(item.gain for item in found.items) / 2)
    assert (corpus["added_right"], corpus["added_wrong"], corpus["removed_wrong"], corpus["net"]) == (1, 1, 1, 1)
    assert (corpus["precision"], corpus["recall"]) == (2 / 3, 2 / 5)
    assert [row["image_id"] for row in found.to_dict()["items"]] == [1, 2]
