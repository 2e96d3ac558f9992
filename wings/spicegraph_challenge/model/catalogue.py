"""Challenges: created, changed, looked up; their references put in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, select
from sqlalchemy.exc import IntegrityError

from spicegraph_challenge.model.accounts import NOBODY, Account, check_name
from spicegraph_challenge.model.schema import (
    Challenge,
    Job,
    JobKind,
    Member,
    MemberRole,
    Split,
    SplitReferences,
    Submission,
    User,
)
from spicegraph_challenge.model.settings import SettingsError, changed, masked, violations_of, with_defaults
from spicegraph_service.kit import Violation, invalid, name_taken, not_found, refused, unauthenticated, wrong

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_api.challenge.v1 import challenge_pb2 as pb
    from spicegraph_challenge.sandbox.tasks import Prepared

_MOST_SPLITS = 20
_MOST_SETS = 20
_MOST_MEMBERS = 100


def add_challenge(
    session: Session, account: Account, name: str, settings: pb.ChallengeSettings, now: datetime
) -> Challenge:
    """Store a challenge, which the caller owns."""
    check_name("challenge.name", name)
    settings = with_defaults(settings)
    settings.title = settings.title or name
    check_settings("challenge.settings", settings)
    if session.scalars(select(Challenge).where(Challenge.name == name)).one_or_none() is not None:
        raise name_taken("challenge", name)
    challenge = Challenge(
        name=name,
        created=now,
        splits=[
            Split(
                position=position,
                name=split.name,
                reference_sets=[
                    SplitReferences(position=number, name=reference_set.name, image_count=0, caption_count=0)
                    for number, reference_set in enumerate(split.reference_sets)
                ],
            )
            for position, split in enumerate(settings.splits)
        ],
        members=[Member(user_id=account.user_id, role=MemberRole.OWNER)],
    )
    challenge.set(settings)
    session.add(challenge)
    try:
        session.flush()
    except IntegrityError as error:  # somebody else, at the same moment
        raise name_taken("challenge", name) from error
    return challenge


def change_challenge(challenge: Challenge, change: pb.ChallengeSettings, mask: Sequence[str] = ()) -> None:
    """Change the settings that a request has; or those of a mask, of which the absent ones get their defaults."""
    stored = challenge.settings
    try:
        if mask:
            stored, change = masked(stored, change, mask)
            stored.title = stored.title or challenge.name
        settings = changed(stored, change)
    except SettingsError as error:
        raise invalid([Violation(f"settings.{field}", reason) for field, reason in error.violations]) from error
    check_settings("settings", settings)
    challenge.set(settings)


def check_settings(path: str, settings: pb.ChallengeSettings) -> None:
    """Check settings against their bounds, and the names of splits and reference sets."""
    violations = [Violation(f"{path}.{field}", reason) for field, reason in violations_of(settings)]
    if not 1 <= len(settings.splits) <= _MOST_SPLITS:
        violations.append(Violation(f"{path}.splits", f"1 to {_MOST_SPLITS} splits, got {len(settings.splits)}"))
    if violations:
        raise invalid(violations)
    _check_names(f"{path}.splits", [split.name for split in settings.splits])
    for position, split in enumerate(settings.splits):
        names = [reference_set.name for reference_set in split.reference_sets]
        if not 1 <= len(names) <= _MOST_SETS:
            raise wrong(
                f"{path}.splits[{position}].reference_sets", f"1 to {_MOST_SETS} reference sets, got {len(names)}"
            )
        _check_names(f"{path}.splits[{position}].reference_sets", names)


def _check_names(path: str, names: Sequence[str]) -> None:
    for position, name in enumerate(names):
        check_name(f"{path}[{position}].name", name)
        if name in names[:position]:
            raise wrong(path, f"{name!a} appears twice")


def find_challenge(session: Session, name: str, *, lock: bool = False) -> Challenge:
    """Return a challenge; with ``lock`` it neither changes nor takes submissions before the transaction ends."""
    query = select(Challenge).where(Challenge.name == name)
    challenge = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if challenge is None:
        raise not_found("challenge", name)
    return challenge


def find_shown(session: Session, account: Account, name: str) -> Challenge:
    """Return a challenge that a caller may look at; callers without a token do not learn which others there are."""
    if account is NOBODY:
        challenge = session.scalars(select(Challenge).where(Challenge.name == name)).one_or_none()
        if challenge is None or not challenge.settings.public_board:
            raise unauthenticated("the call needs a user's token: authorization: Bearer TOKEN")
        return challenge
    return find_challenge(session, name)


def find_split(challenge: Challenge, name: str) -> Split:
    """Return a split; no name means the first."""
    for split in challenge.splits:
        if name in {split.name, ""}:
            return split
    raise not_found("split", name)


def find_reference_set(split: Split, name: str) -> SplitReferences:
    """Return a reference set; no name means the first."""
    for reference_set in split.reference_sets:
        if name in {reference_set.name, ""}:
            return reference_set
    raise not_found("reference set", name)


def list_challenges(session: Session, after: str, count: int) -> Sequence[Challenge]:
    """Return up to ``count`` challenges whose names sort after the given one."""
    return session.scalars(select(Challenge).where(Challenge.name > after).order_by(Challenge.name).limit(count)).all()


def set_member(session: Session, account: Account, challenge_name: str, user: User, role: MemberRole | None) -> None:
    """Give a user a role in a challenge, or ``None``. Owners do that for all, and members leave."""
    challenge = find_challenge(session, challenge_name, lock=True)
    known = next((member for member in challenge.members if member.user_id == user.id), None)
    if role is not None or known is None or user.id != account.user_id:
        account.check_may(MemberRole.OWNER, challenge)
    if known is not None and role is not MemberRole.OWNER:
        _check_not_last(challenge, known, user.name)
    if known is None:
        if role is not None:
            _add_member(challenge, user, role)
    elif role is None:
        challenge.members.remove(known)
    else:
        known.role = role


def _check_not_last(challenge: Challenge, member: Member, name: str) -> None:
    """Refuse to take the role of a challenge's last owner."""
    owners = [each for each in challenge.members if each.role is MemberRole.OWNER]
    if owners == [member]:
        raise refused("LAST_OWNER", f"{name!r} is the last owner of the challenge {challenge.name!r}", name)


def _add_member(challenge: Challenge, user: User, role: MemberRole) -> None:
    if len(challenge.members) >= _MOST_MEMBERS:
        message = f"the challenge {challenge.name!r} has {_MOST_MEMBERS} members, the most that one may have"
        raise refused("MEMBER_LIMIT", message, challenge.name)
    challenge.members.append(Member(user_id=user.id, role=role))


def remove_challenge(session: Session, account: Account, name: str) -> None:
    """Delete a challenge."""
    challenge = find_challenge(session, name, lock=True)
    account.check_may(MemberRole.OWNER, challenge)
    _check_untouched(session, challenge, "has submissions, and stays")
    session.delete(challenge)


def place_references(
    session: Session, target: pb.ReferencesTarget, source: str, file: str, prepared: Prepared
) -> Challenge:
    """Set the references of a reference set: keys of the uploaded and the normalised file."""
    challenge = find_challenge(session, target.challenge, lock=True)
    reference_set = find_reference_set(find_split(challenge, target.split), target.reference_set)
    if reference_set.file == file:
        return challenge
    if reference_set.file is not None:
        _check_untouched(session, challenge, "has submissions: other references would make their scores another thing")
    reference_set.source, reference_set.file = source, file
    reference_set.image_count, reference_set.caption_count = prepared.image_count, prepared.caption_count
    reference_set.domains = dict(prepared.domains)
    session.execute(delete(Job).where(Job.reference_set_id == reference_set.id))
    session.add(Job(kind=JobKind.PARSE, reference_set_id=reference_set.id))
    return challenge


def _check_untouched(session: Session, challenge: Challenge, message: str) -> None:
    if session.scalar(select(exists().where(Submission.challenge_id == challenge.id))):
        raise refused("HAS_SUBMISSIONS", f"the challenge {challenge.name!r} {message}", challenge.name)
