"""Phases, splits with dates and limits of their own, and teams, whose members have limits and a row together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model import accounts, catalogue, leaderboard
from spicegraph_challenge.model.accounts import NOBODY, Account
from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import JobKind, MemberRole, Role, State
from spicegraph_challenge.model.settings import changed, violations_of, with_defaults
from spicegraph_challenge.pages.tables import challenge_view
from spicegraph_challenge.queue import submissions
from spicegraph_challenge.sandbox.tasks import Finished, TaskScore
from spicegraph_service.kit import CallError, rendered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy.orm import Session

    from spicegraph_challenge.model.schema import Challenge, Submission

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
_numbers = count()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Database(str(tmp_path / "challenges.db")) as database, database.writing() as opened:
        yield opened


def make_challenge(session: Session, **fields: object) -> Challenge:
    """A challenge with the phases dev and test, of which test has these settings; its references are there."""
    splits = [
        pb.ChallengeSplit(name="dev", reference_sets=[pb.ChallengeReferenceSet(name="c5")]),
        pb.ChallengeSplit(
            name="test", reference_sets=[pb.ChallengeReferenceSet(name=name) for name in ("c5", "c40")], **fields
        ),
    ]
    settings = pb.ChallengeSettings(metrics=["bleu"], splits=splits)
    owner, _ = accounts.add_user(session, f"owner{next(_numbers)}", Role.ORGANISER, NOW)
    challenge = catalogue.add_challenge(session, Account.of(owner), "coco", settings, NOW)
    for split in challenge.splits:
        for reference_set in split.reference_sets:
            reference_set.file = "f"
    session.flush()
    return challenge


def user(session: Session, name: str, team: str = "") -> Account:
    made, _ = accounts.add_user(session, name, Role.PARTICIPANT, NOW, team=team)
    return Account.of(made)


def submit(
    session: Session, account: Account, *splits: str, named: str = "", at: datetime = NOW, value: float | None = None
) -> Submission:
    """Accept a submission and read its file, which holds these splits; with a value, score it, too."""
    number = next(_numbers)
    new = pb.SubmissionSettings(challenge="coco", method=f"m{number}", file_name="r.zip", split=named)
    submission, _ = submissions.accept(session, account, new, (f"{number:064}", 1), at)
    files = {split.id: ("f", 0) for split in submission.challenge.splits if split.name in splits}
    lease = submissions.claim(session, [JobKind.VALIDATE], "us", at, 9)
    assert lease is not None
    submissions.end_validated(session, lease, files)
    if value is not None:
        lease = submissions.claim(session, [JobKind.SCORE], "us", at, 9)
        assert lease is not None
        row = TaskScore("Bleu_1", value, value, value, None)
        sets = [
            each.id for split in submission.challenge.splits if split.name in splits for each in split.reference_sets
        ]
        scores = {set_id: Finished((row,)) for set_id in sets}
        submissions.end_scored(session, lease, at, version="1", signatures={}, scores=scores)
    session.flush()
    session.expire_all()
    return submission


def rows(session: Session, challenge: Challenge, account: Account) -> list[tuple[str, str]]:
    board = leaderboard.standing(
        session, challenge.splits[1].reference_sets[0], pb.GetLeaderboardRequest(), account, NOW + DAY
    )
    return [(row.submission.user.entrant, row.submission.id) for row in board.rows]


def test_a_phase_has_a_limit_beside_the_challenge_s(session: Session) -> None:
    challenge = make_challenge(session, phase_daily_limit=1, phase_total_limit=2)
    ann = user(session, "ann")
    assert submit(session, ann, "test", named="test").state is State.QUEUED
    assert submit(session, ann, "dev", named="dev").state is State.QUEUED
    with pytest.raises(CallError, match=r"1 submissions a day \(UTC\) for the split 'test' is used up"):
        submit(session, ann, "test", named="test")
    failed = submit(session, ann, "dev", "test")  # a zip: what is in it is known later
    assert (failed.state, failed.failure) == (State.FAILED, "SUBMISSION_LIMIT")
    assert submit(session, ann, "test", named="test", at=NOW + DAY).state is State.QUEUED
    with pytest.raises(CallError, match="the limit of 2 submissions for the split 'test' is used up"):
        submit(session, ann, "test", named="test", at=NOW + 2 * DAY)
    part = submissions.usage(session, challenge.splits[1], ann, NOW + DAY)
    assert (part.today, part.total, part.left) == (1, 2, 0)
    whole = submissions.usage(session, challenge, ann, NOW + DAY)
    assert (whole.today, whole.total, whole.left) == (1, 3, 4)
    assert submit(session, user(session, "bob"), "test", named="test").state is State.QUEUED


def test_a_phase_opens_and_closes_by_itself(session: Session) -> None:
    after, hidden = pb.VISIBILITY_AFTER_CLOSE, pb.VISIBILITY_ORGANISERS
    challenge = make_challenge(session, score_visibility=after, leaderboard_visibility=hidden)
    for field, moment in (("phase_open_time", NOW), ("phase_close_time", NOW + DAY)):
        change = pb.ChallengeSettings(splits=[pb.ChallengeSplit(name="test")])
        getattr(change.splits[0], field).FromDatetime(moment)
        catalogue.change_challenge(challenge, change)
    session.flush()
    ann, split = user(session, "ann"), challenge.splits[1]
    with pytest.raises(CallError, match="the split 'test' opens at 2030-06-01 12:00:00 UTC"):
        submit(session, ann, "test", named="test", at=NOW - DAY)
    assert submit(session, ann, "dev", "test", at=NOW - DAY).failure == "NOT_OPEN"
    assert submit(session, ann, "dev", "test").state is State.QUEUED
    assert submit(session, ann, "dev", "test", at=NOW + DAY).failure == "CLOSED"
    with pytest.raises(CallError, match="the split 'test' closed at 2030-06-02 12:00:00 UTC"):
        submit(session, ann, "test", named="test", at=NOW + DAY)
    catalogue.set_member(session, owner_of(challenge), "coco", accounts.find_user(session, "ann"), MemberRole.ORGANISER)
    session.refresh(accounts.find_user(session, "ann"))
    tester = Account.of(accounts.find_user(session, "ann"))
    assert submit(session, tester, "test", at=NOW - DAY).state is State.QUEUED
    assert not leaderboard.visible(split.settings.score_visibility, split, NOBODY, NOW)
    assert leaderboard.visible(split.settings.score_visibility, split, NOBODY, NOW + DAY)
    assert not leaderboard.visible(split.settings.leaderboard_visibility, split, NOBODY, NOW + DAY)


def owner_of(challenge: Challenge) -> Account:
    return Account.of(challenge.members[0].user)


def test_settings_of_phases_are_changed_and_checked() -> None:
    stored = pb.ChallengeSettings(splits=[pb.ChallengeSplit(name="test", phase_daily_limit=3, phase_total_limit=9)])
    change = pb.ChallengeSettings(splits=[pb.ChallengeSplit(name="test", phase_daily_limit=0)])
    change.splits[0].phase_open_time.FromDatetime(NOW)
    (split,) = changed(stored, change).splits
    assert (split.phase_daily_limit, split.phase_total_limit) == (0, 9)
    split.phase_close_time.FromDatetime(NOW)
    split.phase_total_limit = -1
    faults = [field for field, _ in violations_of(with_defaults(pb.ChallengeSettings(splits=[split])))]
    assert faults == ["splits[0].phase_total_limit", "splits[0].phase_close_time"]


def test_phases_are_shown() -> None:
    split = pb.ChallengeSplit(name="test", reference_sets=[pb.ChallengeReferenceSet(name="c5")], phase_total_limit=5)
    split.phase_close_time.FromDatetime(NOW)
    answer = pb.GetChallengeResponse(challenge=pb.Challenge(settings=pb.ChallengeSettings(splits=[split])))
    answer.quota.phases.add(split="test", used_today=1, used_total=4, left=1)
    text = " ".join(rendered(challenge_view(answer)).split())
    assert "of them for test: 1 today, 4 in all; left now: 1" in text
    assert "2030-06-01" in text


def test_a_team_has_one_budget_and_one_row(session: Session) -> None:
    challenge = make_challenge(session, phase_daily_limit=2)
    ann, bob, eve = user(session, "ann", "us"), user(session, "bob", "us"), user(session, "eve")
    first = submit(session, ann, "test", value=0.5)
    second = submit(session, bob, "test", value=0.4, at=NOW + timedelta(minutes=1))
    other = submit(session, eve, "test", value=0.3)
    for member in (ann, bob):
        assert submit(session, member, "test").failure == "SUBMISSION_LIMIT"
        assert submissions.usage(session, challenge, member, NOW).total == 2
    assert rows(session, challenge, eve) == [("us", second.id), ("eve", other.id)]
    submissions.choose(session, bob, "coco", first.id, NOW)
    assert rows(session, challenge, eve) == [("us", first.id), ("eve", other.id)]
    submissions.choose(session, ann, "coco", None, NOW)  # the last choice counts, whoever of them made it
    assert rows(session, challenge, eve) == [("eve", other.id)]
    assert submissions.find_submission(session, bob, first.id) is first
    with pytest.raises(CallError, match="no submission"):
        submissions.find_submission(session, eve, first.id)
    with pytest.raises(CallError, match="no submission"):
        submissions.choose(session, eve, "coco", first.id, NOW)
    listed = submissions.list_submissions(session, ann, challenge, user="bob", after="", count=9)
    assert second in listed
    assert first not in listed


def test_who_leaves_a_team_counts_alone(session: Session) -> None:
    challenge = make_challenge(session)
    submit(session, user(session, "ann", "us"), "test", value=0.5)
    submit(session, user(session, "bob", "us"), "test", value=0.4)
    ann = Account.of(accounts.set_team(session, "ann", ""))
    assert submissions.usage(session, challenge, ann, NOW).total == 1
    assert [name for name, _ in rows(session, challenge, ann)] == ["ann", "us"]


@pytest.mark.parametrize("name", ["ann", "ANN", "US", "a b"])
def test_a_team_s_name_is_no_other_name(session: Session, name: str) -> None:
    user(session, "ann")
    user(session, "bob", "us")
    with pytest.raises(CallError):
        accounts.set_team(session, "ann", name)
    if name == "US":
        with pytest.raises(CallError, match="there is a team 'US' already"):
            user(session, "US")
