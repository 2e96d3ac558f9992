"""JSON that is no message of the contract is refused by the path to its fault; the hosts that HTTP answers to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spicegraph_api.v1 import evaluation_service_pb2 as evaluation
from spicegraph_api.v1 import reference_service_pb2 as references
from spicegraph_web import server
from spicegraph_web.codec import JsonError, from_json

DOG = {"id": "1", "candidate": "dog", "references": ["dog"]}

LIST = "repeated field {} must be in [] which is"
NO_TEXT = "expected string or bytes-like object, got"
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"items": [DOG | {"references": "dog"}]}, "items[0].references", LIST.format("references")),
    ({"items": [DOG | {"references": {"dog": 1}}]}, "items[0].references", LIST.format("references")),
    ({"items": [DOG | {"references": None}]}, "references", "is null"),
    ({"items": [DOG | {"references": ["dog", 1]}]}, "items.references", NO_TEXT),
    ({"items": [DOG | {"references": [None]}]}, "items[0].references[0]", "null is not allowed"),
    ({"items": [DOG | {"references": [["dog"]]}]}, "items.references", NO_TEXT),
    ({"items": [DOG, DOG | {"candidate": None}]}, "candidate", "is null"),
    ({"items": [DOG | {"candidate": 3}]}, "items.candidate", NO_TEXT),
    ({"items": [DOG | {"id": True}]}, "items.id", NO_TEXT),
    ({"items": [DOG | {"id": 1.5}]}, "items.id", NO_TEXT),
    ({"items": [DOG | {"id": None}]}, "id", "is null"),
    ({"items": "dog"}, "items", LIST.format("items")),
    ({"items": DOG}, "items", LIST.format("items")),
    ({"items": ["dog"]}, "items[0].d", "there is no such field"),
    ({"items": [DOG | {"refs": []}]}, "items[0].refs", "there is no such field"),
    ({"items": [DOG], "metrics": "spice"}, "metrics", LIST.format("metrics")),
    ({"items": [DOG], "categories": [{"name": "Pet", "words": "dog"}]}, "categories[0].words", LIST.format("words")),
]


@pytest.mark.parametrize(("body", "field", "reason"), WRONG, ids=[json.dumps(body) for body, *_ in WRONG])
def test_json_of_another_kind_is_refused_by_field(body: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(JsonError) as caught:
        from_json(json.dumps(body).encode(), evaluation.ScoreRequest)
    assert caught.value.field == field
    assert str(caught.value).startswith(reason)


def test_every_call_says_so() -> None:
    with pytest.raises(JsonError, match=r"must be in \[\] which is dog"):
        from_json(b'{"captions": "dog"}', evaluation.ParseCaptionsRequest)
    body = {"entries": {"entries": [{"id": 7, "references": "a dog"}]}}
    with pytest.raises(JsonError, match=r"must be in \[\] which is a dog") as caught:
        from_json(json.dumps(body).encode(), references.CreateReferenceSetRequest)
    assert caught.value.field == "entries.entries[0].references"


@pytest.mark.parametrize("detail", [{}, {"detail": 3}, {"referenceSet": None, "detail": "DETAIL_TUPLES"}])
def test_ids_may_be_numbers_and_what_may_be_absent_may_be_null(detail: dict[str, Any]) -> None:
    body = {"items": [DOG | {"id": 143, "referenceId": 7}], **detail}
    request = from_json(json.dumps(body).encode(), evaluation.ScoreRequest)
    assert (request.items[0].id, request.items[0].reference_id) == ("143", "7")
    assert request.items[0].references == ["dog"]
    assert not request.HasField("reference_set")


@pytest.mark.parametrize(
    ("name", "own"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("evil.org", False), ("", False)],
)
def test_names_of_this_machine_alone(name: str, *, own: bool) -> None:
    assert server._is_own(name) is own


def test_a_key_that_stands_twice_is_refused() -> None:
    for text in (b'{"captions": ["a"], "captions": ["b"]}', b'{"items": [{"id": "1", "id": "2"}]}'):
        with pytest.raises(JsonError, match="appears twice") as failure:
            from_json(text, evaluation.ScoreRequest)
        assert failure.value.field in {"captions", "id"}
    quoted = b'{"captions": ["a \\"sign\\": \\"stop\\": here", "\\\\"], "graphStyle": "GRAPH_STYLE_SCENE"}'
    assert from_json(quoted, evaluation.ParseCaptionsRequest).captions[0] == 'a "sign": "stop": here'
