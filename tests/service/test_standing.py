"""Who is best in each category: named for any number of systems, with images and corrected p-values, in every format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_service.engines import System
from spicegraph_service.output.standing import label
from spicegraph_service.report import ReportFormat, ReportOptions, build_report, to_html
from spicegraph_service.report.render import REPORT_FORMATS
from spicegraph_service.report.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_service.report import Report


class Attributes:
    """A parser of captions such as "two red car": the last word is an object, the others are said of it."""

    signature = "attributes"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            *said, noun = text.split()
            yield (Fact((noun,), "objects", ()), *(Fact((noun, word), "amod", ()) for word in said))


REFERENCES = ("two red car", "two red car")
COUNT = 60
SYSTEMS = {
    "colours": "three red car",  # right about colours, wrong about counts
    "counts": "two blue car",
    "neither": "three blue car",
    "digits": "2 blue car",
}


def system(name: str, text: str) -> System:
    return System(name, tuple(Item(n, text, REFERENCES if n % 3 else ("red car", "red car")) for n in range(COUNT)))


@pytest.fixture(scope="module")
def report() -> Report:
    systems = [system(*pair) for pair in SYSTEMS.items()]
    return build_report(systems, ReportOptions(resampling=Resampling(1000)), pipeline=Attributes())


def test_each_category_names_its_best_and_on_how_many_images(report: Report) -> None:
    rows = {row.category: row for row in report.standings}
    assert list(rows) == ["All", "Object", "Relation", "Attribute", "Color", "Cardinality", "Size"]
    color, count = rows["Color"], rows["Cardinality"]
    assert (color.values, color.best, color.tied, color.is_sure) == ((1.0, 0.0, 0.0, 0.0), 0, (), True)
    assert (color.items, count.items) == (COUNT, COUNT - COUNT // 3)
    assert (count.best, count.tied, count.is_sure) == (1, (), True)
    assert rows["Object"].tied == (1, 2, 3)
    assert (rows["Size"].best, rows["Size"].is_sure) == (None, False)
    tests = 3 * sum(row.best is not None for row in report.standings)
    assert count.ps == (pytest.approx(min(1, tests / 1001), rel=0.5), None, count.ps[0], count.ps[0])
    assert color.human == 1.0
    assert rows["All"].random is not None


def test_the_verdict_says_it_in_sentences(report: Report) -> None:
    points = dict(verdict(report).points)
    assert points["Best at colors"] == "colours (1.000), on 60 images"
    assert points["Best at counts"] == "counts (1.000), on 40 images"
    assert points["Best at objects"].endswith("not sure")
    told = "of digits, 60 images with counts in digits"
    assert points["Digits"].startswith(told)
    assert "its Count is 0.000, and 1.000 with “2” read as “two”" in points["Digits"]


def test_every_format_has_the_table_and_the_verdict(report: Report) -> None:
    values = json.loads(REPORT_FORMATS[ReportFormat.JSON](report))
    said = verdict(report)
    assert values["verdict"]["headline"] == said.headline
    assert values["verdict"]["best"] == said.best
    assert values["verdict"]["test"]["p_corrected"] == said.test.p_corrected if said.test else False
    assert [row["best"] for row in values["standings"]] == [row.best for row in report.standings]
    assert [row["tied"] for row in values["standings"]] == [list(row.tied) for row in report.standings]
    markdown = REPORT_FORMATS[ReportFormat.MARKDOWN](report)
    assert "| System | SPICE | Object | Relation | Attribute | Color | Count | Size |" in markdown
    assert "- **Best at colors**: colours" in markdown
    page = to_html(report)
    assert "Best at counts" in page
    assert page.index('class="values standing"') < page.index('id="scores"')


def test_the_page_has_one_word_for_counts(report: Report) -> None:
    assert "Cardinality" not in to_html(report).replace("Count is SPICE's category Cardinality", "").replace(
        "Count is SPICE&#39;s category Cardinality", ""
    ).replace('value="Cardinality"', "")
    assert label("SPICE_Cardinality") == "SPICE_Count"
    assert label("SPICE_Color") == "SPICE_Color"
    assert label("All") == "SPICE"


def test_too_few_draws_are_named() -> None:
    systems = [system(*pair) for pair in SYSTEMS.items()]
    few = build_report(systems, ReportOptions(resampling=Resampling(20)), pipeline=Attributes())
    assert dict(verdict(few).points)["Draws"].startswith("20 are too few")


def test_one_system_has_its_table_too() -> None:
    alone = build_report([system("a", "two red car")], ReportOptions(resampling=Resampling(20)), pipeline=Attributes())
    rows = {row.category: row for row in alone.standings}
    assert (rows["Color"].values, rows["Color"].human) == ((1.0,), 1.0)
    assert json.loads(REPORT_FORMATS[ReportFormat.JSON](alone))["verdict"]["test"] is None
