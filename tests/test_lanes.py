"""The choice of tests for a change, and the table of times."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from lanes import HOSTS, PARTS, choose_parts, choose_tests  # noqa: E402
from times import find_excess, read_seconds, sum_by_folder  # noqa: E402


@pytest.mark.parametrize(
    ("changed", "folders"),
    [
        ("parser/spicegraph_parser/spice/rules.py", {"tests"}),
        ("proto/spicegraph_api/v1/scores.proto", {"tests"}),
        ("wings/spicegraph_studies/words.py", {"tests/studies"}),
        ("tests/studies/test_agree.py", {"tests/studies"}),
        ("deploy/haproxy/haproxy.cfg", {"tests/e2e"}),
        ("docs/limits.md", set()),
    ],
)
def test_a_change_runs_what_it_concerns(changed: str, folders: set[str]) -> None:
    chosen = set(choose_tests([changed]))
    assert {test for test in chosen if not test.startswith("tests/test_")} == folders
    assert "tests" in chosen or "tests/test_lanes.py" in chosen


def test_every_part_of_the_full_run_has_tests_and_paths_that_concern_it() -> None:
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for part in PARTS:
        assert f'full("{part}")' in sources, part
    assert choose_parts(["docs/limits.md", "proto/x.proto"]) == ["clients", "pages"]
    for start in {*HOSTS, *(start for starts in PARTS.values() for start in starts)}:
        assert start.startswith("wings/") or list(ROOT.glob(f"{start}*")), f"{start} is nowhere"


def test_times_are_summed_by_folder_and_held_against_budgets(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.parser.scenes.test_x" name="a" time="3"/>'
        '<testcase classname="tests.parser.test_y" name="b" time="4.5"/>'
        '<testcase classname="tests.test_lanes" name="c" time="1"/></testsuite></testsuites>'
    )
    sums = sum_by_folder(read_seconds(report))
    assert sums == {"parser": 7.5, "repository": 1.0}
    assert find_excess(sums, {"parser": 3.8, "repository": 0.4}) == ["repository"]
    assert find_excess({"new": 0.1}, {}) == ["new"]
