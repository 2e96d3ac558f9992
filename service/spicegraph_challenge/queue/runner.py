"""Takes jobs and does them: validates in child processes, scores in the workers; and the state it shares with calls."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spicegraph_challenge.model.database import Database, Transactions
from spicegraph_challenge.model.schema import Challenge, JobKind, SplitReferences, Submission
from spicegraph_challenge.queue import submissions
from spicegraph_challenge.queue.scoring import Part, Plan, Progress
from spicegraph_challenge.queue.submissions import Failure, Lease, LeaseLostError
from spicegraph_challenge.sandbox.files import FileStore
from spicegraph_challenge.sandbox.processes import Allowance, OverAllowanceError, Sandbox
from spicegraph_challenge.sandbox.tasks import Validate, Validated
from spicegraph_parser.errors import InputError, counted
from spicegraph_service.kit import StoreError

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_challenge.model.leaderboard import ScorerVersion
    from spicegraph_challenge.queue.scoring import Scoring
    from spicegraph_service.kit import RequestData

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
        https_proxy: whether browsers reach the pages by a proxy that ends TLS.
    """

    database: str
    files: Path | None = None
    lease_s: float = 30.0
    submission_bytes: int = 64 << 20
    caption_characters: int = 2_000
    reference_bytes: int = 1 << 30
    pipeline: str = ""
    https_proxy: bool = False

    @property
    def folder(self) -> Path:
        """Where uploaded files are."""
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


VALIDATION = Allowance(memory_bytes=1 << 30, seconds=60)
"""What checking a submitted file may take."""

_LOOK_EVERY_S = 1.0  # for jobs that other servers have left
_PAUSE_S = 1.0
_TRIES = 3
_BEATS = 3  # in the time of a lease
_LANES = ((JobKind.VALIDATE,), (JobKind.SCORE, JobKind.RESCORE), (JobKind.PARSE,))
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _HeldJob:
    """A job that is being done; ``ended`` says that the database has its end."""

    lease: Lease
    progress: Progress = field(default_factory=Progress)
    ended: bool = False


Work: TypeAlias = Callable[[_HeldJob], Coroutine[Any, Any, None]]


class Runner:
    """Does one job of each lane at a time."""

    def __init__(
        self,
        transactions: Transactions,
        files: FileStore,
        sandbox: Sandbox,
        scoring: Scoring,
        *,
        scorer: ScorerVersion,
        owner: str,
        lease_s: float,
        caption_characters: int,
    ) -> None:
        self._transactions = transactions
        self._files = files
        self._sandbox = sandbox
        self._scoring = scoring
        self._scorer = scorer
        self._owner = owner
        self._lease_s = lease_s
        self._caption_characters = caption_characters
        self._nudges = [asyncio.Event() for _ in _LANES]
        self._work: Mapping[JobKind, Work] = {
            JobKind.VALIDATE: self._validate,
            JobKind.SCORE: self._score,
            JobKind.RESCORE: self._score,
            JobKind.PARSE: self._parse,
        }

    def nudge(self) -> None:
        """Look for work now."""
        for event in self._nudges:
            event.set()

    async def run(self) -> None:
        """Work until this is cancelled."""
        async with asyncio.TaskGroup() as group:
            for kinds, nudged in zip(_LANES, self._nudges, strict=True):
                group.create_task(self._lane(kinds, nudged))

    async def _lane(self, kinds: tuple[JobKind, ...], nudged: asyncio.Event) -> None:
        told = ""
        while True:
            nudged.clear()
            try:
                lease = await self._transactions.write(
                    lambda session, now: submissions.claim(session, kinds, self._owner, now, self._lease_s)
                )
                if told:
                    _log.info("jobs are taken again")
                    told = ""
                if lease is not None:
                    await self._do(_HeldJob(lease))
                    continue
            except StoreError as error:
                if told != str(error):  # not every second for as long as a disk is full
                    told = str(error)
                    _log.warning("no jobs can be taken now: %s", told)
            except Exception:  # noqa: BLE001 (a lane that ended would leave its jobs stuck)
                _log.exception("no job can be taken now")
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await nudged.wait()

    async def _do(self, held: _HeldJob) -> None:
        """Do a job while its lease is extended; when that is lost, or the job is cancelled, stop."""
        work = asyncio.create_task(self._guarded(held))
        beat = asyncio.create_task(self._beat(held))
        try:
            await asyncio.wait((work, beat), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, beat):
                task.cancel()
            for result in await asyncio.gather(work, beat, return_exceptions=True):
                if isinstance(result, LeaseLostError):
                    if not held.ended:  # otherwise the beat has only seen that the work is done
                        _log.info("%s is held by another server or cancelled", result)
                elif isinstance(result, Exception):
                    _log.error("a job ended unexpectedly", exc_info=result)

    async def _beat(self, held: _HeldJob) -> None:
        lease, progress = held.lease, held.progress

        def extend(session: Session, now: datetime) -> None:
            submissions.extend(session, lease, self._owner, now, lease_s=self._lease_s, progress=progress.share)

        pause, failed = min(_PAUSE_S, self._lease_s / _BEATS), False
        while True:
            await asyncio.sleep(pause)
            try:
                await self._transactions.write(extend)
                failed = False
            except StoreError as error:
                if not failed:
                    _log.warning("a lease could not be extended: %s", error)
                failed = True

    async def _guarded(self, held: _HeldJob) -> None:
        """Do a job; whatever goes wrong is recorded in it, and ends it."""
        lease, waits = held.lease, False
        try:
            while True:
                try:
                    return await self._work[lease.kind](held)
                except StoreError as error:
                    # Not the job's fault, however often: it stays with this server, whose beat holds the lease.
                    if not waits:
                        _log.warning("job %d must wait: %s", lease.job_id, error)
                    waits = True
                    await asyncio.sleep(_PAUSE_S)
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 (every job ends)
            if isinstance(error, OverAllowanceError) and lease.kind is JobKind.VALIDATE:
                _log.warning("submission %s: %s", lease.submission_id, error)
                message = "the file needs more memory or time to read than results for this challenge do"
                await self._fail(held, Failure("VALIDATION_LIMIT", message))
            else:
                await self._trouble(held, error)

    async def _trouble(self, held: _HeldJob, error: Exception) -> None:
        """Have a job done again that went wrong through no fault of the file; at the third time, give it up."""
        lease, incident = held.lease, secrets.token_hex(6)
        _log.error("incident %s: job %d failed", incident, lease.job_id, exc_info=error)
        if lease.fence < _TRIES:
            await asyncio.sleep(_PAUSE_S)
            await self._end(
                held, lambda session, _now: submissions.give_up(session, lease, self._owner), "is tried again"
            )
            return
        message = f"internal error; the server's log has it as {incident}"
        await self._fail(held, Failure("INTERNAL", message))

    async def _end(self, held: _HeldJob, end: Callable[[Session, datetime], None], outcome: str) -> None:
        """End a job and log its outcome.

        That is finished even when this server stops at the same moment, or the beat sees that the job is gone.
        """

        async def finish() -> None:
            await self._transactions.write(end)
            held.ended = True
            self.nudge()
            lease = held.lease
            subject = f"submission {lease.submission_id}" if lease.submission_id else f"job {lease.job_id}"
            _log.info("%s %s", subject, outcome)

        finishing = asyncio.create_task(finish())
        try:
            await asyncio.shield(finishing)
        except asyncio.CancelledError:
            await finishing
            raise

    async def _fail(self, held: _HeldJob, failure: Failure) -> None:
        await self._end(
            held,
            lambda session, now: submissions.end_failed(session, held.lease, self._owner, now, failure),
            f"failed: {failure.reason}",
        )

    async def _validate(self, held: _HeldJob) -> None:
        lease = held.lease
        sent, challenge, splits = await self._transactions.read(lambda session, _now: _to_validate(session, lease))
        with self._files.workspace() as folder:
            task = Validate(
                str(self._files.path(sent.sha256)),
                sent.file_name,
                sent.split,
                {name: tuple(str(self._files.path(key)) for key in keys) for name, (_, keys) in splits.items()},
                str(folder),
                self._caption_characters,
                challenge.settings.SerializeToString(),
            )
            validated = await self._sandbox.run(task, Validated, VALIDATION)
            if validated.faults:
                key = await self._adopt(validated.faults)
                message = f"the file has {counted(validated.fault_count, 'fault')}"
                await self._fail(held, Failure("INVALID_FILE", message, key, validated.fault_count))
                return
            files = {
                splits[name][0]: (await self._adopt(path), validated.empty[name])
                for name, path in validated.results.items()
            }
        await self._end(
            held, lambda session, _now: submissions.end_validated(session, lease, self._owner, files), "is sound"
        )

    async def _adopt(self, path: str) -> str:
        return await self._transactions.thread(lambda: self._files.adopt(Path(path)))

    async def _score(self, held: _HeldJob) -> None:
        lease = held.lease
        plan = await self._transactions.read(lambda session, _now: _to_score(session, lease))
        scores = await self._scoring.score(plan, held.progress)
        signatures = self._scorer.signatures_of(plan.metrics, plan.given)

        def end(session: Session, now: datetime) -> None:
            submissions.end_scored(
                session,
                lease,
                self._owner,
                now,
                version=self._scorer.version,
                signatures=signatures,
                scores=scores,
            )

        await self._end(held, end, "is scored")

    async def _parse(self, held: _HeldJob) -> None:
        lease = held.lease

        def find(session: Session, _now: datetime) -> tuple[Path, int, list[str], RequestData]:
            reference_set = session.get_one(SplitReferences, lease.reference_set_id)
            challenge = reference_set.split.challenge
            return (
                self._files.path(reference_set.file or ""),
                reference_set.caption_count,
                list(challenge.settings.metrics),
                challenge.given,
            )

        path, captions, metrics, given = await self._transactions.read(find)
        await self._scoring.parse(path, captions, metrics, given, held.progress)
        await self._end(
            held,
            lambda session, _now: submissions.end_parsed(session, lease, self._owner),
            "of parsing references is done",
        )


def _to_validate(
    session: Session, lease: Lease
) -> tuple[Submission, Challenge, dict[str, tuple[int, tuple[str, ...]]]]:
    """Return the submission, its challenge, and of each split its id and reference files."""
    submission = session.get_one(Submission, lease.submission_id)
    splits = {
        split.name: (
            split.id,
            tuple(reference_set.file for reference_set in split.reference_sets if reference_set.file),
        )
        for split in submission.challenge.splits
    }
    return submission, submission.challenge, splits


def _to_score(session: Session, lease: Lease) -> Plan:
    submission = session.get_one(Submission, lease.submission_id)
    parts = tuple(
        Part(reference_set.id, reference_set.file or "", results.file, reference_set.image_count)
        for results in submission.files
        for reference_set in results.split.reference_sets
    )
    challenge = submission.challenge
    return Plan(tuple(challenge.settings.metrics), parts, challenge.asked, challenge.given)
