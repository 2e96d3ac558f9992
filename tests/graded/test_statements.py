"""Statements without support: which parts of a caption they are, and that none of them raises a reward."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded import RewardModel
from spicegraph_graded.rewards.statements import without_statements

REFERENCES = ("A dog lies on a red couch.", "a brown dog sleeps on the sofa next to a pillow")
SOFT = "spice-g=1,fluency=.1,word-order=-.05,generic=-.25"
HONEST = ("a dog on a couch", "a brown dog is sleeping on a red sofa", "two dogs near a pillow", "a puppy on a couch")
STATEMENTS = (
    ("", " on top of it"),
    ("", " with a clock in the middle of the day"),
    ("", ", which looks beautiful"),
    ("a close up of ", ""),
    ("it looks like ", ", possibly at a station"),
)


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        ("a dog on a couch", []),
        ("a dog on a couch on top of it", ["a dog on a couch"]),
        ("a dog with a pillow on in the background", ["a dog with a pillow on"]),
        ("a photo of a dog on a couch", ["a dog on a couch"]),
        ("it looks like a dog, outside", ["it looks like a dog", "like a dog, outside", "like a dog", "a dog, outside", "a dog"]),
        ("dogs sleeping", []),  # forms of words of the references
        ("a train at a station", []),  # nothing remains
        ("", []),
    ],
)  # fmt: skip
def test_what_remains_of_a_caption(text: str, remaining: list[str]) -> None:
    assert [text[start:end] for start, end in without_statements(text, REFERENCES)] == remaining


WORDS = st.lists(
    st.sampled_from(
        ["a", "the", "dog", "couch", "clock", "photo", "of", "on", ",", "it", "looks", "train", "beautiful", "2", "ü"]
    ),
    max_size=30,
)


@given(WORDS.map(" ".join))
def test_parts_are_of_the_caption_and_bounded_in_number(text: str) -> None:
    parts = without_statements(text, REFERENCES)
    assert len(parts) <= 48
    assert len(set(parts)) == len(parts)
    assert all(0 <= start < end <= len(text) and end - start < len(text) for start, end in parts)


@pytest.mark.model
def test_no_statement_raises_a_reward() -> None:
    texts = [*HONEST, *(before + text + behind for before, behind in STATEMENTS for text in HONEST)]
    soft, full = (
        RewardModel(reward, {7: REFERENCES}).rewards([7] * len(texts), texts)
        for reward in (SOFT, SOFT + ",statement=-1")
    )
    honest = full[: len(HONEST)]
    assert honest == soft[: len(HONEST)]  # a caption without statements keeps its reward
    for number, reward in enumerate(full[len(HONEST) :]):
        assert reward <= honest[number % len(HONEST)] + 1e-12, texts[len(HONEST) + number]
    assert any(kept < free - 1e-6 for kept, free in zip(full, soft, strict=True))


@pytest.mark.model
def test_what_statements_add_is_credited_to_their_words() -> None:
    model = RewardModel("guarded", {7: REFERENCES})
    texts = [before + text + behind for text in HONEST for before, behind in STATEMENTS]
    credits_ = model.credit([7] * len(texts), texts)
    rewards = model.rewards([7] * len(texts), texts)
    parts = [part for found in credits_ for part in found.parts if part.kind == "statement"]
    assert parts
    for found, reward in zip(credits_, rewards, strict=True):
        assert found.score == pytest.approx(reward)
        assert sum(word.credit for word in found.words) == pytest.approx(reward)
    assert all(part.credit < 0 and {"dog", "couch", "pillow"}.isdisjoint(part.words) for part in parts)


def test_a_reward_of_statements_alone_is_0() -> None:
    assert RewardModel("statement=-1", {7: REFERENCES}).rewards([7], ["a dog on a couch on top of it"]) == [0.0]
    signature = RewardModel("statement=-1", {7: REFERENCES}).signature()
    assert signature["statement"] == "1, likeness 0.5"
