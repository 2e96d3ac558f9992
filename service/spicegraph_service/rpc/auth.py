"""Bearer tokens (made and revoked by a command, stored as hashes, checked on every call), and TLS certificates."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import ssl
import time
from typing import TYPE_CHECKING

import grpc

from spicegraph_api.v1.methods import REFERENCES_SCOPE, SCORE_SCOPE
from spicegraph_parser.errors import InputError
from spicegraph_service.pool.cache import RefreshAheadCache, StoreThread
from spicegraph_service.rpc.limits import FullError, SharedBucket, TokenBucket
from spicegraph_service.rpc.status import exhausted, permission_denied, unauthenticated
from spicegraph_service.store import Store, StoreError, TokenRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


SCOPES: Mapping[str, str] = {
    SCORE_SCOPE: "parse and score, also against stored reference sets",
    REFERENCES_SCOPE: "create, list and delete reference sets",
}  # What a token may allow.

_PREFIX = "sgt_"
_REMEMBERED_S = 3.0  # how long after its revocation a token may still pass; streams look a second later at most
_TOUCHED_S = 60.0  # how exactly the last use of a token is recorded
_LONGEST_TOKEN = 200
_BURST_S = 10.0  # of a rate that may be used at once
_CALL_RETRY_S = 0.5
_log = logging.getLogger(__name__)


def create_token(
    store: Store, name: str, scopes: tuple[str, ...], *, rate: float = 0.0, tenant: str = "", expires: float = 0.0
) -> tuple[str, TokenRecord]:
    """Make a token, store its hash and return it; ``rate``: captions per second, 0: the server's limit."""
    # A token is 32 random bytes, so a plain SHA-256 protects it: there is nothing to guess. ``expires``: seconds since
    # 1970, 0: never.
    token = _PREFIX + secrets.token_urlsafe(32)
    now = time.time()
    record = TokenRecord(secrets.token_hex(4), name, _hash(token), scopes, rate, now, tenant or name, expires)
    store.add_token(record)
    return token, record


def rotate_token(store: Store, token_id: str, *, overlap_s: float) -> str | None:
    """Make a token like another, which then ends after ``overlap_s``, or before; ``None``: there is no other."""
    old = next((record for record in store.list_tokens() if record.id == token_id), None)
    if old is None:
        return None
    token, _ = create_token(store, old.name, old.scopes, rate=old.rate, tenant=old.tenant)
    end = time.time() + overlap_s
    store.expire_token(token_id, min(end, old.expires) if old.expires else end)
    return token


class TokenCaller:
    """A caller, by token or anonymous, with its permissions and remaining rate."""

    def __init__(self, record: TokenRecord, bucket: TokenBucket | SharedBucket | None, *, most_calls: int = 0) -> None:
        self.record = record
        self.bucket = bucket
        self._most_calls = most_calls  # 0: any number
        self._calls = 0

    @property
    def name(self) -> str:
        """The token's name."""
        return self.record.name

    @property
    def share(self) -> str:
        """The token's id, empty without one."""
        return self.record.id

    @property
    def tenant(self) -> str:
        """The token's tenant."""
        return self.record.tenant

    def begin(self) -> None:
        """Count a call as under way."""
        if self._most_calls and self._calls >= self._most_calls:
            message = f"the token has {self._most_calls} calls under way, the most that one may have"
            raise exhausted("CALL_LIMIT", message, _CALL_RETRY_S)
        self._calls += 1

    def end(self) -> None:
        """Count a call as ended."""
        self._calls -= 1

    def charge(self, captions: int) -> None:
        """Count captions against the caller's rate."""
        if self.bucket is None:
            return
        try:
            self.bucket.take(captions)
        except FullError as error:
            message = (
                f"the token's rate is used up: {self.bucket.rate:g} captions per second; a call of {captions} captions "
                f"may be made in {error.retry_after_s:.1f} s; long ones count as several"
            )
            raise exhausted("RATE_LIMIT", message, error.retry_after_s) from error


class Authenticator:
    """Finds out who calls. Where no tokens are ``required``, everybody is one anonymous caller with every scope."""

    def __init__(
        self, thread: StoreThread, writes: StoreThread, *, required: bool, rate: float, max_calls: int = 0
    ) -> None:
        self._thread = thread
        self._writes = writes
        self._touching: dict[str, asyncio.Task[None]] = {}
        self.required = required
        self._rate = rate
        self._max_calls = max_calls
        self._anonymous = TokenCaller(TokenRecord("", "anonymous", "", tuple(SCOPES), 0.0, 0.0), self._own_bucket(0.0))
        self._callers = RefreshAheadCache(self._find, seconds=_REMEMBERED_S, most=10_000)

    async def identify(self, authorization: str | None) -> TokenCaller:
        """Return the caller of an ``authorization`` header (``Bearer sgt_...``)."""
        if not self.required:
            return self._anonymous
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise unauthenticated("the call needs a token: authorization: Bearer TOKEN")
        if not token.startswith(_PREFIX) or len(token) > _LONGEST_TOKEN:
            raise unauthenticated("the token is not valid")
        caller = await self._callers.get(_hash(token))
        if caller is None:
            raise unauthenticated("the token is not valid")
        if caller.record.expires and caller.record.expires <= time.time():
            raise unauthenticated("the token has expired")
        return caller

    async def authorize(self, authorization: str | None, scope: str | None) -> TokenCaller:
        """Return the caller of a call that needs a scope (``None``: any caller)."""
        caller = await self.identify(authorization)
        if scope is not None and scope not in caller.record.scopes:
            raise permission_denied(scope, caller=caller.name)
        return caller

    def reload(self) -> None:
        """Ask the store for all tokens again."""
        self._callers.expire()

    async def _find(self, token_hash: str) -> TokenCaller | None:
        record = await self._thread.run(lambda: self._thread.store.find_token(token_hash))
        if record is None:
            return None
        if time.time() - record.last_used >= _TOUCHED_S and record.id not in self._touching:
            self._touching[record.id] = asyncio.create_task(self._touch(record))
        # A caller keeps the bucket and the calls: they must not begin anew every few seconds.
        caller = self._callers.peek(token_hash)
        if caller is None:
            return TokenCaller(record, self._bucket(record), most_calls=self._max_calls)
        if caller.record.rate != record.rate:
            caller.bucket = self._bucket(record)
        caller.record = record
        return caller

    async def _touch(self, record: TokenRecord) -> None:
        """Record that a token is in use, beside the call; a store that cannot be written keeps nobody out."""
        try:
            await self._writes.run(lambda: self._writes.store.touch_token(record.hash, time.time()))
        except StoreError as error:
            _log.warning("the last use of the token %s is not recorded: %s", record.id, error)
        finally:
            del self._touching[record.id]

    def _own_bucket(self, own_rate: float) -> TokenBucket | None:
        rate = own_rate or self._rate
        return TokenBucket(rate, rate * _BURST_S) if rate else None

    def _bucket(self, record: TokenRecord) -> SharedBucket | None:
        """Return a token's rate, which all servers of a store that can share it grant together."""
        bucket = self._own_bucket(record.rate)
        if bucket is None:
            return None
        store, rate, burst = self._thread.store, bucket.rate, bucket.burst

        async def spend(captions: int) -> float | None:
            try:
                return await self._thread.run(lambda: store.spend(record.id, captions, rate=rate, burst=burst))
            except StoreError as error:
                _log.warning("the rate of the token %s is not shared: %s", record.id, error)
                return None

        return SharedBucket(bucket, spend)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class Certificates:
    """The contents of PEM files; ``client_ca``: for mTLS. New connections get the newest that were whole."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        self._certificate, self._key, self._client_ca = certificate, key, client_ca
        self._pem = self._checked()
        self._fault = ""
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of HTTP connections; it picks up renewed certificates."""
        if self._context is None:
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            if self._client_ca is not None:
                self._context.verify_mode = ssl.CERT_REQUIRED
            self._load(self._context)
        return self._context

    def _load(self, context: ssl.SSLContext) -> None:
        context.load_cert_chain(self._certificate, self._key)
        if self._client_ca is not None:
            context.load_verify_locations(self._client_ca)

    def credentials(self) -> grpc.ServerCredentials:
        """Return credentials that look for new certificates with every connection."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(), self._configuration, require_client_authentication=self._client_ca is not None
        )

    def reload(self) -> None:
        """Read the files where they have changed. Those that cannot be used are logged, once, and the old ones stay."""
        try:
            if self._read() == self._pem:
                self._fault = ""
                return
            self._pem = self._checked()
            if self._context is not None:
                self._load(self._context)
        except InputError as error:
            if str(error) != self._fault:
                _log.error("the certificates stay as they were: %s", error)
            self._fault = str(error)
        else:
            self._fault = ""
            _log.info("new certificates")

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        certificate, key, client_ca = self._pem
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=client_ca)

    def _read(self) -> tuple[bytes, bytes, bytes | None]:
        """Return the bytes of the certificate, the key and the clients' authority."""
        try:
            client_ca = self._client_ca.read_bytes() if self._client_ca else None
            return self._certificate.read_bytes(), self._key.read_bytes(), client_ca
        except OSError as error:
            raise InputError(f"cannot read the TLS file {error.filename}: {error.strerror}") from error

    def _checked(self) -> tuple[bytes, bytes, bytes | None]:
        """Read files that fit together: one may have been replaced, and the other not yet."""
        pem = self._read()
        try:
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            names = ", ".join(str(path) for path in (self._certificate, self._key, self._client_ca) if path)
            raise InputError(f"the TLS files cannot be used ({names}): {error}") from error
        if self._read() != pem:
            raise InputError("the TLS files changed while they were read")
        return pem
