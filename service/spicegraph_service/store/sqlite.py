"""The embedded store: one SQLite file in write-ahead mode, which several processes may open."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spicegraph_service import store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SCHEMA_VERSION = 2
_SCHEMA = """
CREATE TABLE parses (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL);
CREATE TABLE reference_sets (
    id TEXT PRIMARY KEY, display_name TEXT NOT NULL, entry_count INTEGER NOT NULL,
    caption_count INTEGER NOT NULL, create_time REAL NOT NULL, tenant TEXT NOT NULL DEFAULT 'default'
) WITHOUT ROWID;
CREATE TABLE reference_entries (
    set_id TEXT NOT NULL REFERENCES reference_sets (id) ON DELETE CASCADE,
    entry_id TEXT NOT NULL, captions BLOB NOT NULL, PRIMARY KEY (set_id, entry_id)
) WITHOUT ROWID;
CREATE TABLE reference_rights (
    tenant TEXT NOT NULL, set_id TEXT NOT NULL REFERENCES reference_sets (id) ON DELETE CASCADE,
    rights TEXT NOT NULL, PRIMARY KEY (tenant, set_id)
) WITHOUT ROWID;
CREATE INDEX reference_rights_by_set ON reference_rights (set_id);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL,
    rate REAL NOT NULL, create_time REAL NOT NULL, tenant TEXT NOT NULL DEFAULT 'default',
    expires REAL NOT NULL DEFAULT 0, last_used REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
"""
_VARIABLES = 500  # in one statement; every SQLite allows 999
_MAX_PARSES = 5_000_000  # about 2 GB; the oldest go
_SPARE = 2 << 20  # bytes of disk that writing parses leaves, so that what is in the write-ahead log can be folded in
_SETS = (
    "SELECT id, display_name, entry_count, caption_count, create_time, reference_sets.tenant, rights "
    "FROM reference_rights JOIN reference_sets ON id = set_id WHERE reference_rights.tenant = ?"
)
_TOKENS = "SELECT id, name, hash, scopes, rate, create_time, tenant, expires, last_used FROM tokens"


class SqliteStore:
    """A store in one file. Not for use by several threads at a time."""

    def __init__(self, path: str, *, max_parses: int = _MAX_PARSES, private: bool = False) -> None:
        self._path = path
        self._max_parses = max_parses
        with self._errors():
            if path != ":memory:":
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                if private:
                    store.make_private(path)
            self._connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            if self._schema() == _SCHEMA_VERSION:
                return
        with self._transaction(durable=True) as connection:  # several processes may make the tables at once
            version = self._schema()
            if version not in {0, _SCHEMA_VERSION}:
                age = "a newer" if version > _SCHEMA_VERSION else "an older"
                raise store.StoreError(f"{self._path}: written by {age} version of spicegraph (schema {version})")
            for statement in _SCHEMA.split(";") if version == 0 else ():
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _schema(self) -> int:
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        return version

    def get_parses(self, signature: str, texts: Sequence[str]) -> dict[str, bytes]:
        by_key = {store.parse_key(signature, text): text for text in texts}
        rows = self._select_in("SELECT key, value FROM parses WHERE key IN", (), list(by_key))
        return {by_key[key]: value for key, value in rows}

    def put_parses(self, signature: str, parses: Mapping[str, bytes]) -> None:
        # A power cut may lose the last ones. What would fill the disk is refused: it is written twice (log, file), each
        # with an index.
        rows = [(store.parse_key(signature, text), value) for text, value in parses.items()]
        log = Path(f"{self._path}-wal")
        with self._errors():
            in_log = log.stat().st_size if log.exists() else 0
            free = shutil.disk_usage(log.parent).free
        size = in_log + 4 * sum(len(key) + len(value) for key, value in rows) + _SPARE
        if free < size and self._path != ":memory:":
            raise store.StoreFullError(f"{self._path}: no room left on the disk")
        with self._transaction(durable=False) as connection:
            connection.executemany("INSERT OR IGNORE INTO parses (key, value) VALUES (?, ?)", rows)
            connection.execute(
                "DELETE FROM parses WHERE number <= (SELECT max(number) FROM parses) - ?", (self._max_parses,)
            )

    def count_parses(self) -> int:
        return int(self._rows("SELECT count(*) FROM parses")[0][0])

    def trim_parses(self, keep: int) -> int:
        # Other processes may go on reading and writing.
        with self._transaction(durable=False) as connection:
            old = "DELETE FROM parses WHERE number NOT IN (SELECT number FROM parses ORDER BY number DESC LIMIT ?)"
            gone = connection.execute(old, (keep,)).rowcount
        with self._errors():
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return gone

    def create_set(self, new: store.ReferenceSet, entries: Mapping[str, bytes]) -> store.ReferenceSet:
        with self._transaction(durable=True) as connection:
            row = (new.id, new.display_name, new.entry_count, new.caption_count, new.create_time, new.tenant)
            added = connection.execute("INSERT OR IGNORE INTO reference_sets VALUES (?, ?, ?, ?, ?, ?)", row).rowcount
            if added:
                connection.execute("INSERT INTO reference_rights VALUES (?, ?, ?)", (new.tenant, new.id, store.OWNER))
                rows = ((new.id, entry_id, captions) for entry_id, captions in entries.items())
                connection.executemany("INSERT INTO reference_entries VALUES (?, ?, ?)", rows)
        return self.get_set(new.tenant, new.id) or new

    def get_set(self, tenant: str, set_id: str) -> store.ReferenceSet | None:
        return next(map(_set, self._rows(f"{_SETS} AND set_id = ?", tenant, set_id)), None)

    def list_sets(self, tenant: str, after: str, count: int) -> list[store.ReferenceSet]:
        may_read = f"rights = '{store.OWNER}' OR rights LIKE '%{store.READ}%'"
        query = f"{_SETS} AND set_id > ? AND ({may_read}) ORDER BY set_id LIMIT ?"
        return list(map(_set, self._rows(query, tenant, after, count)))

    def count_sets(self, tenant: str) -> int:
        return int(self._rows("SELECT count(*) FROM reference_sets WHERE tenant = ?", tenant)[0][0])

    def delete_set(self, tenant: str, set_id: str) -> bool:
        return self._write("DELETE FROM reference_sets WHERE id = ? AND tenant = ?", set_id, tenant) > 0

    def share_set(self, set_id: str, tenant: str, rights: tuple[str, ...]) -> None:
        with self._transaction(durable=True) as connection:
            connection.execute("DELETE FROM reference_rights WHERE tenant = ? AND set_id = ?", (tenant, set_id))
            if rights:
                # Not where the set was deleted meanwhile.
                query = "INSERT INTO reference_rights SELECT ?, id, ? FROM reference_sets WHERE id = ?"
                connection.execute(query, (tenant, " ".join(rights), set_id))

    def list_shares(self, set_id: str) -> dict[str, tuple[str, ...]]:
        query = "SELECT tenant, rights FROM reference_rights WHERE set_id = ? AND rights != ? ORDER BY tenant"
        return {tenant: tuple(rights.split()) for tenant, rights in self._rows(query, set_id, store.OWNER)}

    def get_entries(self, set_id: str, entry_ids: Sequence[str]) -> dict[str, bytes]:
        query = "SELECT entry_id, captions FROM reference_entries WHERE set_id = ? AND entry_id IN"
        return dict(self._select_in(query, (set_id,), list(entry_ids)))

    def add_token(self, record: store.TokenRecord) -> None:
        first = (record.id, record.name, record.hash, " ".join(record.scopes), record.rate, record.create_time)
        row = (*first, record.tenant, record.expires, record.last_used)
        self._write("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def find_token(self, token_hash: str) -> store.TokenRecord | None:
        return next(map(_token, self._rows(f"{_TOKENS} WHERE hash = ?", token_hash)), None)

    def list_tokens(self) -> list[store.TokenRecord]:
        return list(map(_token, self._rows(f"{_TOKENS} ORDER BY create_time, id")))

    def touch_token(self, token_hash: str, moment: float) -> None:
        self._write("UPDATE tokens SET last_used = ? WHERE hash = ?", moment, token_hash, durable=False)

    def expire_token(self, token_id: str, moment: float) -> None:
        self._write("UPDATE tokens SET expires = ? WHERE id = ?", moment, token_id)

    def revoke_token(self, token_id: str) -> bool:
        return self._write("DELETE FROM tokens WHERE id = ?", token_id) > 0

    def spend(self, token_id: str, captions: int, *, rate: float, burst: float) -> float | None:
        del token_id, captions, rate, burst
        return None  # one machine's servers each grant the rate

    def ping(self, *, writing: bool = False) -> None:
        # No other process holds the file for long.
        self._rows("SELECT id FROM tokens LIMIT 1")
        if writing:
            self._rows("BEGIN IMMEDIATE")
            self._rows("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

    def _rows(self, query: str, *parameters: str | bytes | float) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(query, parameters).fetchall()

    def _select_in(self, query: str, values: tuple[str, ...], keys: Sequence[str | bytes]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(keys), _VARIABLES):
            part = keys[start : start + _VARIABLES]
            yield from self._rows(f"{query} ({','.join('?' * len(part))})", *values, *part)

    def _write(self, statement: str, *parameters: str | float, durable: bool = True) -> int:
        with self._transaction(durable=durable) as connection:
            return connection.execute(statement, parameters).rowcount

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[sqlite3.Connection]:
        """All or nothing. A durable one survives a power cut, another the end of the process."""
        with self._errors():
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                raise store.StoreFullError(f"{self._path}: no room left on the disk") from error
            is_unwritable = code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
            why = store.why_not_opened(self._path) if is_unwritable else ""
            raise store.StoreError(f"{self._path}: {error}" + (f" ({why})" if why else "")) from error
        except OSError as error:
            raise store.StoreError(f"{self._path}: {error.strerror or error}") from error


def _set(row: tuple[str, str, int, int, float, str, str]) -> store.ReferenceSet:
    set_id, name, entries, captions, created, tenant, rights = row
    return store.ReferenceSet(set_id, name, entries, captions, created, tenant, tuple(rights.split()))


def _token(row: tuple[str, str, str, str, float, float, str, float, float]) -> store.TokenRecord:
    token_id, name, token_hash, scopes, rate, created, tenant, expires, used = row
    return store.TokenRecord(token_id, name, token_hash, tuple(scopes.split()), rate, created, tenant, expires, used)
