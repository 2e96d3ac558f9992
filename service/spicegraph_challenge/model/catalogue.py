"""Challenges: created, changed, found; their references put in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, select
from sqlalchemy.exc import IntegrityError

from spicegraph_challenge.model.accounts import check_name
from spicegraph_challenge.model.schema import (
    Challenge,
    Job,
    JobKind,
    Member,
    MemberRole,
    ReferenceSet,
    Split,
    Submission,
    User,
    Visibility,
)
from spicegraph_service.rpc.status import name_taken, not_found, refused, wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_challenge.model.accounts import Account
    from spicegraph_scorer.core.tokens import SpiceText
    from spicegraph_scorer.readers.checks import Empty
    from spicegraph_service.pool.tasks import GraphStyle

_MOST_SPLITS = 20
_MOST_SETS = 20
_MOST_MEMBERS = 100
_LONGEST_TITLE = 200
_LONGEST_DESCRIPTION = 10_000
_LONGEST_SCORE = 100
_MOST = 1_000_000


DAILY_LIMIT, TOTAL_LIMIT = 5, 20
"""Submissions of a user where the organiser says nothing else: whoever may try without limit can search."""

ALL_DIGITS = -1
"""Participants see scores in full."""


NO_ERRORS = -1
"""Errors are kept from participants."""

FEWEST_ERROR_IMAGES = 10
"""Errors that fewer images have are kept from participants in any case."""


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What scores may tell participants; the contract's ``Disclosure`` says what each field means."""

    digits: int = 0
    category_images: int = 50
    equal_percent: int = 50
    error_images: int = FEWEST_ERROR_IMAGES


@dataclass(frozen=True, slots=True)
class NewSplit:
    """A split of a challenge that is to be."""

    name: str
    reference_sets: tuple[str, ...]
    score_visibility: Visibility = Visibility.ALWAYS
    leaderboard_visibility: Visibility = Visibility.ALWAYS


@dataclass(frozen=True, slots=True)
class NewChallenge:
    """A challenge that is to be; the contract's ``Challenge`` says what each field means."""

    name: str
    title: str
    description: str
    metrics: tuple[str, ...]
    primary_score: str
    splits: tuple[NewSplit, ...]
    opens: datetime | None = None
    closes: datetime | None = None
    daily_limit: int = DAILY_LIMIT
    total_limit: int = TOTAL_LIMIT
    disclosure: Disclosure = Disclosure()
    spice_text: SpiceText = "written"
    graph_style: GraphStyle = "spice"
    empty: Empty = "refuse"


@dataclass(frozen=True, slots=True)
class NewReferences:
    """References that were uploaded and read: the keys of both files, and what is in them."""

    source: str
    file: str
    image_count: int
    caption_count: int


def add_challenge(session: Session, account: Account, new: NewChallenge, now: datetime) -> Challenge:
    """Store a challenge, which the caller owns.

    Raises:
        CallError: a field is wrong, or the name is taken.
    """
    check_name("challenge.name", new.name)
    check_texts(new.title, new.description, new.primary_score)
    check_limits(new.daily_limit, new.total_limit)
    check_disclosure(new.disclosure)
    check_times(new.opens, new.closes)
    _check_splits(new.splits)
    if session.scalars(select(Challenge).where(Challenge.name == new.name)).one_or_none() is not None:
        raise name_taken("challenge", new.name)
    challenge = Challenge(
        name=new.name,
        title=new.title or new.name,
        description=new.description,
        metrics=list(new.metrics),
        primary_score=new.primary_score,
        opens=new.opens,
        closes=new.closes,
        daily_limit=new.daily_limit,
        total_limit=new.total_limit,
        score_digits=new.disclosure.digits,
        category_images=new.disclosure.category_images,
        equal_percent=new.disclosure.equal_percent,
        error_images=new.disclosure.error_images,
        spice_text=new.spice_text,
        graph_style=new.graph_style,
        empty=new.empty,
        created=now,
        splits=[_split(place, split) for place, split in enumerate(new.splits)],
        members=[Member(user_id=account.user_id, role=MemberRole.OWNER)],
    )
    session.add(challenge)
    try:
        session.flush()
    except IntegrityError as error:  # somebody else, at the same moment
        raise name_taken("challenge", new.name) from error
    return challenge


def _split(place: int, new: NewSplit) -> Split:
    return Split(
        position=place,
        name=new.name,
        score_visibility=new.score_visibility,
        leaderboard_visibility=new.leaderboard_visibility,
        reference_sets=[
            ReferenceSet(position=position, name=name, image_count=0, caption_count=0)
            for position, name in enumerate(new.reference_sets)
        ],
    )


def check_texts(title: str, description: str, primary_score: str) -> None:
    """Check the texts of a challenge.

    Raises:
        CallError: INVALID_ARGUMENT.
    """
    for field, text, most in (
        ("title", title, _LONGEST_TITLE),
        ("description", description, _LONGEST_DESCRIPTION),
        ("primary_score", primary_score, _LONGEST_SCORE),
    ):
        if len(text) > most or "\0" in text:
            raise wrong(f"challenge.{field}", f"at most {most:,} characters, and no NUL")


def check_limits(daily: int, total: int) -> None:
    """Check the limits of a challenge.

    Raises:
        CallError: INVALID_ARGUMENT.
    """
    for field, value in (("daily_limit", daily), ("total_limit", total)):
        if not 0 <= value <= _MOST:
            raise wrong(f"challenge.{field}", f"0 (no limit) to {_MOST:,}, got {value}")


def check_disclosure(disclosure: Disclosure) -> None:
    """Check what scores may tell participants.

    Raises:
        CallError: INVALID_ARGUMENT.
    """
    for field, value, least, most, meaning in (
        ("digits", disclosure.digits, ALL_DIGITS, 9, "-1 (all), 0 (by the number of images), or 1"),
        ("category_images", disclosure.category_images, 1, _MOST, "0 (50), or 1"),
        ("equal_percent", disclosure.equal_percent, 1, 100, "0 (50), or 1"),
        ("error_images", disclosure.error_images, FEWEST_ERROR_IMAGES, _MOST, "-1 (never), 0 (10), or 10"),
    ):
        if not least <= value <= most and (field, value) != ("error_images", NO_ERRORS):
            raise wrong(f"challenge.disclosure.{field}", f"{meaning} to {most:,}, got {value}")


def check_times(opens: datetime | None, closes: datetime | None) -> None:
    """Check the dates of a challenge.

    Raises:
        CallError: INVALID_ARGUMENT.
    """
    if opens is not None and closes is not None and opens >= closes:
        raise wrong("challenge.close_time", "is not after the opening")


def _check_splits(splits: Sequence[NewSplit]) -> None:
    if not 1 <= len(splits) <= _MOST_SPLITS:
        raise wrong("challenge.splits", f"1 to {_MOST_SPLITS} splits, got {len(splits)}")
    _check_unique("challenge.splits", [split.name for split in splits])
    for place, split in enumerate(splits):
        path = f"challenge.splits[{place}]"
        check_name(f"{path}.name", split.name)
        if not 1 <= len(split.reference_sets) <= _MOST_SETS:
            raise wrong(f"{path}.reference_sets", f"1 to {_MOST_SETS} reference sets, got {len(split.reference_sets)}")
        _check_unique(f"{path}.reference_sets", split.reference_sets)
        for number, name in enumerate(split.reference_sets):
            check_name(f"{path}.reference_sets[{number}].name", name)


def _check_unique(field: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise wrong(field, f"{name!a} stands twice")
        seen.add(name)


def find_challenge(session: Session, name: str, *, lock: bool = False, share: bool = False) -> Challenge:
    """Return a challenge.

    With ``share`` it does not change before the transaction ends; with ``lock`` it does not take submissions either.

    Raises:
        CallError: NOT_FOUND.
    """
    query = select(Challenge).where(Challenge.name == name)
    if lock or share:
        query = query.with_for_update(read=share)
    challenge = session.scalars(query).one_or_none()
    if challenge is None:
        raise not_found("challenge", name)
    return challenge


def find_split(challenge: Challenge, name: str) -> Split:
    """Return a split; no name means the first.

    Raises:
        CallError: NOT_FOUND.
    """
    for split in challenge.splits:
        if name in {split.name, ""}:
            return split
    raise not_found("split", name)


def find_reference_set(split: Split, name: str) -> ReferenceSet:
    """Return a reference set; no name means the first.

    Raises:
        CallError: NOT_FOUND.
    """
    for reference_set in split.reference_sets:
        if name in {reference_set.name, ""}:
            return reference_set
    raise not_found("reference set", name)


def list_challenges(session: Session, after: str, count: int) -> Sequence[Challenge]:
    """Return up to ``count`` challenges whose names sort after the given one."""
    return session.scalars(select(Challenge).where(Challenge.name > after).order_by(Challenge.name).limit(count)).all()


def set_member(session: Session, account: Account, challenge_name: str, user: User, role: MemberRole | None) -> None:
    """Give a user a role in a challenge, or ``None``. Owners do that for all, and members leave.

    Raises:
        CallError: NOT_FOUND, PERMISSION_DENIED, or FAILED_PRECONDITION: no owner would be left, or there are too many.
    """
    challenge = find_challenge(session, challenge_name, lock=True)
    known = next((member for member in challenge.members if member.user_id == user.id), None)
    if role is not None or known is None or user.id != account.user_id:
        account.check_may(MemberRole.OWNER, challenge)
    others = [member.role for member in challenge.members if member is not known]
    if known is not None and known.role is MemberRole.OWNER and MemberRole.OWNER not in {role, *others}:
        raise refused("LAST_OWNER", f"{user.name!r} is the last owner of the challenge {challenge.name!r}", user.name)
    if role is None:
        if known is not None:
            challenge.members.remove(known)
    elif known is not None:
        known.role = role
    elif len(others) >= _MOST_MEMBERS:
        message = f"the challenge {challenge.name!r} has {_MOST_MEMBERS} members, the most that one may have"
        raise refused("MEMBER_LIMIT", message, challenge.name)
    else:
        challenge.members.append(Member(user_id=user.id, role=role))


def remove_challenge(session: Session, account: Account, name: str) -> None:
    """Delete a challenge.

    Raises:
        CallError: NOT_FOUND, PERMISSION_DENIED, or FAILED_PRECONDITION: there are submissions.
    """
    challenge = find_challenge(session, name, lock=True)
    account.check_may(MemberRole.OWNER, challenge)
    _check_untouched(session, challenge, "has submissions, and stays")
    session.delete(challenge)


def place_references(
    session: Session, challenge_name: str, split_name: str, set_name: str, new: NewReferences
) -> Challenge:
    """Put references in their place, and have them parsed when there is time.

    Raises:
        CallError: NOT_FOUND, or FAILED_PRECONDITION: there are submissions, and these are other references.
    """
    challenge = find_challenge(session, challenge_name, lock=True)
    found = find_reference_set(find_split(challenge, split_name), set_name)
    if found.file == new.file:
        return challenge
    if found.file is not None:
        _check_untouched(session, challenge, "has submissions: other references would make their scores another thing")
    found.source, found.file = new.source, new.file
    found.image_count, found.caption_count = new.image_count, new.caption_count
    session.execute(delete(Job).where(Job.reference_set_id == found.id))
    session.add(Job(kind=JobKind.PARSE, reference_set_id=found.id))
    return challenge


def _check_untouched(session: Session, challenge: Challenge, message: str) -> None:
    if session.scalar(select(exists().where(Submission.challenge_id == challenge.id))):
        raise refused("HAS_SUBMISSIONS", f"the challenge {challenge.name!r} {message}", challenge.name)
