"""Human agreement on words: the counts, the model, and precision at human recall."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.parse import Caption, Parse, Word
from spicegraph_scorer.core.significance import Resampling
from spicegraph_studies.agreement.tagging import Tagged, tagged_words
from spicegraph_studies.agreement.words import (
    count_words,
    expected_point,
    fit,
    observed_point,
    operating_point,
    precision_at_recall,
    study_words,
    weights_of,
)

QUICK = Resampling(draws=200, seed=3)


def simulated(p, q, *, images=40_000, people=5, seed=0):
    generator = np.random.default_rng(seed)
    there = generator.random(images) < q
    return np.where(there, generator.binomial(people, p, size=images), 0)


def histogram(counts, people=5):
    return np.bincount(counts, minlength=people + 1).tolist()


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.2), (0.7, 0.05), (0.1, 0.6), (0.95, 0.01), (0.5, 1.0)])
def test_p_and_q_of_simulated_people_are_recovered_within_sampling_error(p, q):
    found = [fit(histogram(simulated(p, q, seed=seed))) for seed in range(20)]
    for name, true in (("p", p), ("q", q)):
        values = np.array([getattr(each, name) for each in found])
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - true) < 4 * error + 1e-4, (name, values.mean())


def test_recovered_recall_is_p_and_the_models_precision_is_the_observed_one():
    counts = histogram(simulated(0.4, 0.1))
    found = fit(counts)
    for references in (1, 2, 3, 4):
        observed, model = observed_point(counts, references), expected_point(found.p, references)
        assert observed.recall == pytest.approx(0.4, abs=0.01)
        assert observed.precision == pytest.approx(model.precision, abs=0.01)


def likelihoods(p, q, counts):
    """The log-likelihood of counts for each of many p and q."""
    people = len(counts) - 1
    total = 0.0
    for t, images in enumerate(counts):
        share = q * math.comb(people, t) * p**t * (1 - p) ** (people - t) + (1 - q if t == 0 else 0)
        total = total + images * np.log(np.maximum(share, 1e-300))
    return total


GRID = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 40), min_size=3, max_size=7))
def test_no_other_p_and_q_are_more_likely(counts):
    found = fit(counts)
    if found is None:
        assert not any(counts[1:])
        return
    best = float(likelihoods(np.float64(found.p), np.float64(found.q), counts))
    assert best >= likelihoods(*GRID, counts).max() - 1e-7 * (1 + abs(best))


@pytest.mark.parametrize(
    ("p", "references", "precision"),
    [
        (0.5, 4, 2 / (2 + 0.5**4)),
        (0.5, 1, 0.5),
        (0.2, 4, 0.8 / (0.8 + 0.8**4)),
        (1.0, 4, 1.0),
        (0.0, 4, None),
    ],
)
def test_worked_values_of_the_papers_formulas(p, references, precision):
    """Chen et al. 2015: recall is p and precision is pk / (pk + (1 - p)^k), whatever q is."""
    found = expected_point(p, references)
    assert found.recall == p
    assert found.precision == (precision if precision is None else pytest.approx(precision, abs=1e-12))


def brute_point(rows, references):
    """Hold every caption against every choice of other captions, as the paper does for one choice."""
    right = wrong = said = 0.0
    for row in rows:
        people = len(row)
        choices = [
            (held, [row[i] for i in others])
            for held in range(people)
            for others in itertools.combinations([i for i in range(people) if i != held], references)
        ]
        for held, others in choices:
            right += sum(others) * row[held] / len(choices)
            wrong += (sum(others) == 0 and row[held]) / len(choices)
            said += sum(others) / len(choices)
    return (right / said if said else None, right / (right + wrong) if right + wrong else None)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1, max_size=8), st.integers(1, 3))
def test_the_human_point_is_the_mean_over_every_choice_of_captions(rows, references):
    found = observed_point(histogram([sum(row) for row in rows], 4), references)
    expected = brute_point(rows, references)
    for one, other in zip(found, expected, strict=True):
        assert one == (other if other is None else pytest.approx(other, abs=1e-9))


def test_nobody_and_everybody():
    assert fit([10, 0, 0]) is None
    assert fit([5, 0, 5]) == (1.0, 0.5)
    assert fit([9, 1, 0]) == (0.05, 1.0)  # never repeated: all that is known is the product
    assert observed_point([10, 0, 0], 1) == (None, None)


GAINS, COSTS = weights_of(np.array([3, 2, 0, 0], dtype=np.int16), 3, 2)


def test_precision_at_recall_walks_down_the_ranking():
    scores = np.array([0.9, 0.7, 0.8, 0.1])
    assert GAINS.tolist() == [2, 4 / 3, 0, 0]
    assert COSTS.tolist() == [0, 0, 1, 1]
    total = 2 + 4 / 3
    assert precision_at_recall(scores, GAINS, COSTS, 0.3) == 1
    assert precision_at_recall(scores, GAINS, COSTS, 2 / total) == 1
    assert precision_at_recall(scores, GAINS, COSTS, 1.0) == pytest.approx(total / (total + 1))
    half = 2 + (4 / 3) / 2
    assert precision_at_recall(scores, GAINS, COSTS, half / total) == pytest.approx(half / (half + 1))
    assert precision_at_recall(scores, GAINS, COSTS, 0.0) is None


def test_equal_scores_are_taken_in_random_order():
    generator = np.random.default_rng(1)
    counts = generator.binomial(3, 0.4, size=30).astype(np.int16)
    gains, costs = weights_of(counts, 3, 2)
    said = generator.integers(0, 2, size=30).astype(float)
    own = operating_point(said, gains, costs)
    assert precision_at_recall(said, gains, costs, own.recall) == pytest.approx(own.precision)
    assert precision_at_recall(said, gains, costs, own.recall / 2) == pytest.approx(own.precision)
    base = gains.sum() / (gains.sum() + costs.sum())
    assert precision_at_recall(said, gains, costs, 1.0) == pytest.approx(base)
    assert precision_at_recall(np.zeros(30), gains, costs, 0.5) == pytest.approx(base)


def words_of(*words):
    return frozenset(Tagged(word, kind) for word, kind in words)


DOG, CAT, RED, RUN = ("dog", "noun"), ("cat", "noun"), ("red", "adjective"), ("run", "verb")
IMAGES = {
    1: [words_of(DOG, RUN), words_of(DOG), words_of(DOG, RED)],
    2: [words_of(CAT), words_of(("run", "noun")), words_of(CAT, RUN)],
    3: [words_of(RED), words_of(RED)],
}


def test_counts_classes_and_images_with_fewer_captions():
    table = count_words(IMAGES, people=3)
    assert dict(table.classes) == {"dog": "noun", "run": "verb", "cat": "noun", "red": "adjective"}
    assert (table.images, table.people, table.left_out) == ((1, 2), 3, 1)
    place = list(table.classes).index("run")
    assert table.counts[:, place].tolist() == [1, 2]
    assert table.histogram(place) == [0, 1, 1, 0]
    assert count_words(IMAGES).people == 2
    assert list(count_words(IMAGES, words=1).classes) == ["dog"]


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        ({1: [words_of(DOG)]}, {}, "some image has 1; say how many with --people"),
        ({}, {}, "at least 2 captions an image"),
        (IMAGES, {"people": 1}, "at least 2 captions an image: got 1"),
        (IMAGES, {"people": 9}, "no image has 9 captions"),
        ({1: [words_of(), words_of()]}, {}, "contain no noun, adjective or verb"),
        (IMAGES, {"words": 0}, "words: at least 1"),
    ],
)
def test_bad_sets_are_refused(images, options, message):
    with pytest.raises(InputError, match=message):
        count_words(images, **options)


def test_a_study_pools_classes_and_bounds_p_by_resampled_images():
    generator = np.random.default_rng(4)
    images = {}
    for number in range(1500):
        there = {word: generator.random() < 0.2 for word in ("dog", "cat")}
        images[number] = [
            words_of(*((word, "noun") for word in there if there[word] and generator.random() < 0.5), ("thing", "verb"))
            for _ in range(5)
        ]
    study = study_words(count_words(images), resampling=QUICK)
    noun = next(kind for kind in study.classes if kind.kind == "noun")
    assert noun.words == 2
    assert noun.p_interval[0] < 0.5 < noun.p_interval[1]
    assert noun.q_interval[0] < 0.2 < noun.q_interval[1]
    assert noun.p_interval[1] - noun.p_interval[0] == pytest.approx(4 * 0.5 / np.sqrt(600 * 5), rel=0.3)
    assert noun.p == pytest.approx(fit(noun.counts).p)
    assert [kind.kind for kind in study.classes] == ["noun", "verb", "all"]
    thing = next(word for word in study.words if word.word == "thing")
    assert (thing.p, thing.q, thing.human) == (1.0, 1.0, (1.0, 1.0))


@pytest.mark.slow
def test_a_system_that_says_what_people_say_is_as_precise_as_people():
    """Its words are one more person's, so its precision at human recall is near the human precision."""
    generator = np.random.default_rng(6)
    images, said = {}, {}
    for number in range(6000):
        there = generator.random() < 0.3
        says = [there and generator.random() < 0.4 for _ in range(6)]
        images[number] = [words_of(*([DOG] if says[n] else []), CAT) for n in range(5)]
        said[number] = {"dog": 1.0} if says[5] else {}
    study = study_words(count_words(images), systems={"person": said}, resampling=QUICK)
    dog = next(word for word in study.words if word.word == "dog")
    point, precision = study.systems[0].words["dog"]
    assert precision == pytest.approx(dog.human.precision, abs=0.03)
    assert point.recall == pytest.approx(0.4, abs=0.03)
    with pytest.raises(InputError, match="person says nothing about 5999 of the images, such as 1"):
        study_words(count_words(images), systems={"person": {0: {}}})


def test_words_are_tagged_nouns_adjectives_and_verbs_in_lower_case():
    words = (
        Word("Two", "CD", "two"),
        Word("Dogs", "NNS", "dog"),
        Word("ran", "VBD", "run"),
        Word("t-shirt", "NN", "t-shirt"),
        Word("RED", "JJ", "red"),
        Word("quickly", "RB", "quickly"),
    )
    caption = Caption("", (Parse(words, ()),))
    assert next(tagged_words([caption])) == {("dogs", "noun"), ("ran", "verb"), ("red", "adjective")}
    assert next(tagged_words([caption], lemmas=True)) == {("dog", "noun"), ("run", "verb"), ("red", "adjective")}
