"""What a client still waits for in a stream or an upload, and when it gives up."""
# Only what the server owes counts: not a caller who takes long for its next item, or for looking at a result.

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from spicegraph_service.client.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator

_SHORTEST_S = 0.05

Message = TypeVar("Message")


class Waiting:
    """Counts what is sent and answered; ``silence_s`` without an answer, where one is due, is too long."""

    def __init__(self, address: str, silence_s: float | None, *, size: Callable[[Any], int], what: str) -> None:
        self._address, self._limit = address, silence_s
        self._size, self._what = size, what
        self._sent = self._answered = 0
        self._all_sent = False
        self._failed: Exception | None = None
        self._since = time.monotonic()
        self._at_work = False  # the client itself, with a result

    def messages(self, requests: Iterable[Message]) -> Iterator[Message]:
        """Yield requests, and count them."""
        with self._sending():
            for request in requests:
                self._count(request)
                yield request

    async def messages_async(self, requests: AsyncIterable[Message]) -> AsyncIterator[Message]:
        """Yield requests, and count them."""
        with self._sending():
            async for request in requests:
                self._count(request)
                yield request

    @contextmanager
    def _sending(self) -> Iterator[None]:
        """Keep an error of the caller's own items: gRPC, which draws them, ends the call and says nothing of it."""
        try:
            yield
        except Exception as error:
            self._failed = error
            raise
        self._all_sent = True

    def _count(self, request: object) -> None:
        self._sent += self._size(request)
        self._since = time.monotonic()

    @property
    def left_s(self) -> float:
        """Seconds until it is too long."""
        if self._limit is None:
            return 3600.0
        if self._at_work or not (self._all_sent or self._sent > self._answered):
            return self._limit
        return self._since + self._limit - time.monotonic()

    def error(self) -> ServiceError:
        """Return the error that says what is waited for."""
        due = max(0, self._sent - self._answered)
        waits = f"{due} of {self._sent} {self._what} wait for an answer" if due else "the end of its answer is due"
        text = f"{self._address} has sent nothing for {self._limit:g} s: {waits}"
        return ServiceError(grpc.StatusCode.DEADLINE_EXCEEDED, text)

    def reply(self, call: Any) -> Any:
        """Return the reply of an upload (``grpc.Future``)."""
        while True:
            try:
                return call.result(timeout=max(_SHORTEST_S, self.left_s))
            except grpc.FutureTimeoutError:
                if self.left_s <= 0:
                    call.cancel()
                    raise self.error() from None
            except grpc.RpcError as error:
                raise self._own(error) from None

    def responses(self, call: Any) -> Iterator[Any]:
        """Yield the responses of a stream."""
        with self._watched(call) as is_over:
            try:
                while True:
                    self._since, self._at_work = time.monotonic(), False
                    response = next(call, None)
                    self._at_work = True
                    if response is None:
                        return
                    self._answered += self._size(response)
                    yield response
            except grpc.RpcError as error:
                raise self.error() if is_over() and self._failed is None else self._own(error) from None
            finally:
                call.cancel()

    @contextmanager
    def _watched(self, call: Any) -> Iterator[Callable[[], bool]]:
        """Cancel a call when it is too long; give what says whether that was so."""
        ended, over = threading.Event(), threading.Event()

        def watch() -> None:
            while not ended.wait(max(_SHORTEST_S, self.left_s)):
                if self.left_s <= 0:
                    over.set()
                    call.cancel()
                    return

        if self._limit is not None:
            threading.Thread(target=watch, name="spicegraph-stream", daemon=True).start()
        try:
            yield over.is_set
        finally:
            ended.set()

    async def reply_async(self, call: Any) -> Any:
        """Return the reply of an upload."""
        return await self._in_time(asyncio.ensure_future(_result(call)), call)

    async def responses_async(self, call: Any) -> AsyncIterator[Any]:
        """Yield the responses of a stream."""
        responses = aiter(call)
        try:
            while True:
                self._since = time.monotonic()
                response = await self._in_time(asyncio.ensure_future(_next(responses)), call)
                if response is None:
                    return
                self._answered += self._size(response)
                yield response
        finally:
            call.cancel()

    async def _in_time(self, answer: asyncio.Future[Any], call: Any) -> Any:
        try:
            while not (await asyncio.wait({answer}, timeout=max(_SHORTEST_S, self.left_s)))[0]:
                if self.left_s <= 0:
                    call.cancel()
                    raise self.error()
            return await answer
        except ServiceError:
            raise
        except grpc.RpcError as error:
            raise self._own(error) from None
        except asyncio.CancelledError:
            if self._failed is not None:
                raise self._failed from None
            raise
        finally:
            answer.cancel()

    def _own(self, error: Exception) -> Exception:
        """Return the error of the caller's own items, if that ended the call, or what gRPC says."""
        return self._failed or ServiceError.of(error)


async def _next(responses: AsyncIterator[Any]) -> Any:
    return await anext(responses, None)


async def _result(call: Any) -> Any:
    return await call
