"""Results files as a table that answers at once: scores as columns of numbers, rows and captions in SQLite.

Files are read in the background. What has been read can be asked for: the first rows after a moment, the others while
they come.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import threading
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, Source, open_source
from spicegraph_service.engines.objects import flat_scores, parquet_extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
    Keys = npt.NDArray[np.int64]

_IDS = ("image_id", "id")
_TEXTS = ("candidate", "caption", "test")
_REFERENCES = ("references", "refs")
_FIRST_PART = 2_000
_PART = 25_000
_LIMITS = replace(DEFAULT_LIMITS, content=1 << 36)  # the file is the user's own


@dataclass(frozen=True, slots=True)
class Query:
    """Which items are shown, and in which order.

    Attributes:
        text: part of an id or of a caption, in any case.
        score: a column's name.
        system: the system whose score counts.
        low: the lowest value shown.
        high: the highest.
        order: a key of :data:`ORDERS`.
        start: how many items come before the first that is shown.
        count: how many items are shown.
    """

    text: str = ""
    score: str = ""
    system: int = 0
    low: float | None = None
    high: float | None = None
    order: str = "file"
    start: int = 0
    count: int = 50


ORDERS: Mapping[str, str] = {
    "file": "order of the file",
    "worst": "lowest first",
    "best": "highest first",
    "ahead": "most ahead of the next system",
    "behind": "most behind the next system",
}
"""The orders, with their names for people."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One item of a list: its key, its id, its captions and its scores by system, and the difference of two systems."""

    key: int
    id: str
    captions: tuple[str, ...]
    scores: tuple[float | None, ...]
    difference: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a query finds: how many items, those that are shown, and the mean of the score over all of them."""

    total: int
    items: tuple[Listed, ...]
    mean: float | None


@dataclass(slots=True)
class _System:
    """One file's rows: columns of numbers over the items of all files."""

    name: str
    path: str
    columns: dict[str, int] = field(default_factory=dict)
    values: Numbers = field(default_factory=lambda: np.empty((0, 0)))
    parts: list[tuple[list[int], list[dict[str, float]]]] = field(default_factory=list)
    read: int = 0


class Results:
    """Results files.

    Args:
        files: names of systems with their files.
        captions: files with captions by the systems' names, and of references by the empty name.
        folder: for the database.
    """

    def __init__(self, files: Sequence[tuple[str, str]], captions: Mapping[str, str], folder: Path) -> None:
        self.systems = tuple(_System(name, path) for name, path in files)
        self.done = False
        self.fault = ""
        self._captions = captions
        self._place = folder / "view.db"
        self._lock = threading.Lock()
        self._leaving = False
        self._keys: dict[str, int] = {}
        with self._connected() as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(
                "CREATE TABLE row (key INTEGER, system INTEGER, json BLOB, PRIMARY KEY (key, system)) WITHOUT ROWID"
            )
            database.execute("CREATE TABLE item (key INTEGER PRIMARY KEY, id TEXT NOT NULL, words TEXT NOT NULL)")
            database.execute(
                "CREATE TABLE caption (key INTEGER, system INTEGER, text TEXT, PRIMARY KEY (key, system)) WITHOUT ROWID"
            )

    def _connected(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._place, timeout=60)
        database.execute("PRAGMA synchronous=OFF")
        return database

    @property
    def scores(self) -> list[str]:
        """The names of all columns, in the order of the files."""
        return list(dict.fromkeys(name for system in self.systems for name in list(system.columns)))

    @property
    def count(self) -> int:
        """How many items have been read."""
        return len(self._keys)

    def start(self) -> threading.Thread:
        """Begin to read."""
        thread = threading.Thread(target=self.read, name="results", daemon=True)
        thread.start()
        return thread

    def leave(self) -> None:
        """Stop reading soon."""
        self._leaving = True

    def read(self) -> None:
        """Read all files; :attr:`fault` says what cannot be read."""
        try:
            with self._connected() as database:
                for number, system in enumerate(self.systems):
                    self._read_scores(database, number, system)
                for name, path in self._captions.items():
                    self._read_captions(database, name, path)
        except SpicegraphError as error:
            self.fault = str(error)
        finally:
            self.done = True

    def _read_scores(self, database: sqlite3.Connection, number: int, system: _System) -> None:
        rows = _rows(system.path)
        for size in chain((_FIRST_PART,), repeat(_PART)):
            part = list(islice(rows, size))
            if not part or self._leaving:
                break
            keys, values, stored, texts = [], [], [], []
            for place, row in enumerate(part, system.read + 1):
                key = self._key(database, _id(row, system.path, place))
                keys.append(key)
                values.append(_numbers(row))
                stored.append((key, number, msgspec.json.encode(row)))
                text = _first_text(row)
                if text:
                    texts.append((key, number, text))
            database.executemany("INSERT OR REPLACE INTO row VALUES (?, ?, ?)", stored)
            self._add_texts(database, texts)
            system.parts.append((keys, values))
            system.read += len(part)
            self._publish(system)
            database.commit()
        if not (system.read or self._leaving):
            raise InputError(f"{system.path}: contains no items")

    def _key(self, database: sqlite3.Connection, item_id: str) -> int:
        key = self._keys.get(item_id)
        if key is None:
            key = len(self._keys)
            database.execute("INSERT INTO item VALUES (?, ?, ?)", (key, item_id, item_id.casefold()))
            self._keys[item_id] = key
        return key

    def _add_texts(self, database: sqlite3.Connection, texts: Sequence[tuple[int, int, str]]) -> None:
        database.executemany("INSERT OR REPLACE INTO caption VALUES (?, ?, ?)", texts)
        database.executemany(
            "UPDATE item SET words = words || char(10) || ? WHERE key = ?",
            [(text.casefold(), key) for key, _, text in texts],
        )

    def _publish(self, system: _System) -> None:
        """Put the rows that were read where queries look."""
        columns = dict(system.columns)
        for _, values in system.parts:
            for row in values:
                for name in row:
                    columns.setdefault(name, len(columns))
        made = np.full((len(columns), len(self._keys)), np.nan)
        before = system.values
        made[: before.shape[0], : before.shape[1]] = before
        for keys, values in system.parts:
            for key, row in zip(keys, values, strict=True):
                for name, value in row.items():
                    made[columns[name], key] = value
        with self._lock:
            system.columns, system.values, system.parts = columns, made, []

    def _read_captions(self, database: sqlite3.Connection, name: str, path: str) -> None:
        number = next((n for n, system in enumerate(self.systems) if system.name == name), -1)
        texts = []
        for place, row in enumerate(_rows(path), 1):
            key = self._keys.get(_id(row, path, place))
            text = _first_text(row) or "\n".join(_references(row))
            if key is not None and text:
                texts.append((key, number, text))
        joined: dict[int, list[str]] = {}
        for key, _, text in texts:
            joined.setdefault(key, []).append(text)
        self._add_texts(database, [(key, number, "\n".join(lines)) for key, lines in joined.items()])
        database.commit()

    def column(self, system: int, score: str) -> Numbers:
        """Return a score of all items; NaN where there is none."""
        with self._lock:
            found, number = self.systems[system].values, self.systems[system].columns.get(score)
        size = self.count
        made = np.full(size, np.nan)
        if number is not None:
            made[: found.shape[1]] = found[number][:size]
        return made

    def find(self, query: Query) -> Found:
        """Answer a query."""
        values = self.column(query.system, query.score)
        other = self._other(query.system)
        difference = values - self.column(other, query.score)[: len(values)] if other is not None else None
        keep = np.ones(len(values), dtype=bool)
        if query.low is not None:
            keep &= values >= query.low
        if query.high is not None:
            keep &= values <= query.high
        with self._connected() as database:
            if query.text.strip():
                matching = np.zeros(len(values), dtype=bool)
                wanted = f"%{_escaped(query.text.strip().casefold())}%"
                rows = database.execute("SELECT key FROM item WHERE words LIKE ? ESCAPE '\\'", (wanted,))
                keys = np.fromiter((key for (key,) in rows), dtype=np.int64)
                matching[keys[keys < len(values)]] = True
                keep &= matching
            kept = np.flatnonzero(keep)
            order = _ordered(kept, values, difference, query.order)
            shown = order[query.start : query.start + query.count]
            known = values[kept]
            known = known[~np.isnan(known)]
            items = tuple(self._listed(database, int(key), query, difference) for key in shown)
        return Found(len(kept), items, float(known.mean()) if len(known) else None)

    def _other(self, system: int) -> int | None:
        return (system + 1) % len(self.systems) if len(self.systems) > 1 else None

    def _listed(self, database: sqlite3.Connection, key: int, query: Query, difference: Numbers | None) -> Listed:
        (item_id,) = database.execute("SELECT id FROM item WHERE key = ?", (key,)).fetchone()
        texts = dict(database.execute("SELECT system, text FROM caption WHERE key = ?", (key,)))
        scores = (self._value(number, query.score, key) for number in range(len(self.systems)))
        captions = tuple(texts.get(number, "") for number in range(len(self.systems)))
        return Listed(key, item_id, captions, tuple(scores), _real(difference[key]) if difference is not None else None)

    def _value(self, system: int, score: str, key: int) -> float | None:
        with self._lock:
            found, number = self.systems[system].values, self.systems[system].columns.get(score)
        return _real(found[number, key]) if number is not None and key < found.shape[1] else None

    def item(self, key: int) -> dict[str, Any] | None:
        """Return all that is known of an item; ``None``: there is none."""
        with self._connected() as database:
            found = database.execute("SELECT id FROM item WHERE key = ?", (key,)).fetchone()
            if found is None:
                return None
            texts = dict(database.execute("SELECT system, text FROM caption WHERE key = ?", (key,)))
            rows = dict(database.execute("SELECT system, json FROM row WHERE key = ?", (key,)))
        return {
            "id": found[0],
            "references": texts.get(-1, "").splitlines(),
            "captions": [texts.get(number, "") for number in range(len(self.systems))],
            "scores": {
                name: [self._value(number, name, key) for number in range(len(self.systems))] for name in self.scores
            },
            "rows": [
                msgspec.json.format(rows[number], indent=2).decode() if number in rows else ""
                for number in range(len(self.systems))
            ],
        }


def _ordered(kept: Keys, values: Numbers, difference: Numbers | None, order: str) -> Keys:
    """Return the kept items in an order; what is undefined comes last."""
    if order == "file":
        return kept
    by = difference if order in {"ahead", "behind"} and difference is not None else values
    chosen = by[kept] if order in {"worst", "behind"} else -by[kept]
    return kept[np.argsort(chosen, kind="stable")]


def _real(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


# --- files ------------------------------------------------------------------------------------------------------


def _rows(path: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a results file: what ``score`` writes, or the SPICE program.

    Raises:
        InputError: it is not one.
    """
    if path.endswith(".parquet"):
        yield from _parquet_rows(path)
        return
    with open_source(path, limits=_LIMITS) as source:
        head = source.stream.peek(1)[:1]
        if path.removesuffix(".gz").removesuffix(".zst").endswith(".csv"):
            with io.TextIOWrapper(source.stream, encoding="utf-8-sig", newline="") as lines:
                yield from csv.DictReader(lines)
        elif head == b"{" and (first := source.stream.readline()).rstrip().endswith(b"}") and _is_row(first):
            yield _decoded(first, source, 1)
            for place, line in enumerate(source.stream, 2):
                if line.strip():
                    yield _decoded(line, source, place)
        else:
            rest = first if head == b"{" else b""
            yield from _listed_rows(source, rest + source.stream.read())


def _is_row(line: bytes) -> bool:
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return isinstance(value, dict) and any(name in value for name in _IDS)


def _decoded(line: bytes, source: Source, place: int) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{source.name}: line {place}: is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{source.name}: line {place}: expected an object")
    return value


def _listed_rows(source: Source, content: bytes) -> Iterator[dict[str, Any]]:
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        value = _lenient(source, content)  # the SPICE program writes NaN
    if isinstance(value, dict):
        value = value.get("items") or value.get("annotations")
    if not isinstance(value, list):
        raise InputError(f"{source.name}: expected the items of a result, as score writes them")
    for place, row in enumerate(value, 1):
        if not isinstance(row, dict):
            raise InputError(f"{source.name}: item {place}: expected an object")
        yield row


def _lenient(source: Source, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source.name}: is not JSON: {error}") from error


def _parquet_rows(path: str) -> Iterator[dict[str, Any]]:
    with parquet_extra():
        import pyarrow as pa  # noqa: PLC0415 (an extra)
        import pyarrow.parquet as pq  # noqa: PLC0415
    try:
        for batch in pq.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: is not Parquet: {error}") from error


def _id(row: Mapping[str, Any], path: str, place: int) -> str:
    for name in _IDS if "image_id" not in row else _IDS[:1]:
        value = row.get(name)
        if isinstance(value, str | int) and value != "":
            return str(value)
    raise InputError(f"{path}: item {place}: lacks image_id")


def _first_text(row: Mapping[str, Any]) -> str:
    for name in _TEXTS:
        value = row.get(name)
        if isinstance(value, str):
            return value
    return ""


def _references(row: Mapping[str, Any]) -> list[str]:
    for name in _REFERENCES:
        value = row.get(name)
        if isinstance(value, list):
            return [one for one in value if isinstance(one, str)]
    return []


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """Return a row's scores by column."""
    scores = row.get("scores", row)
    found = {}
    for name, value in flat_scores(scores):
        if name in _IDS or isinstance(value, bool):
            continue
        if isinstance(value, str):
            try:
                value = float(value)  # noqa: PLW2901 (CSV)
            except ValueError:
                continue
        if isinstance(value, int | float):
            found[name] = float(value)
    return found
