"""Rewards in verl: its function of a file in its reward managers, on the processor, without Ray's cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

verl = pytest.importorskip("verl")

WORDS = ["<pad>", "<eos>", "caption", ":", "a", "dog", "cat", "runs", "on", "grass"]
TRUTHS = (["a dog runs on grass", "a dog"], ["a cat on grass", "the cat runs"])
SAID = ("a dog runs", "a dog")
REWARD = {"reward": "spice=1,length=-.01"}


@pytest.fixture
def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>")


@pytest.fixture
def batch() -> Any:
    """Two prompts of two tokens with their samples, filled up to four."""
    import numpy as np
    import torch

    rows = [[WORDS.index(word) for word in text.split()] for text in SAID]
    responses = torch.tensor([row + [0] * (4 - len(row)) for row in rows])
    lengths = [[1, 1, *([1] * len(row)), *([0] * (4 - len(row)))] for row in rows]
    prompts = torch.tensor([[2, 3], [2, 3]])
    return verl.DataProto.from_dict(
        tensors={
            "prompts": prompts,
            "responses": responses,
            "input_ids": torch.cat([prompts, responses], dim=1),
            "attention_mask": torch.tensor(lengths),
        },
        non_tensors={
            "reward_model": np.array([{"ground_truth": np.array(truth, object)} for truth in TRUTHS], object),
            "data_source": np.array(["coco", "coco"], object),
            "extra_info": np.array([{}, {}], object),
        },
    )


@pytest.fixture
def expected() -> list[float]:
    from spicegraph_graded import RewardModel

    return RewardModel(REWARD["reward"], dict(enumerate(TRUTHS))).rewards([0, 1], SAID)


def configured(folder: Path, name: str, manager: str) -> Any:
    """Return the settings that ``custom_reward_function`` and ``reward_manager`` have on verl's command line."""
    from omegaconf import OmegaConf

    path = folder / "reward.py"
    path.write_text("from spicegraph_graded.rewards.trainers import compute_score, compute_scores\n", encoding="utf-8")
    custom = {"path": str(path), "name": name, "reward_kwargs": REWARD}
    chosen = {"source": "register", "name": manager}
    return OmegaConf.create({"reward": {"custom_reward_function": custom, "reward_manager": chosen}})


def test_the_reward_loop_scores_samples_at_once(
    tmp_path: Path, tokenizer: Any, batch: Any, expected: list[float]
) -> None:
    """verl asks for one sample at a time, each in a thread of its own."""
    from verl.trainer.ppo.reward import load_reward_manager

    async def scored() -> list[dict[str, Any]]:
        manager = load_reward_manager(configured(tmp_path, "compute_score", "naive"), tokenizer)
        manager.loop = asyncio.get_running_loop()
        return await asyncio.gather(*(manager.run_single(batch[n : n + 1]) for n in (0, 1) * 8))

    found = asyncio.run(scored())
    assert [one["reward_score"] for one in found] == pytest.approx(expected * 8)


@pytest.mark.parametrize(("name", "manager"), [("compute_score", "naive"), ("compute_scores", "batch")])
def test_reward_managers_put_the_reward_on_the_last_token(
    tmp_path: Path, tokenizer: Any, batch: Any, expected: list[float], name: str, manager: str
) -> None:
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.workers.reward_manager import get_reward_manager_cls

    function = get_custom_reward_fn(configured(tmp_path, name, manager))
    made = get_reward_manager_cls(manager)(tokenizer, num_examine=0, compute_score=function)
    rewards = made(batch)
    assert rewards[0, 2].item() == pytest.approx(expected[0])
    assert rewards[1, 1].item() == pytest.approx(expected[1])
    assert (rewards != 0).sum().item() == sum(value != 0 for value in expected)
