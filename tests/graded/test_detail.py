"""``detail``: claims give back the scores, and neither order, splitting nor repetition moves them."""

from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded.detail.claims import MISSING, SUPPORT_EXPONENT, aspect_of, is_checkable
from spicegraph_graded.detail.metric import Detail, DetailStatistic, description_share
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_graded.spice_g.verdicts import judge
from spicegraph_parser import load_pipeline
from spicegraph_scorer import Item
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.tokens import Corpus

pytestmark = pytest.mark.model

SENTENCES = (
    "A man in a red shirt rides a brown horse.",
    "Two dogs run behind them on the beach.",
    "The sky is blue.",
    "A small boat lies near the water.",
)
CANDIDATE = "A man rides a white horse along the beach. A dog runs behind him. There are three umbrellas."


@cache
def _metric() -> Detail:
    source = FactCache(load_pipeline())
    return Detail.of(Resources(lambda: source))


def _detail(candidate: str, *references: str) -> DetailStatistic:
    return _metric().collect(Corpus((Item(1, candidate, references),)))[0]


def test_claims_give_back_the_scores() -> None:
    """The weighted means of the claims' values are the scores; every claim is within bounds and named by its tuple."""
    statistic = _detail(CANDIDATE, " ".join(SENTENCES))
    claims = statistic.evidence
    assert claims is not None
    for side, score in ((claims.candidate, statistic.correctness), (claims.references, statistic.coverage)):
        assert sum(c.weight * c.value for c in side) / sum(c.weight for c in side) == pytest.approx(score)
        assert [claim.fact for claim in side] == list(range(len(side)))
        assert all(0 <= claim.value <= 1 and 0 <= claim.probability <= 1 for claim in side)
    assert {claim.status for claim in claims.references} == {MISSING, "supported"}
    assert all(CANDIDATE[start:end].strip() for claim in claims.candidate for start, end in claim.spans)
    assert set(claims.to_dict()) == {"candidate", "references"}


def test_another_colour_is_contradicted_and_holds_nothing() -> None:
    """A claim that the references exclude has the value 0."""
    claims = _detail("A man rides a white horse.", SENTENCES[0]).evidence
    assert claims is not None
    white = next(claim for claim in claims.candidate if claim.words == ("horse", "white"))
    assert (white.aspect, white.status, white.value) == ("colour", "contradicted", 0.0)


@given(st.permutations(SENTENCES))
def test_the_order_of_references_does_not_matter(sentences: list[str]) -> None:
    given_order, other_order = _detail(CANDIDATE, *SENTENCES), _detail(CANDIDATE, *sentences)
    expected = pytest.approx((given_order.correctness, given_order.coverage))
    assert (other_order.correctness, other_order.coverage) == expected


@given(st.permutations(SENTENCES), st.integers(0, len(SENTENCES)))
def test_splitting_of_references_matters_little(sentences: list[str], cut: int) -> None:
    """References say nearly the same as one text, as two, or as a list of facts: weights differ a little."""
    whole = _detail(CANDIDATE, " ".join(SENTENCES))
    parts = [" ".join(part) for part in (sentences[:cut], sentences[cut:]) if part]
    for references in (parts, sentences):
        split = _detail(CANDIDATE, *references)
        assert (split.correctness, split.coverage) == pytest.approx((whole.correctness, whole.coverage), abs=0.02)


def test_saying_it_again_raises_nothing() -> None:
    """A description whose sentences are said twice has the scores of the description."""
    once, twice = _detail(CANDIDATE, *SENTENCES), _detail(f"{CANDIDATE} {CANDIDATE}", *SENTENCES)
    assert twice.correctness <= once.correctness + 1e-6
    assert twice.coverage <= once.coverage + 1e-6


@pytest.mark.parametrize("mark", [". ", " and ", "; "])
def test_where_sentences_end_matters_little(mark: str) -> None:
    """To join the sentences of a description changes its scores by less than .04, and raises none by more than .01."""
    parts = [part.strip(" .") for part in CANDIDATE.split(". ")]
    plain, joined = _detail(CANDIDATE, *SENTENCES), _detail(mark.join(parts) + ".", *SENTENCES)
    for before, after in ((plain.correctness, joined.correctness), (plain.coverage, joined.coverage)):
        assert after == pytest.approx(before, abs=0.04)
        assert after <= before + 0.01


def test_an_exchanged_word_costs_more_than_splitting_the_references() -> None:
    """A description is held against its own sentences, as one text or as one each."""
    text = " ".join(SENTENCES)
    honest = [_detail(text, *references).correctness for references in ((text,), SENTENCES)]
    foil = [_detail(text.replace("horse", "zebra"), *references).correctness for references in ((text,), SENTENCES)]
    assert min(honest) - max(foil) > 0.02


def test_an_unseen_colour_is_likelier_wrong_than_another_unseen_quality() -> None:
    """The odds of a colour that no reference has are e times those of its verdict."""
    claims = _detail("A purple horse.", "A man rides a horse.").evidence
    assert claims is not None
    purple = next(claim for claim in claims.candidate if claim.words == ("horse", "purple"))
    match = _metric().graded.collect(Corpus((Item(1, "A purple horse.", ("A man rides a horse.",)),)))[0].match
    assert match is not None
    verdicts = judge(match, "A purple horse.", _metric().graded.vectors)
    verdict = next(word.probability for word in verdicts.words if word.word == "purple")
    expected = math.e * verdict / (1 - verdict + math.e * verdict)
    right = max(float(match.candidate.support[purple.fact]), 0.05) ** SUPPORT_EXPONENT * (1 - expected)
    assert purple.probability == pytest.approx(1 - right)


def test_a_list_of_unseen_objects_lowers_correctness() -> None:
    """Objects that no reference has cost correctness."""
    padded = f"{CANDIDATE} There is a pizza, a laptop, a giraffe, a toothbrush and a traffic light."
    assert _detail(padded, *SENTENCES).correctness < _detail(CANDIDATE, *SENTENCES).correctness


def test_nothing_said_scores_nothing() -> None:
    """An empty candidate has neither correctness nor coverage."""
    statistic = _detail("", *SENTENCES)
    assert (statistic.correctness, statistic.both) == (0.0, 0.0)
    assert _metric().compact(statistic).evidence is None


def test_aspects() -> None:
    """A claim's aspect is that of its label."""
    said = [("dog",), ("dog", "two"), ("dog", "happy"), ("dog", "chase", "cat"), ("dog", "under", "table")]
    assert [aspect_of(words) for words in said] == ["object", "count", "attribute", "action", "place"]
    assert [aspect_of(words) for words in (["dog", "red"], ["dog", "have", "ear"])] == ["colour", "relation"]
    words = ("dog", "eyelash", "red", "achievement", "scene")
    assert [is_checkable([word], load_vectors()) for word in words] == [True, True, True, False, False]


CAPTIONS = ("A brown dog lies on a big couch by the window.", "Two dogs are lying on a sofa.")
COLOURS = ("white", "black", "grey", "brown", "orange", "yellow", "green")


def test_a_caption_has_the_score_of_spice_g() -> None:
    """Between captions ``Detail`` is SPICE-G, however many sentences; against a description it is the harmonic mean."""
    caption = "A black dog lies on a couch."
    for said in (caption, f"{caption} It is there. A man smiles."):
        graded = _metric().graded.collect(Corpus((Item(1, said, CAPTIONS),)))[0]
        assert _detail(said, *CAPTIONS).both == graded.f1("All")
    described = _detail(
        caption, " ".join([*CAPTIONS, *(f"A {colour} cat sits on {colour} grass." for colour in COLOURS)])
    )
    total = described.correctness + described.coverage
    assert described.both == pytest.approx(2 * described.correctness * described.coverage / total)


def test_the_hand_over_begins_with_descriptions_and_is_not_gained_by_repeating() -> None:
    """The share grows with the words of different sentences, and is all for references of more than 40 words."""
    word, caption = "dog ", "A dog runs."
    assert description_share(40 * word, [caption]) == 0
    assert description_share(41 * word, [caption]) == pytest.approx(1 - 3 / 41)
    assert description_share(41 * word, [40 * word]) < description_share(80 * word, [40 * word]) < 1
    assert description_share(" ".join(20 * [caption]), [caption]) == 0
    assert description_share(caption, [41 * word]) == 1


@pytest.mark.parametrize("said", ["There is a man.", "It is there.", "It is a photo.", "A black dog lies.", "."])
def test_a_second_sentence_does_not_profit_from_the_hand_over(said: str) -> None:
    caption = "A black dog lies on a couch by the window."
    assert _detail(f"{caption} {said}", *CAPTIONS).both <= _detail(caption, *CAPTIONS).both + 0.001
