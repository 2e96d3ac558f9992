"""Captions with words of which SPICE draws nothing: they are told, with what helps."""

from __future__ import annotations

import json

import pytest

from spicegraph_scorer import Item, compare_systems, score
from spicegraph_scorer.core.empty_graphs import EmptyGraphs

pytestmark = pytest.mark.model

ITEMS = (
    Item(1, "Some dogs.", ("Some dogs.",)),
    Item(2, "a brown dog", ("a dog",)),
    Item(3, " ", ("a dog",)),
    Item(4, "Some of these.", ("two men ride",)),
)


def test_they_are_an_attribute_of_the_result() -> None:
    result = score(ITEMS, ["rouge", "spice"], empty="zero")
    found = result.empty_graphs
    assert (found.items, found.candidates, found.references) == (4, 2, 1)
    assert found.examples == ((1, "Some dogs."), (4, "Some of these."))
    assert list(found.notes()) == [
        "2 of 4 candidates have an empty graph, which SPICE scores 0, such as 'Some dogs.' (image_id 1); "
        "'Some of these.' (image_id 4); scene graphs find more in such captions: --graph-style scene "
        '(in Python pipeline="scene", of a server GRAPH_STYLE_SCENE)',
        "the references of 1 of 4 items have an empty graph: SPICE is 0 there; scene graphs find more in such "
        'captions: --graph-style scene (in Python pipeline="scene", of a server GRAPH_STYLE_SCENE)',
    ]


def test_they_are_a_key_of_the_json() -> None:
    written = json.loads(json.dumps(score(ITEMS, empty="zero").to_dict()))
    assert written["empty_graphs"] == {
        "candidates": 2,
        "references": 1,
        "examples": [{"image_id": 1, "caption": "Some dogs."}, {"image_id": 4, "caption": "Some of these."}],
    }
    assert "empty_graphs" not in score(ITEMS[1:2]).to_dict()


def test_metrics_without_graphs_tell_nothing() -> None:
    assert score(ITEMS, ["rouge"], empty="zero").empty_graphs == EmptyGraphs()


def test_of_two_systems() -> None:
    other = [Item(item.id, "a dog", item.references) for item in ITEMS[:2]]
    compared = compare_systems(other, ITEMS[:2])
    assert [found.candidates for found in compared.empty_graphs] == [0, 1]
    assert compared.to_dict()["empty_graphs"][1]["candidates"] == 1  # type: ignore[call-overload,index]
