"""Tables (CSV, TSV, Excel, Parquet, Arrow), with named columns or ids at the beginning of every line."""

from __future__ import annotations

import csv
import io
import re
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from spicegraph_parser.errors import DataError, InputError, counted, needs_extra
from spicegraph_scorer.readers import records
from spicegraph_scorer.readers.checks import Fault, input_error, shown
from spicegraph_scorer.readers.fields import Wanted, given_records, records_of
from spicegraph_scorer.readers.shapes import KNOWN, SHAPES, Columns, find_columns, find_fields, plain, recognised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from spicegraph_scorer.readers.source import ReadLimits, Source

__all__ = ["Columns", "find_columns", "has_header", "parse_columns", "read_delimited", "table_records"]

_FIELDS: Final = ("id", "candidate", "references")
_TABS: Final = {"tab": "\t", "\\t": "\t", "none": "\n"}
_NO_DELIMITERS: Final = frozenset('\r"')


def parse_columns(text: str | None, *, delimiter: str | None = None) -> Columns | None:
    r"""Parse ``--columns`` and ``--delimiter``; ``None`` if neither is given.

    Example:
        >>> parse_columns("id=file,references=ref_a+ref_b", delimiter="tab")
        Columns(id='file', candidate=None, references=('ref_a', 'ref_b'), delimiter='\t', soft=False)
    """
    if text is None and delimiter is None:
        return None
    if delimiter is not None:
        delimiter = "" if delimiter == "\n" else _TABS.get(delimiter, delimiter)
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


_HEADER_BYTES: Final = 8192
_DELIMITERS: Final = {"\t": "TSV", ";": "CSV with semicolons", ",": "CSV"}
# What is no word of a caption: 7, img1, dog.jpg. No form takes more time than a line is long.
_NAME: Final = r"[^\s,;|\d]*+\d[^\s,;|]*+|[^\s,;|]+\.[A-Za-z]\w{2,4}"
_IDS: Final = (
    rf"(?P<id>{_NAME})\s*[,;|]\s*(?P<text>\S.*)",
    # as of MSVD, mv89psg6zh4_33_46 A bird; "2nd", "3D", "10-year-old" are words
    r"(?P<id>(?!\d+(?:st|nd|rd|th|s|[dD]|-[A-Za-z-]+)\s)(?=\S*\d)(?=\S*[A-Za-z_#-])\S+?[^\s:]):?\s+(?P<text>\S.*)",
)
_COUNTED: Final = (
    (re.compile(r"(\d+)[.):]?\s+\S"), "number"),
    (re.compile(r"([^\s,;|]+)[,;|]\S+\s+\S"), "word and a separator"),
)
_QUOTED: Final = re.compile(r'"((?:[^"]|"")*+)"')
_BESIDE: Final = re.compile(r"\s*|# .*|sep=.\s*", re.DOTALL)  # Lines that may stand above a header.


def first_lines(source: Source) -> list[str]:
    """Return the first lines of a file of text, but comments, as far as they are at hand; none: it is not UTF-8."""
    given = source.stream.peek(_HEADER_BYTES)[:_HEADER_BYTES]
    whole = given if len(given) < _HEADER_BYTES or b"\n" not in given else given[: given.rindex(b"\n")]
    try:
        return [line for line in whole.decode().split("\n") if not _BESIDE.fullmatch(line)]
    except UnicodeDecodeError:
        return []


def has_header(source: Source, wanted: Wanted) -> bool:
    """Say whether a file begins with a header of at least two columns, among them those of captions."""
    header = next(iter(first_lines(source)), "")
    names = _names(_cells(header, _delimiter(header)))
    if recognised([dict.fromkeys(names, "")], lambda path: [dict.fromkeys(names, "")] if path == "[]" else []):
        return True
    columns = find_fields(names, side=wanted.side)
    has_captions = [bool(columns.candidate), bool(columns.references)]
    return len(names) > 1 and any(has_captions) and (columns.id is not None or all(has_captions))


_RECORD_LIKE: Final = (
    (re.compile(r"""[\[{]\s*["'{\[\]}\d]|[\[\]{}],?\s*\Z|"[^"]*":"""), "begins as JSON does"),
    (re.compile(r"""\d+\s*[,;|](?!\d{3}\b)\s*\S"""), "begins with a number and a separator"),
    (re.compile(r"""[^\t]*\t\s*\S"""), "has a tab"),
    (re.compile(r"""(?:.*[,;|])?"(?:[^"]|"")*"[,;|]|.*[,;|]"(?:[^"]|"")*"\s*\Z"""), "has quoted fields"),
)  # What lines of captions do not look like, and lines of tables and JSON do.
_TIGHT: Final = tuple((mark, re.compile(rf"{re.escape(mark)}(?=\S)")) for mark in (",", ";", "|"))
_INSIST: Final = "name the columns with --columns, or say that lines are captions: --delimiter none"


def refuse_records(source: Source, lines: Sequence[str]) -> None:
    """Refuse lines that look like records of a table or of JSON, which would be read as plain text."""
    for number, line in enumerate(lines, start=1):
        for form, what in _RECORD_LIKE:
            if form.match(line.lstrip()):
                where = f"line {number} ({shown(line)}) {what}"
                raise InputError(f"{source.name}: is no plain text and no shape that is known: {where}; {_INSIST}")
    given = [line for line in lines if line.strip()]
    if len(given) > 1 and plain(given[0]) in KNOWN:
        _refuse_table(source, given[:1])
    for mark, tight in _TIGHT:
        counts = {len(tight.findall(line)) for line in given}
        if len(given) > 1 and len(counts) == 1 and min(counts) > 1:
            _refuse_table(source, _cells(given[0], mark))


def _refuse_table(source: Source, cells: Sequence[str]) -> NoReturn:
    columns = ", ".join(map(shown, cells))
    raise InputError(
        f"{source.name}: looks like a table whose columns ({columns}) have no captions under names that are known: "
        f"{_INSIST}"
    )


def _are_names(cells: Sequence[str]) -> bool:
    """Say whether cells are names of columns, and no ids or captions."""
    return all(re.fullmatch(r"[A-Za-z_][\w.-]*(?: ?[\w.:-]+)?", cell) and "." not in cell for cell in cells)


def _check_header(source: Source, lines: Sequence[str]) -> None:
    """Refuse a header whose names are not known above lines that begin with ids."""
    delimiter = _delimiter(lines[0])
    rows = [_cells(line, delimiter) for line in lines]
    if len(rows) > 1 and len(rows[0]) > 1 and _are_names(rows[0]) and all(len(row) == len(rows[0]) for row in rows):
        kinds = [_HAS_DIGIT.search(row[0]) is None for row in rows]
        if kinds[0] and not any(kinds[1:]):
            _refuse_table(source, rows[0])


_HAS_DIGIT: Final = re.compile(r"\d")


def _names(cells: list[str]) -> list[str]:
    """Return the names of a header, of which pandas leaves that of the first column, its index, empty."""
    return ["Unnamed: 0", *cells[1:]] if len(cells) > 1 and not cells[0].strip() else cells


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter == "|"), [])
    except csv.Error:  # a carriage return within the line, which no cell has outside of quotes
        return [line]
    return [cell.strip() for cell in cells] if delimiter == "|" else cells


def _delimiter(header: str) -> str:
    """Return the delimiter: tab if present, else the most frequent of , ; and |."""
    return "\t" if "\t" in header else max(",;|", key=header.count)


def read_delimited(source: Source, *, limits: ReadLimits, wanted: Wanted) -> records.Records:
    """Read a CSV or TSV file with a header, or with columns that are named by number; an empty cell is nothing."""
    lines = _decoded(source, limits)
    header_line = next((line for line in lines if not _BESIDE.fullmatch(line)), "")
    named = wanted.columns or Columns()
    delimiter = named.delimiter or _delimiter(header_line)
    header = _names(_cells(header_line, delimiter))
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise InputError(f"{source.name}: two columns are called {twice[0]!a}")
    numbers = [name for name in (named.id, named.candidate, *named.references) if name]
    if numbers and all(name.isdigit() for name in numbers) and not set(numbers) & set(header):
        lines = lines if _are_names(header) else chain([header_line], lines)
        header = [str(number) for number in range(1, len(header) + 1)]
    faults: list[Fault] = []
    cells = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=delimiter == "|")
    rows = _rows(source, cells, header, faults, delimiter)
    name = _DELIMITERS.get(delimiter, f"CSV with {delimiter!a}")
    if not named.delimiter and name not in _DELIMITERS.values():
        name = f"CSV with {delimiter}"
    return records_of(source.name, name, rows, wanted, table=True, faults=faults)


def _decoded(source: Source, limits: ReadLimits) -> Iterator[str]:
    for number, line in enumerate(records.bounded_lines(source, limits), start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{source.name}, line {number}: {records.not_utf8(line, error)}") from error


def _rows(
    source: Source, cells: Iterator[list[str]], header: Sequence[str], faults: list[Fault], delimiter: str
) -> Iterator[tuple[str, object]]:
    number = 1
    try:
        for row in cells:
            number += 1
            if any("\n" in cell and _has_rows(cell, row, delimiter) for cell in row):
                faults.append(
                    Fault(f"row {number}", "", "has a quote that is not closed: the next rows are in its cell")
                )
            elif len(row) == len(header):
                yield f"row {number}", dict(zip(header, row, strict=True))
            elif row:
                mark = {",": "a comma", ";": "a semicolon", "\t": "a tab"}.get(delimiter, delimiter)
                hint = (
                    f"is there {mark} outside of quotes?"
                    if len(row) > len(header)
                    else "a caption of the row before that goes on in the next line must be in quotes"
                )
                wrong = f"has {counted(len(row), 'column')}, expected {len(header)}: {hint}"
                faults.append(Fault(f"row {number}", "", wrong))
    except csv.Error as error:
        raise input_error(source.name, [Fault(f"row {number + 1}", "", f"is not a table row ({error})")]) from error


def _has_rows(cell: str, row: Sequence[str], delimiter: str) -> bool:
    """Say whether the lines of a cell behind the first look like rows of the table."""
    below = [line.split(delimiter) for line in cell.split("\n")[1:]]
    fewest = max(len(row), 2)
    return any(len(each) >= fewest and (delimiter == "\t" or re.fullmatch(_NAME, each[0])) for each in below)


def read_id_lines(source: Source, *, limits: ReadLimits, wanted: Wanted) -> records.Records | None:
    """Read a file without a header in which every line has an id and a caption; ``None``: it is plain text."""
    lines = first_lines(source)
    if not lines:
        return None
    _check_header(source, lines)
    named = ((shape.name, shape.lines) for shape in SHAPES if shape.lines)
    unnamed = (("ids and captions", form) for form in chain(_tab(source, lines), _IDS[: 1 + (len(lines) > 1)]))
    found = next((each for each in chain(named, unnamed) if all(re.fullmatch(each[1], line) for line in lines)), None)
    if found is None:
        for form, what in _COUNTED:
            begins = [match[1] for line in lines if (match := form.match(line))]
            if len(begins) == len(lines) == len(set(begins)) > 1:
                raise InputError(
                    f"{source.name}: every line begins with another {what}: are these ids? Then separate them from the "
                    "captions by a tab; if they belong to the captions, say so: --delimiter none"
                )
        return None
    faults: list[Fault] = []
    entries = _id_lines(_decoded(source, limits), re.compile(found[1]), faults)
    key = "references" if wanted.side == "references" else "caption"
    columns = Columns("id", None, ("references",)) if key == "references" else Columns("id", "caption")
    rows = ((place, {"id": image, key: text}) for place, image, text in entries)
    return given_records(found[0], columns, rows, faults)


def _tab(source: Source, lines: Sequence[str]) -> Iterator[str]:
    """Yield the form of lines with tabs: of their columns one has no spaces, and one has texts; of more, ask."""
    rows = [line.split("\t") for line in lines]
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return
    words = [sum(len(row[column].split()) for row in rows) for column in range(width)]
    names = [column for column in range(width) if all(len(row[column].split()) == 1 for row in rows)]
    text = max(range(width), key=lambda column: (words[column], column))
    image = next((column for column in names if column != text), None)
    texts = [str(column + 1) for column in range(width) if words[column] > len(rows)]
    if image is not None and len(texts) > 1:
        raise InputError(
            f"{source.name}: has no header, and texts in the columns {', '.join(texts)}: say which are which, such as "
            f"--columns id={image + 1},references={'+'.join(texts)}"
        )
    if image is not None:
        parts = {image: r"(?P<id>[^\t]+)", text: r"(?P<text>[^\t]*)"}
        yield r"\t".join(parts.get(column, r"[^\t]*") for column in range(width))


def _id_lines(lines: Iterable[str], form: re.Pattern[str], faults: list[Fault]) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(lines, start=1):
        if match := form.fullmatch(line.rstrip("\r\n")):
            text = match["text"].strip()
            quoted = _QUOTED.fullmatch(text)
            yield f"line {number}", match["id"].strip(), quoted[1].replace('""', '"') if quoted else text
        elif not _BESIDE.fullmatch(line):
            faults.append(Fault(f"line {number}", "", "has no id and separator, which all lines before have"))


PARQUET_MAGIC: Final = b"PAR1"
_ARROW_MAGIC: Final = (b"ARROW1", b"\xff\xff\xff\xff")
PACKED_TABLES: Final = ("folder", "xlsx")


def is_binary_table(source: Source) -> bool:
    """Say whether a file is a Parquet, Arrow or Excel table, or the folder of a data set."""
    return source.packing in PACKED_TABLES or source.stream.peek(8).startswith((PARQUET_MAGIC, *_ARROW_MAGIC))


def read_binary_table(source: Source, *, limits: ReadLimits, wanted: Wanted) -> records.Records:
    """Read a Parquet, Arrow or Excel file, or a data set that ``datasets`` wrote; references may be lists."""
    if source.packing == "xlsx":
        name, rows = "Excel", _excel_rows(source, limits)
    elif source.packing == "folder":
        name, rows = "Hugging Face data set", _folder_rows(source)
    else:
        name = "Parquet" if source.stream.peek(8).startswith(PARQUET_MAGIC) else "Arrow"
        rows = _arrow_rows(source, source.content(limits))
    with _readable(source, name):
        found = records_of(source.name, name, ((f"row {n}", row) for n, row in enumerate(rows, 1)), wanted, table=True)
    return found._replace(records=_guarded(source, name, found.records))


def _guarded(source: Source, name: str, given: Iterable[records.Record]) -> Iterator[records.Record]:
    with _readable(source, name):
        yield from given


def _excel_rows(source: Source, limits: ReadLimits) -> Iterator[Mapping[str, object]]:
    try:
        import pandas as pd  # noqa: PLC0415 (where it is installed)

        sheets = pd.read_excel(io.BytesIO(source.content(limits)), dtype=object, sheet_name=None)
    except ImportError as error:
        raise DataError("Excel files need pandas and openpyxl: pip install pandas openpyxl") from error
    tables = {name: rows for name, sheet in sheets.items() if (rows := sheet.to_dict("records"))}
    if len(tables) > 1:
        raise InputError(f"{source.name}: has rows in several sheets ({', '.join(map(shown, tables))}), expected one")
    for row in chain.from_iterable(tables.values()):
        yield {str(key): None if value != value else value for key, value in row.items()}  # noqa: PLR0124 (NaN)


def _folder_rows(source: Source) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a data set that was saved to a folder, with their splits where it has some."""
    folder = Path(source.name)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".arrow", ".parquet"}):
        if path.name.startswith(("cache-", "tmp")):  # what datasets.map leaves, the same rows once more
            continue
        below = path.parent.relative_to(folder).parts
        for row in _arrow_rows(source, path.read_bytes()):
            yield {"split": below[0], **row} if below else row


def _arrow_rows(source: Source, content: bytes) -> Iterator[Mapping[str, object]]:
    """Yield the rows of Parquet or Arrow, without columns of pictures."""
    with needs_extra("parquet", "reading Parquet and Arrow files"):
        import pyarrow as pa  # noqa: PLC0415 (an extra)
        import pyarrow.parquet as pq  # noqa: PLC0415
    stream = io.BytesIO(content)
    reader: Any
    if content.startswith(PARQUET_MAGIC):
        reader = pq.ParquetFile(stream)
        schema, batches = reader.schema_arrow, reader.iter_batches
    else:
        reader = pa.ipc.open_file(stream) if content.startswith(_ARROW_MAGIC[0]) else pa.ipc.open_stream(stream)
        schema = reader.schema

        def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
            found = (
                (reader.get_batch(n) for n in range(reader.num_record_batches))
                if content.startswith(b"ARROW1")
                else reader
            )
            return (batch.select(columns) for batch in found)

    if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
        raise InputError(f"{source.name}: two columns are called {twice[0]!a}")
    used = [
        each.name
        for each in schema
        if not (str(each.type).startswith("struct") and "bytes" in str(each.type)) and "binary" not in str(each.type)
    ]
    for batch in batches(columns=used):
        yield from batch.to_pylist()


@contextmanager
def _readable(source: Source, name: str) -> Iterator[None]:
    try:
        import pyarrow as pa  # noqa: PLC0415 (an extra)

        wrong: tuple[type[Exception], ...] = (pa.ArrowException, OSError)
    except ModuleNotFoundError:
        wrong = (OSError,)
    try:
        yield
    except wrong as error:
        raise InputError(f"{source.name}: is a damaged or unreadable {name} file ({error})") from error


def table_records(
    name: str, columns: Columns, rows: Iterable[tuple[str, Mapping[str, object]]], faults: list[Fault]
) -> records.Records:
    """Turn rows into records; without a column of ids, an id is the row's number, from 1."""
    return given_records(f"{name} ({columns})", columns, rows, faults)
