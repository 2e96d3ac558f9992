"""What a server offers to its services, and how the services of this package are opened with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from spicegraph_api.v1 import evaluation_service_pb2, reference_service_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import add_EvaluationServiceServicer_to_server
from spicegraph_api.v1.methods import METHODS
from spicegraph_api.v1.reference_service_pb2_grpc import add_ReferenceServiceServicer_to_server
from spicegraph_service.rpc.evaluation import EvaluationServicer
from spicegraph_service.rpc.references import References, ReferencesServicer
from spicegraph_service.rpc.service import TokenService

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from spicegraph_service.config import ServerConfig
    from spicegraph_service.pool.cache import StoreThread
    from spicegraph_service.registry import NoOptions
    from spicegraph_service.rpc.auth import Authenticator
    from spicegraph_service.rpc.interceptor import CallInterceptor
    from spicegraph_service.rpc.limits import Limits
    from spicegraph_service.rpc.routes import Pages
    from spicegraph_service.rpc.scheduler import Scheduler
    from spicegraph_service.rpc.service import HealthMonitor, Service
    from spicegraph_service.rpc.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Host:
    """The server's shared resources for its services."""

    limits: Limits
    pipeline: str  # the name of what parses captions
    data: bytes  # the server's own data for metrics, packed; workers have it, too
    workers: int  # how many processes
    scheduler: Scheduler  # the way to the workers for calls
    open_scheduler: Callable[[], Scheduler]  # a second one, for work that no call waits for; its parses are kept apart
    authenticator: Authenticator  # of the server's tokens
    references: References
    store: StoreThread  # of parses, reference sets and tokens
    probes: StoreThread  # the same, for probes, which do not wait for uploads
    telemetry: Telemetry
    pages: list[Pages] = field(default_factory=list)  # routes of pages, which make their calls by the gateway


class Door(Protocol):
    """Another protocol by which a server takes calls, such as HTTP."""

    async def start(self) -> int:
        """Listen; return the port."""

    async def stop(self) -> None:
        """Accept no more connections, let the calls under way finish within the grace, and end the others."""

    async def hurry(self) -> None:
        """End the calls that :meth:`stop` waits for."""


@dataclass(frozen=True, slots=True)
class DoorParts:
    """The parts of a server by which a door answers."""

    config: ServerConfig
    services: Sequence[Service]
    interceptor: CallInterceptor  # through which calls must pass
    limits: Limits
    health: HealthMonitor
    pages: Sequence[Pages]
    tls: ssl.SSLContext | None


_EVALUATION = evaluation_service_pb2.DESCRIPTOR.services_by_name["EvaluationService"]
_REFERENCES = reference_service_pb2.DESCRIPTOR.services_by_name["ReferenceService"]


def open_evaluation(_options: NoOptions, host: Host) -> TokenService:
    """Open the ``EvaluationService``, whose calls need the store for tokens alone."""
    servicer = EvaluationServicer(host.scheduler, host.references, host.limits)
    add = partial(add_EvaluationServiceServicer_to_server, servicer)
    needs = host.probes if host.authenticator.required else None
    return TokenService(_EVALUATION, METHODS[_EVALUATION.full_name], add, host.authenticator, needs)


def open_references(_options: NoOptions, host: Host) -> TokenService:
    """Open the ``ReferenceService``."""
    servicer = ReferencesServicer(host.scheduler, host.references, host.store, host.limits)
    add = partial(add_ReferenceServiceServicer_to_server, servicer)
    return TokenService(_REFERENCES, METHODS[_REFERENCES.full_name], add, host.authenticator, host.probes, writes=True)
