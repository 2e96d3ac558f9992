"""A reward in TRL's GRPOTrainer: a model of 8,000 numbers, on the processor, for two steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

trl = pytest.importorskip("trl")

WORDS = ["a", "dog", "cat", "man", "runs", "on", "grass", "the", "brown", "horse", "<pad>", "<eos>", "caption", ":"]


def test_grpo_trains_with_the_reward(tmp_path: Path) -> None:
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    from spicegraph_graded import RewardModel
    from spicegraph_graded.rewards.trainers import trl_reward

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>", padding_side="left"
    )
    network = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(WORDS),
            n_positions=32,
            n_embd=16,
            n_layer=1,
            n_head=2,
            eos_token_id=11,
            pad_token_id=10,
            bos_token_id=11,
        )
    )
    reward = RewardModel("spice=1,cider=.1,length=-.01", {1: ["a dog runs on grass"], 2: ["a man on a horse"]})
    calls: list[list[float]] = []
    function = trl_reward(reward)

    def watched(**columns: object) -> list[float]:
        calls.append(function(**columns))  # type: ignore[arg-type]
        return calls[-1]

    watched.__name__ = function.__name__
    trainer = trl.GRPOTrainer(
        model=network,
        reward_funcs=watched,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": ["caption :"] * 4, "image_id": [1, 2, 1, 2]}),
        args=trl.GRPOConfig(
            output_dir=str(tmp_path),
            max_steps=2,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=6,
            use_cpu=True,
            bf16=False,
            report_to=[],
            logging_steps=1,
            save_strategy="no",
        ),
    )
    trainer.train()
    logged = [row for row in trainer.state.log_history if "rewards/spicegraph/mean" in row]
    assert len(calls) >= 2
    assert len(calls[0]) == 4
    assert logged[0]["rewards/spicegraph/mean"] == pytest.approx(sum(calls[0]) / 4, abs=1e-4)
