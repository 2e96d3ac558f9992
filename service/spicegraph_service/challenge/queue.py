"""Jobs: taken by one server at a time, under a lease that it extends while it works.

A server that dies stops extending, and another takes the job. What the first one may still write, should it only
have been slow, carries an older fence and is refused: each job ends once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from spicegraph_service.challenge.schema import Job, JobKind, Run, RunScore, State, Submission, SubmissionFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_service.challenge.tasks import ScoreRow

_MOST_TAKEN = 50
"""How often a job is taken before it counts as one that ends servers."""


class LeaseLostError(Exception):
    """The job is no longer ours: it was cancelled, or our lease ran out and another server has it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A job that this server holds."""

    job_id: int
    kind: JobKind
    fence: int
    submission_id: str | None
    reference_set_id: int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a submission fails; ``faults`` is the key of the file of faults."""

    reason: str
    message: str
    faults: str | None = None
    fault_count: int = 0


def claim(session: Session, kinds: Sequence[JobKind], owner: str, now: datetime, lease_s: float) -> Lease | None:
    """Take the next job of these kinds that nobody holds: the first kind first, then the oldest job."""
    free = or_(Job.lease_end.is_(None), Job.lease_end < now)
    for kind in kinds:
        query = select(Job).where(Job.kind == kind, free).order_by(Job.id).limit(1).with_for_update(skip_locked=True)
        job = session.scalars(query).one_or_none()
        if job is None:
            continue
        job.owner, job.lease_end = owner, now + timedelta(seconds=lease_s)
        job.fence += 1
        job.progress = 0.0
        lease = Lease(job.id, job.kind, job.fence, job.submission_id, job.reference_set_id)
        if job.fence > _MOST_TAKEN:
            _fail(session, job, Failure("INTERNAL", "the server failed on it again and again"), now)
            return None
        if job.kind is JobKind.SCORE and job.submission_id is not None:
            submission = session.get_one(Submission, job.submission_id, with_for_update=True)
            submission.state = State.RUNNING
            submission.started = submission.started or now
        return lease
    return None


def extend(session: Session, lease: Lease, owner: str, now: datetime, *, lease_s: float, progress: float) -> None:
    """Hold a job for longer, and tell how much of it is done.

    Raises:
        LeaseLostError: it is no longer ours.
    """
    job = _held(session, lease, owner)
    job.lease_end = now + timedelta(seconds=lease_s)
    job.progress = progress


def end_validated(session: Session, lease: Lease, owner: str, files: Mapping[int, str]) -> None:
    """Keep the sound results of a submission (by split), and put it into the queue.

    Raises:
        LeaseLostError: it is no longer ours.
    """
    job = _held(session, lease, owner)
    submission = session.get_one(Submission, job.submission_id, with_for_update=True)
    for split_id, key in files.items():
        session.add(SubmissionFile(submission_id=submission.id, split_id=split_id, file=key))
    submission.state = State.QUEUED
    job.kind, job.owner, job.lease_end, job.progress = JobKind.SCORE, None, None, 0.0


def end_scored(
    session: Session,
    lease: Lease,
    owner: str,
    now: datetime,
    *,
    version: str,
    signatures: Mapping[str, Mapping[str, str]],
    scores: Mapping[int, Sequence[ScoreRow]],
) -> None:
    """Keep the scores of a submission by reference set; the job is done.

    Raises:
        LeaseLostError: it is no longer ours.
    """
    job = _held(session, lease, owner)
    submission = session.get_one(Submission, job.submission_id, with_for_update=True)
    run = Run(
        submission_id=submission.id,
        job_id=job.id,
        version=version,
        signatures={name: dict(fields) for name, fields in signatures.items()},
        created=now,
    )
    session.add(run)
    session.flush()
    for set_id, rows in scores.items():
        for position, row in enumerate(rows):
            session.add(RunScore(run_id=run.id, reference_set_id=set_id, position=position, **row._asdict()))
    if job.kind is JobKind.SCORE:
        submission.state, submission.ended = State.SUCCEEDED, now
    session.delete(job)


def end_parsed(session: Session, lease: Lease, owner: str) -> None:
    """Take note that the references of a set are parsed.

    Raises:
        LeaseLostError: the job is no longer ours.
    """
    session.delete(_held(session, lease, owner))


def end_failed(session: Session, lease: Lease, owner: str, now: datetime, failure: Failure) -> None:
    """End a job without a result. A submission that is only scored again keeps its old scores.

    Raises:
        LeaseLostError: it is no longer ours.
    """
    _fail(session, _held(session, lease, owner), failure, now)


def give_up(session: Session, lease: Lease, owner: str) -> None:
    """Let another server take a job that this one cannot finish now.

    Raises:
        LeaseLostError: it is no longer ours.
    """
    _free(session, _held(session, lease, owner))


def release_all(session: Session, owner: str) -> None:
    """Let others take everything that this server holds: it stops."""
    for job in session.scalars(select(Job).where(Job.owner == owner).order_by(Job.id).with_for_update()):
        _free(session, job)


def _free(session: Session, job: Job) -> None:
    job.owner, job.lease_end, job.progress = None, None, 0.0
    if job.kind is JobKind.SCORE:
        session.get_one(Submission, job.submission_id, with_for_update=True).state = State.QUEUED


def _fail(session: Session, job: Job, failure: Failure, now: datetime) -> None:
    if job.kind in {JobKind.VALIDATE, JobKind.SCORE} and job.submission_id is not None:
        submission = session.get_one(Submission, job.submission_id, with_for_update=True)
        submission.state, submission.ended = State.FAILED, now
        submission.failure, submission.failure_message = failure.reason, failure.message
        submission.faults, submission.fault_count = failure.faults, failure.fault_count
    session.delete(job)


def _held(session: Session, lease: Lease, owner: str) -> Job:
    """Return a job that this server still holds, locked."""
    query = select(Job).where(Job.id == lease.job_id, Job.owner == owner, Job.fence == lease.fence)
    job = session.scalars(query.with_for_update()).one_or_none()
    if job is None:
        raise LeaseLostError(f"job {lease.job_id}")
    return job
