"""What the runner and the store of files do at awkward moments."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model import catalogue
from spicegraph_challenge.model.accounts import Account, add_user
from spicegraph_challenge.model.database import Database, Transactions
from spicegraph_challenge.model.schema import JobKind, Role, State, Submission
from spicegraph_challenge.queue import runner as challenge_runner
from spicegraph_challenge.queue import submissions
from spicegraph_challenge.queue.runner import Runner
from spicegraph_challenge.queue.submissions import accept, cancel, used_files
from spicegraph_challenge.registration import ChallengeOptions
from spicegraph_challenge.sandbox.files import FileStore
from spicegraph_challenge.sandbox.processes import OverAllowanceError, Sandbox, SandboxError
from spicegraph_challenge.sandbox.tasks import Prepare, Prepared
from spicegraph_service.pool.tasks import WorkerInfo
from spicegraph_service.rpc.status import CallError
from spicegraph_service.store import StoreError, StoreFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sqlalchemy.orm import Session

pytestmark = pytest.mark.slow

OWNER = "me"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(str(tmp_path / "challenges.db")) as made:
        with made.writing() as session:
            now = made.now(session)
            split = pb.ChallengeSplit(name="val", reference_sets=[pb.ChallengeReferenceSet(name="c5")])
            settings = pb.ChallengeSettings(metrics=["bleu"], splits=[split])
            owner, _ = add_user(session, OWNER, Role.ORGANISER, now)
            catalogue.add_challenge(session, Account(owner.id, OWNER, owner.role), "pets", settings, now)
            target = pb.ReferencesTarget(challenge="pets", split="val", reference_set="c5")
            catalogue.place_references(session, target, "a" * 64, "b" * 64, Prepared(1, 1))
            add_user(session, "ann", Role.PARTICIPANT, now)
        yield made


def submit(database: Database, key: str) -> str:
    with database.writing() as session:
        new = pb.SubmissionSettings(challenge="pets", method="m", file_name="f.json")
        return accept(session, Account(2, "ann", Role.PARTICIPANT), new, (key * 64, 1), database.now(session))[0].id


def take(database: Database) -> submissions.Lease:
    with database.writing() as session:
        lease = submissions.claim(session, [JobKind.VALIDATE], OWNER, database.now(session), 30)
        assert lease is not None
        return lease


class SlowTransactions(Transactions):
    """Those that write to the end of a job tell of it late: the database knows for long what the server does not."""

    slow = False

    async def write(self, work: Callable[[Session, datetime], object]) -> object:
        done = await super().write(work)
        if self.slow and "extend" not in work.__name__:
            await asyncio.sleep(0.5)
        return done


def runner(transactions: Transactions, tmp_path: Path) -> Runner:
    # Neither child processes nor workers are needed here.
    state = SimpleNamespace(
        nudge=lambda: None,
        transactions=transactions,
        files=FileStore(tmp_path / "files"),
        sandbox=None,
        options=ChallengeOptions(challenge_lease=0.03),
        caption_characters=2_000,
    )
    return Runner(state, None, WorkerInfo("1"), OWNER)


def test_a_job_s_end_is_told_though_its_lease_is_seen_to_be_gone(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The beat finds the job gone because it has just been ended: that is no loss, and the end is logged."""
    submission = submit(database, "c")
    lease = take(database)

    async def run() -> None:
        transactions = SlowTransactions(database)
        transactions.slow = True
        made = runner(transactions, tmp_path)

        async def work(lease: submissions.Lease) -> None:
            await made._end(lease, lambda s, _now: submissions.end_validated(s, lease, {}), "is sound")

        made._work = {JobKind.VALIDATE: work}
        await made._do(lease)

    with caplog.at_level(logging.INFO, "spicegraph_challenge.queue.runner"):
        asyncio.run(run())
    assert caplog.messages == [f"submission {submission} is sound"]
    with database.reading() as session:
        assert session.get_one(Submission, submission).state is State.QUEUED


def test_a_job_that_was_cancelled_is_dropped(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    submission = submit(database, "c")
    lease = take(database)

    async def run() -> bool:
        made = runner(Transactions(database), tmp_path)
        stopped = False

        async def work(_lease: submissions.Lease) -> None:
            nonlocal stopped
            with database.writing() as session:
                cancel(session, Account(2, "ann", Role.PARTICIPANT), submission, database.now(session))
            try:
                await asyncio.sleep(60)
            finally:
                stopped = True

        made._work = {JobKind.VALIDATE: work}
        await made._do(lease)
        return stopped

    with caplog.at_level(logging.INFO, "spicegraph_challenge.queue.runner"):
        assert asyncio.run(run())
    assert caplog.messages == [f"job {lease.job_id} is held by another server or cancelled"]


def test_a_fault_in_a_lane_does_not_end_it(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Jobs would be stuck for ever, and nobody would know."""
    done = threading.Event()

    class Faulty(Transactions):
        failed = False

        async def write(self, work: Callable[[Session, datetime], object]) -> object:
            if not self.failed:
                self.failed = True
                raise RuntimeError("unforeseen")
            return await super().write(work)

    async def run() -> None:
        made = runner(Faulty(database), tmp_path)

        async def work(_lease: submissions.Lease) -> None:
            done.set()
            await asyncio.sleep(60)

        made._work = dict.fromkeys(JobKind, work)
        task = asyncio.create_task(made._lane((JobKind.VALIDATE,), asyncio.Event()))
        end = time.monotonic() + 30
        while not done.is_set() and time.monotonic() < end:
            await asyncio.sleep(0.05)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    submit(database, "c")
    asyncio.run(run())
    assert done.is_set()
    assert "no job can be taken now" in caplog.text


def test_a_full_disk_is_logged_once_and_its_end_too(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(challenge_runner, "_LOOK_EVERY_S", 0.01)
    tries = 0

    class Full(Transactions):
        async def write(self, work: Callable[[Session, datetime], object]) -> object:
            nonlocal tries
            tries += 1
            if tries <= 5:
                raise StoreError("database or disk is full")
            return await super().write(work)

    async def run() -> None:
        task = asyncio.create_task(runner(Full(database), tmp_path)._lane((JobKind.VALIDATE,), asyncio.Event()))
        end = time.monotonic() + 30
        while tries < 8 and time.monotonic() < end:
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.INFO, "spicegraph_challenge.queue.runner"):
        asyncio.run(run())
    assert caplog.messages == ["no jobs can be taken now: database or disk is full", "jobs are taken again"]


def test_a_job_waits_for_room_on_the_disk_of_files_however_long_it_takes(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More often than a job may be taken: an accepted submission must not fail because a disk is full for a minute."""
    monkeypatch.setattr(challenge_runner, "_PAUSE_S", 0.001)
    submission = submit(database, "c")
    tries = 0

    lease = take(database)

    async def run() -> None:
        made = runner(Transactions(database), tmp_path)

        async def work(lease: submissions.Lease) -> None:
            nonlocal tries
            tries += 1
            if tries <= 60:
                raise StoreFullError(f"incoming/{tries}: no room left on the disk")
            await made._end(lease, lambda s, _now: submissions.end_validated(s, lease, {}), "is sound")

        made._work = {JobKind.VALIDATE: work}
        await made._do(lease)

    with caplog.at_level(logging.INFO, "spicegraph_challenge.queue.runner"):
        asyncio.run(run())
    assert caplog.messages == [
        f"job {lease.job_id} must wait: incoming/1: no room left on the disk",
        f"submission {submission} is sound",
    ]
    with database.reading() as session:
        assert session.get_one(Submission, submission).state is State.QUEUED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system lacks a device that is always full")
def test_a_child_that_finds_no_room_on_the_disk_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not the file's fault, nor worth a traceback."""
    source = tmp_path / "annotations.json"
    source.write_text(json.dumps({"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a"}]}))

    async def run() -> None:
        with pytest.raises(StoreFullError, match="no room left on the disk"):
            await Sandbox(1).run(Prepare(str(source), "/dev/full"), Prepared)

    asyncio.run(run())
    assert "Traceback" not in capfd.readouterr().err


def test_a_job_that_ends_servers_does_not_hold_up_the_others(database: Database) -> None:
    poison, *others = (submit(database, key) for key in "cde")
    taken = []
    with database.writing() as session:
        now = database.now(session)
        for number in range(9):  # each time the server is gone before the lease is over
            later = now + timedelta(seconds=60 * number)
            lease = submissions.claim(session, [JobKind.VALIDATE], OWNER, later, 30)
            assert lease is not None
            taken.append(lease.submission_id)
            if lease.submission_id != poison:
                submissions.end_validated(session, lease, {})
    assert taken == [poison] * 3 + others + [poison] * 4


def test_trouble_of_the_server_s_own_is_given_a_second_chance(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child process that was killed, say: the job is done again, and fails only when that does not help."""
    monkeypatch.setattr(challenge_runner, "_PAUSE_S", 0.01)
    submission = submit(database, "c")
    states = []

    async def work(_lease: submissions.Lease) -> None:
        raise OverAllowanceError("killed") if len(states) == 3 else SandboxError("gone")

    async def run(lease: submissions.Lease) -> None:
        made = runner(Transactions(database), tmp_path)
        made._work = {JobKind.VALIDATE: work}
        await made._do(lease)

    for _ in range(3):
        asyncio.run(run(take(database)))
        with database.reading() as session:
            states.append(session.get_one(Submission, submission).state)
    assert states == [State.VALIDATING, State.VALIDATING, State.FAILED]
    with database.reading() as session:
        assert session.get_one(Submission, submission).failure == "INTERNAL"
    greedy = submit(database, "d")  # what the file itself needs too much of does not come back
    asyncio.run(run(take(database)))
    with database.reading() as session:
        assert session.get_one(Submission, greedy).failure == "VALIDATION_LIMIT"


def test_refused_files_are_bounded_by_bytes_and_number(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count against no limit of submissions; the server's own failures count against nothing."""
    monkeypatch.setattr(submissions, "_MOST_REFUSED", 3)
    ann = Account(2, "ann", Role.PARTICIPANT)
    new = pb.SubmissionSettings(challenge="pets", method="m", file_name="f.json")
    with database.writing() as session:
        now = database.now(session)

        def send(key: str, size: int, failure: str = "INVALID_FILE") -> None:
            found, _ = accept(session, ann, new, (key * 64, size), now)
            submissions.check_refused(session, ann, now)
            found.state, found.failure = State.FAILED, failure
            session.delete(found.job)
            session.flush()

        send("c", submissions.REFUSED_BYTES - 10)
        send("d", 8, "INTERNAL")
        with pytest.raises(CallError) as failure:
            send("e", 11)
        assert failure.value.reason == "SUBMISSION_LIMIT"
        assert str(failure.value).startswith("1 files with 128 MiB were refused or cancelled today")
        send("e", 5)
        with pytest.raises(CallError, match="2 files with 128 MiB"):
            submissions.check_refused(session, ann, now, size=6)
        submissions.check_refused(session, ann, now, size=6, most=submissions.REFUSED_BYTES)
        with pytest.raises(CallError, match="3 files"):
            send("f", 1)  # is taken, and after it nothing
        submissions.check_refused(session, ann, now + timedelta(days=1))
        submissions.check_refused(session, Account(1, "root", Role.ORGANISER), now)


def test_a_refused_file_s_bytes_go_at_once(database: Database, tmp_path: Path) -> None:
    """Its faults stay; so do the bytes where another submission has the same, and a backup needs them no more."""
    made = runner(Transactions(database), tmp_path)
    files = made._state.files
    keys = []
    for word in ("bad", "good"):
        (tmp_path / word).write_text(word)
        keys.append(files.adopt(tmp_path / word))
    account = Account(2, "ann", Role.PARTICIPANT)
    new = pb.SubmissionSettings(challenge="pets", method="m", file_name="f.json")
    with database.writing() as session:
        now = database.now(session)
        bad, _ = accept(session, account, new, (keys[0], 3), now)
        accept(session, account, new, (keys[1], 4), now)
        assert not set(keys) & used_files(session, copied=True)
        assert set(keys) <= used_files(session)
        bad.state = State.FAILED
    for key in keys:
        asyncio.run(made._discard(key))
    assert [files.path(key).exists() for key in keys] == [False, True]


def test_files_that_nobody_needs_are_deleted_after_a_day(database: Database, tmp_path: Path) -> None:
    files = FileStore(tmp_path / "files")
    keys = {}
    for word in ("kept", "cancelled", "abandoned", "young"):
        source = tmp_path / word
        source.write_text(word)
        keys[word] = files.adopt(source)
        if word != "young":
            os.utime(files.path(keys[word]), (0, 0))
    account = Account(2, "ann", Role.PARTICIPANT)
    with database.writing() as session:
        now = database.now(session)
        for word in ("kept", "cancelled"):
            new = pb.SubmissionSettings(challenge="pets", method="m", file_name="f.json")
            found, _ = accept(session, account, new, (keys[word], 4), now)
        cancel(session, account, found.id, now)
    with database.reading() as session:
        used = used_files(session)
    assert {keys["kept"], "a" * 64, "b" * 64} == used
    assert files.sweep(used) == 2
    assert [word for word in keys if files.path(keys[word]).exists()] == ["kept", "young"]
