"""Results as text, by format: a table of functions."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_scorer.jar import jar_output
from spicegraph_service.cli.tables import comparison_tables, rendered, result_tables

if TYPE_CHECKING:
    from spicegraph_scorer.comparing import SystemComparison
    from spicegraph_scorer.results import Json, Result

__all__ = [
    "COMPARISON_BY_ENDING",
    "COMPARISON_FORMATS",
    "RESULT_FORMATS",
    "ComparisonFormat",
    "ResultFormat",
    "parquet_bytes",
]


class ResultFormat(StrEnum):
    """The output formats of ``score``."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    SPICE = "spice"


def _table(result: Result) -> str:
    return rendered(result_tables(result))


def _json(result: Result) -> str:
    return _pretty(result.to_dict())


def _jsonl(result: Result) -> str:
    """Return one item a line; the corpus scores and the signature are in the other formats."""
    return "".join(msgspec.json.encode(row).decode() + "\n" for row in result.item_rows())


def _csv(result: Result) -> str:
    """Return one item a row, categories as ``SPICE_categories_Color_f``; what is undefined stays empty."""
    rows = [
        {"image_id": item.id, **dict(_flat(scores))}
        for item, scores in zip(result.items, result.item_scores(), strict=True)
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(values: Mapping[str, Json], before: str = "") -> Iterator[tuple[str, Json]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}_")
        else:
            yield f"{before}{key}", value


def parquet_bytes(result: Result) -> bytes:
    """Return one item a row, in the columns of the CSV; signature and corpus scores are in the file's metadata.

    Raises:
        DataError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 (an extra)
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise DataError("Parquet files need an extra: pip install 'spicegraph[parquet]'") from error
    columns: dict[str, list[Json]] = {}
    for scores in result.item_scores():
        for key, value in _flat(scores):
            columns.setdefault(key, []).append(value)
    ids = [item.id for item in result.items]
    typed = ids if len(set(map(type, ids))) == 1 else list(map(str, ids))
    numbers = {
        key: pa.array(values, pa.int64() if all(type(value) is int for value in values) else pa.float64())
        for key, values in columns.items()
    }
    about = {key: value for key, value in result.to_dict().items() if key != "items"}
    table = pa.table({"image_id": typed, **numbers})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({"spicegraph": msgspec.json.encode(about)}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _spice(result: Result) -> str:
    return _pretty(jar_output(result))


def _pretty(value: Json) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


RESULT_FORMATS: Mapping[ResultFormat, Callable[[Result], str]] = {
    ResultFormat.TABLE: _table,
    ResultFormat.JSON: _json,
    ResultFormat.JSONL: _jsonl,
    ResultFormat.CSV: _csv,
    ResultFormat.SPICE: _spice,
}
"""The formats that are text; Parquet is not."""


class ComparisonFormat(StrEnum):
    """The output formats of ``compare``."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


def _comparison_table(found: SystemComparison, names: tuple[str, str]) -> str:
    return rendered(comparison_tables(found, names))


def _comparison_json(found: SystemComparison, names: tuple[str, str]) -> str:
    first, second = names
    return _pretty({"systems": {"first": first, "second": second}, **found.to_dict()})


COMPARISON_FORMATS: Mapping[ComparisonFormat, Callable[[SystemComparison, tuple[str, str]], str]] = {
    ComparisonFormat.TABLE: _comparison_table,
    ComparisonFormat.JSON: _comparison_json,
}
"""The formats of ``compare`` that hold the comparison and the two systems' names; a page is a whole report."""

COMPARISON_BY_ENDING: Mapping[str, ComparisonFormat] = {
    ".json": ComparisonFormat.JSON,
    ".html": ComparisonFormat.HTML,
    ".htm": ComparisonFormat.HTML,
}
