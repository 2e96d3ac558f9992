"""Rewards by URL, in the words of trainers: what their clients send, and what they read."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from spicegraph_service.client import item

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import RunningServer
    from spicegraph_rewards import RewardClient

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
    path = f"/openrlhf?reward=spice%3D1,length%3D-.01&reference_set={stored}"
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
    assert ask("/openrlhf", body).status == 400


def test_slime_asks_for_rewards_by_url(ask: Callable[..., Reply], client: RewardClient) -> None:
    """The body is what slime's ``remote_rm`` posts for a sample; the JSON of the answer is the reward itself."""
    stored = client.create_reference_set({"7": ["a dog that is brown", "a puppy"]}).id
    samples = [item(1, "a brown dog", reference_id="7")]
    (expected,) = client.reward(samples, "spice=1,length=-.01", reference_set=stored).items
    path = f"/slime?reward=spice%3D1,length%3D-.01&reference_set={stored}"
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
