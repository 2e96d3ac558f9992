"""The state of the evaluation server: its options, its database and files, and where its tasks run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_service.challenge.database import Database, Transactions
from spicegraph_service.challenge.files import FileStore
from spicegraph_service.challenge.sandbox import Sandbox

if TYPE_CHECKING:
    from spicegraph_service.challenge.leaderboard import ScorerVersion
    from spicegraph_service.challenge.runner import Runner

_TASKS_AT_ONCE = 2
_REPORTS_AT_ONCE = 1


@dataclass(frozen=True, slots=True)
class ChallengeConfig:
    """Options of the evaluation server.

    Attributes:
        database: an SQLite file, or ``postgresql://...``; servers that share it share the work.
        files: the folder of uploaded files, which they share as well; ``None``: beside the SQLite file.
        lease_s: how long a job stays with a server that says nothing, in seconds.
        submission_bytes: the largest file of a submission.
        caption_characters: the longest caption of a submission.
        reference_bytes: the largest annotations file.
        pipeline: the pipeline of error reports.
    """

    database: str
    files: Path | None = None
    lease_s: float = 30.0
    submission_bytes: int = 64 << 20
    caption_characters: int = 2_000
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


class ChallengeState:
    """What the calls and the runner share.

    Attributes:
        data: the server's own for the metrics, for totals and error reports; workers have it, too.
        scorer: what computes the scores; ``None`` until the workers are ready.
        leaving: set when the server is about to stop.

    Raises:
        InputError: an option is wrong.
        StoreError: the database or the folder cannot be opened.
    """

    def __init__(self, config: ChallengeConfig, data: bytes = b"") -> None:
        self.config = config
        self.data = data
        self.files = FileStore(config.folder)
        self.transactions = Transactions(Database(config.database))
        self.sandbox = Sandbox(_TASKS_AT_ONCE)
        self.reports = Sandbox(_REPORTS_AT_ONCE)
        self.scorer: ScorerVersion | None = None
        self.runner: Runner | None = None
        self.leaving = asyncio.Event()

    def nudge(self) -> None:
        """Say that there is work."""
        if self.runner is not None:
            self.runner.nudge()
