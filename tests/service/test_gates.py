"""Conditions that a new system must not fulfil: what they say, and that a job fails by them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_service.cli import main
from spicegraph_service.engines import System
from spicegraph_service.report import ReportOptions, build_report
from spicegraph_service.report.gates import parse_gates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from spicegraph_service.report.data import GateResult

COUNT = 40


class Attributes:
    """A parser of captions such as "red car"."""

    signature = "attributes"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            *said, noun = text.split()
            yield (Fact((noun,), "objects", ()), *(Fact((noun, word), "amod", ()) for word in said))


def results(*gates: str, wrong: int = 10) -> list[GateResult]:
    references = ("red car", "red car")
    good = tuple(Item(n, "red car", references) for n in range(COUNT))
    bad = tuple(Item(n, "blue car" if n < wrong else "red car", references) for n in range(COUNT))
    options = ReportOptions(resampling=Resampling(200), human=False, gates=gates)
    return list(build_report([System("old", good), System("new", bad)], options, pipeline=Attributes()).gates)


def test_scores_categories_and_rates_have_difference_interval_and_p() -> None:
    spice, color, recall, rate = results("SPICE < -0.2", "Color.f<-.1", "Color.re < -0.5", "color_confused.rate > +0.2")
    assert [r.passed for r in (spice, color, recall, rate)] == [True, False, True, False]
    assert color.difference == pytest.approx(-0.25)
    assert rate.difference == pytest.approx(0.25)
    for result in (spice, color, rate):
        assert result.low is not None
        assert result.high is not None
        assert result.low <= result.difference <= result.high  # type: ignore[operator]
        assert result.p == pytest.approx(1 / 201)


def test_a_sure_condition_passes_where_the_difference_may_be_chance() -> None:
    assert [r.passed for r in results("Color.f < 0", "sure Color.f < 0", wrong=1)] == [False, True]
    assert [r.passed for r in results("sure Color.f < 0", "sure Color.f < -0.5", wrong=10)] == [False, True]


def test_what_is_undefined_does_not_pass() -> None:
    (result,) = results("Size.f < -0.5")
    assert (result.passed, result.difference) == (False, None)


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("SPICE", "expected NAME < NUMBER"),
        ("SPICE < much", "expected NAME < NUMBER"),
        ("SPICE < 0..1", "expected NAME < NUMBER"),
        ("Colour.f < 0", "expected a score"),
        ("Color.rate < 0", "expected a score"),
        ("nothing < 0", "expected a score"),
    ],
)
def test_wrong_conditions_are_named(gate: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        results(gate)


def test_too_many_conditions_and_other_numbers_of_systems_are_refused() -> None:
    with pytest.raises(InputError, match="at most 50"):
        parse_gates(["SPICE < 0"] * 51)
    one = [System("a", (Item(1, "red car", ("red car",)),))]
    with pytest.raises(InputError, match="compare two systems"):
        build_report(one, ReportOptions(human=False, gates=("SPICE < 0",)), pipeline=Attributes())


@pytest.mark.model
def test_a_job_fails_where_the_new_system_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "references.json").write_text(json.dumps({n: ["a red car", "the red car"] for n in range(20)}))
    for name, captions in (("old", ["a red car"] * 20), ("new", ["a blue car"] * 10 + ["a red car"] * 10)):
        (tmp_path / f"{name}.json").write_text(json.dumps(dict(enumerate(captions))))
    files = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    common = ["--references", str(tmp_path / "references.json"), "--draws", "100", "--fail-if"]
    assert main(["compare", *files, *common, "SPICE < -0.9, Color.f < -0.9"]) == 0
    capsys.readouterr()
    assert main(["compare", *files, *common, "SPICE < -0.9, Color.f < -0.02, color_confused.rate > +0.01"]) == 1
    told = capsys.readouterr()
    assert "error: Color.f < -0.02: the difference is -0.5000, 95 % interval " in told.err
    assert "color_confused.rate > +0.01: the difference is +0.5000" in told.err
    assert "SPICE < -0.9" not in told.err
    assert "SPICE_Color" in told.out
    assert main(["compare", *files, *common, "SPICE is fine"]) == 2
    assert main(["compare", *files, *common, "SPICE < 0", "--changes"]) == 2
