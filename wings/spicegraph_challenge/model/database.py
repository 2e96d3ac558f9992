"""The database: opened, brought to this version's schema, and asked in transactions.

SQLite takes its write lock when a transaction begins; PostgreSQL locks the rows that are asked for ``FOR UPDATE``,
which SQLite does not know and does not need.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event, func, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import DataError as NoRoomError
from sqlalchemy.orm import Session

from spicegraph_parser.errors import DataError, InputError
from spicegraph_service.kit import StoreError, make_private, why_not_opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from alembic.runtime.migration import MigrationInfo
    from sqlalchemy import Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

_THREADS = 8
_BUSY_MS = 30_000
_MIGRATION_LOCK = 0x73706963  # any number that nobody else locks in this database
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}

T = TypeVar("T")


class Database:
    """A database at an SQLite file's path, or ``postgresql://USER@HOST/NAME``, with this version's schema."""

    def __init__(self, place: str, *, migrate: bool = True) -> None:
        self._engine = _engine(place)
        # Readers see one state of the database; those of SQLite neither wait for its writer nor hold it up.
        one_state = {"sqlite_begin": "BEGIN"} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._readers = self._engine.execution_options(**one_state)
        if migrate:
            try:
                self.migrate()
            except BaseException:
                self.close()
                raise

    @property
    def is_sqlite(self) -> bool:
        """Whether all servers of this database are on this machine."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a session whose changes are there, durably, when this ends well; otherwise none of them is."""
        with _told(), Session(self._engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session that sees one state of the database and changes nothing."""
        with _told(), Session(self._readers, expire_on_commit=False) as session:
            yield session

    def now(self, session: Session) -> datetime:
        """Return the time that all servers of this database share: PostgreSQL's own clock."""
        if self.is_sqlite:
            return datetime.now(UTC)
        moment: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        """Return the database."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.close()

    def migrate(self, *, dry_run: bool = False) -> list[str]:
        """Bring the schema up to date in one transaction; return the steps, such as ``empty -> 0001``."""
        steps: list[str] = []

        def applied(*, step: MigrationInfo, **_: object) -> None:
            steps.append(f"{', '.join(step.source_revision_ids) or 'empty'} -> {step.destination_revision_ids[0]}")

        with (
            _told(),
            as_file(files("spicegraph_challenge.model") / "migrations") as folder,
            self._engine.connect() as connection,
            connection.begin() as transaction,
        ):
            if not self.is_sqlite:  # other servers wait; SQLite's transactions lock everything as they begin
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            config = Config()
            config.set_main_option("script_location", str(folder).replace("%", "%%"))
            config.attributes.update(connection=connection, applied=applied)
            revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()][::-1]
            now = MigrationContext.configure(connection).get_current_revision()
            if now is not None and now not in revisions:
                raise DataError(
                    f"the challenge database is another version's: it has the schema {now}, not {revisions[-1]}"
                )
            command.upgrade(config, "head")
            if dry_run:
                transaction.rollback()
        return steps


class Transactions:
    """Runs transactions outside of the event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="challenge")

    async def read(self, work: Callable[[Session, datetime], T]) -> T:
        """Run a transaction that only reads; it is given the time, too."""
        return await self.thread(lambda: self._run(self._database.reading(), work))

    async def write(self, work: Callable[[Session, datetime], T]) -> T:
        """Run a transaction; when this returns, it is durable."""
        return await self.thread(lambda: self._run(self._database.writing(), work))

    def _run(self, transaction: AbstractContextManager[Session], work: Callable[[Session, datetime], T]) -> T:
        with transaction as session:
            return work(session, self._database.now(session))

    async def thread(self, work: Callable[[], T]) -> T:
        """Run blocking database work in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Wait for running work, and close the database."""
        self._threads.shutdown()
        self._database.close()


def _engine(location: str) -> Engine:
    if "://" not in location:
        return _sqlite(location)
    try:
        url = make_url(location)
        if url.drivername == "sqlite":
            return _sqlite(url.database or "")
        if url.drivername not in {*_DRIVERS, *_DRIVERS.values()}:
            raise InputError(f"a challenge database is an SQLite file or a postgresql:// URL, got {url.drivername!a}")
        url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
        return create_engine(url, pool_pre_ping=True, pool_size=8, max_overflow=8, connect_args={"connect_timeout": 10})
    except (ArgumentError, ValueError) as error:
        raise InputError(f"the URL of the challenge database is wrong: {error}") from error
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise DataError("PostgreSQL needs the extra: pip install 'spicegraph[postgres]'") from error


def _sqlite(path: str) -> Engine:
    if path in {"", ":memory:", "memory"}:
        raise InputError("the challenge database is a file: what is acknowledged must outlive the server")
    try:
        Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
        make_private(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
    if why := why_not_opened(path):
        raise StoreError(f"{path}: unable to open database file ({why})")
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": _BUSY_MS / 1000})

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.isolation_level = None  # BEGIN is ours
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN IMMEDIATE"))

    return engine


@contextmanager
def _told() -> Iterator[None]:
    """Turn the database's errors into ours, which name no statement and no value."""
    try:
        yield
    except NoRoomError as error:  # PostgreSQL keeps no NUL
        raise InputError("a text of the request holds a character that no text here may have") from error
    except OperationalError as error:
        raise StoreError(f"the challenge database: {_short(error)}") from error
    except SQLAlchemyError as error:
        origin = error.orig if isinstance(error, DBAPIError) else None
        if getattr(origin, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise StoreError(f"the challenge database is damaged: {_short(error)}; restore a backup") from error
        raise StoreError(f"the challenge database refuses a {type(error).__name__}: {_short(error)}") from error


def _short(error: SQLAlchemyError) -> str:
    origin = error.orig if isinstance(error, DBAPIError) else error
    return str(origin).partition("\n")[0]
