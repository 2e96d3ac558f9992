"""The commands, and what becomes of their errors."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import SpicegraphError
from spicegraph_service.cli.compare import compare
from spicegraph_service.cli.idf import idf
from spicegraph_service.cli.parse import parse
from spicegraph_service.cli.report import report
from spicegraph_service.cli.score import score
from spicegraph_service.cli.serve import serve
from spicegraph_service.cli.terminal import say_error, use_utf8
from spicegraph_service.cli.token import token

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "main"]

BAD_INPUT = 2

app = typer.Typer(
    name="spicegraph",
    help="Scene graphs from image captions, SPICE and the COCO caption metrics, without Java.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(parse)
app.command()(score)
app.command()(compare)
app.command()(report)
app.command()(idf)
app.command()(serve)
app.add_typer(token, name="token")


def _print_version(value: bool) -> None:  # noqa: FBT001 (typer calls it with the flag)
    if value:
        typer.echo(f"spicegraph {version('spicegraph')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Scene graphs from image captions, SPICE and the COCO caption metrics, without Java."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return 0, or 2 where the input or the command is wrong.

    Example:
        >>> main(["--version"])  # doctest: +SKIP
        0
    """
    use_utf8()
    try:
        app(arguments if arguments is None else list(arguments), prog_name="spicegraph")
    except SpicegraphError as error:
        say_error(str(error))
        return BAD_INPUT
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
