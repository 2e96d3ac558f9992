"""Tables with named columns: CSV and TSV with a header, and Parquet."""

from __future__ import annotations

import ast
import csv
import io
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import DataError, InputError
from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.readers.columns import Columns, find_columns
from spicegraph_scorer.readers.faults import Fault, input_error
from spicegraph_scorer.readers.formats import Format, Record, Records, untyped_id
from spicegraph_scorer.readers.records import bounded_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from spicegraph_scorer.readers.source import Limits, Source

__all__ = ["PARQUET_MAGIC", "has_header", "read_delimited", "read_parquet", "table_records"]

PARQUET_MAGIC = b"PAR1"

_HEADER_BYTES = 8192
_DELIMITERS = {"\t": "TSV", ";": "CSV with semicolons", ",": "CSV"}


def has_header(source: Source, *, only_references: bool) -> bool:
    """Say whether a file begins with a header of at least two columns, among them those of captions."""
    line = source.stream.peek(_HEADER_BYTES)[:_HEADER_BYTES].splitlines()[:1]
    try:
        header = line[0].decode() if line else ""
    except UnicodeDecodeError:
        return False
    names = next(csv.reader([header], delimiter=_delimiter(header)), [])
    found = find_columns(names, only_references=only_references)
    has_captions = [bool(found.candidate), bool(found.references)]
    return len(names) > 1 and any(has_captions) and (found.id is not None or all(has_captions))


def _delimiter(header: str) -> str:
    """Return what separates the columns: a tab if there is one, else the more frequent of , and ;."""
    return "\t" if "\t" in header else max(",;", key=header.count)


def read_delimited(source: Source, *, limits: Limits, columns: Columns | None, only_references: bool) -> Records:
    """Read a CSV or TSV file with a header; an empty cell is a missing field.

    Raises:
        InputError: it is not UTF-8 or no such table, or a column that ``columns`` names is missing.
        LimitError: it is larger than the limits.
    """
    lines = _decoded(source, limits)
    header_line = next(lines, "")
    delimiter = _delimiter(header_line)
    header = next(csv.reader([header_line], delimiter=delimiter), [])
    found = _columns(source, header, columns, only_references=only_references)
    faults: list[Fault] = []
    rows = _rows(source, csv.reader(lines, delimiter=delimiter, strict=True), header, faults)
    return table_records(_DELIMITERS[delimiter], found, rows, faults)


def _decoded(source: Source, limits: Limits) -> Iterator[str]:
    for number, line in enumerate(bounded_lines(source, limits), start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.name}, line {number}: is not UTF-8 ({error.reason} at byte {error.start})"
            ) from error


def _columns(source: Source, header: Sequence[str], told: Columns | None, *, only_references: bool) -> Columns:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"{source.name}: two columns are called {twice[0]!a}")
    try:
        return find_columns(header, told=told, only_references=only_references)
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from error


def _rows(
    source: Source, cells: Iterator[Sequence[str]], header: Sequence[str], faults: list[Fault]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    number = 1
    try:
        for row in cells:
            number += 1
            if len(row) == len(header):
                yield f"row {number}", dict(zip(header, row, strict=True))
            elif row:
                faults.append(Fault(f"row {number}", "", f"has {counted(len(row), 'column')}, expected {len(header)}"))
    except csv.Error as error:
        raise input_error(source.name, [Fault(f"row {number + 1}", "", f"is no row of a table ({error})")]) from error


def read_parquet(source: Source, *, limits: Limits, columns: Columns | None, only_references: bool) -> Records:
    """Read a Parquet file; references are columns of strings, or a column of lists of strings.

    Raises:
        InputError: it is damaged, or a column that ``columns`` names is missing.
        LimitError: it is larger than the limits.
        DataError: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise DataError("Parquet files need an extra: pip install 'spicegraph[parquet]'") from error
    content = source.content(limits)
    with _readable(source):
        table = pq.ParquetFile(io.BytesIO(content))
        header = table.schema_arrow.names
        found = _columns(source, header, columns, only_references=only_references)
        used = [name for name in (found.id, found.candidate, *found.references) if name]
        rows = _parquet_rows(source, table.iter_batches(columns=used))
        return table_records("Parquet", found, rows, [])


def _parquet_rows(source: Source, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Mapping[str, object]]]:
    with _readable(source):
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from ((f"row {number}", row) for number, row in enumerate(rows, start=1))


@contextmanager
def _readable(source: Source) -> Iterator[None]:
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{source.name}: is a damaged or unreadable Parquet file ({error})") from error


def table_records(
    name: str, columns: Columns, rows: Iterable[tuple[str, Mapping[str, object]]], faults: list[Fault]
) -> Records:
    """Turn rows into records; without a column of ids, an id is the row's number, from 1."""
    form = Format(
        f"{name} ({columns})",
        (columns.id or "row",),
        (columns.candidate,) if columns.candidate else ("candidate",),
        ("references",) if columns.references else (),
        typed=False,
        table=True,
    )
    return Records(form, _table_records(columns, rows), faults)


def _table_records(columns: Columns, rows: Iterable[tuple[str, Mapping[str, object]]]) -> Iterator[Record]:
    for number, (place, row) in enumerate(rows, start=1):
        fields: dict[str, object] = {}
        if columns.id is None:
            fields["row"] = number
        elif row[columns.id] not in (None, ""):
            value = row[columns.id]
            fields[columns.id] = untyped_id(value) if isinstance(value, str) else value
        if columns.candidate is not None:
            fields[columns.candidate] = row[columns.candidate]
        if columns.references:
            fields["references"] = _references(row[column] for column in columns.references)
        yield Record(place, fields)


def _references(cells: Iterable[object]) -> list[object]:
    """Return the references of a row's cells: a string each, or a list of them; empty cells are none."""
    found: list[object] = []
    for cell in cells:
        value = _listed(cell) if isinstance(cell, str) else cell
        if isinstance(value, list):
            found.extend(value)
        elif value is not None and value != "":
            found.append(value)
    return found


def _listed(cell: str) -> object:
    """Return the list that a cell holds as JSON or as Python prints it (pandas writes that), or the cell."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return cell
    try:
        return msgspec.json.decode(cell)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        value: object = ast.literal_eval(cell)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return cell
    return value
