"""Charts: inline SVG in the page's colours and font, the same bytes every time, and texts that stay texts."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spicegraph_parser.errors import DataError
from spicegraph_service.output.charts import (
    SERIES,
    Bars,
    Color,
    Line,
    bar_chart,
    histogram,
    line_chart,
    new_figure,
    series_color,
    with_tip,
)
from spicegraph_service.output.pages import to_svg

if TYPE_CHECKING:
    from collections.abc import Callable

NASTY = '</svg><script>alert(1)</script> $x_1$ & "q" \x1b شارع 🐶'


def bars() -> str:
    systems = [
        Bars("one", [0.1, None, 0.4], series_color(0), [(0.05, 0.2), (None, None), (0.3, 0.5)], ["3 images"] * 3),
        Bars(NASTY, [0.2, 0.1, 0.0], Color.HUMAN),
    ]
    return to_svg(bar_chart(["All", NASTY, "Color"], systems, axis="mean F1"), title=NASTY, description="Bars")


def lines() -> str:
    drawn = line_chart(["1", "2", "3"], [Line("a", [0.1, None, 0.3], series_color(1))], x="words", y="mean")
    return to_svg(drawn, title="Lines", description="Mean by words")


def histograms() -> str:
    drawn = histogram([0.0, 0.5, 1.0], [Line("a", [3, 4], series_color(0))], x="score", y="images")
    return to_svg(drawn, title="Spread", description="Images by score")


@pytest.mark.parametrize("chart", [bars, lines, histograms])
def test_a_chart_takes_font_and_colours_from_its_page(chart: Callable[[], str]) -> None:
    svg = chart()
    root = ET.fromstring(svg)
    assert not re.search("style=|font-family|<metadata|<style|#[0-9a-f]{6}\\b", svg)
    variables = set(re.findall(r"var\((--[\w-]+)\)", svg))
    css = (files("spicegraph_service.output") / "static" / "style.css").read_text(encoding="utf-8")
    assert variables
    for variable in variables:
        assert css.count(f"{variable}:") == 2  # light and dark
    assert root.get("role") == "img"
    named = {node.get("id"): node.tag for node in root}
    assert [named[name] for name in (root.get("aria-labelledby") or "").split()] == ["title", "desc"]


def test_every_ink_is_a_variable_of_the_page() -> None:
    css = (files("spicegraph_service.output") / "static" / "style.css").read_text(encoding="utf-8")
    for color in Color:
        assert css.count(f"--{color.name.lower().replace('_', '-')}:") == 2
    assert len(set(SERIES)) == 7


@pytest.mark.parametrize("chart", [bars, lines, histograms])
def test_the_same_chart_is_the_same_text(chart: Callable[[], str]) -> None:
    assert chart() == chart()


def test_ids_of_different_charts_differ() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', chart())) for chart in (bars, lines, histograms)]
    assert all(ids)
    assert not ids[0] & ids[1]
    assert not ids[0] & ids[2]
    assert not ids[1] & ids[2]
    for chart in (bars, lines, histograms):
        svg = chart()
        used = set(re.findall(r'"(?:url\()?#([^")]+)\)?"', svg))
        assert used <= set(re.findall(r' id="([^"]+)"', svg))


def test_texts_from_users_are_text() -> None:
    svg = bars()
    assert "<script" not in svg
    texts = [node.text for node in ET.fromstring(svg).iter("text")]
    assert any(text and text.startswith("</svg><script>") for text in texts)  # cut to its room, but whole in its tip
    tips = [node.text for node in ET.fromstring(svg).iter("title")]
    assert f"{NASTY}, All: 0.200".replace("\x1b", "\ufffd") in tips
    assert "one, All: 0.100 (3 images)" in tips
    assert f"one, {NASTY}: – (3 images)".replace("\x1b", "\ufffd") in tips


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=4),
    st.text(st.characters(exclude_categories=()), max_size=30),
)
def test_bars_keep_their_proportions_whatever_they_are_called(values: list[float | None], name: str) -> None:
    figure = bar_chart([name] * len(values), [Bars(name, values, series_color(0))])
    root = ET.fromstring(to_svg(figure, title=name, description=name))
    widths = []
    for node in root.iter("path"):
        if node.get("fill") == "var(--series-0)":
            xs = [float(part) for part in re.findall(r"[ML] ([\d.]+)", node.get("d") or "")]
            widths.append(max(xs) - min(xs))
    assert len(widths) == len(values)
    most = max(value or 0.0 for value in values)
    for width, value in zip(widths, values, strict=True):
        if most > 1e-9:
            assert width == pytest.approx((value or 0.0) / most * max(widths), abs=0.05)


def test_a_tip_belongs_to_its_part() -> None:
    figure, axes = new_figure()
    (point,) = axes.plot(1, 2, "o", color=Color.MISSED)
    with_tip(point, "a <point>")
    svg = to_svg(figure, title="t", description="d")
    group = next(g for g in ET.fromstring(svg).iter("g") if g.find("title") is not None)
    assert [group[0].tag, group[0].text] == ["title", "a <point>"]
    assert any(node.get("fill") == "var(--missed)" for node in group.iter())


def test_other_colours_and_raster_images_are_refused() -> None:
    figure, axes = new_figure()
    axes.plot([1, 2], color="#123456")
    with pytest.raises(ValueError, match="stroke of #123456"):
        to_svg(figure, title="t", description="d")
    figure, axes = new_figure()
    axes.imshow([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="raster image"):
        to_svg(figure, title="t", description="d")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DataError, match=r"charts need an extra \(matplotlib\): pip install 'spicegraph\[report\]'"):
        new_figure()
