"""Rewards in the words of programs that ask a URL: what their clients send, and what they read.

A program is a row of :data:`DIALECTS`: its name, what reads the samples of a body, and what makes its answer of the
rewards. The URL's query names the ``reward`` and the ``reference_set``, in which labels name the images; a body with
references of its own needs no set. Rewarded is the answer of a completion, unless the query says
``answer_tags=false``. None of these clients asks again, and all wait 30 seconds at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from spicegraph_api.rewards.v1.rewards_pb2 import RewardRequest, RewardResponse
from spicegraph_api.v1.scores_pb2 import Item
from spicegraph_graded.rewards.answers import answer_of
from spicegraph_graded.rewards.trainers import completion_of, references_of
from spicegraph_parser.errors import InputError, expect_texts
from spicegraph_service.kit import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_METHOD: Final = "/spicegraph.rewards.v1.RewardService/Reward"


def _dialect(name: str, samples: Callable[[bytes], list[Item]], answer: Callable[[RewardResponse], Any]) -> Dialect:
    """Return how a program asks: its name, the items of a body, without ids, and the answer of their rewards."""

    def read(data: bytes, query: Mapping[str, str]) -> RewardRequest:
        items = samples(data)
        answers = query.get("answer_tags", "true")
        if answers not in {"true", "false"}:
            raise InputError(f"answer_tags: is {answers[:20]!a}, expected true or false")
        for number, item in enumerate(items):
            item.id = str(number)
            if answers == "true":
                item.candidate = answer_of(item.candidate)
        return RewardRequest(reward=query.get("reward", ""), reference_set=query.get("reference_set"), items=items)

    return Dialect(name, _METHOD, read, answer)


class _OpenRlhfBody(msgspec.Struct):
    query: list[str]
    prompts: list[str]
    labels: list[str]


def read_openrlhf(data: bytes) -> list[Item]:
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
            samples.append(Item(candidate=completion_of(query, prompt), reference_id=image))
        except InputError as error:
            raise InputError(f"query[{number}]: {error}") from error
    return samples


def answer_openrlhf(response: RewardResponse) -> Mapping[str, Any]:
    """Return what OpenRLHF reads: rewards, scores for its filter, and what it logs."""
    rewards = [item.reward for item in response.items]
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"spicegraph": rewards}}


class _SlimeBody(msgspec.Struct):
    response: str
    label: str | int


def read_slime(data: bytes) -> list[Item]:
    """Read a single ``response`` with its ``label``: slime's ``--rm-type remote_rm``; it sends the prompt, too."""
    body = msgspec.json.decode(data, type=_SlimeBody)
    return [Item(candidate=completion_of(body.response, ""), reference_id=str(body.label))]


class _VerlBody(msgspec.Struct):
    solution_str: str | list[str]
    ground_truth: str | list[Any]


def read_verl(data: bytes) -> list[Item]:
    """Read what :func:`spicegraph_graded.rewards.trainers.compute_score` posts, one caption or a batch of them."""
    body = msgspec.json.decode(data, type=_VerlBody)
    captions = [body.solution_str] if isinstance(body.solution_str, str) else body.solution_str
    truths = [body.ground_truth] if isinstance(body.solution_str, str) else body.ground_truth
    if isinstance(truths, str) or len(captions) != len(truths):
        raise InputError(f"ground_truth: expected one for each of {len(captions)} captions in solution_str")
    return [
        Item(candidate=completion_of(caption, ""), references=_references(truth, f"ground_truth[{number}]"))
        for number, (caption, truth) in enumerate(zip(captions, truths, strict=True))
    ]


class _WeaveCall(msgspec.Struct):
    inputs: dict[str, Any] = {}
    output: Any = None


class _WeaveBody(msgspec.Struct):
    schema_version: int
    original_call: _WeaveCall


def read_weave(data: bytes) -> list[Item]:
    """Read a call that a monitor of W&B Weave sends to a ``RemoteScorer``: its inputs and its output."""
    body = msgspec.json.decode(data, type=_WeaveBody)
    if body.schema_version != 1:
        raise InputError(f"schema_version: is {body.schema_version}, expected 1, that of scored calls")
    call = body.original_call
    output = call.output if isinstance(call.output, dict) else {"response": call.output}
    return [_evaluated(call.inputs | output, "original_call")]


def answer_weave(response: RewardResponse) -> Mapping[str, Any]:
    """Return a rating of Weave, with its reason."""
    (item,) = response.items
    value = min(max(item.reward, 0.0), 1.0)  # as a rating of Weave must be
    return {"schema_version": 1, "result": {"value": value, "reason": _reason(response)}}


class _FoundryData(msgspec.Struct):
    item: dict[str, Any] = {}
    sample: dict[str, Any] = {}


class _FoundryBody(msgspec.Struct):
    schema_version: str
    data: _FoundryData


def read_foundry(data: bytes) -> list[Item]:
    """Read a row that Microsoft Foundry sends to an endpoint-based evaluator: the item, and what was sampled for it."""
    body = msgspec.json.decode(data, type=_FoundryBody)
    return [_evaluated(body.data.sample | body.data.item, "data")]


def answer_foundry(response: RewardResponse) -> Mapping[str, Any]:
    """Return a score of Foundry, with its reason and the terms."""
    (item,) = response.items
    terms = {term.name: term.value for term in item.terms if term.HasField("value")}
    return {
        "schema_version": "0.0.1",
        "status": "Completed",
        "score": item.reward,
        "reason": _reason(response),
        "properties": terms,
    }


def _evaluated(fields: Mapping[str, Any], path: str) -> Item:
    """Return the item of a row: a ``caption`` or ``response``; ``references``, ``ground_truth`` or an ``image_id``."""
    caption = fields.get("caption", fields.get("response"))
    if not isinstance(caption, str):
        raise InputError(f"{path}: has no text under caption or response")
    truth = fields.get("references", fields.get("ground_truth"))
    if truth is not None:
        return Item(candidate=caption, references=_references(truth, path))
    image = fields.get("image_id")
    if not isinstance(image, str | int):
        raise InputError(f"{path}: has neither references or ground_truth nor an image_id of the reference set")
    return Item(candidate=caption, reference_id=str(image))


def _references(truth: Any, path: str) -> Sequence[str]:
    references = references_of(truth) if isinstance(truth, str) else truth
    return expect_texts(references, f"{path}: references")


def _reason(response: RewardResponse) -> str:
    (item,) = response.items
    terms = ", ".join(f"{term.name} {term.value:.3f}" for term in item.terms if term.HasField("value"))
    return f"reward {item.reward:.3f} of {terms}"


DIALECTS: Final = (
    _dialect("openrlhf", read_openrlhf, answer_openrlhf),
    _dialect("slime", read_slime, lambda response: response.items[0].reward),
    _dialect("verl", read_verl, lambda response: [item.reward for item in response.items]),
    _dialect("weave", read_weave, answer_weave),
    _dialect("foundry", read_foundry, answer_foundry),
)
