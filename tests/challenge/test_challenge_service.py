"""The evaluation server through its contract, on a real socket, with SQLite and with PostgreSQL."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from sqlalchemy import update

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.model.schema import ScoringRun, UserToken
from spicegraph_challenge.pages.tables import to_html
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import score
from spicegraph_service.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from arenas import Arena
    from servers import RunningServer

pytestmark = pytest.mark.model
CODES = grpc.StatusCode
S = pb.SubmissionState


@dataclass
class World:
    """A running evaluation server with an organiser; challenges and users are made as tests need them."""

    arena: Arena
    server: RunningServer
    organiser: ChallengeClient
    tools: type
    clients: list[ChallengeClient] = field(default_factory=list)
    count: int = 0

    def name(self, word: str) -> str:
        self.count += 1
        return f"{word}-{self.count}"

    def user(self, word: str = "user", role: pb.UserRole.ValueType = pb.USER_ROLE_PARTICIPANT) -> ChallengeClient:
        client = ChallengeClient(self.server.address, self.organiser.create_user(self.name(word), role))
        self.clients.append(client)
        return client

    def challenge(self, **fields: object) -> str:
        message = self.tools.challenge(self.name("challenge"), **fields)
        self.organiser.create_challenge(message)
        references = self.arena.write("references.json", self.tools.annotations(self.tools.small))
        for split in message.settings.splits:
            for reference_set in split.reference_sets:
                self.organiser.upload_references(message.name, split.name, reference_set.name, references)
        return message.name

    def file(self, tag: object) -> Path:
        return self.arena.write("captions_val_method_results.json", self.tools.results(tag))

    def scored(self, client: ChallengeClient, challenge: str, tag: object, **options: str) -> pb.Submission:
        found, existed = client.submit(challenge, self.file(tag), **options)
        assert not existed
        *_, last = client.watch(found.id)
        assert last.state == S.SUBMISSION_STATE_SUCCEEDED, last
        return last


@pytest.fixture(scope="module")
def world(arena: Arena, tools: type) -> Iterator[World]:
    server = arena.start()
    with ChallengeClient(server.address, arena.organiser()) as organiser:
        made = World(arena, server, organiser, tools)
        yield made
        for client in made.clients:
            client.close()


def refused(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    """The status and the reason of a call that must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    for detail in rpc_status.from_call(caught.value).details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return caught.value.code(), info.reason
    raise AssertionError("no reason given")


def test_scores_are_the_library_s(world: World) -> None:
    """A submission gets the numbers of `spicegraph score`, from both reference sets."""
    examples = world.tools.examples
    metrics = ["bleu", "meteor", "rouge", "cider", "spice"]
    name = world.name("coco")
    world.organiser.create_challenge(world.tools.challenge(name, metrics=metrics, splits={"val2014": ["c5", "c4"]}))
    files = {"c5": examples / "captions.json", "c4": examples / "captions_without_first.json"}
    for reference_set, path in files.items():
        world.organiser.upload_references(name, "val2014", reference_set, path)
    user = world.user()
    sent, _ = user.submit(name, examples / "human.json", file_name="captions_val2014_people_results.json")
    assert (sent.state, sent.method) == (S.SUBMISSION_STATE_VALIDATING, "people")
    seen = list(user.watch(sent.id))
    states = [found.state for found in seen]
    assert states == sorted(states)
    assert states[-1] == S.SUBMISSION_STATE_SUCCEEDED
    exact = world.organiser.get_submission(sent.id).scores
    assert [scores.reference_set for scores in seen[-1].scores] == [scores.reference_set for scores in exact]
    assert [scores.reference_set for scores in exact] == ["c5", "c4"]
    for scores in exact:
        items = read_items(str(examples / "human.json"), references=str(files[scores.reference_set])).items
        expected = score(items, metrics).corpus
        for row in scores.scores:
            if row.name in expected:
                assert row.value == pytest.approx(expected[row.name], abs=1e-12), row.name
            assert row.low <= row.value + 1e-9
            assert row.value <= row.high + 1e-9
        assert set(expected) - {"SPICE_categories"} <= {row.name for row in scores.scores}
    assert seen[-1].origin.version
    assert {signature.metric for signature in seen[-1].origin.signatures} == set(metrics)
    assert not seen[-1].origin.outdated


def test_a_zip_may_hold_several_splits(world: World) -> None:
    name = world.challenge(splits={"val": ["c5"], "test-dev": ["c5"], "test": ["c5"]})
    path = world.arena.folder / "both.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for split in ("val", "test-dev"):
            archive.writestr(f"captions_{split}_my_method_results.json", json.dumps(world.tools.results(split)))
        archive.writestr("__MACOSX/x", "")
    user = world.user()
    sent, _ = user.submit(name, path, method="both")
    *_, last = user.watch(sent.id)
    assert last.state == S.SUBMISSION_STATE_SUCCEEDED
    assert sorted(last.splits) == ["test-dev", "val"]
    assert sorted(scores.split for scores in last.scores) == ["test-dev", "val"]
    assert len(user.leaderboard(name, split="test-dev").rows) == 1
    assert not user.leaderboard(name, split="test").rows
    # One split after the other does as well: on each leaderboard stands the latest that has results for it.
    path = world.arena.write("captions_test_later_results.json", world.tools.results("test"))
    later, _ = user.submit(name, path)
    list(user.watch(later.id))
    stands = [[row.method for row in user.leaderboard(name, split=split).rows] for split in ("val", "test")]
    assert stands == [["both"], ["later"]]
    user.choose(name, later.id)
    assert [row.method for row in user.leaderboard(name, split="val").rows] == ["both"]
    user.choose(name, None)
    assert not user.leaderboard(name, split="val").rows


def test_parallel_submissions_stop_at_the_limit(world: World) -> None:
    """32 at a time with a limit of 5: exactly 5 are accepted, the others are told why."""
    name = world.challenge(daily_limit=5)
    user = world.user()
    paths = [world.arena.write(f"p{n}.json", world.tools.results(f"parallel {n}")) for n in range(32)]
    start = threading.Barrier(32)

    def submit(path: Path) -> str:
        start.wait()
        try:
            return user.submit(name, path, file_name="captions_val_x_results.json")[0].id
        except grpc.RpcError as error:
            return str(error.code().name)

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(submit, paths))
    assert answers.count("RESOURCE_EXHAUSTED") == 27
    accepted = set(answers) - {"RESOURCE_EXHAUSTED"}
    assert len(accepted) == 5
    assert {found.id for found in user.list_submissions(name)} == accepted
    quota = user.get_challenge(name).quota
    assert (quota.used_today, quota.used_total, quota.left) == (5, 5, 0)


def test_what_failed_or_was_cancelled_is_not_charged(world: World) -> None:
    name = world.challenge(total_limit=2)
    user = world.user()
    faulty = world.arena.write("faulty.json", [{"image_id": 99, "caption": ""}])
    sent, _ = user.submit(name, faulty, file_name="captions_val_x_results.json")
    *_, last = user.watch(sent.id)
    assert (last.state, last.failure.reason) == (S.SUBMISSION_STATE_FAILED, "INVALID_FILE")
    assert [str(fault.item) for fault in last.failure.faults][:2] == ["item 1 (image_id 99)"] * 2
    assert last.failure.fault_count == 2 + len(world.tools.small) == len(list(user.faults(sent.id)))
    assert user.get_challenge(name).quota.left == 2
    world.scored(user, name, "one")
    again, existed = user.submit(name, faulty, file_name="captions_val_x_results.json")
    assert not existed  # a file that failed may be sent again
    assert again.id != sent.id
    list(user.watch(again.id))
    second, _ = user.submit(name, world.file("two"))
    assert refused(lambda: user.submit(name, world.file("three"))) == (CODES.RESOURCE_EXHAUSTED, "SUBMISSION_LIMIT")
    # It was sent a moment ago: its validation alone takes longer than that.
    assert user.cancel(second.id).state == S.SUBMISSION_STATE_CANCELLED
    assert user.cancel(second.id).state == S.SUBMISSION_STATE_CANCELLED
    assert user.get_challenge(name).quota.left == 1
    world.scored(user, name, "three")


def test_the_same_file_is_one_submission(world: World) -> None:
    name = world.challenge()
    user, other = world.user(), world.user()
    path = world.file("same")
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: user.submit(name, path)[0].id, range(8)))
    assert len(ids) == 1
    assert other.submit(name, path)[0].id not in ids
    keyed, existed = user.submit(name, world.file("keyed"), key="a-key")
    assert not existed
    assert user.submit(name, world.file("keyed"), key="a-key") == (user.get_submission(keyed.id), True)
    assert refused(lambda: user.submit(name, world.file("another"), key="a-key")) == (
        CODES.INVALID_ARGUMENT,
        "INVALID_FIELDS",
    )


def test_cancelling_in_the_queue_and_while_running(world: World) -> None:
    name = world.challenge(metrics=["spice", "cider"])
    user = world.user()
    sent = [user.submit(name, world.file(f"cancel {n}"))[0].id for n in range(4)]
    states = {user.cancel(submission).state for submission in reversed(sent)}
    assert states == {S.SUBMISSION_STATE_CANCELLED}
    list(user.watch(world.scored(user, name, "after").id))  # whoever worked on them goes on with others
    assert [found.state for found in user.list_submissions(name)][1:] == [S.SUBMISSION_STATE_CANCELLED] * 4


def test_participants_see_only_what_is_theirs(world: World) -> None:
    name = world.challenge()
    user, other = world.user(), world.user()
    mine = world.scored(user, name, "mine")
    for call in (other.get_submission, other.cancel):
        assert refused(lambda call=call: call(mine.id)) == (CODES.NOT_FOUND, "NOT_FOUND")
    for stream in (other.watch, other.faults):
        assert refused(lambda stream=stream: list(stream(mine.id))) == (CODES.NOT_FOUND, "NOT_FOUND")
    assert refused(lambda: other.choose(name, mine.id)) == (CODES.NOT_FOUND, "NOT_FOUND")
    assert not list(other.list_submissions(name))
    assert [found.id for found in world.organiser.list_submissions(name, user=mine.user)] == [mine.id]
    denied = (CODES.PERMISSION_DENIED, "NOT_AN_ORGANISER")
    assert [found.id for found in user.list_submissions(name, user=mine.user)] == [mine.id]
    for call in (
        lambda: list(other.list_submissions(name, user=mine.user)),
        lambda: other.create_challenge(world.tools.challenge("mine")),
        lambda: other.update_challenge(name, pb.ChallengeSettings(total_limit=9)),
        lambda: other.delete_challenge(name),
        lambda: other.upload_references(name, "val", "c5", world.file("x")),
        lambda: other.create_user("friend"),
        lambda: list(other.list_users()),
        lambda: other.delete_user(mine.user),
        lambda: other.create_token("x", user=mine.user),
        lambda: other.rescore(name),
        lambda: list(other.report(mine.id)),
        lambda: list(user.report(mine.id)),
    ):
        assert refused(call) == denied
    assert not other.leaderboard(name).rows[0].submission
    assert world.organiser.leaderboard(name).rows[0].submission == mine.id


ROLES = pb.ChallengeRole
DENIED = (CODES.PERMISSION_DENIED, "NOT_AN_ORGANISER")


def test_members_of_a_challenge_have_the_rights_of_their_roles(world: World) -> None:
    """In the challenge alone: the server's users and other challenges are none of their business."""
    name, other_name = world.challenge(), world.challenge()
    user = world.user()
    theirs = world.scored(user, name, "theirs")
    elsewhere = world.scored(user, other_name, "theirs")
    member = world.user("member")
    member_name = f"member-{world.count}"
    references = world.arena.write("references.json", world.tools.annotations(world.tools.small))
    hidden = pb.ChallengeSplit(name="val", score_visibility=pb.VISIBILITY_ORGANISERS)
    closed = Timestamp(seconds=1_000_000_000)
    world.organiser.update_challenge(name, pb.ChallengeSettings(splits=[hidden], close_time=closed))

    def sees() -> None:
        assert member.get_submission(theirs.id).scores
        assert [found.id for found in member.list_submissions(name, user=theirs.user)] == [theirs.id]
        assert member.leaderboard(name).rows[0].submission == theirs.id
        assert b"".join(member.report(theirs.id)).startswith(b"<!DOCTYPE html>")
        assert member_name in [one.user for one in member.list_members(name)]

    def changes() -> None:
        member.update_challenge(name, pb.ChallengeSettings(title="Changed"))
        assert member.upload_references(name, "val", "c5", references).settings.title == "Changed"
        assert member.rescore(name) == 0
        world.scored(member, name, "try")  # after the close
        assert refused(lambda: member.cancel(theirs.id)) == (CODES.FAILED_PRECONDITION, "ENDED")

    def owns() -> None:
        member.set_member(name, theirs.user, ROLES.CHALLENGE_ROLE_VIEWER)
        member.set_member(name, theirs.user, ROLES.CHALLENGE_ROLE_UNSPECIFIED)

    elsewhere_and_on_the_server: list[Callable[[], object]] = [
        lambda: member.update_challenge(other_name, pb.ChallengeSettings(title="x")),
        lambda: member.upload_references(other_name, "val", "c5", references),
        lambda: member.list_members(other_name),
        lambda: member.set_member(other_name, member_name, ROLES.CHALLENGE_ROLE_OWNER),
        lambda: member.rescore(other_name),
        lambda: member.delete_challenge(other_name),
        lambda: member.create_challenge(world.tools.challenge("mine")),
        lambda: member.create_user("friend"),
        lambda: list(member.list_users()),
        lambda: member.create_token("x", user=theirs.user),
    ]
    of_organisers: list[Callable[[], object]] = [
        lambda: member.update_challenge(name, pb.ChallengeSettings(title="x")),
        lambda: member.upload_references(name, "val", "c5", references),
        lambda: member.rescore(name),
        lambda: member.cancel(theirs.id),
    ]
    of_owners: list[Callable[[], object]] = [
        lambda: member.delete_challenge(name),
        lambda: member.set_member(name, theirs.user, ROLES.CHALLENGE_ROLE_VIEWER),
        lambda: member.set_member(name, "nobody-at-all", ROLES.CHALLENGE_ROLE_VIEWER),
        lambda: member.set_member(name, member_name, ROLES.CHALLENGE_ROLE_OWNER),
    ]
    for role, allowed, denied in (
        (ROLES.CHALLENGE_ROLE_VIEWER, [sees], [*of_organisers, *of_owners]),
        (ROLES.CHALLENGE_ROLE_ORGANISER, [sees, changes], of_owners),
        (ROLES.CHALLENGE_ROLE_OWNER, [sees, owns], []),
    ):
        world.organiser.set_member(name, member_name, role)
        assert member.get_challenge(name).role == role
        for right in allowed:
            right()
        for call in (*denied, *elsewhere_and_on_the_server):
            assert refused(call) == DENIED
        if role == ROLES.CHALLENGE_ROLE_VIEWER:
            late = (CODES.FAILED_PRECONDITION, "CLOSED")
            assert refused(lambda: member.submit(name, world.file("late"))) == late
        for call in (lambda: member.get_submission(elsewhere.id), lambda: list(member.report(elsewhere.id))):
            assert refused(call) == (CODES.NOT_FOUND, "NOT_FOUND")
    member.set_member(name, member_name, ROLES.CHALLENGE_ROLE_UNSPECIFIED)  # who is a member may leave
    assert refused(lambda: member.get_submission(theirs.id)) == (CODES.NOT_FOUND, "NOT_FOUND")
    assert refused(lambda: member.list_members(name)) == DENIED


def test_hosts_own_the_challenges_that_they_create(world: World) -> None:
    host = world.user("host", pb.USER_ROLE_HOST)
    host_name, name = f"host-{world.count}", world.name("challenge")
    host.create_challenge(world.tools.challenge(name))
    assert [(one.user, one.role) for one in host.list_members(name)] == [(host_name, ROLES.CHALLENGE_ROLE_OWNER)]
    others = world.challenge()
    for call in (lambda: host.create_user("friend"), lambda: host.delete_challenge(others)):
        assert refused(call) == DENIED
    last = (CODES.FAILED_PRECONDITION, "LAST_OWNER")
    for role in (ROLES.CHALLENGE_ROLE_UNSPECIFIED, ROLES.CHALLENGE_ROLE_VIEWER):
        assert refused(lambda role=role: host.set_member(name, host_name, role)) == last
    world.user("second")
    second = f"second-{world.count}"
    host.set_member(name, second, ROLES.CHALLENGE_ROLE_OWNER)
    host.set_member(name, second, ROLES.CHALLENGE_ROLE_OWNER)  # twice is once
    unknown = (CODES.NOT_FOUND, "NOT_FOUND")
    assert refused(lambda: host.set_member(name, "nobody", ROLES.CHALLENGE_ROLE_VIEWER)) == unknown
    assert refused(lambda: host.set_member(name, second, 9)) == (CODES.INVALID_ARGUMENT, "INVALID_FIELDS")
    world.organiser.delete_user(second)
    world.organiser.create_user(second)  # the name is free again, the role is not
    assert [one.user for one in host.list_members(name)] == [host_name]
    host.delete_challenge(name)
    assert refused(lambda: host.get_challenge(name)) == unknown


def test_tokens_end_and_say_when_they_were_used(world: World) -> None:
    name = world.name("ending")
    end = Timestamp(seconds=int(time.time()) + 7_200)
    with ChallengeClient(world.server.address, world.organiser.create_user(name, expires=end)) as user:
        lasting = user.create_token("lasting")
        user.create_token("unused", expires=Timestamp(seconds=end.seconds + 3_600))
        before = Timestamp(seconds=int(time.time()) - 60)
        wrong = (CODES.INVALID_ARGUMENT, "INVALID_FIELDS")
        assert refused(lambda: user.create_token("x", expires=before)) == wrong
        with world.arena.database() as database, database.writing() as session:
            end = Timestamp(seconds=int(time.time()) - 1)
            session.execute(
                update(UserToken)
                .where(UserToken.name == "first", UserToken.user.has(name=name))
                .values(expires=end.ToDatetime(UTC))
            )
        assert refused(lambda: list(user.list_challenges())) == (CODES.UNAUTHENTICATED, "INVALID_TOKEN")
    with ChallengeClient(world.server.address, lasting) as user:
        list(user.list_challenges())
    until = time.monotonic() + 20
    while time.monotonic() < until:  # the use is recorded beside the call
        first, second, unused = next(found for found in world.organiser.list_users() if found.name == name).tokens
        if second.HasField("last_use_time"):
            break
        time.sleep(0.1)
    assert first.expire_time == end
    assert first.HasField("last_use_time")
    assert abs(second.last_use_time.seconds - time.time()) < 60
    assert not second.HasField("expire_time")
    assert not unused.HasField("last_use_time")


def test_tokens(world: World) -> None:
    name = world.name("tokens")
    first = world.organiser.create_user(name)
    user = ChallengeClient(world.server.address, first)
    world.clients.append(user)
    second = user.create_token("laptop")
    listed = next(found for found in world.organiser.list_users() if found.name == name)
    assert [token.name for token in listed.tokens] == ["first", "laptop"]
    user.revoke_token(listed.tokens[0].id)
    assert refused(lambda: list(user.list_challenges())) == (CODES.UNAUTHENTICATED, "INVALID_TOKEN")
    with ChallengeClient(world.server.address, second) as later:
        list(later.list_challenges())
        assert refused(lambda: later.revoke_token(listed.tokens[0].id)) == (CODES.NOT_FOUND, "NOT_FOUND")
        world.organiser.delete_user(name)
        assert refused(lambda: list(later.list_challenges())) == (CODES.UNAUTHENTICATED, "INVALID_TOKEN")
    for token in ("", "sgt_of-another-kind", "sgu_", "sgu_" + "x" * 500):
        with ChallengeClient(world.server.address, token) as nobody:
            assert refused(lambda nobody=nobody: list(nobody.list_challenges())) == (
                CODES.UNAUTHENTICATED,
                "INVALID_TOKEN",
            )
    with world.arena.database() as database, database.reading() as session:
        stored = str(session.connection().exec_driver_sql("SELECT * FROM user_tokens").all())
    assert first not in stored
    assert second not in stored


def test_names_of_users(world: World) -> None:
    """A name is one user's, in whatever case; a removed user's is free again, unless submissions stand under it."""
    free, kept = world.name("free"), world.name("kept")
    for name in (free, kept):
        secret = world.organiser.create_user(name)
        for same in (name, name.upper()):
            with pytest.raises(grpc.RpcError, match=f"there is a user '{name}' already"):
                world.organiser.create_user(same)
    with ChallengeClient(world.server.address, secret) as client:
        world.scored(client, world.challenge(), "kept")
    world.organiser.delete_user(free)
    world.organiser.delete_user(kept)
    assert world.organiser.create_user(free.upper())
    for same in (kept, kept.title()):
        with pytest.raises(grpc.RpcError, match=f"'{kept}' was the name of a user who was removed"):
            world.organiser.create_user(same)
    assert free.upper() in [user.name for user in world.organiser.list_users()]


def test_page_tokens_that_no_list_gave_are_faults(world: World) -> None:
    name = world.challenge()
    stub, metadata = world.organiser._stub, world.organiser._metadata
    for call, request in (
        (stub.ListChallenges, pb.ListChallengesRequest(page_token="a b")),
        (stub.ListUsers, pb.ListUsersRequest(page_token="' OR 1=1")),
        (stub.ListSubmissions, pb.ListSubmissionsRequest(challenge=name, page_token="junk")),
    ):
        with pytest.raises(grpc.RpcError, match="page_token: is not a page token of this list") as caught:
            call(request, metadata=metadata, timeout=20)
        assert caught.value.code() is CODES.INVALID_ARGUMENT


def moment(seconds: float) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(datetime.now(UTC) + timedelta(seconds=seconds))
    return made


def test_dates_and_visibility(world: World) -> None:
    name = world.challenge(close_time=moment(3600), open_time=moment(1800), splits={"val": ["c5"], "test": ["c5"]})
    user = world.user()
    assert refused(lambda: user.submit(name, world.file("early"))) == (CODES.FAILED_PRECONDITION, "NOT_OPEN")
    world.scored(world.organiser, name, "trial")  # organisers may try
    hidden = pb.ChallengeSplit(
        name="val", score_visibility=pb.VISIBILITY_AFTER_CLOSE, leaderboard_visibility=pb.VISIBILITY_ORGANISERS
    )
    world.organiser.update_challenge(name, pb.ChallengeSettings(open_time=Timestamp(), splits=[hidden]))
    done = world.scored(user, name, "dates")
    assert not done.scores
    assert refused(lambda: user.leaderboard(name)) == (CODES.PERMISSION_DENIED, "NOT_VISIBLE")
    assert not user.leaderboard(name, split="test").rows
    assert world.organiser.get_submission(done.id).scores
    assert len(world.organiser.leaderboard(name).rows) == 2
    world.organiser.update_challenge(name, pb.ChallengeSettings(close_time=moment(-1)))
    assert user.get_submission(done.id).scores
    assert refused(lambda: user.leaderboard(name)) == (CODES.PERMISSION_DENIED, "NOT_VISIBLE")
    assert refused(lambda: user.submit(name, world.file("late"))) == (CODES.FAILED_PRECONDITION, "CLOSED")


def test_a_mask_names_the_settings_that_change(world: World) -> None:
    """Without one, what is absent stays; with one, what is named and absent gets its default, and nothing else changes."""
    name = world.challenge()
    boss = world.organiser
    given = pb.ChallengeSettings(title="One", total_limit=7, digits=3, category_images=9)
    assert boss.update_challenge(name, given).settings.category_images == 9
    changed = boss.update_challenge(name, pb.ChallengeSettings(digits=2, total_limit=8), ["digits", "category_images"])
    assert (changed.settings.digits, changed.settings.total_limit) == (2, 7)
    assert (changed.settings.title, changed.settings.category_images) == ("One", 50)
    assert boss.update_challenge(name, pb.ChallengeSettings(), ["title"]).settings.title == name
    for mask in (["nonsense"], ["metrics"], ["name"]):
        found = refused(lambda mask=mask: boss.update_challenge(name, pb.ChallengeSettings(digits=1), mask))
        assert found == (CODES.INVALID_ARGUMENT, "INVALID_FIELDS")
    assert boss.get_challenge(name).challenge.settings.digits == 2


def test_the_leaderboard(world: World) -> None:
    """The best first, equal ones by the earlier time, one row a user: the chosen submission or the latest."""
    name = world.challenge(metrics=["rouge", "spice"], primary_score="ROUGE_L")
    first, second, third = (world.user("board") for _ in range(3))
    best = [{"image_id": key, "caption": texts[0]} for key, texts in world.tools.small.items()]
    path = world.arena.write("captions_val_best_results.json", best)

    def submit(user: ChallengeClient, spaces: int) -> pb.Submission:
        path.write_text(json.dumps(best) + " " * spaces)
        found, _ = user.submit(name, path)
        *_, last = user.watch(found.id)
        return last

    poor = world.scored(third, name, "poor")
    early = submit(first, 1)
    submit(second, 2)
    rows = world.organiser.leaderboard(name).rows
    assert [(row.rank, row.user) for row in rows] == [(1, early.user), (2, rows[1].user), (3, poor.user)]
    assert rows[0].scores[0] == rows[1].scores[0]
    submit(third, 3)  # the latest stands, and comes third because it is the latest
    assert [row.user for row in first.leaderboard(name).rows][-1] == poor.user
    assert first.leaderboard(name).rows[2].scores[0].value == pytest.approx(1.0)
    third.choose(name, poor.id)
    assert first.leaderboard(name).rows[2].scores[0].value < 1.0
    whole = first.leaderboard(name)
    pages = [first.leaderboard(name, page_size=2)]
    pages.append(first.leaderboard(name, page_size=2, page_token=pages[0].next_page_token))
    assert [len(page.rows) for page in pages] == [2, 1]
    assert [row for page in pages for row in page.rows] == list(whole.rows)
    assert (whole.next_page_token, pages[1].next_page_token) == ("", "")
    assert refused(lambda: first.leaderboard(name, page_size=1001)) == (CODES.INVALID_ARGUMENT, "INVALID_FIELDS")
    assert refused(lambda: first.leaderboard(name, page_token="x")) == (CODES.INVALID_ARGUMENT, "INVALID_FIELDS")
    by_category = first.leaderboard(name, score="SPICE_Object")
    assert by_category.score == "SPICE_Object"
    assert by_category.rows[0].rank == 1
    undefined = first.leaderboard(name, score="SPICE_Color").rows
    assert [row.HasField("rank") for row in undefined] == [False] * 3
    third.choose(name, None)
    assert len(first.leaderboard(name).rows) == 2
    assert refused(lambda: first.leaderboard(name, score="Nope")) == (CODES.INVALID_ARGUMENT, "INVALID_FIELDS")
    world.organiser.delete_user(poor.user)
    assert len(first.leaderboard(name).rows) == 2


def test_of_a_score_that_is_better_the_lower_the_lowest_stands_first(world: World) -> None:
    name = world.challenge(metrics=["chair"], primary_score="CHAIRi")
    path = world.arena.write("captions_val_chair_results.json", [])

    def submit(texts: list[str]) -> str:
        path.write_text(json.dumps([{"image_id": key, "caption": text} for key, text in enumerate(texts)]))
        user = world.user("board")
        *_, last = user.watch(user.submit(name, path)[0].id)
        return last.user

    invents = submit(["a zebra and a giraffe"] * 4)
    right = submit([texts[0] for texts in world.tools.small.values()])
    some = submit(["a dog and a zebra", *(texts[0] for texts in list(world.tools.small.values())[1:])])
    found = world.organiser.leaderboard(name)
    assert [(row.rank, row.user) for row in found.rows] == [(1, right), (2, some), (3, invents)]
    assert list(found.lower_is_better) == ["CHAIRi", "CHAIRs"]
    recall = world.organiser.leaderboard(name, score="CHAIR_Recall").rows
    assert [row.user for row in recall][-1] == invents
    page = to_html([found])
    assert 'data-kind="lower" aria-sort="ascending" title="CHAIRi: lower is better"' in page
    assert 'data-kind="score" title="CHAIR_Recall"' in page


def test_old_scores_stand_until_they_are_made_again(world: World) -> None:
    name = world.challenge()
    user = world.user()
    done = world.scored(user, name, "old")
    assert world.organiser.rescore(name) == 0
    with world.arena.database() as database, database.writing() as session:
        session.execute(update(ScoringRun).where(ScoringRun.submission_id == done.id).values(version="0.0.1"))
    old = user.leaderboard(name).rows[0]
    assert (old.origin.version, old.origin.outdated) == ("0.0.1", True)
    assert world.organiser.rescore(name) == 1
    assert world.organiser.rescore(name) == 0  # it waits already
    end = time.monotonic() + 60
    while user.leaderboard(name).rows[0].origin.outdated:
        assert time.monotonic() < end
        time.sleep(0.2)
    new = user.leaderboard(name).rows[0]
    assert new.scores == old.scores
    assert new.create_time == old.create_time
    with world.arena.database() as database, database.reading() as session:
        versions = [
            run.version for run in session.query(ScoringRun).filter_by(submission_id=done.id).order_by(ScoringRun.id)
        ]
    assert versions == ["0.0.1", new.origin.version]  # the old run is kept


def test_wrong_challenges_are_refused(world: World) -> None:
    make = world.tools.challenge
    organiser = world.organiser
    wrong = (CODES.INVALID_ARGUMENT, "INVALID_FIELDS")
    name = world.name("wrong")
    for fields in (
        {"metrics": ["nope"]},
        {"metrics": []},
        {"splits": {}},
        {"splits": {"val": []}},
        {"splits": {"a/b": ["c5"]}},
        {"splits": {"val": ["c5", "c5"]}},
        {"title": "x" * 201},
        {"metrics": ["rouge", "bleu"], "primary_score": "SPICE"},
        {"daily_limit": -1},
        {"open_time": moment(10), "close_time": moment(5)},
    ):
        assert refused(lambda fields=fields: organiser.create_challenge(make(name, **fields))) == wrong
    for bad in ("", "../x", "a b", "x" * 41, "-x"):
        assert refused(lambda bad=bad: organiser.create_challenge(make(bad))) == wrong
    organiser.create_challenge(make(name))
    assert refused(lambda: organiser.create_challenge(make(name))) == (CODES.ALREADY_EXISTS, "NAME_TAKEN")
    assert refused(lambda: world.user().submit(name, world.file("x"))) == (CODES.FAILED_PRECONDITION, "NOT_READY")
    for content in ("{", "[]", '{"annotations": []}', '{"annotations": [{"image_id": 1}]}'):
        path = world.arena.write("bad.json", content)
        assert refused(lambda path=path: organiser.upload_references(name, "val", "c5", path)) == wrong
    assert not organiser.get_challenge(name).challenge.ready
    organiser.delete_challenge(name)
    assert refused(lambda: organiser.get_challenge(name)) == (CODES.NOT_FOUND, "NOT_FOUND")


def test_names_that_no_text_can_hold_are_refused(world: World) -> None:
    """PostgreSQL keeps no NUL; SQLite does, and finds nothing by it. Neither may look like a server in trouble."""
    name = world.challenge()
    for call in (
        lambda: world.organiser.get_challenge("a\0"),
        lambda: world.organiser.get_submission("a\0"),
        lambda: world.organiser.delete_user("a\0"),
        lambda: world.organiser.revoke_token("a\0"),
        lambda: world.organiser.choose(name, "a\0"),
        lambda: world.organiser.create_user("a\0"),
    ):
        assert refused(call)[0] in {CODES.NOT_FOUND, CODES.INVALID_ARGUMENT}


def test_a_name_is_given_once(world: World) -> None:
    name = world.name("twin")
    start = threading.Barrier(8)

    def create(kind: str) -> str:
        start.wait()
        try:
            if kind == "user":
                world.organiser.create_user(name)
            else:
                world.organiser.create_challenge(world.tools.challenge(name))
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    for kind in ("user", "challenge"):
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(create, [kind] * 8))
        assert sorted(answers) == ["ALREADY_EXISTS"] * 7 + ["OK"]


def test_references_are_fixed_once_there_are_submissions(world: World) -> None:
    name = world.challenge()
    path = world.arena.write("same.json", world.tools.annotations(world.tools.small))
    other = world.arena.write("other.json", world.tools.annotations({0: ["something else"]}))
    world.organiser.upload_references(name, "val", "c5", other)
    world.organiser.upload_references(name, "val", "c5", path)
    world.scored(world.user(), name, "fixed")
    world.organiser.upload_references(name, "val", "c5", path)  # the same again does no harm
    fixed = (CODES.FAILED_PRECONDITION, "HAS_SUBMISSIONS")
    assert refused(lambda: world.organiser.upload_references(name, "val", "c5", other)) == fixed
    assert refused(lambda: world.organiser.delete_challenge(name)) == fixed


def test_lists_come_in_pages(world: World) -> None:
    from spicegraph_api.challenge.v1.challenge_pb2_grpc import ChallengeServiceStub

    name = world.challenge()
    user = world.user()
    sent = [user.submit(name, world.file(f"page {n}"))[0].id for n in range(5)]
    metadata = (("authorization", f"Bearer {world.arena.tokens['organiser']}"),)
    with grpc.insecure_channel(world.server.address) as channel:
        stub = ChallengeServiceStub(channel)
        found: list[str] = []
        request = pb.ListSubmissionsRequest(challenge=name, page_size=2)
        while True:
            page = stub.ListSubmissions(request, metadata=metadata)
            found += [submission.id for submission in page.submissions]
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        assert found == sent[::-1]
        users = stub.ListUsers(pb.ListUsersRequest(page_size=1), metadata=metadata)
        assert users.next_page_token == users.users[0].name


def test_an_error_report_is_for_organisers(world: World) -> None:
    name = world.challenge(metrics=["spice"])
    done = world.scored(world.user(), name, "report")
    page = b"".join(world.organiser.report(done.id, image_limit=2)).decode()
    assert page.startswith("<!DOCTYPE html>")
    assert "2 images" in page
    assert "(2 of 4 images, evenly spread)" in page


def test_calls_keep_their_answers_while_submissions_are_scored(world: World) -> None:
    """Submissions are scored in small pieces: a call waits behind one of them at most."""
    from spicegraph_service.client import item

    name = world.name("large")
    images = {n: [f"a dog number {n} runs on the street", f"dog {n} in a street"] for n in range(1500)}
    world.organiser.create_challenge(world.tools.challenge(name, metrics=["spice", "bleu"]))
    path = world.arena.write("large.json", world.tools.annotations(images))
    world.organiser.upload_references(name, "val", "c5", path)
    results = [{"image_id": n, "caption": f"the cat {n} sits on a red table"} for n in images]
    user = world.user()
    sent, _ = user.submit(name, world.arena.write("captions_val_large_results.json", results))
    seconds: list[float] = []
    with Client(world.server.address) as client:
        for found in user.watch(sent.id):
            if found.state == S.SUBMISSION_STATE_RUNNING:
                break
        while user.get_submission(sent.id).state == S.SUBMISSION_STATE_RUNNING and len(seconds) < 40:
            started = time.monotonic()
            client.score([item("1", "a dog on a street", ["a dog in the street"])])
            seconds.append(time.monotonic() - started)
    user.cancel(sent.id) if user.get_submission(sent.id).state == S.SUBMISSION_STATE_RUNNING else None
    assert len(seconds) > 5
    assert sorted(seconds)[len(seconds) // 2] < 0.5  # seconds where chunks were not small


def test_a_server_without_challenges_does_not_load_their_database() -> None:
    program = (
        "import sys; from spicegraph_service.app import Server; from spicegraph_service.config import ServerConfig\n"
        "Server(ServerConfig(address='127.0.0.1:0', store='memory')); assert 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
