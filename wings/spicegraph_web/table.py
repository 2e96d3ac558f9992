"""Results files as a table that answers at once: scores as columns of numbers, rows and captions in SQLite.

Files are read in the background, and queries see what has been read so far: the first rows after a moment.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_scorer.readers.records import decode
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, Source, open_source
from spicegraph_service.kit import METADATA, flat_scores, parquet_extra

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
    Keys = npt.NDArray[np.int64]

_IDS = ("image_id", "id")
_TEXTS = ("candidate", "caption", "test")
_REFERENCES = ("references", "refs")
_NAMES = frozenset((*_IDS, *_TEXTS, *_REFERENCES))
_OF_REFERENCES: Final = -1  # in the place of a system's number
_FIRST_PART = 2_000
_PART = 25_000
_LIMITS = replace(DEFAULT_LIMITS, content=1 << 36)  # the file is the user's own
_CATEGORY = re.compile(r"(?:(?P<metric>.+)_categories_)?(?P<category>[^_]+)_(?P<part>f|pr|re|tp|fp|fn)")
PARTS: Final[Mapping[str, str]] = {
    "f": "F", "pr": "Precision", "re": "Recall", "tp": "Right", "fp": "Wrong", "fn": "Missing"
}  # fmt: skip
"""The parts of a category's score, with their names for people; the last three are counts."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which items are shown, and in which order."""

    text: str = ""  # part of an id or of a caption, in any case
    score: str = ""  # a column's name
    system: int = 0  # whose score counts
    low: float | None = None  # the lowest value shown
    high: float | None = None  # the highest
    order: str = "file"  # a key of :data:`ORDERS`
    start: int = 0  # the first item shown
    count: int = 50


ORDERS: Mapping[str, str] = {
    "worst": "lowest first",
    "best": "highest first",
    "ahead": "most ahead of the next system",
    "behind": "most behind the next system",
    "file": "order of the file",
}
"""The orders, with their names for people."""


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One item of a list: its key, its id, its captions and its scores by system, and the difference of two systems."""

    key: int
    id: str
    captions: tuple[str, ...]
    scores: tuple[float | None, ...]
    difference: float | None


@dataclass(frozen=True, slots=True)
class ItemValues:
    """All that is known of an item, by system where there are several values: ``rows`` are the files' own, as JSON."""

    id: str
    references: tuple[str, ...]
    captions: tuple[str, ...]
    scores: Mapping[str, tuple[float | None, ...]]
    rows: tuple[str, ...]


@dataclass(slots=True)
class _System:
    """One file's rows: columns of numbers over the items of all files, and the corpus scores that it holds."""

    name: str
    path: str
    columns: dict[str, int] = field(default_factory=dict)
    values: Numbers = field(default_factory=lambda: np.empty((0, 0)))
    corpus: dict[str, float] = field(default_factory=dict)
    read: int = 0


class ResultTable:
    """The rows of results files by the systems' names, and captions by the same names, references by the empty one."""

    def __init__(self, files: Sequence[tuple[str, str]], captions: Mapping[str, str], folder: Path) -> None:
        self.systems = tuple(_System(name, path) for name, path in files)
        self.done = False
        self.fault = ""
        self.looked = threading.Event()  # the first rows are there, or what is wrong
        self._captions = captions
        self._path = folder / "view.db"
        self._lock = threading.Lock()
        self._leaving = False
        self._keys: dict[str, int] = {}
        self.count = 0  # items that have been read, and stand in the database
        self._selected: tuple[Query, Keys, float | None] | None = None
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
        database = sqlite3.connect(self._path, timeout=60)
        database.execute("PRAGMA synchronous=OFF")
        return database

    @property
    def scores(self) -> list[str]:
        """The names of all columns but those that repeat a score, ``All`` of a metric's categories, in files' order."""
        names = dict.fromkeys(name for system in self.systems for name in list(system.columns))
        return [name for name in names if not (name.endswith("_categories_All_f") and name[: -len(_ALL)] in names)]

    def start(self) -> threading.Thread:
        """Begin to read."""
        thread = threading.Thread(target=self.read, name="results", daemon=True)
        thread.start()
        return thread

    def leave(self) -> None:
        """Stop reading soon."""
        self._leaving = True

    def read(self) -> None:
        """Read all files; :attr:`fault` holds the error if one cannot be read."""
        try:
            paths = [*(system.path for system in self.systems), *self._captions.values()]
            # A damaged one is known at once, also behind others.
            opened = {path: _parquet(path) for path in paths if path.endswith(".parquet")}
            with self._connected() as database:
                for number, system in enumerate(self.systems):
                    self._read_scores(database, number, system, opened)
                for name, path in self._captions.items():
                    number = next((n for n, system in enumerate(self.systems) if system.name == name), _OF_REFERENCES)
                    self._read_texts(database, number, path, opened)
                    database.commit()
        except SpicegraphError as error:
            self.fault = str(error)
        finally:
            self.done = True
            self.looked.set()

    def _read_texts(self, database: sqlite3.Connection, number: int, path: str, opened: Mapping[str, Any]) -> None:
        """Read a system's captions, or the references."""
        texts: dict[int, list[str]] = {}
        for line, row in enumerate(_rows(path, {}, opened), 1):
            key = self._keys.get(_id(row, path, line))
            lines = _references(row) if number == _OF_REFERENCES else []
            text = "\n".join(lines) or _first_text(row)
            if key is not None and text:
                texts.setdefault(key, []).append(text)
        self._add_texts(database, [(key, number, "\n".join(lines)) for key, lines in texts.items()])

    def _key(self, database: sqlite3.Connection, item_id: str) -> int:
        """Return the key of an item, which is added where it is new."""
        key = self._keys.get(item_id)
        if key is None:
            key = self._keys[item_id] = len(self._keys)
            database.execute("INSERT INTO item VALUES (?, ?, ?)", (key, item_id, item_id.casefold()))
        return key

    def _read_scores(
        self, database: sqlite3.Connection, number: int, system: _System, opened: Mapping[str, Any]
    ) -> None:
        rows = _rows(system.path, system.corpus, opened)
        for size in chain((_FIRST_PART,), repeat(_PART)):
            part = list(islice(rows, size))
            if not part or self._leaving:
                break
            keys, values, stored, texts = [], [], [], []
            for line, row in enumerate(part, system.read + 1):
                key = self._key(database, _id(row, system.path, line))
                keys.append(key)
                values.append(_numbers(row))
                stored.append((key, number, msgspec.json.encode(row)))
                references = _references(row) if number == 0 else []
                of_row = (number, _first_text(row)), (_OF_REFERENCES, "\n".join(references))
                texts += [(key, of_system, text) for of_system, text in of_row if text]
            if not system.read and not any(map(_is_scored, part)):
                raise InputError(
                    f"{system.path}: contains no scores; view shows what score wrote, and captions of it by --captions"
                )
            database.executemany("INSERT OR REPLACE INTO row VALUES (?, ?, ?)", stored)
            self._add_texts(database, sorted(texts, key=lambda text: text[1] == _OF_REFERENCES))
            system.read += len(part)
            columns, table = _grown(system, len(self._keys), keys, values)
            with self._lock:  # from here on queries see the part
                system.columns, system.values = columns, table
            database.commit()
            self.count = len(self._keys)
            self.looked.set()
        if not (system.read or self._leaving):
            raise InputError(f"{system.path}: contains no items")

    def _add_texts(self, database: sqlite3.Connection, texts: Sequence[tuple[int, int, str]]) -> None:
        database.executemany("INSERT OR REPLACE INTO caption VALUES (?, ?, ?)", texts)
        database.executemany(
            "UPDATE item SET words = words || char(10) || ? WHERE key = ?",
            [(text.casefold(), key) for key, _, text in texts],
        )

    def column(self, system: int, score: str) -> Numbers:
        """Return a score of all items; NaN where there is none."""
        with self._lock:
            table, number = self.systems[system].values, self.systems[system].columns.get(score)
        size = self.count
        values = np.full(size, np.nan)
        if number is not None:
            values[: table.shape[1]] = table[number][:size]
        return values

    def select(self, query: Query) -> tuple[Keys, float | None]:
        """Return the keys of all items that a query selects, in its order, and the mean of its score over them."""
        wanted = replace(query, start=0, count=0)
        if self._selected is not None and self._selected[0] == wanted:  # the pages and items of one query
            return self._selected[1:]
        values = self.column(query.system, query.score)
        keep = np.ones(len(values), dtype=bool)
        if query.low is not None:
            keep &= values >= query.low
        if query.high is not None:
            keep &= values <= query.high
        if query.text.strip():
            keep &= self._matching(query.text.strip().casefold(), len(values))
        order = np.flatnonzero(keep)
        known = values[order]
        known = known[~np.isnan(known)]
        mean = float(known.mean()) if len(known) else None
        if query.order != "file":
            order = self._sorted(order, values, query)
        if self.done:
            self._selected = wanted, order, mean
        return order, mean

    def _matching(self, text: str, size: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which items have a text, in lower case, in their words."""
        matching = np.zeros(size, dtype=np.bool_)
        escaped = re.sub(r"([\\%_])", r"\\\1", text)
        with self._connected() as database:
            rows = database.execute("SELECT key FROM item WHERE words LIKE ? ESCAPE '\\'", (f"%{escaped}%",))
            keys = np.fromiter((key for (key,) in rows), dtype=np.int64)
        matching[keys[keys < size]] = True
        return matching

    def _sorted(self, keys: Keys, values: Numbers, query: Query) -> Keys:
        other = self._other(query.system)
        if other is not None and query.order in {"ahead", "behind"}:
            values -= self.column(other, query.score)[: len(values)]
        chosen = values[keys] if query.order in {"worst", "behind"} else -values[keys]
        return keys[np.argsort(chosen, kind="stable")]  # what is undefined comes last

    def find(self, query: Query) -> tuple[int, list[ListedItem], float | None]:
        """Return how many items a query selects, those that it shows, and the mean of its score over all of them."""
        order, mean = self.select(query)
        items, systems, other = [], range(len(self.systems)), self._other(query.system)
        with self._connected() as database:
            for key in order[query.start : query.start + query.count].tolist():
                (item_id,) = database.execute("SELECT id FROM item WHERE key = ?", (key,)).fetchone()
                texts = dict(database.execute("SELECT system, text FROM caption WHERE key = ?", (key,)))
                scores = tuple(self._value(number, query.score, key) for number in systems)
                first, second = scores[query.system], None if other is None else scores[other]
                difference = None if first is None or second is None else first - second
                captions = tuple(texts.get(number, "") for number in systems)
                items.append(ListedItem(key, item_id, captions, scores, difference))
        return len(order), items, mean

    def _other(self, system: int) -> int | None:
        return (system + 1) % len(self.systems) if len(self.systems) > 1 else None

    def _value(self, system: int, score: str, key: int) -> float | None:
        with self._lock:
            table, number = self.systems[system].values, self.systems[system].columns.get(score)
        value = np.nan if number is None or key >= table.shape[1] else float(table[number, key])
        return None if np.isnan(value) else value

    def item(self, key: int) -> ItemValues | None:
        """Return all that is known of an item; ``None``: there is none."""
        with self._connected() as database:
            known = database.execute("SELECT id FROM item WHERE key = ?", (key,)).fetchone()
            if known is None:
                return None
            texts = dict(database.execute("SELECT system, text FROM caption WHERE key = ?", (key,)))
            rows = dict(database.execute("SELECT system, json FROM row WHERE key = ?", (key,)))
        numbers = range(len(self.systems))
        return ItemValues(
            known[0],
            tuple(texts.get(_OF_REFERENCES, "").splitlines()),
            tuple(texts.get(number, "") for number in numbers),
            {name: tuple(self._value(number, name, key) for number in numbers) for name in self.scores},
            tuple(msgspec.json.format(rows[number], indent=2).decode() if number in rows else "" for number in numbers),
        )


_ALL = "_categories_All_f"


def by_category(names: Iterable[str]) -> tuple[list[str], dict[str, dict[str, dict[str, str]]]]:
    """Return the names of scores without categories, and the columns of the others by metric, category and part."""
    plain: list[str] = []
    metrics: dict[str, dict[str, dict[str, str]]] = {}
    for name in names:
        parts = _CATEGORY.fullmatch(name)
        if parts is None:
            plain.append(name)
        else:
            metrics.setdefault(parts["metric"] or "", {}).setdefault(parts["category"], {})[parts["part"]] = name
    return plain, metrics


def _grown(
    system: _System, items: int, keys: Sequence[int], rows: Sequence[Mapping[str, float]]
) -> tuple[dict[str, int], Numbers]:
    """Return the columns and values of a system for so many items, with further rows."""
    columns = dict(system.columns)
    for name in chain.from_iterable(rows):
        columns.setdefault(name, len(columns))
    table = np.full((len(columns), items), np.nan)
    table[: system.values.shape[0], : system.values.shape[1]] = system.values
    for key, row in zip(keys, rows, strict=True):
        for name, value in row.items():
            table[columns[name], key] = value
    return columns, table


def _parquet_rows(path: str, corpus: dict[str, float], opened: Any) -> Iterator[dict[str, Any]]:
    with _parquet_errors(path):
        about = (opened.schema_arrow.metadata or {}).get(METADATA.encode())
        corpus |= _numbers(msgspec.json.decode(about).get("corpus") or {}) if about else {}
        for batch in opened.iter_batches():
            yield from batch.to_pylist()


def _rows(path: str, corpus: dict[str, float], opened: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a results file of ``score`` or the SPICE program; fills in the corpus scores."""
    if path in opened:
        yield from _parquet_rows(path, corpus, opened[path])
        return
    with open_source(path, limits=_LIMITS) as source:
        if path.removesuffix(".gz").removesuffix(".zst").endswith(".csv"):
            with io.TextIOWrapper(source.stream, encoding="utf-8-sig", newline="") as lines:
                yield from csv.DictReader(lines)
            return
        first = source.stream.readline() if source.stream.peek(1)[:1] == b"{" else b""
        row, _ = decode(first)
        if not isinstance(row, dict) or not any(name in row for name in _IDS):
            yield from _listed_rows(source, first + source.stream.read(), corpus)
            return
        for number, line in enumerate(chain((first,), source.stream), 1):
            if line.strip():
                row, reason = decode(line)
                if not isinstance(row, dict):
                    raise InputError(f"{source.name}: line {number}: {reason or 'expected an object'}")
                yield row


def _listed_rows(source: Source, content: bytes, corpus: dict[str, float]) -> Iterator[dict[str, Any]]:
    value, reason = decode(content)
    if reason:  # the SPICE program writes NaN, which the other reader takes
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{source.name}: {reason}") from error
    if isinstance(value, dict):
        if isinstance(value.get("corpus"), dict):
            corpus |= _numbers(value["corpus"])
        value = value.get("items") or value.get("annotations")
    if not isinstance(value, list):
        raise InputError(f"{source.name}: expected the items of a result, as score writes them")
    for number, row in enumerate(value, 1):
        if not isinstance(row, dict):
            raise InputError(f"{source.name}: item {number}: expected an object")
        yield row


@contextmanager
def _parquet_errors(path: str) -> Iterator[None]:
    """Read a Parquet file within this: an error names the file."""
    with parquet_extra():
        import pyarrow as pa  # noqa: PLC0415 (an extra)
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: is not Parquet: {error}") from error


def _parquet(path: str) -> Any:
    with _parquet_errors(path):
        import pyarrow.parquet as pq  # noqa: PLC0415 (an extra)

        return pq.ParquetFile(path)


def _is_scored(row: Mapping[str, Any]) -> bool:
    """Say whether a row is one of a result: it has scores, of which all may be undefined."""
    has_undefined = any(value in (None, "") and name not in _NAMES for name, value in row.items())
    return "scores" in row or has_undefined or bool(_numbers(row))


def _id(row: Mapping[str, Any], path: str, number: int) -> str:
    for name in _IDS if "image_id" not in row else _IDS[:1]:
        value = row.get(name)
        if isinstance(value, str | int) and value != "":
            return str(value)
    raise InputError(f"{path}: item {number}: lacks image_id")


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
            return [text for text in value if isinstance(text, str)]
    return []


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """Return a row's scores by column."""
    scores = row.get("scores", row)
    numbers = {}
    for name, value in flat_scores(scores):
        if name in _IDS or isinstance(value, bool):
            continue
        if isinstance(value, str):
            try:
                value = float(value)  # noqa: PLW2901 (CSV)
            except ValueError:
                continue
        if isinstance(value, int | float):
            numbers[name] = float(value)
    return numbers
