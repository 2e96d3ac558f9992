"""``spicegraph challenge``: an evaluation server's organisers and participants."""

from __future__ import annotations

import typer

from spicegraph_challenge.cli.connection import connection
from spicegraph_challenge.cli.organise import ORGANISERS_COMMANDS, user
from spicegraph_challenge.cli.participate import PARTICIPANTS_COMMANDS

__all__ = ["challenge"]

challenge = typer.Typer(no_args_is_help=True)
challenge.callback()(connection)
for _command in (*PARTICIPANTS_COMMANDS, *ORGANISERS_COMMANDS):
    challenge.command()(_command)
challenge.add_typer(user, name="user")
