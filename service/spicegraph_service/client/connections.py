"""How the clients reach a server: channels that try again, a token on every call, a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import grpc
import grpc.aio

from spicegraph_service.client.messages import TlsOptions, channel_options

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["AsyncConnection", "Connection"]

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
    """The same for one event loop."""

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
