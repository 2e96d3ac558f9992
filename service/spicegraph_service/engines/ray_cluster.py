"""The Ray cluster: one to connect to or one of this machine, and clear errors of what failed on it."""

from __future__ import annotations

import logging
import os
import re
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.errors import DataError, InputError, SpicegraphError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["clear_errors", "cluster"]

_LOCAL_STORE: Final = 512 << 20
"""Bytes of Ray's object store where we start Ray ourselves."""

_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to anybody
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # Ray Data's own actors make it warn of their arguments
}
_REACHED_S: Final = 10.0
_CHAINED: Final = "The above exception was the direct cause"
_NO_MODULE: Final = re.compile(r"No module named '[\w.]+'")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def cluster(workers: int, *, block: int) -> Iterator[None]:
    """Connect to the cluster, or start one on this machine; one that is connected already stays so.

    Args:
        workers: the cores of a cluster that is started.
        block: bytes of the blocks of rows that Ray Data makes, in order.

    Raises:
        DataError: Ray is not installed, or the cluster can't be reached.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415 (an extra)
        from ray.data import DataContext  # noqa: PLC0415
    except ImportError as error:
        raise DataError(f"--engine ray needs an extra ({error}): pip install 'spicegraph[ray]'") from error
    connects = not ray.is_initialized()
    if connects:
        _connect(ray, workers)
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it tells of every pass, and of errors that we raise
    context = DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    context.target_max_block_size = block
    if hasattr(context, "use_datasource_v2"):
        context.use_datasource_v2 = False  # its actors for Parquet's footers don't outlive a machine's end
    try:
        with DataContext.current(context):
            yield
    finally:
        if connects:
            ray.shutdown()


def _connect(ray: Any, workers: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": "error"}
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        local = {"num_cpus": workers, "object_store_memory": _LOCAL_STORE, "include_dashboard": False}
        ray.init(address="local", **local, **quiet)
        return
    try:
        _check_reachable(address)
    except OSError as error:
        raise DataError(f"RAY_ADDRESS={address}: the Ray cluster can't be reached ({error})") from error
    try:
        ray.init(**quiet)
    except OSError as error:
        raise DataError(
            f"RAY_ADDRESS={address}: the Ray cluster lets nobody in ({error}); is it of the same release of Ray, and "
            "is its token the one of this machine (RAY_AUTH_TOKEN)?"
        ) from error


def _check_reachable(address: str) -> None:
    """Raise OSError where nothing listens: Ray itself would try for minutes."""
    host, separator, port = address.rpartition("//")[2].rpartition(":")
    if separator and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_REACHED_S).close()


@contextmanager
def clear_errors(source: str) -> Iterator[None]:
    """Raise what failed on some machine as if it had failed here.

    Raises:
        InputError: the input can't be read, there.
        DataError: anything else; the message is the first line of the cause's.
    """
    from ray.exceptions import RayError  # noqa: PLC0415 (an extra)

    try:
        yield
    except RayError as error:
        causes = list(_causes(error))
        for cause in causes:
            if isinstance(cause, SpicegraphError):
                raise cause from error
            if isinstance(cause, UnicodeDecodeError):
                raise InputError(f"{source}: is not UTF-8 ({cause.reason} at byte {cause.start} of a file)") from error
            if missing := _NO_MODULE.search(str(cause)):  # what Ray can't unpack there has no type of its own here
                raise DataError(
                    f"a machine of the Ray cluster lacks a package ({missing[0]}): every one needs spicegraph with the "
                    "extras of this machine"
                ) from error
        raise DataError(f"the Ray cluster failed: {_told(error)}") from error


def _told(error: BaseException) -> str:
    """Return the line that says most: the last one of the first of chained tracebacks, else the first one."""
    text = _COLOURS.sub("", str(error)).partition(_CHAINED)[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1 if "Traceback" in text else 0]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from; Ray keeps that in a field of its own."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = getattr(seen, "cause", None) or seen.__cause__
