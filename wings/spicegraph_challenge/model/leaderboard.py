"""Who stands where: the submissions that users chose, ordered by one of their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
from spicegraph_scorer.core.tokens import SPICE_TEXTS
from spicegraph_scorer.metrics import lower_is_better
from spicegraph_service.kit import wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_service.kit import RequestData, WorkerInfo

_FIRST_ROWS = 10  # whose history is shown
_EQUAL = 6  # decimal places in which equal scores agree


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
    member = account.may(MemberRole.VIEWER, challenge)
    shown = (row for row in rows if member or row.images is None or enough_images(row.images, challenge))
    if member:
        return [pb.CorpusScore(name=row.name, value=row.value, low=row.low, high=row.high) for row in shown]
    return [_rounded_score(row, challenge.settings.digits) for row in shown]


def _rounded_score(row: RunScore, digits: int) -> pb.CorpusScore:
    """Return a rounded score; its interval is rounded outwards, so that it holds the exact score too."""
    unit, slack = 10**digits, 10**-_EQUAL
    value = None if row.value is None else round(row.value, digits)
    low = None if row.low is None else math.floor(row.low * unit + slack) / unit
    high = None if row.high is None else math.ceil(row.high * unit - slack) / unit
    return pb.CorpusScore(name=row.name, value=value, low=low, high=high, digits=digits)


def enough_images(images: int, challenge: Challenge) -> bool:
    """Say whether participants see scores of a category or a domain of so many images."""
    return images >= challenge.settings.category_images or challenge.settings.category_images == 1


def shown_domains(reference_set: SplitReferences, challenge: Challenge, account: Account) -> list[str]:
    """Return the domains of which a caller may see scores."""
    members = account.may(MemberRole.VIEWER, challenge)
    return [name for name, images in reference_set.domains.items() if members or enough_images(images, challenge)]


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
    return has_closed or account.may(MemberRole.VIEWER, challenge)


@dataclass(frozen=True, slots=True)
class _View:
    """Scores on a leaderboard, of a reference set and a domain of its images, as a caller may see them."""

    reference_set: SplitReferences
    domain: str
    account: Account
    # Until the close participants see the order of rounded scores: an exact one would show what rounding hides. Not as
    # soon as the split has closed: until the challenge has, users choose what stands.
    exact: bool

    @property
    def challenge(self) -> Challenge:
        """The leaderboard's challenge."""
        return self.reference_set.split.challenge

    def scores(self, submission: Submission) -> tuple[RunScore, ...]:
        """Return a submission's exact scores."""
        return scores_of(submission.runs[-1], self.reference_set.id, self.domain)

    def shown(self, submission: Submission) -> list[pb.CorpusScore]:
        """Return a submission's scores as the caller may see them."""
        return shown_scores(self.scores(submission), self.challenge, self.account)

    def shown_value(self, submission: Submission, name: str) -> float | None:
        """Return one of them."""
        named = (score.value for score in self.shown(submission) if score.name == name and score.HasField("value"))
        return next(named, None)

    def key(self, submission: Submission, by: str) -> tuple[tuple[bool, float], ...]:
        """Return a submission's sort key: by both ranking scores, missing ones last."""
        settings = self.challenge.settings
        lowest = lower_is_better(settings.metrics)
        signs = {name: 1 if name in lowest else -1 for name in (by, settings.secondary_score) if name}
        values = [(sign, self._ranking_value(submission, name)) for name, sign in signs.items()]
        return tuple((value is None, sign * round(value or 0.0, _EQUAL)) for sign, value in values)

    def _ranking_value(self, submission: Submission, name: str) -> float | None:
        if not self.exact:
            return self.shown_value(submission, name)
        return next((score.value for score in self.scores(submission) if score.name == name), None)


def standing(
    session: Session, reference_set: SplitReferences, request: pb.GetLeaderboardRequest, account: Account, now: datetime
) -> Standing:
    """Return the leaderboard of a split: one row per user or team, the best first, equal ones by the second score."""
    split, domain = reference_set.split, request.domain
    if domain:
        _check_domain(domain, shown_domains(reference_set, split.challenge, account))
    view = _View(reference_set, domain, account, _is_exact(split.challenge, account, now))
    submissions, chosen = _submissions(session, split), _choices(session, split)
    entries = list(filter(view.scores, _entries(submissions, chosen)))
    names = dict.fromkeys(score.name for entry in entries for score in view.shown(entry))
    by = _ranking_score(request.score, split.challenge, list(names))
    ranked = tuple(_ranked(entries, view, by))
    first = {row.submission.user.entrant for row in ranked[:_FIRST_ROWS]}
    stood = [each for each in submissions if chosen.get(each.user.entrant, each.id) == each.id]
    history = _history((each for each in stood if each.user.entrant in first), view, by)
    return Standing(reference_set, domain, by, ranked, tuple(history))


def _history(submissions: Iterable[Submission], view: _View, by: str) -> Iterator[tuple[Submission, float]]:
    """Yield the submissions whose value the caller may see, with it."""
    for submission in submissions:
        value = view.shown_value(submission, by)
        if value is not None:
            yield submission, value


def _check_domain(domain: str, known: Sequence[str]) -> None:
    if domain not in known:
        raise wrong("domain", f"there is no domain {domain!a}; there are {', '.join(known) or 'none'}")


def _ranked(entries: Iterable[Submission], view: _View, by: str) -> Iterator[BoardRow]:
    """Yield submissions as rows in their order; those with a score have ranks."""
    rows = [(view.key(entry, by), entry) for entry in entries]
    rows.sort(key=lambda row: (row[0], row[1].created, row[1].id))
    for rank, (key, entry) in enumerate(rows, start=1):
        is_scored = bool(by) and not key[0][0]
        yield BoardRow(rank if is_scored else None, entry, view.scores(entry))


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
    """Return the chosen submission's id by user or team."""
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
