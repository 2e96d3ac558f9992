"""Marked words: readers, detection and localisation."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_studies.agreement import JudgementScoring
from spicegraph_studies.agreement.hallucinations import (
    Suspect,
    agree_on_hallucinations,
    average_precision,
    changed_spans,
    located,
    marked,
    marked_spans,
    read_marked,
    roc_auc,
)
from spicegraph_studies.agreement.protocols import HALLUCINATION_PROTOCOLS, protocol_of

HAT = {
    "image_id": "7",
    "caption": "A cat on a bus.",
    "references": ["a cat on a sofa"],
    "contains_hallucination": True,
    "grounding": [["A", False], ["cat", False], ["on", False], ["a", False], ["bus.", True]],
}
FOIL = {
    "image_path": "a.jpg",
    "references": ["a dog runs", "A dog  runs", "one dog"],
    "baseline": "A dog runs",
    "foil": "A fox runs",
    "replacement": ["dog", "fox"],
}
SCORES = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12)


def write(folder, value):
    path = folder / "marked.json"
    path.write_text(json.dumps(value, indent=4))
    return str(path)


def test_marked_words_and_pairs_are_read(tmp_path):
    lines = {"candidate": "a red bus", "references": ["a bus"], "words": ["a", "red", "bus"]}
    pair = {"image_id": 3, "captions": ["two cats", "two dogs"], "label": 0, "references": ["cats"]}
    found = read_marked(write(tmp_path, [HAT, lines | {"hallucinated": [False, True, False]}, FOIL, pair])).items
    assert [(one.candidate, one.wrong) for one in found] == [
        ("A cat on a bus.", ((11, 15),)),
        ("a red bus", ((2, 5),)),
        ("A dog runs", ()),
        ("A fox runs", ((2, 5),)),
        ("two cats", ()),
        ("two dogs", ((4, 8),)),
    ]
    assert (found[0].image, found[2].image, found[4].image) == ("7", "a.jpg", "3")
    assert found[2].references == found[3].references == ("a dog runs", "one dog")


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"caption": "a", "references": ["a"]}, "hallucinated: does not say of each word whether it is wrong"),
        (HAT | {"grounding": [["A", 1]]}, "item 1, grounding: does not say of each word"),
        ({"captions": ["a", "b"], "label": 2, "references": ["a"]}, "captions: is not a list of two captions, with a"),
        (FOIL | {"foil": " "}, "item 1, foil: is empty"),
    ],
)
def test_bad_marks_give_one_error(tmp_path, row, fault):
    with pytest.raises(InputError, match=fault):
        read_marked(write(tmp_path, [row]))


def test_a_foil_differs_in_the_words_between_what_is_shared():
    assert changed_spans("a blue bird", "a blue bird") == ((11, 11),)
    assert changed_spans("a blue bird", "a bird") == ((6, 6),)
    assert changed_spans("a ball", "a golf ball") == ((2, 6),)
    assert changed_spans("dog runs", "fox runs") == ((0, 3),)
    assert changed_spans("turkey by a turkey", "beer by a beer") == ((0, 4), (10, 14))
    assert marked_spans("the the dog", ["the", "the", "dog"], [False, True, False]) == ((4, 7),)


@given(SCORES)
def test_equal_scores_are_found_together_and_the_area_is_that_of_pairs(rows):
    scores = np.array([score for score, _ in rows], float)
    labels = np.array([label for _, label in rows], float)
    ones = np.ones((1, len(rows)))
    found = average_precision(scores, labels, ones)[0]
    area = roc_auc(scores, labels, ones)[0]
    right, wrong = scores[labels == 1], scores[labels == 0]
    if len(right):
        expected = np.mean([(right >= score).sum() / (scores >= score).sum() for score in right])
        assert found == pytest.approx(expected)
        twice = np.repeat(scores, 2), np.repeat(labels, 2)
        assert average_precision(*twice, np.ones((1, 2 * len(rows))))[0] == pytest.approx(found)
        assert average_precision(scores, labels, 2 * ones)[0] == pytest.approx(found)
    if len(right) and len(wrong):
        pairs = (right[:, None] > wrong).mean() + (right[:, None] == wrong).mean() / 2
        assert area == pytest.approx(pairs)
    else:
        assert np.isnan(area)


def test_the_word_that_is_most_likely_wrong_is_found_and_equals_share():
    caption = marked("", "1", "a cat on a bus", ("x",), ((11, 14),))
    cat, bus = Suspect([(2, 5)], 0.4, is_object=True), Suspect([(11, 14)], 0.4, is_object=True)
    red = Suspect([(0, 1)], 0.9, is_object=False)
    hat, aloha = HALLUCINATION_PROTOCOLS["hat"], HALLUCINATION_PROTOCOLS["aloha-localisation"]
    assert located([caption], [[cat, bus, red]], hat)[0] == 0.0
    assert located([caption], [[cat, bus, red]], aloha)[0] == 0.5
    assert located([caption], [[cat._replace(probability=0.1), bus]], hat)[0] == 1.0
    assert located([caption], [[cat._replace(probability=0.0), bus._replace(probability=0.0)]], hat)[0] == 0.0
    assert located([caption], [[]], hat)[0] == 0.0


def test_chair_finds_the_object_that_no_reference_has():
    captions = [
        marked("1", "1", "a cat on a bus", ("a cat on a sofa",), ((11, 14),)),
        marked("2", "2", "a cat on a couch", ("a cat on a sofa",), ()),
        marked("3", "3", "a red kite", ("a blue kite",), ((2, 5),)),
    ]
    found = agree_on_hallucinations(captions, scoring=JudgementScoring(("chair", "rouge")), resampling=Resampling(50))
    rows = found.detections
    assert (found.captions, found.faulty, found.images) == (3, 2, 3)
    assert rows["CHAIRi"]["localisation"].value == 0.5
    assert rows["CHAIRi"]["average_precision"].value == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert rows["CHAIRs"]["auc"].value == 0.75
    assert rows["ROUGE_L"]["localisation"] is None
    assert rows["CHAIRi"]["localisation"].low <= 0.5 <= rows["CHAIRi"]["localisation"].high
    assert json.loads(json.dumps(found.to_dict()))["detections"]["ROUGE_L"]["localisation"] is None


def test_verdicts_say_which_word_is_wrong():
    captions = [
        marked("1", "1", "a dog on a zebra", ("a dog on a couch", "a puppy lies on a sofa"), ((11, 16),)),
        marked("2", "2", "a dog on a sofa", ("a dog on a couch", "a puppy lies on a sofa"), ()),
    ]
    found = agree_on_hallucinations(captions, scoring=JudgementScoring(("spice-g",)), resampling=Resampling(5))
    rows = found.detections
    assert list(rows) == ["SPICE-G", "SPICE-G verdicts, worst word", "SPICE-G verdicts, mean of words"]
    assert rows["SPICE-G verdicts, worst word"]["localisation"].value == 1.0
    assert rows["SPICE-G verdicts, worst word"]["average_precision"].value == 1.0


def test_what_cannot_be_measured_is_refused():
    right = marked("1", "1", "a dog", ("a dog",), ())
    with pytest.raises(InputError, match="0 of 1 captions have a marked word"):
        agree_on_hallucinations([right])
    with pytest.raises(InputError, match="marked captions: 2, references: are missing"):
        agree_on_hallucinations([right, marked("2", "1", "a cat", (), ((2, 5),))], scoring=JudgementScoring(("chair",)))
    with pytest.raises(InputError, match="there is no protocol 'x' for hallucinations"):
        protocol_of(HALLUCINATION_PROTOCOLS, "x", "hallucinations")


def test_of_descriptions_length_alone_and_suspicion_with_length_held_constant_are_said():
    """Marked captions are longer here; a score that follows length alone has nothing left when length is held constant."""
    generator = np.random.default_rng(2)
    labels = [bool(n % 2) for n in range(40)]
    words = [int(count) + 12 * mark for count, mark in zip(generator.integers(32, 60, size=40), labels, strict=True)]
    captions = [
        marked("", f"{n}", " ".join(["cat"] * count), ("a cat",), ((0, 3),) if mark else ())
        for n, (count, mark) in enumerate(zip(words, labels, strict=True))
    ]
    found = agree_on_hallucinations(captions, scoring=JudgementScoring(("rouge", "chair")), resampling=Resampling(5))
    assert found.length[""] == pytest.approx(stats.spearmanr(words, labels).statistic)
    assert found.length[""] > 0.3
    assert found.length["ROUGE_L"] is None  # the longer a caption here, the lower it is: nothing but length
    assert found.to_dict()["length"]["length alone"] == found.length[""]
    short = [replace(caption, candidate=caption.candidate[:99]) for caption in captions]
    found = agree_on_hallucinations(short, scoring=JudgementScoring(("rouge",)), resampling=Resampling(5))
    assert found.length == {}
    assert "length" not in found.to_dict()
