"""What rewards add to the program: the command ``reward``, and the service (their metrics: ``pyproject.toml``)."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command, ServiceEntry

COMMANDS: Final = (
    Command("reward", "spicegraph_rewards.cli:reward", "Score a reward for training beside the metrics.", "Score"),
)
SERVICE: Final = ServiceEntry("spicegraph_rewards.servicer:open_service")
