"""How often Python looks for reference cycles."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RARE = (50_000, 20, 100)
"""Thresholds for Python's collector of cycles that suit many small values without any."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for reference cycles rarely within this, for all of the process.

    Scoring makes millions of small values without cycles, and Python's default is to look after every 700 of
    them, which takes a tenth of the time. What was set before is set again at the end.

    Example:
        >>> with rare_collections():
        ...     gc.get_threshold()
        (50000, 20, 100)
    """
    before = gc.get_threshold()
    gc.set_threshold(*RARE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
