"""What Ray adds to the program: an engine."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import EngineEntry

ENGINES: Final = (EngineEntry("ray", "spicegraph_ray.engine:RAY"),)
