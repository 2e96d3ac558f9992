"""Pages for this machine's user alone: how they are served, and the page to try captions on.

They listen on the loopback interface, under an address that nobody guesses, and answer to no other host name.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_parser.pipelines import SCENE, load_pipeline
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.readers.checks import check_items
from spicegraph_service.kit import PAGE_HEADERS, System, number, render_page, static
from spicegraph_service.report import ReportOptions, build_report, chunks, index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_PACKAGE: Final = "spicegraph_web"
_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
LONGEST_TEXT: Final = 20_000
_MOST_REFERENCES: Final = 50
_SWITCH_S: Final = 0.0005
_LONGEST_ADDRESS: Final = 256 << 10  # what is typed is in it, so that a page can be sent
_SCRIPTS: Final = ("descriptions.js", "image.js", "view.js")


def serve_here(
    routes: Callable[[str], Iterable[web.AbstractRouteDef]], *, port: int, browse: bool, announce: Callable[[str], None]
) -> None:
    """Serve pages to this machine until Ctrl-C; ``routes`` makes their routes under a path, port 0 is any free one."""

    @web.middleware
    async def local(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        # A page elsewhere may have pointed its name to this machine.
        if request.host.rpartition(":")[0] not in _HOSTS:
            raise web.HTTPForbidden(text="this page answers to this machine alone")
        response: web.StreamResponse = await handler(request)
        response.headers.update(PAGE_HEADERS | {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
        return response

    async def serve() -> None:
        app = web.Application(middlewares=[local], client_max_size=1 << 20)
        base = f"/{secrets.token_urlsafe(12)}"
        app.add_routes(list(routes(base)))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, max_line_size=_LONGEST_ADDRESS)
        await runner.setup()
        ended = asyncio.Event()
        # Also where the shell had Ctrl-C ignored (a command behind ``&``).
        for sent in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows, where Ctrl-C is a KeyboardInterrupt
                asyncio.get_running_loop().add_signal_handler(sent, ended.set)
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            address = f"http://127.0.0.1:{runner.addresses[0][1]}{base}/"
            announce(address)
            if browse:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            await ended.wait()
        except OSError as error:
            raise InputError(f"cannot listen on port {port}: {error.strerror or error}") from error
        finally:
            await runner.cleanup()

    # Files are read in another thread, which must not keep a page waiting.
    sys.setswitchinterval(_SWITCH_S)
    with suppress(KeyboardInterrupt):
        asyncio.run(serve())


def local_page(template: str, values: Mapping[str, Any]) -> web.Response:
    """Return a page, or a part of one, with the script and the style of the report's image view."""
    script = "".join(static(name, _PACKAGE) for name in _SCRIPTS)
    style = static("report.css") + static("view.css", _PACKAGE)
    text = render_page(template, values, script=script, style=style, images=True, served=True, package=_PACKAGE)
    return web.Response(text=text, content_type="text/html")


_CAPTION = "a small dog and two cats lie on a red sofa"
_REFERENCES = (
    "a small dog and two cats lie on a blue couch",
    "two black cats sleep on a couch",
    "a white dog lies on a blue sofa",
)
_DEMO_METRICS: Final = ("spice", "spice-g", "bleu", "rouge")


def demo_routes(pipeline: str) -> Callable[[str], Iterable[web.AbstractRouteDef]]:
    """Return the routes of the demo page, which draws and scores typed captions."""
    styles = {"spice": load_pipeline(pipeline), "scene": load_pipeline(SCENE)}
    options = ReportOptions(_DEMO_METRICS, resampling=Resampling(1), human=False)
    busy = asyncio.Lock()

    def scored(item: Item, style: str) -> dict[str, Any]:
        try:
            typed = check_items([item], control_tokens="keep")  # people may try what it does
            report = build_report([System("Caption", typed)], options, pipeline=styles.get(style, styles["spice"]))
        except SpicegraphError as error:
            return {"fault": str(error)}
        view = report.images[0].candidates[0]
        right, said, there = view.counts[0]
        precision, recall = (number(right / of if of else 0.0) for of in (said, there))
        correct = f"{right} of {said} said {'is' if right == 1 else 'are'} right" if said else "none said"
        found = f"{right} of {there} found" if there else "none in references"
        sums = f"{correct}: P\u00a0{precision}; {found}: R\u00a0{recall}."
        return {"lead": (f"SPICE {number(view.scores[0])}", sums), "index": index(report), "chunk": chunks(report)[0]}

    async def answer(request: web.Request) -> web.Response:
        asked = request.query
        is_first = not {"caption", "references", "part"} & set(asked)  # an empty box is empty, the first page is not
        caption = _CAPTION if is_first else asked.get("caption", "")[:LONGEST_TEXT].strip()
        lines = _REFERENCES if is_first else asked.get("references", "")[:LONGEST_TEXT].splitlines()
        references = tuple([line.strip() for line in lines if line.strip()][:_MOST_REFERENCES])
        style = asked.get("style", "")
        values = {"caption": caption, "references": "\n".join(references), "style": style, "lead": (), "fault": ""}
        if caption and references:
            async with busy:
                values |= await asyncio.to_thread(scored, Item(1, caption, references), style)
        return local_page("demo_part.html.j2" if "part" in asked else "demo.html.j2", values)

    return lambda base: [web.get(f"{base}/", answer)]
