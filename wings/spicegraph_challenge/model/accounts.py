"""Users and their tokens, in the challenges' own database: a transaction sees them as it sees submissions."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Self

import grpc
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import joinedload, selectinload

from spicegraph_challenge.model.schema import Challenge, MemberRole, Role, Submission, User, UserToken
from spicegraph_service.kit import DEFAULT_TENANT, CallError, name_taken, not_found, unauthenticated, wrong

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session


_PREFIX = "sgu_"
_LONGEST_TOKEN = 200
_LONGEST_NAME = 100
_TOUCHED = timedelta(minutes=1)  # how exactly the last use of a token is recorded
_WHO: Mapping[MemberRole, str] = {
    MemberRole.VIEWER: "members of the challenge",
    MemberRole.ORGANISER: "organisers",
    MemberRole.OWNER: "owners of the challenge",
}
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.\-]{0,38}[A-Za-z0-9])?")


def denied(message: str, *, reason: str = "NOT_AN_ORGANISER") -> CallError:
    """Return the error for a caller who may not do this."""
    return CallError(grpc.StatusCode.PERMISSION_DENIED, reason, message)


@dataclass(frozen=True, slots=True)
class Account:
    """Who calls, and their roles in challenges, by the challenges' keys."""

    user_id: int
    name: str
    role: Role
    members: Mapping[int, MemberRole] = field(default_factory=dict)
    team: str = ""

    @classmethod
    def of(cls, user: User) -> Self:
        """Return the account of a user."""
        roles = {membership.challenge_id: membership.role for membership in user.memberships}
        return cls(user.id, user.name, user.role, roles, user.team)

    @property
    def entrant(self) -> str:
        """Under which name they stand on leaderboards."""
        return self.team or self.name

    def submits_as(self, user: User) -> bool:
        """Whether a user's submissions are theirs, too: those of one team are all its members'."""
        return user.id == self.user_id or (bool(self.team) and user.team == self.team)

    @property
    def organises(self) -> bool:
        """Whether they see and manage everything on the server."""
        return self.role is Role.ORGANISER

    @property
    def creates(self) -> bool:
        """Whether they may create challenges."""
        return self.role in {Role.ORGANISER, Role.HOST}

    def role_in(self, challenge: Challenge) -> MemberRole | None:
        """Return their role in a challenge, if they have one."""
        return MemberRole.OWNER if self.organises else self.members.get(challenge.id)

    def may(self, role: MemberRole, challenge: Challenge) -> bool:
        """Whether they have the rights of a role in a challenge."""
        roles, member_role = list(MemberRole), self.role_in(challenge)
        return member_role is not None and roles.index(member_role) >= roles.index(role)

    def check_may(self, role: MemberRole, challenge: Challenge) -> None:
        """Check that they have the rights of a role in a challenge."""
        if not self.may(role, challenge):
            raise denied(f"only {_WHO[role]} may call this")

    def check_organises(self) -> None:
        """Check that they may manage the server."""
        if not self.organises:
            raise denied("only organisers may call this")

    # What the server asks of a caller: users are bound by the number of their submissions, and own nothing else.

    @property
    def share(self) -> str:
        """Who they are among those that the workers serve in turn."""
        return f"user {self.user_id}"

    @property
    def tenant(self) -> str:
        """Whose reference sets they see."""
        return DEFAULT_TENANT

    def begin(self) -> None:
        """Count nothing."""

    def end(self) -> None:
        """Count nothing."""

    def charge(self, captions: int) -> None:
        """Count nothing."""


NOBODY = Account(0, "", Role.PARTICIPANT)  # a caller without a token, who sees what is public


def check_name(field: str, name: str) -> None:
    """Check a name of a user, a challenge, a split or a reference set."""
    if not NAME.fullmatch(name):
        raise wrong(field, '1 to 40 letters, digits, "." and "-", the first and the last a letter or digit')


def find_account(session: Session, authorization: str | None, now: datetime) -> tuple[Account, str | None]:
    """Return the caller of an ``authorization`` header, and the id of their token if its use is to be recorded."""
    secret = _secret_of(authorization)
    query = select(UserToken).join(UserToken.user).where(UserToken.hash == _hash(secret), User.removed.is_(None))
    token = session.scalars(query.options(joinedload(UserToken.user).selectinload(User.memberships))).one_or_none()
    if token is None:
        raise unauthenticated("the token is not valid")
    if token.expires is not None and token.expires <= now:
        raise unauthenticated("the token has expired")
    account = Account.of(token.user)
    return account, token.id if token.used is None or now - token.used >= _TOUCHED else None


def _secret_of(authorization: str | None) -> str:
    """Return the secret in an ``authorization`` header, which has the form of a user's token."""
    scheme, _, secret = (authorization or "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise unauthenticated("the call needs a user's token: authorization: Bearer TOKEN")
    if not secret.startswith(_PREFIX) or len(secret) > _LONGEST_TOKEN:
        raise unauthenticated("the token is not valid here; users' tokens begin with sgu_")
    return secret


def touch_token(session: Session, token_id: str, now: datetime) -> None:
    """Record that a token is in use."""
    session.execute(update(UserToken).where(UserToken.id == token_id).values(used=now))


def add_user(
    session: Session, name: str, role: Role, now: datetime, *, expires: datetime | None = None, team: str = ""
) -> tuple[User, str]:
    """Add a user with a token, which may end; return the user and the token's secret."""
    check_name("name", name)
    # One at a time: names that differ in case alone would pass for each other on a leaderboard.
    session.execute(select(User.id).order_by(User.id).limit(1).with_for_update())
    if session.scalar(select(func.count()).where(func.lower(User.team) == name.lower())):
        raise name_taken("team", name)
    alike = session.scalars(select(User).where(func.lower(User.name) == name.lower()).order_by(User.id)).all()
    for other in alike:
        if other.removed is None:
            raise name_taken("user", other.name)
        if session.scalar(select(func.count()).where(Submission.user_id == other.id)):
            # Another user must not inherit the submissions of a removed one.
            message = f"{other.name!r} was the name of a user who was removed and whose submissions stay: "
            raise CallError(grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN", f"{message}choose another name")
    user = alike[0] if alike else User()
    user.name, user.role, user.created, user.removed = name, role, now, None
    _put_into_team(session, user, team)
    session.add(user)
    try:
        session.flush()
    except IntegrityError as error:  # the very first, at the same moment
        raise name_taken("user", name) from error
    _, secret = _make_token(session, user, "first", now, expires)
    session.refresh(user, ["tokens"])
    return user, secret


def set_team(session: Session, name: str, team: str) -> User:
    """Put a user into a team, or, with an empty name, out of theirs."""
    session.execute(select(User.id).order_by(User.id).limit(1).with_for_update())  # one at a time, as names of users
    user = find_user(session, name)
    _put_into_team(session, user, team)
    return user


def _put_into_team(session: Session, user: User, team: str) -> None:
    if team:
        check_name("team", team)
        taken = select(User.name).where(func.lower(User.name) == team.lower())
        alike = select(User.team).where(func.lower(User.team) == team.lower(), User.team != team)
        if user.name.lower() == team.lower() or session.scalar(taken.union(alike).limit(1)) is not None:
            raise wrong("team", f"{team!a}, or a name that differs in case alone, is a user's or another team's")
    user.team = team


def in_team(session: Session, account: Account, name: str) -> bool:
    """Say whether a user is in the caller's team."""
    return bool(account.team) and session.scalar(select(User.team).where(User.name == name)) == account.team


def list_users(session: Session, after: str, count: int) -> Sequence[User]:
    """Return up to ``count`` users whose names sort after the given one."""
    query = select(User).where(User.removed.is_(None), User.name > after).order_by(User.name).limit(count)
    return session.scalars(query.options(selectinload(User.tokens))).all()


def remove_user(session: Session, name: str, now: datetime) -> None:
    """Shut a user out."""
    user = find_user(session, name)
    user.removed = now
    user.memberships.clear()  # who is given the name later does not inherit them
    # Browsers' sessions first: they refer to the tokens that they were begun with.
    for token in sorted(user.tokens, key=lambda token: token.session_of is None):
        session.delete(token)
        session.flush()


def add_token(
    session: Session, caller: Account, user_name: str, name: str, now: datetime, *, expires: datetime | None = None
) -> tuple[UserToken, str]:
    """Make a token for a user; return it and its secret."""
    if user_name and user_name != caller.name:
        caller.check_organises()
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise wrong("name", f"1 to {_LONGEST_NAME} printable characters")
    return _make_token(session, find_user(session, user_name or caller.name), name, now, expires)


def begin_session(session: Session, authorization: str, now: datetime, lasts: timedelta) -> str:
    """Return the secret of a browser's session, which lasts no longer than the token that it is begun with."""
    find_account(session, authorization, now)
    token = session.scalars(
        select(UserToken).where(UserToken.hash == _hash(authorization.partition(" ")[2].strip()))
    ).one()
    if token.session_of is not None:
        raise unauthenticated("the token is not valid")
    session.execute(delete(UserToken).where(UserToken.session_of.is_not(None), UserToken.expires <= now))
    ends = min(filter(None, (token.expires, now + lasts)))
    made, secret = _make_token(session, token.user, "browser", now, ends)
    made.session_of = token.id
    return secret


def end_session(session: Session, secret: str) -> None:
    """End a browser's session."""
    session.execute(delete(UserToken).where(UserToken.hash == _hash(secret), UserToken.session_of.is_not(None)))


def revoke_token(session: Session, caller: Account, token_id: str) -> None:
    """Delete a token."""
    token = session.get(UserToken, token_id)
    if token is None or not (caller.organises or token.user_id == caller.user_id):
        raise not_found("token", token_id)
    session.execute(delete(UserToken).where(UserToken.session_of == token.id))
    session.delete(token)


def find_user(session: Session, name: str) -> User:
    """Return a user who has not been removed."""
    user = session.scalars(select(User).where(User.name == name, User.removed.is_(None))).one_or_none()
    if user is None:
        raise not_found("user", name)
    return user


def _make_token(
    session: Session, user: User, name: str, now: datetime, expires: datetime | None
) -> tuple[UserToken, str]:
    """Make 32 random bytes a token: a plain SHA-256 protects them, there is nothing to guess."""
    if expires is not None and expires <= now:
        raise wrong("expire_time", "is over")
    secret = _PREFIX + secrets.token_urlsafe(32)
    token = UserToken(
        id=secrets.token_hex(6), user_id=user.id, name=name, hash=_hash(secret), created=now, expires=expires
    )
    session.add(token)
    session.flush()
    return token, secret


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
