"""The HTTP server inside of a server: its address, its routes, who may call it from a browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import grpc
from aiohttp import web

from spicegraph_parser.errors import InputError
from spicegraph_service.rpc.gateway import FailedCallError, openapi
from spicegraph_service.rpc.http import CallRoutes, error_response

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from aiohttp.typedefs import Middleware

    from spicegraph_service.rpc.gateway import Gateway
    from spicegraph_service.rpc.limits import Limits
    from spicegraph_service.rpc.service import HealthMonitor

_PREFLIGHT_S = "7200"
_ALLOWED = "authorization, connect-protocol-version, connect-timeout-ms, content-type, traceparent, x-request-id"
_EXPOSED = "retry-after, traceparent, x-request-id"
_KEEPALIVE_S = 75.0
_AT_ONCE_S = 0.01
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}

_REFUSALS = frozenset({404, 405, 413, 415})
_KEPT = frozenset({"Accept-Post", "Allow"})
_SHARING = web.RequestKey("sharing", dict[str, str])

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Options of the HTTP server.

    Attributes:
        address: ``HOST:PORT`` (port 0: any free one) or ``unix:PATH``.
        origins: pages that may call from a browser (``https://example.org``), ``*`` for all.
    """

    address: str
    origins: frozenset[str] = frozenset()

    def check(self) -> None:
        """Refuse what is not an origin.

        Raises:
            InputError: one is not.
        """
        for origin in self.origins:
            scheme, found, host = origin.partition("://")
            if origin != "*" and (scheme not in {"http", "https"} or not found or not host or "/" in host):
                raise InputError(f"an origin is http[s]://HOST[:PORT] or *, got {origin!a}")


class WebServer:
    """Serves the methods of a gateway, ``/health`` and ``/openapi.json``, and other routes.

    Args:
        config: its options.
        gateway: makes the calls.
        limits: sizes of messages.
        health: what ``/health`` reports.
        routes: other routes.
        tls: how connections are secured; ``None``: they are not.
        reuse_port: whether several servers may share the port.
        grace_s: how long :meth:`stop` waits for calls under way.
    """

    def __init__(
        self,
        config: WebConfig,
        gateway: Gateway,
        limits: Limits,
        health: HealthMonitor,
        *,
        routes: Iterable[web.AbstractRouteDef] = (),
        tls: ssl.SSLContext | None = None,
        reuse_port: bool = False,
        grace_s: float = 30.0,
    ) -> None:
        self._config = config
        self._health = health
        self._tls = tls
        self._reuse_port = reuse_port
        calls = CallRoutes(gateway, limits)
        app = web.Application(middlewares=[_across(config.origins), _safe])
        app.on_response_prepare.append(_add_headers)
        app.add_routes([*calls.routes(), web.get("/health", self._report_health), *routes])
        app.router.add_get("/openapi.json", partial(_send, openapi(gateway)))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=_KEEPALIVE_S,
            shutdown_timeout=max(grace_s, _AT_ONCE_S),
        )

    async def start(self, listen: tuple[str, int]) -> int:
        """Listen on a host and a port (or ``unix:PATH``); return the port.

        Raises:
            InputError: the address cannot be used.
        """
        host, port = listen
        await self._runner.setup()
        site: web.BaseSite
        if host.startswith("unix:"):
            site = web.UnixSite(self._runner, host.removeprefix("unix:"), ssl_context=self._tls)
        else:
            site = web.TCPSite(self._runner, host, port, ssl_context=self._tls, reuse_port=self._reuse_port or None)
        try:
            await site.start()
        except OSError as error:
            raise InputError(f"cannot listen on {self._config.address}: {error.strerror or error}") from error
        address = self._runner.addresses[0]
        return int(address[1]) if isinstance(address, tuple) else 0

    async def stop(self) -> None:
        """Accept no more connections, let the calls under way finish for a while, and end the others."""
        await self._runner.cleanup()

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


async def _send(document: bytes, _request: web.Request) -> web.Response:
    return web.Response(body=document, content_type="application/json")


@web.middleware
async def _safe(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Write refusals of the router as Connect does, so that clients read one kind of error."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status not in _REFUSALS or request.method == "GET":
            raise
        code = grpc.StatusCode.UNIMPLEMENTED
        refused = error_response(
            FailedCallError(code, f"{request.method} {request.path}: {error.reason}"), status=error.status
        )
        refused.headers.update((name, value) for name, value in error.headers.items() if name in _KEPT)
        return refused


def _across(origins: frozenset[str]) -> Middleware:
    """Return what lets pages of other origins call (CORS). They never send cookies: calls carry tokens."""

    @web.middleware
    async def across(request: web.Request, handler: _Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        allowed = origin if origin in origins else "*" if "*" in origins else None
        if origin is not None and request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            headers = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": _ALLOWED}
            headers["Access-Control-Max-Age"] = _PREFLIGHT_S
            return (
                web.Response(status=204, headers=headers | _sharing(allowed)) if allowed else web.Response(status=403)
            )
        request[_SHARING] = _sharing(allowed) if origin is not None and allowed is not None else {}
        return await handler(request)

    return across


def _sharing(origin: str) -> dict[str, str]:
    return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _EXPOSED, "Vary": "Origin"}


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add what every response has; pages have set more themselves."""
    response.headers["Server"] = "spicegraph"
    for name, value in (_SAFE | request.get(_SHARING, {})).items():
        response.headers.setdefault(name, value)
