"""Pages for this machine's user alone: the viewer of results, and a page to try captions on.

They listen on the loopback interface, under an address that nobody guesses, and answer to no other host name.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
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
from spicegraph_parser.scenes import SCENE
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.scoring import score
from spicegraph_service.output.pages import PAGE_HEADERS, number, render_page, static
from spicegraph_service.report.results import ORDERS, Query, Results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_scorer.metrics.spice.match import Match

_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_LONGEST_TEXT = 20_000
_MOST_REFERENCES = 50
_COUNT = 50
_SWITCH_S = 0.0005
_CATEGORY = re.compile(r"(?:(?P<metric>.+)_categories_)?(?P<category>[^_]+)_(?P<part>f|pr|re|tp|fp|fn)")
_PARTS = {"f": "F", "pr": "Precision", "re": "Recall", "tp": "Right", "fp": "Wrong", "fn": "Missing"}
_COUNTS = frozenset({"tp", "fp", "fn"})
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
        await _asked_to_end().wait()
    except OSError as error:
        raise InputError(f"cannot listen on port {port}: {error.strerror or error}") from error
    finally:
        await runner.cleanup()


def _asked_to_end() -> asyncio.Event:
    """Return what is set by Ctrl-C and by SIGTERM, also where the shell had Ctrl-C ignored (a command behind ``&``)."""
    asked = asyncio.Event()
    for sent in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows, where Ctrl-C is a KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(sent, asked.set)
    return asked


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
            "choices": _choices(results.scores),
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
        shown = [
            {
                "name": system.name,
                "caption": found["captions"][place],
                "row": found["rows"][place],
                **_by_category({name: values[place] for name, values in found["scores"].items()}),
            }
            for place, system in enumerate(self._results.systems)
        ]
        return _page("view_item.html.j2", {"item": found, "shown": shown}, "view.js")


def _parts_of(names: Iterable[str]) -> tuple[list[str], dict[str, dict[str, dict[str, str]]]]:
    """Return the names of scores without categories, and the columns of the others by metric, category and part."""
    plain: list[str] = []
    metrics: dict[str, dict[str, dict[str, str]]] = {}
    for name in names:
        found = _CATEGORY.fullmatch(name)
        if found is None:
            plain.append(name)
        else:
            metrics.setdefault(found["metric"] or "", {}).setdefault(found["category"], {})[found["part"]] = name
    return plain, metrics


def _choices(names: Iterable[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what a list of scores offers: names of columns with their texts, in groups with a heading or none."""
    plain, metrics = _parts_of(names)
    groups = [
        (
            f"{metric} by category".strip(),
            [(name, f"{category}: {_PARTS[part]}") for category, own in found.items() for part, name in own.items()],
        )
        for metric, found in metrics.items()
    ]
    return [("", [(name, name) for name in plain]), *groups]


def _by_category(values: Mapping[str, float | None]) -> dict[str, Any]:
    """Return scores without categories, and for each metric that has some the table of them."""
    plain, metrics = _parts_of(values)
    tables = []
    for metric, categories in metrics.items():
        parts = [part for part in _PARTS if any(part in own for own in categories.values())]
        rows = [
            (category, [_count(values[own[part]], part) if part in own else None for part in parts])
            for category, own in categories.items()
        ]
        title = f"{metric} by category".strip()
        tables.append({"title": title, "columns": [_PARTS[part] for part in parts], "rows": rows})
    return {"scores": [(name, values[name]) for name in plain], "tables": tables}


def _count(value: float | None, part: str) -> float | None:
    """Return counts as whole numbers."""
    return int(value) if value is not None and part in _COUNTS else value


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
        self._styles = {"As SPICE draws it": self._pipeline, "As people draw it": load_pipeline(SCENE)}
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
        values: dict[str, Any] = {"lead": (), "graph": "", "fault": ""}
        try:
            if caption:
                graphs = [
                    (title, parsed.graph())
                    for title, pipeline in self._styles.items()
                    for parsed in parse_captions([caption], pipeline)
                ]
                values["graph"] = b64encode(to_svg(graphs).encode()).decode()
            if caption and references:
                result = score([Item("1", caption, references)], self._metrics, pipeline=self._pipeline)
                match = result.runs[0].statistics[0].match
                values |= _told([[(one.name, one.each[0]) for one in run.scores] for run in result.runs]) | {
                    "lead": _lead(match, result.runs[0].scores[0].each[0]),
                    "candidate": _tuples(match.candidate, match.candidate_partners),
                    "reference": _tuples(match.reference, match.reference_partners),
                }
        except SpicegraphError as error:
            values["fault"] = str(error)
        return values


def _told(metrics: Iterable[Sequence[tuple[str, float | None]]]) -> dict[str, Any]:
    """Return one table of the categories of all metrics that have some, and the scores of the others."""
    columns: dict[str, dict[str, float | None]] = {}
    others: list[tuple[str, float | None]] = []
    for scores in metrics:
        (first, value), *rest = scores
        if rest and all(name.startswith(f"{first}_") for name, _ in rest):
            columns[first] = {"All": value} | {name.removeprefix(f"{first}_"): own for name, own in rest}
        else:
            others += scores
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [(name, [column.get(name) for column in columns.values()]) for name in names]
    return {"table": {"title": "F by category", "columns": list(columns), "rows": rows}, "others": others}


def _lead(match: Match, score: float | None) -> tuple[str, str]:
    """Return the score, and how it comes about, in words."""
    right, said, there = sum(map(bool, match.candidate_partners)), len(match.candidate), len(match.reference)
    precision, recall = (number(right / of if of else 0.0) for of in (said, there))
    verb = "is" if right == 1 else "are"
    return (
        f"SPICE {number(score)}",
        f"{right} of {said} said {verb} right: P\u00a0{precision}; {right} of {there} found: R\u00a0{recall}.",
    )


def _tuples(tuples: Iterable[SceneTuple], partners: Iterable[tuple[int, ...]]) -> list[tuple[str, bool]]:
    return [(", ".join(one.strings), bool(found)) for one, found in zip(tuples, partners, strict=True)]
