"""Figures: inline SVG in the page's colours and font, the same bytes every time, and texts that stay texts."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spicegraph_service.output.charts import (
    HUMAN_INK,
    Line,
    Mark,
    Point,
    box_chart,
    histogram,
    ink,
    interval_chart,
    line_chart,
    scatter_chart,
    ticks,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NASTY = '</svg><script>alert(1)</script> $x_1$ & "q" \x1b شارع 🐶'
CSS = (files("spicegraph_service.output") / "static" / "style.css").read_text(encoding="utf-8")


def intervals() -> str:
    marks = [Mark("one", 0.1, 0.05, 0.2, ink(0), "3 images"), Mark(NASTY, 0.2, ink=HUMAN_INK)]
    rows = [("All", marks), (NASTY, [Mark("one", None), Mark(NASTY, 0.0, ink=HUMAN_INK)])]
    return interval_chart(NASTY, rows, axis="mean F1", description="Points")


def test_long_labels_stand_above_their_marks_uncut() -> None:
    def widths(label: str) -> set[str]:
        drawn = ET.fromstring(interval_chart("x", [(label, [Mark("one", 0.5)])], axis="y"))
        return {width for node in drawn.iter("svg") if node.find("text") is not None and (width := node.get("width"))}

    assert widths("Cardinality") == {"24%"}
    assert widths("SPICE-G verdicts, mean of words") == {"100%"}


def test_a_stepped_line_holds_its_values() -> None:
    def path(*, stepped: bool) -> str:
        drawn = line_chart("x", ["1", "2"], [Line("a", [0.1, 0.3])], x="x", y="y", description="", stepped=stepped)
        return next(node.get("d", "") for node in ET.fromstring(drawn).iter("path") if "L" in node.get("d", ""))

    sloped, stepped = (re.findall(r"[\d.]+ ([\d.]+)", path(stepped=value)) for value in (False, True))
    assert len(sloped) == 2
    assert stepped == [sloped[0], sloped[0], sloped[1]]


def lines() -> str:
    drawn = [Line(NASTY, [0.1, None, 0.3], ink(1), ["3 images"] * 3, [(0.05, 0.2), (None, None), (0.2, 0.4)])]
    return line_chart("Lines", ["1", "2", NASTY], drawn, x="words", y="mean", description=NASTY)


def histograms() -> str:
    drawn = [Line("a", [3, 4], ink(0))]
    return histogram("Spread", [0.0, 0.5, 1.0], drawn, x="score", y="images", description="Images by score")


def boxes() -> str:
    drawn = [Line(NASTY, (0.0, 0.1, 0.2, 0.3, 0.9, 0.25)), Line("none", (None,) * 6, HUMAN_INK)]
    return box_chart("Boxes", drawn, axis=NASTY, description="Boxes")


def scatters() -> str:
    points = [Point(0.1, 0.2, NASTY, NASTY), Point(0.9, 0.4)]
    return scatter_chart("Points", points, axes_names=("x", NASTY), description="Points")


CHARTS = pytest.mark.parametrize("chart", [intervals, lines, histograms, boxes, scatters])


@CHARTS
def test_a_figure_takes_font_and_colours_from_its_page(chart: Callable[[], str]) -> None:
    svg = chart()
    root = ET.fromstring(svg)
    assert not re.search('style=|font-family|<style|#[0-9a-f]{6}\\b|viewBox="0 0 [^1]', svg)
    for name in {part for node in root.iter() for part in node.get("class", "").split()} - {"plot"}:
        assert re.search(rf"\.{name}\b", CSS), name
    assert root.get("role") == "img"
    named = {node.get("id"): node.tag for node in root}
    assert [named[name] for name in (root.get("aria-labelledby") or "").split()] == ["title", "desc"]


def test_every_token_has_a_light_and_a_dark_value() -> None:
    light, dark = re.findall(r":root \{([^}]*)\}", CSS)[:2]
    tokens = set(re.findall(r"(--[\w-]+): #", light))
    assert tokens == set(re.findall(r"(--[\w-]+): #", dark))
    used = set(re.findall(r"var\((--[\w-]+)", CSS)) - {"--ink", "--ground"}
    assert used <= set(re.findall(r"(--[\w-]+):", light))
    assert not re.search(r"#[0-9a-f]{3,6}", CSS.partition(".s0 {")[2])


@CHARTS
def test_the_same_figure_is_the_same_text(chart: Callable[[], str]) -> None:
    assert chart() == chart()


def test_ids_of_different_figures_differ() -> None:
    ids = [re.findall(r' id="([^"]+)"', chart()) for chart in (intervals, lines, histograms, boxes, scatters)]
    assert all(ids)
    assert len({name for row in ids for name in row}) == sum(map(len, ids))


@CHARTS
def test_texts_from_users_are_text(chart: Callable[[], str]) -> None:
    svg = chart()
    assert "<script" not in svg
    shown = NASTY.replace("\x1b", "\ufffd")
    if chart is not histograms:
        assert any(shown in (node.text or "") for node in ET.fromstring(svg).iter())


def test_tips_say_what_a_point_is() -> None:
    tips = [node.text for node in ET.fromstring(intervals()).iter("title")]
    assert "one, All: 0.100, 0.050 to 0.200 (3 images)" in tips
    tips = [node.text for node in ET.fromstring(lines()).iter("title")]
    assert f"{NASTY}, 1: 0.100, 0.050 to 0.200 (3 images)".replace("\x1b", "\ufffd") in tips


def places(svg: str) -> list[float]:
    return [float(node.get("x", "")[:-1]) for node in ET.fromstring(svg).iter("svg") if node.get("class") == "s0"]


@given(
    st.lists(st.none() | st.floats(-1, 1), min_size=1, max_size=4),
    st.text(st.characters(exclude_categories=()), max_size=30),
)
@example(values=[None], name="\ud800")
def test_points_keep_their_proportions_whatever_they_are_called(values: list[float | None], name: str) -> None:
    found = places(interval_chart(name, [(name, [Mark(name, v)]) for v in [0.0, 1.0, *values]], axis=name))
    zero, one, *others = found
    known = [value for value in values if value is not None]
    assert len(others) == len(known)
    assert all(0 <= place <= 100 for place in found)
    for place, value in zip(others, known, strict=True):
        assert place == pytest.approx(zero + value * (one - zero), abs=0.02)


@given(st.floats(-1e3, 1e3), st.floats(1e-2, 1e6))
def test_ticks_are_few_round_and_inside(low: float, span: float) -> None:
    found = ticks(low, low + span)
    assert len(found) <= 7
    assert all(low - span * 1e-6 <= tick <= low + span * (1 + 1e-6) for tick in found)
