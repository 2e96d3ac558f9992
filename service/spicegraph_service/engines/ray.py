"""Scoring on a Ray cluster: JSON Lines or Parquet in, the same result as on one machine.

Ray Data reads the files, on a file system that every machine sees or in an object store, and hands out blocks of
rows. A first pass checks them and counts CIDEr's document frequencies; in a second one a pool of actors parses
them and reduces every item to its statistics. The scores are made from those here, by the same functions as
everywhere. Ray runs what was lost with a process or a machine again.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.errors import DataError, InputError, SpicegraphError
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer.metrics import WITH_FREQUENCIES, make_metrics, metric_names
from spicegraph_scorer.ngram.frequencies import DocumentFrequencies
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.readers.columns import find_columns
from spicegraph_scorer.readers.faults import input_error
from spicegraph_scorer.scoring import resources, result_of
from spicegraph_service.engines.object_store import files_in
from spicegraph_service.engines.ray_workers import (
    PATH,
    Checked,
    Job,
    RowReader,
    ScoredItems,
    Scorer,
    check_rows,
    unpacked_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ray.data import Dataset

    from spicegraph_scorer.graded.vectors import Vectors
    from spicegraph_scorer.items import Item
    from spicegraph_scorer.metrics import Progress
    from spicegraph_scorer.readers.columns import Columns
    from spicegraph_scorer.readers.faults import Fault
    from spicegraph_scorer.results import Result
    from spicegraph_scorer.significance import Resampling
    from spicegraph_scorer.spice.categories import Category

__all__ = ["RayOptions", "score_on_ray"]

_BLOCK: Final = 1 << 18
"""Bytes of a block of rows, some 800 items: what is sent, scored and lost together."""

_ACTOR_CORES: Final = 0.4
"""What an actor asks of Ray, though it uses a core: where half of the machines are lost, the others have room."""

_READING_CORES: Final = 0.2
"""What a task that reads and checks asks of Ray: as much as the actors leave then."""

_LOCAL_STORE: Final = 512 << 20
"""Bytes of Ray's object store where we start Ray ourselves."""

_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to anybody
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # Ray Data's own actors make it warn of their arguments
}
_REACHED_S: Final = 10.0
_REMOTE_CACHES: Final = ("redis://", "rediss://")


@dataclass(frozen=True, slots=True)
class RayOptions:
    """How to score on a cluster; what is not told here, :func:`spicegraph_scorer.score` tells.

    Args:
        pipeline: name of the pipeline; it is installed on every machine, as this package is.
        workers: the number of actors that parse, one core each.
        cache: a store of parses that all machines reach: ``redis://HOST``.
        columns: of Parquet files; ``None``: found by their usual names.
    """

    pipeline: str
    workers: int = 1
    cache: str | None = None
    columns: Columns | None = None
    confidence: Resampling | None = None
    frequencies: DocumentFrequencies | None = None
    categories: Mapping[str, Category] | None = None
    vectors: Vectors | None = None
    progress: Progress | None = field(default=None, compare=False)


def score_on_ray(source: str, names: Sequence[str], options: RayOptions) -> Result:
    """Score the items of JSON Lines or Parquet files; the result is that of :func:`spicegraph_scorer.score`.

    Its statistics come without the matches that they were counted from.

    The cluster is the one that this program is connected to, else the one that the environment names
    (``RAY_ADDRESS``), else one that is started on this machine and ended again.

    Args:
        source: a file, a folder of files, or the URL of one (``s3://bucket/folder``).
        names: of metrics and groups.
        options: where and how.

    Raises:
        InputError: there is no such file, or items are faulty; the message lists every fault.
        DataError: Ray, the pipeline or the data of a metric is not installed, or the cluster failed.
    """
    chosen = metric_names(names)
    if options.cache is not None and not options.cache.startswith(_REMOTE_CACHES):
        raise InputError(f"the cache {options.cache} is on one machine; with Ray it must be redis://HOST, or none")
    # Names and options of the metrics are those of a local run; what they need to score is with the actors.
    metrics = make_metrics(
        chosen,
        resources(load_pipeline(options.pipeline), None, options.frequencies, options.categories, options.vectors),
    )
    with _cluster(options.workers), _clear_errors(source):
        rows, reader = _read(source, options)
        items, frequencies = _first_pass(rows, reader, source, chosen, options)
        job = Job(reader, options.pipeline, chosen, options.cache, frequencies, options.categories, options.vectors)
        found = _second_pass(rows, job, len(items), options)
    return result_of(items, metrics, found, confidence=options.confidence)


@contextmanager
def _cluster(workers: int) -> Iterator[None]:
    """Connect to the cluster, or start one on this machine; one that is connected already stays so."""
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
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of every pass
    context = DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    context.target_max_block_size = _BLOCK
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
    if address:
        try:
            _check_reachable(address)
            ray.init(**quiet)
        except OSError as error:
            raise DataError(f"RAY_ADDRESS={address}: the Ray cluster can't be reached ({error})") from error
    else:
        local = {"num_cpus": workers, "object_store_memory": _LOCAL_STORE, "include_dashboard": False}
        ray.init(address="local", **local, **quiet)


def _check_reachable(address: str) -> None:
    """Raise OSError where nothing listens: Ray itself would try for minutes."""
    host, separator, port = address.rpartition("//")[2].rpartition(":")
    if separator and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_REACHED_S).close()


@contextmanager
def _clear_errors(source: str) -> Iterator[None]:
    """Raise what failed on some machine as if it had failed here."""
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
        said = [line for cause in causes for line in str(cause).splitlines() if line.strip()]
        raise DataError(f"the Ray cluster failed: {said[0] if said else type(error).__name__}") from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from; Ray keeps that in a field of its own."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = getattr(seen, "cause", None) or seen.__cause__


def _read(source: str, options: RayOptions) -> tuple[Dataset, RowReader]:
    """Return the rows of the files, and what makes items of them."""
    from ray.data import read_parquet, read_text  # noqa: PLC0415 (an extra)

    filesystem, paths = files_in(source)
    is_parquet = {path.endswith(".parquet") for path in paths}
    if len(is_parquet) > 1:
        raise InputError(f"{source}: holds Parquet files and others; expected one kind")
    if not is_parquet.pop():
        return read_text(paths, filesystem=filesystem, include_paths=True, num_cpus=_READING_CORES), RowReader()
    rows = read_parquet(paths, filesystem=filesystem, include_paths=True, num_cpus=_READING_CORES)
    try:
        columns = find_columns([name for name in rows.columns() or () if name != PATH], told=options.columns)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    used = [name for name in (columns.id, columns.candidate, *columns.references) if name]
    if columns.id is None or columns.candidate is None or not columns.references:
        raise InputError(f"{source}: needs columns of ids, candidates and references, found: {str(columns) or 'none'}")
    return rows.select_columns([*used, PATH]), RowReader(columns)


def _first_pass(
    rows: Dataset, reader: RowReader, source: str, names: Sequence[str], options: RayOptions
) -> tuple[tuple[Item, ...], DocumentFrequencies | None]:
    """Return all items and, where a metric needs them, the document frequencies of their references."""
    count = options.frequencies is None and not WITH_FREQUENCIES.isdisjoint(names)
    check = partial(check_rows, reader=reader, count=count)
    blocks = rows.map_batches(check, batch_size=None, batch_format="pyarrow", num_cpus=_READING_CORES)
    items: list[Item] = []
    faults: list[Fault] = []
    parts: list[DocumentFrequencies] = []
    checked: Checked
    for checked in unpacked_rows(blocks):
        items += checked.items
        faults += checked.faults
        if checked.frequencies is not None:
            parts.append(checked.frequencies)
        if options.progress:
            options.progress("reading items", len(items), len(items))
    if faults:
        raise input_error(source, faults)
    return check_items(items), DocumentFrequencies.sum_of(parts) if count else options.frequencies


def _second_pass(rows: Dataset, job: Job, size: int, options: RayOptions) -> dict[str, list[Any]]:
    """Return every item's statistics by metric, in the order of the items."""
    import ray  # noqa: PLC0415 (an extra)
    from ray.data import ActorPoolStrategy  # noqa: PLC0415

    scored = rows.map_batches(
        Scorer,
        fn_constructor_args=(ray.put(job),),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=_ACTOR_CORES,
        compute=ActorPoolStrategy(size=options.workers),
    )
    found: dict[str, list[Any]] = {name: [] for name in job.metrics}
    said: dict[tuple[type[Warning], str], None] = {}
    part: ScoredItems
    for part in unpacked_rows(scored):
        for name, statistics in part.statistics.items():
            found[name] += statistics
        said |= dict.fromkeys(part.warnings)
        if options.progress:
            options.progress("scoring items", len(found[job.metrics[0]]), size)
    for category, message in said:
        warnings.warn(message, category, stacklevel=2)
    return found
