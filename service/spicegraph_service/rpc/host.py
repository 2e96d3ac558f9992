"""What a server offers to its services, and how the services of this package are opened with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from spicegraph_api.v1 import evaluation_service_pb2, reference_service_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import add_EvaluationServiceServicer_to_server
from spicegraph_api.v1.methods import METHODS
from spicegraph_api.v1.reference_service_pb2_grpc import add_ReferenceServiceServicer_to_server
from spicegraph_service.rpc.evaluation import EvaluationServicer
from spicegraph_service.rpc.references import ReferencesServicer
from spicegraph_service.rpc.service import TokenService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aiohttp.web import AbstractRouteDef
    from google.protobuf.message import Message

    from spicegraph_service.pool.cache import StoreThread
    from spicegraph_service.registry import NoOptions
    from spicegraph_service.rpc.auth import Authenticator
    from spicegraph_service.rpc.gateway import Gateway
    from spicegraph_service.rpc.limits import Limits
    from spicegraph_service.rpc.references import References
    from spicegraph_service.rpc.scheduler import Scheduler
    from spicegraph_service.rpc.telemetry import Telemetry

Pages: TypeAlias = "Callable[[Gateway], Iterable[AbstractRouteDef]]"


class Dialect(NamedTuple):
    """A method in the words of programs that know nothing of the contract: JSON that is posted to a path.

    Attributes:
        path: where it is asked.
        method: what it asks for: ``/SERVICE/METHOD``, with one message each way.
        read: makes the request of a body and the URL's query; a ``ValueError`` or ``InputError`` says what is faulty.
        write: makes JSON values of the response.
    """

    path: str
    method: str
    read: Callable[[bytes, Mapping[str, str]], Message]
    write: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Host:
    """What a server offers to the services that it has.

    Attributes:
        limits: the largest requests.
        pipeline: the name of the pipeline that parses captions.
        data: the server's own data for metrics, packed; workers have it, too.
        workers: how many worker processes there are.
        scheduler: the way to the workers for calls.
        open_scheduler: opens a second way, for work that no call waits for: of it, calls wait behind one chunk at most.
            Parses that take it are kept apart: calls can't find them by guessing.
        authenticator: knows the callers that have the server's tokens.
        references: the stored reference sets.
        store: the store of parses, reference sets and tokens.
        probes: the same, for probes, which do not wait for uploads.
        telemetry: counters, for Prometheus and OpenTelemetry.
        pages: a service that has pages adds what returns their routes; they make their calls by the gateway.
        dialects: a service whose methods are asked in the words of other programs adds how.
    """

    limits: Limits
    pipeline: str
    data: bytes
    workers: int
    scheduler: Scheduler
    open_scheduler: Callable[[], Scheduler]
    authenticator: Authenticator
    references: References
    store: StoreThread
    probes: StoreThread
    telemetry: Telemetry
    pages: list[Pages] = field(default_factory=list)
    dialects: list[Dialect] = field(default_factory=list)


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
