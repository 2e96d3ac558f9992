"""Pages for this machine's user alone: the viewer of results, and a page to try captions on.

They listen on the loopback interface, under an address that nobody guesses, and answer to no other host name.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import threading
import webbrowser
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from aiohttp import web

from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_parser.picture import to_svg
from spicegraph_parser.pipelines import load_pipeline, parse_captions
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.scoring import score
from spicegraph_service.output.pages import render_page, static
from spicegraph_service.web.results import ORDERS, Query, Results
from spicegraph_service.web.visit import PAGE_HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from spicegraph_parser.graph import SceneTuple

_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_LONGEST_TEXT = 20_000
_MOST_REFERENCES = 50
_COUNT = 50
_SWITCH_S = 0.0005
_LONGEST_ADDRESS = 256 << 10  # what is typed is in it, so that a page can be sent


def serve_here(
    routes: Callable[[str], Iterable[web.AbstractRouteDef]],
    *,
    port: int,
    browse: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve pages to this machine until Ctrl-C.

    Args:
        routes: makes the routes under a path.
        port: where; 0: any free one.
        browse: open the browser.
        announce: is called with the address.

    Raises:
        InputError: the port cannot be used.
    """
    # Files are read in another thread, which must not keep a page waiting.
    sys.setswitchinterval(_SWITCH_S)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(routes, port, browse=browse, announce=announce))


async def _serve(
    routes: Callable[[str], Iterable[web.AbstractRouteDef]],
    port: int,
    *,
    browse: bool,
    announce: Callable[[str], None],
) -> None:
    app = web.Application(middlewares=[_local], client_max_size=1 << 20)
    place = f"/{secrets.token_urlsafe(12)}"
    app.add_routes(list(routes(place)))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, max_line_size=_LONGEST_ADDRESS)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}{place}/"
        announce(address)
        if browse:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        await asyncio.Event().wait()
    except OSError as error:
        raise InputError(f"cannot listen on port {port}: {error.strerror or error}") from error
    finally:
        await runner.cleanup()


@web.middleware
async def _local(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Refuse requests under another host's name: a page elsewhere may have pointed its name to this machine."""
    if request.host.rpartition(":")[0] not in _HOSTS:
        raise web.HTTPForbidden(text="this page answers to this machine alone")
    response: web.StreamResponse = await handler(request)
    response.headers.update(PAGE_HEADERS | {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
    return response


def _page(template: str, values: Mapping[str, Any], script: str) -> web.Response:
    text = render_page(f"web/{template}", values, script=static(script), style=static("web.css"), served=True)
    return web.Response(text=text, content_type="text/html")


# --- the viewer -------------------------------------------------------------------------------------------------


class Viewer:
    """Pages of results."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def routes(self, place: str) -> Iterable[web.AbstractRouteDef]:
        """Yield the routes of the list and of an item."""
        yield web.get(f"{place}/", self._list)
        yield web.get(f"{place}/item/{{key}}", self._item)

    async def _list(self, request: web.Request) -> web.Response:
        query = self._query(request.query)
        values = {**await asyncio.to_thread(self._values, query), "asked": dict(request.query)}
        if "part" in request.query:
            return _page("view_list.html.j2", values, "view.js")
        return _page("view.html.j2", values, "view.js")

    def _values(self, query: Query) -> dict[str, Any]:
        found, results = self._results.find(query), self._results
        before, after = query.start - query.count, query.start + query.count
        return {
            "query": query,
            "found": found,
            "systems": [system.name for system in results.systems],
            "scores": results.scores,
            "orders": list(ORDERS.items()),
            "state": _state(results),
            "done": results.done,
            "fault": results.fault,
            "before": _address(query, before) if before >= 0 else "",
            "after": _address(query, after) if after < found.total else "",
        }

    def _query(self, asked: Mapping[str, str]) -> Query:
        scores = self._results.scores
        chosen = asked.get("score", "")
        system = asked.get("system", "")
        most = len(self._results.systems)
        return Query(
            text=asked.get("q", "")[:_LONGEST_TEXT],
            score=chosen if chosen in scores else (scores[0] if scores else ""),
            system=int(system) if system.isdecimal() and len(system) < 4 and int(system) < most else 0,
            low=_number(asked.get("low", "")),
            high=_number(asked.get("high", "")),
            order=order if (order := asked.get("order", "")) in ORDERS else "file",
            start=int(start) if (start := asked.get("start", "")).isdecimal() and len(start) < 10 else 0,
            count=_COUNT,
        )

    async def _item(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        found = await asyncio.to_thread(self._results.item, int(key)) if key.isdecimal() and len(key) < 10 else None
        if found is None:
            raise web.HTTPNotFound(text="there is no such item")
        systems = [system.name for system in self._results.systems]
        return _page("view_item.html.j2", {"item": found, "systems": systems}, "view.js")


def _state(results: Results) -> str:
    read = f"{results.count:,} items"
    return read if results.done else f"{read} so far; the files are being read"


def _address(query: Query, start: int) -> str:
    asked = {
        "q": query.text,
        "score": query.score,
        "system": str(query.system),
        "low": "" if query.low is None else f"{query.low:g}",
        "high": "" if query.high is None else f"{query.high:g}",
        "order": query.order,
        "start": str(start),
    }
    return "?" + urlencode({name: value for name, value in asked.items() if value})


def _number(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


# --- the page to try captions on --------------------------------------------------------------------------------


class Demo:
    """A page that parses and scores what is typed."""

    def __init__(self, pipeline: str, metrics: tuple[str, ...]) -> None:
        self._pipeline = load_pipeline(pipeline)
        self._metrics = metrics
        self._turn = asyncio.Lock()

    def routes(self, place: str) -> Iterable[web.AbstractRouteDef]:
        """Yield the route of the page, with or without a caption."""
        yield web.get(f"{place}/", self._try)

    async def _try(self, request: web.Request) -> web.Response:
        caption = request.query.get("caption", "a brown dog runs after two red balls")[:_LONGEST_TEXT].strip()
        given = request.query.get("references", "a dog that is brown plays with a ball\na puppy chases a red ball")
        references = [line.strip() for line in given[:_LONGEST_TEXT].splitlines() if line.strip()][:_MOST_REFERENCES]
        async with self._turn:
            values = await asyncio.to_thread(self._values, caption, tuple(references))
        values |= {"caption": caption, "references": "\n".join(references)}
        return _page("demo_part.html.j2" if "part" in request.query else "demo.html.j2", values, "view.js")

    def _values(self, caption: str, references: tuple[str, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {"scores": [], "candidate": [], "reference": [], "graph": "", "fault": ""}
        try:
            if caption:
                parsed = next(iter(parse_captions([caption], self._pipeline)))
                values["graph"] = b64encode(to_svg([("", parsed.graph())]).encode()).decode()
            if caption and references:
                result = score([Item("1", caption, references)], self._metrics, pipeline=self._pipeline)
                match = result.runs[0].statistics[0].match
                values |= {
                    "scores": [(one.name, one.each[0]) for run in result.runs for one in run.scores],
                    "candidate": _tuples(match.candidate, match.candidate_partners),
                    "reference": _tuples(match.reference, match.reference_partners),
                }
        except SpicegraphError as error:
            values["fault"] = str(error)
        return values


def _tuples(tuples: Iterable[SceneTuple], partners: Iterable[tuple[int, ...]]) -> list[tuple[str, bool]]:
    return [(", ".join(one.strings), bool(found)) for one, found in zip(tuples, partners, strict=True)]
