"""The examples of host tools run, and all give the same scores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spicegraph_compat.caption_metric import CaptionMetric

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"


@pytest.mark.parametrize(
    "path", sorted(set(EXAMPLES.glob("*.py")) - set(EXAMPLES.glob("spicegraph_*.py"))), ids=lambda path: path.stem
)
def test_an_example(path: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    references = ["a man riding a horse", "a man on a brown horse"]
    scores = CaptionMetric(("spice", "rouge")).score_one("a man rides a brown horse", references)
    for name in ("spice", "rouge_l"):
        assert f"{name} {scores[name]:.3f}" in done.stdout.splitlines()


def test_there_are_examples_of_every_host() -> None:
    """An adapter and a program that uses it; promptfoo is no Python package, and its test is ``test_promptfoo.py``."""
    assert len(list(EXAMPLES.glob("spicegraph_*.py"))) == 6
    assert len(list(EXAMPLES.glob("*.py"))) == 11
