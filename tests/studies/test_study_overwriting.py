"""No study overwrites what it reads, by whatever path, link or URL its output names the file."""

from __future__ import annotations

import pytest

from overwriting import SCORED, SPELLINGS, check_refused, input_folder

__all__ = ["input_folder"]

CASES = {
    "bounds": (("bounds", "results.json", *SCORED), "annotations.json"),
    "bounds, other": (("bounds", "results.json", *SCORED, "--other", "other.json"), "other.json"),
    "agree captions": (("agree", "captions", "a.json"), "a.json"),
    "agree pairs": (("agree", "pairs", "a.json", "--annotations", "annotations.json"), "annotations.json"),
    "agree hallucinations": (("agree", "hallucinations", "a.json", "--metrics", "chair"), "a.json"),
    "agree systems": (("agree", "systems", "a.json", "mine=other.json"), "other.json"),
}


@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.parametrize("case", CASES)
def test_an_output_that_is_an_input_is_refused_before_work(case, how, input_folder, capsys):
    check_refused(*CASES[case], how, input_folder, capsys)
