"""Long captions in a report: by sentence, by object, and what is not there for short ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_scorer import Item, Resampling
from spicegraph_service.engines import System
from spicegraph_service.report import ReportOptions, build_report
from spicegraph_service.report.images import sentence_spans
from spicegraph_service.report.render import to_json

if TYPE_CHECKING:
    from spicegraph_service.report.data import CandidateView, Report, TupleView

pytestmark = pytest.mark.model

CANDIDATE = "A brown dog lies on a bed. 🐶 A zebra wears a hat."
ITEMS = (
    Item(1, CANDIDATE, ("A brown dog lies on a red bed. There is a ball on the floor.", "a dog")),
    Item(2, "a dog on a bed", ("a cat",)),
)


@pytest.fixture(scope="module")
def report() -> Report:
    options = ReportOptions(resampling=Resampling(20), human=False)
    return build_report([System("one", ITEMS)], options, pipeline="scene")


def _words(views: tuple[TupleView, ...], places: tuple[int, ...]) -> set[tuple[str, ...]]:
    return {views[place].strings for place in places}


def test_sentences_have_their_tuples_and_how_many_are_right(report: Report) -> None:
    view: CandidateView = report.images[0].candidates[0]
    assert view.description is not None
    ((first, second),) = view.description["candidate"].sentences
    assert [CANDIDATE[s.start : s.end] for s in (first, second)] == [
        "A brown dog lies on a bed.", "A zebra wears a hat."
    ]  # fmt: skip
    assert {("dog",), ("dog", "brown"), ("bed",)} <= _words(view.candidate, first.tuples)
    assert first.matched == len(first.tuples)
    assert {("zebra",), ("hat",)} <= _words(view.candidate, second.tuples)
    assert second.matched == 0
    of_references = view.description["reference"].sentences
    assert [len(sentences) for sentences in of_references] == [2, 1]
    assert ("bed", "red") in _words(view.reference, of_references[0][0].tuples)
    assert of_references[1][0].matched == 1


def test_objects_have_all_that_is_said_of_them(report: Report) -> None:
    view = report.images[0].candidates[0]
    assert view.description is not None
    for side, views in (
        (view.description["candidate"], view.candidate),
        (view.description["reference"], view.reference),
    ):
        assert {found.object for found in side.objects} == {i for i, t in enumerate(views) if len(t.strings) == 1}
        for found in side.objects:
            (name,) = views[found.object].strings
            assert all(views[place].strings[0] == name for place in found.attributes)
            assert all(name in (views[place].strings[0], views[place].strings[2]) for place in found.relations)
        attributes = sorted(place for found in side.objects for place in found.attributes)
        assert attributes == [i for i, t in enumerate(views) if len(t.strings) == 2]
        sizes = [len(found.attributes) + len(found.relations) for found in side.objects]
        assert sizes == sorted(sizes, reverse=True)


def test_short_captions_have_none_and_json_has_the_others(report: Report) -> None:
    assert report.images[1].candidates[0].description is None
    images = json.loads(to_json(report))["images"]
    assert images[1]["candidates"][0]["description"] is None
    assert len(images[0]["candidates"][0]["description"]["candidate"]["sentences"][0]) == 2


@pytest.mark.parametrize(
    ("text", "sentences"),
    [("", []), ("a dog", ["a dog"]), ("A dog. A cat!  Two birds", ["A dog.", "A cat!", "Two birds"]), ("...", ["..."])],
)
def test_sentences_are_found_in_the_text(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences
