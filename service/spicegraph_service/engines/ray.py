"""Scoring on a Ray cluster: JSON Lines or Parquet in, the same scores as on one machine.

Ray Data reads the files, on a file system that every machine sees or in an object store, and hands out blocks of
rows. A first pass checks them and counts CIDEr's document frequencies; in a second one a pool of actors parses them
and reduces every item to its statistics. Where only scores of the corpus and a table of the items' are asked for,
the actors sum the statistics up and write the table: nothing of an item stays here. The sums are exact, so that the
scores are those of one machine. Ray runs what was lost with a process or a machine again.
"""

from __future__ import annotations

import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer.core.summary import Summary
from spicegraph_scorer.core.totals import RunTotals, added, summary_of
from spicegraph_scorer.metrics import WITH_FREQUENCIES, make_metrics, metric_names
from spicegraph_scorer.readers.columns import find_columns
from spicegraph_scorer.scoring import resources, result_of, signature_of
from spicegraph_service.engines.object_store import Folder, copy_object, files_in, is_url, new_folder, size_of
from spicegraph_service.engines.ray_checks import CheckedCorpus, checked_corpus
from spicegraph_service.engines.ray_cluster import clear_errors, cluster
from spicegraph_service.engines.ray_workers import PATH, Job, Keep, RowReader, Scored, Scorer, comparable, unpacked_rows
from spicegraph_service.engines.score_table import ScoreFile, score_file
from spicegraph_service.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ray.data import Dataset

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.core.results import Result
    from spicegraph_scorer.core.significance import Resampling
    from spicegraph_scorer.metrics import Progress
    from spicegraph_scorer.metrics.graded.vectors import Vectors
    from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies
    from spicegraph_scorer.metrics.spice.categories import Category
    from spicegraph_scorer.readers.columns import Columns

__all__ = ["ABOUT", "RayOptions", "score_on_ray", "summarize_on_ray"]

ABOUT: Final = "_scores.json"
"""The file of a folder of parts that holds signature, corpus scores and the names of the parts, in order."""

_BLOCK: Final = (1 << 18, 1 << 23)
"""Bytes of a block of rows, at least (some 800 items) and at most: what is sent, scored and lost together."""
_BLOCKS: Final = 32
"""Blocks for each actor, where the input is large enough: so they end at about the same time."""

_ACTOR_CORES: Final = 0.4
"""What an actor asks of Ray, though it uses a core: where half of the machines are lost, the others have room."""

_READING_CORES: Final = 0.2
"""What a task that reads and checks asks of Ray: as much as the actors leave then."""

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

    Its statistics come without the matches that they were counted from. All items are held in memory.

    The cluster is the one that this program is connected to, else the one that the environment names
    (``RAY_ADDRESS``), else one that is started on this machine and ended again.

    Args:
        source: a file, a folder of files, or the URL of one (``s3://bucket/folder``).
        names: of metrics and groups.
        options: where and how.

    Raises:
        InputError: there is no such file, or items are faulty; the message lists every fault.
        DataError: Ray, the pipeline or the data of a metric is not installed, or the cluster failed.
        StoreError: the cache can't be reached.
    """
    with _started(source, names, options, keep=Keep.STATISTICS) as run:
        found: dict[str, list[Any]] = {name: [] for name in run.metrics}
        for part in run.scored():
            for name, statistics in part.statistics.items():
                found[name] += statistics
        return result_of(run.corpus.items, run.metrics, found, confidence=options.confidence)


def summarize_on_ray(source: str, names: Sequence[str], options: RayOptions, *, scores: str | None = None) -> Summary:
    """Score a corpus of any size; return its own scores, and write those of the items.

    The memory that this program needs does not depend on the number of items, but for CIDEr's document frequencies
    where they are not given. A table of the ids' hashes, eight bytes an item, lies on this machine's disk.

    Args:
        source: see :func:`score_on_ray`.
        names: see :func:`score_on_ray`.
        options: see :func:`score_on_ray`; ``confidence`` is not used, since intervals are drawn from all items.
        scores: where to write a Parquet file with a row an item: a path or URL; where it ends in ``/``, a new folder of
            parts that the actors write, and :data:`ABOUT`; ``None``: nowhere.

    Raises:
        InputError: see :func:`score_on_ray`, or the scores can't be written.
        DataError: see :func:`score_on_ray`.
        StoreError: the cache can't be reached.
    """
    if scores is None:
        with _started(source, names, options) as run:
            return run.summary()
    if scores.endswith("/"):
        folder = new_folder(scores)
        folder.write(ABOUT, b"{}\n")  # shows before the work whether the folder can be written to
        with _started(source, names, options, keep=Keep.ROWS, folder=folder) as run:
            parts: list[str] = []
            summary = run.summary(lambda part: parts.append(str(part.part)))
        folder.write(ABOUT, msgspec.json.format(msgspec.json.encode({**summary.to_dict(), "parts": parts})) + b"\n")
        return summary
    with _whole_file(scores) as file, _started(source, names, options, keep=Keep.ROWS) as run:
        summary = run.summary(lambda part: file.add(part.rows))
        file.about(summary)
    return summary


@contextmanager
def _whole_file(place: str) -> Iterator[ScoreFile]:
    """Give a Parquet file that is at a path or URL once it is whole."""
    target = None if is_url(place) else Path(place).absolute().parent
    with tempfile.TemporaryDirectory(dir=target, prefix=".spicegraph-") as folder:
        path = Path(folder) / "scores.parquet"
        with score_file(path) as file:
            yield file
        if target is None:
            copy_object(path, place)
        else:
            path.replace(place)


@dataclass(frozen=True, slots=True)
class _Run:
    """A checked corpus, and what the actors score it with."""

    rows: Dataset
    corpus: CheckedCorpus
    metrics: Mapping[str, Metric[Any]]
    job: Job
    options: RayOptions

    def scored(self) -> Iterator[Scored]:
        """Yield what the actors make of the items, in their order; then warn of what they warned of."""
        import ray  # noqa: PLC0415 (an extra)
        from ray.data import ActorPoolStrategy  # noqa: PLC0415

        blocks = self.rows.map_batches(
            Scorer,
            fn_constructor_args=(ray.put(self.job),),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=_ACTOR_CORES,
            compute=ActorPoolStrategy(size=self.options.workers),
        )
        said: dict[tuple[type[Warning], str], None] = {}
        done = 0
        part: Scored
        for part in unpacked_rows(blocks):
            said |= dict.fromkeys(part.warnings)
            done += part.items
            if self.options.progress:
                self.options.progress("scoring items", done, self.corpus.fingerprint.items)
            if part.items:
                yield part
        for category, message in said:
            warnings.warn(message, category, stacklevel=2)

    def summary(self, take: Callable[[Scored], object] | None = None) -> Summary:
        """Return the corpus scores; every part is given to ``take``, and not kept."""
        totals: dict[str, RunTotals] = {}
        for part in self.scored():
            if take is not None:
                take(part)
            totals = added([totals, part.totals] if totals else [part.totals])
        signature = signature_of(self.corpus.fingerprint, {n: metric.signature() for n, metric in self.metrics.items()})
        return Summary(signature, tuple(summary_of(metric, totals[name]) for name, metric in self.metrics.items()))


@contextmanager
def _started(
    source: str,
    names: Sequence[str],
    options: RayOptions,
    *,
    keep: Keep = Keep.SUMS,
    folder: Folder | None = None,
) -> Iterator[_Run]:
    """Check the items on the cluster, and give what scores them."""
    chosen = metric_names(names)
    _check_cache(options.cache)
    # Names and options of the metrics are those of a local run; what they need to score is with the actors.
    metrics = make_metrics(
        chosen,
        resources(load_pipeline(options.pipeline), None, options.frequencies, options.categories, options.vectors),
    )
    filesystem, paths = files_in(source)
    block = min(max(size_of(filesystem, paths) // (options.workers * _BLOCKS), _BLOCK[0]), _BLOCK[1])
    with cluster(options.workers, block=block), clear_errors(source):
        rows, reader = _read(source, filesystem, paths, options)
        count = options.frequencies is None and not WITH_FREQUENCIES.isdisjoint(chosen)
        corpus = checked_corpus(
            partial(rows.map_batches, batch_size=None, batch_format="pyarrow", num_cpus=_READING_CORES),
            reader,
            source,
            count=count,
            keep=keep is Keep.STATISTICS,
            progress=options.progress,
        )
        job = Job(
            reader,
            options.pipeline,
            chosen,
            options.cache,
            corpus.frequencies if count else options.frequencies,
            options.categories,
            options.vectors,
            {name: comparable(metric.signature()) for name, metric in metrics.items()},
            keep,
            folder,
            corpus.text_ids,
        )
        yield _Run(rows, replace(corpus, frequencies=None), metrics, job, options)


def _check_cache(place: str | None) -> None:
    """Refuse a cache that the cluster's machines can't share, or that can't be reached even from here."""
    if place is None:
        return
    if not place.startswith(_REMOTE_CACHES):
        raise InputError(f"the cache {place} is on one machine; with Ray it must be redis://HOST, or none")
    open_store(place).close()


def _read(source: str, filesystem: Any, paths: list[str], options: RayOptions) -> tuple[Dataset, RowReader]:
    """Return the rows of the files, and what makes items of them."""
    from ray.data import read_parquet, read_text  # noqa: PLC0415 (an extra)

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
