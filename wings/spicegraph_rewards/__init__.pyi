"""The names of the wing by the module that has them: what type checkers read, and ``__init__.py`` at run time."""

from spicegraph_rewards.client import AsyncRewardClient as AsyncRewardClient, RewardClient as RewardClient
from spicegraph_rewards.model import RewardModel as RewardModel, advantages_of as advantages_of
from spicegraph_rewards.reward import (
    Reward as Reward,
    Term as Term,
    parse_reward as parse_reward,
    reward_metric as reward_metric,
)
