"""What stands between two things is named as the caption says it, or as people write what means the same."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from spicegraph_parser import CaptionPipeline, load_pipeline
from spicegraph_scenes.relations import inner_nouns, means_same, preposition

_LINES: Final = Path(__file__).with_name("prepositions.txt").read_text(encoding="utf-8").splitlines()
_NAMES: Final = {said: names.split(" | ") for said, _, names in (line.partition(" = ") for line in _LINES)}


@pytest.fixture(scope="module")
def scenes() -> CaptionPipeline:
    return load_pipeline("scene")


@pytest.mark.model
@pytest.mark.parametrize("said", _NAMES)
def test_both_directions_have_one_relation(scenes: CaptionPipeline, said: str) -> None:
    """ "a dog p a box" and "a box p a dog": one relation each, from the first to the second, with an expected name."""
    for ends in (("dog", "box"), ("box", "dog")):
        [caption] = scenes.captions([f"a {ends[0]} {said} a {ends[1]}"])
        [relation] = [words for words in caption.tuples if len(words) == 3]
        assert relation[:2] == ends
        assert relation[2] in _NAMES[said]
        assert {words for words in caption.tuples if len(words) == 1} == {("dog",), ("box",)}


def test_there_are_enough() -> None:
    assert len(_NAMES) >= 120


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("on the other side of", "on other side of"),
        ("right next to", "next to"),
        ("at the very end of its", "at very end of"),
        ("out of", "out of"),
        ("on top", "on top"),
        ("between", "between"),
        ("sits on", None),
        ("on the", None),
        ("of side", None),
        ("", None),
    ],
)
def test_words_are_a_preposition_or_not(said: str, wanted: str | None) -> None:
    words = said.removesuffix(" its").split()
    found = preposition(words, 0, len(words))
    assert (found.name if found else None) == wanted


def test_nouns_inside_of_prepositions() -> None:
    assert inner_nouns(["the", "top", "of", "a", "box", "at", "the", "top", "of", "the", "stairs"]) == {7}
    assert inner_nouns(["a", "man", "at", "the", "back"]) == set()


@pytest.mark.parametrize(
    ("name", "said", "wanted"),
    [
        ("under", "beneath", True),
        ("in front of", "opposite", False),
        ("from", "far from", False),
        ("wear", "in", True),
        ("lay on", "down on", True),
        ("on side of", "on the other side of".replace(" the", ""), False),
    ],
)
def test_what_means_the_same(name: str, said: str, wanted: bool) -> None:
    assert means_same(name, said) == wanted
