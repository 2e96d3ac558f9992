"""Differences over gRPC and by URL are the library's."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.detail.v1 import detail_pb2 as pb
from spicegraph_graded import AsyncDetailClient, DetailClient, find_differences
from spicegraph_scorer import Item
from spicegraph_service.client import item

if TYPE_CHECKING:
    from servers import RunningServer

pytestmark = pytest.mark.model

REFERENCES = ("A brown dog lies on a sofa.", "A dog sleeps beside a cat.")
CANDIDATES = ["A black dog lies on a couch.", "A dog and a ball.", "", "Two cats on a red sofa."] * 20  # two chunks


def test_differences_over_grpc_are_the_library_s(server: RunningServer) -> None:
    """Kinds, words, places and scores, in the order of the request; also from a stored set, and asynchronously."""
    expected = find_differences([Item(n, text, REFERENCES) for n, text in enumerate(CANDIDATES)])
    with DetailClient(server.address) as client:
        reply = client.find_differences([item(n, text, REFERENCES) for n, text in enumerate(CANDIDATES)])
        stored = client.create_reference_set({"7": REFERENCES}).id
        again = client.find_differences(
            [item(n, text, reference_id="7") for n, text in enumerate(CANDIDATES)], reference_set=stored
        )
    assert reply == again
    assert [one.id for one in reply.items] == [str(n) for n in range(len(CANDIDATES))]
    for message, found in zip(reply.items, expected, strict=True):
        assert (message.correctness, message.coverage) == (found.correctness, found.coverage)
        for told, one in zip(message.differences, found.differences, strict=True):
            assert pb.DifferenceKind.Name(told.kind) == f"DIFFERENCE_KIND_{one.kind.upper()}"
            assert pb.Aspect.Name(told.aspect) == f"ASPECT_{one.aspect.upper()}"
            assert (told.claim, told.reference) == (one.claim, one.reference)
            assert [(span.start, span.end) for span in told.spans] == list(one.spans)
            places = [(place.reference, place.span.start, place.span.end) for place in told.reference_spans]
            assert places == list(one.reference_spans)
            assert (told.severity, told.probability) == (one.severity, one.probability)
            assert (told.correctness, told.coverage) == (one.correctness, one.coverage)
            assert (tuple(told.facts), tuple(told.reference_facts)) == (one.facts, one.reference_facts)
    assert reply.signature.fields["formula"] == "5"

    async def ask() -> pb.FindDifferencesResponse:
        async with AsyncDetailClient(server.address) as asked:
            return await asked.find_differences([item(0, CANDIDATES[0], REFERENCES)])

    assert asyncio.run(ask()).items[0] == reply.items[0]


def test_a_wrong_request_names_its_fields(server: RunningServer) -> None:
    """INVALID_ARGUMENT without items, or with an item that has no references."""
    with DetailClient(server.address) as client:
        for items in ([], [item(1, "a dog", ())]):
            with pytest.raises(grpc.RpcError) as refused:
                client.find_differences(items)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]


def test_differences_are_json_over_http_too(server: RunningServer) -> None:
    """The method's path takes the request as JSON, and answers with names of kinds and aspects."""
    body = {"items": [{"id": "1", "candidate": CANDIDATES[0], "references": list(REFERENCES)}]}
    request = urllib.request.Request(
        f"{server.http_url}/spicegraph.detail.v1.DifferenceService/FindDifferences",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        (reply,) = json.load(response)["items"]
    kinds = {(difference["kind"], difference["aspect"]) for difference in reply["differences"]}
    assert ("DIFFERENCE_KIND_CONTRADICTED", "ASPECT_COLOUR") in kinds
    assert 0 < reply["correctness"] < 1
