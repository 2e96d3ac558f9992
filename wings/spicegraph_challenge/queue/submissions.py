"""Submissions from their arrival to their end: accepted, listed, queued, done as jobs, cancelled and chosen.

A job is held by one server at a time, under a lease that it extends while it works. When the lease has run out another
server takes the job, and whatever the first still writes carries an older fence and is refused: each job ends once.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc
from google.rpc.error_details_pb2 import QuotaFailure
from sqlalchemy import delete, func, or_, select, tuple_

from spicegraph_challenge.model.accounts import Account
from spicegraph_challenge.model.catalogue import find_challenge
from spicegraph_challenge.model.schema import (
    UNCHARGED,
    Challenge,
    Choice,
    Job,
    JobKind,
    MemberRole,
    RunScore,
    ScoringRun,
    SplitReferences,
    State,
    Submission,
    SubmissionFile,
    User,
)
from spicegraph_service.kit import CallError, not_found, refused, retry_info, wrong

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.rpc.error_details_pb2 import RetryInfo
    from sqlalchemy.orm import Session

    from spicegraph_api.challenge.v1 import challenge_pb2 as pb
    from spicegraph_challenge.model.schema import Split
    from spicegraph_challenge.sandbox.tasks import Finished

ID = re.compile(r"[0-9a-f]{16}")
_MOST_REFUSED = 50  # files of a user or team a day that are refused or cancelled: they count against no other limit
REFUSED_BYTES = 128 << 20  # of these; but two files of the largest size may be refused


@dataclass(frozen=True, slots=True)
class Usage:
    """Submissions of a user, or of their team, that count today (UTC) and in all, and the limits (0: none)."""

    today: int
    total: int
    daily_limit: int
    total_limit: int

    @property
    def left(self) -> int | None:
        """How many more may follow now; ``None``: any number."""
        pairs = ((self.daily_limit, self.today), (self.total_limit, self.total))
        return min((max(0, limit - used) for limit, used in pairs if limit), default=None)

    def check(self, subject: str, where: str, now: datetime) -> None:
        """Check that another one may follow."""
        if self.total_limit and self.total >= self.total_limit:
            raise _quota_used(subject, f"the limit of {self.total_limit} submissions{where} is used up")
        if self.daily_limit and self.today >= self.daily_limit:
            seconds = (_day(now) + timedelta(days=1) - now).total_seconds()
            message = f"the limit of {self.daily_limit} submissions a day (UTC){where} is used up"
            raise _quota_used(subject, message, retry_info(seconds))


def _quota_used(subject: str, message: str, *retry: RetryInfo) -> CallError:
    details = QuotaFailure(violations=[QuotaFailure.Violation(subject=subject, description=message)])
    return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "SUBMISSION_LIMIT", message, details, *retry)


def check_opened(part: Challenge | Split, now: datetime) -> None:
    """Check that a challenge, or a split of it, has opened."""
    if part.opens is not None and now < part.opens:
        raise refused("NOT_OPEN", f"the {_kind(part)} opens at {_shown(part.opens)}", part.name)


def _check_not_closed(part: Challenge | Split, now: datetime) -> None:
    if part.closes is not None and now >= part.closes:
        raise refused("CLOSED", f"the {_kind(part)} closed at {_shown(part.closes)}", part.name)


def _kind(part: Challenge | Split) -> str:
    return "challenge" if isinstance(part, Challenge) else f"split {part.name!r}"


def usage(session: Session, part: Challenge | Split, account: Account, now: datetime) -> Usage:
    """Count the submissions to a challenge, or with results for a split, that count against the caller's limits."""
    counted = select(func.count()).select_from(Submission).join(User).where(Submission.state.not_in(UNCHARGED))
    counted = counted.where(User.team == account.team if account.team else User.id == account.user_id)
    if isinstance(part, Challenge):
        counted = counted.where(Submission.challenge_id == part.id)
        limits = (part.settings.daily_limit, part.settings.total_limit)
    else:
        counted = counted.join(SubmissionFile).where(SubmissionFile.split_id == part.id)
        limits = (part.settings.phase_daily_limit, part.settings.phase_total_limit)
    today = session.scalar(counted.where(Submission.created >= _day(now)))
    return Usage(today or 0, session.scalar(counted) or 0, *limits)


def check_refused(session: Session, account: Account, now: datetime, *, size: int = 0, most: int = 0) -> None:
    """Check that files which were refused today, with one more of a size, leave room: files that wait may be, too."""
    alike = User.team == account.team if account.team else User.id == account.user_id
    passing = or_(Submission.state.in_(UNCHARGED), Submission.state == State.VALIDATING)
    faulty = or_(Submission.failure.is_(None), Submission.failure != "INTERNAL")  # not the server's own fault
    query = select(func.count(), func.coalesce(func.sum(Submission.file_bytes), 0)).join(User)
    count, used = session.execute(query.where(alike, passing, faulty, Submission.created >= _day(now))).one()
    if count < _MOST_REFUSED and used + max(1, size) <= max(REFUSED_BYTES, 2 * most):
        return
    message = f"{count} files with {used / (1 << 20):.0f} MiB were refused or cancelled today (UTC), as many as may be"
    wait = retry_info((_day(now) + timedelta(days=1) - now).total_seconds())
    raise _quota_used(f"{'team' if account.team else 'user'}:{account.entrant}", message, wait)


def is_unused(session: Session, key: str) -> bool:
    """Say whether nothing refers to a file, and keep others from referring to it until the transaction ends."""
    session.scalars(select(Challenge.id).order_by(Challenge.id).with_for_update()).all()
    return key not in used_files(session)


def _check_takes(session: Session, part: Challenge | Split, account: Account, now: datetime) -> None:
    """Check that a challenge, or a split of it, takes a submission; organisers may try theirs out at any time."""
    challenge = part if isinstance(part, Challenge) else part.challenge
    if not account.may(MemberRole.ORGANISER, challenge):
        check_opened(part, now)
        _check_not_closed(part, now)
    where = "" if part is challenge else f" for the {_kind(part)}"
    subject = f"challenge:{challenge.name} {'team' if account.team else 'user'}:{account.entrant}"
    usage(session, part, account, now).check(subject, where, now)


def accept(
    session: Session,
    account: Account,
    new: pb.SubmissionSettings,
    file: tuple[str, int],
    now: datetime,
    *,
    most_bytes: int = 0,
) -> tuple[Submission, bool]:
    """Store a submission, whose file has a key and a size, and its job; return it, and whether it was there before."""
    # The challenge is locked: no two submissions, of one account or of several, take the last place of a limit.
    challenge = find_challenge(session, new.challenge, lock=True)
    key, size = file
    known = _known(session, challenge, account, new, key)
    if known is not None:
        return known, True
    check_refused(session, account, now, size=size, most=most_bytes)
    _check_open(session, challenge, account, new.split, now)
    submission = Submission(
        id=secrets.token_hex(8),
        challenge_id=challenge.id,
        user_id=account.user_id,
        method=new.method,
        description=new.description,
        file_name=new.file_name,
        split=new.split,
        sha256=key,
        file_bytes=size,
        idempotency_key=new.idempotency_key or None,
        team=new.team.strip(),
        paper_url=new.paper_url,
        code_url=new.code_url,
        state=State.VALIDATING,
        created=now,
        failure_message="",
        fault_count=0,
    )
    session.add(submission)
    session.flush()
    session.add(Job(kind=JobKind.VALIDATE, submission_id=submission.id))
    session.flush()
    session.refresh(submission)
    return submission, False


def _known(
    session: Session, challenge: Challenge, account: Account, new: pb.SubmissionSettings, key: str
) -> Submission | None:
    """Return the submission that was made with the same key for retries, or of the same file."""
    alike = select(Submission).where(Submission.challenge_id == challenge.id, Submission.user_id == account.user_id)
    if new.idempotency_key:
        known = session.scalars(alike.where(Submission.idempotency_key == new.idempotency_key)).one_or_none()
        if known is not None and known.sha256 != key:
            raise wrong("settings.idempotency_key", "was used for another file")
        if known is not None:
            return known
    return session.scalars(alike.where(Submission.sha256 == key, Submission.state.not_in(UNCHARGED))).one_or_none()


def _check_open(session: Session, challenge: Challenge, account: Account, named: str, now: datetime) -> None:
    """Check that a challenge, and the split of this name or the only one, take a submission of the caller now."""
    if not challenge.ready:
        raise refused(
            "NOT_READY", f"the challenge {challenge.name!r} does not have all its references yet", challenge.name
        )
    _check_takes(session, challenge, account, now)
    for split in challenge.splits:  # others show when the file is read
        if named == split.name or len(challenge.splits) == 1:
            _check_takes(session, split, account, now)


def find_submission(session: Session, account: Account, submission_id: str, *, lock: bool = False) -> Submission:
    """Return a submission of the caller's own, or of their team; members of its challenge find all."""
    query = select(Submission).where(Submission.id == submission_id)
    submission = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if submission is None or not (
        account.submits_as(submission.user) or account.may(MemberRole.VIEWER, submission.challenge)
    ):
        raise not_found("submission", submission_id)
    return submission


def list_submissions(
    session: Session, account: Account, challenge: Challenge, *, user: str, after: str, count: int
) -> Sequence[Submission]:
    """Return up to ``count`` submissions that follow the one with the id ``after``, the newest first."""
    query = select(Submission).join(User).where(Submission.challenge_id == challenge.id)
    if not account.may(MemberRole.VIEWER, challenge):
        query = query.where(User.team == account.team if account.team else User.id == account.user_id)
    if user:
        query = query.where(User.name == user)
    if after:
        last = find_submission(session, account, after)
        query = query.where(tuple_(Submission.created, Submission.id) < (last.created, last.id))
    return session.scalars(query.order_by(Submission.created.desc(), Submission.id.desc()).limit(count)).all()


def queue_position(session: Session, submission: Submission, now: datetime) -> int | None:
    """Return the place of a queued submission, 1 is next; ``None`` if it does not wait."""
    if submission.state is not State.QUEUED or submission.job is None:
        return None
    waiting = or_(Job.lease_end.is_(None), Job.lease_end < now)
    before = select(func.count()).select_from(Job).where(Job.kind == JobKind.SCORE, Job.id < submission.job.id, waiting)
    return 1 + (session.scalar(before) or 0)


def cancel(session: Session, account: Account, submission_id: str, now: datetime) -> Submission:
    """Cancel a submission; whoever works on it finds its job gone. Twice is once."""
    submission = find_submission(session, account, submission_id)
    if not account.submits_as(submission.user):
        account.check_may(MemberRole.ORGANISER, submission.challenge)
    # Jobs are locked before submissions, here as where a job ends: no two transactions wait for each other.
    job = session.scalars(select(Job).where(Job.submission_id == submission.id).with_for_update()).one_or_none()
    session.refresh(submission, with_for_update=True)
    if submission.state is State.CANCELLED:
        return submission
    if submission.state.ended:
        raise refused("ENDED", f"the submission has ended: it {submission.state.value}", submission.id)
    submission.state, submission.ended = State.CANCELLED, now
    if job is not None:
        session.delete(job)
    session.flush()
    session.expire(submission, ["job"])
    return submission


def choose(session: Session, account: Account, challenge_name: str, submission_id: str | None, now: datetime) -> None:
    """Choose the submission of the caller, or of their team, that stands on the leaderboard, or none."""
    challenge = find_challenge(session, challenge_name, lock=True)
    # After the close the order is by exact scores, of which each choice would show another.
    if not account.may(MemberRole.ORGANISER, challenge):
        _check_not_closed(challenge, now)
    if submission_id is not None:
        submission = session.get(Submission, submission_id)
        if submission is None or not account.submits_as(submission.user) or submission.challenge_id != challenge.id:
            raise not_found("submission", submission_id)
        if submission.state is not State.SUCCEEDED:
            raise refused("NOT_SUCCEEDED", "only a submission that succeeded can be on the leaderboard", submission_id)
    ours = select(User.id).where(User.team == account.team if account.team else User.id == account.user_id)
    session.execute(delete(Choice).where(Choice.challenge_id == challenge.id, Choice.user_id.in_(ours)))
    session.add(Choice(challenge_id=challenge.id, user_id=account.user_id, submission_id=submission_id))


def used_files(session: Session, *, copied: bool = False) -> set[str]:
    """Return keys of files still needed; of refused or cancelled submissions, only the faults."""
    # Of a copy of the database, a file that has not been read yet is not: it may be refused, and gone, meanwhile.
    unneeded = (*UNCHARGED, State.VALIDATING) if copied else UNCHARGED
    columns = (Submission.faults, SubmissionFile.file, SplitReferences.file, SplitReferences.source)
    queries = [
        select(Submission.sha256).where(Submission.state.not_in(unneeded)),
        *(select(column).where(column.is_not(None)) for column in columns),
    ]
    return {key for query in queries for key in session.scalars(query) if key is not None}


def _day(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _shown(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_TAKEN_IN_A_ROW = 3
_LONGEST_LEASES = 10  # of this server's: others may have longer ones
_MOST_TAKEN = 50  # times, before a job counts as one that ends servers


class LeaseLostError(Exception):
    """This server holds the job no longer: it was cancelled, or the lease ran out and another server has it."""


@dataclass(slots=True)
class Lease:
    """A job that a server holds, how much of it is done, and whether the database has its end."""

    owner: str
    job_id: int
    kind: JobKind
    fence: int
    submission_id: str | None
    reference_set_id: int | None
    progress: float = 0.0
    ended: bool = False


def claim(session: Session, kinds: Sequence[JobKind], owner: str, now: datetime, lease_s: float) -> Lease | None:
    """Take the next free job of these kinds: the first kind first, then the oldest job."""
    # One that was taken several times, and may be what ends servers, goes behind those that were taken less often.
    # A lease that ends later than any that is given out is from before the clock was set back.
    latest = now + timedelta(seconds=_LONGEST_LEASES * lease_s)
    free = or_(Job.lease_end.is_(None), Job.lease_end < now, Job.lease_end > latest)
    for kind in kinds:
        query = select(Job).where(Job.kind == kind, free).order_by(Job.fence // _TAKEN_IN_A_ROW, Job.id).limit(1)
        job = session.scalars(query.with_for_update(skip_locked=True)).one_or_none()
        if job is None:
            continue
        job.owner, job.lease_end = owner, now + timedelta(seconds=lease_s)
        job.fence += 1
        job.progress = 0.0
        lease = Lease(owner, job.id, job.kind, job.fence, job.submission_id, job.reference_set_id)
        if job.fence > _MOST_TAKEN:
            _fail(session, job, now, "INTERNAL", "the server failed on it again and again")
            return None
        if job.kind is JobKind.SCORE and job.submission_id is not None:
            submission = session.get_one(Submission, job.submission_id, with_for_update=True)
            submission.state = State.RUNNING
            submission.started = submission.started or now
        return lease
    return None


def extend(session: Session, lease: Lease, now: datetime, lease_s: float) -> None:
    """Hold a job for longer, and tell how much of it is done."""
    job = _held(session, lease)
    job.lease_end = now + timedelta(seconds=lease_s)
    job.progress = lease.progress


def end_validated(session: Session, lease: Lease, files: Mapping[int, tuple[str, int]]) -> None:
    """Keep the sound results of a submission, by split with the number of empty captions, and put it into the queue."""
    job = _held(session, lease)
    submission = session.get_one(Submission, job.submission_id, with_for_update=True)
    session.refresh(submission.challenge, with_for_update=True)  # no two submissions take a phase's last place
    account = Account.of(submission.user)
    try:  # of a zip it is known only now which splits it holds
        for split in submission.challenge.splits:
            if split.id in files:
                _check_takes(session, split, account, submission.created)
    except CallError as error:
        _fail(session, job, submission.created, error.reason, error.message)
        return
    for split_id, (key, empty) in files.items():
        session.add(SubmissionFile(submission_id=submission.id, split_id=split_id, file=key, empty_captions=empty))
    submission.state = State.QUEUED
    job.kind, job.owner, job.lease_end, job.progress = JobKind.SCORE, None, None, 0.0


def end_scored(
    session: Session,
    lease: Lease,
    now: datetime,
    *,
    version: str,
    signatures: Mapping[str, Mapping[str, str]],
    scores: Mapping[int, Finished],
) -> None:
    """Keep the scores and errors of a submission by reference set; the job is done."""
    job = _held(session, lease)
    submission = session.get_one(Submission, job.submission_id, with_for_update=True)
    run = ScoringRun(
        submission_id=submission.id,
        job_id=job.id,
        version=version,
        signatures={name: dict(fields) for name, fields in signatures.items()},
        created=now,
        errors={str(set_id): [row._asdict() for row in finished.errors] for set_id, finished in scores.items()},
    )
    session.add(run)
    session.flush()
    for set_id, finished in scores.items():
        for position, row in enumerate(finished.scores):
            session.add(RunScore(run_id=run.id, reference_set_id=set_id, position=position, **row._asdict()))
    if job.kind is JobKind.SCORE:
        submission.state, submission.ended = State.SUCCEEDED, now
    session.delete(job)


def end_parsed(session: Session, lease: Lease) -> None:
    """Record that the references of a set are parsed."""
    session.delete(_held(session, lease))


def end_failed(
    session: Session, lease: Lease, now: datetime, reason: str, message: str, *, faults: str | None, fault_count: int
) -> None:
    """End a job as failed, perhaps with a fault file. A rescored submission keeps its scores."""
    _fail(session, _held(session, lease), now, reason, message, faults=faults, fault_count=fault_count)


def give_up(session: Session, lease: Lease) -> None:
    """Let another server take a job that this one cannot finish now."""
    _free(session, _held(session, lease))


def release_all(session: Session, owner: str) -> None:
    """Let others take everything that this server holds: it stops."""
    for job in session.scalars(select(Job).where(Job.owner == owner).order_by(Job.id).with_for_update()):
        _free(session, job)


def _free(session: Session, job: Job) -> None:
    job.owner, job.lease_end, job.progress = None, None, 0.0
    if job.kind is JobKind.SCORE:
        session.get_one(Submission, job.submission_id, with_for_update=True).state = State.QUEUED


def _fail(
    session: Session,
    job: Job,
    now: datetime,
    reason: str,
    message: str,
    *,
    faults: str | None = None,
    fault_count: int = 0,
) -> None:
    if job.kind in {JobKind.VALIDATE, JobKind.SCORE} and job.submission_id is not None:
        submission = session.get_one(Submission, job.submission_id, with_for_update=True)
        submission.state, submission.ended = State.FAILED, now
        submission.failure, submission.failure_message = reason, message
        submission.faults, submission.fault_count = faults, fault_count
    session.delete(job)


def _held(session: Session, lease: Lease) -> Job:
    """Return a job that this server still holds, locked."""
    query = select(Job).where(Job.id == lease.job_id, Job.owner == lease.owner, Job.fence == lease.fence)
    job = session.scalars(query.with_for_update()).one_or_none()
    if job is None:
        raise LeaseLostError(f"job {lease.job_id}")
    return job
