"""Who has signed in: a cookie that holds a user's token under the server's signature, and a proof in every form."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aiohttp import web

_COOKIE = "spicegraph-session"
_LASTS_S = 12 * 3600
_KEY_BYTES = 32
_LONGEST = 1_000
_KEY_FILE = "session.key"


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that has signed in: the user's token, and what its forms must carry."""

    token: str
    proof: str

    @property
    def authorization(self) -> str:
        """The header of its calls."""
        return f"Bearer {self.token}"


class Sessions:
    """Makes and reads the cookies. They are valid for twelve hours, for all servers with the same key.

    Args:
        key: signs them.
        clock: seconds since 1970.
    """

    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock

    def begin(self, response: web.StreamResponse, token: str, *, secure: bool) -> None:
        """Give a browser a session. Only this site's own pages send it back, and no script reads it."""
        made = urlsafe_b64encode(f"{int(self._clock())} {token}".encode()).decode()
        value = f"{made}.{self._signature('session', made)}"
        response.set_cookie(_COOKIE, value, max_age=_LASTS_S, httponly=True, samesite="Strict", secure=secure)

    def end(self, response: web.StreamResponse) -> None:
        """Take a browser's session away."""
        response.del_cookie(_COOKIE, httponly=True, samesite="Strict")

    def of(self, request: web.Request) -> Session | None:
        """Return a browser's session; ``None``: it lacks a valid one."""
        value = request.cookies.get(_COOKIE, "")
        made, _, signature = value.partition(".")
        if len(value) > _LONGEST or not hmac.compare_digest(
            signature.encode(), self._signature("session", made).encode()
        ):
            return None
        try:
            since, _, token = urlsafe_b64decode(made).decode().partition(" ")
            if not 0 <= self._clock() - int(since) <= _LASTS_S:
                return None
        except (Base64Error, ValueError):
            return None
        return Session(token, self._signature("form", made))

    def _signature(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()


def shared_key(folder: Path) -> bytes:
    """Return the key of all servers that share a folder; the first one makes it.

    Raises:
        OSError: the file cannot be read or written.
    """
    path = folder / _KEY_FILE
    new = folder / f"{_KEY_FILE}.{secrets.token_hex(4)}"
    if not path.exists():
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
            os.fsync(stream.fileno())
        try:
            os.link(new, path)  # it fails where another server was first
        except FileExistsError:
            pass
        finally:
            new.unlink()
    return path.read_bytes()
