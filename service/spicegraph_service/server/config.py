"""What a server is told: addresses, workers, limits, security."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_service.server.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from spicegraph_service.challenge.host import ChallengeConfig


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the server's certificate chain and key; ``client_ca`` demands clients' ones (mTLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A server's options; the defaults suit a machine of one's own.

    ``address`` is ``HOST:PORT`` (port 0: any free one) or ``unix:PATH``. ``tokens`` of ``None`` means:
    needed but on local addresses. ``max_wait_s`` and ``queue_captions`` bound what is accepted and not answered
    yet: by the time that it takes, and at most by its captions (see :class:`~.limits.Budget`); ``rate``
    is a caller's captions a second (0: no limit), ``metrics_address`` where Prometheus asks (``None``:
    nowhere), ``vectors`` a table of vectors for SPICE-G (``None``: the bundled ones), ``challenges`` the evaluation
    server (``None``: not served).
    """

    address: str = "127.0.0.1:50051"
    pipeline: str = ""
    vectors: Path | None = None
    workers: int = 0
    store: str = "memory"
    tls: TlsFiles | None = None
    tokens: bool | None = None
    allow_insecure: bool = False
    rate: float = 0.0
    limits: Limits = field(default_factory=Limits)
    max_wait_s: float = 0.12
    queue_captions: int = 16_384
    batch_captions: int = 256
    window_s: float = 0.002
    max_calls: int = 1_024
    memory_bytes: int = 256 << 20
    task_timeout_s: float = 120.0
    worker_growth_bytes: int = 1 << 30
    grace_s: float = 30.0
    reflection: bool = False
    metrics_address: str | None = None
    reuse_port: bool = False
    challenges: ChallengeConfig | None = None

    @property
    def needs_tokens(self) -> bool:
        """Whether calls need a token."""
        return self.tokens if self.tokens is not None else not is_local(self.address)

    def check(self) -> None:
        """Refuse what would be open to a network without saying so.

        Raises:
            InputError: the address, or its security, is wrong.
        """
        host_and_port(self.address)
        if self.metrics_address is not None:
            host_and_port(self.metrics_address)
        if self.allow_insecure or is_local(self.address):
            return
        if self.tls is None:
            raise InputError(f"{self.address} is open to the network without TLS: give a certificate, or allow it")
        if not self.needs_tokens and self.tls.client_ca is None:
            raise InputError(f"{self.address} is open to everybody: demand tokens or client certificates, or allow it")


def default_workers() -> int:
    """Return how many worker processes suit this machine: all cores but one, which serves the calls."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


def host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT`` or ``[IPV6]:PORT``; a ``unix:`` path has port 0.

    Raises:
        InputError: it is neither.
    """
    if address.startswith("unix:"):
        return address, 0
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise InputError(f"an address is HOST:PORT, got {address!a}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_local(address: str) -> bool:
    """Say whether only this machine can reach an address."""
    host, _ = host_and_port(address)
    if host.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
