"""Texts as language models write them: lists, headings, bold words, lost line ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import LimitError
from spicegraph_parser.caption_pipeline.analyser import read_tokens
from spicegraph_parser.spice.parse import MAX_CAPTION_LENGTH, normalise
from spicegraph_scenes.passages import read_text


def _sentences(text: str) -> list[str]:
    tokens = read_text(text, 0)
    forms = iter(tokens.forms)
    return [" ".join(next(forms) for _ in range(length)) for length in tokens.lengths]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("- Two dogs\n- a **blue** cat", ["Two dogs", "a blue cat"]),
        ("1. A tree\n2) A *red* car.", ["A tree", "A red car ."]),
        ("### The Room\nA lamp stands\non a table.", ["The Room", "A lamp stands on a table ."]),
        ("A lamp\n\na table", ["A lamp", "a table"]),
        ("> a `quoted` sign\n• __bold__ letters", ["a quoted sign", "bold letters"]),
        (
            "It casts a glow over the scene.The moon is full.",
            ["It casts a glow over the scene .", "The moon is full ."],
        ),
        ("The sign says 'Stop'.A man waits", ["The sign says ' Stop ' .", "A man waits"]),
        ("A sign of www.GloverBryant.com", ["A sign of www.GloverBryant.com"]),
        ("A lamp stands\non a table", ["A lamp stands on a table"]),
        ("a man , a U.S.A. flag", ["a man , a U.S.A. flag"]),
        ("***", ["***"]),
        ("- \n\n- ", ["- -"]),
    ],
)
def test_passages(text: str, wanted: list[str]) -> None:
    assert _sentences(text) == wanted


def test_words_know_where_they_stand() -> None:
    text = "## Scene\n\n- A **red** car.It shines"
    tokens = read_text(text, 0)
    assert [text[start:end] for start, end in tokens.spans] == ["Scene", "A", "red", "car", ".", "It", "shines"]


@given(st.text(alphabet="abc ,.'-()ABC 12", min_size=1, max_size=60).filter(lambda text: bool(text.strip())))
def test_other_texts_are_read_as_they_stand(text: str) -> None:
    plain = text.replace(".", ". ")
    assert read_text(plain, 0) == read_tokens(plain, normalise(plain))


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    tokens = read_text(text, 0)
    assert len(tokens.ptb) == len(tokens.forms) == sum(tokens.lengths)


def test_a_text_that_is_too_long_is_named() -> None:
    with pytest.raises(LimitError, match="caption 7 has"):
        read_text("*" * (MAX_CAPTION_LENGTH + 1), 7)
