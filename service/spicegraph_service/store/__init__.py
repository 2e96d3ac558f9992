"""What outlives a server: parses, reference sets and tokens. One protocol, several places to keep them."""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from spicegraph_parser.errors import SpicegraphError
from spicegraph_parser.spice.loose import drawn
from spicegraph_parser.spice.rules import Fact  # noqa: TC001 (msgspec reads the annotation)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from spicegraph_parser.spice.extraction import ParsedCaption

MEMORY = "memory"  # the place of a store that nothing outlives

DEFAULT_TENANT = "default"  # owns what callers without a token store, and what versions without tenants have stored

OWNER, READ, SCORE, EVIDENCE = "owner", "read", "score", "evidence"  # Rights on a reference set; its owner has all.

_PRIVATE, _OTHERS = 0o600, 0o077
_log = logging.getLogger(__name__)
_FACTS = "loose-3"  # what kind of facts is stored: with those of loose words


class StoreError(SpicegraphError):
    """The store cannot be reached, or is damaged; the message says which."""


class StoreFullError(StoreError):
    """There is no room left."""


@dataclass(frozen=True, slots=True)
class ReferenceSet:
    """A stored reference set without its entries."""

    id: str
    display_name: str
    entry_count: int
    caption_count: int
    create_time: float  # seconds since 1970
    tenant: str = DEFAULT_TENANT  # its owner
    rights: tuple[str, ...] = (OWNER,)  # of the tenant that asks

    def allows(self, right: str) -> bool:
        """Whether the tenant that asked for it has a right."""
        return OWNER in self.rights or right in self.rights


class TokenRecord(msgspec.Struct, frozen=True):
    """Stored record of a bearer token, without the token; times are Unix timestamps."""

    id: str
    name: str
    hash: str  # SHA-256 of the token, in hexadecimal
    scopes: tuple[str, ...]
    rate: float  # captions per second; 0: the server's limit
    create_time: float
    tenant: str = DEFAULT_TENANT  # owns what its holder stores
    expires: float = 0.0  # 0: never
    last_used: float = 0.0  # exact to a minute; 0: not yet


class Store(Protocol):
    """A place for parses, reference sets and tokens. Every method may raise :class:`StoreError`."""

    def get_parses(self, signature: str, texts: Sequence[str]) -> dict[str, bytes]:
        """Return the stored parses of the texts, made by the pipeline with this signature."""

    def put_parses(self, signature: str, parses: Mapping[str, bytes]) -> None:
        """Store parses by text; the oldest may go to make room."""

    def count_parses(self) -> int:
        """Return how many parses are stored, of all pipelines."""

    def trim_parses(self, keep: int) -> int:
        """Delete all but about the given number of the newest parses, give the room back, and return how many went."""

    def create_set(self, new: ReferenceSet, entries: Mapping[str, bytes]) -> ReferenceSet:
        """Store a set whole, durably, or not at all; return the stored one if its id exists already."""

    def get_set(self, tenant: str, set_id: str) -> ReferenceSet | None:
        """Return a set on which a tenant has rights. Others' sets take the same path as those that don't exist."""

    def list_sets(self, tenant: str, after: str, count: int) -> list[ReferenceSet]:
        """Return up to ``count`` sets that a tenant may read, whose ids sort after the given one."""

    def count_sets(self, tenant: str) -> int:
        """Return how many sets a tenant owns."""

    def delete_set(self, tenant: str, set_id: str) -> bool:
        """Delete a tenant's own set; return whether there was one."""

    def share_set(self, set_id: str, tenant: str, rights: tuple[str, ...]) -> None:
        """Give a tenant these rights on another's set, and no others."""

    def list_shares(self, set_id: str) -> dict[str, tuple[str, ...]]:
        """Return the rights of other tenants on a set, by tenant."""

    def get_entries(self, set_id: str, entry_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the entries of a set that exist."""

    def add_token(self, record: TokenRecord) -> None:
        """Store a token."""

    def find_token(self, token_hash: str) -> TokenRecord | None:
        """Return the token with this hash."""

    def list_tokens(self) -> list[TokenRecord]:
        """Return all tokens, oldest first."""

    def touch_token(self, token_hash: str, moment: float) -> None:
        """Record that a token was used."""

    def expire_token(self, token_id: str, moment: float) -> None:
        """Let a token expire at a moment."""

    def revoke_token(self, token_id: str) -> bool:
        """Delete a token; return whether there was one."""

    def spend(self, token_id: str, captions: int, *, rate: float, burst: float) -> float | None:
        """Count captions against a shared rate limit; return the remaining burst, or ``None`` if unshared."""

    def ping(self, *, writing: bool = False) -> None:
        """Check that the store answers, or can also be written."""

    def close(self) -> None:
        """Close the store and release its resources."""


def make_private(path: str) -> None:
    """Make a database's file if there is none, for this user's eyes alone; warn of one that others may read."""
    with suppress(FileExistsError):
        # Never a file that exists: closing it would give up the locks of all connections that this process has to it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE))
    if os.name == "posix" and Path(path).stat().st_mode & _OTHERS:
        _warn(path)


@lru_cache
def _warn(path: str) -> None:
    """Warn once in a process, which may open a file several times."""
    _log.warning("%s can be read by other users of this machine: chmod 600 it", path)


def why_not_opened(path: str) -> str:
    """Return why SQLite, which does not say it, can't open a file for writing; empty where nothing is to be seen."""
    file = Path(path)
    if file.is_dir():
        return "it is a folder"
    for what in (file, file.absolute().parent):  # SQLite makes files beside its own
        if not what.exists():
            continue
        if hasattr(os, "statvfs") and os.statvfs(what).f_flag & os.ST_RDONLY:
            return "its disk is read-only"
        if not os.access(what, os.W_OK):
            return f"this user may not write to {what}"
    return ""


def parse_signature(pipeline: str) -> str:
    """Return the cache signature of parses: the pipeline and this version's rules."""
    return f"{pipeline} spicegraph-{version('spicegraph')} {_FACTS}"


def parse_key(signature: str, text: str) -> bytes:
    """Return the address of a parse: it depends on the pipeline and the text, and on nothing else."""
    return hashlib.blake2b(f"{signature}\0{text}".encode(), digest_size=20).digest()


_DECODED_PARSES = 20_000  # parses that a process keeps decoded: the references of some 4,000 images


class StoredParse(NamedTuple):
    """A parse as the store keeps it: the caption's facts, and for each of its words the place in the text."""

    facts: tuple[Fact, ...]  # those that scores count; those of loose words stand behind the others
    spans: tuple[tuple[int, int], ...]
    apart: tuple[Fact, ...] = ()  # what a description says, but what can't be seen or what people do not draw

    @property
    def drawn(self) -> Sequence[Fact]:
        """The facts of the caption's graph."""
        return drawn(self.facts)


def stored_parse(caption: ParsedCaption) -> StoredParse:
    """Return the stored form of a parsed caption."""
    spans = tuple([span for parse in caption.sentences for span in parse.spans])
    return StoredParse(caption.every_fact, spans, caption.apart)


# What the store keeps of a parse.
encode_parse: Callable[[StoredParse], bytes] = msgspec.msgpack.Encoder().encode
unpack_parse: Callable[[bytes], StoredParse] = msgspec.msgpack.Decoder(StoredParse).decode


@lru_cache(maxsize=_DECODED_PARSES)
def decode_parse(data: bytes) -> StoredParse:
    """Return a stored parse as :func:`unpack_parse` does, and remember it: a server meets references again."""
    return unpack_parse(data)
