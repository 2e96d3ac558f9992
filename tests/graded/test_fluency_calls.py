"""Fluency over gRPC: what it says of a candidate stands in the result as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_api.v1 import scores_pb2
from spicegraph_graded.fluency.detector import KINDS
from spicegraph_service.client import item

if TYPE_CHECKING:
    from spicegraph_graded import RewardClient

pytestmark = pytest.mark.model


def test_fluency_sends_its_kinds_of_errors(client: RewardClient) -> None:
    sent = [item("1", "a dog on a couch", ["a dog"]), item("2", "a dog on a couch with a", ["a dog"])]
    reply = client.score(sent, metrics=["fluency"], detail=scores_pb2.DETAIL_TUPLES)
    (whole,), (broken,) = (each.explanations for each in reply.items)
    assert whole.metric == "fluency"
    assert not json.loads(whole.json)["is_broken"]
    values = json.loads(broken.json)
    assert values["is_broken"]
    assert values["wrong"] == 1 - reply.items[1]["Fluency"]
    assert set(values["kinds"]) == set(KINDS)
    assert max(values["kinds"], key=values["kinds"].__getitem__) == "unfinished"
    assert not client.score(sent, metrics=["fluency"]).items[0].explanations
