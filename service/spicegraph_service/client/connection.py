"""How the clients reach a server: channels that try again, a token on every call, a deadline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import grpc
import grpc.aio

from spicegraph_api.v1.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator


SERVICE_CONFIG = json.dumps(
    {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [
            {
                "name": [
                    {"service": service, "method": name}
                    for service, methods in METHODS.items()
                    for name, method in methods.items()
                    if method.repeatable
                ],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.2s",
                    "maxBackoff": "5s",
                    "backoffMultiplier": 2,
                    # The server says when to call again, and which calls not to repeat at all.
                    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
                },
            }
        ],
    }
)
"""Retries where no server is available or the queue is full; calls in turn to all servers of a name."""


PAGE = 1_000
"""Reference sets in one page of a list."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """PEM data: authorities to trust (``None``: the system's), and for mutual TLS the client's own pair."""

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return them as gRPC takes them."""
        return grpc.ssl_channel_credentials(self.authorities, self.key, self.certificate)


def channel_options() -> list[tuple[str, str | int]]:
    """Return the options of a channel."""
    return [("grpc.service_config", SERVICE_CONFIG), ("grpc.max_receive_message_length", -1)]


class Paged(Protocol):
    """A request for a page of a list."""

    page_token: str


class Page(Protocol):
    """A page of a list."""

    next_page_token: str


Request = TypeVar("Request")
Reply = TypeVar("Reply")
PagedRequest = TypeVar("PagedRequest", bound=Paged)
PageReply = TypeVar("PageReply", bound=Page)


def _metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),) if token else ()


class Connection:
    """A synchronous client's channel to a server, and what goes with every call."""

    def __init__(self, address: str, *, token: str | None, tls: TlsOptions | None, timeout_s: float | None) -> None:
        """Open a channel; ``None``: no token, no TLS, no deadline."""
        if tls is None:
            self._channel = grpc.insecure_channel(address, channel_options())
        else:
            self._channel = grpc.secure_channel(address, tls.credentials(), channel_options())
        self._metadata = _metadata(token)
        self._timeout_s = timeout_s

    def _call(self, method: grpc.UnaryUnaryMultiCallable[Request, Reply], request: Request) -> Reply:
        """Make a call of one message each way."""
        return method(request, timeout=self._timeout_s, metadata=self._metadata)

    def _pages(
        self, method: grpc.UnaryUnaryMultiCallable[PagedRequest, PageReply], request: PagedRequest
    ) -> Iterator[PageReply]:
        """Yield the pages of a list."""
        while True:
            page = self._call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()


class AsyncConnection:
    """An asynchronous client's channel, for one event loop, and what goes with every call."""

    def __init__(self, address: str, *, token: str | None, tls: TlsOptions | None, timeout_s: float | None) -> None:
        """Open a channel; ``None``: no token, no TLS, no deadline."""
        if tls is None:
            self._channel = grpc.aio.insecure_channel(address, channel_options())
        else:
            self._channel = grpc.aio.secure_channel(address, tls.credentials(), channel_options())
        self._metadata = _metadata(token)
        self._timeout_s = timeout_s

    def _call(self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Reply], request: Request) -> Awaitable[Reply]:
        """Make a call of one message each way."""
        return method(request, timeout=self._timeout_s, metadata=self._metadata)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self.close()
