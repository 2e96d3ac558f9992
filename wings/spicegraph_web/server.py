"""The HTTP server inside of a server: its address, its routes, who may call it from a browser."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from spicegraph_parser.errors import InputError
from spicegraph_service.kit import MOST_CONNECTIONS, FailedCallError, host_and_port, is_local
from spicegraph_web.calls import CallRoutes, error_response
from spicegraph_web.gateway import InnerGateway
from spicegraph_web.home import home
from spicegraph_web.openapi import openapi
from spicegraph_web.report_page import RENDER, ReportPage

if TYPE_CHECKING:
    from aiohttp.typedefs import Middleware

    from spicegraph_service.kit import DoorParts

_ALLOWED = "authorization, connect-protocol-version, connect-timeout-ms, content-type, traceparent, x-request-id"
_EXPOSED = "retry-after, traceparent, x-request-id"
_AT_ONCE_S = 0.01
_SAY_EVERY_S = 10.0
_SERVER_ERROR = 500
_NAME = "spicegraph"
_log = logging.getLogger(__name__)
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}

_REFUSALS = frozenset({404, 405, 413, 415})
_KEPT = frozenset({"Accept-Post", "Allow"})
_SHARING = web.RequestKey("sharing", dict[str, str])

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebServer:
    """Serves a server's methods, ``/``, health, ``/openapi.json`` and the pages of its services over HTTP."""

    def __init__(self, parts: DoorParts) -> None:
        config = parts.config
        self._address = config.http or ""
        self._health = parts.health
        self._tls = parts.tls
        self._reuse_port = config.reuse_port
        self._grace_s = config.grace
        gateway = InnerGateway(parts.services, parts.interceptor)
        app = web.Application(middlewares=[_of_hosts(config.allowed_hosts), _across(config.origins), _safe])
        app.on_response_prepare.append(_add_headers)
        routes = [route for pages in parts.pages for route in pages(gateway)]
        if RENDER in gateway.methods:
            routes += ReportPage(gateway, parts.limits, tokens=config.needs_tokens).routes()
        calls = CallRoutes(gateway, parts.limits)
        # A service whose page is ``/`` has it: the first route of a path answers.
        own = (web.get("/health", self._report_health), *routes, home(gateway, routes))
        app.add_routes([*calls.routes(), *own])
        app.router.add_get("/openapi.json", partial(_send, openapi(gateway)))
        self._runner = _Runner(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=75.0,
            shutdown_timeout=max(config.grace, _AT_ONCE_S),
        )

    async def start(self) -> int:
        """Listen; return the port, 0 of a ``unix:PATH``."""
        host, port = host_and_port(self._address)
        await self._runner.setup()
        site: web.BaseSite
        if host.startswith("unix:"):
            site = web.UnixSite(self._runner, host.removeprefix("unix:"), ssl_context=self._tls)
        else:
            site = web.TCPSite(self._runner, host, port, ssl_context=self._tls, reuse_port=self._reuse_port or None)
        try:
            await site.start()
        except OSError as error:
            raise InputError(f"cannot listen on {self._address}: {error.strerror or error}") from error
        address = self._runner.addresses[0]
        return int(address[1]) if isinstance(address, tuple) else 0

    async def stop(self) -> None:
        """Accept no more connections, let the calls under way finish for a while, and end the others."""
        ending = asyncio.create_task(self._runner.cleanup())
        # aiohttp waits as long again for the calls that it has cancelled.
        await asyncio.wait({ending}, timeout=self._grace_s)
        if not ending.done():
            await self.hurry()
        await ending

    async def hurry(self) -> None:
        """End the calls that :meth:`stop` waits for."""
        if self._runner.server is not None:
            await self._runner.server.shutdown(_AT_ONCE_S)

    async def _report_health(self, request: web.Request) -> web.Response:
        """Say whether a service serves, or without a name the server."""
        name = request.query.get("service", "")
        serving = self._health.serves(name)
        if serving is None:
            return web.json_response({"status": "SERVICE_UNKNOWN"}, status=404)
        return web.json_response({"status": "SERVING" if serving else "NOT_SERVING"}, status=200 if serving else 503)


class _Runner(web.AppRunner):
    """Runs an application on connections of ours."""

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        options = server._kwargs
        made = _Server(server.request_handler, request_factory=server.request_factory, **options)
        made.handler_cancellation = server.handler_cancellation
        return made


class _Server(web.Server):
    """Keeps the number of connections within bounds: all together, and those of one address."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._hosts: dict[web.RequestHandler, str] = {}

    def __call__(self) -> web.RequestHandler:
        """Return the protocol handler of a new connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Take a connection, or end it."""
        super().connection_made(handler, transport)
        peer = transport.get_extra_info("peername")
        host = peer[0] if isinstance(peer, tuple) else ""  # a socket's file has no other addresses
        self._hosts[handler] = host
        of_host = sum(other == host for other in self._hosts.values()) if host else 0
        if len(self._connections) > MOST_CONNECTIONS or of_host > MOST_CONNECTIONS // 2:
            transport.abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        super().connection_lost(handler, exc)
        self._hosts.pop(handler, None)


class _Connection(web.RequestHandler):
    """A connection whose malformed requests are a line in the log at most, and answers say nothing of the server."""

    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Respond to a malformed HTTP request with 400, or to a server error."""
        if status >= _SERVER_ERROR and not isinstance(exc, web.RequestPayloadError | HttpProcessingError):
            response = super().handle_error(request, status, exc, message)
        else:
            _malformed.count(request.remote)
            response = web.Response(status=400, text="this is not a request as HTTP has them\n")
            response.force_close()
        response.headers["Server"] = _NAME
        return response

    def log_exception(self, *args: object, **options: object) -> None:
        """Log an unhandled exception, except for unreadable request bodies."""
        if isinstance(sys.exc_info()[1], web.RequestPayloadError):
            return
        super().log_exception(*args, **options)


class _Malformed:
    """Counts malformed requests, and says so in the log once in a while."""

    def __init__(self) -> None:
        self._counted = 0
        self._say_from = 0.0

    def count(self, peer: str | None) -> None:
        self._counted += 1
        if time.monotonic() >= self._say_from:
            _log.warning("malformed HTTP requests: %d, the last from %s", self._counted, peer)
            self._counted, self._say_from = 0, time.monotonic() + _SAY_EVERY_S


_malformed = _Malformed()


async def _send(document: bytes, _request: web.Request) -> web.Response:
    return web.Response(body=document, content_type="application/json")


@web.middleware
async def _safe(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Write refusals of the router as Connect does, so that clients read one kind of error."""
    try:
        return await handler(request)
    except (web.RequestPayloadError, HttpProcessingError) as error:
        _malformed.count(request.remote)
        raise web.HTTPBadRequest(text="the body is not what its headers say\n") from error
    except web.HTTPException as error:
        if error.status not in _REFUSALS or request.method == "GET":
            raise
        code = grpc.StatusCode.UNIMPLEMENTED
        refused = error_response(
            FailedCallError(code, f"{request.method} {request.path}: {error.reason}"), status=error.status
        )
        refused.headers.update((name, value) for name, value in error.headers.items() if name in _KEPT)
        return refused


def _of_hosts(hosts: frozenset[str]) -> Middleware:
    """Return a middleware that refuses requests for other hosts (against DNS rebinding)."""

    @web.middleware
    async def of_hosts(request: web.Request, handler: _Handler) -> web.StreamResponse:
        header = request.headers.get("Host", "localhost")
        name = (header.rpartition("]")[0] or header.partition(":")[0]).lstrip("[").lower()
        if "*" in hosts or name in hosts or _is_own(name):
            return await handler(request)
        message = f"there is no host {header!a:.100} here; the server's option --hosts names others"
        return error_response(FailedCallError(grpc.StatusCode.PERMISSION_DENIED, message), status=421)

    return of_hosts


def _is_own(name: str) -> bool:
    return name == "localhost" or is_local(f"[{name}]:0" if ":" in name else f"{name}:0") if name else False


def _across(origins: frozenset[str]) -> Middleware:
    """Return the CORS middleware; calls carry tokens, never cookies."""

    @web.middleware
    async def across(request: web.Request, handler: _Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        allowed = origin if origin in origins else "*" if "*" in origins else None
        if origin is not None and request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            headers = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": _ALLOWED}
            headers["Access-Control-Max-Age"] = "7200"
            return (
                web.Response(status=204, headers=headers | _sharing(allowed)) if allowed else web.Response(status=403)
            )
        request[_SHARING] = _sharing(allowed) if origin is not None and allowed is not None else {}
        return await handler(request)

    return across


def _sharing(origin: str) -> dict[str, str]:
    return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _EXPOSED, "Vary": "Origin"}


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers of every response, except those already set."""
    response.headers["Server"] = _NAME
    for name, value in (_SAFE | request.get(_SHARING, {})).items():
        response.headers.setdefault(name, value)
