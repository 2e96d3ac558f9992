"""The options of a server, each declared once: with its help, its unit and its bounds."""
# From this follow the options of ``spicegraph serve``, the environment (``--max-wait`` is ``SPICEGRAPH_MAX_WAIT``),
# settings files, ``spicegraph config`` and, of limits that the contract names, ``GetServerInfo``.

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE

StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|URL",
        rich_help_panel="State",
        help="Parses, reference sets and tokens: an SQLite file, redis://HOST/DB, or memory. Default: a file "
        "in the user's data folder.",
        envvar="SPICEGRAPH_STORE",
        show_envvar=True,
    ),
]


def default_store() -> str:
    """Return the file in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return str(Path(data) / "spicegraph" / "server.db")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The options of a server; the defaults suit one for this machine alone.

    Addresses:
        address: Where to listen; unix:PATH works too.
        http: Also answer JSON over HTTP on this address (extra web), and show the evaluation server's pages.
        http_origins: Web pages that may call over HTTP from a browser (https://example.org); *: all.
        hosts: Names and addresses by which clients reach --http, as in their header Host; *: any. Those of this machine
            alone are always taken, and by default others only where other machines can reach it.
        reuse_port: Let several servers share the port.

    Parsing and metrics:
        workers: Number of worker processes; 0: one less than the machine has cores.
        pipeline: What parses captions: en_caption (bundled, run without spaCy), or a spaCy pipeline by name or folder.
        vectors: The vectors of SPICE-G and CAPTURE, from spicegraph vectors build; default: those of COCO train2014.
        meaning: The table by which SPICE-G compares captions as wholes; default: the bundled
            one, for English.
        instances: COCO instances for chair, such as instances_val2014.json: images, by the items' ids, also have the
            objects that annotators outlined. Default: those that references mention.
        idf: CIDEr's document frequencies, from spicegraph idf, so that a score does not depend on the other items:
            rewards with CIDEr need it. Default: those of the items that are scored together.

    State:
        memory: Memory for parses, in MiB.

    Security:
        tls_cert: TLS certificate chain (PEM).
        tls_key: Key of the certificate (PEM).
        tls_client_ca: Require client certificates signed by this authority (PEM): mutual TLS.
        tokens: Whether calls need a token; auto: only if other machines can reach the server.
        allow_insecure: Listen on a network without TLS, or without tokens and client certificates.

    Limits:
        rate: Captions per second for each token; 0: no limit.
        token_calls: Calls that a token may have under way at once on a server; 0: no limit.
        max_sets: Reference sets that a tenant may store; 0: no limit.
        max_items: Maximum number of items or captions in a request.
        max_caption: Maximum number of characters in a caption.
        max_item: Maximum number of characters in an item: its candidate and its references.
        max_message: Maximum size of a message, in MiB.
        max_bodies: How much of bodies over HTTP may be read and not answered yet, in memory and files, in MiB; one
            address may have half of it.

    Time:
        max_wait: Seconds that a call may wait for the calls before it; a call that would wait longer, longer than
            twice its own duration, and longer than 128 captions of usual length take, is refused at once.
        queue: How many captions may wait for an answer, however fast the server is; this limits its memory.
        window_ms: How long captions wait for others, to be parsed together.
        silence: Seconds after which a stream ends whose client sends nothing, and a connection without calls.
        connection_age: Seconds after which a connection is closed once its calls have ended; clients then find new
            servers. 0: never.
        grace: Seconds that running calls get to finish after SIGTERM.

    Log and monitoring:
        metrics_address: Address that serves metrics to Prometheus.
        opentelemetry: Send a trace of each call and the metrics to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names
            (OTLP over gRPC; extra otel).
        reflection: Answer gRPC reflection.
        log_format: One JSON object a line, or text for people.
        log_calls: How many calls of each method and status the log has in a second; the next line counts the others. 0:
            all.
        log_level: What the log has: this and what is graver.
    """

    address: Annotated[str, typer.Option(metavar="HOST:PORT")] = "127.0.0.1:50051"
    http: Annotated[str | None, typer.Option(metavar="HOST:PORT")] = None
    http_origins: Annotated[str, typer.Option(metavar="ORIGIN,...")] = ""
    hosts: Annotated[str, typer.Option(metavar="HOST,...")] = ""
    workers: Annotated[int, typer.Option(min=0)] = 0
    pipeline: Annotated[str, typer.Option(metavar="NAME")] = DEFAULT_PIPELINE
    vectors: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    meaning: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    instances: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    idf: Annotated[Path | None, typer.Option("--idf", metavar="FILE")] = None
    store: StoreOption = None
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    tls_client_ca: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    tokens: Annotated[Literal["auto", "always", "never"], typer.Option()] = "auto"
    allow_insecure: Annotated[bool, typer.Option("--allow-insecure")] = False
    rate: Annotated[float, typer.Option(min=0)] = 0.0
    token_calls: Annotated[int, typer.Option(min=0)] = 256
    max_sets: Annotated[int, typer.Option(min=0)] = 10_000
    max_items: Annotated[int, typer.Option(min=1)] = 2_000
    max_caption: Annotated[int, typer.Option(min=1)] = 2_000
    max_item: Annotated[int, typer.Option(min=1)] = 20_000
    max_message: Annotated[int, typer.Option(metavar="MIB", min=1, max=1024)] = 8
    max_bodies: Annotated[int, typer.Option(metavar="MIB", min=2)] = 1_024
    max_wait: Annotated[float, typer.Option(metavar="SECONDS", min=0.001)] = 0.12
    queue: Annotated[int, typer.Option(min=1)] = 16_384
    window_ms: Annotated[float, typer.Option(metavar="MILLISECONDS", min=0, max=1000)] = 2.0
    memory: Annotated[int, typer.Option(metavar="MIB", min=1)] = 256
    metrics_address: Annotated[str | None, typer.Option(metavar="HOST:PORT")] = None
    opentelemetry: Annotated[bool, typer.Option("--opentelemetry")] = False
    reflection: Annotated[bool, typer.Option("--reflection")] = False
    reuse_port: Annotated[bool, typer.Option("--reuse-port")] = False
    silence: Annotated[float, typer.Option(metavar="SECONDS", min=1)] = 300.0
    connection_age: Annotated[float, typer.Option(metavar="SECONDS", min=0)] = 3_600.0
    grace: Annotated[float, typer.Option(metavar="SECONDS", min=0)] = 30.0
    log_format: Annotated[Literal["json", "text"], typer.Option()] = "json"
    log_calls: Annotated[int, typer.Option(min=0)] = 50
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(metavar="LEVEL", case_sensitive=False)
    ] = "info"

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the server listens for calls."""
        return (self.address,) if self.http is None else (self.address, self.http)

    @property
    def origins(self) -> frozenset[str]:
        """The pages that may call over HTTP from a browser."""
        return frozenset(origin.strip() for origin in self.http_origins.split(",") if origin.strip())

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """What the header Host may say over HTTP, beside the names of this machine alone; ``*``: anything."""
        given = frozenset(host.strip().lower() for host in self.hosts.split(",") if host.strip())
        return given or (frozenset() if self.http is not None and is_local(self.http) else frozenset("*"))

    @property
    def needs_tokens(self) -> bool:
        """Whether calls need a token."""
        if self.tokens == "auto":
            return not all(map(is_local, self.addresses))
        return self.tokens == "always"

    def check(self) -> None:
        """Refuse options out of their bounds, and those that would open the server to a network without saying so."""
        check_bounds(self)
        for address in (*self.addresses, *([self.metrics_address] if self.metrics_address is not None else [])):
            host_and_port(address)
        if self.origins and self.http is None:
            raise InputError("--http-origins is for --http ADDRESS")
        for origin in self.origins:
            _check_origin(origin)
        if (self.tls_cert is None) != (self.tls_key is None) or (self.tls_client_ca and self.tls_cert is None):
            raise InputError("TLS needs both --tls-cert and --tls-key")
        if not self.allow_insecure:
            self._check_open_addresses()

    def _check_open_addresses(self) -> None:
        """Refuse addresses that other machines can reach without TLS, or without showing who they are."""
        for address in self.addresses:
            if is_local(address):
                continue
            if self.tls_cert is None:
                raise InputError(f"{address} is open to the network without TLS: give a certificate, or allow it")
            if not self.needs_tokens and self.tls_client_ca is None:
                raise InputError(f"{address} is open to everybody: demand tokens or client certificates, or allow it")


def _check_origin(origin: str) -> None:
    scheme, separator, host = origin.partition("://")
    if origin != "*" and (scheme not in {"http", "https"} or not separator or not host or "/" in host):
        raise InputError(f"an origin is http[s]://HOST[:PORT] or *, got {origin!a}")


def check_bounds(options: Any) -> None:
    """Check the values of a group of options, which a program may have given, against its declared bounds."""
    hints = get_type_hints(type(options), include_extras=True)
    for name in (field.name for field in fields(options)):
        value = getattr(options, name)
        for declared in getattr(hints[name], "__metadata__", ()):
            bounds = {"least": declared.min, "most": declared.max}
            low, high = (value if bound is None else bound for bound in bounds.values())
            if isinstance(value, int | float) and not low <= value <= high:
                said = " and ".join(f"at {word} {bound:g}" for word, bound in bounds.items() if bound is not None)
                raise InputError(f"--{name.replace('_', '-')}: must be {said}, got {value:g}")


def host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT`` or ``[IPV6]:PORT``; a ``unix:`` path has port 0."""
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
