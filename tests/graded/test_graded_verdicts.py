"""Verdicts: which words the references support, contradict or do not mention, and how often right words are flagged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_graded.spice_g.verdicts import (
    CALIBRATIONS,
    CONTRADICTED,
    DEFAULT_RATE,
    FEATURES,
    SUPPORTED,
    UNMENTIONED,
    Verdicts,
    object_words,
    observe,
)
from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import SCENE, load_pipeline
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import conformal_threshold
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.errors import wrong_statements

pytestmark = pytest.mark.model

DOGS = (
    "A brown dog lies on a red couch.",
    "A dog sleeps on the couch.",
    "The brown dog is resting on a red sofa in a living room.",
    "A dog on a couch next to a pillow.",
)


@pytest.fixture(scope="module")
def metric() -> SpiceG:
    return SpiceG(load_pipeline())


def verdicts(metric: SpiceG, candidate: str, references: tuple[str, ...] = DOGS) -> Verdicts:
    (statistic,) = metric.collect(Corpus((Item(1, candidate, references),)))
    return metric.explain(statistic, changes=0).verdicts


def test_unsupported_statements_are_counted_by_what_they_say(metric: SpiceG) -> None:
    """Of what is said of a wrong object only the object is listed; a colour has what the references say instead."""
    captions = ("A dog on a blue couch", "A brown giraffe on a blue couch", "A brown dog on a couch", "A giraffe")
    found = metric.collect(Corpus(tuple(Item(n, text, DOGS) for n, text in enumerate(captions))))
    wrong = wrong_statements(metric.explain(statistic, changes=0).statements() for statistic in found)
    assert [(one.words, one.count, one.said, one.contradicted, one.instead, one.items) for one in wrong] == [
        (("couch", "blue"), 2, 2, 2, ("red",), (0, 1)),
        (("giraffe",), 2, 2, 2, ("dog",), (1, 3)),
    ]
    assert [one.rate for one in wrong] == [1.0, 1.0]
    assert wrong_statements([]) == ()


def test_what_references_say_is_supported(metric: SpiceG) -> None:
    found = verdicts(metric, "A brown dog on a couch")
    assert {one.verdict for one in (*found.words, *found.tuples)} == {SUPPORTED}
    assert found.probability < found.threshold


def test_another_animal_is_less_likely_right_than_anything_else(metric: SpiceG) -> None:
    found = verdicts(metric, "A brown giraffe on a red couch")
    worst = max(found.words, key=lambda one: one.probability)
    assert (worst.word, worst.verdict, worst.instead) == ("giraffe", CONTRADICTED, "dog")
    assert [one.verdict for one in found.tuples if "giraffe" in one.words] != [SUPPORTED]


def test_another_colour_contradicts_and_colours_are_sets(metric: SpiceG) -> None:
    blue = verdicts(metric, "A dog on a blue couch")
    assert ("couch", "blue") in [one.words for one in blue.tuples if one.verdict == CONTRADICTED]
    both = verdicts(metric, "A brown and black dog on a couch")
    assert CONTRADICTED not in {one.verdict for one in both.tuples if one.words[0] == "dog"}


def test_what_nobody_mentions_is_unmentioned_at_a_low_threshold(metric: SpiceG) -> None:
    (statistic,) = metric.collect(Corpus((Item(1, "A dog on a couch under a lamp", DOGS),)))
    found = metric.verdicts(statistic, threshold=0.0)
    lamp = next(one for one in found.words if one.word == "lamp")
    assert lamp.verdict in {UNMENTIONED, CONTRADICTED}
    assert lamp.probability > next(one for one in found.words if one.word == "dog").probability


@pytest.mark.parametrize(
    ("candidate", "reference"),
    [
        ("A woman in a hat", "A woman wears a white hat"),  # "wear" and "white" have noun senses, and are not objects
        ("A man eats cake", "A man eats food"),  # cake is food
        ("Two women in hats", "Two people in hats"),
    ],
)
def test_only_an_object_of_the_references_is_missed_and_only_where_nothing_narrower_is_said(
    metric: SpiceG, candidate: str, reference: str
) -> None:
    (statistic,) = metric.collect(Corpus((Item(1, candidate, (reference, reference + ".")),)))
    assert statistic.match is not None
    seen = observe(statistic.match, candidate, metric.vectors)
    assert {one.features[FEATURES.index("missed")] for one in seen} == {0.0}
    assert {one.features[FEATURES.index("rival")] for one in seen} == {0.0}


def test_a_form_of_a_word_is_that_word(metric: SpiceG) -> None:
    """A parse takes "standing" for a noun where another has a verb; "container" is not a form of "contain"."""
    references = ("A dog stands in a box that contains toys.", "A dog stands in a painted room.")
    found = metric.collect(Corpus((Item(1, "The standing of a dog, a paint and a container", references),)))
    seen = {one.word: one for one in observe(found[0].match, "", metric.vectors)}
    exact = FEATURES.index("exact")
    assert (seen["standing"].features[exact], seen["standing"].partner) == (1.0, "stand")
    assert seen["paint"].features[exact] == 0.5
    assert seen["container"].features[exact] == 0.0


def test_pronouns_have_no_verdict(metric: SpiceG) -> None:
    words = [one.word for one in verdicts(metric, "A couch with a dog on it and one next to them").words]
    assert {"it", "them"}.isdisjoint(words)
    assert {"couch", "dog"} <= set(words)


def test_words_have_the_places_where_they_stand(metric: SpiceG) -> None:
    text = "Two dogs are sleeping on the dogs' couch"
    spans = {one.word: [text[start:end] for start, end in one.spans] for one in verdicts(metric, text).words}
    assert spans["dog"][:2] == ["dogs", "dogs"]
    assert spans["sleep"] == ["sleeping"]
    assert spans["couch"] == ["couch"]


def test_the_words_of_objects_are_those_in_front_of_them_too(metric: SpiceG) -> None:
    (statistic,) = metric.collect(Corpus((Item(1, "A boy kicks a red golf ball", DOGS),)))
    assert statistic.match is not None
    assert object_words(statistic.match) == {"boy", "golf", "ball"}


def test_a_candidate_without_words_has_no_verdicts(metric: SpiceG) -> None:
    found = verdicts(metric, "")
    assert (found.words, found.tuples, found.probability) == ((), (), 0.0)


def test_explanations_have_them_as_json(metric: SpiceG) -> None:
    (statistic,) = metric.collect(Corpus((Item(1, "A dog", DOGS),)))
    (word,) = metric.explain(statistic, changes=0).to_dict()["verdicts"]["words"]  # type: ignore[index, call-overload]
    assert word["word"] == "dog"  # type: ignore[index, call-overload]
    assert word["spans"] == ((2, 5),)  # type: ignore[index, call-overload]


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_right_words_are_flagged_as_often_as_promised(rate: float) -> None:
    generator = np.random.default_rng(1)
    known, new = generator.beta(1, 8, (400, 500)), generator.beta(1, 8, (400, 500))
    flagged = [(new[row] > conformal_threshold(known[row].tolist(), rate)).mean() for row in range(400)]
    assert np.mean(flagged) == pytest.approx(rate, abs=0.005)


def test_few_right_words_flag_nothing() -> None:
    assert conformal_threshold([0.1] * 8, 0.1) == 1.0
    assert conformal_threshold([0.1] * 9, 0.1) == 0.1


def test_a_rate_is_a_share() -> None:
    with pytest.raises(InputError, match="rate of false alarms is 10"):
        conformal_threshold([0.1], 10)


@pytest.mark.parametrize("style", CALIBRATIONS)
def test_every_feature_has_a_weight_and_fewer_alarms_a_higher_threshold(style: str) -> None:
    fitted = CALIBRATIONS[style]
    assert len(fitted.weights) == len(FEATURES)
    assert fitted.thresholds[0.05] > fitted.thresholds[DEFAULT_RATE] > fitted.thresholds[0.2]


def test_scene_graphs_have_verdicts_of_their_own(metric: SpiceG) -> None:
    scenes = replace(metric, source=load_pipeline(SCENE))
    found = [verdicts(one, "A giraffe on a red couch") for one in (metric, scenes)]
    assert [[word.verdict for word in one.words] for one in found] == [[CONTRADICTED, SUPPORTED, SUPPORTED]] * 2
    assert [one.threshold for one in found] == [CALIBRATIONS[style].thresholds[DEFAULT_RATE] for style in CALIBRATIONS]
    assert found[0].to_dict()["thresholds"] == {"0.05": 0.3087, "0.1": 0.2147, "0.2": 0.122}
    assert found[0].probability != found[1].probability
