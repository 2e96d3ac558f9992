"""A corpus of any size, block by block: rows are checked, scored and summed up, wherever the blocks are.

An engine applies these functions to blocks of rows, on this machine or on others, and hands their results back in the
blocks' order. A first pass checks every item and sums up what the metrics need of the whole corpus; a second one
scores. Sums are exact, so that they do not depend on the blocks.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from spicegraph_parser.errors import DataError, counted
from spicegraph_parser.runtime import rare_collections
from spicegraph_scorer.core import results
from spicegraph_scorer.core.facts import FactCache, Progress
from spicegraph_scorer.core.items import Fingerprint, Item, ItemId
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import make_metrics, needs_of
from spicegraph_scorer.readers.checks import SHOWN_FAULTS, Empty, Fault, input_error, label, shown
from spicegraph_scorer.readers.marks import ControlTokens, marks_notes
from spicegraph_scorer.readers.read import items_of
from spicegraph_scorer.readers.records import JSON_LINES, Record, Records, decode
from spicegraph_scorer.readers.tables import Columns, table_records
from spicegraph_scorer.scoring import resources
from spicegraph_service.kit import ID_COLUMN, local_facts, score_table, table_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from spicegraph_scale.objects import Folder
    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.metric import Metric, Weigh

TEXT: Final = "text"  # the column of the lines of text files
PATH: Final = "path"  # the column of the files that rows come from

_KNOWN: Final = 50_000  # captions whose facts an actor keeps, so that it parses repeated ones once
Hashes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]

_BYTES: Final = 8
_RUN: Final = 1 << 22  # ids that are held in memory, and sorted together: 32 MB


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes items of rows: of a table with these columns, or, without any, of lines of JSON."""

    columns: Columns | None = None
    empty: Empty = "refuse"
    control_tokens: ControlTokens = "refuse"

    def items(self, rows: pa.Table) -> tuple[tuple[Item, ...], list[Fault]]:
        """Return the items, and the faults of invalid rows, located by file name."""
        return items_of(self.records(rows), empty=self.empty, control_tokens=self.control_tokens)

    def records(self, rows: pa.Table) -> Records:
        """Return the raw records of the items."""
        names = [path.rpartition("/")[2] for path in rows.column(PATH).to_pylist()]
        if self.columns is not None:
            return table_records("Parquet", self.columns, zip(names, rows.to_pylist(), strict=True), [])
        records: list[Record] = []
        faults: list[Fault] = []
        for line, name in zip(rows.column(TEXT).to_pylist(), names, strict=True):
            if not line.strip():
                continue
            value, reason = decode(line.encode())
            if isinstance(value, dict):
                records.append(Record(name, value))
            else:
                faults.append(Fault(name, "", f"{shown(line)} {reason or 'is not an object'}"))
        return Records(JSON_LINES, records, faults)


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of the first pass over some rows."""

    fingerprint: Fingerprint | None  # ``None`` without items
    integers: int  # how many ids are numbers
    hashes: Hashes  # of all ids
    faults: list[Fault]  # the first ones of ``faulty``
    faulty: int
    weights: tuple[Any, ...]  # what each function that was asked for counts
    items: tuple[Item, ...]  # if asked for


def check_rows(rows: pa.Table, *, reader: RowReader, release: str, weigh: Sequence[Weigh], keep: bool) -> Checked:
    """Read and check rows; refuse to on a machine that has another release of the package."""
    if version("spicegraph") != release:
        raise DataError(
            f"a machine of the cluster has spicegraph {version('spicegraph')}, this one {release}: install the same"
        )
    items, faults = reader.items(rows)
    corpus = Corpus(items)
    return Checked(
        Fingerprint.of(items) if items else None,
        sum(isinstance(item.id, int) for item in items),
        hashes_of(item.id for item in items),
        faults[:SHOWN_FAULTS],
        len(faults),
        tuple(count(corpus) for count in weigh) if items else (),
        items if keep else (),
    )


def find_rows(rows: pa.Table, *, reader: RowReader, wanted: Hashes) -> list[tuple[ItemId, str]]:
    """Return the ids with one of the hashes, two of each at most, and the names of the files that they stand in."""
    form, records, _ = reader.records(rows)
    left = dict.fromkeys(wanted.tolist(), 2)
    wanted_rows = []
    for record in records:
        items, _ = items_of(Records(form, [record], []), empty=reader.empty, control_tokens="keep")
        for item, value in zip(items, hashes_of(item.id for item in items).tolist(), strict=True):
            if left.get(value, 0):
                left[value] -= 1
                wanted_rows.append((item.id, record.place))
    return wanted_rows


class Keep(Enum):
    """Output of scored blocks besides the sums: none, statistics per item, or score rows."""

    SUMS = auto()
    STATISTICS = auto()
    ROWS = auto()


@dataclass(frozen=True, slots=True)
class CorpusJob:
    """Configuration that every actor gets."""

    reader: RowReader
    pipeline: str
    metrics: tuple[str, ...]
    cache: str | None  # a store of parses that all machines reach
    data: MetricData
    signatures: Mapping[str, Mapping[str, str]]  # the metrics' where the command runs
    weights: Mapping[str, Any] = field(default_factory=dict)  # what the first pass counted for some metrics
    keep: Keep = Keep.SUMS
    folder: Folder | None = None  # where actors write rows of scores themselves
    text_ids: bool = False  # these have ids as strings


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    """Scores of one block of items, with the metrics' warnings."""

    items: int
    warnings: tuple[tuple[type[Warning], str], ...]
    totals: Mapping[str, results.RunTotals] = field(default_factory=dict)  # the sums by metric
    statistics: Mapping[str, list[object]] = field(default_factory=dict)  # where the job keeps them
    rows: pa.Table | None = None  # where the job keeps them
    part: str | None = None  # the file that the actor wrote


class BlockScorer:
    """Scorer of a job's blocks in one process, with a loaded pipeline and the metrics."""

    def __init__(self, job: CorpusJob) -> None:
        self._job = job
        self._open = ExitStack()  # for as long as the process lives

    @cached_property
    def _facts(self) -> FactCache:
        job = self._job
        loose = any(needs.loose for needs in needs_of(job.metrics))
        return FactCache(self._open.enter_context(local_facts(job.pipeline, cache=job.cache, loose=loose)))

    @cached_property
    def _metrics(self) -> dict[str, Metric[Any]]:
        """The metrics; made with the first rows and not with the actor, which Ray would try for long to make again."""
        job = self._job
        given = resources(self._facts, data=job.data, evidence=False)
        metrics = make_metrics(job.metrics, given)
        for name, metric in metrics.items():
            there, here = metric.signature(), job.signatures[name]
            if different := next((key for key in {**here, **there} if there.get(key) != here.get(key)), None):
                raise DataError(
                    "a machine of the cluster would compute other scores than this one: for the metric "
                    f"{name}, {different} is {there.get(different)} there and {here.get(different)} here; install the "
                    "same on both"
                )
        weighted = {name: metrics[name].weighted(weights) for name, weights in job.weights.items()}
        return {**metrics, **weighted}

    def __call__(self, rows: pa.Table) -> ScoredBlock:
        """Score the items of rows."""
        items, _ = self._job.reader.items(rows)
        if not items:
            return ScoredBlock(0, ())
        if len(self._facts.known) > _KNOWN:
            self._facts.known.clear()
        corpus = Corpus(items)
        with rare_collections(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            statistics = {name: metric.collect(corpus) for name, metric in self._metrics.items()}
        scored = partial(ScoredBlock, len(items), tuple((warning.category, str(warning.message)) for warning in caught))
        if self._job.keep is Keep.STATISTICS:
            return scored(statistics=statistics)
        totals = {name: results.totals_of(metric, statistics[name]) for name, metric in self._metrics.items()}
        if self._job.keep is Keep.SUMS:
            return scored(totals=totals)
        runs = tuple(results.run_of(name, metric, statistics[name]) for name, metric in self._metrics.items())
        table = score_table(items, results.Result(items, {}, runs).item_scores(), text_ids=self._job.text_ids)
        if self._job.folder is None:
            return scored(totals=totals, rows=table)
        # The name of a part depends on its rows, so that a repeated task writes it again.
        ids = "\n".join(map(repr, table.column(ID_COLUMN).to_pylist()))
        part = f"part-{hashlib.blake2b(ids.encode(), digest_size=12).hexdigest()}.parquet"
        self._job.folder.write(part, table_bytes(table))
        return scored(totals=totals, part=part)


_LOOKED_AT: Final = 1_000
"""Hashes met twice that are looked at: chance makes one of 6 * 10^9 ids, so that a true repetition is among them."""


Mapped: TypeAlias = "Callable[[Callable[[pa.Table], Any]], Iterator[Any]]"
"""Applies a function to the blocks of the corpus, wherever they are; yields what it makes of each, in order."""


def checked_corpus(
    mapped: Mapped, reader: RowReader, source: str, *, weigh: Sequence[Weigh], keep: bool, progress: Progress | None
) -> CorpusTotals:
    """Check every item; return the totals of the corpus, or raise its faults."""
    check = partial(check_rows, reader=reader, release=version("spicegraph"), weigh=weigh, keep=keep)
    totals = CorpusTotals()
    with TemporaryDirectory(prefix="spicegraph-") as folder:
        seen = SeenIds(Path(folder))
        for checked in mapped(check):
            totals.add(checked)
            seen.add(checked.hashes)
            if progress and totals.count:
                progress("reading items", totals.count, totals.count)
        faults, count_again = _repeated(mapped, reader, seen)
    if not (totals.count or totals.faulty):
        raise input_error(source, [Fault("", "", "contains no items")])
    if totals.faulty or faults:
        raise input_error(source, [*totals.faults, *faults], count=totals.faulty + count_again)
    if totals.fingerprint.empty:
        warnings.warn(f"{source}: {counted(totals.fingerprint.empty, 'empty candidate')} scored as zero", stacklevel=2)
    for note in marks_notes(totals.fingerprint.items, totals.fingerprint.marks):
        warnings.warn(f"{source}: {note}", stacklevel=2)
    return totals


class CorpusTotals:
    """Totals over the :class:`Checked` blocks; there is no fingerprint before the first item."""

    fingerprint: Fingerprint

    def __init__(self) -> None:
        self.count = 0  # of items
        self.integers = 0
        self.faults: list[Fault] = []
        self.faulty = 0
        self.items: list[Item] = []
        self._weights: list[tuple[int, tuple[Any, ...]]] = []  # of how many items

    def add(self, checked: Checked) -> None:
        """Count a block."""
        self.faults += checked.faults[: SHOWN_FAULTS - len(self.faults)]
        self.faulty += checked.faulty
        if checked.fingerprint is not None:
            self.fingerprint = self.fingerprint + checked.fingerprint if self.count else checked.fingerprint
            self.count = self.fingerprint.items
            self._weights.append((checked.fingerprint.items, checked.weights))
            # Those of about as many items together, as numbers carry, so that none is added often.
            while len(self._weights) > 1 and self._weights[-2][0] <= self._weights[-1][0]:
                self._join()
        self.integers += checked.integers
        self.items += checked.items

    def weights(self) -> tuple[Any, ...]:
        """Return the total of each weighing function, and drop them."""
        while len(self._weights) > 1:
            self._join()
        return self._weights.pop()[1]

    def _join(self) -> None:
        (some, first), (others, second) = self._weights[-2:]
        self._weights[-2:] = [(some + others, tuple(a + b for a, b in zip(first, second, strict=True)))]


def _repeated(mapped: Mapped, reader: RowReader, seen: SeenIds) -> tuple[list[Fault], int]:
    """Return the first items whose ids others have too, as faults, and the number of all."""
    wanted, count = seen.repeated(_LOOKED_AT)
    if not count:
        return [], 0
    first: dict[ItemId, str] = {}
    faults: list[Fault] = []
    for repeated_rows in mapped(partial(find_rows, reader=reader, wanted=wanted)):
        for item_id, file in repeated_rows:
            if item_id not in first:
                first[item_id] = file
            elif len(faults) < SHOWN_FAULTS:
                faults.append(Fault(label(file, item_id), "id", f"is also the id of an item of {first[item_id]}"))
    return faults, count if faults else 0


def watched(parts: Iterable[ScoredBlock], corpus: CorpusTotals, progress: Progress | None) -> Iterator[ScoredBlock]:
    """Yield the scored parts that hold items, report progress, and issue the warnings last."""
    said: dict[tuple[type[Warning], str], None] = {}
    done = 0
    for part in parts:
        said |= dict.fromkeys(part.warnings)
        done += part.items
        if progress:
            progress("scoring items", done, corpus.count)
        if part.items:
            yield part
    for category, message in said:
        warnings.warn(message, category, stacklevel=2)


def summarized(
    parts: Iterable[ScoredBlock],
    corpus: CorpusTotals,
    metrics: Mapping[str, Metric[Any]],
    take: Callable[[ScoredBlock], object] | None = None,
) -> results.Summary:
    """Return the corpus scores; every part is given to ``take``, and not kept."""
    totals: dict[str, results.RunTotals] = {}
    for part in parts:
        if take is not None:
            take(part)
        totals = results.added([totals, part.totals] if totals else [part.totals])
    signature = results.signature_of(corpus.fingerprint, {name: metric.signature() for name, metric in metrics.items()})
    return results.Summary(
        signature, tuple(results.summary_of(metric, totals[name]) for name, metric in metrics.items())
    )


def hashes_of(ids: Iterable[ItemId]) -> Hashes:
    """Return a hash of each id; that of 7 differs from that of "7"."""
    return np.frombuffer(
        b"".join(hashlib.blake2b(repr(value).encode(), digest_size=_BYTES).digest() for value in ids), np.uint64
    )


class SeenIds:
    """Hashes of ids, in sorted runs that spill to files of a folder."""

    def __init__(self, folder: Path, *, run: int = _RUN) -> None:
        self._folder = folder
        self._run = run
        self._waiting: list[Hashes] = []
        self._count = 0
        self._files: list[Path] = []

    def add(self, hashes: Hashes) -> None:
        """Note hashes of ids."""
        self._waiting.append(hashes)
        self._count += len(hashes)
        if self._count >= self._run:
            self._files.append(self._folder / f"{len(self._files)}.npy")
            np.save(self._files[-1], self._sorted())
            self._waiting, self._count = [], 0

    def _sorted(self) -> Hashes:
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *self._waiting]))

    def repeated(self, limit: int) -> tuple[Hashes, int]:
        """Return up to ``limit`` hashes that were noted more than once, and how many were noted again in all."""
        runs: list[Hashes] = [*(np.load(path, mmap_mode="r") for path in self._files), self._sorted()]
        repeated: list[Hashes] = [np.zeros(0, np.uint64)]
        count = 0
        for part in _ranges(runs):
            again = part[1:][part[1:] == part[:-1]]
            count += len(again)
            repeated.append(np.unique(again)[: max(0, limit - sum(map(len, repeated)))])
        return np.concatenate(repeated), count


def _ranges(runs: list[Hashes]) -> Iterator[Hashes]:
    """Yield the sorted union of all runs, in ranges about as large as a run."""
    starts = [0] * len(runs)
    for number in range(1, len(runs) + 1):
        end = number * 2 ** (8 * _BYTES) // len(runs)
        ends = [len(run) if number == len(runs) else int(np.searchsorted(run, np.uint64(end))) for run in runs]
        yield np.sort(np.concatenate([run[s:e] for run, s, e in zip(runs, starts, ends, strict=True)]))
        starts = ends
