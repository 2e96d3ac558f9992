"""Length held constant: a difference that is one of length alone is gone at equal length, another is not."""

from __future__ import annotations

import random

import pytest

from spicegraph_scorer import Item
from spicegraph_scorer.core.length import are_descriptions, control_of
from spicegraph_scorer.scoring import compare_systems

DICE = random.Random(0)
LENGTHS = [(DICE.randrange(40, 80), DICE.randrange(30, 60)) for _ in range(200)]


def test_a_difference_of_length_alone_is_gone_at_equal_length() -> None:
    """Scores that are a hundredth of the log of the words differ by nothing where these are equal."""
    noise = [DICE.gauss(0, 0.01) for _ in LENGTHS]
    longer = [(a / 100 + by, b / 100) for (a, b), by in zip(LENGTHS, noise, strict=True)]
    control = control_of(LENGTHS, longer)
    assert control.difference is not None
    assert control.low is not None
    assert control.high is not None
    assert control.low <= control.difference <= control.high
    assert abs(control.difference) < 0.03
    assert control.longer_wins is not None
    assert control.longer_wins > 0.9
    better = control_of(LENGTHS, [(0.5 + by, 0.3) for by in noise])
    assert better.difference == pytest.approx(0.2, abs=0.01)
    assert not better.is_only_longer


def test_nothing_is_said_where_lengths_say_nothing() -> None:
    """No image with captions of like length, or too few images: the difference is undefined."""
    far = control_of([(100, 40 + n) for n in range(20)], [(0.5, 0.1 * (n % 3)) for n in range(20)])
    assert (far.difference, far.low, far.high) == (None, None, None)
    assert far.is_only_longer
    assert control_of([(50, 40)] * 2, [(0.5, 0.4)] * 2).difference is None
    assert not are_descriptions([(30, 10), (30, 30)])
    assert are_descriptions([(31, 10), (32, 30)])


def test_compare_has_it_for_descriptions_alone() -> None:
    """Two systems' comparison has the control of each score, the second minus the first; short captions have none."""
    words = [f"w{n}" for n in range(60)]
    items = [Item(n, " ".join(words[: 31 + n % 7]), (" ".join(words),)) for n in range(20)]
    others = [Item(n, " ".join(words[: 35 + n % 5]), (" ".join(words),)) for n in range(20)]
    compared = compare_systems(items, others, ["rouge"])
    control = compared.length["ROUGE_L"]
    assert control.words == (37.0, 33.85)
    assert control.longer_wins == 1
    assert control.difference == pytest.approx(0, abs=0.01)
    assert compared.to_dict()["length"]["ROUGE_L"]["longer_wins"] == 1  # type: ignore[index,call-overload]
    short = compare_systems([Item(1, "a dog", ("a dog",))], [Item(1, "a cat", ("a dog",))], ["rouge"])
    assert short.length == {}
    assert "length" not in short.to_dict()
