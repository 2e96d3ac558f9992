"""The clients of a server that compares descriptions: those of evaluation, with one call more."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from spicegraph_api.detail.v1 import detail_pb2 as pb
from spicegraph_api.detail.v1.detail_pb2_grpc import DifferenceServiceStub
from spicegraph_api.detail.v1.methods import METHODS
from spicegraph_api.v1.methods import METHODS as EVALUATION_METHODS
from spicegraph_service.client import AsyncClient, Client
from spicegraph_service.client.evaluation import GivenItem, service_config
from spicegraph_service.client.inputs import items as given_items

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spicegraph_api.detail.v1.detail_pb2_grpc import DifferenceServiceAsyncStub

_CONFIG = service_config({**EVALUATION_METHODS, **METHODS})


class DetailClient(Client):
    """A synchronous client; see :class:`spicegraph_service.client.Client`, whose calls it has, too."""

    _config: ClassVar[str] = _CONFIG

    @cached_property
    def _differences(self) -> DifferenceServiceStub:
        return DifferenceServiceStub(self._channel)

    def find_differences(
        self, items: Iterable[GivenItem], *, reference_set: str | None = None
    ) -> pb.FindDifferencesResponse:
        """Find what descriptions say wrong, and what they leave out."""
        request = pb.FindDifferencesRequest(items=given_items(items), reference_set=reference_set)
        return self._call(self._differences.FindDifferences, request)


class AsyncDetailClient(AsyncClient):
    """An asynchronous client; see :class:`spicegraph_service.client.AsyncClient`, whose calls it has, too."""

    _config: ClassVar[str] = _CONFIG

    @cached_property
    def _differences(self) -> DifferenceServiceAsyncStub:
        return DifferenceServiceStub(self._channel)

    async def find_differences(
        self, items: Iterable[GivenItem], *, reference_set: str | None = None
    ) -> pb.FindDifferencesResponse:
        """Find what descriptions say wrong, and what they leave out."""
        request = pb.FindDifferencesRequest(items=given_items(items), reference_set=reference_set)
        return await self._call(self._differences.FindDifferences, request)
