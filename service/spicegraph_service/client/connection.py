"""How the clients reach a server: channels that try again, a token on every call, a deadline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import grpc
import grpc.aio

from spicegraph_api.v1.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Awaitable


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


T = TypeVar("T")


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


Request = TypeVar("Request")
Reply = TypeVar("Reply")
Metadata: TypeAlias = tuple[tuple[str, str], ...]


def _metadata(token: str | None) -> Metadata:
    return (("authorization", f"Bearer {token}"),) if token else ()


@dataclass(frozen=True, slots=True)
class Connection:
    """A channel to a server, and what goes with every call."""

    channel: grpc.Channel
    metadata: Metadata
    timeout_s: float | None

    @classmethod
    def to(cls, address: str, *, token: str | None, tls: TlsOptions | None, timeout_s: float | None) -> Self:
        """Open a channel; ``None``: no token, no TLS, no deadline."""
        if tls is None:
            channel = grpc.insecure_channel(address, channel_options())
        else:
            channel = grpc.secure_channel(address, tls.credentials(), channel_options())
        return cls(channel, _metadata(token), timeout_s)

    def call(self, method: grpc.UnaryUnaryMultiCallable[Request, Reply], request: Request) -> Reply:
        """Make a call of one message each way."""
        return method(request, timeout=self.timeout_s, metadata=self.metadata)


@dataclass(frozen=True, slots=True)
class AsyncConnection:
    """A channel for one event loop, and what goes with every call."""

    channel: grpc.aio.Channel
    metadata: Metadata
    timeout_s: float | None

    @classmethod
    def to(cls, address: str, *, token: str | None, tls: TlsOptions | None, timeout_s: float | None) -> Self:
        """Open a channel; ``None``: no token, no TLS, no deadline."""
        if tls is None:
            channel = grpc.aio.insecure_channel(address, channel_options())
        else:
            channel = grpc.aio.secure_channel(address, tls.credentials(), channel_options())
        return cls(channel, _metadata(token), timeout_s)

    def call(self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Reply], request: Request) -> Awaitable[Reply]:
        """Make a call of one message each way."""
        return method(request, timeout=self.timeout_s, metadata=self.metadata)
