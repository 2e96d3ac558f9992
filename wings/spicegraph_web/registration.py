"""What the viewer adds to the program: two commands."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command

COMMANDS: Final = (
    Command("view", "spicegraph_viewer.cli:view", "Look at results in the browser: filter, sort, compare.", "Score"),
    Command("demo", "spicegraph_viewer.cli:demo", "Try captions in the browser, as you type.", "Score"),
)
