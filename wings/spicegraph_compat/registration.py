"""What platforms add to the program: a command."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command

COMMANDS: Final = (
    Command(
        "platform",
        "spicegraph_compat.cli:platform",
        "Score for an evaluation platform (Codabench, CapEvalKit).",
        "Server",
    ),
)
