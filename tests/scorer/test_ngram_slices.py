"""N-grams are counted a slice of the items at a time; no score and no frequency depends on the slices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_scorer.core import ngrams as counts
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import TokenizedItem, TokenizedItems
from spicegraph_scorer.metrics.bleu import bleu_statistics
from spicegraph_scorer.metrics.cider import CiderWarning, cider_statistics

pytestmark = pytest.mark.slow

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "2\u00a01/2", "\u00a0"]), max_size=6).map(tuple)
ITEMS = st.lists(
    st.builds(TokenizedItem, WORDS, st.lists(WORDS, min_size=1, max_size=3).map(tuple)), min_size=2, max_size=12
)
FREQUENCIES = DocumentFrequencies.from_references([[("a", "b"), ("c",)], [("b", "c", "d")], [("a", "a")]])


def values(items):
    return (
        bleu_statistics(items),
        cider_statistics(items),
        cider_statistics(items, variant="CIDEr"),
        cider_statistics(items, frequencies=FREQUENCIES),
        cider_statistics(items, variant="CIDEr", frequencies=FREQUENCIES),
        DocumentFrequencies.from_references([item.references for item in items]).digest,
        dict(DocumentFrequencies.of_items(TokenizedItems.of(items)).ngrams()),
    )


@given(ITEMS, st.integers(1, 5))
def test_values_do_not_depend_on_the_slices(items, size):
    whole = values(items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "_SLICE", size)
        assert values(items) == whole


@given(ITEMS)
def test_frequencies_are_those_of_counting(items):
    """Each image counts once for an n-gram, in however many of its references it is."""
    found = dict(DocumentFrequencies.from_references([item.references for item in items]).ngrams())
    images = [
        {
            " ".join(words[place : place + n])
            for reference in item.references
            for words in [" ".join(reference).split()]
            for n in range(1, 5)
            for place in range(len(words) - n + 1)
        }
        for item in items
    ]
    assert found == {ngram: sum(ngram in image for image in images) for ngram in set().union(*images)}


def test_a_single_image_is_said_once_however_many_slices(monkeypatch):
    monkeypatch.setattr(counts, "_SLICE", 1)
    items = [TokenizedItem(("a",), (("a",),)), TokenizedItem(("b",), (("b",),))]
    one = DocumentFrequencies.from_references([[("a",)]])
    with pytest.warns(CiderWarning) as said:
        assert cider_statistics(items, frequencies=one) == [None, None]
    assert len(said) == 1


def test_no_items():
    assert bleu_statistics([]) == cider_statistics([]) == []
    assert DocumentFrequencies.from_references([]).images == 0
