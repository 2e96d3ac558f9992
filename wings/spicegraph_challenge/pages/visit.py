"""A request for a page: who has signed in, what their form holds, and what their calls answer."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote

import grpc
from aiohttp import MultipartReader, web

from spicegraph_service import kit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
    from pathlib import Path

    from aiohttp import BodyPartReader
    from google.protobuf import message as protobuf

    from spicegraph_challenge.model.accounts import Account

PACKAGE = "spicegraph_challenge.pages"  # where the templates and scripts of the pages are
_COOKIE = "spicegraph-session"
LASTS_S = 12 * 3600  # so long a browser is signed in
_KEY_BYTES = 32
_LONGEST = 1_000
_KEY_FILE = "session.key"
_HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser: its session token (not a user's token) and its forms' proof."""

    token: str
    proof: str

    @property
    def authorization(self) -> str:
        """The header of its calls."""
        return f"Bearer {self.token}"


class Sessions:
    """Makes and reads the cookies. They are valid for twelve hours, for all servers with the same key."""

    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock

    def begin(self, response: web.StreamResponse, token: str, *, secure: bool) -> None:
        """Give a browser a session. Only this site's own pages send it back, and no script reads it."""
        made = urlsafe_b64encode(f"{int(self._clock())} {token}".encode()).decode()
        value = f"{made}.{self._signature('session', made)}"
        response.set_cookie(_COOKIE, value, max_age=LASTS_S, httponly=True, samesite="Strict", secure=secure)

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
            # The clock may have been set back, and that of the server where the browser signed in may be ahead.
            if abs(self._clock() - int(since)) > LASTS_S:
                return None
        except (Base64Error, ValueError):
            return None
        return Session(token, self._signature("form", made))

    def _signature(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()


def shared_key(folder: Path) -> bytes:
    """Return the key of all servers that share a folder; the first one makes it."""
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


M = TypeVar("M", bound="protobuf.Message")
_SERVICE = "/spicegraph.challenge.v1.ChallengeService/"
_MOST_FIELD_BYTES = 64 << 10
_MOST_FIELDS = 40
_FIELDS = {"chunk": "the file"}  # what fields of the contract are called on pages


class NotOursError(Exception):
    """A form did not come from a page of this site."""


@dataclass(slots=True)
class Visit:
    """One request."""

    request: web.Request
    gateway: kit.Gateway
    session: Session | None = None  # the browser's; none on the page for signing in
    me: Account | None = None  # none: nobody has signed in
    form: dict[str, str] = field(default_factory=dict)  # as far as its fields have been read
    file_name: str = ""  # of the file in the form
    https: bool = False  # the browser got here by HTTPS, with a proxy that ends it

    @property
    def origin(self) -> kit.Origin:
        """Where the visit's calls come from."""
        headers = {"authorization": self.session.authorization} if self.session is not None else {}
        return kit.Origin(headers, kit.format_peer(self.request.get_extra_info("peername")))

    async def ask(self, kind: type[M], request: protobuf.Message | AsyncIterator[protobuf.Message]) -> M:
        """Make the call of the evaluation server that has this response."""
        method = kind.DESCRIPTOR.name.removesuffix("Response")
        message, _ = await self.gateway.unary(_SERVICE + method, request, self.origin)
        return cast("M", message)

    def stream(self, method: str, request: protobuf.Message) -> AsyncGenerator[protobuf.Message]:
        """Make a call of the evaluation server with a stream of responses."""
        return self.gateway.stream(_SERVICE + method, request, self.origin)

    async def read_form(self) -> Mapping[str, str]:
        """Read a form without files."""
        if self.request.content_type == "application/x-www-form-urlencoded":
            if (self.request.content_length or 0) > _MOST_FIELD_BYTES:
                raise web.HTTPRequestEntityTooLarge(_MOST_FIELD_BYTES, self.request.content_length or 0)
            fields = await self.request.post()
            self.form |= {name: value for name, value in fields.items() if isinstance(value, str)}
        self._check_proof()
        return self.form

    async def read_upload(self) -> BodyPartReader | None:
        """Read a form up to its file; return that, whose bytes are read as they come."""
        if not self.request.content_type.startswith("multipart/"):
            raise NotOursError
        parts = await self.request.multipart()
        for _ in range(_MOST_FIELDS):
            part = await parts.next()
            if part is None:
                break
            if isinstance(part, MultipartReader):
                raise NotOursError
            name, file_name = kit.read_part_names(part.headers)
            if file_name is not None:
                self._check_proof()
                self.file_name = file_name
                return part if self.file_name else None
            value = await part.read_chunk(_MOST_FIELD_BYTES)
            self.form[name] = value.decode("utf-8", "replace")
        self._check_proof()
        return None

    def _check_proof(self) -> None:
        """Check that a form is from a page of this site, and that of this user."""
        if not kit.is_own_form(self.request.headers, self.request.host):
            raise NotOursError
        if self.session is not None and self.form.pop("proof", "") != self.session.proof:
            raise NotOursError

    def page(self, template: str, *, status: int = 200, script: str = "web.js", **values: Any) -> web.Response:
        """Return a page."""
        shown = {
            "me": self.me,
            "here": self.request.path,
            "typed": self.request.method == "POST",
            "proof": self.session.proof if self.session is not None else "",
            **values,
        }
        style = kit.static("web.css") + kit.static("board.css", PACKAGE)
        text = kit.render_page(
            template, shown, script=kit.static(script, PACKAGE), style=style, served=True, package=PACKAGE
        )
        headers = kit.PAGE_HEADERS | (_HTTPS_ONLY if self.https or self.request.secure else {})
        return web.Response(text=text, content_type="text/html", status=status, headers=headers)

    def failed(self, failure: kit.FailedCallError) -> web.Response:
        """Return a failure as an error page, or as JSON for a script."""
        status = kit.HTTP_STATUSES[failure.code]
        message, faults = failure.said(_FIELDS)
        if self.request.headers.get("Accept") == "application/json":
            return web.json_response({"error": message, "faults": faults}, status=status)
        return self.page("error.html.j2", status=status, message=message, faults=faults)


def path_to(path: str, *parts: str, **query: str) -> str:
    """Return the address of a page of this site; parts of the path and values of the query are escaped."""
    asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    return "/".join([path, *(quote(part, safe="") for part in parts)]) + (f"?{asked}" if asked else "")


def go(path: str, *parts: str, **query: str) -> web.HTTPSeeOther:
    """Return a redirect to a page of this site."""
    return web.HTTPSeeOther(path_to(path, *parts, **query))


def unauthenticated(error: Exception) -> bool:
    """Say whether a call failed since its token is not valid."""
    return isinstance(error, kit.CallError | kit.FailedCallError) and error.code is grpc.StatusCode.UNAUTHENTICATED
