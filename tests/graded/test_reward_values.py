"""What functions of rewards say of values of a wrong kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_graded import RewardModel, advantages_of, reward_metric
from spicegraph_graded.rewards import trainers
from spicegraph_scorer import Item, score
from wrong_values import check_wrong_values

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = [Item(1, "a dog", ("a dog",))]
MODEL = RewardModel("spice=1", {7: ["a dog"]})

CALLS: dict[str, Callable[[Any], object]] = {
    "score, reward": lambda value: score(ITEMS, more={"reward": reward_metric(value)}),
    "RewardModel, reward": lambda value: RewardModel(value, {7: ["a dog"]}),
    "RewardModel, references": lambda value: RewardModel("spice=1", value),
    "RewardModel.add": lambda value: RewardModel("spice=1", {7: ["a dog"]}).add(value),
    "RewardModel.rewards, images": lambda value: MODEL.rewards(value, ["a dog"]),
    "RewardModel.rewards, captions": lambda value: MODEL.rewards([7], value),
    "RewardModel.rewards, drafts": lambda value: MODEL.rewards([7], ["a dog"], value),
    "RewardModel.advantages": lambda value: MODEL.advantages(value, ["a dog"]),
    "RewardModel.over_greedy": lambda value: MODEL.over_greedy([7], ["a dog"], value),
    "RewardModel.credit": lambda value: MODEL.credit([7], value),
    "advantages_of, rewards": lambda value: advantages_of(value, [1]),
    "advantages_of, groups": lambda value: advantages_of([1.0], value),
    "trl_reward": lambda value: trainers.trl_reward(MODEL)(completions=value, image_id=[7]),
    "trl_reward, column": lambda value: trainers.trl_reward(MODEL)(completions=["a dog"], image_id=value),
    "verl, solution": lambda value: trainers.compute_score("x", value, ["a dog"]),
    "verl, truth": lambda value: trainers.compute_score("x", "a dog", value),
    "verl, solutions": lambda value: trainers.compute_scores(["x"], value, [["a dog"]]),
    "verl, truths": lambda value: trainers.compute_scores(["x"], ["a dog"], value),
}
"""Public functions, each by the argument that gets a wrong value."""


@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_get_a_message_and_no_raw_error(name: str) -> None:
    check_wrong_values(name, CALLS[name])
