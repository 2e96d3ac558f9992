"""What goes wrong in a call, as gRPC statuses with ``google.rpc`` details."""
# Every error carries an ``ErrorInfo`` with a stable reason; wrong fields come as one ``BadRequest``, a full queue with
# ``RetryInfo``. Unforeseen errors become INTERNAL with nothing but an id that the log has too.

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, NamedTuple

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from spicegraph_parser.errors import DataError, InputError, LimitError
from spicegraph_service.pool.workers import NoWorkersError
from spicegraph_service.rpc.limits import FullError
from spicegraph_service.store import StoreError, StoreFullError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.message import Message

DOMAIN = "spicegraph"
MOST_VIOLATIONS = 50  # details travel in trailers, which have a size limit of their own
TOO_LONG = "MESSAGE_TOO_LONG"
_LONGEST_TEXT = 300
_LONGEST_PUSHBACK_MS = 5_000  # what takes longer is for the caller to decide
_RETRIED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
_log = logging.getLogger(__name__)


class Violation(NamedTuple):
    """A wrong field of a request: its path (``items[17].references``) and the reason."""

    field: str
    reason: str


class CallError(Exception):
    """An error that the client gets as a status; ``caller`` is who made the call, for the log, where that is known."""

    def __init__(self, code: grpc.StatusCode, reason: str, message: str, *details: Message, caller: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.caller = caller


class InvalidError(CallError):
    """The error for wrong fields, with all of them."""

    violations: Sequence[Violation] = ()


def invalid(violations: Sequence[Violation], *, reason: str = "INVALID_FIELDS") -> CallError:
    """Return the error for wrong fields: the first fifty are named, and all are counted."""
    shown = [Violation(v.field, _shortened(v.reason)) for v in violations[:MOST_VIOLATIONS]]
    details = BadRequest(
        field_violations=[BadRequest.FieldViolation(field=v.field, description=v.reason) for v in shown]
    )
    first = f"{shown[0].field}: {shown[0].reason}"
    rest = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    error = InvalidError(grpc.StatusCode.INVALID_ARGUMENT, reason, first + rest, details)
    error.violations = violations
    return error


def not_found(kind: str, name: str) -> CallError:
    """Return the error for a resource that does not exist, or is somebody else's: the caller does not learn which."""
    shown = _shortened(name)
    info = ResourceInfo(resource_type=kind, resource_name=shown)
    return CallError(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", f"there is no {kind} {shown!r}", info)


def unauthenticated(message: str) -> CallError:
    """Return the error for a caller without a valid token."""
    return CallError(grpc.StatusCode.UNAUTHENTICATED, "INVALID_TOKEN", message)


def permission_denied(scope: str, *, caller: str = "") -> CallError:
    """Return the error for a caller whose token lacks a scope."""
    return CallError(
        grpc.StatusCode.PERMISSION_DENIED,
        "MISSING_SCOPE",
        f"the token lacks the scope {scope!r} that this call needs",
        caller=caller,
    )


def missing_right(kind: str, name: str, right: str) -> CallError:
    """Return the error for a resource that its owner shares with the caller, but not for this."""
    message = f"the {kind} {_shortened(name)!r} is shared with you without the right {right!r} that this call needs"
    return CallError(grpc.StatusCode.PERMISSION_DENIED, "MISSING_RIGHT", message)


def exhausted(reason: str, message: str, retry_after_s: float) -> CallError:
    """Return the error for a full queue or a spent rate."""
    return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, reason, message, retry_info(retry_after_s))


def too_long(most: int) -> CallError:
    """Return the error for a message with too many bytes."""
    message = f"the message has more than {most:,} bytes, the most that the server reads"
    return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, TOO_LONG, message)


def too_many_sets(most: int) -> CallError:
    """Return the error for a tenant that has stored all reference sets that it may."""
    message = f"there are {most} reference sets, the most that a tenant may store; delete one first"
    return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "SET_LIMIT", message)


def unavailable(reason: str, message: str, retry_after_s: float) -> CallError:
    """Return an UNAVAILABLE error with a retry delay."""
    return CallError(grpc.StatusCode.UNAVAILABLE, reason, message, retry_info(retry_after_s))


def stalled(seconds: float) -> CallError:
    """Return the error for a call whose request does not come."""
    return CallError(grpc.StatusCode.ABORTED, "REQUEST_STALLED", f"no request came for {seconds:g} s")


def unread(seconds: float) -> CallError:
    """Return the error for a call whose client takes no response."""
    return CallError(grpc.StatusCode.ABORTED, "READER_STALLED", f"the client took no response for {seconds:g} s")


def to_call_error(error: Exception) -> CallError:  # noqa: PLR0911 (one for each kind of error)
    """Return the error that a client gets for an exception; an unforeseen one is logged under the id in its message."""
    match error:
        case CallError():
            return error
        case FullError():
            return exhausted("QUEUE_FULL", "the server's queue is full", error.retry_after_s)
        case NoWorkersError():
            _log.error("no worker: %s", error)
            return unavailable("NO_WORKERS", "the server has no worker process and cannot start one", 1.0)
        case StoreFullError():
            return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL", "the server's store: no room left")
        case StoreError():
            _log.error("the store fails: %s", error)
            return unavailable("STORE_UNAVAILABLE", "the server's store cannot be reached", 1.0)
        case InputError():  # the texts of this and the following errors are meant for users
            return CallError(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT", str(error))
        case LimitError():
            return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED", str(error))
        case DataError():
            return CallError(grpc.StatusCode.FAILED_PRECONDITION, "MISSING_DATA", str(error))
    incident = secrets.token_hex(6)
    _log.error("incident %s", incident, exc_info=error)
    message = f"internal error; the server's log has it as {incident}"
    return CallError(grpc.StatusCode.INTERNAL, "INTERNAL", message)


def to_trailers(error: CallError, *, request_id: str) -> tuple[tuple[str, str | bytes], ...]:
    """Return a status's trailers: its details, and the retry delay for retrying clients."""
    info = ErrorInfo(reason=error.reason, domain=DOMAIN, metadata={"request_id": request_id})
    details = []
    for message in (info, *error.details):
        packed = AnyMessage()
        packed.Pack(message)
        details.append(packed)
    number: int = error.code.value[0]
    status: grpc.Status = rpc_status.to_status(Status(code=number, message=error.message, details=details))
    trailers = tuple(status.trailing_metadata or ())
    if error.code not in _RETRIED:
        return trailers
    # gRPC's word to retry policies: the milliseconds to wait, or -1, not to try again.
    waits = [round(d.retry_delay.ToMilliseconds()) for d in error.details if isinstance(d, RetryInfo)]
    wait = waits[0] if waits and waits[0] <= _LONGEST_PUSHBACK_MS else -1
    return (*trailers, ("grpc-retry-pushback-ms", str(wait)))


def retry_info(seconds: float) -> RetryInfo:
    """Return the detail that says when to call again."""
    delay = Duration()
    delay.FromMilliseconds(round(1000 * seconds))
    return RetryInfo(retry_delay=delay)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"


def wrong(field: str, reason: str) -> CallError:
    """Return the error for a wrong field."""
    return invalid([Violation(field, reason)])


def name_taken(kind: str, name: str) -> CallError:
    """Return the error for a name that is taken."""
    return CallError(grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN", f"there is a {kind} {name!r} already")


def refused(reason: str, message: str, subject: str) -> CallError:
    """Return a FAILED_PRECONDITION error."""
    violation = PreconditionFailure.Violation(type=reason, subject=subject, description=message)
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, reason, message, PreconditionFailure(violations=[violation]))
