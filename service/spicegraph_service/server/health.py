"""The health of the server and of each service, from what it needs: workers, and its store or database."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from grpc_health.v1 import health, health_pb2

from spicegraph_service.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spicegraph_service.server.service import Service

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_log = logging.getLogger(__name__)


class HealthMonitor:
    """Answers ``grpc.health.v1.Health``.

    A service is SERVING while a worker is alive and the service's probe succeeds. The server itself (``""``) is while a
    worker is alive: to start it again does not help against a store that cannot be reached.

    Args:
        services: each is probed on its own.
        observe: is called with a service's full name and whether its probe succeeds, whenever that changes.
        every_s: the pause between two probes of a service.
        timeout_s: a probe without an answer for so long has failed.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        observe: Callable[[str, bool], None],
        every_s: float = 1.0,
        timeout_s: float = 3.0,
    ) -> None:
        self.servicer = health.aio.HealthServicer()
        self._services = services
        self._observe = observe
        self._every_s = every_s
        self._timeout_s = timeout_s
        self._workers = False
        self._stopping = False
        self._faults: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Report NOT_SERVING, and begin to probe."""
        await self.set_workers(alive=False)
        self._tasks = [asyncio.create_task(self._watch(service)) for service in self._services]

    async def stop(self) -> None:
        """Report NOT_SERVING from now on."""
        self._stopping = True
        await self.servicer.enter_graceful_shutdown()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def serves(self, name: str) -> bool | None:
        """Say whether a service serves, or the server itself (``""``); ``None``: there is no such service."""
        if name and all(service.descriptor.full_name != name for service in self._services):
            return None
        return self._workers and not self._stopping and not self._faults.get(name)

    async def set_workers(self, *, alive: bool) -> None:
        """Record whether a worker is alive."""
        self._workers = alive
        await self.servicer.set("", _SERVING if alive else _NOT_SERVING)
        for service in self._services:
            await self._publish(service.descriptor.full_name)

    async def _publish(self, name: str) -> None:
        await self.servicer.set(name, _SERVING if self._workers and not self._faults.get(name) else _NOT_SERVING)

    async def _watch(self, service: Service) -> None:
        name = service.descriptor.full_name
        self._observe(name, not self._faults.get(name))
        while True:
            probe = asyncio.create_task(service.probe())
            done, _ = await asyncio.wait({probe}, timeout=self._timeout_s)
            if not done:
                await self._record(name, f"no answer for {self._timeout_s:g} s")
            try:
                await probe  # no second one before the first has ended
            except StoreError as error:
                await self._record(name, str(error))
            else:
                await self._record(name, "")
            await asyncio.sleep(self._every_s)

    async def _record(self, name: str, fault: str) -> None:
        before, self._faults[name] = self._faults.get(name, ""), fault
        if bool(before) == bool(fault):
            return
        if fault:
            _log.error("%s does not serve: %s", name, fault)
        else:
            _log.info("%s serves again", name)
        self._observe(name, not fault)
        await self._publish(name)
