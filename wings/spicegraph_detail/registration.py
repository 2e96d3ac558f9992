"""What descriptions add to the program: the command ``differences`` and the service (metric: ``pyproject.toml``)."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command, ServiceEntry

COMMANDS: Final = (
    Command(
        "differences",
        "spicegraph_detail.cli:differences",
        "Find what descriptions say wrong, and what they leave out.",
        "Score",
    ),
)
SERVICE: Final = ServiceEntry("spicegraph_detail.servicer:open_service")
