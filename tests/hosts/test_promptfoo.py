"""promptfoo's Python assertions: ``get_assert(output, context)``, called as its documentation says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from spicegraph_promptfoo import get_assert

from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, score

REFERENCES = ["a brown dog sleeps on a rack of shoes", "a dog lies among shoes"]


def context(references: Any = REFERENCES, **config: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"prompt": "Describe the image.", "vars": {"image": "42.jpg", "references": references}}
    return found | ({"config": config} if config else {})


def test_a_caption_is_graded_with_the_score_of_the_library() -> None:
    caption = "a brown dog among shoes"
    graded = get_assert(caption, context(metrics="spice,rouge", threshold=0.2))
    expected = score([Item(0, caption, tuple(REFERENCES))], ["spice", "rouge"])
    spice, rouge = (run.headline[0].value for run in expected.runs)
    assert graded["score"] == spice
    assert graded["namedScores"]["rouge_l"] == rouge
    assert (graded["pass"], graded["reason"]) == (True, f"spice {spice:.4f}, at least 0.2")
    json.dumps(graded, allow_nan=False)


def test_below_the_threshold_an_output_fails_and_an_empty_one_scores_0() -> None:
    assert get_assert("a red car", context(threshold=0.5))["pass"] is False
    empty = get_assert("", context(threshold=0.1))
    assert (empty["pass"], empty["score"]) == (False, 0.0)


def test_metrics_are_a_list_or_one_string() -> None:
    assert get_assert("a dog", context(metrics=["spice", "rouge"])) == get_assert(
        "a dog", context(metrics="spice,rouge")
    )


def test_one_reference_may_be_a_string() -> None:
    assert get_assert("a brown dog", context("a brown dog"))["score"] == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (context([]), "vars: the test has no references"),
        (context(metric="spice"), "config: unknown metric; it may have idf, metrics, pipeline, threshold"),
        (context(metrics="cider"), "needs document frequencies"),
    ],
)
def test_what_is_missing_is_named(call: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        get_assert("a dog", call)
