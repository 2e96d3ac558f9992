"""``spicegraph agree``: how well metrics, and people, agree with people."""

from __future__ import annotations

import typer

from spicegraph_service.cli.agree.captions import captions
from spicegraph_service.cli.agree.pairs import pairs
from spicegraph_service.cli.agree.protocols import protocols
from spicegraph_service.cli.agree.systems import systems
from spicegraph_service.cli.agree.words import words

__all__ = ["agree"]

agree = typer.Typer(
    help="Hold metrics against people: ratings of captions, pairs, systems; and people against people on words.",
    no_args_is_help=True,
)
agree.command()(captions)
agree.command()(pairs)
agree.command()(systems)
agree.command()(words)
agree.command()(protocols)
