"""Smoothed sentence BLEU: mteval-v13a's smoothing, also for candidates shorter than n."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU as SacreBleu

from spicegraph_scorer.core.tokens import TokenizedItem
from spicegraph_scorer.metrics.bleu import SentenceBleu, bleu_statistics

LONG = st.lists(st.sampled_from("abcdef"), min_size=4, max_size=9).map(tuple)


def score(candidate, *references):
    statistics = bleu_statistics([TokenizedItem(tuple(candidate), tuple(map(tuple, references)))])
    return [score.each[0] for score in SentenceBleu().total(statistics)]


@given(LONG, st.lists(LONG, min_size=1, max_size=3))
def test_equals_sacrebleu(candidate, references):
    """sacreBLEU smooths the same way; it calls a candidate without any common word 0, mteval does not."""
    if not any(set(candidate) & set(reference) for reference in references):
        return
    oracle = SacreBleu(tokenize="none", smooth_method="exp", effective_order=False)
    wanted = oracle.sentence_score(" ".join(candidate), [" ".join(reference) for reference in references])
    assert score(candidate, *references)[3] == pytest.approx(wanted.score / 100, abs=1e-9)


def test_orders_without_a_match_halve():
    """One of four words matches: 1/4, then half a match of 3, a quarter of 2, an eighth of 1."""
    precisions = [1 / 4, 1 / 2 / 3, 1 / 4 / 2, 1 / 8 / 1]
    wanted = [math.prod(precisions[:n]) ** (1 / n) for n in range(1, 5)]
    assert score("axyz", "abcd") == pytest.approx(wanted, abs=1e-12)


def test_a_short_candidate_does_not_gain():
    """Two words of two match; orders 3 and 4 have a denominator of 1 instead of 0, and are smoothed."""
    brevity = math.exp(1 - 3 / 2)
    wanted = [brevity, brevity, brevity * 0.5 ** (1 / 3), brevity * (0.5 * 0.25) ** (1 / 4)]
    assert score("ab", "abc") == pytest.approx(wanted, abs=1e-12)
    assert wanted == sorted(wanted, reverse=True)


def test_no_common_word_scores_above_nothing():
    assert 0 < score("abcd", "efgh")[3] < 0.2
    assert score("", "efgh") == [0, 0, 0, 0]


def test_closest_reference_length_of_two_is_the_shorter():
    """Three words lie as close to two as to four: no penalty."""
    assert score("abc", "ab", "abcd")[0] == pytest.approx(1)


def test_the_corpus_value_is_the_mean():
    items = [TokenizedItem(("a", "b"), (("a", "c"),)), TokenizedItem(("a",), (("a",),))]
    for value in SentenceBleu().total(bleu_statistics(items)):
        assert value.value == pytest.approx(sum(value.each) / 2)


def test_name_and_signature_are_its_own():
    assert SentenceBleu().name == "bleu-sentence"
    assert "mteval" in SentenceBleu().signature()["smoothing"]
    assert [value.name for value in SentenceBleu().total([])] == [f"SentenceBleu_{n}" for n in range(1, 5)]
