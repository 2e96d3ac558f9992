"""What this wing adds to the program: commands and an engine; its stores are in ``pyproject.toml``."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command

COMMANDS: Final = (
    Command("backup", "spicegraph_scale.cli:backup", "Back up a server's state while it runs.", "Server"),
    Command("restore", "spicegraph_scale.cli:restore", "Put a backup back before a server starts.", "Server"),
)
ENGINES: Final = {"ray": "spicegraph_scale.engine:RAY"}
