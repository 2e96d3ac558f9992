"""Colours and relations of descriptions, on hand-written tags: what the network says is kept, what it lacks is added."""

from __future__ import annotations

import pytest
from tests.support.scenes import sentence

from spicegraph_parser.scenes import attachment, wording
from spicegraph_parser.scenes.network import Labels


def _attributes(words: str, tags: str, objects: str, given: str) -> tuple[list[str], Labels]:
    """Return words, and labels with objects and attributes as "object=attribute", by words that a sentence has once."""
    own = words.split()
    pairs = [(own.index(noun), own.index(word)) for noun, _, word in (pair.partition("=") for pair in given.split())]
    return own, Labels(tags.split(), [own.index(noun) for noun in objects.split()], [], pairs, [])


def _said(text: str, tags: str, objects: str, attributes: str = "") -> list[str]:
    words, labels = _attributes(text, tags, objects, attributes)
    found = wording.colours_apart(sentence(words, tags, labels)).labels.attributes
    return [f"{words[one]}={words[other]}" for one, other in found]


@pytest.mark.parametrize(
    ("text", "tags", "objects", "wanted"),
    [
        ("sheep in various shades of brown and white graze", "NNS IN JJ NNS IN JJ CC JJ VBP", "sheep", "brown white"),
        ("houses , painted in a shade of light beige", "NNS , VBN IN DT NN IN JJ JJ", "houses", "beige"),
        ("the sky is a clear blue , with clouds", "DT NN VBZ DT JJ JJ , IN NNS", "sky clouds", "blue"),
        ("the sky is a canvas of blue", "DT NN VBZ DT NN IN JJ", "sky", "blue"),
        ("rocks exhibit a vibrant red hue", "NNS VBP DT JJ JJ NN", "rocks", "vibrant red"),
        ("we see the red hues of the sky", "PRP VBP DT JJ NNS IN DT NN", "sky", "red"),
        ("the tower 's white facade gleams", "DT NN POS JJ NN VBZ", "tower facade", "white"),
    ],
)
def test_colours_said_apart(text: str, tags: str, objects: str, wanted: str) -> None:
    assert _said(text, tags, objects) == [f"{objects.split(maxsplit=1)[0]}={colour}" for colour in wanted.split()]


def test_its_structure_gives_its_colour_to_what_has_it() -> None:
    """In place of the structure; "its" stands for a thing of the sentence or of the one before."""
    text, tags = "a tower stands tall , its white structure old", "DT NN VBZ JJ , PRP$ JJ NN JJ"
    given = "tower=tall structure=white structure=old"
    assert _said(text, tags, "tower structure", given) == ["tower=tall", "structure=old", "its=white"]


@pytest.mark.parametrize(
    ("text", "tags", "objects", "attributes"),
    [
        ("a red car", "DT JJ NN", "car", "car=red"),
        ("it is a bright red sign", "PRP VBZ DT JJ JJ NN", "sign", "sign=bright sign=red"),
        ("in shades of green", "IN NNS IN JJ", "", ""),
        ("a field with cows of various shades of brown", "DT NN IN NNS IN JJ NNS IN JJ", "field", ""),
        ("a wall with a surface of white paint", "DT NN IN DT NN IN JJ NN", "wall", ""),
        ("of white", "IN JJ", "", ""),
        ("a dog", "DT NN", "dog", ""),
    ],
)
def test_colours_that_stay(text: str, tags: str, objects: str, attributes: str) -> None:
    """Those of their own noun, and those of a noun that is no object."""
    assert _said(text, tags, objects, attributes) == attributes.split()


def _stated(text: str, tags: str, nouns: list[int], known: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return the relations that a sentence states beside those known."""
    own = sentence(text, tags, Labels([], nouns, [], [], known))
    return wording.what_has_it(own).labels.relations[len(known) :]


@pytest.mark.parametrize(
    ("text", "tags", "wanted"),
    [
        ("walls are adorned with white tiles", "NNS VBP VBN IN JJ NNS", "tiles adorn walls"),
        ("a street lined with trees", "DT NN VBN IN NNS", "trees line street"),
        ("a bus is fully equipped with a rack", "DT NN VBZ RB VBN IN DT NN", "bus have rack"),
        ("the man on a bed , sporting a red cap", "DT NN IN DT NN , VBG DT JJ NN", "man wear cap"),
        ("the man sees a wall which features a door", "DT NN VBZ DT NN WDT VBZ DT NN", "wall have door"),
        ("the bowl , which is topped with fruit", "DT NN , WDT VBZ VBD IN NN", "bowl have fruit"),
        ("a market teeming with shoppers", "DT NN VBG IN NNS", "market have shoppers"),
        ("a man plays with a dog", "DT NN VBZ IN DT NN", ""),
        ("a red cap", "DT JJ NN", ""),
    ],
)
def test_stated_relations(text: str, tags: str, wanted: str) -> None:
    """Between the first object, or the one before the verb, and one that has no relation."""
    words = text.split()
    nouns = [at for at, tag in enumerate(tags.split()) if tag.startswith("NN") and words[at] not in {"heart", "left"}]
    rows = _stated(text, tags, nouns, [])
    assert [f"{words[one]} {name} {words[other]}" for one, other, name in rows] == ([wanted] if wanted else [])
    assert not _stated(text, tags, nouns, [(at, 0, "known") for at in nouns])


@pytest.mark.parametrize(
    ("text", "tags", "known", "wanted"),
    [
        (
            "a man holds a cup , and a plate on a table",
            "DT NN VBZ DT NN , CC DT NN IN DT NN",
            (1, 4, "hold"),
            [(1, 8, "hold")],
        ),
        ("on a shelf stand cups and plates", "IN DT NN VBP NNS CC NNS", (4, 2, "stand on"), [(6, 2, "stand on")]),
        ("cups and plates on a shelf", "NNS CC NNS IN DT NN", (0, 5, "on"), []),
    ],
)
def test_what_a_list_shares(
    text: str, tags: str, known: tuple[int, int, str], wanted: list[tuple[int, int, str]]
) -> None:
    """The second of two has the relations of the first to what stands before both."""
    nouns = [at for at, tag in enumerate(tags.split()) if tag.startswith("NN")]
    assert _stated(text, tags, nouns, [known]) == wanted


@pytest.mark.parametrize(
    ("text", "tags", "objects", "given", "wanted"),
    [
        ("a white toilet and sink", "DT JJ NN CC NN", "toilet sink", "toilet=white", "sink=white"),
        ("dark hair and sunglasses", "JJ NN CC NNS", "hair sunglasses", "hair=dark", ""),
        ("a white toilet and a sink", "DT JJ NN CC DT NN", "toilet sink", "toilet=white", ""),
        ("green trees and red shrubs", "JJ NNS CC JJ NNS", "trees shrubs", "trees=green shrubs=red", ""),
    ],
)
def test_attributes_said_apart(text: str, tags: str, objects: str, given: str, wanted: str) -> None:
    """The second of a list has the adjectives of the first."""
    words, labels = _attributes(text, tags, objects, given)
    own = sentence(words, tags, labels)
    rows = wording.shared_adjectives(own).labels.attributes[len(labels.attributes) :]
    assert [f"{words[noun]}={words[at]}" for noun, at in rows] == wanted.split()


def test_its_look_is_an_attribute_of_the_thing() -> None:
    """ "Its smooth texture" is no texture; "its texture" is one, and so is "a smooth texture"."""
    for words, tags in (("its texture", "PRP$ NN"), ("its cup has a smooth texture", "PRP$ NN VBZ DT JJ NN")):
        own = sentence(words, tags, Labels([], [1], [], [], []))
        assert wording.looks_of_owners(own) == own
    labels = Labels([], [2, 5], [], [(2, 1)], [(2, 5, "cover")])
    own = sentence("its smooth surface covers a cake", "PRP$ JJ NN VBZ DT NN", labels)
    plain = wording.looks_of_owners(own).labels
    assert (plain.objects, plain.attributes, plain.relations) == ([5], [(0, 1)], [])


def test_what_is_bright_blue_is_bright() -> None:
    """Of a description's sentence; other shades stay parts of the colour's name."""
    text, tags = "a bright blue door and a light red sign", "DT JJ JJ NN CC DT JJ JJ NN"
    labels = Labels(tags.split(), [3, 8], [(2, 1), (7, 6)], [(3, 2), (8, 7)], [])
    plain = wording.positions_in_names(sentence(text, tags, labels)).labels
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
    kept = attachment.of_others(own).labels.attributes
    assert [f"{words[noun]}={words[at]}" for noun, at in kept] == wanted.split()
