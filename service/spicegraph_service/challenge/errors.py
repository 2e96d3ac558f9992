"""The errors of calls of participants and organisers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import PreconditionFailure, QuotaFailure, RetryInfo

from spicegraph_scorer.core.wording import counted
from spicegraph_service.server.status import CallError, Violation, invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Sequence


def wrong(field: str, reason: str) -> CallError:
    """Return the error for a wrong field."""
    return invalid([Violation(field, reason)])


def wrong_references(faults: Sequence[str]) -> CallError:
    """Return the error for a file of references: its faults are in the details alone, since messages are logged."""
    violations = [Violation("chunk", fault) for fault in faults]
    details = invalid(violations).details
    message = f"chunk: the annotations cannot be used ({counted(len(faults), 'fault')})"
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELDS", message, *details)


def no_challenge(name: str) -> CallError:
    """Return the error for a challenge that does not exist."""
    return not_found("challenge", name)


def no_submission(submission_id: str) -> CallError:
    """Return the error for a submission that does not exist, or is somebody else's: the caller does not learn which."""
    return not_found("submission", submission_id)


def exists(kind: str, name: str) -> CallError:
    """Return the error for a name that is taken."""
    return CallError(grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN", f"there is a {kind} {name!r} already")


def taken_name(name: str) -> CallError:
    """Return the error for the name of a removed user with submissions, which another user must not inherit."""
    message = f"{name!r} was the name of a user who was removed and whose submissions stay: choose another name"
    return CallError(grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN", message)


def denied(message: str, *, reason: str = "NOT_AN_ORGANISER") -> CallError:
    """Return the error for a caller who may not do this."""
    return CallError(grpc.StatusCode.PERMISSION_DENIED, reason, message)


def refused(reason: str, message: str, subject: str) -> CallError:
    """Return the error for what cannot be done in the present state of things."""
    violation = PreconditionFailure.Violation(type=reason, subject=subject, description=message)
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, reason, message, PreconditionFailure(violations=[violation]))


def quota_used(subject: str, message: str, *, retry_after_s: float | None) -> CallError:
    """Return the error for a limit that is used up; ``retry_after_s`` says when there is room again, if ever."""
    details = QuotaFailure(violations=[QuotaFailure.Violation(subject=subject, description=message)])
    if retry_after_s is None:
        return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "SUBMISSION_LIMIT", message, details)
    delay = Duration()
    delay.FromMilliseconds(round(1000 * retry_after_s))
    return CallError(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "SUBMISSION_LIMIT", message, details, RetryInfo(retry_delay=delay)
    )
