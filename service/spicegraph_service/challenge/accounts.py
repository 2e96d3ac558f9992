"""Users and their tokens.

They have tables of their own beside the tokens of ``spicegraph token``: a user's row is locked while a submission is
accepted, so it must be in the same database, and the other store may be Redis or memory.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import selectinload

from spicegraph_service.challenge.errors import denied, exists, taken_name, wrong
from spicegraph_service.challenge.schema import Role, Submission, Token, User
from spicegraph_service.server.status import not_found, unauthenticated
from spicegraph_service.store import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

_PREFIX = "sgu_"
_LONGEST_TOKEN = 200
_LONGEST_NAME = 100
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.\-]{0,38}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Account:
    """Who calls."""

    user_id: int
    name: str
    role: Role

    @property
    def organises(self) -> bool:
        """Whether they see and manage everything."""
        return self.role is Role.ORGANISER

    def check_organises(self) -> None:
        """Check that they may manage.

        Raises:
            CallError: PERMISSION_DENIED.
        """
        if not self.organises:
            raise denied("only organisers may call this")

    @property
    def share(self) -> str:
        """See :class:`~spicegraph_service.server.service.Caller`."""
        return f"user {self.user_id}"

    def begin(self) -> None:
        """Count nothing."""

    def end(self) -> None:
        """Count nothing."""

    @property
    def tenant(self) -> str:
        """See :class:`~spicegraph_service.server.service.Caller`: users own nothing but their submissions."""
        return DEFAULT_TENANT

    def charge(self, captions: int) -> None:
        """Count nothing: users are bound by the number of their submissions."""


def check_name(field: str, name: str) -> None:
    """Check a name of a user, a challenge, a split or a reference set.

    Raises:
        CallError: INVALID_ARGUMENT.
    """
    if not NAME.fullmatch(name):
        raise wrong(field, '1 to 40 letters, digits, "." and "-", the first and the last a letter or digit')


def find_account(session: Session, authorization: str | None) -> Account:
    """Return the caller of an ``authorization`` header.

    Raises:
        CallError: UNAUTHENTICATED.
    """
    scheme, _, secret = (authorization or "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise unauthenticated("the call needs a user's token: authorization: Bearer TOKEN")
    if not secret.startswith(_PREFIX) or len(secret) > _LONGEST_TOKEN:
        raise unauthenticated("the token is not valid here; users' tokens begin with sgu_")
    query = select(User).join(Token).where(Token.hash == _hash(secret), User.removed.is_(None))
    user = session.scalars(query).one_or_none()
    if user is None:
        raise unauthenticated("the token is not valid")
    return Account(user.id, user.name, user.role)


def add_user(session: Session, name: str, role: Role, now: datetime) -> tuple[User, str]:
    """Add a user with a token; return the user and the token's secret.

    Raises:
        CallError: the name is wrong or taken.
    """
    check_name("name", name)
    # One at a time: names that differ in case alone would pass for each other on a leaderboard.
    session.execute(select(User.id).order_by(User.id).limit(1).with_for_update())
    alike = session.scalars(select(User).where(func.lower(User.name) == name.lower()).order_by(User.id)).all()
    for other in alike:
        if other.removed is None:
            raise exists("user", other.name)
        if session.scalar(select(func.count()).where(Submission.user_id == other.id)):
            raise taken_name(other.name)
    user = alike[0] if alike else User()
    user.name, user.role, user.created, user.removed = name, role, now, None
    session.add(user)
    try:
        session.flush()
    except IntegrityError as error:  # the very first, at the same moment
        raise exists("user", name) from error
    _, secret = _make_token(session, user, "first", now)
    session.refresh(user, ["tokens"])
    return user, secret


def list_users(session: Session, after: str, count: int) -> Sequence[User]:
    """Return up to ``count`` users whose names sort after the given one."""
    query = select(User).where(User.removed.is_(None), User.name > after).order_by(User.name).limit(count)
    return session.scalars(query.options(selectinload(User.tokens))).all()


def remove_user(session: Session, name: str, now: datetime) -> None:
    """Shut a user out.

    Raises:
        CallError: NOT_FOUND.
    """
    user = _user(session, name)
    user.removed = now
    for token in user.tokens:
        session.delete(token)


def add_token(session: Session, caller: Account, user_name: str, name: str, now: datetime) -> tuple[Token, str]:
    """Make a token for a user; return it and its secret.

    Raises:
        CallError: the name is wrong, the user unknown, or the caller may not.
    """
    if user_name and user_name != caller.name:
        caller.check_organises()
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise wrong("name", f"1 to {_LONGEST_NAME} printable characters")
    return _make_token(session, _user(session, user_name or caller.name), name, now)


def revoke_token(session: Session, caller: Account, token_id: str) -> None:
    """Delete a token.

    Raises:
        CallError: NOT_FOUND, also for others' tokens.
    """
    token = session.get(Token, token_id)
    if token is None or not (caller.organises or token.user_id == caller.user_id):
        raise not_found("token", token_id)
    session.delete(token)


def _user(session: Session, name: str) -> User:
    user = session.scalars(select(User).where(User.name == name, User.removed.is_(None))).one_or_none()
    if user is None:
        raise not_found("user", name)
    return user


def _make_token(session: Session, user: User, name: str, now: datetime) -> tuple[Token, str]:
    """Make 32 random bytes a token: a plain SHA-256 protects them, there is nothing to guess."""
    secret = _PREFIX + secrets.token_urlsafe(32)
    token = Token(id=secrets.token_hex(6), user_id=user.id, name=name, hash=_hash(secret), created=now)
    session.add(token)
    session.flush()
    return token, secret


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
