"""Attributes of descriptions, on hand-written tags: what the network says is kept, what it lacks is added."""

from __future__ import annotations

import pytest
from tests.support.scenes import sentence

from spicegraph_scenes import clauses, phrases
from spicegraph_scenes.network import Labels


def _attributes(words: str, tags: str, objects: str, given: str) -> tuple[list[str], Labels]:
    """Return words, and labels with objects and attributes as "object=attribute", by words that a sentence has once."""
    own = words.split()
    pairs = [(own.index(noun), own.index(word)) for noun, _, word in (pair.partition("=") for pair in given.split())]
    return own, Labels(tags.split(), [own.index(noun) for noun in objects.split()], [], pairs, [])


@pytest.mark.parametrize(
    ("text", "tags", "objects", "given", "wanted"),
    [
        ("a white toilet and sink", "DT JJ NN CC NN", "toilet sink", "toilet=white", "sink=white"),
        ("a white toilet and a sink", "DT JJ NN CC DT NN", "toilet sink", "toilet=white", ""),
        ("green trees and red shrubs", "JJ NNS CC JJ NNS", "trees shrubs", "trees=green shrubs=red", ""),
    ],
)
def test_attributes_said_apart(text: str, tags: str, objects: str, given: str, wanted: str) -> None:
    """The second of a list has the adjectives of the first."""
    words, labels = _attributes(text, tags, objects, given)
    own = sentence(words, tags, labels)
    rows = phrases.shared_adjectives(own).labels.attributes[len(labels.attributes) :]
    assert [f"{words[noun]}={words[at]}" for noun, at in rows] == wanted.split()


def test_what_is_bright_blue_is_bright() -> None:
    """Of a description's sentence; other shades stay parts of the colour's name."""
    text, tags = "a bright blue door and a light red sign", "DT JJ JJ NN CC DT JJ JJ NN"
    labels = Labels(tags.split(), [3, 8], [(2, 1), (7, 6)], [(3, 2), (8, 7)], [])
    plain = phrases.apart_from_names(sentence(text, tags, labels, is_alone=False)).labels
    assert (plain.parts, plain.attributes) == ([(7, 6)], [(3, 2), (8, 7), (3, 1)])


@pytest.mark.parametrize(
    ("text", "tags", "objects", "given", "wanted"),
    [
        ("two levels of windows", "CD NNS IN NNS", "windows", "windows=two", ""),
        ("part of its neck", "NN IN PRP$ NN", "neck", "neck=part", ""),
        ("pieces of cake", "NNS IN NN", "cake", "cake=pieces", "cake=pieces"),
        ("both cows have black hooves", "DT NNS VBP JJ NNS", "cows hooves", "cows=both hooves=both", "cows=both"),
    ],
)
def test_attributes_stay_with_their_nouns(text: str, tags: str, objects: str, given: str, wanted: str) -> None:
    """In a description's clauses; numbers and portions before "of" are not said of what stands behind it."""
    words, labels = _attributes(text, tags, objects, given)
    own = sentence(words, tags, labels, is_alone=False)
    kept = clauses.of_others(own).labels.attributes
    assert [f"{words[noun]}={words[at]}" for noun, at in kept] == wanted.split()
