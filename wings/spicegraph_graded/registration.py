"""The commands and services that the wing adds (its metrics: ``pyproject.toml``)."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command, ServiceEntry

COMMANDS: Final = (
    Command(
        "reward", "spicegraph_graded.rewards.cli:reward", "Score a reward for training beside the metrics.", "Score"
    ),
    Command(
        "differences",
        "spicegraph_graded.detail.cli:differences",
        "Find what descriptions say wrong, and what they leave out.",
        "Score",
    ),
    Command(
        "vectors",
        "spicegraph_graded.spice_g.cli:vectors",
        "Make vectors for SPICE-G from your own captions.",
        "Prepare",
    ),
)
DETAIL: Final = ServiceEntry("spicegraph_graded.detail.servicer:open_service")
REWARDS: Final = ServiceEntry("spicegraph_graded.rewards.servicer:open_service")
