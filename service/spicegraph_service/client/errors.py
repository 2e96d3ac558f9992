"""What a server refuses, as one error with one line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from grpc_status import rpc_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_REQUEST_ID = "x-request-id"


class ServiceError(grpc.aio.AioRpcError):
    """A call that the server refused, or that did not reach it; its text is one line: code, reason and request.

    It is a ``grpc.RpcError`` of both kinds of clients, with ``code()``, ``details()`` and ``trailing_metadata()``.
    """

    def __init__(self, code: grpc.StatusCode, details: str, trailing_metadata: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing_metadata), details)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy is made of, as in another process."""
        return type(self), (self.code(), self.details(), tuple(self.trailing_metadata()))

    @classmethod
    def of(cls, error: Any) -> ServiceError:
        """Return gRPC's error as this one."""
        trailing = error.trailing_metadata() or ()
        pairs = ((key, value) for key, value in trailing)
        return cls(error.code(), error.details() or "", pairs)

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Each wrong field by its path, such as ``items[17].references``, with the reason."""
        faults = [fault for detail in self._details_of(BadRequest) for fault in detail.field_violations]
        return tuple((fault.field, fault.description) for fault in faults)

    @property
    def reason(self) -> str:
        """The stable name of the error, such as ``INVALID_FIELDS``; empty where no server said it."""
        return next((info.reason for info in self._details_of(ErrorInfo)), "")

    @property
    def request_id(self) -> str:
        """The id under which the server's log has the call; empty where none was reached."""
        return next((str(value) for key, value in self.trailing_metadata() if key == _REQUEST_ID), "")

    def __str__(self) -> str:
        """Return one line."""
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code().name}: {' '.join((self.details() or 'no reason given').split())}{request}"

    __repr__ = __str__

    def _details_of(self, kind: Any) -> Iterator[Any]:
        status = rpc_status.from_call(self)  # type: ignore[arg-type]  # it has what is read of a call
        for packed in status.details if status is not None else ():
            if packed.Is(kind.DESCRIPTOR):
                yield kind.FromString(packed.value)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise what gRPC raises as a :class:`ServiceError`."""
    try:
        yield
    except ServiceError:
        raise
    except grpc.RpcError as error:
        raise ServiceError.of(error) from None
