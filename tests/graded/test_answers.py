r"""Answers in completions: thoughts are dropped, and what stands in tags or ``\boxed{}`` is taken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded import RewardModel
from spicegraph_graded.rewards.answers import answer_of
from spicegraph_graded.rewards.trainers import caption_of, completion_of, compute_score, openrlhf_reward, trl_reward
from spicegraph_service.cli import main

ANSWERS = [
    ("A dog runs.", "A dog runs."),
    ("<think>a cat</think>A dog runs.", "A dog runs."),
    ("<think>a cat</think>\n\n<answer>\nA dog runs.\n</answer>", "A dog runs."),
    ("<THINK>a cat</Think> <ANSWER>A dog runs.</Answer>", "A dog runs."),
    ("<think>a <think>b</think> cat</think> A dog runs.", "A dog runs."),
    ("<think>one</think><think>two</think>A dog runs.", "A dog runs."),
    ("a cat, I think</think>A dog runs.", "A dog runs."),
    ("a </think> cat</think>A dog runs.", "A dog runs."),
    ("<think>a cat", ""),
    ("<think>a <think>b</think> A cat", ""),
    ("<think>a cat</think>", ""),
    ("<think><answer>A cat.</answer></think>", ""),
    ("<think><answer>A cat.</answer>", ""),
    ("<think>a cat</think><answer>A dog", ""),
    ("<answer></answer>", ""),
    ("A cat <answer>", ""),
    ("A cat.</answer>", ""),
    ("<answer>A cat.</answer> or <answer>A dog runs.</answer>", "A dog runs."),
    ("<answer>A dog runs.</answer> <answer>A cat", "A dog runs."),
    ("<answer><caption>A dog runs.</answer>", "A dog runs."),
    ("<answer>A dog runs.</caption></answer>", "A dog runs."),
    ("<answer>Here: <answer>A dog runs.</answer></answer>", "A dog runs."),
    ("<answer>Here: <caption>A dog runs.</caption> That is it.</answer>", "A dog runs."),
    ("<caption>A dog runs.</caption>", "A dog runs."),
    ("<reasoning>a cat</reasoning><caption>A dog runs.</caption>", "A dog runs."),
    (r"So it is \boxed{A dog runs.}", "A dog runs."),
    (r"\boxed{a cat} or \boxed{\text{A dog runs.}}", "A dog runs."),
    (r"<answer>\boxed{A {dog} runs.}</answer>", "A {dog} runs."),
    (r"<think>\boxed{a cat}</think> A dog runs.", "A dog runs."),
    (r"\boxed{a cat", ""),
    ("", ""),
]


@pytest.mark.parametrize(("completion", "answer"), ANSWERS, ids=[text for text, _ in ANSWERS])
def test_an_answer(completion: str, answer: str) -> None:
    assert answer_of(completion) == answer


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<answer>", "</answer>", "<CAPTION>", "</caption>", "a cat ", r"\boxed{", "}"]
        )
    )
)
def test_no_thought_is_an_answer(parts: list[str]) -> None:
    thought = "".join(part for part in parts if part != "</think>")
    assert answer_of(f"<think>{thought}") == ""
    assert "<" not in answer_of(f"<think>x</think>{''.join(parts)}<answer>a dog</answer>").replace("<think>", "")
    closed = "</think>" * (len(parts) + 1)  # also what began in the prompt
    assert answer_of(f"{''.join(parts)}{closed}<answer>a dog</answer>") == "a dog"


REFERENCES = {"1": ("A dog runs on the grass.", "A brown dog is running.")}
THOUGHT = "<think>A brown dog is running on the grass.</think>"
TAGGED = f"{THOUGHT}<answer>a brown dog runs</answer>"


@pytest.fixture(scope="module")
def model() -> RewardModel:
    return RewardModel("spice-g=1", REFERENCES)


@pytest.mark.model
def test_trainers_reward_the_answer(model: RewardModel) -> None:
    (plain,) = model.rewards(["1"], ["a brown dog runs"])
    assert plain > 0.5
    for tagged in (TAGGED, [{"role": "assistant", "content": TAGGED}]):
        assert trl_reward(model)(completions=[tagged, THOUGHT], image_id=["1", "1"]) == [plain, 0.0]
    kept = trl_reward(model, answer_tags=False)(completions=[THOUGHT], image_id=["1"])
    assert kept[0] > 0.5  # the thought itself
    truth = list(REFERENCES["1"])
    assert compute_score("captions", TAGGED, truth) == plain
    assert compute_score("captions", THOUGHT, truth) == 0.0
    assert compute_score("captions", THOUGHT, truth, answer_tags=False) == kept[0]


@pytest.mark.model
def test_openrlhf_rewards_the_answer(model: RewardModel) -> None:
    pytest.importorskip("torch")
    rewards = openrlhf_reward(model)([f"Describe. {THOUGHT}"], ["Describe."], ["1"])["rewards"]
    assert rewards.tolist() == [0.0]


TOKENS = (
    "A man rides a brown horse.<|im_end|>",
    "A man rides a brown horse. <eos>",
    "<s>A man rides a brown horse.</s>",
)


@pytest.mark.model
@pytest.mark.parametrize("text", TOKENS)
def test_special_tokens_cost_nothing_in_any_function(text: str) -> None:
    """They are stripped wherever a trainer's text comes in, so that a file and a server reward alike."""
    references = ["a man riding a horse", "a man on a brown horse"]
    plain = "A man rides a brown horse."
    model = RewardModel("spice=1", {"1": references})
    (expected,) = model.rewards(["1"], [plain])
    assert expected > 0.5
    assert model.rewards(["1"], [text]) == [expected]
    assert trl_reward(model)([text], image_id=["1"]) == [expected]
    assert compute_score("captions", text, references, reward="spice=1") == expected
    drafts = RewardModel("added-right=1", {"1": references})
    assert drafts.rewards(["1"], [text], ["A man."]) == drafts.rewards(["1"], [plain], ["A man.<|im_end|>"])


def test_the_text_of_a_completion_is_as_it_was() -> None:
    assert caption_of(TAGGED) == TAGGED
    assert completion_of(f"Describe. {TAGGED}<|im_end|>", "Describe.") == TAGGED


@pytest.mark.model
def test_the_command_takes_answers(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": number, "candidate": text, "references": REFERENCES["1"]}
        for number, text in enumerate((TAGGED, THOUGHT, "a brown dog runs"))
    ]
    (tmp_path / "said.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = ["reward", "said.jsonl", "--terms", "spice-g=1", "--metrics", "rouge", "-o", "out.json"]
    assert main(command) == 2
    assert "2 of 3 candidates contain what models leave behind" in capsys.readouterr().err
    assert main([*command, "--answer-tags"]) == 0
    assert "1 empty candidate scored as zero" in capsys.readouterr().err
    written = json.loads((tmp_path / "out.json").read_text())
    first, second, third = (row["scores"]["Reward"] for row in written["items"])
    assert first == third > 0.5
    assert second == 0.0
    assert written["signature"]["answer_tags"] == "answers alone"
