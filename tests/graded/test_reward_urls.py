"""Rewards that a trainer asks a server for by URL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_graded import RewardModel
from spicegraph_graded.rewards.trainers import compute_score, compute_scores
from spicegraph_parser.errors import DataError, InputError
from spicegraph_service.client import item

if TYPE_CHECKING:
    from servers import RunningServer
    from spicegraph_graded import RewardClient

pytestmark = pytest.mark.model


REFERENCES = ["a dog that is brown", "a puppy"]
REWARD = "spice=1,length=-.01"


def expected(captions: list[str]) -> list[float]:
    return RewardModel(REWARD, {7: REFERENCES}).rewards([7] * len(captions), captions)


def test_verl_asks_a_server(server: RunningServer) -> None:
    """``compute_score`` is what verl calls for a caption; its batch manager of earlier versions calls the plural."""
    url = server.http_url
    captions = ["a brown dog", "a cat", "a brown dog<|im_end|>"]
    score = compute_score("coco", captions[0], json.dumps(REFERENCES), None, url=url, reward=REWARD)
    assert score == expected(captions)[0]
    assert compute_scores(["coco"] * 3, captions, [REFERENCES] * 3, url=f"{url}/", reward=REWARD) == expected(captions)


def test_a_server_strips_special_tokens(client: RewardClient) -> None:
    """What trainers send has them, and a reward is that of the words."""
    items = [item(n, text, REFERENCES) for n, text in enumerate(["a brown dog", "a brown dog <eos>", "<s>a brown dog"])]
    rewards = [one.reward for one in client.reward(items, REWARD).items]
    assert rewards == expected(["a brown dog"]) * 3


@pytest.mark.parametrize(
    ("url", "reward", "error", "message"),
    [
        (None, "what=1", InputError, "there is no term"),
        ("http://127.0.0.1:9", REWARD, DataError, "does not answer"),
        ("file:///etc/passwd", REWARD, InputError, "does not begin with http"),
    ],
)
def test_a_refusal_and_a_silent_server_are_told_apart(
    server: RunningServer, url: str | None, reward: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compute_score("coco", "a dog", REFERENCES, url=url or server.http_url, reward=reward)
