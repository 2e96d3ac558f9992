"""The shared store: Redis, for several servers behind a load balancer."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, cast

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_service.store.base import ReferenceSet, StoreError, StoreFullError, TokenRecord, parse_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

try:
    import redis
except ImportError as error:
    raise DataError("a Redis store needs the extra: pip install 'spicegraph[redis]'") from error

_PREFIX = "spicegraph:"
_PARSE = b"spicegraph:parse:"
_SETS = _PREFIX + "sets"  # hash: id -> set
_SET_IDS = _PREFIX + "set-ids"  # sorted set, all with score 0: ids in order
_ENTRIES = _PREFIX + "entries:"  # hash a set: entry id -> captions
_TOKENS = _PREFIX + "tokens"  # hash: hash -> token
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
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            found = cast("list[bytes | None]", self._client.mget([_PARSE + parse_key(signature, t) for t in texts]))
        return {text: value for text, value in zip(texts, found, strict=True) if value is not None}

    def put_parses(self, signature: str, parses: Mapping[str, bytes]) -> None:
        """See :class:`~spicegraph_service.store.Store`. They expire after 30 days."""
        with _errors():
            pipe = self._client.pipeline(transaction=False)
            for text, value in parses.items():
                pipe.set(_PARSE + parse_key(signature, text), value, ex=_PARSE_LIFE_S)
            pipe.execute()

    def count_parses(self) -> int:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            return sum(1 for _ in self._client.scan_iter(_PARSE + b"*", count=_ENTRIES_AT_ONCE))

    def trim_parses(self, keep: int) -> int:
        """See :class:`~spicegraph_service.store.Store`. The oldest are those that expire first."""
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
        """See :class:`~spicegraph_service.store.Store`. The set appears in one step, entries and all."""
        upload = f"{_ENTRIES}{new.id}:{secrets.token_hex(8)}"
        with _errors():
            if self._client.hexists(_SETS, new.id):
                return self.get_set(new.id) or new
            rows = iter(entries.items())
            while part := dict[_Field, _Field](islice(rows, _ENTRIES_AT_ONCE)):
                self._client.hset(upload, mapping=part)
                self._client.expire(upload, _UPLOAD_LIFE_S)
            pipe = self._client.pipeline(transaction=True)
            pipe.persist(upload)
            pipe.rename(upload, _ENTRIES + new.id)
            pipe.hsetnx(_SETS, new.id, msgspec.msgpack.encode(new))
            pipe.zadd(_SET_IDS, {new.id: 0})
            pipe.execute()
        return self.get_set(new.id) or new

    def get_set(self, set_id: str) -> ReferenceSet | None:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            found = cast("bytes | None", self._client.hget(_SETS, set_id))
        return msgspec.msgpack.decode(found, type=ReferenceSet) if found is not None else None

    def list_sets(self, after: str, count: int) -> list[ReferenceSet]:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            ids = cast(
                "list[bytes]",
                self._client.zrangebylex(_SET_IDS, f"({after}" if after else "-", "+", 0, count),
            )
            found = cast("list[bytes | None]", self._client.hmget(_SETS, ids)) if ids else []
        return [msgspec.msgpack.decode(data, type=ReferenceSet) for data in found if data is not None]

    def delete_set(self, set_id: str) -> bool:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            pipe = self._client.pipeline(transaction=True)
            pipe.hdel(_SETS, set_id)
            pipe.zrem(_SET_IDS, set_id)
            pipe.unlink(_ENTRIES + set_id)
            deleted, *_ = pipe.execute()
        return bool(deleted)

    def get_entries(self, set_id: str, entry_ids: Sequence[str]) -> dict[str, bytes]:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            found = cast("list[bytes | None]", self._client.hmget(_ENTRIES + set_id, list(entry_ids)))
        return {entry: value for entry, value in zip(entry_ids, found, strict=True) if value is not None}

    def add_token(self, record: TokenRecord) -> None:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            self._client.hset(_TOKENS, record.hash, msgspec.msgpack.encode(record))

    def find_token(self, token_hash: str) -> TokenRecord | None:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            found = cast("bytes | None", self._client.hget(_TOKENS, token_hash))
        return msgspec.msgpack.decode(found, type=TokenRecord) if found is not None else None

    def list_tokens(self) -> list[TokenRecord]:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            found = cast("list[bytes]", self._client.hvals(_TOKENS))
        records = [msgspec.msgpack.decode(data, type=TokenRecord) for data in found]
        return sorted(records, key=lambda record: (record.create_time, record.id))

    def revoke_token(self, token_id: str) -> bool:
        """See :class:`~spicegraph_service.store.Store`."""
        for record in self.list_tokens():
            if record.id == token_id:
                with _errors():
                    return bool(self._client.hdel(_TOKENS, record.hash))
        return False

    def ping(self) -> None:
        """See :class:`~spicegraph_service.store.Store`."""
        with _errors():
            self._client.ping()

    def close(self) -> None:
        """See :class:`~spicegraph_service.store.Store`."""
        self._client.close()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except redis.exceptions.OutOfMemoryError as error:
        raise StoreFullError("Redis has no room left") from error
    except (redis.exceptions.RedisError, OSError) as error:
        raise StoreError(f"Redis fails: {error}") from error
