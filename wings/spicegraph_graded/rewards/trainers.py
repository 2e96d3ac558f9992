"""Rewards in the call shapes of training libraries: TRL, verl, OpenRLHF, and self-critical captioning code."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import numpy as np

from spicegraph_graded.rewards.answers import answer_of, strip_special_tokens
from spicegraph_graded.rewards.model import RewardModel
from spicegraph_parser.errors import DataError, InputError, expect, expect_list, expect_texts
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.readers.checks import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from spicegraph_scorer.core.items import ItemId

_PATIENCE_S: Final = 30.0
_METHOD: Final = "/spicegraph.rewards.v1.RewardService/Reward"


def caption_of(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a completion: of a conversation, its last message; nothing where that says nothing.

    Example:
        >>> caption_of([{"role": "assistant", "content": "a dog"}])
        'a dog'
        >>> caption_of([{"role": "assistant", "content": [{"type": "text", "text": "a dog"}]}])
        'a dog'
    """
    try:
        said = completion if isinstance(completion, str) or completion in ([], ()) else completion[-1]["content"]
        return said if isinstance(said, str) else "".join(part["text"] for part in said or () if part["type"] == "text")
    except (KeyError, IndexError, TypeError) as error:
        reason = "expected a text, or messages with their content"
        raise InputError(f"completion: {shown(completion)} is not a completion: {reason}") from error


def trl_reward(
    model: RewardModel, *, column: str = "image_id", name: str = "spicegraph", answer_tags: bool = True
) -> Callable[..., list[float]]:
    """Return a reward function for TRL's ``GRPOTrainer`` and ``RLOOTrainer`` (``reward_funcs``).

    Args:
        model: the reward.
        column: the data set's column that names each prompt's image.
        name: what the trainer calls it in its logs.
        answer_tags: reward :func:`~spicegraph_graded.rewards.answers.answer_of` each completion, not all that it says.
    """

    def reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        if column not in columns:
            raise InputError(f"the data set has no column {column!a}, which names each prompt's image")
        expect_list(completions, "completions")
        captions = [caption_of(completion) for completion in completions]
        return model.rewards(columns[column], answers_of(captions, answer_tags=answer_tags))

    reward.__name__ = name
    return reward


def compute_score(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None, **settings: Any
) -> Any:
    """Return verl's reward (``reward.custom_reward_function.path`` is a file that imports this, ``name`` this name).

    References are the row's ``ground_truth``: a list of captions, its JSON, or one caption. Threads may call it at
    once. The batch manager of versions before 0.9 calls with lists in the plural (:func:`compute_scores`).

    Args:
        data_source: not used.
        solution_str: the caption.
        ground_truth: its references.
        extra_info: not used.
        settings: ``reward``, its terms (default ``spice-g=1``), and ``idf``, a file of document frequencies, which
            CIDEr needs (``custom_reward_function.reward_kwargs``); or ``url``, that of a server (``http://HOST:PORT``),
            which is asked once, and has 30 seconds; ``answer_tags``: whether the answer of a caption is rewarded, not
            all that it says (:func:`trl_reward`); it is by default.

    Raises:
        InputError: the reward or the references are faulty; a server says so.
        DataError: the file can't be read, or the server can't be reached.
    """
    del data_source, extra_info
    return _of_rows([solution_str], [ground_truth], **settings)[0]


def compute_scores(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Any = None,
    **settings: Any,
) -> list[float]:
    """Return verl's rewards of a batch (``reward_manager=batch``); see :func:`compute_score`."""
    del data_sources, extra_infos
    return _of_rows(solution_strs, ground_truths, **settings)


def _of_rows(
    captions: Sequence[str],
    truths: Sequence[Any],
    *,
    reward: str = "spice-g=1",
    idf: str = "",
    url: str = "",
    answer_tags: bool = True,
) -> list[float]:
    captions = answers_of(expect_texts(captions, "solution_str"), answer_tags=answer_tags)
    expect_list(truths, "ground_truth")
    references = [
        tuple(references_of(truth) if isinstance(truth, str) else expect_texts(truth, "ground_truth"))
        for truth in truths
    ]
    if url:
        pairs = enumerate(zip(captions, references, strict=True))
        items = [{"id": str(n), "candidate": caption, "references": texts} for n, (caption, texts) in pairs]
        return _request_rewards(url, {"reward": reward, "items": items})
    model = _model(reward, idf)
    images = [json.dumps(texts) for texts in references]
    model.add(dict(zip(images, references, strict=True)))
    return model.rewards(images, captions)


def answers_of(captions: Sequence[str], *, answer_tags: bool) -> list[str]:
    """Return each caption's answer, empty where it has none; without ``answer_tags``, whole captions."""
    return [answer_of(caption) for caption in captions] if answer_tags else list(captions)


def references_of(truth: str) -> tuple[str, ...]:
    """Return the captions of a JSON list, or else the text as the only one."""
    try:
        decoded = json.loads(truth)
    except ValueError:
        decoded = None
    return tuple(decoded) if isinstance(decoded, list) else (truth,)


def _request_rewards(url: str, body: Mapping[str, Any]) -> list[float]:
    """Return a server's rewards, asked for once; an InputError if it refuses, a DataError if it can't answer."""
    expect(url, str, "url", "that of a server such as 'http://localhost:8080'")
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InputError(f"url: {url[:100]!a} does not begin with http:// or https://")
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url.rstrip("/") + _METHOD, json.dumps(body).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as response:  # noqa: S310 (checked above)
            return [item["reward"] for item in json.load(response)["items"]]
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(10_000).decode(errors="replace")
        raise (InputError if error.code == HTTPStatus.BAD_REQUEST else DataError)(f"{url}: {said}") from error
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{url}: does not answer with rewards: {error}") from error


@lru_cache(maxsize=4)
def _model(reward: str, idf: str) -> RewardModel:
    data = MetricData(frequencies=DocumentFrequencies.read(Path(idf)) if idf else None)
    return RewardModel(reward, {}, data=data)


def completion_of(query: str, prompt: str) -> str:
    """Return the completion without its prompt; an InputError where the query has another prompt."""
    said, asked = (strip_special_tokens(text).strip() for text in (query, prompt))
    if not said.startswith(asked):
        raise InputError(f"the query {said[:50]!a} does not begin with its prompt {asked[:50]!a}")
    return said.removeprefix(asked).strip()


def openrlhf_reward(model: RewardModel, *, answer_tags: bool = True) -> Callable[..., dict[str, Any]]:
    """Return ``reward_func`` for a file that OpenRLHF loads (``--remote_rm_url FILE.py``).

    Labels (``--label_key``) name the images. Queries are prompts with their completions.

    Args:
        model: the reward; rewards of 0 to 1 are the best for OpenRLHF's dynamic filtering.
        answer_tags: as for :func:`trl_reward`.
    """

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[ItemId], **_: Any
    ) -> dict[str, Any]:
        import torch  # noqa: PLC0415 (there where OpenRLHF is)

        captions = [completion_of(query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
        answers = answers_of(captions, answer_tags=answer_tags)
        rewards = torch.tensor(model.rewards(labels, answers), dtype=torch.float32)
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"spicegraph": rewards}}

    return reward_func


def self_critical_reward(
    model: RewardModel, greedy: Sequence[str], sampled: Sequence[str], images: Sequence[ItemId], *, length: int
) -> NDArray[np.float32]:
    """Return the rewards of ImageCaptioning.pytorch's ``get_self_critical_reward``: (samples, words).

    Args:
        model: the reward.
        greedy: the greedy caption of each image.
        sampled: the samples, as many of each image in a row.
        images: the images.
        length: the number of columns, in which the reward repeats.

    Raises:
        InputError: samples and images don't pair up.
    """
    each, rest = divmod(len(sampled), len(images))
    if rest or len(greedy) != len(images):
        raise InputError(
            f"{len(sampled)} samples and {len(greedy)} greedy captions of {len(images)} images don't pair up"
        )
    of_samples = [image for image in images for _ in range(each)]
    advantages = model.over_greedy(of_samples, sampled, dict(zip(images, greedy, strict=True)))
    return np.repeat(np.array(advantages, np.float32)[:, None], length, axis=1)
