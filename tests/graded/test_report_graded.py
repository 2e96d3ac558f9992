"""SPICE-G in a report: each image's explanation, in the data, the page's payload and the JSON."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spicegraph_scorer import score
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.readers import read_items
from spicegraph_service.engines import System
from spicegraph_service.report import REPORT_FORMATS, Report, ReportFormat, ReportOptions, build_report
from spicegraph_service.report.render import chunks

pytestmark = pytest.mark.model

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
IMAGES = 12


def report(*metrics: str) -> Report:
    items = read_items(str(EXAMPLES / "retrieval.json"), references=[str(EXAMPLES / "captions.json")]).items
    options = ReportOptions(metrics=metrics, resampling=Resampling(20, 1), human=False)
    return build_report([System("mine", tuple(items[:IMAGES]))], options)


@pytest.fixture(scope="module")
def graded() -> Report:
    return report("spice", "spice-g")


def unpacked(part: str) -> Any:
    return json.loads(gzip.decompress(base64.b85decode(part.replace(".", "<"))))


def test_every_image_has_the_library_s_explanation(graded: Report) -> None:
    items = read_items(str(EXAMPLES / "retrieval.json"), references=[str(EXAMPLES / "captions.json")]).items
    (run,) = score(items[:IMAGES], ("spice-g",), explain=True).runs
    views = [image.candidates[0].graded for image in graded.images]
    assert [view.score if view else None for view in views] == list(run.scores[0].each)
    assert [view.explanation if view else None for view in views] == list(run.explanations)


def test_the_page_s_details_hold_partners_and_changes(graded: Report) -> None:
    (part,) = chunks(graded)
    for image, view in zip(unpacked(part), graded.images, strict=True):
        value, mine, theirs, changes, order, words, threshold, meaning = image[3][0][3]
        truth = view.candidates[0].graded
        assert truth is not None
        assert (value, order) == (round(truth.score, 4), round(truth.explanation.order, 4))
        assert [row[0] for row in mine] == [list(found.words) for found in truth.explanation.candidate]
        assert all(row[3] is None or row[3] < len(theirs) for row in mine)
        assert [tuple(change[1]) for change in changes] == [change.words for change in truth.explanation.changes]
        verdicts = truth.explanation.verdicts
        assert [(row[0], row[2], row[3]) for row in words] == [
            (found.word, found.verdict, round(found.probability, 4)) for found in verdicts.words
        ]
        assert threshold == round(verdicts.threshold, 4)
        whole = truth.explanation.meaning
        assert whole is not None
        assert meaning[0] == round(whole.value, 4)
        assert [word for word, _ in meaning[1]] == [word for word, _ in whole.candidate]
        assert sum(share for _, share in meaning[1]) == pytest.approx(whole.value, abs=0.01)
        assert [word for word, _ in meaning[2]] == [word for word, _ in whole.references][:12]


def test_the_json_has_it_too(graded: Report) -> None:
    data = json.loads(REPORT_FORMATS[ReportFormat.JSON](graded))
    found = data["images"][0]["candidates"][0]["graded"]
    assert set(found) == {"score", "explanation"}
    assert set(found["explanation"]) == {"candidate", "reference", "changes", "verdicts", "order", "meaning"}


def test_without_the_metric_there_is_none_of_it() -> None:
    plain = report("spice")
    assert all(image.candidates[0].graded is None for image in plain.images)
    (part,) = chunks(plain)
    assert all(image[3][0][3] is None for image in unpacked(part))


def test_every_score_that_is_divided_says_which_words_earned_it(graded: Report) -> None:
    (part,) = chunks(graded)
    for image, view in zip(unpacked(part), graded.images, strict=True):
        (ends, *rows), credits_of = image[3][0][5], view.candidates[0].credits
        assert [row[0] for row in rows] == list(credits_of) == ["SPICE", "SPICE-G"]
        for (_, value, *thousandths), found in zip(rows, credits_of.values(), strict=True):
            assert value == pytest.approx(found.score, abs=1e-4)
            assert thousandths == [round(1000 * word.credit) for word in found.words]
            assert list(zip(ends[::2], ends[1::2], strict=True)) == [(word.start, word.end) for word in found.words]
