"""The parts that this wing adds to the program: two commands, and the server's door for HTTP."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command, DoorEntry

COMMANDS: Final = (
    Command("view", "spicegraph_web.cli:view", "Look at results in the browser: filter, sort, compare.", "Score"),
    Command("demo", "spicegraph_web.cli:demo", "Try captions in the browser, as you type.", "Score"),
)
HTTP: Final = DoorEntry("spicegraph_web.server:WebServer", extra="web")
