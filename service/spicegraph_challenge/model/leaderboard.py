"""Who stands where: the submissions that users chose, ordered by one of their scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import selectinload

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.schema import (
    Challenge,
    Choice,
    Job,
    JobKind,
    MemberRole,
    RunScore,
    ScoringRun,
    Split,
    SplitReferences,
    State,
    Submission,
    SubmissionFile,
)
from spicegraph_challenge.model.settings import ALL_DIGITS
from spicegraph_scorer.core.tokens import SPICE_TEXTS
from spicegraph_scorer.metrics import lower_is_better
from spicegraph_service.kit import WorkerInfo, denied, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_challenge.model.accounts import Account
    from spicegraph_service.kit import RequestData


_FIRST_ROWS = 10  # whose history is shown
_DIGITS = 4  # decimal places of scores that are shown in full


@dataclass(frozen=True, slots=True)
class ScorerVersion:
    """What scores now: the package's version, the metrics' signatures, and the names of each metric's scores.

    ``workers`` says which metrics need parses, of which texts, and which pipelines give them.
    """

    version: str
    signatures: Mapping[str, Mapping[str, str]]
    scores: Mapping[str, tuple[str, ...]]
    workers: WorkerInfo = field(default_factory=WorkerInfo)

    def signatures_of(self, names: Iterable[str], given: RequestData) -> dict[str, dict[str, str]]:
        """Return the signatures of metrics in a challenge that gives them a text to parse and a style of graphs."""
        parsing = self.workers.parsing
        text = {"text": SPICE_TEXTS[given.spice_text]}
        graphs = {"pipeline": self.workers.scene_pipeline} if given.graph_style == "scene" else {}
        return {
            name: {
                **self.signatures.get(name, {}),
                **(text if parsing.get(name) else {}),
                **(graphs if name in parsing else {}),
            }
            for name in names
        }

    def is_of(self, run: ScoringRun) -> bool:
        """Say whether a run's scores would come out the same today."""
        wanted = self.signatures_of(run.signatures, run.submission.challenge.given)
        return run.version == self.version and run.signatures == wanted


class ShownScore(NamedTuple):
    """A corpus score with its interval, as a caller may see it, and the decimal places to write it with."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    digits: int


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A submission on the leaderboard; ``rank`` is ``None`` where its score is undefined."""

    rank: int | None
    submission: Submission
    run: ScoringRun
    scores: tuple[RunScore, ...]


class BoardPoint(NamedTuple):
    """A score of a user's submission, as the caller may see it."""

    user: str
    created: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Standing:
    """A leaderboard: rows in order, the score that orders them, and how the first ones came there."""

    challenge: Challenge
    split: Split
    reference_set: SplitReferences
    score: str
    rows: tuple[BoardRow, ...]
    history: tuple[BoardPoint, ...]


def visible(when: pb.Visibility.ValueType, challenge: Challenge, account: Account, now: datetime) -> bool:
    """Say whether a caller may see something."""
    return account.may(MemberRole.VIEWER, challenge) or _SHOWN[when](challenge, now)


def _always(_challenge: Challenge, _now: datetime) -> bool:
    return True


def _closed(challenge: Challenge, now: datetime) -> bool:
    return challenge.closes is not None and now >= challenge.closes


def _never(_challenge: Challenge, _now: datetime) -> bool:
    return False


_SHOWN: Mapping[pb.Visibility.ValueType, Callable[[Challenge, datetime], bool]] = {
    pb.VISIBILITY_UNSPECIFIED: _always,
    pb.VISIBILITY_ALWAYS: _always,
    pb.VISIBILITY_AFTER_CLOSE: _closed,
    pb.VISIBILITY_ORGANISERS: _never,
}


def shown_scores(rows: Iterable[RunScore], challenge: Challenge, account: Account) -> tuple[ShownScore, ...]:
    """Return scores as a caller may see them: participants see rounded ones, and no category of few images."""
    if account.may(MemberRole.VIEWER, challenge):
        return tuple(ShownScore(row.name, row.value, row.low, row.high, _DIGITS) for row in rows)
    return tuple(
        ShownScore(
            row.name,
            *_with_noise(row, challenge),
            _digits(row, challenge) or _DIGITS,
        )
        for row in rows
        if _rests_on_enough(row, challenge)
    )


def _rests_on_enough(row: RunScore, challenge: Challenge) -> bool:
    least = challenge.settings.category_images
    return row.images is None or least == 1 or row.images >= least


def _rounded(value: float | None, row: RunScore, challenge: Challenge) -> float | None:
    digits = _digits(row, challenge)
    return value if value is None or digits is None else round(value, digits)


def _with_noise(row: RunScore, challenge: Challenge) -> tuple[float | None, float | None, float | None]:
    """Return a score and its interval, rounded, the last place up to one too high or low: always so for a file.

    The interval moves with the score, at rounded distances: three numbers that were rounded one by one would tell three
    times as much.
    """
    value, digits = _rounded(row.value, row, challenge), _digits(row, challenge)
    if digits is None or not challenge.settings.noise:
        return value, _rounded(row.low, row, challenge), _rounded(row.high, row, challenge)
    if value is None or row.value is None:
        return None, None, None
    value = max(round(value + (row.draw - 1) * 10.0**-digits, digits), 0.0)
    below, above = (
        None if end is None else round(value + round(end - row.value, digits), digits) for end in (row.low, row.high)
    )
    return value, below, above


def _digits(row: RunScore, challenge: Challenge) -> int | None:
    """Return the decimal places that participants see; ``None``: all."""
    digits = challenge.settings.digits
    return None if digits == ALL_DIGITS else digits or row.places


def check_visible(split: Split, challenge: Challenge, account: Account, now: datetime) -> None:
    """Check that a caller may see the leaderboard of a split.

    Raises:
        CallError: PERMISSION_DENIED.
    """
    visibility = split.settings.leaderboard_visibility
    if not visible(visibility, challenge, account, now):
        when = "not shown to participants" if visibility == pb.VISIBILITY_ORGANISERS else "shown later"
        raise denied(f"the leaderboard of the split {split.name!r} is {when}", reason="NOT_VISIBLE")


def standing(session: Session, split: Split, reference_set: SplitReferences, score: str, account: Account) -> Standing:
    """Return the leaderboard of a split: one submission per user, the best first, equal ones by the earlier time.

    Scores that participants see as equal are equal: a rank must not tell more than the score.

    Raises:
        CallError: INVALID_ARGUMENT: there is no such score.
    """
    challenge = split.challenge
    rows = []
    submissions = _submissions(session, split)
    chosen = _choices(session, split)
    for submission in _entries(submissions, chosen):
        run = submission.runs[-1]
        scores = _against(run, reference_set)
        if scores:
            rows.append((submission, run, scores))
    seen = (row.name for _, _, scores in rows for row in shown_scores(scores, challenge, account))
    names = list(dict.fromkeys(seen))
    by = score or challenge.settings.primary_score or (names[0] if names else "")
    if by and names and by not in names:
        if score:
            raise wrong("score", f"there is no score {by!a}; there are {', '.join(names)}")
        by = names[0]
    ranked = _ranked(rows, by, challenge)
    first = {row.submission.user_id for row in ranked[:_FIRST_ROWS]}

    def shown_value(submission: Submission) -> float | None:
        scores = shown_scores(_against(submission.runs[-1], reference_set), challenge, account)
        return next((shown.value for shown in scores if shown.name == by), None)

    history = tuple(
        BoardPoint(submission.user.name, submission.created, value)
        for submission in submissions
        if submission.user_id in first
        and chosen.get(submission.user_id, submission.id) == submission.id
        and (value := shown_value(submission)) is not None
    )
    return Standing(challenge, split, reference_set, by, ranked, history)


def stands(session: Session, submission: Submission) -> bool:
    """Say whether a submission stands on the leaderboards of all its splits."""
    return submission.state is State.SUCCEEDED and all(
        submission in _entries(_submissions(session, part.split), _choices(session, part.split))
        for part in submission.files
    )


def _against(run: ScoringRun, reference_set: SplitReferences) -> tuple[RunScore, ...]:
    return tuple(row for row in run.scores if row.reference_set_id == reference_set.id)


def _submissions(session: Session, split: Split) -> Sequence[Submission]:
    """Return the submissions with results for a split that succeeded, the oldest first."""
    query = (
        select(Submission)
        .join(SubmissionFile)
        .where(SubmissionFile.split_id == split.id, Submission.state == State.SUCCEEDED)
        .order_by(Submission.created, Submission.id)
        .options(selectinload(Submission.user), selectinload(Submission.runs).selectinload(ScoringRun.scores))
    )
    return session.scalars(query).all()


def _choices(session: Session, split: Split) -> Mapping[int, str | None]:
    choices = session.scalars(select(Choice).where(Choice.challenge_id == split.challenge_id))
    return {choice.user_id: choice.submission_id for choice in choices}


def _entries(submissions: Iterable[Submission], chosen: Mapping[int, str | None]) -> list[Submission]:
    """Return each user's entry: the chosen submission, or the latest that succeeded, if that has no results for it."""
    entries: dict[int, Submission] = {}
    for submission in submissions:
        user = submission.user_id
        standing = entries.get(user)
        hidden = user in chosen and chosen[user] is None
        if not hidden and (standing is None or standing.id != chosen.get(user)):
            entries[user] = submission
    return list(entries.values())


def _ranked(
    rows: Sequence[tuple[Submission, ScoringRun, tuple[RunScore, ...]]], score: str, challenge: Challenge
) -> tuple[BoardRow, ...]:
    sign = 1 if score in lower_is_better(challenge.settings.metrics) else -1

    def order(row: tuple[Submission, ScoringRun, tuple[RunScore, ...]]) -> tuple[bool, float, datetime, str]:
        value = _value(row[2], score, challenge)
        return value is None, sign * (value or 0.0), row[0].created, row[0].id

    ordered = sorted(rows, key=order)
    return tuple(
        BoardRow(rank if _value(scores, score, challenge) is not None else None, submission, run, scores)
        for rank, (submission, run, scores) in enumerate(ordered, start=1)
    )


def _value(scores: Sequence[RunScore], name: str, challenge: Challenge) -> float | None:
    """Return a score as it ranks: rounded, since a rank must not tell more than the score."""
    return next((_rounded(row.value, row, challenge) for row in scores if row.name == name), None)


def rescore(session: Session, challenge: Challenge, current: ScorerVersion, *, everything: bool) -> int:
    """Have submissions scored again, behind all that wait; return how many."""
    query = (
        select(Submission)
        .where(Submission.challenge_id == challenge.id, Submission.state == State.SUCCEEDED)
        .order_by(Submission.created)
        .options(selectinload(Submission.runs), selectinload(Submission.job))
    )
    count = 0
    for submission in session.scalars(query):
        if submission.job is None and (everything or not current.is_of(submission.runs[-1])):
            session.add(Job(kind=JobKind.RESCORE, submission_id=submission.id))
            count += 1
    return count
