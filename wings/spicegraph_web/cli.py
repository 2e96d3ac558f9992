"""``spicegraph view`` and ``spicegraph demo``: pages for this machine's user, in their browser."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError, needs_extra
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.tokens import SpiceText
from spicegraph_service.kit import ParsingOptions, PipelineOption, say, system_name, system_names
from spicegraph_service.report import Pictures, image_sources
from spicegraph_web.table import ResultTable

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST_LOOK_S = 5.0  # at most: a page is there as soon as a file has rows

PortOption = Annotated[int, typer.Option(min=0, max=65_535, help="The port on this machine; 0: any free one.")]
BrowserOption = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")]


def _captions_by_result(captions: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the files of captions by the names of their results."""
    given = [system_name(source) for source in captions]
    if all("=" not in source for source in captions):  # in the order of the results, unless they are named
        if len(given) > len(names):
            raise InputError(f"--captions: {len(given)} files for {len(names)} results")
        given = [(system, path) for system, (_, path) in zip(names, given, strict=False)]
    unknown = [name for name, _ in given if name not in names]
    if unknown:
        raise InputError(f"--captions: there is no result {unknown[0]!a}; the results are {', '.join(names)}")
    return dict(given)


def view(
    results: Annotated[list[str], typer.Argument(metavar="[NAME=]RESULT...")],
    *,
    captions: Annotated[list[str] | None, typer.Option(metavar="[NAME=]FILE")] = None,
    references: Annotated[str | None, typer.Option(metavar="FILE")] = None,
    images: Annotated[str | None, typer.Option(metavar="FOLDER|URL")] = None,
    spice_text: Annotated[SpiceText | None, typer.Option()] = None,
    parsing: ParsingOptions,
    port: PortOption = 0,
    browser: BrowserOption = True,
) -> None:
    """Look at results in the browser, as in a report: verdict, filters, each item's words and graphs; until Ctrl-C.

    Options:
        results: What score wrote: JSON, JSON Lines, CSV or Parquet.
        captions: The captions that a result is of, to be shown, searched and drawn; may be repeated.
        references: The references, to be shown, searched and drawn.
        images: Show the images: a folder, or an address with {id} or {id:012} in it.
        spice_text: What SPICE parsed when the results were made: captions as written, or COCO's tokens.
    """
    with needs_extra("web", "spicegraph view"):
        from spicegraph_web.pages import serve_here  # noqa: PLC0415
        from spicegraph_web.viewer import Viewer  # noqa: PLC0415
    names = system_names(results)
    files = [(name, system_name(source)[1]) for name, source in zip(names, results, strict=True)]
    texts = _captions_by_result(captions or [], names)
    if references is not None:
        texts[""] = references
    for _, path in (*files, *texts.items()):
        if not Path(path).is_file():
            raise InputError(f"{path}: there is no such file")
    pictures = Pictures(images) if images is not None else None
    if pictures is not None:
        image_sources(pictures, [])  # what is wrong with it is said at once
    with tempfile.TemporaryDirectory(prefix="spicegraph-view-") as folder, parsing.facts() as facts:
        table = ResultTable(files, texts, Path(folder))
        reading = table.start()
        table.looked.wait(_FIRST_LOOK_S)  # what is wrong with the first rows is said before there is a page
        if table.fault:
            raise InputError(table.fault)
        viewer = Viewer(table, facts, MetricData(spice_text=spice_text), pictures)
        serve_here(viewer.routes, port=port, browse=browser, announce=_announce)
        table.leave()
        reading.join()
    if table.fault:
        raise InputError(table.fault)


def demo(*, pipeline: PipelineOption = DEFAULT_PIPELINE, port: PortOption = 0, browser: BrowserOption = True) -> None:
    """Try captions in the browser: their graph, their tuples and their scores as you type, until Ctrl-C."""
    with needs_extra("web", "spicegraph demo"):
        from spicegraph_web.pages import demo_routes, serve_here  # noqa: PLC0415
    serve_here(demo_routes(pipeline), port=port, browse=browser, announce=_announce)


def _announce(address: str) -> None:
    say(f"{address} (Ctrl-C ends)")
