"""The library's names: loaded when asked for, and the same as type checkers see."""

from __future__ import annotations

import pkgutil
import sys

import pytest

import spicegraph_parser


def test_every_name_is_that_of_its_module() -> None:
    for name in spicegraph_parser.__all__:  # type: ignore[attr-defined]  # the stub says it by its imports
        value = getattr(spicegraph_parser, name)
        module = getattr(value, "__module__", "spicegraph_parser.spice.rules")
        assert getattr(sys.modules[module], name) is value
    assert {"extract", "RULES", "ParsedCaption"} <= set(dir(spicegraph_parser))


def test_no_name_is_that_of_a_module_which_would_take_its_place() -> None:
    modules = {module.name for module in pkgutil.iter_modules(spicegraph_parser.__path__)}
    assert modules.isdisjoint(spicegraph_parser.__all__)  # type: ignore[attr-defined]


def test_a_name_that_the_library_lacks_is_told() -> None:
    with pytest.raises(AttributeError, match="module 'spicegraph_parser' has no attribute 'extracts'"):
        spicegraph_parser.extracts  # type: ignore[attr-defined]  # noqa: B018
