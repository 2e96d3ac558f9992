"""Differences in the words of ClaimDiff-RL, whose reward manager asks a judge by URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from spicegraph_api.detail.v1.detail_pb2 import Aspect, DifferenceKind, FindDifferencesRequest, FindDifferencesResponse
from spicegraph_api.v1.scores_pb2 import Item
from spicegraph_service.kit import Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping


class _JudgeBody(msgspec.Struct):
    response: str
    solution: str


def read_judge(data: bytes, _query: Mapping[str, str]) -> FindDifferencesRequest:
    """Read a ``response`` and the ``solution``, its reference; whatever else stands there says nothing here."""
    body = msgspec.json.decode(data, type=_JudgeBody)
    return FindDifferencesRequest(items=[Item(id="1", candidate=body.response, references=[body.solution])])


def answer_judge(response: FindDifferencesResponse) -> Any:
    """Return the ``rewards`` that the reward manager reads, the differences behind them, and what these do not name.

    What the differences take from correctness and coverage, and what ``other_correctness`` and ``other_coverage`` say
    that no difference names, add up to what these rewards lack.
    """
    (item,) = response.items
    rewards = {
        "format_reward": 1.0,
        "accuracy_reward": item.score,
        "final_reward": item.score,
        "correctness_reward": item.correctness,
        "coverage_reward": item.coverage,
    }
    differences = [
        {
            "kind": DifferenceKind.Name(difference.kind).removeprefix("DIFFERENCE_KIND_").lower(),
            "aspect": Aspect.Name(difference.aspect).removeprefix("ASPECT_").lower(),
            "claim": difference.claim,
            "reference": difference.reference,
            "severity": difference.severity,
            "probability": difference.probability,
            "correctness": difference.correctness,
            "coverage": difference.coverage,
        }
        for difference in item.differences
    ]
    return {
        "rewards": rewards,
        "differences": differences,
        "other_correctness": item.other_correctness,
        "other_coverage": item.other_coverage,
    }


JUDGE: Final = Dialect(
    "judge",
    "/spicegraph.detail.v1.DifferenceService/FindDifferences",
    read_judge,
    answer_judge,
    home={"message": "Reward Judge Server"},  # without it the client leaves a server out
)
"""``POST /compat/judge``: what the reward manager ``remote`` of ClaimDiff-RL sends and reads (commit 6b0fbfe)."""
