"""``spicegraph serve`` and ``spicegraph health``: the gRPC server, and whether it serves."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping  # noqa: TC003 (typer reads the annotations when it runs)
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from spicegraph_parser.errors import InputError, needs_extra
from spicegraph_service.cli.app import command_line, from_environment, with_groups
from spicegraph_service.config import ServerConfig, default_store
from spicegraph_service.output.terminal import printable, write_stdout
from spicegraph_service.registry import commands, services
from spicegraph_service.store import MEMORY

_log = logging.getLogger(__name__)


@from_environment
@with_groups({name: entry.options for name, entry in services().items()})
def serve(*, config: ServerConfig, registered: Mapping[str, Any]) -> None:
    """Serve parses and scores over gRPC, and over HTTP, until SIGTERM. The log goes to standard error."""
    # No Python code here forks; without this, gRPC writes a line to the log whenever a worker starts.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    config.check()
    from spicegraph_service import app  # noqa: PLC0415
    from spicegraph_service.rpc.telemetry import logging_to_stderr  # noqa: PLC0415

    if config.http is not None:
        with needs_extra("web", "JSON over HTTP"):
            import aiohttp  # noqa: F401, PLC0415
    with logging_to_stderr(level=config.log_level, as_json=config.log_format == "json"):
        _tell_unknown_variables()
        _keep_tables(config.store or default_store())
        app.serve(config, registered)


def _tell_unknown_variables() -> None:
    """Say which variables of the environment look like options, and are none."""
    found = {name for name in os.environ if name.startswith("SPICEGRAPH_") and not _LINKS.fullmatch(name)}
    known: set[str] = {"SPICEGRAPH_SETTINGS"}
    loaded = {"serve"}
    nodes: list[Any] = [command_line(*loaded)]
    while nodes:
        node = nodes.pop()
        nodes += getattr(node, "commands", {}).values()
        known.update(str(each.envvar) for each in getattr(node, "params", ()) if getattr(each, "envvar", None))
        if not nodes and not found <= known and (rest := commands().keys() - loaded):  # that of another command?
            loaded |= rest
            nodes.append(command_line(*rest))
    for name in sorted(found - known):
        alike = get_close_matches(name, known, n=1)
        meant = f"; is {alike[0]} meant?" if alike else ""
        _log.warning("no option has the environment variable %s%s", name, meant)


def _keep_tables(store: str) -> None:
    """Where the user's cache cannot be written, keep beside the store what would be built with every start."""
    from spicegraph_scorer.metrics.meteor.data import cache_directory  # noqa: PLC0415 (``--help`` needs no scorer)

    folder = next(folder for folder in (cache_directory(), *cache_directory().parents) if folder.exists())
    if not os.access(folder, os.W_OK) and store != MEMORY and "://" not in store:
        os.environ["XDG_CACHE_HOME"] = str(Path(store).absolute().parent / "cache")


# What Kubernetes sets in every pod for a service of the name spicegraph.
_LINKS = re.compile(r"SPICEGRAPH_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_\w+)?)")
_ANY = ("0.0.0.0:", "[::]:")  # where a server listens; to ask there means to ask this machine


def health(
    place: Annotated[str, typer.Argument(metavar="HOST:PORT", envvar="SPICEGRAPH_ADDRESS")] = "127.0.0.1:50051",
    *,
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT")] = None,
    service: Annotated[str, typer.Option(metavar="NAME")] = "",
    tls_ca: Annotated[Path | None, typer.Option(metavar="FILE", envvar="SPICEGRAPH_TLS_CERT")] = None,
    tls_client_cert: Annotated[Path | None, typer.Option(metavar="FILE", envvar="SPICEGRAPH_TLS_CLIENT_CERT")] = None,
    tls_client_key: Annotated[Path | None, typer.Option(metavar="FILE", envvar="SPICEGRAPH_TLS_CLIENT_KEY")] = None,
    server_name: Annotated[str | None, typer.Option(metavar="NAME", envvar="SPICEGRAPH_SERVER_NAME")] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1)] = 3.0,
) -> None:
    """Print SERVING and end with 0, or print what is wrong and end with 1. It does not need a token.

    Options:
        place: The server.
        address: The server, as serve has it.
        service: A service, such as spicegraph.v1.EvaluationService; default: the server itself.
        tls_ca: Use TLS and trust the authorities in this file, or the server's own certificate (PEM).
        tls_client_cert: The client's certificate, for mutual TLS (PEM).
        tls_client_key: The key of the client's certificate (PEM).
        server_name: The name in the server's certificate, if it is not that of the address.
        timeout: Seconds to wait for an answer.
    """
    if (tls_client_cert is None) != (tls_client_key is None) or (tls_client_cert is not None and tls_ca is None):
        raise InputError("mutual TLS needs --tls-ca, --tls-client-cert and --tls-client-key")
    import grpc  # noqa: PLC0415
    from grpc_health.v1 import health_pb2  # noqa: PLC0415

    address = address or place
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
