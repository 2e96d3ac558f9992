"""The services of this package, as a server opens them (see :mod:`spicegraph_service.builtin`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from spicegraph_api.v1 import evaluation_service_pb2, reference_service_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import add_EvaluationServiceServicer_to_server
from spicegraph_api.v1.methods import METHODS
from spicegraph_api.v1.reference_service_pb2_grpc import add_ReferenceServiceServicer_to_server
from spicegraph_service.rpc.evaluation import EvaluationServicer
from spicegraph_service.rpc.references import ReferencesServicer
from spicegraph_service.rpc.service import TokenService

if TYPE_CHECKING:
    from spicegraph_service.registry import NoOptions
    from spicegraph_service.rpc.host import Host

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
