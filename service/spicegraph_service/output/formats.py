"""Results as text, by format: a table of functions.

The text of a result comes in pieces, an item at a time: that of many items is far larger than their scores.
"""

from __future__ import annotations

import csv
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from spicegraph_scorer.metrics.spice.jar import jar_rows
from spicegraph_service.engines.score_table import METADATA, flat_scores, parquet_extra, score_table, table_bytes
from spicegraph_service.output.tables import comparison_tables, rendered, result_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from spicegraph_scorer.core.results import Json, Result
    from spicegraph_scorer.scoring import SystemComparison


_ROWS: Final = 4096
"""Items whose scores are turned into columns together."""


class ResultFormat(StrEnum):
    """The output formats of ``score``."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    SPICE = "spice"


def _table(result: Result) -> Iterator[str]:
    yield rendered(result_tables(result))


def _json(result: Result) -> Iterator[str]:
    """Yield the JSON of ``result.to_dict()``."""
    start, end = _pretty({**result.summary.to_dict(), "items": []}).rsplit("[]", 1)
    yield start
    yield from _pretty_list(result.iter_rows(), depth=1)
    yield end


def _jsonl(result: Result) -> Iterator[str]:
    """Yield one item per line; the corpus scores and the signature are in the other formats."""
    return (msgspec.json.encode(row).decode() + "\n" for row in result.iter_rows())


def _csv(result: Result) -> Iterator[str]:
    """Yield one item per row, categories as ``SPICE_categories_Color_f``; what is undefined stays empty."""
    writer: csv.DictWriter[str] | None = None
    for item, scores in zip(result.items, result.iter_scores(), strict=True):
        row = {"image_id": item.id, **dict(flat_scores(scores))}
        if writer is None:
            writer = csv.DictWriter(_Echo(), fieldnames=list(row), lineterminator="\n")
            yield writer.writeheader()
        yield writer.writerow(row)


class _Echo:
    """A file whose ``write`` returns what it is given, and the CSV writer then too."""

    def write(self, text: str) -> str:
        return text


def parquet_bytes(result: Result) -> bytes:
    """Return one item per row, in the columns of the CSV; signature and corpus scores are in the file's metadata.

    Raises:
        DataError: pyarrow is not installed.
    """
    with parquet_extra():
        import pyarrow as pa  # noqa: PLC0415 (an extra)
    text_ids = any(isinstance(item.id, str) for item in result.items)
    scores = result.iter_scores()
    parts = [
        score_table(items, list(islice(scores, _ROWS)), text_ids=text_ids)
        for items in (result.items[start : start + _ROWS] for start in range(0, len(result.items), _ROWS))
    ]
    about = {METADATA: msgspec.json.encode(result.summary.to_dict())}
    return table_bytes(pa.concat_tables(parts).combine_chunks().replace_schema_metadata(about))


def _spice(result: Result) -> Iterator[str]:
    yield from _pretty_list(jar_rows(result), depth=0)
    yield "\n"


def _pretty_list(values: Iterable[Json], *, depth: int) -> Iterator[str]:
    """Yield the text of a list as :func:`_pretty` gives it, a value at a time; it is within ``depth`` objects."""
    indent = "\n" + "  " * depth
    before = "["
    for value in values:
        yield f"{before}{indent}  " + _pretty(value).rstrip("\n").replace("\n", f"{indent}  ")
        before = ","
    yield "[]" if before == "[" else f"{indent}]"


def _pretty(value: Json) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


RESULT_FORMATS: Mapping[ResultFormat, Callable[[Result], Iterable[str]]] = {
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
    ".txt": ComparisonFormat.TABLE,
}
