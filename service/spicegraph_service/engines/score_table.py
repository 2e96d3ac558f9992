"""Scores as Parquet: one row per item, in the columns of the CSV; the metadata holds the corpus scores."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Json, Summary

ID: Final = "image_id"
METADATA: Final = "spicegraph"
"""The key of the metadata under which signature and corpus scores stand, as JSON."""

_COUNTS: Final = frozenset({"tp", "fp", "fn"})
"""What a category counts; all other columns are decimals."""


@contextmanager
def parquet_extra() -> Iterator[None]:
    """Import pyarrow within this: where it is not installed, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError("Parquet files need an extra: pip install 'spicegraph[parquet]'") from error


def flat_scores(values: Mapping[str, Json], before: str = "") -> Iterator[tuple[str, Json]]:
    """Yield an item's scores by column; categories are ``SPICE_categories_Color_f``.

    Example:
        >>> dict(flat_scores({"SPICE": 0.5, "SPICE_categories": {"All": {"f": 0.5}}}))
        {'SPICE': 0.5, 'SPICE_categories_All_f': 0.5}
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat_scores(value, f"{before}{key}_")
        else:
            yield f"{before}{key}", value


def score_table(items: Sequence[Item], scores: Sequence[Mapping[str, Json]], *, text_ids: bool) -> pa.Table:
    """Return one row per item: its id and its scores; what is undefined is null.

    Args:
        items: at least one.
        scores: of each item, as :meth:`spicegraph_scorer.core.results.Result.item_scores` gives them.
        text_ids: write ids as strings; else all of them are integers.

    Raises:
        DataError: pyarrow is not installed.
    """
    with parquet_extra():
        import pyarrow as pa  # noqa: PLC0415 (an extra)
    columns: dict[str, list[Json]] = {}
    for of_item in scores:
        for key, value in flat_scores(of_item):
            columns.setdefault(key, []).append(value)
    ids = pa.array([str(item.id) for item in items]) if text_ids else pa.array([item.id for item in items], pa.int64())
    numbers = {
        key: pa.array(values, pa.int64() if key.rpartition("_")[2] in _COUNTS else pa.float64())
        for key, values in columns.items()
    }
    return pa.table({ID: ids, **numbers})


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)
    import pyarrow.parquet as pq  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


class ScoreFile:
    """A Parquet file of scores that is written a table at a time, and the corpus scores at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        """Write rows; all tables have the same columns."""
        import pyarrow.parquet as pq  # noqa: PLC0415 (an extra)

        if self._writer is None:  # without the schema as Arrow has it, readers find our metadata with the schema
            self._writer = pq.ParquetWriter(self._path, table.schema, store_schema=False)
        self._writer.write_table(table)

    def about(self, summary: Summary) -> None:
        """Write signature and corpus scores; at least one table was written before."""
        self._writer.add_key_value_metadata({METADATA: msgspec.json.encode(summary.to_dict())})

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def score_file(path: Path) -> Iterator[ScoreFile]:
    """Open a Parquet file for scores, on this machine.

    Raises:
        DataError: pyarrow is not installed.
    """
    with parquet_extra():
        import pyarrow.parquet  # noqa: F401, PLC0415
    file = ScoreFile(path)
    try:
        yield file
    finally:
        file.close()
