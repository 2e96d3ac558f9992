"""Kinds of errors of an item, over gRPC: the report's findings, one record in Python, on the page and on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spicegraph_api.v1 import scores_pb2
from spicegraph_scorer import score
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.errors import KINDS, ErrorSide, explain
from spicegraph_service.client import item
from spicegraph_service.engines import System
from spicegraph_service.report import build_report

if TYPE_CHECKING:
    from spicegraph_service.client import Client

ITEMS = [
    Item(str(n), candidate, references)
    for n, (candidate, references) in enumerate(
        [
            ("a blue car beside 3 dogs", ("a red car beside two dogs", "the red car")),
            ("a puppy on a sofa", ("a dog lies on a big couch", "a brown dog sleeps")),
            ("a horse rides a man", ("a man rides a horse",)),
            ("\U0001f600 a small wooden bench", ("a large bench", "a bench \U0001f600 made of wood")),
        ]
        * 20  # more than one chunk
    )
]


def test_every_kind_of_error_is_in_the_contract_and_no_other() -> None:
    names = {name.removeprefix("ERROR_KIND_").lower() for name in scores_pb2.ErrorKind.DESCRIPTOR.values_by_name}
    assert names == {"unspecified", *KINDS}
    sides = {name.removeprefix("ERROR_SIDE_") for name in scores_pb2.ErrorSide.DESCRIPTOR.values_by_name}
    assert sides == {"UNSPECIFIED", *ErrorSide.__members__}


@pytest.mark.model
@pytest.mark.parametrize("metric", ["spice", "spice-exact"])
def test_findings_are_those_of_the_library(client: Client, metric: str) -> None:
    sent = [item(i.id, i.candidate, i.references) for i in ITEMS]
    reply = client.score(sent, metrics=[metric, "bleu"], detail=scores_pb2.DETAIL_ERRORS)
    streamed = {
        result.id: result
        for response in client.stream(iter(sent), metrics=[metric], detail=scores_pb2.DETAIL_ERRORS)
        for result in response.items
    }
    for result, statistic in zip(reply.items, score(ITEMS, [metric]).runs[0].statistics, strict=True):
        (errors,) = result.errors
        assert errors == streamed[result.id].errors[0]
        expected = explain(statistic.match)
        kinds = [scores_pb2.ErrorKind.Name(f.kind).removeprefix("ERROR_KIND_").lower() for f in errors.findings]
        assert kinds == [f.kind for f in expected]
        assert [tuple(f.words) for f in errors.findings] == [f.words for f in expected]
        assert [f.partner if f.HasField("partner") else None for f in errors.findings] == [
            f.counterpart for f in expected
        ]
        (match,) = result.matches
        for finding in errors.findings:
            is_invented = finding.side == scores_pb2.ERROR_SIDE_INVENTED
            own, other = (match.candidate, match.reference)[:: 1 if is_invented else -1]
            assert not own[finding.tuple].partners
            if finding.HasField("partner"):
                assert finding.partner_words == other[finding.partner].tuple.words
        assert not result.graded_matches
        assert not result.credits


@pytest.mark.model
def test_findings_say_where_their_words_stand_as_the_report_does(client: Client) -> None:
    sent = [item(i.id, i.candidate, i.references) for i in ITEMS[:4]]
    reply = client.score(sent, detail=scores_pb2.DETAIL_ERRORS)
    report = build_report([System("mine", tuple(ITEMS[:4]))])
    for result, image in zip(reply.items, report.images, strict=True):
        view = image.candidates[0]
        for finding in result.errors[0].findings:
            spans = [(span.start, span.end) for span in finding.spans]
            known = [(span.reference, span.span.start, span.span.end) for span in finding.reference_spans]
            is_invented = finding.side == scores_pb2.ERROR_SIDE_INVENTED
            own = (view.candidate if is_invented else view.reference)[finding.tuple]
            places = [(m.caption, *span) for m in own.mentions for span in m.spans]
            assert (([(0, *span) for span in spans]) if is_invented else known) == places
            assert KINDS[own.kind or ""].title
    first = reply.items[0].errors[0].findings
    color = next(f for f in first if f.kind == scores_pb2.ERROR_KIND_COLOR_CONFUSED)
    assert (list(color.words), color.category) == (["red", "blue"], scores_pb2.SPICE_CATEGORY_COLOR)
    assert {ITEMS[0].candidate[s.start : s.end] for s in color.spans} == {"blue", "car"}
    assert {ITEMS[0].references[s.reference][s.span.start : s.span.end] for s in color.reference_spans} == {
        "red",
        "car",
    }
    assert scores_pb2.ERROR_KIND_COUNT_OFF_BY_ONE in [f.kind for f in first]
    face = next(f for f in reply.items[3].errors[0].findings if f.spans)
    assert ITEMS[3].candidate[face.spans[0].start : face.spans[0].end] in ITEMS[3].candidate[2:]
