"""Marks of tests that need a wing, which a checkout may lack."""

from importlib.util import find_spec

import pytest

needs_graded = pytest.mark.skipif(
    find_spec("spicegraph_graded") is None, reason="the wing spicegraph_graded is left out"
)
