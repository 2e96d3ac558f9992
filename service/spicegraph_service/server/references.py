"""Reference sets: created whole by an upload, looked up when items name them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from spicegraph_api.v1 import reference_service_pb2 as pb
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceServicer
from spicegraph_service.server import validation
from spicegraph_service.server.cache import Lru, RefreshAheadCache, StoreThread
from spicegraph_service.server.interceptor import Context, current_call
from spicegraph_service.server.status import Violation, exhausted, invalid, not_found
from spicegraph_service.server.tasks import ItemWork
from spicegraph_service.server.validation import patiently
from spicegraph_service.store import ReferenceSet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from spicegraph_service.server.limits import Limits
    from spicegraph_service.server.scheduler import Scheduler

_KIND = "reference set"
_SET_REMEMBERED_S = 5.0  # how long a set that another server deleted may still be used here
_MOST_SETS_REMEMBERED = 1_000
_UPLOADS_AT_ONCE = 4
_PARSED_AT_ONCE = 256  # captions of an upload that are parsed together

_captions = msgspec.msgpack.Decoder(tuple[str, ...])
_encoder = msgspec.msgpack.Encoder()


class References:
    """Finds the references of items in stored sets, and keeps the most recently used in memory."""

    def __init__(self, thread: StoreThread, *, max_bytes: int) -> None:
        self._thread = thread
        self._entries: Lru[tuple[str, str]] = Lru(max_bytes)
        self._sets = RefreshAheadCache(self._find, seconds=_SET_REMEMBERED_S, most=_MOST_SETS_REMEMBERED)

    async def check(self, set_id: str) -> None:
        """Check that a set exists.

        Raises:
            CallError: NOT_FOUND.
            StoreError: the store cannot be read.
        """
        if await self._sets.get(set_id) is None:
            raise not_found(_KIND, set_id)

    async def _find(self, set_id: str) -> ReferenceSet | None:
        return await self._thread.run(lambda: self._thread.store.get_set(set_id))

    async def resolve(self, set_id: str, items: Sequence[scores_pb2.Item], *, first: int = 0) -> list[ItemWork]:
        """Return the items with the references of a set, which :meth:`check` knows.

        Raises:
            CallError: INVALID_ARGUMENT, naming every item that the set has no entry for.
            StoreError: the store cannot be read.
        """
        wanted = [item.reference_id if item.HasField("reference_id") else item.id for item in items]
        found: dict[str, bytes] = {}
        missing = []
        for entry_id in dict.fromkeys(wanted):
            value = self._entries.get((set_id, entry_id))
            if value is None:
                missing.append(entry_id)
            else:
                found[entry_id] = value
        if missing:
            stored = await self._thread.run(lambda: self._thread.store.get_entries(set_id, missing))
            for entry_id, value in stored.items():
                self._entries.put((set_id, entry_id), value)
            found |= stored
        unknown = [
            Violation(
                f"items[{index}].{'reference_id' if item.HasField('reference_id') else 'id'}",
                f"the reference set has no entry {entry_id!a}",
            )
            for index, (item, entry_id) in enumerate(zip(items, wanted, strict=True), start=first)
            if entry_id not in found
        ]
        if unknown:
            raise invalid(unknown, reason="UNKNOWN_ENTRY")
        return [
            ItemWork(item.id, item.candidate, _captions.decode(found[entry_id]))
            for item, entry_id in zip(items, wanted, strict=True)
        ]

    def forget(self, set_id: str) -> None:
        """Forget a deleted set. Its entries grow old in memory, where no call reaches them."""
        self._sets.forget(set_id)


class ReferencesServicer(ReferenceServiceServicer):
    """The ``ReferenceService`` of the contract."""

    def __init__(self, scheduler: Scheduler, references: References, thread: StoreThread, limits: Limits) -> None:
        self._scheduler = scheduler
        self._references = references
        self._thread = thread
        self._limits = limits
        self._uploads = 0

    async def CreateReferenceSet(
        self, request_iterator: AsyncIterator[pb.CreateReferenceSetRequest], context: Context
    ) -> pb.CreateReferenceSetResponse:
        """Take an upload, parse it, and store it whole."""
        del context
        if self._uploads >= _UPLOADS_AT_ONCE:
            raise exhausted("UPLOADS", f"{_UPLOADS_AT_ONCE} uploads are under way", 5.0)
        self._uploads += 1
        try:
            name, entries = await self._receive(request_iterator)
            stored = await self._store(name, entries)
        finally:
            self._uploads -= 1
        return pb.CreateReferenceSetResponse(reference_set=_message(stored))

    async def _receive(
        self, requests: AsyncIterator[pb.CreateReferenceSetRequest]
    ) -> tuple[str, dict[str, tuple[str, ...]]]:
        """Read the upload to its end, parsing as it comes: a slow parser slows the sender down."""
        _ = self._scheduler.info  # raises until the workers are ready: an upload must not wait for them
        name = ""
        entries: dict[str, tuple[str, ...]] = {}
        size = 0
        first = True
        async for request in patiently(requests):
            match request.WhichOneof("payload"):
                case "settings" if first:
                    name = request.settings.display_name
                    validation.check_display_name(name)
                case "entries":
                    batch = request.entries.entries
                    validation.check_entries(batch, self._limits, seen=entries, first=len(entries))
                    size += request.ByteSize()
                    if size > self._limits.max_reference_set_bytes:
                        reason = f"the set has more than {self._limits.max_reference_set_bytes} bytes"
                        raise invalid([Violation("entries", reason)])
                    new = {entry.id: tuple(entry.references) for entry in batch}
                    await self._parse(new.values())
                    entries |= new
                case "settings":
                    raise invalid([Violation("settings", "only the first message holds settings")])
                case _:
                    raise invalid([Violation("payload", "a message holds settings or entries")])
            first = False
        if not entries:
            raise invalid([Violation("entries", "is empty")])
        return name, entries

    async def _parse(self, references: Iterable[tuple[str, ...]]) -> None:
        texts = list(dict.fromkeys(text for captions in references for text in captions))
        current_call().charge(len(texts))
        for start in range(0, len(texts), _PARSED_AT_ONCE):
            await self._scheduler.store_parses(texts[start : start + _PARSED_AT_ONCE], caller=current_call().share)

    async def _store(self, name: str, entries: dict[str, tuple[str, ...]]) -> ReferenceSet:
        def store() -> ReferenceSet:
            count = sum(map(len, entries.values()))
            new = ReferenceSet(reference_set_id(name, entries), name, len(entries), count, time.time())
            packed = {entry_id: _encoder.encode(captions) for entry_id, captions in entries.items()}
            return self._thread.store.create_set(new, packed)

        # Shielded: a client that goes away at the last moment must not leave half a call behind.
        return await asyncio.shield(asyncio.ensure_future(self._thread.run(store)))

    async def GetReferenceSet(self, request: pb.GetReferenceSetRequest, context: Context) -> pb.GetReferenceSetResponse:
        """Return what is known of a set."""
        del context
        found = await self._thread.run(lambda: self._thread.store.get_set(request.id))
        if found is None:
            raise not_found(_KIND, request.id)
        return pb.GetReferenceSetResponse(reference_set=_message(found))

    async def ListReferenceSets(
        self, request: pb.ListReferenceSetsRequest, context: Context
    ) -> pb.ListReferenceSetsResponse:
        """List the sets, page by page: a page's token is the last id before it."""
        del context
        size = validation.check_page_size(request.page_size)
        found = await self._thread.run(lambda: self._thread.store.list_sets(request.page_token, size + 1))
        page = found[:size]
        return pb.ListReferenceSetsResponse(
            reference_sets=[_message(reference_set) for reference_set in page],
            next_page_token=page[-1].id if len(found) > size else "",
        )

    async def DeleteReferenceSet(
        self, request: pb.DeleteReferenceSetRequest, context: Context
    ) -> pb.DeleteReferenceSetResponse:
        """Delete a set."""
        del context
        deleted = await self._thread.run(lambda: self._thread.store.delete_set(request.id))
        self._references.forget(request.id)
        if not deleted:
            raise not_found(_KIND, request.id)
        return pb.DeleteReferenceSetResponse()


def reference_set_id(display_name: str, entries: dict[str, tuple[str, ...]]) -> str:
    """Return the id of a set: a digest of its name and its entries, whatever their order."""
    digest = hashlib.sha256(_encoder.encode(display_name))
    for entry_id in sorted(entries):
        digest.update(_encoder.encode((entry_id, entries[entry_id])))
    return digest.hexdigest()[:32]


def _message(reference_set: ReferenceSet) -> pb.ReferenceSet:
    created = Timestamp()
    created.FromMicroseconds(round(1e6 * reference_set.create_time))
    return pb.ReferenceSet(
        id=reference_set.id,
        display_name=reference_set.display_name,
        entry_count=reference_set.entry_count,
        caption_count=reference_set.caption_count,
        create_time=created,
    )
