"""Waiting for a condition: as short as it takes, and with an error when it takes too long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_until(condition: Callable[[], object], timeout_s: float = 30.0) -> float:
    """Return as soon as a condition holds, with the seconds that it took.

    Raises:
        AssertionError: it does not hold in time.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < timeout_s, f"not true within {timeout_s} s"
        time.sleep(0.02)
    return time.monotonic() - began
