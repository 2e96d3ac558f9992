"""``spicegraph serve`` and ``spicegraph health``: the gRPC server, and whether it serves."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping  # noqa: TC003 (typer reads the annotations when it runs)
from dataclasses import is_dataclass
from enum import StrEnum
from pathlib import Path  # noqa: TC003 (typer reads the annotations when it runs)
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_service.cli.groups import with_groups
from spicegraph_service.cli.stores import StoreOption, default_store, server_extra
from spicegraph_service.output.terminal import printable, write_stdout
from spicegraph_service.registry import services

if TYPE_CHECKING:
    from collections.abc import Callable

    from spicegraph_service.rpc.http_server import WebConfig


class LogFormat(StrEnum):
    """How the log is written."""

    JSON = "json"
    TEXT = "text"


class TokenRule(StrEnum):
    """When calls need a token."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def from_environment(command: Callable[..., None]) -> Callable[..., None]:
    """Let every option of a command also be given by the environment: ``--max-wait`` as ``SPICEGRAPH_MAX_WAIT``."""
    hints = get_type_hints(command, include_extras=True)
    for owner in (command, *(hint for hint in hints.values() if is_dataclass(hint))):
        # Kept on the owner: who asks it for its hints again would get other options, made anew from their text.
        owner.__annotations__ = hints if owner is command else get_type_hints(owner, include_extras=True)
        for name, hint in owner.__annotations__.items():
            for option in getattr(hint, "__metadata__", ()):
                option.envvar = option.envvar or f"SPICEGRAPH_{name.upper()}"
    return command


_TOKENS = {TokenRule.AUTO: None, TokenRule.ALWAYS: True, TokenRule.NEVER: False}


@from_environment
@with_groups({name: entry.options for name, entry in services().items()})
def serve(
    *,
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen; unix:PATH works too.")
    ] = "127.0.0.1:50051",
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Also answer JSON over HTTP on this address (extra web), and show the evaluation server's pages.",
        ),
    ] = None,
    http_origins: Annotated[
        str,
        typer.Option(
            metavar="ORIGIN,...", help="Web pages that may call over HTTP from a browser (https://example.org); *: all."
        ),
    ] = "",
    workers: Annotated[
        int, typer.Option(help="Number of worker processes; 0: one less than the machine has cores.", min=0)
    ] = 0,
    pipeline: Annotated[
        str, typer.Option(metavar="NAME", help="The spaCy pipeline that parses captions.")
    ] = DEFAULT_PIPELINE,
    vectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The vectors of SPICE-G and CAPTURE, from spicegraph vectors build; default: those of COCO train2014.",
        ),
    ] = None,
    meaning: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The table by which SPICE-G compares captions as wholes, from training/meaning.py; default: the "
            "bundled one, for English.",
        ),
    ] = None,
    instances: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="COCO instances for chair, such as instances_val2014.json: images, by the items' ids, also have the "
            "objects that annotators outlined. Default: those that references mention.",
        ),
    ] = None,
    idf: Annotated[
        Path | None,
        typer.Option(
            "--idf",
            metavar="FILE",
            help="CIDEr's document frequencies, from spicegraph idf, so that a score does not depend on the other "
            "items: rewards with CIDEr need it. Default: those of the items that are scored together.",
        ),
    ] = None,
    store: StoreOption = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of the certificate (PEM).")] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Require client certificates signed by this authority (PEM): mutual TLS."),
    ] = None,
    tokens: Annotated[
        TokenRule, typer.Option(help="Whether calls need a token; auto: only if other machines can reach the server.")
    ] = TokenRule.AUTO,
    allow_insecure: Annotated[
        bool,
        typer.Option(
            "--allow-insecure", help="Listen on a network without TLS, or without tokens and client certificates."
        ),
    ] = False,
    rate: Annotated[float, typer.Option(help="Captions per second for each token; 0: no limit.", min=0)] = 0.0,
    token_calls: Annotated[
        int, typer.Option(help="Calls that a token may have under way at once on a server; 0: no limit.", min=0)
    ] = 256,
    max_sets: Annotated[int, typer.Option(help="Reference sets that a tenant may store; 0: no limit.", min=0)] = 10_000,
    max_items: Annotated[int, typer.Option(help="Maximum number of items or captions in a request.", min=1)] = 2_000,
    max_caption: Annotated[int, typer.Option(help="Maximum number of characters in a caption.", min=1)] = 2_000,
    max_item: Annotated[
        int, typer.Option(help="Maximum number of characters in an item: its candidate and its references.", min=1)
    ] = 20_000,
    max_message: Annotated[int, typer.Option(help="Maximum size of a message, in MiB.", min=1, max=1_024)] = 8,
    max_wait: Annotated[
        float,
        typer.Option(
            help="Seconds that a call may wait for the calls before it; a call that would wait longer, and longer "
            "than twice its own duration, is refused at once.",
            min=0.001,
        ),
    ] = 0.12,
    queue: Annotated[
        int,
        typer.Option(
            help="How many captions may wait for an answer, however fast the server is; this limits its memory.", min=1
        ),
    ] = 16_384,
    window_ms: Annotated[
        float, typer.Option(help="How long captions wait for others, to be parsed together.", min=0, max=1_000)
    ] = 2.0,
    memory: Annotated[int, typer.Option(help="Memory for parses, in MiB.", min=1)] = 256,
    metrics_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address that serves metrics to Prometheus.")
    ] = None,
    opentelemetry: Annotated[
        bool,
        typer.Option(
            "--opentelemetry",
            help="Send a trace of each call and the metrics to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names "
            "(OTLP over gRPC; extra otel).",
        ),
    ] = False,
    reflection: Annotated[bool, typer.Option("--reflection", help="Answer gRPC reflection.")] = False,
    reuse_port: Annotated[bool, typer.Option("--reuse-port", help="Let several servers share the port.")] = False,
    silence: Annotated[
        float,
        typer.Option(
            help="Seconds after which a stream ends whose client sends nothing, and a connection without calls.", min=1
        ),
    ] = 300.0,
    connection_age: Annotated[
        float,
        typer.Option(
            help="Seconds after which a connection is closed once its calls have ended; clients then find new servers. "
            "0: never.",
            min=0,
        ),
    ] = 3_600.0,
    grace: Annotated[float, typer.Option(help="Seconds that running calls get to finish after SIGTERM.", min=0)] = 30.0,
    log_format: Annotated[LogFormat, typer.Option()] = LogFormat.JSON,
    log_calls: Annotated[
        int,
        typer.Option(
            help="How many calls of each method and status the log has in a second; the next line counts the others. "
            "0: all.",
            min=0,
        ),
    ] = 50,
    log_level: Annotated[str, typer.Option(metavar="LEVEL")] = "info",
    registered: Mapping[str, Any],
) -> None:
    """Serve parses and scores over gRPC, and over HTTP, until SIGTERM. The log goes to standard error."""
    # No Python code here forks; without this, gRPC writes a line to the log whenever a worker starts.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    with server_extra():
        from spicegraph_service import app  # noqa: PLC0415
        from spicegraph_service.rpc.auth import TlsFiles  # noqa: PLC0415
        from spicegraph_service.rpc.limits import Limits  # noqa: PLC0415
        from spicegraph_service.rpc.telemetry import logging_to_stderr  # noqa: PLC0415
    if (tls_cert is None) != (tls_key is None) or (tls_client_ca is not None and tls_cert is None):
        raise InputError("TLS needs both --tls-cert and --tls-key")
    tls = TlsFiles(tls_cert, tls_key, tls_client_ca) if tls_cert is not None and tls_key is not None else None
    if log_level.lower() not in {"debug", "info", "warning", "error"}:
        raise InputError(f"--log-level: expected debug, info, warning or error, got {log_level!a}")
    config = app.ServerConfig(
        address=address,
        pipeline=pipeline,
        vectors=vectors,
        meaning=meaning,
        instances=instances,
        frequencies=idf,
        workers=workers,
        store=store or default_store(),
        tls=tls,
        tokens=_TOKENS[tokens],
        allow_insecure=allow_insecure,
        rate=rate,
        limits=Limits(
            max_items=max_items,
            max_caption_characters=max_caption,
            max_item_characters=max_item,
            max_message_bytes=max_message << 20,
            max_sets=max_sets,
            max_calls=token_calls,
            max_silence_s=silence,
        ),
        connection_age_s=connection_age,
        max_wait_s=max_wait,
        queue_captions=queue,
        window_s=window_ms / 1000,
        memory_bytes=memory << 20,
        grace_s=grace,
        reflection=reflection,
        metrics_address=metrics_address,
        logged_calls=log_calls,
        opentelemetry=opentelemetry,
        web=_web_config(http, http_origins),
        reuse_port=reuse_port,
        services=registered,
    )
    with logging_to_stderr(level=log_level, as_json=log_format is LogFormat.JSON):
        app.serve(config)


def _web_config(address: str | None, origins: str) -> WebConfig | None:
    """Return the options of the HTTP server; ``None``: there is none."""
    listed = frozenset(origin.strip() for origin in origins.split(",") if origin.strip())
    if address is None:
        if listed:
            raise InputError("--http-origins is for --http ADDRESS")
        return None
    with server_extra("server,web"):
        from spicegraph_service.rpc.http_server import WebConfig  # noqa: PLC0415
    return WebConfig(address, listed)


_ANY = ("0.0.0.0:", "[::]:")  # where a server listens; to ask there means to ask this machine


def health(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="The server.", envvar="SPICEGRAPH_ADDRESS")
    ] = "127.0.0.1:50051",
    *,
    service: Annotated[
        str, typer.Option(help="A service, such as spicegraph.v1.EvaluationService; default: the server itself.")
    ] = "",
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Use TLS and trust the authorities in this file, or the server's own certificate (PEM).",
            envvar="SPICEGRAPH_TLS_CERT",
        ),
    ] = None,
    tls_client_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The client's certificate, for mutual TLS (PEM).")
    ] = None,
    tls_client_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key of the client's certificate (PEM).")
    ] = None,
    server_name: Annotated[
        str | None,
        typer.Option(
            help="The name in the server's certificate, if it is not that of the address.",
            envvar="SPICEGRAPH_SERVER_NAME",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.", min=0.1)] = 3.0,
) -> None:
    """Print SERVING and end with 0, or print what is wrong and end with 1. It does not need a token."""
    if (tls_client_cert is None) != (tls_client_key is None) or (tls_client_cert is not None and tls_ca is None):
        raise InputError("mutual TLS needs --tls-ca, --tls-client-cert and --tls-client-key")
    with server_extra():
        import grpc  # noqa: PLC0415
        from grpc_health.v1 import health_pb2  # noqa: PLC0415

    for prefix in _ANY:
        address = address.replace(prefix, "localhost:") if address.startswith(prefix) else address
    options = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    if tls_ca is None:
        channel = grpc.insecure_channel(address, options)
    else:
        try:
            pair = [path.read_bytes() if path is not None else None for path in (tls_client_key, tls_client_cert)]
            credentials = grpc.ssl_channel_credentials(tls_ca.read_bytes(), *pair)
        except OSError as error:
            raise InputError(f"cannot read the TLS file {error.filename}: {error.strerror}") from error
        channel = grpc.secure_channel(address, credentials, options)
    with channel:
        try:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                health_pb2.HealthCheckRequest.SerializeToString,
                health_pb2.HealthCheckResponse.FromString,
            )
            status = check(health_pb2.HealthCheckRequest(service=service), timeout=timeout).status
        except grpc.RpcError as error:
            write_stdout(f"{error.code().name}: {printable(error.details() or '')}\n")
            sys.exit(1)
    write_stdout(f"{health_pb2.HealthCheckResponse.ServingStatus.Name(status)}\n")
    if status != health_pb2.HealthCheckResponse.SERVING:
        sys.exit(1)
