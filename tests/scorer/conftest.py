"""Files that the tests of readers write."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def write(tmp_path: Path) -> Callable[[object], str]:
    """Write a file and return its path."""
    numbers = count()

    def write(content: object) -> str:
        path = tmp_path / f"file{next(numbers)}"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write
