"""What the scene parser's rules read off words and tags."""

import pytest

from spicegraph_scenes.denial import hedged
from spicegraph_scenes.passages import read_text
from spicegraph_scenes.phrases import Phrase, phrases
from spicegraph_scenes.relations import (
    forms_of,
    inner_nouns,
    means_same,
    own_name,
    preposition,
    relation_tokens,
    stems,
    verb_base,
)
from spicegraph_scenes.things import described, is_worn
from spicegraph_scenes.values import values_of
from spicegraph_scenes.words import is_summary


@pytest.mark.parametrize(
    ("tags", "values_at", "expected"),
    [
        ("DT JJ NN IN DT NN", (), [Phrase(0, 2), Phrase(4, 5)]),
        ("DT JJ VBZ VBN", (), [Phrase(0, 1)]),  # "the y-axis is labeled"
        ("DT JJ CC JJ NN", (), [Phrase(3, 4)]),  # "the red and white car"
        ("IN DT VBN VBN NN", (2, 3), [Phrase(1, 4)]),  # "with a 10 mm bit"
        ("NN VBN VBN IN NN", (1, 2), [Phrase(0, 0), Phrase(4, 4)]),
    ],
)
def test_phrases(tags: str, values_at: tuple[int, ...], expected: list[Phrase]) -> None:
    assert phrases(tags.split(), (), values_at) == expected


def test_garments_are_worn_by_those_who_may_wear_them() -> None:
    assert is_worn("old men", "red hats")
    assert not is_worn("table", "cap")
    assert described("vase", "roses", "fill with") == ("have", False)
    assert described("wall", "tiles", "adorn with") == ("adorn", True)


def test_marks_of_markdown_are_left_out() -> None:
    tokens = read_text("- a **red** car\n- a dog", 0)
    assert (tokens.forms, tokens.lengths) == (["a", "red", "car", "a", "dog"], [3, 2])


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("on the other side of", 5, "on other side of"),
        ("at foot of", 3, "at foot of"),
        ("far from", 2, "far from"),
        ("sits on", 2, None),
    ],
)
def test_prepositions_are_one_name(text: str, end: int, expected: str | None) -> None:
    words_of = preposition(text.split(), 0, end)
    assert (words_of.name if words_of else None) == expected


def test_nouns_inside_of_prepositions() -> None:
    assert inner_nouns(["a", "cup", "on", "the", "top", "of", "a", "box"]) == {4}


@pytest.mark.parametrize(
    ("name", "stated", "expected"),
    [("sit under", "beneath", True), ("in end of", "at foot of", False), ("wear", "in", True)],
)
def test_prepositions_of_one_meaning(name: str, stated: str, *, expected: bool) -> None:
    assert means_same(name, stated) == expected


def test_forms_of_verbs() -> None:
    assert stems("Sitting") == {"sit", "sitting"}
    assert (verb_base("chased", "VBD"), verb_base("lying", "VBG")) == ("chase", "lay")


def test_the_captions_own_name_of_a_relation() -> None:
    runs = ["A", "dog", "runs", "quickly", "after", "a", "cat"], ["DT", "NN", "VBZ", "RB", "IN", "DT", "NN"]
    assert own_name(*runs, 2, 6) == "run after"
    chased = ["A", "cat", "chased", "by", "a", "dog"], ["DT", "NN", "VBN", "IN", "DT", "NN"]
    assert own_name(*chased, 2, 5, turned=True) == "chase"


def test_words_that_state_a_relation() -> None:
    forms = map(forms_of, ["A", "cat", "ate", "on", "the", "mat"], ["DT", "NN", "VBD", "IN", "DT", "NN"])
    assert relation_tokens("eat on", (1,), (5,), list(forms)) == (2, 3)


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("a button labeled OK", ['"ok"']),
        ("a 1.7 L kettle , size 10 shoes", ["1.7 l", "size 10"]),
        ("a score of 3 to 1", ["3 to 1"]),
        ("page 3 to the left", ["3"]),
    ],
)
def test_values(caption: str, expected: list[str]) -> None:
    assert [value.name for value in values_of(caption.split())] == expected


def test_what_a_sentence_hedges_and_sums_up() -> None:
    words = ["There", "are", "no", "people", "on", "the", "street", ",", "suggesting", "an", "early", "hour"]
    found = hedged(words, ["EX", "VBP", "DT", "NNS", "IN", "DT", "NN", ",", "VBG", "DT", "JJ", "NN"])
    assert [words[at] for at in found] == ["an", "early", "hour"]
    assert is_summary(["in", "summary", ",", "it", "is", "a", "street"])
