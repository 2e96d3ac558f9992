"""Scoring on a Ray cluster: JSON Lines or Parquet in, the same scores as on one machine.

Ray Data reads the files, on a file system that every machine sees or in an object store, and hands out blocks of
rows. A first pass checks them and counts CIDEr's document frequencies; in a second one a pool of actors parses them
and reduces every item to its statistics. Where only scores of the corpus and a table of the items' are asked for,
the actors sum the statistics up and write the table: nothing of an item stays here. The sums are exact, so that the
scores are those of one machine. Ray runs what was lost with a process or a machine again.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import shutil
import socket
import tempfile
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from spicegraph_parser.errors import DataError, InputError, SpicegraphError
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scale.corpus import (
    PATH,
    BlockScorer,
    CorpusJob,
    CorpusTotals,
    Keep,
    RowReader,
    ScoredBlock,
    checked_corpus,
    summarized,
    watched,
)
from spicegraph_scale.objects import Folder, ScoreFile, files_in, new_folder
from spicegraph_scorer.core.items import CheckedItems
from spicegraph_scorer.core.results import Result, Summary, result_of
from spicegraph_scorer.metrics import make_metrics, metric_names
from spicegraph_scorer.readers.tables import find_columns
from spicegraph_scorer.scoring import resources
from spicegraph_service.kit import Engine, Task, is_url, object_stream, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from ray import ObjectRef
    from ray.data import Dataset

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.readers.shapes import Columns

Value = TypeVar("Value")

_PACKED: Final = "packed"

ABOUT: Final = "_scores.json"
"""The file of a folder of parts that holds signature, corpus scores and the names of the parts, in order."""

_BLOCK: Final = (1 << 18, 1 << 23)
"""Bytes of a block of rows, at least (some 800 items) and at most: what is sent, scored and lost together."""
_BLOCKS: Final = 32  # blocks for each actor, where the input is large enough: so they end at about the same time

_ACTOR_CORES: Final = 0.4
"""What an actor asks of Ray, though it uses a core: where half of the machines are lost, the others have room."""

_READING_CORES: Final = 0.2  # what a task that reads and checks asks of Ray: as much as the actors leave then

_REMOTE_CACHES: Final = ("redis://", "rediss://")
_COPIED: Final = 8 << 20  # bytes that are copied at a time
_LOCAL_STORE: Final = 512 << 20  # bytes of Ray's object store where we start Ray ourselves

_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to anybody
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # Ray Data's own actors make it warn of their arguments
}
_REACHED_S: Final = 10.0
_CHAINED: Final = "The above exception was the direct cause"
_NO_MODULE: Final = re.compile(r"No module named '[\w.]+'")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def score_on_ray(task: Task) -> Result:
    """Score JSON Lines or Parquet (a file, a folder, a URL); all items are held in memory, without matches."""
    with _started(task, keep=Keep.STATISTICS) as (parts, corpus, metrics):
        statistics: dict[str, list[Any]] = {name: [] for name in metrics}
        for part in parts:
            for name, of_part in part.statistics.items():
                statistics[name] += of_part
        result = result_of(
            CheckedItems.with_marks(corpus.items, corpus.fingerprint.marks),
            metrics,
            statistics,
            confidence=task.confidence,
        )
    for note in result.empty_graphs.notes():
        warnings.warn(f"{task.source}: {note}", stacklevel=2)
    return result


def summarize_on_ray(task: Task, scores: str | None = None) -> Summary:
    """Score a corpus of any size; items' scores go to a Parquet file or object, or in parts to a folder (``/``)."""
    if scores is None:
        with _started(task) as started:
            return summarized(*started)
    if scores.endswith("/"):
        folder = new_folder(scores)
        folder.write(ABOUT, b"{}\n")  # shows before the work whether the folder can be written to
        with _started(task, keep=Keep.ROWS, folder=folder) as started:
            parts: list[str] = []
            summary = summarized(*started, lambda part: parts.append(str(part.part)))
        folder.write(ABOUT, msgspec.json.format(msgspec.json.encode({**summary.to_dict(), "parts": parts})) + b"\n")
        return summary
    with _whole_file(scores) as file, _started(task, keep=Keep.ROWS) as started:
        summary = summarized(*started, lambda part: file.add(part.rows))
        file.about(summary)
    return summary


@contextmanager
def _whole_file(location: str) -> Iterator[ScoreFile]:
    """Give a Parquet file that is at a path or URL once it is whole."""
    target = None if is_url(location) else Path(location).absolute().parent
    with tempfile.TemporaryDirectory(dir=target, prefix=".spicegraph-") as folder:
        path = Path(folder) / "scores.parquet"
        with ScoreFile(path) as file:
            yield file
        if target is not None:
            path.replace(location)
            return
        with object_stream(location) as stream, path.open("rb") as scores:
            shutil.copyfileobj(scores, stream, _COPIED)


def _scored(rows: Dataset, job: CorpusJob, corpus: CorpusTotals, task: Task) -> Iterator[ScoredBlock]:
    """Return the actors' scored blocks in order; their warnings are issued at the end."""
    import ray  # noqa: PLC0415 (an extra)
    from ray.data import ActorPoolStrategy  # noqa: PLC0415

    blocks = rows.map_batches(
        _Actor,
        fn_constructor_args=(ray.put(job),),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=_ACTOR_CORES,
        compute=ActorPoolStrategy(size=task.workers),
    )
    return watched(unpacked_rows(blocks), corpus, task.progress)


_Started: TypeAlias = "tuple[Iterator[ScoredBlock], CorpusTotals, Mapping[str, Metric[Any]]]"


@contextmanager
def _started(task: Task, *, keep: Keep = Keep.SUMS, folder: Folder | None = None) -> Iterator[_Started]:
    """Check the items on the cluster, and give their scored blocks, the corpus that they are of, and the metrics."""
    chosen = metric_names(task.metrics)
    if task.cache is not None:
        if not task.cache.startswith(_REMOTE_CACHES):
            raise InputError(f"the cache {task.cache} is on one machine only; Ray needs redis://HOST, or none")
        open_store(task.cache).close()  # says what is wrong if it can't be reached even from here
    # Names and options of the metrics are those of a local run; what they need to score is with the actors.
    metrics = make_metrics(chosen, resources(load_pipeline(task.pipeline), data=task.data))
    filesystem, paths = files_in(task.source)
    size = sum(info.size or 0 for info in filesystem.get_file_info(paths))
    block = min(max(size // (task.workers * _BLOCKS), _BLOCK[0]), _BLOCK[1])
    with cluster(task.workers, block=block), clear_errors(task.source):
        rows, reader = _read(task, filesystem, paths)

        def mapped(function: Callable[[pa.Table], Value], /) -> Iterator[Value]:
            packing = partial(packed, function)
            return unpacked_rows(
                rows.map_batches(packing, batch_size=None, batch_format="pyarrow", num_cpus=_READING_CORES)
            )

        weighing = {name: metric.weigh for name, metric in metrics.items() if metric.weigh is not None}
        counted = tuple(dict.fromkeys(weighing.values()))
        corpus = checked_corpus(
            mapped, reader, task.source, weigh=counted, keep=keep is Keep.STATISTICS, progress=task.progress
        )
        weights = corpus.weights()
        job = CorpusJob(
            reader,
            task.pipeline,
            chosen,
            task.cache,
            task.data,
            {name: metric.signature() for name, metric in metrics.items()},
            {name: weights[counted.index(count)] for name, count in weighing.items()},
            keep,
            folder,
            corpus.integers < corpus.count,
        )
        yield _scored(rows, job, corpus, task), corpus, metrics


class _Actor:
    """Scores blocks with a job that the cluster holds once."""

    def __init__(self, shared: ObjectRef[CorpusJob]) -> None:
        import ray  # noqa: PLC0415 (an extra)

        self._score = BlockScorer(ray.get(shared))

    def __call__(self, rows: pa.Table) -> pa.Table:
        return packed(self._score, rows)


def packed(function: Callable[[pa.Table], object], rows: pa.Table) -> pa.Table:
    """Return a function's result for rows, or its SpicegraphError, as a table for :func:`unpacked_rows`."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    try:
        value = function(rows)
    except SpicegraphError as error:
        value = error
    return pa.table({_PACKED: [pickle.dumps(value)]})


def unpacked_rows(blocks: Dataset) -> Iterator[Any]:
    """Yield the values of tables with one value each, in order."""
    for row in blocks.iter_rows():
        value = pickle.loads(row[_PACKED])  # noqa: S301 (our own workers wrote it)
        if isinstance(value, SpicegraphError):
            raise value
        yield value


def _read(task: Task, filesystem: Any, paths: list[str]) -> tuple[Dataset, RowReader]:
    """Return the rows of the files, and the reader that makes items of them."""
    from ray.data import read_parquet, read_text  # noqa: PLC0415 (an extra)

    is_parquet = {path.endswith(".parquet") for path in paths}
    if len(is_parquet) > 1:
        raise InputError(f"{task.source}: holds Parquet files and others; expected one kind")
    if not is_parquet.pop():
        return read_text(paths, filesystem=filesystem, include_paths=True, num_cpus=_READING_CORES), RowReader(
            empty=task.empty, control_tokens=task.control_tokens
        )
    rows = read_parquet(paths, filesystem=filesystem, include_paths=True, num_cpus=_READING_CORES)
    columns = _columns(task, [name for name in rows.columns() or () if name != PATH])
    used = [name for name in (columns.id, columns.candidate, *columns.references) if name]
    return rows.select_columns([*used, PATH]), RowReader(columns, task.empty, task.control_tokens)


def _columns(task: Task, names: list[str]) -> Columns:
    """Return the columns of ids, candidates and references, all of which must be there."""
    try:
        columns = find_columns(names, named=task.columns)
    except InputError as error:
        raise InputError(f"{task.source}: {error}") from error
    if columns.id is None or columns.candidate is None or not columns.references:
        known = str(columns) or "none"
        raise InputError(f"{task.source}: needs columns of ids, candidates and references, found: {known}")
    return columns


@contextmanager
def cluster(workers: int, *, block: int) -> Iterator[None]:
    """Connect to the cluster, or start one for the time; Ray Data makes blocks of ``block`` bytes, in order."""
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
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it logs every pass, and errors that we raise
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
    host, separator, port = address.rpartition("//")[2].rpartition(":")
    try:
        if separator and port.isdecimal():  # where nothing listens, Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=_REACHED_S).close()
    except OSError as error:
        raise DataError(f"RAY_ADDRESS={address}: the Ray cluster can't be reached ({error})") from error
    try:
        ray.init(**quiet)
    except OSError as error:
        raise DataError(
            f"RAY_ADDRESS={address}: the Ray cluster refuses the connection ({error}); does it run the same release "
            "of Ray, and is RAY_AUTH_TOKEN its token?"
        ) from error


@contextmanager
def clear_errors(source: str) -> Iterator[None]:
    """Raise errors from other machines as local errors, with the first line of the cause."""
    from ray.exceptions import RayError  # noqa: PLC0415 (an extra)

    try:
        yield
    except RayError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, SpicegraphError):
                raise cause from error
            if isinstance(cause, UnicodeDecodeError):
                raise InputError(f"{source}: is not UTF-8 ({cause.reason} at byte {cause.start} of a file)") from error
            if missing := _NO_MODULE.search(str(cause)):  # what Ray can't unpack there has no type of its own here
                raise DataError(
                    f"a machine of the Ray cluster lacks a package ({missing[0]}): install spicegraph on every machine "
                    "with the extras that this machine has"
                ) from error
            cause = getattr(cause, "cause", None) or cause.__cause__  # Ray keeps it in a field of its own
        raise DataError(f"the Ray cluster failed: {_telling_line(error)}") from error


def _telling_line(error: Exception) -> str:
    """Return the line that says most: the last one of the first of chained tracebacks, else the first one."""
    text = _COLOURS.sub("", str(error)).partition(_CHAINED)[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1 if "Traceback" in text else 0]


RAY: Final = Engine(
    unsupported={
        "references": "--references",
        "partial": "--partial",
        "ids": "--ids",
        "rewrite": "--answer-tags",
        "split": "--split",
        "caption_language": "--caption-language",
        "drop_empty_references": "--drop-empty-references",
        "candidates": "--candidates",
        "parses": "--parses",
        "graphs": "--graphs",
        "explain": "--explain",
        "credit": "--credit",
        "evidence": "--format spice",
    },
    score=score_on_ray,
    summarize=summarize_on_ray,
)
