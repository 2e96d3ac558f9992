"""What graded matching reads beside SPICE's facts: loose words, number, and notes. The parses are written by hand."""

from __future__ import annotations

import pytest

from spicegraph_parser.spice.extraction import ParsedCaption, extract
from spicegraph_parser.spice.loose import (
    DENIED,
    IMPLIED,
    LEMMA,
    LOOSE,
    NO_OBJECT,
    PLURAL,
    QUANTITY,
    STANDS_FOR,
    loose_facts,
    without_loose,
)
from spicegraph_parser.spice.parse import Caption, Edge, Parse, Word
from spicegraph_parser.spice.rules import Fact


def caption(*rows: str) -> Caption:
    """Return a caption of one sentence from rows such as ``dogs NNS dog 3 nmod``: form, tag, lemma, head, label."""
    columns = [row.split() for row in rows]
    words = [Word(form, tag, lemma) for form, tag, lemma, _, _ in columns]
    edges = [Edge(label, int(head), place) for place, (*_, head, label) in enumerate(columns, 1)]
    return Caption(" ".join(word.form for word in words), (Parse(words, edges),))


def beside(found: Caption) -> set[tuple[str, ...]]:
    """Return the rule and the words of each fact beside SPICE's."""
    return {(fact.rule, *fact.words) for fact in loose_facts(found, extract(found).facts)}


PAIR = caption("a DT a 2 det", "pair NN pair 0 root", "of IN of 4 case", "dogs NNS dog 2 nmod")
NO_HAT = caption("a DT a 2 det", "man NN man 0 root", "with IN with 5 case", "no DT no 5 neg", "hat NN hat 2 nmod")
WITHOUT = caption(
    "man NN man 0 root",
    "without IN without 4 case",
    "a DT a 4 det",
    "hat NN hat 1 nmod",
    "or CC or 4 cc",
    "ties NNS tie 4 conj",
)
NOT_WEARING = caption(
    "man NN man 4 nsubj", "is VBZ be 4 aux", "not RB not 4 neg", "wearing VBG wear 0 root", "hats NNS hat 4 dobj"
)
NOT_ABOVE = caption("man NN man 2 nsubj", "not RB not 0 root", "wearing VBG wear 2 xcomp", "hats NNS hat 3 dobj")
NOT_STANDING = caption("man NN man 4 nsubj", "is VBZ be 4 aux", "not RB not 4 neg", "standing VBG stand 0 root")
NOT_RED = caption("bus NN bus 4 nsubj", "is VBZ be 4 cop", "not RB not 4 neg", "red JJ red 0 root")
NO_PARKING = caption("a DT a 4 det", "no DT no 4 neg", "parking NN parking 4 compound", "sign NN sign 0 root")
IN_FRONT = caption(
    "dogs NNS dog 0 root", "in IN in 5 case", "front NN front 2 mwe", "of IN of 2 mwe", "bus NN bus 1 nmod"
)


@pytest.mark.parametrize(
    ("found", "facts"),
    [
        pytest.param(
            PAIR,
            {(PLURAL, "dog", "plural"), (QUANTITY, "dog", "pair"), (STANDS_FOR, "pair", "dog")},
            id="a quantity is of something, and stands for it",
        ),
        pytest.param(NO_HAT, {(DENIED, "hat", "no")}, id="no"),
        pytest.param(WITHOUT, {(DENIED, "hat", "without"), (DENIED, "tie", "without")}, id="without, also behind or"),
        pytest.param(NOT_WEARING, {(DENIED, "hat", "not")}, id="not denies the objects of a verb"),
        pytest.param(NOT_ABOVE, {(DENIED, "hat", "not"), (LOOSE, "man", "wear")}, id="not above a verb, too"),
        pytest.param(NOT_STANDING, {(DENIED, "stand", "not")}, id="not denies a verb without objects"),
        pytest.param(NOT_RED, {(DENIED, "red", "not")}, id="not denies an adjective"),
        pytest.param(NO_PARKING, {(LOOSE, "sign", "no")}, id="what has an article is there"),
        pytest.param(
            IN_FRONT, {(PLURAL, "dog", "plural")}, id="a parse whose prepositions contain no noun has no note"
        ),
    ],
)
def test_what_a_caption_says_beside_the_facts_of_spice(found: Caption, facts: set[tuple[str, ...]]) -> None:
    assert beside(found) - {(NO_OBJECT, "front")} == facts


def test_a_noun_inside_of_a_preposition_is_no_object() -> None:
    facts = extract(IN_FRONT).facts
    assert ("front",) in [fact.words for fact in facts]
    assert (NO_OBJECT, "front") in beside(IN_FRONT)


@pytest.mark.parametrize("found", [PAIR, NO_HAT, WITHOUT, NOT_WEARING, NOT_STANDING, NOT_RED, NO_PARKING, IN_FRONT])
def test_spice_sees_none_of_it(found: Caption) -> None:
    parsed = extract(found)
    assert tuple(without_loose(parsed.every_fact)) == parsed.facts
    assert len(parsed.every_fact) > len(parsed.facts)


def scene(rows: str, *facts: Fact, apart: tuple[Fact, ...] = ()) -> ParsedCaption:
    """Return a caption of one sentence without edges, from rows such as ``dogs NNS dog``, with its scene graph."""
    words = [Word(*row.split()) for row in rows.split(", ")]
    return ParsedCaption(" ".join(word.form for word in words), (Parse(words, ()),), facts, apart)


def fact(words: str, *tokens: tuple[int, ...]) -> Fact:
    """Return a fact of a scene graph; its words stand behind one another, joined by commas."""
    return Fact(tuple(words.split(",")), "scene", tokens)


TUGGING = (
    "two CD two, dogs NNS dog, are VBP be, tugging VBG tug, a DT a, red JJ red, toy NN toy, barking VBG bark, "
    "near IN near, trees NNS tree"
)
DOGS, TOY, TREES = (1,), (6,), (9,)


@pytest.mark.parametrize(
    ("found", "beside_it"),
    [
        pytest.param(
            scene(
                TUGGING, fact("dogs,toy,get", DOGS, TOY, ()), fact("dogs,two", DOGS, (0,)), fact("toy,red", TOY, (5,))
            ),
            [
                ("dogs", "toy", "tug", LOOSE),
                ("toy", "bark", LOOSE),
                ("tree", LOOSE),
                ("dogs", "plural", PLURAL),
                ("dogs", "toy", "get", IMPLIED),
                ("dogs", "dog", LEMMA),
            ],
            id="a verb is the relation that the graph only guesses, or said of the noun before it",
        ),
        pytest.param(
            scene(TUGGING, fact("dogs,toy,tug", DOGS, TOY, (3,)), fact("toy,trees,bark near", TOY, TREES, (7, 8))),
            [
                ("dogs", "two", LOOSE),
                ("toy", "red", LOOSE),
                ("dogs", "plural", PLURAL),
                ("trees", "plural", PLURAL),
                ("dogs", "dog", LEMMA),
                ("trees", "tree", LEMMA),
            ],
            id="stated relations stay; numbers and adjectives are said of the noun behind them",
        ),
        pytest.param(
            scene(TUGGING, fact("toy,trees,hang near", TOY, TREES, (8,)), fact("dogs", DOGS)),
            [
                ("toy", "trees", "bark near", LOOSE),
                ("dogs", "two", LOOSE),
                ("dogs", "tug", LOOSE),
                ("toy", "red", LOOSE),
                ("trees", "plural", PLURAL),
                ("dogs", "plural", PLURAL),
                ("toy", "trees", "hang near", IMPLIED),
                ("trees", "tree", LEMMA),
                ("dogs", "dog", LEMMA),
            ],
            id="a guessed verb in front of a stated preposition is replaced alone",
        ),
        pytest.param(
            scene("run VB run, fast RB fast"), [("run", LOOSE)], id="a word of a sentence without things is one"
        ),
        pytest.param(
            scene("!!! NN !!!, dog NN dog, *** VB ***, \u72d7 NN \u72d7", fact("dog", (1,))),
            [("\u72d7", LOOSE)],
            id="signs are not words",
        ),
        pytest.param(
            scene(
                "man NN man, has VBZ have, no DT no, hats NNS hat",
                fact("man", (0,)),
                apart=(Fact(("hats",), DENIED, ((3,),)),),
            ),
            [("hats", LOOSE), ("hats", "no", DENIED)],
            id="what is denied is there with its denial",
        ),
    ],
)
def test_what_a_caption_says_beside_its_scene_graph(found: ParsedCaption, beside_it: list[tuple[str, ...]]) -> None:
    facts = found.every_fact[len(found.facts) :]
    assert [(*one.words, one.rule) for one in facts] == beside_it
    assert tuple(without_loose(found.every_fact)) == found.facts
