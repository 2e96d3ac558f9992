"""Rewards by URL, in the words of trainers: what their clients send, and what they read."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from spicegraph_graded import RewardModel
from spicegraph_graded.rewards.trainers import compute_score, compute_scores
from spicegraph_parser.errors import DataError, InputError
from spicegraph_service.client import item

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import RunningServer
    from spicegraph_graded import RewardClient

pytestmark = pytest.mark.model


class Reply(NamedTuple):
    """A response, read whole."""

    status: int
    json: Any


@pytest.fixture
def ask(server: RunningServer) -> Callable[..., Reply]:
    """Post JSON to the shared server."""

    def send(path: str, body: object) -> Reply:
        request = urllib.request.Request(
            server.http_url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Reply(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, json.load(error))

    return send


def test_openrlhf_asks_for_rewards_by_url(ask: Callable[..., Reply], client: RewardClient) -> None:
    """The body is what ``SingleTurnAgentExecutor`` of OpenRLHF 0.11.2 sends, and it reads ``rewards`` and ``scores``."""
    prompt = "<|im_start|>user\nDescribe it.<|im_end|>"
    captions = ["a brown dog", "a cat"]
    body = {"query": [f"{prompt}{c}<|im_end|>" for c in captions], "prompts": [prompt] * 2, "labels": ["7", "7"]}
    stored = client.create_reference_set({"7": ["a dog that is brown", "a puppy"]}).id
    samples = [item(n, text, reference_id="7") for n, text in enumerate(captions)]
    expected = [one.reward for one in client.reward(samples, "spice=1,length=-.01", reference_set=stored).items]
    path = f"/compat/openrlhf?reward=spice%3D1,length%3D-.01&reference_set={stored}"
    reply = ask(path, body)
    assert reply.status == 200
    assert reply.json == {"rewards": expected, "scores": expected, "extra_logs": {"spicegraph": expected}}
    assert expected[0] > expected[1]
    for faulty, message in (
        (body | {"prompts": [prompt]}, "the lists differ in length: query 2, prompts 1, labels 2"),
        (body | {"prompts": ["another", prompt]}, "query[0]: the query"),
        ({"query": ["a"]}, "missing required field `prompts`"),
        (body | {"labels": ["7", "8"]}, "8"),
    ):
        reply = ask(path, faulty)
        assert reply.status in (400, 404)
        assert message in reply.json["message"]
    assert ask("/compat/openrlhf", body).status == 400


def test_slime_asks_for_rewards_by_url(ask: Callable[..., Reply], client: RewardClient) -> None:
    """The body is what slime's ``remote_rm`` posts for a sample; the JSON of the answer is the reward itself."""
    stored = client.create_reference_set({"7": ["a dog that is brown", "a puppy"]}).id
    samples = [item(1, "a brown dog", reference_id="7")]
    (expected,) = client.reward(samples, "spice=1,length=-.01", reference_set=stored).items
    path = f"/compat/slime?reward=spice%3D1,length%3D-.01&reference_set={stored}"
    body = {"prompt": "Describe it.", "response": "a brown dog<|im_end|>", "label": "7"}
    assert ask(path, body).json == expected.reward
    messages = [{"role": "user", "content": "Describe it."}]
    assert ask(path, body | {"prompt": messages, "label": 7}).json == expected.reward
    for faulty, message in (
        ({"prompt": "Describe it.", "label": "7"}, "missing required field `response`"),
        (body | {"response": ["a dog"]}, "`$.response`"),
        (body | {"label": None}, "`$.label`"),
    ):
        reply = ask(path, faulty)
        assert reply.status == 400
        assert message in reply.json["message"]
    assert ask(path, body | {"label": "8"}).status in (400, 404)


REFERENCES = ["a dog that is brown", "a puppy"]
REWARD = "spice=1,length=-.01"
QUERY = "reward=spice%3D1,length%3D-.01"


def expected(captions: list[str]) -> list[float]:
    return RewardModel(REWARD, {7: REFERENCES}).rewards([7] * len(captions), captions)


def test_verl_asks_for_rewards_by_url(server: RunningServer, ask: Callable[..., Reply]) -> None:
    """``compute_score`` is what verl calls for a caption; its batch manager of earlier versions calls the plural."""
    url = f"{server.http_url}/compat/verl?{QUERY}"
    captions = ["a brown dog", "a cat"]
    assert compute_score("coco", captions[0], json.dumps(REFERENCES), None, url=url) == expected(captions)[0]
    assert compute_scores(["coco"] * 2, captions, [REFERENCES] * 2, url=url) == expected(captions)
    assert ask(f"/compat/verl?{QUERY}", {"solution_str": "a brown dog", "ground_truth": REFERENCES}).json == expected(
        ["a brown dog"]
    )
    with pytest.raises(InputError, match="there is no term"):
        compute_score("coco", "a dog", REFERENCES, url=f"{server.http_url}/compat/verl?reward=what%3D1")
    with pytest.raises(DataError, match="does not answer"):
        compute_score("coco", "a dog", REFERENCES, url="http://127.0.0.1:9/compat/verl?reward=guarded")
    with pytest.raises(InputError, match="does not begin with http"):
        compute_score("coco", "a dog", REFERENCES, url="file:///etc/passwd")
    reply = ask(f"/compat/verl?{QUERY}", {"solution_str": captions, "ground_truth": [REFERENCES]})
    assert reply.status == 400
    assert "expected one for each of 2 captions" in reply.json["message"]


def weave_body(inputs: dict[str, object], output: object) -> dict[str, object]:
    """What a monitor's scoring worker posts: https://docs.wandb.ai/weave/guides/evaluation/remote-scorers."""
    call = {
        "project_id": "team/project",
        "call_id": "018f8d6c-8d5f-7000-8000-000000000001",
        "trace_id": "018f8d6c-8d5f-7000-8000-000000000002",
        "op_name": "weave:///team/project/op/describe:*",
        "inputs": inputs,
        "output": output,
        "started_at": "2026-06-08T12:00:00+00:00",
        "ended_at": "2026-06-08T12:00:01+00:00",
    }
    return {
        "schema_version": 1,
        "original_call": call,
        "scoring_call_id": "018f8d6c-8d5f-7000-8000-000000000003",
        "monitor": {"name": "captions", "version_digest": "a"},
        "scorer": {"name": "spicegraph", "ref": "weave:///team/project/object/spicegraph:a", "config": {}},
    }


@pytest.mark.parametrize("output", ["a brown dog", {"caption": "a brown dog"}, {"response": "a brown dog"}])
def test_weave_s_remote_scorer(ask: Callable[..., Reply], output: object) -> None:
    """A number from 0 to 1 with a reason, under the version that was asked; anything but 200 is a failure there."""
    reply = ask(f"/compat/weave?{QUERY}", weave_body({"references": REFERENCES}, output))
    assert reply.status == 200
    assert reply.json["schema_version"] == 1
    (value,) = expected(["a brown dog"])
    assert reply.json["result"]["value"] == value
    assert reply.json["result"]["reason"] == f"reward {value:.3f} of spice {value + 0.03:.3f}, length 3.000"


def test_a_rating_of_weave_is_not_below_0(ask: Callable[..., Reply]) -> None:
    reply = ask(f"/compat/weave?{QUERY}", weave_body({"ground_truth": "a dog"}, "a cat"))
    assert reply.json["result"] == {"value": 0.0, "reason": "reward -0.020 of spice 0.000, length 2.000"}


def test_foundry_s_endpoint_evaluator(ask: Callable[..., Reply], client: RewardClient) -> None:
    """What the evaluation service posts for a row, and the fields that it reads."""
    stored = client.create_reference_set({"7": REFERENCES}).id
    head = {"schema_version": "0.0.1", "evaluator_name": "e", "evaluator_version": "1", "evaluation_level": "turn"}
    (value,) = expected(["a brown dog"])
    for data, query in (
        ({"item": {"query": "Describe it.", "response": "a brown dog", "ground_truth": json.dumps(REFERENCES)}}, ""),
        ({"item": {"references": REFERENCES}, "sample": {"response": "a brown dog"}}, ""),
        ({"item": {"image_id": 7}, "sample": {"response": "a brown dog"}}, f"&reference_set={stored}"),
    ):
        reply = ask(f"/compat/foundry?{QUERY}{query}", head | {"data": data})
        assert reply.status == 200, reply
        assert reply.json["schema_version"] == "0.0.1"
        assert (reply.json["status"], reply.json["score"]) == ("Completed", value)
        assert reply.json["properties"] == {"spice": pytest.approx(value + 0.03), "length": 3}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (
            "/compat/weave",
            weave_body({"references": REFERENCES}, None),
            "original_call: has no text under caption or response",
        ),
        ("/compat/weave", weave_body({}, "a dog"), "neither references or ground_truth nor an image_id"),
        (
            "/compat/weave",
            weave_body({"references": [3]}, "a dog"),
            "original_call: references[0]: is a number, expected a string",
        ),
        ("/compat/weave", {"schema_version": 2, "original_call": {}}, "schema_version: is 2, expected 1"),
        ("/compat/weave", {"schema_version": 1}, "missing required field `original_call`"),
        ("/compat/foundry", {"schema_version": "0.0.1", "data": {"item": []}}, "`$.data.item`"),
        ("/compat/foundry", {"schema_version": "0.0.1", "data": {"item": {"response": 3}}}, "data: has no text"),
        ("/compat/verl", {"solution_str": 3, "ground_truth": "a"}, "`$.solution_str`"),
        ("/compat/verl", {"solution_str": ["a"], "ground_truth": "a"}, "expected one for each of 1 captions"),
    ],
)
def test_a_faulty_body_is_one_clear_400(ask: Callable[..., Reply], path: str, body: object, message: str) -> None:
    reply = ask(f"{path}?{QUERY}", body)
    assert reply.status == 400
    assert message in reply.json["message"]
