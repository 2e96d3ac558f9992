"""What runs on the machines of a Ray cluster: rows to items, and items to statistics."""

from __future__ import annotations

import pickle
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.memory import rare_collections
from spicegraph_scorer.evidence import without_evidence
from spicegraph_scorer.items import Corpus, Item
from spicegraph_scorer.metrics import make_metrics, needs_loose
from spicegraph_scorer.ngram.frequencies import DocumentFrequencies
from spicegraph_scorer.readers.faults import Fault, shown
from spicegraph_scorer.readers.formats import JSON_LINES, Record, Records
from spicegraph_scorer.readers.read import items_of
from spicegraph_scorer.readers.records import decode
from spicegraph_scorer.readers.tables import table_records
from spicegraph_scorer.scoring import SharedFacts, resources
from spicegraph_service.engines.local import local_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from ray import ObjectRef
    from ray.data import Dataset

    from spicegraph_scorer.graded.vectors import Vectors
    from spicegraph_scorer.readers.columns import Columns
    from spicegraph_scorer.spice.categories import Category

__all__ = ["PATH", "TEXT", "Checked", "Job", "RowReader", "ScoredItems", "Scorer", "check_rows", "unpacked_rows"]

TEXT: Final = "text"
"""The column of the lines of text files."""
PATH: Final = "path"
"""The column of the files that rows come from."""

_PACKED: Final = "packed"
_KNOWN: Final = 50_000
"""Captions whose facts an actor keeps, so that it parses repeated ones once."""


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes items of rows: of a table with these columns, or, without any, of lines of JSON."""

    columns: Columns | None = None

    def items(self, rows: pa.Table) -> tuple[tuple[Item, ...], list[Fault]]:
        """Return the items, and every fault of what is none; a place is the name of the file."""
        records = _line_records(rows) if self.columns is None else self._table_records(rows, self.columns)
        return items_of(records)

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
    """What the first pass says of some rows; ``frequencies`` are those of the items' references, if asked for."""

    items: tuple[Item, ...]
    faults: list[Fault]
    frequencies: DocumentFrequencies | None


def check_rows(rows: pa.Table, *, reader: RowReader, count: bool) -> pa.Table:
    """Read and check rows; return one pickled :class:`Checked`."""
    items, faults = reader.items(rows)
    counted = None
    if count and items:
        counted = DocumentFrequencies.from_references([item.references for item in Corpus(items).tokens])
    return _packed(Checked(items, faults, counted))


@dataclass(frozen=True, slots=True)
class Job:
    """What every actor must know; ``cache`` is a store of parses that all machines reach."""

    reader: RowReader
    pipeline: str
    metrics: tuple[str, ...]
    cache: str | None
    frequencies: DocumentFrequencies | None
    categories: Mapping[str, Category] | None
    vectors: Vectors | None


@dataclass(frozen=True, slots=True)
class ScoredItems:
    """The statistics of some items by metric, without the evidence, and what the metrics warned of."""

    statistics: Mapping[str, list[object]]
    warnings: tuple[tuple[type[Warning], str], ...]


class Scorer:
    """An actor: a loaded pipeline and the metrics."""

    def __init__(self, shared: ObjectRef[Job]) -> None:
        import ray  # noqa: PLC0415 (an extra)

        job: Job = ray.get(shared)
        self._reader = job.reader
        self._open = ExitStack()  # for as long as the actor lives
        self._facts = SharedFacts(
            self._open.enter_context(local_facts(job.pipeline, cache=job.cache, loose=needs_loose(job.metrics)))
        )
        self._metrics = make_metrics(
            job.metrics, resources(self._facts, None, job.frequencies, job.categories, job.vectors, evidence=False)
        )

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Score the items of rows; return one pickled :class:`ScoredItems`."""
        items, _ = self._reader.items(rows)
        corpus = Corpus(items)
        if len(self._facts.known) > _KNOWN:
            self._facts.known.clear()
        with rare_collections(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = {
                name: [without_evidence(statistic) for statistic in metric.collect(corpus)]
                for name, metric in self._metrics.items()
            }
        said = tuple((warning.category, str(warning.message)) for warning in caught)
        return _packed(ScoredItems(found, said))


def _packed(value: Checked | ScoredItems) -> pa.Table:
    """Return a table with one value, which :func:`unpacked_rows` reads."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    return pa.table({_PACKED: [pickle.dumps(value)]})


def unpacked_rows(blocks: Dataset) -> Iterator[Any]:
    """Yield the values of tables with one value each, in order."""
    return (pickle.loads(row[_PACKED]) for row in blocks.iter_rows())  # noqa: S301 (our own workers wrote it)
