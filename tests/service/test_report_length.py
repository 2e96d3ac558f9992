"""The length control of reports on descriptions: what length says alone, and scores with length held constant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Comparison, Resampling
from spicegraph_service.engines import System
from spicegraph_service.report import ReportOptions, build_report
from spicegraph_service.report.verdict import _ranks, has_descriptions, length_control, pair_headline, verdict
from wings import needs_graded
from word_facts import WordFacts

WORDS = [f"w{n}" for n in range(60)]
OPTIONS = ReportOptions(resampling=Resampling(200), human=False)


def system(name: str, texts: list[list[str]]) -> System:
    references = (" ".join(WORDS), " ".join(WORDS[:30]))
    return System(name, tuple(Item(n, " ".join(text), references) for n, text in enumerate(texts)))


def test_a_system_that_is_only_longer_is_said_to_be_so() -> None:
    """Its score follows the number of its words and nothing else: some of its captions are as short as the other's."""
    long = system("long", [WORDS[: 33 + n] for n in range(24)])
    short = system("short", [WORDS[:32]] * 24)
    report = build_report([long, short], OPTIONS, pipeline=WordFacts())
    control = length_control(report, 0, 1)
    assert control.words == (pytest.approx(44.5), 32)
    assert control.longer_wins == 1
    assert control.difference == pytest.approx(0, abs=0.02)
    assert control.low is not None
    assert control.low <= 0
    points = dict(verdict(report).points)
    assert verdict(report).headline.startswith("long is better than short, but has 1.4 times the words: SPICE")
    assert points["Length"].startswith(
        "long has 44 words a caption, 1.4 times as many; short has 32. Length alone: the "
    )
    assert points["Length"].endswith("longer caption has the higher SPICE on 100 % of the images")
    assert points["At equal length"].endswith(": long may only be longer")
    assert points["Right of what is said"] == "long 1.000; short 1.000"


@needs_graded
def test_the_verdict_names_the_score_that_was_asked_for() -> None:
    """SPICE is in every report; where only others were asked for, the first of them decides, and its length is told."""
    said, better = system("said", [WORDS[:40]] * 12), system("better", [[*WORDS[:30], *WORDS[:10]]] * 12)
    for names, score in ((("rouge", "cider"), "ROUGE_L"), (("rouge", "spice"), "SPICE"), (("chair",), "CHAIRi")):
        options = replace(OPTIONS, metrics=names)
        report = build_report([said, better], options, pipeline=WordFacts())
        told = verdict(report)
        assert f": {score} " in told.headline
        alone = build_report([said], options, pipeline=WordFacts())
        assert verdict(alone).headline.startswith(f"said: {score} ")
    report = build_report([said, better], replace(OPTIONS, metrics=("rouge",)), pipeline=WordFacts())
    first, second = (next(row.value for row in view.scores if row.name == "ROUGE_L") for view in report.systems)
    assert first > second
    points = dict(verdict(report).points)
    assert verdict(report).headline == f"said is better than better: ROUGE_L {first:.3f} against {second:.3f}"
    assert "SPICE" in points["Other metrics"]
    assert dict(verdict(alone).points)["Length"].startswith("40 words a caption")


def test_less_of_a_score_can_be_better_for_sure() -> None:
    test = Comparison("CHAIRs", 0.1, 0.5, -0.4, -0.5, -0.3, 0.001, 0.001)
    headline, _ = pair_headline("CHAIRs", ("a", "b"), (0.1, 0.5), test, systems=2, lower=True)
    assert headline == "a is better than b: CHAIRs 0.100 against 0.500"
    assert pair_headline("CHAIRs", ("a", "b"), (0.1, 0.5), test, systems=2)[0].startswith("No sure winner, a or b")


def test_systems_that_score_the_same_on_every_image_are_level_and_have_no_examples() -> None:
    test = Comparison("SPICE", 0.208, 0.208, -1e-17, -1e-17, 0.0, 1.0, 1.0, 1.0)
    headline, detail = pair_headline("SPICE", ("a", "b"), (0.208, 0.208), test, systems=2)
    assert (headline, detail) == ("a and b score the same: SPICE 0.208", "It is the same for all images.")
    almost = replace(test, low=-0.01, high=0.01)
    assert pair_headline("SPICE", ("a", "b"), (0.208, 0.208), almost, systems=2)[0].startswith("No sure winner, a or b")
    assert "+0.000 (95 % interval" in pair_headline("SPICE", ("a", "b"), (0.2, 0.2), almost, systems=2)[1]
    items = system("a", ["red dog", "cat"]).items
    told = verdict(build_report([System("a", items), System("b", items)], OPTIONS, pipeline=WordFacts()))
    assert told.headline.startswith("a and b score the same: ")
    assert told.telling == ()


def test_a_system_that_is_better_at_every_length_is_not() -> None:
    lengths = [30 + n for n in range(24)]
    good = system("good", [WORDS[:n] for n in lengths])
    bad = system("bad", [[*WORDS[:15], *(f"x{i}" for i in range(n - 15))] for n in reversed(lengths)])
    report = build_report([bad, good], OPTIONS, pipeline=WordFacts())
    control = length_control(report, 1, 0)
    assert control.difference is not None
    assert control.low is not None
    assert control.difference > 0.2
    assert control.low > 0
    assert not control.is_only_longer
    assert "but has" not in verdict(report).headline


def test_what_is_said_of_the_references_is_at_most_all() -> None:
    """SPICE's recall exceeds 1 where two tuples of a caption match one of the references."""
    report = build_report([system("a", [WORDS[:40]] * 5)], OPTIONS, pipeline=WordFacts())
    view = report.systems[0]
    above = replace(view, categories=(replace(view.categories[0], re=1.003), *view.categories[1:]))
    assert dict(verdict(replace(report, systems=(above,))).points)["Said of what is there"] == "a 1.000"


def test_where_no_captions_are_of_like_length_nothing_is_made_up() -> None:
    report = build_report(
        [system("long", [WORDS[:50]] * 5), system("short", [WORDS[:20]] * 5)], OPTIONS, pipeline=WordFacts()
    )
    assert length_control(report, 0, 1).difference is None
    points = dict(verdict(report).points)
    assert points["At equal length"].startswith("no image has captions of like length")
    assert points["At equal length"].endswith("long may only be longer")


def test_reports_on_short_captions_say_nothing_of_length() -> None:
    report = build_report([system("a", [WORDS[:9]] * 3), system("b", [WORDS[:8]] * 3)], OPTIONS, pipeline=WordFacts())
    assert not has_descriptions(report)
    assert not {"Length", "At equal length"} & {name for name, _ in verdict(report).points}
    (one,) = [build_report([system("a", [WORDS[: 40 + n] for n in range(5)])], OPTIONS, pipeline=WordFacts())]
    assert dict(verdict(one).points)["Length"] == "42 words a caption; rank correlation of words and SPICE 1.000"


def test_equal_values_share_the_mean_of_their_ranks() -> None:
    values = np.random.default_rng(7).integers(0, 9, 60).astype(float)
    by_definition = [np.sum(values < value) + (np.sum(values == value) + 1) / 2 for value in values]
    assert _ranks(values).tolist() == by_definition
    assert _ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
