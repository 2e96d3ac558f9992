"""Differences over gRPC and by URL are the library's."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import aiohttp
import grpc
import pytest

from spicegraph_api.detail.v1 import detail_pb2 as pb
from spicegraph_graded import AsyncDetailClient, DetailClient, find_differences
from spicegraph_graded.detail.metric import Detail
from spicegraph_parser import load_pipeline
from spicegraph_scorer import Item
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.tokens import Corpus
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


def _judge(server: RunningServer, body: object) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{server.http_url}/compat/judge", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_claimdiff_rl_asks_the_judge_by_url(server: RunningServer) -> None:
    """The requests are those of ClaimDiff-RL's client (commit 6b0fbfe): the server's name, then several bodies at once.

    A server without that name is left out, and of an answer that is not 200 or not JSON the rewards are 0.
    """
    payload = {
        "data_source": "caption",
        "query": "Describe it.",
        "prompt": "<|im_start|>user\nDescribe it.<|im_end|>",
        "answer": REFERENCES[0],
        "solution": REFERENCES[0],
        "reward_verifier": "caption_diff",
        "reward_verifier_parm": json.dumps({"verifier_style": "rule", "step": 3, "image_path": ["a.jpg"]}),
        "fmt_ratio": 0.0,
        "iter": None,
        "data_index": 0,
        "image_path": None,
    }

    async def rewards(url: str, payloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
        async def post(session: aiohttp.ClientSession, payload: dict[str, Any]) -> dict[str, Any]:
            async with session.post(url, json=payload, timeout=aiohttp.ClientTimeout(360)) as response:
                assert response.status == 200
                reply: dict[str, Any] = await response.json()
                return reply

        async with aiohttp.ClientSession() as session:
            async with session.get(url.removesuffix("/compat/judge")) as named:
                assert named.status == 200
                assert (await named.json())["message"] == "Reward Judge Server"
            return await asyncio.gather(*[post(session, payload) for payload in payloads])

    replies = asyncio.run(
        rewards(f"{server.http_url}/compat/judge", [payload | {"response": text} for text in CANDIDATES[:4]])
    )
    items = [Item(n, text, REFERENCES[:1]) for n, text in enumerate(CANDIDATES[:4])]
    facts = FactCache(load_pipeline())
    scored = Detail.of(Resources(lambda: facts)).collect(Corpus(tuple(items)))
    for reply, expected, statistic in zip(replies, find_differences(items), scored, strict=True):
        told = reply["rewards"]
        assert told["accuracy_reward"] == told["final_reward"] == statistic.both
        assert (told["format_reward"], told["correctness_reward"]) == (1.0, expected.correctness)
        assert [each["claim"] for each in reply["differences"]] == [each.claim for each in expected.differences]
        others = (reply["other_correctness"], reply["other_coverage"])
        assert others == (expected.other_correctness, expected.other_coverage)
        lost = sum(each["correctness"] for each in reply["differences"])
        assert lost + reply["other_correctness"] == pytest.approx(1 - told["correctness_reward"])
    assert {"kind": "contradicted", "aspect": "colour"}.items() <= replies[0]["differences"][0].items()


@pytest.mark.parametrize("body", [{}, {"response": "a dog"}, {"response": 1, "solution": "a cat"}, []])
def test_a_wrong_body_is_one_clear_400(server: RunningServer, body: object) -> None:
    """Nothing is scored."""
    status, reply = _judge(server, body)
    assert status == 400
    assert reply["message"]


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
