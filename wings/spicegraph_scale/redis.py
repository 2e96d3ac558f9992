"""The shared store: Redis, for several servers behind a load balancer."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, cast

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_service.kit import OWNER, READ, ReferenceSet, StoreError, StoreFullError, TokenRecord, parse_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

try:
    import redis
except ImportError as error:
    raise DataError("a Redis store needs the extra: pip install 'spicegraph[redis]'") from error

_PREFIX = "spicegraph:"
_PARSE = b"spicegraph:parse:"
_SETS = _PREFIX + "sets"  # hash: id -> set
_SET_IDS = _PREFIX + "set-ids:"  # sorted set a tenant, all with score 0: ids of the sets that it may read, in order
_RIGHTS = _PREFIX + "set-rights:"  # hash a tenant: id -> its rights
_SHARES = _PREFIX + "set-shares:"  # hash a set: tenant -> its rights
_ENTRIES = _PREFIX + "entries:"  # hash a set: entry id -> captions
_TOKENS = _PREFIX + "tokens"  # hash: hash -> token
_USED = _PREFIX + "tokens-used"  # hash: hash -> last use
_RATE = _PREFIX + "rate:"  # hash for each token: what was left of its burst, and when
_SPEND = """
local now = redis.call('TIME')
local seconds = tonumber(now[1]) + tonumber(now[2]) / 1e6
local spent, rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local known = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = burst
if known[1] then level = math.min(burst, tonumber(known[1]) + (seconds - tonumber(known[2])) * rate) end
level = level - spent
redis.call('HSET', KEYS[1], 'level', string.format('%.6f', level), 'at', string.format('%.6f', seconds))
redis.call('EXPIRE', KEYS[1], math.ceil((burst - level) / rate) + 60)
return string.format('%.6f', level)
"""
_PARSE_LIFE_S = 30 * 24 * 3600  # parses expire, so that a "volatile" eviction policy takes them and nothing else
_UPLOAD_LIFE_S = 3600  # what a server leaves that is killed in the middle of an upload
_TIMEOUT_S = 2.0
_Field: TypeAlias = bytes | bytearray | memoryview | str | int | float
_ENTRIES_AT_ONCE = 5_000


class RedisStore:
    """A store behind a URL (``redis://host:6379/0``; ``rediss://`` for TLS)."""

    def __init__(self, url: str) -> None:
        try:
            self._client = redis.Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)
        except ValueError as error:
            raise StoreError(f"the Redis URL is wrong: {error}") from error
        with _errors():
            self._client.ping()

    def get_parses(self, signature: str, texts: Sequence[str]) -> dict[str, bytes]:
        with _errors():
            values = cast("list[bytes | None]", self._client.mget([_PARSE + parse_key(signature, t) for t in texts]))
        return {text: value for text, value in zip(texts, values, strict=True) if value is not None}

    def put_parses(self, signature: str, parses: Mapping[str, bytes]) -> None:
        # They expire after 30 days.
        with _errors():
            pipe = self._client.pipeline(transaction=False)
            for text, value in parses.items():
                pipe.set(_PARSE + parse_key(signature, text), value, ex=_PARSE_LIFE_S)
            pipe.execute()

    def count_parses(self) -> int:
        with _errors():
            return sum(1 for _ in self._client.scan_iter(_PARSE + b"*", count=_ENTRIES_AT_ONCE))

    def trim_parses(self, keep: int) -> int:
        # The oldest are those that expire first.
        with _errors():
            keys = list(self._client.scan_iter(_PARSE + b"*", count=_ENTRIES_AT_ONCE))
            pipe = self._client.pipeline(transaction=False)
            for key in keys:
                pipe.pttl(key)
            left = pipe.execute()
            old = [keys[index] for index in sorted(range(len(keys)), key=left.__getitem__)[: max(len(keys) - keep, 0)]]
            for start in range(0, len(old), _ENTRIES_AT_ONCE):
                self._client.unlink(*old[start : start + _ENTRIES_AT_ONCE])
        return len(old)

    def create_set(self, new: ReferenceSet, entries: Mapping[str, bytes]) -> ReferenceSet:
        # The set appears in one step, entries and all.
        upload = f"{_ENTRIES}{new.id}:{secrets.token_hex(8)}"
        with _errors():
            if self._client.hexists(_SETS, new.id):
                return self.get_set(new.tenant, new.id) or new
            rows = iter(entries.items())
            while part := dict[_Field, _Field](islice(rows, _ENTRIES_AT_ONCE)):
                self._client.hset(upload, mapping=part)
                self._client.expire(upload, _UPLOAD_LIFE_S)
            pipe = self._client.pipeline(transaction=True)
            pipe.persist(upload)
            pipe.rename(upload, _ENTRIES + new.id)
            pipe.hsetnx(_SETS, new.id, msgspec.msgpack.encode(new))
            pipe.zadd(_SET_IDS + new.tenant, {new.id: 0})
            pipe.hset(_RIGHTS + new.tenant, new.id, OWNER)
            pipe.execute()
        return self.get_set(new.tenant, new.id) or new

    def get_set(self, tenant: str, set_id: str) -> ReferenceSet | None:
        with _errors():
            rights = cast("bytes | None", self._client.hget(_RIGHTS + tenant, set_id))
            data = cast("bytes | None", self._client.hget(_SETS, set_id)) if rights is not None else None
        return _set(data, rights) if data is not None and rights is not None else None

    def list_sets(self, tenant: str, after: str, count: int) -> list[ReferenceSet]:
        start = f"({after}" if after else "-"
        with _errors():
            ids = cast("list[bytes]", self._client.zrangebylex(_SET_IDS + tenant, start, "+", 0, count))
            values = cast("list[bytes | None]", self._client.hmget(_SETS, ids)) if ids else []
            rights = cast("list[bytes | None]", self._client.hmget(_RIGHTS + tenant, ids)) if ids else []
        pairs = zip(values, rights, strict=True)
        return [_set(data, right) for data, right in pairs if data is not None and right is not None]

    def count_sets(self, tenant: str) -> int:
        with _errors():
            return cast("list[bytes]", self._client.hvals(_RIGHTS + tenant)).count(OWNER.encode())

    def delete_set(self, tenant: str, set_id: str) -> bool:
        reference_set = self.get_set(tenant, set_id)
        if reference_set is None or OWNER not in reference_set.rights:
            return False
        shares = self.list_shares(set_id)
        with _errors():
            pipe = self._client.pipeline(transaction=True)
            pipe.hdel(_SETS, set_id)
            for holder in (tenant, *shares):
                pipe.zrem(_SET_IDS + holder, set_id)
                pipe.hdel(_RIGHTS + holder, set_id)
            pipe.unlink(_ENTRIES + set_id, _SHARES + set_id)
            deleted, *_ = pipe.execute()
        return bool(deleted)

    def share_set(self, set_id: str, tenant: str, rights: tuple[str, ...]) -> None:
        text = " ".join(rights)

        def share(pipe: redis.client.Pipeline) -> None:
            exists = bool(pipe.hexists(_SETS, set_id))  # or else it was deleted meanwhile
            pipe.multi()
            pipe.zrem(_SET_IDS + tenant, set_id)
            pipe.hdel(_RIGHTS + tenant, set_id)
            pipe.hdel(_SHARES + set_id, tenant)
            if rights and exists:
                pipe.hset(_RIGHTS + tenant, set_id, text)
                pipe.hset(_SHARES + set_id, tenant, text)
                if READ in rights:
                    pipe.zadd(_SET_IDS + tenant, {set_id: 0})

        with _errors():
            self._client.transaction(share, _SETS)

    def list_shares(self, set_id: str) -> dict[str, tuple[str, ...]]:
        with _errors():
            values = cast("dict[bytes, bytes]", self._client.hgetall(_SHARES + set_id))
        return {tenant.decode(): tuple(rights.decode().split()) for tenant, rights in sorted(values.items())}

    def get_entries(self, set_id: str, entry_ids: Sequence[str]) -> dict[str, bytes]:
        with _errors():
            values = cast("list[bytes | None]", self._client.hmget(_ENTRIES + set_id, list(entry_ids)))
        return {entry: value for entry, value in zip(entry_ids, values, strict=True) if value is not None}

    def add_token(self, record: TokenRecord) -> None:
        with _errors():
            self._client.hset(_TOKENS, record.hash, msgspec.msgpack.encode(record))

    def find_token(self, token_hash: str) -> TokenRecord | None:
        with _errors():
            data = cast("bytes | None", self._client.hget(_TOKENS, token_hash))
            used = cast("bytes | None", self._client.hget(_USED, token_hash))
        return _token(data, used) if data is not None else None

    def list_tokens(self) -> list[TokenRecord]:
        with _errors():
            values = cast("dict[bytes, bytes]", self._client.hgetall(_TOKENS))
            used = cast("dict[bytes, bytes]", self._client.hgetall(_USED))
        records = [_token(data, used.get(key)) for key, data in values.items()]
        return sorted(records, key=lambda record: (record.create_time, record.id))

    def touch_token(self, token_hash: str, moment: float) -> None:
        with _errors():
            if self._client.hexists(_TOKENS, token_hash):
                self._client.hset(_USED, token_hash, repr(moment))

    def expire_token(self, token_id: str, moment: float) -> None:

        def expire(pipe: redis.client.Pipeline) -> None:
            values = cast("dict[bytes, bytes]", pipe.hgetall(_TOKENS))
            records = [_token(data, None) for data in values.values()]
            pipe.multi()
            for record in records:
                if record.id == token_id:
                    changed = msgspec.structs.replace(record, expires=moment)
                    pipe.hset(_TOKENS, record.hash, msgspec.msgpack.encode(changed))

        with _errors():
            self._client.transaction(expire, _TOKENS)

    def revoke_token(self, token_id: str) -> bool:
        for record in self.list_tokens():
            if record.id == token_id:
                with _errors():
                    self._client.hdel(_USED, record.hash)
                    return bool(self._client.hdel(_TOKENS, record.hash))
        return False

    def spend(self, token_id: str, captions: int, *, rate: float, burst: float) -> float | None:
        # By Redis' own clock.
        with _errors():
            left = cast("bytes", self._client.eval(_SPEND, 1, _RATE + token_id, captions, rate, burst))
        return float(left)

    def ping(self, *, writing: bool = False) -> None:
        del writing  # one that answers takes writes
        with _errors():
            self._client.ping()

    def close(self) -> None:
        self._client.close()


def _set(data: bytes, rights: bytes) -> ReferenceSet:
    return replace(msgspec.msgpack.decode(data, type=ReferenceSet), rights=tuple(rights.decode().split()))


def _token(data: bytes, used: bytes | None) -> TokenRecord:
    record = msgspec.msgpack.decode(data, type=TokenRecord)
    return msgspec.structs.replace(record, last_used=float(used)) if used is not None else record


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except redis.exceptions.OutOfMemoryError as error:
        raise StoreFullError("Redis has no room left") from error
    except (redis.exceptions.RedisError, OSError) as error:
        raise StoreError(f"Redis fails: {error}") from error
