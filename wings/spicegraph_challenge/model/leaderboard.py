"""Who stands where: the submissions that users chose, ordered by one of their scores."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import selectinload

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.accounts import Account, denied
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
    User,
)
from spicegraph_challenge.model.settings import ALL_DIGITS
from spicegraph_scorer.core.tokens import SPICE_TEXTS
from spicegraph_scorer.metrics import lower_is_better
from spicegraph_service.kit import wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_service.kit import RequestData, WorkerInfo

_FIRST_ROWS = 10  # whose history is shown
_DIGITS = 4  # decimal places of scores that are shown in full, and the most that participants see
_WORD = 0.55
_LARGEST_STEP = 0.1
_EQUAL = 6  # decimal places in which equal scores agree
_HIGHEST_DRAW = 65_535
_ROUNDING = 1e-9


def signatures_of(workers: WorkerInfo, names: Iterable[str], given: RequestData) -> dict[str, dict[str, str]]:
    """Return the signatures of metrics in a challenge that gives them a text to parse and a style of graphs."""
    signatures = {metric.name: metric.signature for metric in workers.metrics}
    parsing = workers.parsing
    text = {"text": SPICE_TEXTS[given.spice_text]}
    graphs = {"pipeline": workers.scene_pipeline} if given.graph_style == "scene" else {}
    return {
        name: {**signatures.get(name, {}), **(text if parsing.get(name) else {}), **(graphs if name in parsing else {})}
        for name in names
    }


def is_current(run: ScoringRun, workers: WorkerInfo) -> bool:
    """Say whether a run's scores would come out the same today."""
    wanted = signatures_of(workers, run.signatures, run.submission.challenge.given)
    return run.version == workers.version and run.signatures == wanted


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A submission on the leaderboard."""

    rank: int | None  # none where its score is undefined
    submission: Submission
    scores: tuple[RunScore, ...]
    places: tuple[int, int] | None  # the best and the worst that exact scores allow; none where ranks are by these


@dataclass(frozen=True, slots=True)
class Standing:
    """A leaderboard: rows in order, the score that orders them, and how the first ones came there."""

    reference_set: SplitReferences
    domain: str
    score: str
    rows: tuple[BoardRow, ...]
    history: tuple[tuple[Submission, float], ...]


def visible(when: pb.Visibility.ValueType, split: Split, account: Account, now: datetime) -> bool:
    """Say whether a caller may see something of a split."""
    if account.may(MemberRole.VIEWER, split.challenge):
        return True
    if when == pb.VISIBILITY_AFTER_CLOSE:
        return any(closes is not None and now >= closes for closes in (split.closes, split.challenge.closes))
    return when != pb.VISIBILITY_ORGANISERS


def shown_scores(rows: Iterable[RunScore], challenge: Challenge, account: Account) -> list[pb.CorpusScore]:
    """Return scores as a caller may see them: participants see rounded ones, and no category of few images."""
    # A score and its interval are moved by up to one step, then rounded to whole ones: always so for a file. Noise
    # before rounding (halves up: to even ones, a step could become two) leaves no value at which a small change shows.
    # All three move by the same: ends with draws of their own would tell three times as much.
    member = account.may(MemberRole.VIEWER, challenge)
    shown = []
    for row in rows:
        if not (member or row.images is None or enough_images(row.images, challenge)):
            continue
        ends, digits = (row.value, row.low, row.high), challenge.settings.digits
        if member or digits == ALL_DIGITS:
            shown.append(pb.CorpusScore(name=row.name, value=row.value, low=row.low, high=row.high, digits=_DIGITS))
            continue
        steps, digits = _step(row, challenge)
        moved = 2 * row.draw / _HIGHEST_DRAW - 1 if challenge.settings.noise else 0.0
        unit = 10**digits
        value, low, high = (
            None if end is None else max(math.floor(end * unit / steps + moved + 0.5) * steps, 0) / unit for end in ends
        )
        within = _reach((steps, digits), challenge)
        shown.append(pb.CorpusScore(name=row.name, value=value, low=low, high=high, digits=digits, within=within))
    return shown


def _reach(step: tuple[int, int], challenge: Challenge) -> float:
    """Return how far a shown score may be from its exact one: half a step, and noise moves it by up to one more."""
    steps, digits = step
    reach: float = (0.5 + challenge.settings.noise) * steps / 10**digits
    return reach


def _step(row: RunScore, challenge: Challenge) -> tuple[int, int]:
    """Return the steps that participants see a score in, units of the last decimal place, and the number of places."""
    images = row.reference_set.image_count if row.images is None else row.images
    digits = challenge.settings.digits
    return (1, digits) if digits else last_place(images, row.places, challenge.asked)


def enough_images(images: int, challenge: Challenge) -> bool:
    """Say whether participants see scores of a category or a domain of so many images."""
    return images >= challenge.settings.category_images or challenge.settings.category_images == 1


def shown_domains(reference_set: SplitReferences, challenge: Challenge, account: Account) -> list[str]:
    """Return the domains of which a caller may see scores."""
    members = account.may(MemberRole.VIEWER, challenge)
    return [name for name, images in reference_set.domains.items() if members or enough_images(images, challenge)]


def last_place(images: int, places: int, submissions: int) -> tuple[int, int]:
    """Return the steps that scores are shown in: units of the last decimal place, and the number of places."""
    # A step hides one image's score (``places``), and in the sum over all submissions what a word adds to an image:
    # that sum grows with their number, noise with the root of it. The constant is the smallest with which group
    # testing reaches an area of .60 at most (``bench/group_testing.py``).
    least = max(10.0**-places, min(_WORD * math.sqrt(submissions) / max(images, 1), _LARGEST_STEP))
    digits = min(math.ceil(-math.log10(least) - _ROUNDING), _DIGITS)
    return math.ceil(least * 10**digits - _ROUNDING), digits


def check_visible(split: Split, account: Account, now: datetime) -> None:
    """Check that a caller may see the leaderboard of a split."""
    visibility = split.settings.leaderboard_visibility
    if not visible(visibility, split, account, now):
        when = "not shown to participants" if visibility == pb.VISIBILITY_ORGANISERS else "shown later"
        raise denied(f"the leaderboard of the split {split.name!r} is {when}", reason="NOT_VISIBLE")


def _ranking_score(score: str, challenge: Challenge, names: Sequence[str]) -> str:
    """Return the score that ranks: the one asked for, the challenge's, or else the first that there is."""
    if score and names and score not in names:
        raise wrong("score", f"there is no score {score!a}; there are {', '.join(names)}")
    by = score or challenge.settings.primary_score
    return by if by and (by in names or not names) else names[0] if names else ""


def _is_exact(challenge: Challenge, account: Account, now: datetime) -> bool:
    has_closed = challenge.closes is not None and now >= challenge.closes
    return has_closed or account.may(MemberRole.VIEWER, challenge) or challenge.settings.digits == ALL_DIGITS


def standing(
    session: Session, reference_set: SplitReferences, request: pb.GetLeaderboardRequest, account: Account, now: datetime
) -> Standing:
    """Return the leaderboard of a split: one row per user or team, the best first, equal ones by the second score."""
    split, domain, score = reference_set.split, request.domain, request.score
    challenge = split.challenge
    domains = shown_domains(reference_set, challenge, account)
    if domain and domain not in domains:
        raise wrong("domain", f"there is no domain {domain!a}; there are {', '.join(domains) or 'none'}")
    submissions, chosen = _submissions(session, split), _choices(session, split)
    rows = [
        (submission, scores)
        for submission in _entries(submissions, chosen)
        if (scores := scores_of(submission.runs[-1], reference_set.id, domain))
    ]
    seen = (row.name for _, scores in rows for row in shown_scores(scores, challenge, account))
    names = list(dict.fromkeys(seen))
    by = _ranking_score(score, challenge, names)

    def shown_value(submission: Submission, name: str = by) -> float | None:
        scores = shown_scores(scores_of(submission.runs[-1], reference_set.id, domain), challenge, account)
        return next((shown.value for shown in scores if shown.name == name and shown.HasField("value")), None)

    # Until the close participants see the order of what they see: an exact one would show what noise hides. Not as
    # soon as the split has closed: until the challenge has, users choose what stands.
    exact = _is_exact(challenge, account, now)
    lowest = lower_is_better(challenge.settings.metrics)

    def order(row: tuple[Submission, tuple[RunScore, ...]]) -> tuple[tuple[bool, float], ...]:
        submission, scores = row
        values = []
        for name in filter(None, (by, challenge.settings.secondary_score)):
            known = (score.value for score in scores if score.name == name)
            value = next(known, None) if exact else shown_value(submission, name)
            values.append((value is None, (1 if name in lowest else -1) * round(value or 0.0, _EQUAL)))
        return tuple(values)

    rows.sort(key=lambda row: (order(row), row[0].created, row[0].id))
    scored = sum(not order(row)[0][0] for row in rows) if by else 0
    places: list[tuple[int, int]] = []
    if not exact:
        named = (score for _, scores in rows[:scored] for score in scores if score.name == by)
        reach = [_reach(_step(score, challenge), challenge) for score in named]
        places = possible_places([order(row)[0][1] for row in rows[:scored]], reach)
    ranked = tuple(
        BoardRow(rank if rank <= scored else None, submission, scores, between)
        for rank, ((submission, scores), between) in enumerate(zip_longest(rows, places), start=1)
    )
    first = {row.submission.user.entrant for row in ranked[:_FIRST_ROWS]}
    history = tuple(
        (submission, value)
        for submission in submissions
        if submission.user.entrant in first
        and chosen.get(submission.user.entrant, submission.id) == submission.id
        and (value := shown_value(submission)) is not None
    )
    return Standing(reference_set, domain, by, ranked, history)


def possible_places(values: Sequence[float], reach: Sequence[float]) -> list[tuple[int, int]]:
    """Return the first and the last place that each value may have if it is as far off as this; the lowest is first."""
    low, high = ([value + sign * far for value, far in zip(values, reach, strict=True)] for sign in (-1, 1))
    lowest, highest = sorted(low), sorted(high)
    return [
        (1 + bisect_left(highest, start - _ROUNDING), bisect_right(lowest, end + _ROUNDING))
        for start, end in zip(low, high, strict=True)
    ]


def stands(session: Session, submission: Submission) -> bool:
    """Say whether a submission stands on the leaderboards of all its splits."""
    return submission.state is State.SUCCEEDED and all(
        submission in _entries(_submissions(session, part.split), _choices(session, part.split))
        for part in submission.files
    )


def scores_of(run: ScoringRun, reference_set_id: int, domain: str) -> tuple[RunScore, ...]:
    """Return a run's scores of the images of a domain, or, where it is empty, of all."""
    return tuple(row for row in run.scores if (row.reference_set_id, row.domain) == (reference_set_id, domain))


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


def _choices(session: Session, split: Split) -> Mapping[str, str | None]:
    """Return what was chosen by user or team."""
    query = select(User, Choice.submission_id).join(Choice).where(Choice.challenge_id == split.challenge_id)
    return {user.entrant: submission_id for user, submission_id in session.execute(query.order_by(User.id))}


def _entries(submissions: Iterable[Submission], chosen: Mapping[str, str | None]) -> list[Submission]:
    """Return the entry of each user or team: the chosen submission, or, without results for the split, the latest."""
    entries: dict[str, Submission] = {}
    for submission in submissions:
        entrant = submission.user.entrant
        standing = entries.get(entrant)
        hidden = entrant in chosen and chosen[entrant] is None
        if not hidden and (standing is None or standing.id != chosen.get(entrant)):
            entries[entrant] = submission
    return list(entries.values())


def rescore(session: Session, challenge: Challenge, workers: WorkerInfo, *, everything: bool) -> int:
    """Have submissions scored again, behind all that wait; return how many."""
    query = (
        select(Submission)
        .where(Submission.challenge_id == challenge.id, Submission.state == State.SUCCEEDED)
        .order_by(Submission.created)
        .options(selectinload(Submission.runs), selectinload(Submission.job))
    )
    count = 0
    for submission in session.scalars(query):
        if submission.job is None and (everything or not is_current(submission.runs[-1], workers)):
            session.add(Job(kind=JobKind.RESCORE, submission_id=submission.id))
            count += 1
    return count
