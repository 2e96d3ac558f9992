"""The examples in the docstrings are true, in every module that has some."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_INSTALLED = {"spicegraph_compat.torch_metric"}  # torch, 6 GB


def modules_with_examples() -> list[str]:
    return [
        ".".join(path.relative_to(ROOT / room).with_suffix("").parts).removesuffix(".__init__")
        for room in ("parser", "scorer", "service", "wings")
        for path in sorted((ROOT / room).rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.model
@pytest.mark.parametrize("name", sorted({*modules_with_examples()} - NOT_INSTALLED))
def test_examples(name: str) -> None:
    assert not doctest.testmod(importlib.import_module(name)).failed
