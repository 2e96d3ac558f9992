"""Reference sets: created whole by an upload, looked up when items name them."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from spicegraph_api.v1 import reference_service_pb2 as pb
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceServicer
from spicegraph_service.pool.cache import Lru, RefreshAheadCache, StoreThread
from spicegraph_service.pool.costs import texts_cost
from spicegraph_service.pool.tasks import GraphStyle, ItemWork
from spicegraph_service.rpc import validation
from spicegraph_service.rpc.interceptor import Context, current_call
from spicegraph_service.rpc.scheduler import chunked
from spicegraph_service.rpc.status import Violation, exhausted, invalid, missing_right, not_found, too_many_sets, wrong
from spicegraph_service.rpc.validation import patiently
from spicegraph_service.store import DEFAULT_TENANT, EVIDENCE, OWNER, READ, SCORE, ReferenceSet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from spicegraph_service.rpc.limits import Limits
    from spicegraph_service.rpc.scheduler import Scheduler

_KIND = "reference set"
_SET_REMEMBERED_S = 5.0  # how long a set that another server deleted may still be used here
_UPLOADS_AT_ONCE = 4
_ID = re.compile(r"[0-9a-f]{32}")
_LONGEST_NAME = 200
_LONGEST_TENANT = 100
_RIGHTS: Mapping[pb.ReferenceRight.ValueType, str] = {
    pb.REFERENCE_RIGHT_READ: READ,
    pb.REFERENCE_RIGHT_SCORE: SCORE,
    pb.REFERENCE_RIGHT_EVIDENCE: EVIDENCE,
}
_PARSED_AT_ONCE = 256  # captions of an upload that are parsed together

_captions = msgspec.msgpack.Decoder(tuple[str, ...])
_encoder = msgspec.msgpack.Encoder()


class References:
    """Finds the references of items in stored sets, and keeps the most recently used in memory."""

    def __init__(self, thread: StoreThread, memory: Lru) -> None:
        self._thread = thread
        self._entries = memory
        self._sets: RefreshAheadCache[tuple[str, str], ReferenceSet] = RefreshAheadCache(
            lambda key: thread.run(lambda: thread.store.get_set(*key)), seconds=_SET_REMEMBERED_S, most=1_000
        )

    async def check(self, set_id: str, *, evidence: bool) -> str:
        """Check the right to score, or see evidence, of a set; return the tenant whose parses are looked up."""
        reference_set = await self._sets.get((current_call().tenant, set_id))
        if reference_set is None:
            raise not_found(_KIND, set_id)
        for right in (SCORE, EVIDENCE) if evidence else (SCORE,):
            if not reference_set.allows(right):
                raise missing_right(_KIND, set_id, right)
        tenant = current_call().tenant
        return tenant if reference_set.tenant == tenant else f"{tenant}\t{reference_set.tenant}"  # no name has a tab

    async def resolve(self, set_id: str, items: Sequence[scores_pb2.Item], *, first: int = 0) -> list[ItemWork]:
        """Return the items with the references of a set, which :meth:`check` knows."""
        fields = ["reference_id" if item.HasField("reference_id") else "id" for item in items]
        wanted = [getattr(item, field) for item, field in zip(items, fields, strict=True)]
        entries = await self._found(set_id, dict.fromkeys(wanted))
        unknown = [
            Violation(f"items[{index}].{field}", f"the reference set has no entry {entry_id!a}")
            for index, (field, entry_id) in enumerate(zip(fields, wanted, strict=True), start=first)
            if entry_id not in entries
        ]
        if unknown:
            raise invalid(unknown, reason="UNKNOWN_ENTRY")
        references = {entry_id: _captions.decode(value) for entry_id, value in entries.items()}
        return [
            ItemWork(item.id, item.candidate, references[entry_id])
            for item, entry_id in zip(items, wanted, strict=True)
        ]

    async def _found(self, set_id: str, wanted: Iterable[str]) -> dict[str, bytes]:
        """Return the entries that are in memory or in the store."""
        known = {entry_id: self._entries.get((set_id, entry_id)) for entry_id in wanted}
        entries = {entry_id: value for entry_id, value in known.items() if value is not None}
        missing = [entry_id for entry_id in known if entry_id not in entries]
        if missing:
            stored = await self._thread.run(lambda: self._thread.store.get_entries(set_id, missing))
            for entry_id, value in stored.items():
                self._entries.put((set_id, entry_id), value)
            entries |= stored
        return entries

    def forget(self, tenant: str, set_id: str) -> None:
        """Forget a tenant's rights on a set. Its entries grow old in memory, where no call reaches them."""
        self._sets.forget((tenant, set_id))


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
        return pb.CreateReferenceSetResponse(reference_set=_message(stored, await self._shares(stored)))

    async def _receive(
        self, requests: AsyncIterator[pb.CreateReferenceSetRequest]
    ) -> tuple[str, dict[str, tuple[str, ...]]]:
        """Read the upload to its end, parsing as it comes: a slow parser slows the sender down."""
        _ = self._scheduler.info  # raises until the workers are ready: an upload must not wait for them
        name = ""
        style: GraphStyle = "spice"
        rule = validation.control_tokens(scores_pb2.CONTROL_TOKENS_UNSPECIFIED)
        entries: dict[str, tuple[str, ...]] = {}
        size = 0
        first = True
        async for request in patiently(requests):
            match request.WhichOneof("payload"):
                case "settings" if first:
                    name = _checked_name(request.settings.display_name)
                    style = validation.graph_style(
                        request.settings.graph_style, self._scheduler.info, field="settings.graph_style"
                    )
                    rule = validation.control_tokens(request.settings.control_tokens, field="settings.control_tokens")
                case "entries":
                    batch = request.entries.entries
                    validation.check_entries(batch, self._limits, seen=entries, first=len(entries), control_tokens=rule)
                    size += request.ByteSize()
                    if size > self._limits.max_reference_set_bytes:
                        raise wrong("entries", f"the set has more than {self._limits.max_reference_set_bytes} bytes")
                    new = {entry.id: tuple(entry.references) for entry in batch}
                    await self._parse(list(dict.fromkeys(chain.from_iterable(new.values()))), style)
                    entries |= new
                case "settings":
                    raise wrong("settings", "only the first message holds settings")
                case _:
                    raise wrong("payload", "a message holds settings or entries")
            first = False
        if not entries:
            raise wrong("entries", "is empty")
        return name, entries

    async def _parse(self, texts: Sequence[str], style: GraphStyle) -> None:
        call = current_call()
        call.charge(len(texts), texts_cost(texts))
        for chunk in chunked(texts, _PARSED_AT_ONCE):
            await self._scheduler.store_parses(chunk, style, caller=call.share, tenant=call.tenant)

    async def _store(self, name: str, entries: dict[str, tuple[str, ...]]) -> ReferenceSet:
        tenant = current_call().tenant

        def store() -> ReferenceSet:
            count = sum(map(len, entries.values()))
            set_id = reference_set_id(name, entries, tenant=tenant)
            kept, most = self._thread.store, self._limits.max_sets
            # A tenant may store one more set, unless it is there already.
            if most and kept.get_set(tenant, set_id) is None and kept.count_sets(tenant) >= most:
                raise too_many_sets(most)
            new = ReferenceSet(set_id, name, len(entries), count, time.time(), tenant)
            packed = {entry_id: _encoder.encode(captions) for entry_id, captions in entries.items()}
            return kept.create_set(new, packed)

        # Shielded: a client that goes away at the last moment must not leave half a call behind.
        return await asyncio.shield(asyncio.ensure_future(self._thread.run(store)))

    async def GetReferenceSet(self, request: pb.GetReferenceSetRequest, context: Context) -> pb.GetReferenceSetResponse:
        """Return a reference set's metadata."""
        del context
        reference_set = await self._set(request.id, READ)
        return pb.GetReferenceSetResponse(reference_set=_message(reference_set, await self._shares(reference_set)))

    async def _set(self, set_id: str, right: str) -> ReferenceSet:
        """Return a set on which the caller has a right."""
        tenant = current_call().tenant
        reference_set = await self._thread.run(lambda: self._thread.store.get_set(tenant, set_id))
        if reference_set is None:
            raise not_found(_KIND, set_id)
        if not reference_set.allows(right):
            raise missing_right(_KIND, set_id, right)
        return reference_set

    async def _shares(self, reference_set: ReferenceSet) -> Mapping[str, tuple[str, ...]]:
        """Return with whom a set is shared, for its owner."""
        if reference_set.tenant != current_call().tenant:
            return {}
        return await self._thread.run(lambda: self._thread.store.list_shares(reference_set.id))

    async def ListReferenceSets(
        self, request: pb.ListReferenceSetsRequest, context: Context
    ) -> pb.ListReferenceSetsResponse:
        """List the sets, page by page: a page's token is the last id before it."""
        del context
        size = validation.check_page_size(request.page_size)
        validation.check_page_token(request.page_token, _ID)
        tenant = current_call().tenant
        sets = await self._thread.run(lambda: self._thread.store.list_sets(tenant, request.page_token, size + 1))
        page = sets[:size]
        return pb.ListReferenceSetsResponse(
            reference_sets=[_message(reference_set, await self._shares(reference_set)) for reference_set in page],
            next_page_token=page[-1].id if len(sets) > size else "",
        )

    async def DeleteReferenceSet(
        self, request: pb.DeleteReferenceSetRequest, context: Context
    ) -> pb.DeleteReferenceSetResponse:
        """Delete a set."""
        del context
        reference_set = await self._set(request.id, OWNER)
        shares = await self._shares(reference_set)
        deleted = await self._thread.run(lambda: self._thread.store.delete_set(reference_set.tenant, reference_set.id))
        for tenant in (reference_set.tenant, *shares):
            self._references.forget(tenant, reference_set.id)
        if not deleted:
            raise not_found(_KIND, request.id)
        return pb.DeleteReferenceSetResponse()

    async def ShareReferenceSet(
        self, request: pb.ShareReferenceSetRequest, context: Context
    ) -> pb.ShareReferenceSetResponse:
        """Give a tenant rights on a set, or take them away."""
        del context
        rights = _checked_rights(request.rights)
        name = request.tenant
        if not (name.strip() and len(name) <= _LONGEST_TENANT and name.isprintable()):
            raise wrong("tenant", f"1 to {_LONGEST_TENANT} printable characters")
        reference_set = await self._set(request.id, OWNER)
        if request.tenant == reference_set.tenant:
            raise wrong("tenant", "owns the set, and has every right")
        await self._thread.run(lambda: self._thread.store.share_set(reference_set.id, request.tenant, rights))
        self._references.forget(request.tenant, reference_set.id)
        return pb.ShareReferenceSetResponse(reference_set=_message(reference_set, await self._shares(reference_set)))


def reference_set_id(display_name: str, entries: dict[str, tuple[str, ...]], *, tenant: str = DEFAULT_TENANT) -> str:
    """Return the id of a set: a digest of its owner, its name and its entries, whatever their order."""
    # The ids of the default tenant are those of versions without tenants: the same upload still gives the same set.
    owner = b"" if tenant == DEFAULT_TENANT else hashlib.sha256(tenant.encode()).digest()
    digest = hashlib.sha256(owner + _encoder.encode(display_name))
    for entry_id in sorted(entries):
        digest.update(_encoder.encode((entry_id, entries[entry_id])))
    return digest.hexdigest()[:32]


def _checked_name(name: str) -> str:
    if len(name) > _LONGEST_NAME or "\0" in name:
        raise wrong("settings.display_name", f"at most {_LONGEST_NAME} characters, and no NUL")
    return name


def _checked_rights(wanted: Sequence[pb.ReferenceRight.ValueType]) -> tuple[str, ...]:
    violations = []
    for index, value in enumerate(wanted):
        if value not in _RIGHTS:
            violations.append(Violation(f"rights[{index}]", f"{value} is not a right"))
        elif value in wanted[:index]:
            violations.append(Violation(f"rights[{index}]", "appears twice"))
    if violations:
        raise invalid(violations)
    return tuple(right for value, right in _RIGHTS.items() if value in wanted)


def _message(reference_set: ReferenceSet, shares: Mapping[str, tuple[str, ...]]) -> pb.ReferenceSet:
    numbers = {right: value for value, right in _RIGHTS.items()}
    created = Timestamp()
    created.FromMicroseconds(round(1e6 * reference_set.create_time))
    return pb.ReferenceSet(
        id=reference_set.id,
        display_name=reference_set.display_name,
        entry_count=reference_set.entry_count,
        caption_count=reference_set.caption_count,
        create_time=created,
        owner=reference_set.tenant,
        shares=[
            pb.ReferenceShare(tenant=tenant, rights=[numbers[right] for right in rights])
            for tenant, rights in shares.items()
        ],
    )
