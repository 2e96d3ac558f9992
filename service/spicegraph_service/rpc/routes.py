"""Routes that services offer over HTTP, and the calls that their pages make. Public to wings."""
# The server of HTTP is a wing of its own (``spicegraph_web``): services know this module alone.

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message as Header
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import urlsplit

import grpc
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status

from spicegraph_service.rpc.status import CallError, to_trailers

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from spicegraph_service.rpc.interceptor import Malformed

Requests: TypeAlias = "Message | Malformed | AsyncIterator[Message | Malformed]"
_INTERNAL = "grpc-"  # of gRPC's own; what else is in the trailers is for the client
_OURS = frozenset({None, "same-origin", "none"})

HTTP_STATUSES: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNKNOWN: 500,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DATA_LOSS: 500,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}  # The HTTP status of each status of gRPC, by Connect.


class FailedCallError(Exception):
    """A call that failed: its status, the details of ``google.rpc``, and headers for the client."""

    def __init__(self, code: grpc.StatusCode, message: str, trailers: Sequence[tuple[str, str | bytes]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        packed = dict(trailers).get("grpc-status-details-bin", b"")
        self.details = tuple(Status.FromString(packed).details) if isinstance(packed, bytes) and packed else ()
        self.headers = client_headers(trailers)

    @classmethod
    def of(cls, error: CallError) -> FailedCallError:
        """Return the failure of a call that was refused before it began."""
        return cls(error.code, error.message, to_trailers(error, request_id=""))

    def said(self, names: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
        """Return the message and the invalid fields with reasons; ``names``: the fields' display names."""
        faults, bad = [], BadRequest()
        for detail in self.details:
            if detail.Unpack(bad):
                faults += [(names.get(each.field, each.field), each.description) for each in bad.field_violations]
        if len(faults) == 1 and self.message.endswith(faults[0][1]):
            return ": ".join(faults[0]), []
        return self.message, faults

    @property
    def retry_after_s(self) -> float | None:
        """When to try again; ``None``: the server does not say."""
        for detail in self.details:
            retry = RetryInfo()
            if detail.Unpack(retry):
                return retry.retry_delay.ToTimedelta().total_seconds()
        return None


def client_headers(trailers: Sequence[tuple[str, str | bytes]]) -> dict[str, str]:
    """Return the trailers that are for the client."""
    return {name: value for name, value in trailers if isinstance(value, str) and not name.startswith(_INTERNAL)}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from."""

    headers: Mapping[str, str]  # by lower-cased names
    peer: str = "web"  # its address, as gRPC writes it: ``ipv4:HOST:PORT``
    certificate: tuple[bytes, ...] = ()  # the names in the client's certificate
    deadline: float | None = None  # by :func:`time.monotonic`


class Gateway(Protocol):
    """The methods of a server's services, called inside of its process; failures are :class:`FailedCallError`."""

    async def unary(self, path: str, requests: Requests, origin: Origin) -> tuple[Message, dict[str, str]]:
        """Return a call's response and headers for the client; ``requests`` is an iterator of a stream."""

    def stream(self, path: str, requests: Requests, origin: Origin) -> AsyncGenerator[Message]:
        """Make a call with a stream of responses; it may fail after any number of them."""

    async def admit(self, path: str, origin: Origin) -> None:
        """Check by its headers that a call may be made, before its body is read."""


Pages: TypeAlias = Callable[[Gateway], Iterable[Any]]
"""Makes the routes of pages, as aiohttp defines them; pages make their calls by the gateway."""


def is_own_form(headers: Mapping[str, str], host: str) -> bool:
    """Say whether a form comes from a page of this site, as far as browsers say."""
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    return site in _OURS and (origin is None or urlsplit(origin).netloc == host)


def read_part_names(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the name of a form's field, and that of its file without folders; ``None``: it is no file."""
    # What aiohttp refuses, such as semicolons in a name, the standard library reads.
    header = Header()
    header["Content-Disposition"] = headers.get("Content-Disposition", "")
    file_name = header.get_filename()
    short = None if file_name is None else file_name.replace("\\", "/").rpartition("/")[2]
    return str(header.get_param("name", "", header="Content-Disposition")), short


def format_peer(name: object) -> str:
    """Return the address of a connection's peer, written as gRPC writes it."""
    if not isinstance(name, tuple):
        return "unix:"
    host, port = name[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
