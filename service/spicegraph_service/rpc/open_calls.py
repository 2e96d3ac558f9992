"""Calls that need no token, health checks and reflection: who makes them takes nothing from calls of services."""
# Bounded are streams that stay open, by connection and in all, and calls whose request has not come yet: where these
# are too many, the oldest ends. So ``Check``, whose request comes with its headers, is always answered.

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from spicegraph_service.rpc.interceptor import Refusal, checked, decoder, only
from spicegraph_service.rpc.status import CallError, exhausted, stalled, to_trailers, unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Container

    from spicegraph_service.rpc.interceptor import Context, Handler

MOST = 1_024  # streams in all, and calls whose request has not come
MOST_OF_CONNECTION = 16  # a proxy has one connection for many clients
_REQUEST_S = 5.0  # until the first request
_LEAVE_S = 0.05  # so that watchers are told of the stop before their streams end
_RETRY_S = 5.0
_log = logging.getLogger(__name__)


class OpenCalls(grpc.aio.ServerInterceptor):
    """Answers calls of all methods but ``others``; ``refused`` is told the reason of each refusal."""

    def __init__(self, others: Container[str], *, silence_s: float, refused: Callable[[str], None]) -> None:
        self._others = others
        self._silence_s = silence_s
        self._refused = refused
        self._streams: Counter[str] = Counter()  # by connection
        self._waiting: dict[asyncio.Timeout, None] = {}  # for their first request, the oldest first
        self._open: set[asyncio.Timeout] = set()
        self._leaving = False
        self._untold = 0
        self._tell_from = 0.0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the call's handler, as one with streamed requests, since that begins with the headers."""
        found = await continuation(handler_call_details)
        if found is None or isinstance(found, Refusal) or handler_call_details.method in self._others:
            return found
        handler: Any = found  # the stubs of handlers know only synchronous servicers
        coding = decoder(handler.request_deserializer), handler.response_serializer

        async def check(requests: AsyncIterator[Any], context: Context) -> Any:
            async with self._admitted(context) as limit:
                return await handler.unary_unary(await only(self._read(requests, limit)), context)

        async def watch(requests: AsyncIterator[Any], context: Context) -> None:
            async with self._admitted(context, stays=True) as limit:
                await handler.unary_stream(await only(self._read(requests, limit)), context)

        async def talk(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            async with self._admitted(context, stays=True) as limit:
                async for response in handler.stream_stream(self._read(requests, limit), context):
                    yield response

        if not handler.response_streaming:
            return grpc.stream_unary_rpc_method_handler(check, *coding)
        return grpc.stream_stream_rpc_method_handler(talk if handler.request_streaming else watch, *coding)

    def leave(self) -> None:
        """End the streams: the server stops, and has told the watchers."""
        self._leaving = True
        soon = asyncio.get_running_loop().time() + _LEAVE_S
        for limit in self._open:
            _reschedule(limit, soon)

    @asynccontextmanager
    async def _admitted(self, context: Context, *, stays: bool = False) -> AsyncIterator[asyncio.Timeout]:
        """Give a call the limit of its time, or refuse it."""
        peer = context.peer()
        limit = asyncio.timeout(_REQUEST_S)
        try:
            if stays and (self._streams.total() >= MOST or self._streams[peer] >= MOST_OF_CONNECTION):
                raise exhausted("OPEN_STREAMS", "there are too many watches and reflection streams", _RETRY_S)
            self._streams[peer] += stays
            try:
                async with limit:
                    self._open.add(limit)
                    yield limit
            except TimeoutError:
                raise self._end() from None
            finally:
                self._open.discard(limit)
                self._waiting.pop(limit, None)
                self._streams[peer] -= stays
                if not self._streams[peer]:
                    del self._streams[peer]
        except CallError as error:
            self._tell(error, peer)
            await context.abort(error.code, error.message, to_trailers(error, request_id=""))

    def _end(self) -> CallError:
        if self._leaving:
            return unavailable("STOPPING", "the server is stopping", _RETRY_S)
        return stalled(_REQUEST_S)

    async def _read(self, requests: AsyncIterator[Any], limit: asyncio.Timeout) -> AsyncIterator[Any]:
        """Yield a call's requests; the first must come soon."""
        now = asyncio.get_running_loop().time
        self._waiting[limit] = None
        if len(self._waiting) > MOST:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            _reschedule(oldest, now())
        async for request in checked(requests):
            self._waiting.pop(limit, None)
            if not self._leaving:
                _reschedule(limit, None)
            yield request
            if not self._leaving:
                _reschedule(limit, now() + self._silence_s)

    def _tell(self, error: CallError, peer: str) -> None:
        """Count a refusal, and say so in the log, once a second at most."""
        self._refused(error.reason)
        self._untold += 1
        if time.monotonic() >= self._tell_from:
            _log.warning("%d calls without a token ended, the last of %s: %s", self._untold, peer, error.message)
            self._untold, self._tell_from = 0, time.monotonic() + 1.0


def _reschedule(limit: asyncio.Timeout, when: float | None) -> None:
    if not limit.expired():
        limit.reschedule(when)
