"""What Ray adds to the program: an engine."""

from __future__ import annotations

from typing import Final

ENGINES: Final = {"ray": "spicegraph_ray.engine:RAY"}
