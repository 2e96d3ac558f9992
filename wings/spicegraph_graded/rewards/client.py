"""The clients of a server that rewards, synchronous and asynchronous: those of evaluation, with one call more."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypedDict, Unpack

from spicegraph_api.rewards.v1 import rewards_pb2 as pb
from spicegraph_api.rewards.v1.methods import METHODS
from spicegraph_api.rewards.v1.rewards_pb2_grpc import RewardServiceStub
from spicegraph_api.v1.methods import METHODS as EVALUATION_METHODS
from spicegraph_service.client import AsyncClient, Client
from spicegraph_service.client.evaluation import GivenItem, service_config
from spicegraph_service.client.inputs import items as given_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_api.rewards.v1.rewards_pb2_grpc import RewardServiceAsyncStub

_CONFIG = service_config({**EVALUATION_METHODS, **METHODS})


class RewardOptions(TypedDict, total=False):
    """What a caller may say of rewards."""

    reference_set: str | None  # that has the references of items without any
    drafts: Sequence[str]  # what each item revises, for terms of drafts
    advantage: pb.Advantage.ValueType  # what advantages are taken over
    groups: Sequence[str]  # of each item; the image by default
    credit: bool  # say which words earned each reward
    answer_tags: bool  # candidates are completions, of which the answer is rewarded


class RewardClient(Client):
    """A synchronous client; see :class:`spicegraph_service.client.Client`, whose calls it has, too."""

    _config: ClassVar[str] = _CONFIG

    @cached_property
    def _rewards(self) -> RewardServiceStub:
        return RewardServiceStub(self._channel)

    def reward(self, items: Iterable[GivenItem], reward: str, **options: Unpack[RewardOptions]) -> pb.RewardResponse:
        """Reward a batch of candidates: ``spice-g=1,length=-.01``."""
        return self._call(self._rewards.Reward, pb.RewardRequest(items=given_items(items), reward=reward, **options))


class AsyncRewardClient(AsyncClient):
    """An asynchronous client; see :class:`spicegraph_service.client.AsyncClient`, whose calls it has, too."""

    _config: ClassVar[str] = _CONFIG

    @cached_property
    def _rewards(self) -> RewardServiceAsyncStub:
        return RewardServiceStub(self._channel)

    async def reward(
        self, items: Iterable[GivenItem], reward: str, **options: Unpack[RewardOptions]
    ) -> pb.RewardResponse:
        """Reward a batch of candidates: ``spice-g=1,length=-.01``."""
        return await self._call(
            self._rewards.Reward, pb.RewardRequest(items=given_items(items), reward=reward, **options)
        )
