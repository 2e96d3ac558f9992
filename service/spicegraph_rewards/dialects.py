"""Rewards in the words of trainers that ask a URL: what their clients send, and what they read.

A trainer is a row of :data:`DIALECTS`: its path, what reads the samples of a body, and what makes its answer of the
rewards. The URL's query names the ``reward`` and the ``reference_set``; labels name the images in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from spicegraph_api.rewards.v1.rewards_pb2 import RewardRequest, RewardResponse
from spicegraph_api.v1.scores_pb2 import Item
from spicegraph_parser.errors import InputError
from spicegraph_rewards.trainers import completion_of
from spicegraph_service.kit import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_METHOD: Final = "/spicegraph.rewards.v1.RewardService/Reward"


class Sample(NamedTuple):
    """A caption, and the image in the reference set that it is of."""

    caption: str
    image: str


def _dialect(path: str, samples: Callable[[bytes], list[Sample]], answer: Callable[[Sequence[float]], Any]) -> Dialect:
    """Return how a trainer asks: its path, the samples of a body, and the answer of their rewards."""

    def read(data: bytes, query: Mapping[str, str]) -> RewardRequest:
        items = [
            Item(id=str(number), candidate=text, reference_id=image)
            for number, (text, image) in enumerate(samples(data))
        ]
        return RewardRequest(reward=query.get("reward", ""), reference_set=query.get("reference_set", ""), items=items)

    def write(response: RewardResponse) -> Any:
        return answer([item.reward for item in response.items])

    return Dialect(path, _METHOD, read, write)


class _OpenRlhfBody(msgspec.Struct):
    query: list[str]
    prompts: list[str]
    labels: list[str]


def _openrlhf_samples(data: bytes) -> list[Sample]:
    """Read prompts with their completions (``query``), prompts, and labels: OpenRLHF's ``--remote_rm_url``."""
    body = msgspec.json.decode(data, type=_OpenRlhfBody)
    counts = {"query": len(body.query), "prompts": len(body.prompts), "labels": len(body.labels)}
    if len(set(counts.values())) > 1:
        raise InputError(
            "the lists differ in length: " + ", ".join(f"{name} {count}" for name, count in counts.items())
        )
    samples = []
    for number, (query, prompt, image) in enumerate(zip(body.query, body.prompts, body.labels, strict=True)):
        try:
            samples.append(Sample(completion_of(query, prompt), image))
        except InputError as error:
            raise InputError(f"query[{number}]: {error}") from error
    return samples


def _openrlhf_answer(rewards: Sequence[float]) -> Mapping[str, Any]:
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"spicegraph": rewards}}


class _SlimeBody(msgspec.Struct):
    response: str
    label: str | int


def _slime_samples(data: bytes) -> list[Sample]:
    """Read a single ``response`` with its ``label``: slime's ``--rm-type remote_rm``; it sends the prompt, too."""
    body = msgspec.json.decode(data, type=_SlimeBody)
    try:
        return [Sample(completion_of(body.response, ""), str(body.label))]
    except InputError as error:
        raise InputError(f"response: {error}") from error


DIALECTS: Final = (
    _dialect("/openrlhf", _openrlhf_samples, _openrlhf_answer),
    _dialect("/slime", _slime_samples, lambda rewards: rewards[0]),
)
"""Every trainer's words that the server understands."""
