"""What runs on the machines of a Ray cluster: rows to items, and items to sums and rows of scores."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property, partial, wraps
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, ParamSpec

from spicegraph_parser.errors import DataError, SpicegraphError
from spicegraph_parser.extract import rare_collections
from spicegraph_scorer.core.fingerprint import Fingerprint
from spicegraph_scorer.core.items import Corpus, Item
from spicegraph_scorer.core.results import Result, Run
from spicegraph_scorer.core.totals import RunTotals, totals_of
from spicegraph_scorer.metrics import make_metrics, needs_loose
from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies
from spicegraph_scorer.readers.faults import SHOWN_FAULTS, Fault, shown
from spicegraph_scorer.readers.formats import JSON_LINES, Record, Records
from spicegraph_scorer.readers.read import items_of
from spicegraph_scorer.readers.records import decode
from spicegraph_scorer.readers.tables import table_records
from spicegraph_scorer.scoring import SharedFacts, resources
from spicegraph_service.engines.local import local_facts
from spicegraph_service.engines.repeated import Hashes, hashes_of
from spicegraph_service.engines.score_table import ID, score_table, table_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from ray import ObjectRef
    from ray.data import Dataset

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.metrics.graded.vectors import Vectors
    from spicegraph_scorer.metrics.spice.categories import Category
    from spicegraph_scorer.readers.columns import Columns
    from spicegraph_service.engines.object_store import Folder

__all__ = [
    "PATH",
    "TEXT",
    "Checked",
    "Job",
    "Keep",
    "Placed",
    "RowReader",
    "Scored",
    "Scorer",
    "check_rows",
    "comparable",
    "find_rows",
    "unpacked_rows",
]

Parameters = ParamSpec("Parameters")

TEXT: Final = "text"
"""The column of the lines of text files."""
PATH: Final = "path"
"""The column of the files that rows come from."""

_PACKED: Final = "packed"
_KNOWN: Final = 50_000
"""Captions whose facts an actor keeps, so that it parses repeated ones once."""

_OF_CORPUS: Final = "document frequencies"
"""The part of a signature that says where the frequencies came from: an actor's come from the first pass."""


def _packed(function: Callable[Parameters, object]) -> Callable[Parameters, pa.Table]:
    """Let a function return its value in a table, which :func:`unpacked_rows` reads.

    An error of ours is a value too: of one that is raised, Ray Data sends neither the type nor the message.
    """

    @wraps(function)
    def packing(*arguments: Parameters.args, **options: Parameters.kwargs) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415 (an extra)

        try:
            value = function(*arguments, **options)
        except SpicegraphError as error:
            value = error
        return pa.table({_PACKED: [pickle.dumps(value)]})

    return packing


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes items of rows: of a table with these columns, or, without any, of lines of JSON."""

    columns: Columns | None = None

    def items(self, rows: pa.Table) -> tuple[tuple[Item, ...], list[Fault]]:
        """Return the items, and every fault of what is none; a place is the name of the file."""
        return items_of(self.records(rows))

    def records(self, rows: pa.Table) -> Records:
        """Return what the items are made of."""
        return _line_records(rows) if self.columns is None else self._table_records(rows, self.columns)

    def _table_records(self, rows: pa.Table, columns: Columns) -> Records:
        return table_records("Parquet", columns, ((_name(row[PATH]), row) for row in rows.to_pylist()), [])


def _line_records(rows: pa.Table) -> Records:
    records: list[Record] = []
    faults: list[Fault] = []
    for line, path in zip(rows.column(TEXT).to_pylist(), rows.column(PATH).to_pylist(), strict=True):
        if not line.strip():
            continue
        value, reason = decode(line.encode())
        if isinstance(value, dict):
            records.append(Record(_name(path), value))
        else:
            faults.append(Fault(_name(path), "", f"{shown(line)} {reason or 'is no object'}"))
    return Records(JSON_LINES, records, faults)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the first pass says of some rows.

    ``fingerprint`` is ``None`` without items, ``integers`` counts the ids that are numbers, ``hashes`` are those of all
    ids, ``faults`` the first ones of ``faulty``, ``frequencies`` those of the references, if asked for, and ``items``
    the items themselves, if asked for.
    """

    fingerprint: Fingerprint | None
    integers: int
    hashes: Hashes
    faults: list[Fault]
    faulty: int
    frequencies: DocumentFrequencies | None
    items: tuple[Item, ...]


@_packed
def check_rows(rows: pa.Table, *, reader: RowReader, release: str, count: bool, keep: bool) -> Checked:
    """Read and check rows.

    Raises:
        DataError: this machine has another release of the package.
    """
    if version("spicegraph") != release:
        raise DataError(
            f"a machine of the Ray cluster has spicegraph {version('spicegraph')}, this one {release}: install the same"
        )
    items, faults = reader.items(rows)
    return Checked(
        Fingerprint.of(items) if items else None,
        sum(isinstance(item.id, int) for item in items),
        hashes_of(item.id for item in items),
        faults[:SHOWN_FAULTS],
        len(faults),
        DocumentFrequencies.from_references([item.references for item in Corpus(items).tokens]) if count else None,
        items if keep else (),
    )


@dataclass(frozen=True, slots=True)
class Placed:
    """An id, and the name of the file that it stands in."""

    id: ItemId
    place: str


@_packed
def find_rows(rows: pa.Table, *, reader: RowReader, wanted: Hashes) -> list[Placed]:
    """Return the items whose ids have one of the hashes, two of each at most."""
    form, records, _ = reader.records(rows)
    left = dict.fromkeys(wanted.tolist(), 2)
    found = []
    for record in records:
        items, _ = items_of(Records(form, [record], []))
        for item, value in zip(items, hashes_of(item.id for item in items).tolist(), strict=True):
            if left.get(value, 0):
                left[value] -= 1
                found.append(Placed(item.id, record.place))
    return found


class Keep(Enum):
    """What comes back from the actors beside the sums: nothing, every item's statistics, or rows of scores."""

    SUMS = auto()
    STATISTICS = auto()
    ROWS = auto()


@dataclass(frozen=True, slots=True)
class Job:
    """What every actor must know; ``cache`` is a store of parses that all machines reach.

    ``signatures`` are the metrics' where the command runs, ``folder`` is where actors write rows of scores themselves,
    and ``text_ids`` says that these have ids as strings.
    """

    reader: RowReader
    pipeline: str
    metrics: tuple[str, ...]
    cache: str | None
    frequencies: DocumentFrequencies | None
    categories: Mapping[str, Category] | None
    vectors: Vectors | None
    signatures: Mapping[str, Mapping[str, str]]
    keep: Keep = Keep.SUMS
    folder: Folder | None = None
    text_ids: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """What an actor makes of some items, and what the metrics warned of.

    ``totals`` are the sums by metric, ``statistics`` and ``rows`` come where the job keeps them, and ``part`` is the
    name of the file that the actor wrote.
    """

    items: int
    warnings: tuple[tuple[type[Warning], str], ...]
    totals: Mapping[str, RunTotals] = field(default_factory=dict)
    statistics: Mapping[str, list[object]] = field(default_factory=dict)
    rows: pa.Table | None = None
    part: str | None = None


def comparable(signature: Mapping[str, str]) -> dict[str, str]:
    """Return what of a metric's signature must be the same on every machine."""
    return {key: value for key, value in signature.items() if key != _OF_CORPUS}


class Scorer:
    """An actor: a loaded pipeline and the metrics."""

    def __init__(self, shared: ObjectRef[Job]) -> None:
        import ray  # noqa: PLC0415 (an extra)

        self._job: Job = ray.get(shared)
        self._open = ExitStack()  # for as long as the actor lives

    @cached_property
    def _facts(self) -> SharedFacts:
        job = self._job
        return SharedFacts(
            self._open.enter_context(local_facts(job.pipeline, cache=job.cache, loose=needs_loose(job.metrics)))
        )

    @cached_property
    def _metrics(self) -> dict[str, Metric[Any]]:
        """The metrics; made with the first rows and not with the actor, which Ray would try for long to make again."""
        job = self._job
        given = resources(self._facts, None, job.frequencies, job.categories, job.vectors, evidence=False)
        metrics = make_metrics(job.metrics, given)
        for name, metric in metrics.items():
            _check_signature(name, comparable(metric.signature()), job.signatures[name])
        return metrics

    @_packed
    def __call__(self, rows: pa.Table) -> Scored:
        """Score the items of rows.

        Raises:
            DataError: a pipeline or data of this machine is not that of the command's.
        """
        items, _ = self._job.reader.items(rows)
        if not items:
            return Scored(0, ())
        if len(self._facts.known) > _KNOWN:
            self._facts.known.clear()
        corpus = Corpus(items)
        with rare_collections(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = {name: metric.collect(corpus) for name, metric in self._metrics.items()}
        scored = partial(Scored, len(items), tuple((warning.category, str(warning.message)) for warning in caught))
        if self._job.keep is Keep.STATISTICS:
            return scored(statistics=found)
        totals = {name: totals_of(metric, found[name]) for name, metric in self._metrics.items()}
        if self._job.keep is Keep.SUMS:
            return scored(totals=totals)
        table = score_table(items, _item_scores(items, self._metrics, found), text_ids=self._job.text_ids)
        if self._job.folder is None:
            return scored(totals=totals, rows=table)
        return scored(totals=totals, part=_written(table, self._job.folder))


def _check_signature(metric: str, mine: Mapping[str, str], told: Mapping[str, str]) -> None:
    for key in {**told, **mine}:
        if mine.get(key) != told.get(key):
            raise DataError(
                f"a machine of the Ray cluster would score otherwise than this one: of the metric {metric}, {key} is "
                f"{mine.get(key)} there and {told.get(key)} here; install the same on both"
            )


def _item_scores(
    items: Sequence[Item], metrics: Mapping[str, Metric[Any]], statistics: Mapping[str, list[Any]]
) -> Sequence[Mapping[str, Any]]:
    runs = [Run(name, {}, tuple(statistics[name]), metric.total(statistics[name])) for name, metric in metrics.items()]
    return Result(tuple(items), {}, tuple(runs)).item_scores()


def _written(table: pa.Table, folder: Folder) -> str:
    """Write rows to a file of their own; its name depends on the rows, so that a repeated task writes it again."""
    ids = "\n".join(map(repr, table.column(ID).to_pylist()))
    name = f"part-{hashlib.blake2b(ids.encode(), digest_size=12).hexdigest()}.parquet"
    folder.write(name, table_bytes(table))
    return name


def unpacked_rows(blocks: Dataset) -> Iterator[Any]:
    """Yield the values of tables with one value each, in order.

    Raises:
        SpicegraphError: one of them is what a worker raised.
    """
    for row in blocks.iter_rows():
        value = pickle.loads(row[_PACKED])  # noqa: S301 (our own workers wrote it)
        if isinstance(value, SpicegraphError):
            raise value
        yield value
