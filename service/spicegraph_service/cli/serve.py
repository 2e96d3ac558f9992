"""``spicegraph serve``: the gRPC server."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping  # noqa: TC003 (typer reads the annotations when it runs)
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from spicegraph_service.cli.app import command_line, with_groups
from spicegraph_service.config import ServerConfig, default_store
from spicegraph_service.registry import commands, open_http, services
from spicegraph_service.store import MEMORY

_log = logging.getLogger(__name__)


@with_groups({name: entry.options for name, entry in services().items()}, environment=True)
def serve(*, config: ServerConfig, registered: Mapping[str, Any]) -> None:
    """Serve parses and scores over gRPC, and over HTTP, until SIGTERM. The log goes to standard error."""
    # No Python code here forks; without this, gRPC writes a line to the log whenever a worker starts.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    config.check()
    from spicegraph_service import app  # noqa: PLC0415
    from spicegraph_service.rpc.telemetry import logging_to_stderr  # noqa: PLC0415

    if config.http is not None:
        open_http()  # what is not installed is said before anything starts
    with logging_to_stderr(level=config.log_level, as_json=config.log_format == "json"):
        _tell_unknown_variables()
        _keep_tables(config.store or default_store())
        app.serve(config, registered)


def _tell_unknown_variables() -> None:
    """Say which variables of the environment look like options, and are none."""
    found = {name for name in os.environ if name.startswith("SPICEGRAPH_") and not _LINKS.fullmatch(name)}
    known = {"SPICEGRAPH_SETTINGS", *_variables("serve")}
    if not found <= known:  # that of another command?
        known.update(_variables(*(commands().keys() - {"serve"})))
    for name in sorted(found - known):
        alike = get_close_matches(name, known, n=1)
        meant = f"; is {alike[0]} meant?" if alike else ""
        _log.warning("no option has the environment variable %s%s", name, meant)


def _variables(*names: str) -> Iterator[str]:
    """Yield the variables of the environment that commands read."""
    nodes: list[Any] = [command_line(*names)]
    while nodes:
        node = nodes.pop()
        nodes += getattr(node, "commands", {}).values()
        yield from (str(each.envvar) for each in getattr(node, "params", ()) if getattr(each, "envvar", None))


def _keep_tables(store: str) -> None:
    """Where the user's cache cannot be written, keep beside the store what would be built with every start."""
    from spicegraph_scorer.metrics.meteor.data import cache_directory  # noqa: PLC0415 (leaves numpy to the workers)

    folder = next(folder for folder in (cache_directory(), *cache_directory().parents) if folder.exists())
    if not os.access(folder, os.W_OK) and store != MEMORY and "://" not in store:
        os.environ["XDG_CACHE_HOME"] = str(Path(store).absolute().parent / "cache")


# What Kubernetes sets in every pod for a service of the name spicegraph.
_LINKS = re.compile(r"SPICEGRAPH_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_\w+)?)")
