"""Tables with named columns (CSV, TSV, Parquet): found by the names that people give them, or by ``--columns``."""

from __future__ import annotations

import ast
import csv
import io
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import DataError, InputError, counted
from spicegraph_scorer.readers import records
from spicegraph_scorer.readers.checks import Fault, input_error, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from spicegraph_scorer.readers.source import ReadLimits, Source

_IDS = ("image_id", "id", "video_id", "audio_id", "file_name", "filename", "file", "image", "img", "key")
_PREDICTED = ("prediction", "predictions", "hypothesis", "caption_predicted", "predicted_caption", "generated_caption")
_CANDIDATES = ("candidate", "candidates", "test", *_PREDICTED, "caption")
_REFERENCES = ("references", "refs", "captions", "reference", "ref", records.FACTS)
_NUMBERED = re.compile(r"(?:caption_)?(?:reference|ref|caption|raw|sentence)s?[_ .-]?\d+")
_FIELDS = ("id", "candidate", "references")
_TABS = {"tab": "\t", "\\t": "\t"}
_NO_DELIMITERS = frozenset('\r\n"')


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a table's columns: of the id and the candidate (or nothing), and of the references."""

    id: str | None = None
    candidate: str | None = None
    references: tuple[str, ...] = ()
    delimiter: str | None = None

    def __str__(self) -> str:
        names = self.references
        joined = f"{names[0]} .. {names[-1]}" if len(names) > 3 else "+".join(names)
        named = {"id": self.id, "candidate": self.candidate, "references": joined}
        return ", ".join(f"{field}: {column}" for field, column in named.items() if column)


def parse_columns(text: str | None, *, delimiter: str | None = None) -> Columns | None:
    r"""Read what ``--columns`` and ``--delimiter`` say; ``None`` if neither is given.

    Example:
        >>> parse_columns("id=file,references=ref_a+ref_b", delimiter="tab")
        Columns(id='file', candidate=None, references=('ref_a', 'ref_b'), delimiter='\t')
    """
    if text is None and delimiter is None:
        return None
    if delimiter is not None:
        delimiter = _TABS.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in _NO_DELIMITERS:
            raise InputError(f"--delimiter: expected one character, such as | or ;, or tab, got {shown(delimiter)}")
    named: dict[str, str] = {}
    for part in text.split(",") if text is not None else ():
        field, is_pair, column = (piece.strip() for piece in part.partition("="))
        if not is_pair or field not in _FIELDS or not column or field in named:
            raise InputError(
                f"--columns: {part.strip()!a} is not understood, expected id=NAME,candidate=NAME,references=NAME+NAME"
            )
        named[field] = column
    references = tuple(name for name in named.get("references", "").split("+") if name)
    return Columns(named.get("id"), named.get("candidate"), references, delimiter)


def find_columns(header: Sequence[str], *, named: Columns | None = None, only_references: bool = False) -> Columns:
    """Return a table's columns, named or usual; of ``only_references``, ``caption`` holds references."""
    named = named or Columns()
    wanted = [name for name in (named.id, None if only_references else named.candidate, *named.references) if name]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise InputError(
            f"has no column {', '.join(map(shown, missing))}; its columns are {', '.join(map(shown, header))}"
        )
    by_name = {name.strip().lower(): name for name in reversed(header)}
    numbered = tuple(name for name in header if _NUMBERED.fullmatch(name.strip().lower()))
    single = _first(by_name, (*_REFERENCES, "caption") if only_references else _REFERENCES)
    references = named.references or numbered or ((single,) if single else ())
    return Columns(
        named.id or _first(by_name, _IDS),
        None if only_references else named.candidate or _first(by_name, _CANDIDATES),
        references,
    )


def _first(by_name: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((by_name[name] for name in names if name in by_name), None)


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
    columns = find_columns(names, only_references=only_references)
    has_captions = [bool(columns.candidate), bool(columns.references)]
    return len(names) > 1 and any(has_captions) and (columns.id is not None or all(has_captions))


def _delimiter(header: str) -> str:
    """Return what separates the columns: a tab if there is one, else the more frequent of , and ;."""
    return "\t" if "\t" in header else max(",;", key=header.count)


def read_delimited(
    source: Source, *, limits: ReadLimits, columns: Columns | None, only_references: bool
) -> records.Records:
    """Read a CSV or TSV file with a header; an empty cell is a missing field."""
    lines = _decoded(source, limits)
    header_line = next(lines, "")
    delimiter = (columns.delimiter if columns else None) or _delimiter(header_line)
    header = next(csv.reader([header_line], delimiter=delimiter), [])
    given_columns = _columns(source, header, columns, only_references=only_references)
    faults: list[Fault] = []
    rows = _rows(source, csv.reader(lines, delimiter=delimiter, strict=True), header, faults)
    return table_records(_DELIMITERS.get(delimiter, f"CSV with {delimiter!a}"), given_columns, rows, faults)


def _decoded(source: Source, limits: ReadLimits) -> Iterator[str]:
    for number, line in enumerate(records.bounded_lines(source, limits), start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.name}, line {number}: is not UTF-8 ({error.reason} at byte {error.start})"
            ) from error


def _columns(source: Source, header: Sequence[str], named: Columns | None, *, only_references: bool) -> Columns:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"{source.name}: two columns are called {twice[0]!a}")
    try:
        return find_columns(header, named=named, only_references=only_references)
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
        raise input_error(source.name, [Fault(f"row {number + 1}", "", f"is not a table row ({error})")]) from error


def read_parquet(
    source: Source, *, limits: ReadLimits, columns: Columns | None, only_references: bool
) -> records.Records:
    """Read a Parquet file; references are columns of strings, or a column of lists of strings."""
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise DataError("Parquet files need an extra: pip install 'spicegraph[parquet]'") from error
    content = source.content(limits)
    with _readable(source):
        table = pq.ParquetFile(io.BytesIO(content))
        header = table.schema_arrow.names
        given_columns = _columns(source, header, columns, only_references=only_references)
        used = [name for name in (given_columns.id, given_columns.candidate, *given_columns.references) if name]
        rows = _parquet_rows(source, table.iter_batches(columns=used))
        return table_records("Parquet", given_columns, rows, [])


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
) -> records.Records:
    """Turn rows into records; without a column of ids, an id is the row's number, from 1."""
    form = records.Format(
        f"{name} ({columns})",
        (columns.id or "row",),
        (columns.candidate,) if columns.candidate else ("candidate",),
        ("references",) if columns.references else (),
        typed=False,
        table=True,
    )
    return records.Records(form, _table_records(columns, rows), faults)


def _table_records(columns: Columns, rows: Iterable[tuple[str, Mapping[str, object]]]) -> Iterator[records.Record]:
    for number, (location, row) in enumerate(rows, start=1):
        fields: dict[str, object] = {}
        if columns.id is None:
            fields["row"] = number
        elif row[columns.id] not in (None, ""):
            value = row[columns.id]
            fields[columns.id] = records.untyped_id(value) if isinstance(value, str) else value
        if columns.candidate is not None:
            fields[columns.candidate] = row[columns.candidate]
        if columns.references:
            texts: list[object] = []
            for column in columns.references:  # a string or a list of them; the text of a cell of facts has one a line
                cell = row[column]
                value = records.given_references(
                    column.strip().lower(), _listed(cell) if isinstance(cell, str) else cell
                )
                if isinstance(value, list):
                    texts += value
                elif value not in (None, ""):
                    texts.append(value)
            fields["references"] = texts
        yield records.Record(location, fields)


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
