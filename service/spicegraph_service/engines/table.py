"""The engines of ``spicegraph score`` by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_service.engines.one_machine import LOCAL
from spicegraph_service.engines.ray import RAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_service.engines.engine import Engine

ENGINES: Mapping[str, Engine] = {"local": LOCAL, "ray": RAY}
"""To add one: a module with an :class:`~spicegraph_service.engines.engine.Engine`, and a line here."""
