"""The names of the wing by the module that has them: what type checkers read, and ``__init__.py`` at run time."""

from spicegraph_graded.detail.claims import Claim as Claim, Claims as Claims
from spicegraph_graded.detail.client import AsyncDetailClient as AsyncDetailClient, DetailClient as DetailClient
from spicegraph_graded.detail.differences import ClaimDifference as ClaimDifference, Differences as Differences
from spicegraph_graded.detail.metric import Detail as Detail, find_differences as find_differences
from spicegraph_graded.rewards.client import AsyncRewardClient as AsyncRewardClient, RewardClient as RewardClient
from spicegraph_graded.rewards.model import RewardModel as RewardModel, advantages_of as advantages_of
from spicegraph_graded.rewards.reward import (
    Reward as Reward,
    Term as Term,
    parse_reward as parse_reward,
    reward_metric as reward_metric,
)
from spicegraph_graded.spice_g.vectors import Vectors as Vectors, VectorTable as VectorTable
