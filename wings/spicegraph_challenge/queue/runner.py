"""Takes jobs and does them: validates in child processes, scores in the workers; and the state it shares with calls."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spicegraph_challenge.model.database import Database, Transactions
from spicegraph_challenge.model.leaderboard import signatures_of
from spicegraph_challenge.model.schema import JobKind, SplitReferences, Submission
from spicegraph_challenge.queue import submissions
from spicegraph_challenge.queue.scoring import Part, Plan, Scoring
from spicegraph_challenge.queue.submissions import Lease, LeaseLostError
from spicegraph_challenge.sandbox.files import FileStore
from spicegraph_challenge.sandbox.processes import OverAllowanceError, Sandbox
from spicegraph_challenge.sandbox.tasks import Validate, Validated
from spicegraph_parser.errors import InputError, counted
from spicegraph_service.kit import StoreError

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_challenge.registration import ChallengeOptions
    from spicegraph_service.kit import Host, RequestData, WorkerInfo


class ChallengeState:
    """State shared by calls and runner. Servers with the same database share queue and files."""

    def __init__(self, options: ChallengeOptions, host: Host) -> None:
        database = options.challenges or ""
        if options.challenge_files is None and "://" in database:
            raise InputError("with a database by URL, say where uploaded files are kept: --challenge-files FOLDER")
        self.options = options
        self.data = host.data
        self.pipeline = host.pipeline
        self.caption_characters = host.limits.max_caption_characters
        self.folder = options.challenge_files or Path(f"{database}.files")
        self.files = FileStore(self.folder)
        self.transactions = Transactions(Database(database))
        self.sandbox = Sandbox(at_once=2)
        self.reports = Sandbox(at_once=1)
        self.workers: WorkerInfo | None = None  # until they are ready
        self.runner: Runner | None = None
        self.leaving = False  # the server is about to stop
        self.moved = asyncio.Event()  # set for a moment whenever a submission may have got on

    def nudge(self) -> None:
        """Say that there is work, or that some is done."""
        if self.runner is not None:
            self.runner.nudge()
        self.moved.set()  # those who watch submissions look again
        self.moved.clear()


_LOOK_EVERY_S = 1.0  # for jobs that other servers have left
_PAUSE_S = 1.0
_TRIES = 3
_BEATS = 3  # in the time of a lease
_LANES = ((JobKind.VALIDATE,), (JobKind.SCORE, JobKind.RESCORE), (JobKind.PARSE,))
_log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[Lease], Coroutine[Any, Any, None]]


class Runner:
    """Does one job of each lane at a time, under the name of an owner."""

    def __init__(self, state: ChallengeState, scoring: Scoring, workers: WorkerInfo, owner: str) -> None:
        self._transactions = state.transactions
        self._state = state
        self._scoring = scoring
        self._workers = workers
        self._owner = owner
        self._lease_s = state.options.challenge_lease
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
                    await self._do(lease)
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

    async def _do(self, lease: Lease) -> None:
        """Do a job while its lease is extended; when that is lost, or the job is cancelled, stop."""
        work = asyncio.create_task(self._guarded(lease))
        beat = asyncio.create_task(self._beat(lease))
        try:
            await asyncio.wait((work, beat), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, beat):
                task.cancel()
            for result in await asyncio.gather(work, beat, return_exceptions=True):
                if isinstance(result, LeaseLostError):
                    if not lease.ended:  # otherwise the beat has only seen that the work is done
                        _log.info("%s is held by another server or cancelled", result)
                elif isinstance(result, Exception):
                    _log.error("a job ended unexpectedly", exc_info=result)

    async def _beat(self, lease: Lease) -> None:
        def extend(session: Session, now: datetime) -> None:
            submissions.extend(session, lease, now, self._lease_s)

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

    async def _guarded(self, lease: Lease) -> None:
        """Do a job; whatever goes wrong is recorded in it, and ends it."""

        def sent_file(session: Session, _now: datetime) -> str:
            return session.get_one(Submission, lease.submission_id).sha256

        waits = False
        try:
            while True:
                try:
                    return await self._work[lease.kind](lease)
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
                await self._fail(lease, "VALIDATION_LIMIT", message)
                return await self._discard(await self._transactions.read(sent_file))
            # No fault of the file: the job is done again, and given up at the third time.
            incident = secrets.token_hex(6)
            _log.error("incident %s: job %d failed", incident, lease.job_id, exc_info=error)
            if lease.fence < _TRIES:
                await asyncio.sleep(_PAUSE_S)
                return await self._end(
                    lease, lambda session, _now: submissions.give_up(session, lease), "is tried again"
                )
            return await self._fail(lease, "INTERNAL", f"internal error; the server's log has it as {incident}")

    async def _end(self, lease: Lease, end: Callable[[Session, datetime], None], outcome: str) -> None:
        """End a job and log its outcome."""

        async def finish() -> None:  # even when this server stops meanwhile, or the beat sees that the job is gone
            await self._transactions.write(end)
            lease.ended = True
            self._state.nudge()
            subject = f"submission {lease.submission_id}" if lease.submission_id else f"job {lease.job_id}"
            _log.info("%s %s", subject, outcome)

        finishing = asyncio.create_task(finish())
        try:
            await asyncio.shield(finishing)
        except asyncio.CancelledError:
            await finishing
            raise

    async def _fail(self, lease: Lease, reason: str, message: str, faults: str | None = None, count: int = 0) -> None:
        def end(session: Session, now: datetime) -> None:
            submissions.end_failed(session, lease, now, reason, message, faults=faults, fault_count=count)

        await self._end(lease, end, f"failed: {reason}")

    async def _validate(self, lease: Lease) -> None:
        def find(session: Session, _now: datetime) -> tuple[Submission, bytes, dict[str, tuple[int, tuple[str, ...]]]]:
            submission = session.get_one(Submission, lease.submission_id)
            splits = {
                split.name: (split.id, tuple(each.file for each in split.reference_sets if each.file))
                for split in submission.challenge.splits
            }
            return submission, submission.challenge.settings.SerializeToString(), splits

        sent, settings, splits = await self._transactions.read(find)
        with self._state.files.workspace() as folder:
            task = Validate(
                str(self._state.files.path(sent.sha256)),
                sent.file_name,
                sent.split,
                {name: tuple(str(self._state.files.path(key)) for key in keys) for name, (_, keys) in splits.items()},
                str(folder),
                self._state.caption_characters,
                settings,
            )
            validated = await self._state.sandbox.run(task, Validated)
            if validated.faults:
                key = await self._adopt(validated.faults)
                message = f"the file has {counted(validated.fault_count, 'fault')}"
                await self._fail(lease, "INVALID_FILE", message, key, validated.fault_count)
                await self._discard(sent.sha256)
                return
            files = {
                splits[name][0]: (await self._adopt(path), validated.empty[name])
                for name, path in validated.results.items()
            }
        await self._end(lease, lambda session, _now: submissions.end_validated(session, lease, files), "is sound")

    async def _discard(self, key: str) -> None:
        """Delete a refused file, unless it is somebody's who may have it; its faults are kept apart."""

        def discard(session: Session, _now: datetime) -> None:
            if submissions.is_unused(session, key):
                self._state.files.discard(key)

        try:
            await self._transactions.write(discard)
        except StoreError as error:
            _log.warning("a refused file stays for a day: %s", error)

    async def _adopt(self, path: str) -> str:
        return await self._transactions.thread(lambda: self._state.files.adopt(Path(path)))

    async def _score(self, lease: Lease) -> None:
        def find(session: Session, _now: datetime) -> Plan:
            submission = session.get_one(Submission, lease.submission_id)
            parts = tuple(
                Part(reference_set.id, reference_set.file or "", results.file, reference_set.image_count)
                for results in submission.files
                for reference_set in results.split.reference_sets
            )
            challenge = submission.challenge
            return Plan(tuple(challenge.settings.metrics), parts, challenge.given)

        plan = await self._transactions.read(find)
        scores = await self._scoring.score(plan, lease)
        signatures = signatures_of(self._workers, plan.metrics, plan.given)

        def end(session: Session, now: datetime) -> None:
            submissions.end_scored(
                session, lease, now, version=self._workers.version, signatures=signatures, scores=scores
            )

        await self._end(lease, end, "is scored")

    async def _parse(self, lease: Lease) -> None:
        def find(session: Session, _now: datetime) -> tuple[Path, int, list[str], RequestData]:
            reference_set = session.get_one(SplitReferences, lease.reference_set_id)
            challenge = reference_set.split.challenge
            return (
                self._state.files.path(reference_set.file or ""),
                reference_set.caption_count,
                list(challenge.settings.metrics),
                challenge.given,
            )

        path, captions, metrics, given = await self._transactions.read(find)
        await self._scoring.parse(path, captions, metrics, given, lease)
        await self._end(lease, lambda session, _now: submissions.end_parsed(session, lease), "of parsing is done")
