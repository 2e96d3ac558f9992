"""The evaluation server inside of a server: its state, its work, and who may call it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select

from spicegraph_parser.errors import InputError
from spicegraph_service.challenge import queue
from spicegraph_service.challenge.accounts import find_account
from spicegraph_service.challenge.database import Database
from spicegraph_service.challenge.files import FileStore
from spicegraph_service.challenge.leaderboard import ScorerVersion
from spicegraph_service.challenge.runner import Runner
from spicegraph_service.challenge.sandbox import Sandbox
from spicegraph_service.challenge.schema import UNCHARGED, ReferenceSet, Submission, SubmissionFile
from spicegraph_service.challenge.scoring import Scoring
from spicegraph_service.server.auth import Caller
from spicegraph_service.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_service.server.scheduler import Scheduler

_THREADS = 8
_CHILDREN = 2
_SWEEP_EVERY_S = 24 * 3600.0
T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChallengeConfig:
    """Options of the evaluation server.

    Attributes:
        database: an SQLite file, or ``postgresql://...``; servers that share it share the work.
        files: the folder of uploaded files, which they share as well; ``None``: beside the SQLite file.
        lease_s: how long a job stays with a server that says nothing, in seconds.
        submission_bytes: the largest file of a submission.
        reference_bytes: the largest annotations file.
        pipeline: the pipeline of error reports.
    """

    database: str
    files: Path | None = None
    lease_s: float = 30.0
    submission_bytes: int = 64 << 20
    reference_bytes: int = 1 << 30
    pipeline: str = ""

    @property
    def folder(self) -> Path:
        """Where uploaded files are.

        Raises:
            InputError: nobody said, and it cannot be known.
        """
        if self.files is not None:
            return self.files
        if "://" in self.database:
            raise InputError("with a database by URL, say where uploaded files are kept: --challenge-files FOLDER")
        return Path(f"{self.database}.files")


class Transactions:
    """Runs transactions outside of the event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="challenge")

    async def read(self, work: Callable[[Session, datetime], T]) -> T:
        """Run a transaction that only reads; it is given the time, too.

        Raises:
            StoreError: the database fails.
        """

        def run() -> T:
            with self._database.reading() as session:
                return work(session, self._database.now(session))

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    async def write(self, work: Callable[[Session, datetime], T]) -> T:
        """Run a transaction; when this returns, it is durable.

        Raises:
            StoreError: the database fails.
        """

        def run() -> T:
            with self._database.writing() as session:
                return work(session, self._database.now(session))

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    async def thread(self, work: Callable[[], T]) -> T:
        """Run what waits for a disk."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Let what runs end, and close the database."""
        self._threads.shutdown()
        self._database.close()


class ChallengeHost:
    """Keeps the parts together.

    Raises:
        InputError: an option is wrong.
        StoreError: the database or the folder cannot be opened.
    """

    def __init__(self, config: ChallengeConfig, vectors: bytes = b"") -> None:
        self.config = config
        self.vectors = vectors  # for error reports; scores come from workers, which have them, too
        self.files = FileStore(config.folder)
        self.transactions = Transactions(Database(config.database))
        self.children = Sandbox(_CHILDREN)
        self.reports = Sandbox(1)
        self.scorer: ScorerVersion | None = None
        self.leaving = asyncio.Event()
        self._owner = secrets.token_hex(8)
        self._runner: Runner | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def identify(self, authorization: str | None) -> Caller:
        """Return who calls.

        Raises:
            CallError: UNAUTHENTICATED.
            StoreError: the database cannot be read.
        """

        def find(session: Session, _now: datetime) -> Caller:
            account = find_account(session, authorization)
            return Caller(account.name, frozenset(), None, account)

        return await self.transactions.read(find)

    def start(self, scheduler: Scheduler, *, workers: int) -> None:
        """Begin to work: the scheduler's workers are ready."""
        hello = scheduler.hello
        self.scorer = ScorerVersion(
            hello.version,
            {metric.name: metric.signature for metric in hello.metrics},
            {metric.name: metric.scores for metric in hello.metrics},
        )
        parsing = frozenset(metric.name for metric in hello.metrics if metric.parses)
        scoring = Scoring(scheduler, self.children, self.files, parsing=parsing, at_once=max(1, workers - 1))
        self._runner = Runner(
            self.transactions,
            self.files,
            self.children,
            scoring,
            scorer=self.scorer,
            owner=self._owner,
            lease_s=self.config.lease_s,
        )
        self._tasks = [asyncio.create_task(self._runner.run()), asyncio.create_task(self._sweep())]

    def nudge(self) -> None:
        """Say that there is work."""
        if self._runner is not None:
            self._runner.nudge()

    def leave(self) -> None:
        """Let those who watch submissions go to another server: this one stops soon."""
        self.leaving.set()

    async def stop(self) -> None:
        """Stop working; what is under way goes to other servers, or waits."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

        def release(session: Session, _now: datetime) -> None:
            queue.release_all(session, self._owner)

        try:
            await self.transactions.write(release)
        except StoreError as error:
            _log.warning("jobs stay leased until their time is over: %s", error)

    def close(self) -> None:
        """Release everything."""
        self.transactions.close()

    async def _sweep(self) -> None:
        """Delete what nobody names, now and then."""
        while True:
            try:
                used = await self.transactions.read(_used_files)
                gone = await self.transactions.thread(lambda used=used: self.files.sweep(used))  # type: ignore[misc]
                if gone:
                    _log.info("%d abandoned files deleted", gone)
            except StoreError as error:
                _log.warning("abandoned files stay: %s", error)
            await asyncio.sleep(_SWEEP_EVERY_S)


def _used_files(session: Session, _now: datetime) -> set[str]:
    """Return the keys of the files that are needed; what was refused or cancelled is not, only its faults are."""
    columns = (Submission.faults, SubmissionFile.file, ReferenceSet.file, ReferenceSet.source)
    queries = [
        select(Submission.sha256).where(Submission.state.not_in(UNCHARGED)),
        *(select(column).where(column.is_not(None)) for column in columns),
    ]
    return {key for query in queries for key in session.scalars(query) if key is not None}
