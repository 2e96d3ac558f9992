"""What a server is, at ``GET /``: its calls, and links to the rest; a page for browsers, JSON for programs."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from spicegraph_service.kit import PAGE_HEADERS, render_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spicegraph_web.gateway import InnerGateway

_OWN: Final = ("/health", "/openapi.json")


def home(gateway: InnerGateway, routes: Iterable[web.AbstractRouteDef]) -> web.RouteDef:
    """Return the route; ``routes`` are the server's pages, of which those with one address are linked."""
    pages = [each.path for each in routes if isinstance(each, web.RouteDef) and each.method == "GET"]
    values: dict[str, Any] = {
        "name": "spicegraph",
        "version": version("spicegraph"),
        "calls": {path: gateway.scopes[path] for path in gateway.methods},
        "links": [*_OWN, *(path for path in pages if "{" not in path)],
    }
    page = render_page("home.html.j2", values, package="spicegraph_web")

    async def show(request: web.Request) -> web.Response:
        if "text/html" in request.headers.get("Accept", ""):
            headers = {**PAGE_HEADERS, "Vary": "Accept"}
            return web.Response(text=page, content_type="text/html", headers=headers)
        return web.json_response(values, headers={"Vary": "Accept"})

    return web.get("/", show)
