"""Servers that are killed at any moment, and two servers that share the work.

SPICEGRAPH_TEST_KILLS=50 SPICEGRAPH_TEST_SHARED=100 makes it as hard as it should be now and then: half an hour.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import grpc
import pytest
from sqlalchemy import func, select

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.model import catalogue
from spicegraph_challenge.model.accounts import Account, add_user
from spicegraph_challenge.model.schema import Job, JobKind, Role, ScoringRun, State, Submission
from spicegraph_challenge.queue import submissions
from spicegraph_challenge.queue.submissions import accept
from spicegraph_challenge.sandbox.tasks import Prepared
from waiting import wait_until

if TYPE_CHECKING:
    from arenas import Arena
    from servers import RunningServer
    from spicegraph_challenge.model.database import Database

pytestmark = pytest.mark.model
CODES = grpc.StatusCode
MANY = 20
KILLS = int(os.environ.get("SPICEGRAPH_TEST_KILLS", "2"))
SHARED = int(os.environ.get("SPICEGRAPH_TEST_SHARED", "8"))
USERS = ("ann", "bob", "eve")
SCORED = re.compile(r"submission (\w+) is scored")
LIMIT = 1 + max(2, KILLS // 2)  # so that there is work until the last kill
GONE = {CODES.UNAVAILABLE, CODES.CANCELLED, CODES.UNKNOWN, CODES.DEADLINE_EXCEEDED}


class Participant(threading.Thread):
    """Submits sound and faulty files and cancels some, through all crashes; remembers what was acknowledged."""

    def __init__(self, arena: Arena, address: str, name: str, tools: type, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.arena, self.address, self.tools, self.stop = arena, address, tools, stop
        self.chance = random.Random(name)
        self.sound: set[str] = set()
        self.faulty: set[str] = set()
        self.cancelled: set[str] = set()
        self.refused = 0
        self.problems: list[str] = []

    def run(self) -> None:
        number = 0
        while not self.stop.is_set():
            number += 1
            with ChallengeClient(self.address, self.arena.tokens[self.name], timeout_s=10) as client:
                draw = self.chance.random()
                if draw < 0.6:
                    self.submit(client, number, sound=True)
                elif draw < 0.8:
                    self.submit(client, number, sound=False)
                elif self.sound:
                    self.cancel(client, self.chance.choice(sorted(self.sound)))
            self.stop.wait(self.chance.uniform(0.1, 0.8))

    def submit(self, client: ChallengeClient, number: int, *, sound: bool) -> None:
        """Send the same bytes until the server has acknowledged or refused them."""
        results = self.tools.results(f"{self.name} {number}")
        path = self.arena.write(f"{self.name}-{number}.json", results if sound else results[1:])
        while not self.stop.is_set():
            try:
                found, _ = client.submit("small", path, file_name="captions_val_x_results.json")
            except grpc.RpcError as error:
                if error.code() is CODES.RESOURCE_EXHAUSTED:
                    self.refused += 1
                    return
                if error.code() not in GONE:
                    self.problems.append(f"{error.code()}: {error.details()}")
                    return
                self.stop.wait(0.1)
            else:
                (self.sound if sound else self.faulty).add(found.id)
                return

    def cancel(self, client: ChallengeClient, submission: str) -> None:
        try:
            client.cancel(submission)
        except grpc.RpcError as error:
            if error.code() not in GONE | {CODES.FAILED_PRECONDITION}:
                self.problems.append(f"{error.code()}: {error.details()}")
        else:
            self.cancelled.add(submission)


def prepare(arena: Arena, server: RunningServer, tools: type, **fields: object) -> None:
    with ChallengeClient(server.address, arena.organiser()) as organiser:
        organiser.create_challenge(tools.challenge(**fields))
        references = arena.write("refs.json", tools.annotations(tools.small))
        for split in organiser.get_challenge("small").challenge.settings.splits:
            for reference_set in split.reference_sets:
                organiser.upload_references("small", split.name, reference_set.name, references)
        for name in USERS:
            arena.tokens[name] = organiser.create_user(name)


def wait_for_all(arena: Arena, patience_s: float = 120) -> None:
    """Wait until every submission has ended: none may be stuck, however long all of them take on a busy machine.

    Each takes two processes, so that many of them take minutes; ``patience_s`` is for the next one to get on.
    """
    seen: object = None
    with arena.database() as database:
        while True:
            with database.reading() as session:
                left = session.execute(select(Submission.id, Submission.state).where(Submission.ended.is_(None))).all()
                jobs = session.scalar(select(func.count()).select_from(Job))
            if not left and not jobs:
                return
            if (left, jobs) != seen:
                seen, end = (left, jobs), time.monotonic() + patience_s
            assert time.monotonic() < end, f"{len(left)} submissions are stuck"
            time.sleep(0.3)


@pytest.mark.timeout(3600)
def test_killed_servers_lose_nothing_and_score_nothing_twice(own_arena: Arena, tools: type) -> None:
    """`kill -9` at random moments, with submissions in every state."""
    arena, chance = own_arena, random.Random(12345)
    address = f"127.0.0.1:{tools.free_port()}"
    options = (f"--address={address}", "--challenge-lease=1")
    server = arena.start(*options)
    # In the long mode scored three times, and checked once: so submissions queue up where a server lives for long enough.
    sets = ["c5", "c4", "c3"] if KILLS >= MANY else ["c5"]
    prepare(arena, server, tools, total_limit=LIMIT, splits={"val": sets})
    stop = threading.Event()
    people = [Participant(arena, address, name, tools, stop) for name in USERS]
    for person in people:
        person.start()
    seen: Counter[str] = Counter()
    with arena.database() as database:
        for number in range(KILLS):
            before = states(database)
            if chance.random() < 0.7:  # or else the next one may be killed before it has begun
                wait_for_work(database, before)
            time.sleep(chance.uniform(0.0, 1.5))
            if KILLS >= MANY and number >= KILLS // 2 and "queued" not in seen:
                # Each check begins anew after a kill, and what is sound is scored at once, unless this one lives on.
                wait_until(lambda: seen.update(states(database).values()) or "queued" in seen, timeout_s=300)
            seen.update(states(database).values())
            server.stop(signal.SIGKILL)
            server = arena.start(*options, wait=chance.random() < 0.7)
    server.wait_serving()
    stop.set()
    for person in people:
        person.join(60)
        assert not person.problems
    wait_for_all(arena)  # what is faulty holds its place until that is known
    fill_up(arena, people, server, tools)
    wait_for_all(arena)
    check(arena, people)
    assert seen  # there was something to lose
    assert KILLS < MANY or set(seen) == {"validating", "queued", "running"}, seen
    assert server.stop() == 0


def states(database: Database) -> dict[str, str]:
    """Return the states of the submissions that have not ended."""
    with database.reading() as session:
        found = session.execute(select(Submission.id, Submission.state)).all()
    return {key: state.value for key, state in found if not state.ended}


def wait_for_work(database: Database, before: dict[str, str]) -> None:
    """Wait until one of these submissions has another state; if there were none, for a while until there are some."""
    end = time.monotonic() + (120 if before else 10)
    while not (before.items() - states(database).items() if before else states(database)):
        if time.monotonic() > end:
            assert not before, "nothing is done"
            return
        time.sleep(0.05)


def fill_up(arena: Arena, people: list[Participant], server: RunningServer, tools: type) -> None:
    """Let everybody submit until the limit stops them: it must do so at the right moment."""
    for person in people:
        with ChallengeClient(server.address, arena.tokens[person.name]) as client:
            quota = client.get_challenge("small").quota
            for number in range(quota.left):
                path = arena.write("more.json", tools.results(f"more {person.name} {number}"))
                person.sound.add(client.submit("small", path, file_name="captions_val_x_results.json")[0].id)
            with pytest.raises(grpc.RpcError) as caught:
                client.submit("small", arena.write("more.json", tools.results("one too many")))
            assert caught.value.code() is CODES.RESOURCE_EXHAUSTED


def check(arena: Arena, people: list[Participant]) -> None:
    with arena.database() as database, database.reading() as session:
        rows = {row.id: row for row in session.scalars(select(Submission))}
        runs = Counter(session.scalars(select(ScoringRun.submission_id)))
        for person in people:
            for submission in person.cancelled:
                assert rows[submission].state is State.CANCELLED
            for submission in person.sound - person.cancelled:
                # A cancellation whose answer was lost may have happened all the same.
                assert rows[submission].state in {State.SUCCEEDED, State.CANCELLED}, rows[submission].failure_message
            for submission in person.faulty:
                assert rows[submission].state is State.FAILED
                assert rows[submission].failure == "INVALID_FILE"
            charged = [row for row in rows.values() if row.user.name == person.name and row.state is State.SUCCEEDED]
            assert len(charged) == LIMIT
        assert runs == {key: 1 for key, row in rows.items() if row.state is State.SUCCEEDED}


@pytest.mark.timeout(900)
def test_two_servers_score_each_submission_once_and_one_that_stops_leaves_its_work_to_others(
    postgres_arena: Arena, tools: type
) -> None:
    """SIGTERM gives jobs back at once: nobody waits for the lease."""
    arena = postgres_arena
    servers = [arena.start("--challenge-lease=600") for _ in range(2)]
    prepare(arena, servers[0], tools)
    for number in range(SHARED):
        name = USERS[number % len(USERS)]
        with ChallengeClient(servers[number % 2].address, arena.tokens[name]) as client:
            path = arena.write("results.json", tools.results(number))
            client.submit("small", path, file_name="captions_val_x_results.json")
    wait_for_all(arena)
    with arena.database() as database, database.reading() as session:
        assert set(session.scalars(select(Submission.state))) == {State.SUCCEEDED}
        runs = Counter(session.scalars(select(ScoringRun.submission_id)))
    assert len(runs) == SHARED
    assert set(runs.values()) == {1}
    first, second = servers
    assert second.stop() == 0

    def scored() -> list[Counter[str]]:
        return [Counter(SCORED.findall(server.log.read_text())) for server in servers]

    wait_until(lambda: sum(scored(), Counter()) == runs)  # a log follows the state
    assert all(scored())  # both have worked
    with ChallengeClient(first.address, arena.tokens["ann"]) as client:
        for number in range(3):
            path = arena.write("r.json", tools.results(f"more {number}"))
            client.submit("small", path, file_name="captions_val_x_results.json")
        watched = client.list_submissions("small")
        seen = client.watch(next(watched).id)
        assert next(seen).state != pb.SUBMISSION_STATE_SUCCEEDED
        started = time.monotonic()
        assert first.stop() == 0
        assert time.monotonic() - started < 8  # less than the grace: nobody's watching holds the server up
        second = arena.start("--challenge-lease=600", f"--address={first.address}")
        *_, last = seen
        assert last.state == pb.SUBMISSION_STATE_SUCCEEDED
    wait_for_all(arena, 60)
    with ChallengeClient(second.address, arena.tokens["ann"]) as client:
        assert {found.state for found in client.list_submissions("small")} == {pb.SUBMISSION_STATE_SUCCEEDED}
    assert second.stop() == 0


def test_old_servers_cannot_write(own_arena: Arena, tools: type) -> None:
    """Who has lost a lease is refused, whatever it wants to write."""
    with own_arena.database() as database:
        old_servers_cannot_write(database, tools.challenge().settings)


def old_servers_cannot_write(database: Database, settings: pb.ChallengeSettings) -> None:
    with database.writing() as session:
        now = database.now(session)
        owner, _ = add_user(session, "owner", Role.ORGANISER, now)
        ann, _ = add_user(session, "ann", Role.PARTICIPANT, now)
        catalogue.add_challenge(session, Account.of(owner), "small", settings, now)
        target = pb.ReferencesTarget(challenge="small", split="val", reference_set="c5")
        catalogue.place_references(session, target, "a" * 64, "b" * 64, Prepared(1, 1))
        session.flush()
        new = pb.SubmissionSettings(challenge="small", method="m", file_name="f.json")
        accept(session, Account(ann.id, "ann", Role.PARTICIPANT), new, ("0" * 64, 1), now)
        old = submissions.claim(session, [JobKind.VALIDATE], "one", now, 5)
        assert old is not None
    with database.writing() as session:
        assert submissions.claim(session, [JobKind.VALIDATE], "two", now, 5) is None
        session.flush()
        with session.begin_nested() as tried:  # after a clock was set back by three days
            assert submissions.claim(session, [JobKind.VALIDATE], "two", now - timedelta(days=3), 5) is not None
            tried.rollback()
        later = now + timedelta(seconds=6)
        new_lease = submissions.claim(session, [JobKind.VALIDATE], "two", later, 5)
        assert new_lease is not None
        assert new_lease.fence == old.fence + 1
    with pytest.raises(submissions.LeaseLostError), database.writing() as session:
        submissions.end_validated(session, old, {})
    with pytest.raises(submissions.LeaseLostError), database.writing() as session:
        submissions.extend(session, old, later, 5)
    with database.writing() as session:
        submissions.end_validated(session, new_lease, {})
