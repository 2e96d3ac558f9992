"""Scene graphs: of sentences with given labels, of descriptions with given sentences, and of captions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from spicegraph_graded.spice_g.facts import read_caption
from spicegraph_parser import CaptionPipeline, DataError, load_pipeline, merge
from spicegraph_parser.caption_pipeline.encoder import Vocabulary
from spicegraph_parser.export import caption_dict, dsg_dict, thing_graph, visual_genome_dict
from spicegraph_parser.spice.extraction import ParsedCaption
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.loose import DENIED, LOOSE, OWNER_RULE, SAID_RULE, SCENE_RULE, WORD_RULE, drawn
from spicegraph_scenes import SCENE_WEIGHTS
from spicegraph_scenes.denial import Scope
from spicegraph_scenes.facts import facts_of
from spicegraph_scenes.network import Labels, Names, SceneNetwork, Stated
from spicegraph_scenes.parser import load_network
from spicegraph_scenes.passes import run
from spicegraph_scenes.relations import own_name, stems
from spicegraph_scenes.sentence import Link, Node, Property, Sentence, SentenceGraph, sentence_graph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_UNSEEN: Final = frozenset({"sense", "calm"})
_ABSTRACT: Final = _UNSEEN | {"side"}


def _names(*, objects: dict[str, str] | None = None, attributes: dict[str, str] | None = None) -> Names:
    return Names(
        Vocabulary((), (), ()), (), frozenset(), objects or {}, attributes or {}, _ABSTRACT, _UNSEEN, known=frozenset()
    )


def _sentence(text: str, tags: str, labels: Labels, names: Names | None = None, *scopes: Scope) -> SentenceGraph:
    forms = text.split()
    return _graph(labels._replace(tags=tags.split()), forms, names or _names(), scopes=scopes)


def _graph(
    labels: Labels, forms: Sequence[str], names: Names, *, is_alone: bool = False, scopes: Sequence[Scope] = ()
) -> SentenceGraph:
    words = [form.lower() for form in forms]
    return sentence_graph(*run(Sentence(words, labels, names, is_alone, scopes=scopes, why=[None] * len(words))))


def _labels(
    objects: Sequence[int] = (),
    parts: Sequence[tuple[int, int]] = (),
    attributes: Sequence[tuple[int, int]] = (),
    relations: Sequence[tuple[int, int, str]] = (),
) -> Labels:
    return Labels([], list(objects), list(parts), list(attributes), list(relations))


def _words(sentences: Sequence[SentenceGraph]) -> list[tuple[str, ...]]:
    return [fact.words for fact in facts_of(sentences, _names(), is_long=len(sentences) > 1).seen]


def test_a_sentence_has_nodes_attributes_and_relations_with_their_words() -> None:
    """Names have all their words in order; people's own names replace them; relations know the words that state them."""
    labels = _labels([1, 6], [(6, 5)], [(6, 4)], [(1, 6, "sit on")])
    names = _names(objects={"cell phone": "cellphone"}, attributes={"wood": "wooden"})
    graph = _sentence("A cat sits on wood cell phone", "DT NN VBZ IN NN NN NN", labels, names)
    assert graph.nodes == (Node("cat", 1, (1,)), Node("cellphone", 6, (5, 6)))
    assert graph.properties == (Property(1, "wooden", (4,)),)
    assert graph.links == (Link(0, 1, "sit on", (2, 3)),)


def test_signs_are_neither_objects_nor_attributes_nor_in_relations() -> None:
    labels = _labels([1, 2, 4], attributes=[(1, 3), (2, 0)], relations=[(1, 2, "near"), (1, 4, "on"), (4, 1, "***")])
    graph = _sentence("red dog !!! ... grass", "JJ NN . : NN", labels)
    assert [node.name for node in graph.nodes] == ["dog", "grass"]
    assert graph.properties == ()
    assert [(link.subject, link.object, link.name) for link in graph.links] == [(0, 1, "on")]


def test_relations_that_words_state() -> None:
    """A relation is stated where every word of its name is there in some form."""
    stated = Stated(["sit on", "on", "wear"], stems)
    shares, rows = stated([["sits", "on"], ["on"], ["worn"], [], ["on", "a"]])
    assert np.array_equal(shares[rows], [[1, 1, 0], [0.5, 1, 0], [0, 0, 1], [0, 0, 0], [0.5, 1, 0]])
    assert len(shares) == 4


@pytest.mark.parametrize(
    ("between", "tags", "turned", "wanted"),
    [
        ("jumps high into the", "VBZ RB IN DT", False, "jump into"),
        ("is moving out of a", "VBZ VBG IN IN DT", False, "move out of"),
        ("stacked on top of", "VBN IN NN IN", False, "stack on top of"),
        ("and a man run after the", "CC DT NN VBP IN DT", False, "run after"),
        ("that sits on a mat next to the", "WDT VBZ IN DT NN JJ TO DT", False, None),
        ("on a", "IN DT", False, None),
        ("is", "VBZ", False, None),
        ("looks smaller than a", "VBZ JJR IN DT", False, None),
        ("was chased by a", "VBD VBN IN DT", True, "chase"),
        ("was chased from a", "VBD VBN IN DT", True, None),
        ("", "", False, None),
    ],
)
def test_relations_in_the_captions_own_words(between: str, tags: str, turned: bool, wanted: str | None) -> None:
    """Verb and prepositions; nothing without a verb, or past another thing."""
    words = between.split()
    assert own_name(words, tags.split(), 0, len(words), turned=turned) == wanted


def test_a_relation_knows_its_irregular_verb() -> None:
    graph = _sentence("A cat ate near it", "DT NN VBD IN PRP", _labels([1, 4], [], [], [(1, 4, "eat near")]))
    assert graph.links[0].tokens == (2, 3)


def test_a_pronoun_is_what_agrees_with_it() -> None:
    """ "She" is the woman, though the man is nearer; "it" is not a person."""
    first = _sentence("A woman meets a man with a dog", "DT NN VBZ DT NN IN DT NN", _labels([1, 4, 7]))
    second = _sentence("She is tall", "PRP VBZ JJ", _labels([0], [], [(0, 2)]))
    third = _sentence("It sleeps in grass", "PRP VBZ IN NN", _labels([0, 3], [], [], [(0, 3, "sleep in")]))
    assert ("woman", "tall") in _words([first, second])
    assert ("dog", "grass", "sleep in") in _words([first, second, third])


def _things(sentences: Sequence[SentenceGraph]) -> list[tuple[str, tuple[str, ...], int | None]]:
    return [
        (one.name, one.attributes, one.member_of)
        for one in facts_of(sentences, _names(), is_long=len(sentences) > 1).entities
    ]


def test_things_of_one_name_are_told_apart_by_what_is_before_them_and_said_of_them() -> None:
    """A second "a dog" is another one; "the brown dog" is the brown one; facts have one dog."""
    one = _sentence("A brown dog chases a dog", "DT JJ NN VBZ DT NN", _labels([2, 5], [], [(2, 1)], [(2, 5, "chase")]))
    white = _sentence("The dog is white", "DT NN VBZ JJ", _labels([1], [], [(1, 3)]))
    brown = _sentence("The brown dog sleeps on it", "DT JJ NN VBZ IN PRP", _labels([2], [], [(2, 1)]))
    assert _things([one, white, brown]) == [("dog", ("brown",), None), ("dog", ("white",), None)]
    found = facts_of([one, white, brown], _names(), is_long=True)
    assert found.entities[0].relations == (("chase", 1),)
    assert found.entities[0].mentions == ((2,), (12,))
    assert [fact.words for fact in found.seen if len(fact.words) == 1] == [("dog",)]


def test_ordinals_name_things_of_their_own_once() -> None:
    sentences = [
        _sentence(f"The {which} dog is {colour}", "DT JJ NN VBZ JJ", _labels([2], [], [(2, 1), (2, 4)]))
        for which, colour in (("first", "brown"), ("second", "black"), ("first", "big"))
    ]
    assert _things(sentences) == [("dog", ("first", "brown", "big"), None), ("dog", ("second", "black"), None)]


def test_a_member_of_a_group_has_its_name_in_the_singular() -> None:
    men = _sentence("Two old men stand there", "CD JJ NNS VBP RB", _labels([2], [(2, 1)]))
    one = _sentence("One of them wears a hat", "CD IN PRP VBZ DT NN", _labels([0, 5], [], [], [(0, 5, "wear")]))
    both = _sentence("Both smile at a dog", "DT VBP IN DT NN", _labels([0, 4], [], [], [(0, 4, "smile at")]))
    assert _words([men, one])[0] == ("old man", "hat", "wear")
    assert _things([men, one]) == [("old men", (), None), ("old man", (), 0), ("hat", (), None)]
    assert ("old men", "dog", "smile at") in _words([men, both])
    assert [name for name, _, _ in _things([men, both])] == ["old men", "dog"]


def test_what_a_pronoun_owns() -> None:
    """ "Its roof" is a roof that the house has, also in a later sentence; a person's shirt is worn."""
    house = _sentence("A house stands there", "DT NN VBZ RB", _labels([1]))
    roof = _sentence("Its roof is red", "PRP$ NN VBZ JJ", _labels([1], [], [(1, 3)]))
    assert set(_words([house, roof])) == {("house", "roof", "have"), ("roof", "red"), ("house",), ("roof",)}
    man = _sentence("A man ties his shirt", "DT NN VBZ PRP$ NN", _labels([1, 4]))
    assert ("man", "shirt", "wear") in _words([man])


def test_its_is_what_the_sentence_is_about_and_they_may_be_one_person() -> None:
    """Not the nearest thing, and not the roof that the house owns; "their" may be a skier's."""
    house = _sentence("A house stands beside a tree", "DT NN VBZ IN DT NN", _labels([1, 5]))
    roof = _sentence("Its roof is red", "PRP$ NN VBZ JJ", _labels([1]))
    door = _sentence("Its door is open", "PRP$ NN VBZ JJ", _labels([1]))
    words = _words([house, roof, door])
    assert {("house", "roof", "have"), ("house", "door", "have")} < set(words)
    skier = _sentence("Trees surround a skier", "NNS VBP DT NN", _labels([0, 3]))
    helmet = _sentence("Their helmet is red", "PRP$ NN VBZ JJ", _labels([1]))
    assert ("skier", "helmet", "wear") in _words([skier, helmet])
    leaves = _sentence("Their leaves are red", "PRP$ NNS VBP JJ", _labels([1]))
    assert ("trees", "leaves", "have") in _words([_sentence("Trees stand", "NNS VBP", _labels([0])), leaves])
    people = _sentence("People walk under trees", "NNS VBP IN NNS", _labels([0, 3]))
    smile = _sentence("They are merry", "PRP VBP JJ", _labels([0], (), [(0, 2)]))
    assert ("people", "merry") in _words([people, smile])


def test_their_colour_is_nobodys_where_nothing_was_named() -> None:
    hues = _sentence("Their green hues shine", "PRP$ JJ NNS VBP", _labels([0, 2], (), [(0, 1)]))
    assert ("people", "green") not in _words([hues, hues])


def test_what_an_adverb_says_is_faint_in_descriptions() -> None:
    """Behind its noun."""
    art = _sentence("Art hangs", "NN VBZ", _labels([0]))
    panes = _sentence("Panes hang vertically", "NNS VBP RB", _labels([0], (), [(0, 2)]))
    found = facts_of([art, panes], _names(), is_long=True)
    assert (("panes", "vertically"), "faint") in {(fact.words, fact.rule) for fact in found.apart}


def test_her_before_a_comma_owns_nothing() -> None:
    woman = _sentence("A woman stands there", "DT NN VBZ RB", _labels([1]))
    children = _sentence("Behind her , two children splash", "IN PRP , CD NNS VBP", _labels([4]))
    assert not [words for words in _words([woman, children]) if len(words) > 1]


def test_in_descriptions_positions_are_attributes() -> None:
    """People draw a "right hand" of a caption, and a hand that is "right" of a description; other compounds stay."""
    forms, labels = (
        ["his", "right", "fire", "hydrant"],
        _labels([3], [(3, 1), (3, 2)])._replace(tags=["PRP$", "JJ", "NN", "NN"]),
    )
    inside, alone = (_graph(labels, forms, _names(), is_alone=own) for own in (False, True))
    assert ([node.name for node in inside.nodes], [own.name for own in inside.properties]) == (
        ["fire hydrant"],
        ["right"],
    )
    assert ([node.name for node in alone.nodes], alone.properties) == (["right fire hydrant"], ())


def test_places_in_the_picture_and_what_summaries_add_are_kept_apart() -> None:
    """Not from a caption of one sentence, nor what was said before the summary; "both" is no place."""
    trees = _sentence("Trees stand in the distance", "NNS VBP IN DT NN", _labels([0], (), [(0, 4)]))
    trees = trees._replace(properties=(Property(0, "in the distance", (2, 3, 4)),))
    hands = _sentence("Both hands are up", "DT NNS VBP RP", _labels([1], (), [(1, 0), (1, 3)]))
    overall = _sentence("Overall , trees fill a park", "RB , NNS VBP DT NN", _labels([2, 5], (), (), [(2, 5, "fill")]))
    found = facts_of([trees, hands, overall], _names(), is_long=True)
    assert {(fact.words, fact.rule) for fact in found.apart} == {
        (("trees", "in the distance"), "place"),
        (("hands", "up"), "place"),
        (("trees", "park", "fill"), "summary"),
        (("park",), "summary"),
    }
    assert {("trees",), ("hands", "both")} <= {fact.words for fact in found.seen}
    assert ("trees", "in the distance") in _words([trees])
    assert ("park",) in _words([overall])


def test_what_is_faint_is_said_and_not_drawn() -> None:
    """It stands apart, names nothing that a pronoun stands for, and hides no relation that is drawn."""
    labels = _labels([1], (), [(1, 0)])._replace(
        tags=["JJ", "NN", "IN", "JJ", "NN"], faint=_labels([4], (), [(4, 3)], [(1, 4, "near")])
    )
    house = _graph(labels, ["red", "house", "near", "old", "barn"], _names())
    assert [(node.name, node.is_faint) for node in house.nodes] == [("house", False), ("barn", True)]
    roof = _sentence("Its roof is red", "PRP$ NN VBZ JJ", _labels([1], (), [(1, 3)]))
    found = facts_of([house, roof], _names(), is_long=True)
    assert {(fact.words, fact.rule) for fact in found.apart} == {
        (("barn",), "faint"),
        (("barn", "old"), "faint"),
        (("house", "barn", "near"), "faint"),
    }
    assert ("house", "roof", "have") in {fact.words for fact in found.seen}
    caption = ParsedCaption("", (), found.seen, found.apart, is_scene=True)
    assert [fact.words for fact in caption.said[len(caption.facts) :]] == [fact.words for fact in found.apart]
    assert [fact.rule for fact in caption.said[len(caption.facts) :]] == [SAID_RULE] * len(found.apart)
    assert {fact.rule for fact in caption.facts} == {SCENE_RULE, OWNER_RULE}
    assert list(drawn(caption.said)) == list(caption.facts)
    assert ("barn",) not in caption.tuples


def test_faint_relations_give_way_to_what_an_owner_has() -> None:
    """ "Its roof" says that it has a roof, though the network relates both faintly."""
    labels = _labels([1, 4])._replace(
        tags=["DT", "NN", "CC", "PRP$", "NN"], faint=_labels((), (), (), [(4, 1, "on top of")])
    )
    house = _graph(labels, ["the", "house", "and", "its", "roof"], _names())
    found = facts_of([house, house], _names(), is_long=True)
    assert ("house", "roof", "have") in {fact.words for fact in found.seen}
    assert (("roof", "house", "on top of"), "faint") in {(fact.words, fact.rule) for fact in found.apart}


def test_a_thing_that_is_called_by_its_short_name_has_it_throughout() -> None:
    """What the short name lacks is faint, and counts in scores; of two things that differ in it both names stay."""
    ship = _sentence("A cruise ship is white", "DT NN NN VBZ JJ", _labels([2], [(2, 1)], [(2, 4)]))
    short = _sentence("The ship is large", "DT NN VBZ JJ", _labels([1], [], [(1, 3)]))
    facts = facts_of([ship, short], _names(), is_long=True)
    assert {fact.words for fact in facts.seen} == {("ship", "white"), ("ship", "large"), ("ship",)}
    assert [(fact.words, fact.rule, fact.tokens) for fact in facts.apart] == [
        (("ship", "cruise"), "faint", ((2,), (1,)))
    ]
    cargo = _sentence("A cargo ship is red", "DT NN NN VBZ JJ", _labels([2], [(2, 1)], [(2, 4)]))
    assert {("cruise ship",), ("cargo ship",)} <= set(_words([ship, cargo, short]))


def test_one_thing_under_two_names_is_one() -> None:
    """ "The building" after "a skyscraper" is this; not after "a dog", and not "a building", nor "the object"."""
    tower = _sentence("A skyscraper is tall", "DT NN VBZ JJ", _labels([1], [], [(1, 3)]))
    kind = _labels([1], [], [(1, 3)])
    building = _sentence("The building is grey", "DT NN VBZ JJ", kind)
    facts = facts_of([tower, building], _names(), is_long=True)
    assert [fact.words for fact in facts.seen] == [("skyscraper", "tall"), ("skyscraper", "grey"), ("skyscraper",)]
    assert (("skyscraper", "building"), "faint") in {(fact.words, fact.rule) for fact in facts.apart}
    assert len(facts.entities) == 1
    for text in ("A building is grey", "The object is grey", "The animal is grey"):
        assert (text.split()[1],) in _words([tower, _sentence(text, "DT NN VBZ JJ", kind)])
    dog = _sentence("A dog runs", "DT NN VBZ", _labels([1]))
    assert ("building",) in _words([dog, building])
    assert ("dog", "grey") in _words([dog, _sentence("The pet is grey", "DT NN VBZ JJ", kind)])


def test_in_descriptions_relations_have_the_names_that_people_give_them() -> None:
    """ "Filled with" is "have", and what adorns something is the subject."""
    vase = _sentence("A vase filled with roses", "DT NN VBN IN NNS", _labels([1, 4], [], [], [(1, 4, "fill with")]))
    wall = _sentence("A wall adorned with art", "DT NN VBN IN NN", _labels([1, 4], [], [], [(1, 4, "adorn with")]))
    facts = facts_of([vase, wall], _names(), is_long=True)
    assert {fact.words for fact in facts.seen if len(fact.words) == 3} == {
        ("vase", "roses", "have"),
        ("art", "wall", "adorn"),
    }
    assert ("vase", "roses", "fill with") in _words([vase])


def test_in_descriptions_states_and_impressions_are_faint() -> None:
    """What a thing does or what was done to it stands behind it; a participle before its noun is an attribute."""
    cars = _sentence("Two parked cars are striking", "CD VBN NNS VBP JJ", _labels([2], [], [(2, 1), (2, 4)]))
    man = _sentence("A man is waiting", "DT NN VBZ VBG", _labels([1], [], [(1, 3)]))
    facts = facts_of([cars, man], _names(), is_long=True)
    assert ("cars", "parked") in {fact.words for fact in facts.seen}
    assert {(fact.words, fact.rule) for fact in facts.apart} == {
        (("cars", "striking"), "faint"),
        (("man", "waiting"), "faint"),
    }
    assert ("man", "waiting") in _words([man])


def test_a_part_owns_nothing_where_something_else_may() -> None:
    """ "Their" after men and their coats is the men's, and a pronoun behind a comma or a noun owns nothing."""
    men = _sentence("Men wear coats", "NNS VBP NNS", _labels([0, 2], [], [], [(0, 2, "wear")]))
    hats = _sentence("Their hats are red", "PRP$ NNS VBP JJ", _labels([1], [], [(1, 3)]))
    assert ("men", "hats", "wear") in _words([men, hats])
    river = _sentence("A river flows", "DT NN VBZ", _labels([1]))
    banks = _sentence("On its banks , trees stand", "IN PRP$ NNS , NNS VBP", _labels([2, 4]))
    assert ("river", "banks", "have") in _words([river, banks])
    assert ("river", "trees", "have") not in _words([river, banks])


def test_what_cannot_be_seen_is_kept_apart() -> None:
    """Denied, hedged and abstract: not among the facts, but with their reason; relations follow their ends."""
    labels = _labels([1, 6, 9, 12], [], [], [(6, 1, "on")])
    graph = _sentence(
        "The street has no cars or people , a sense , perhaps rain",
        "DT NN VBZ DT NNS CC NNS , DT NN , RB NN",
        labels,
        None,
        Scope(4, (5, 7)),
    )
    found = facts_of([graph], _names(), is_long=True)
    assert [fact.words for fact in found.seen] == [("street",)]
    assert {(fact.words, fact.rule) for fact in found.apart} == {
        (("people", "street", "on"), "denied"),
        (("people",), "denied"),
        (("cars",), "denied"),
        (("sense",), "abstract"),
        (("rain",), "hedged"),
    }


def test_some_nouns_are_seen_in_a_caption_and_abstract_in_a_description() -> None:
    """What the network draws of a caption stays; of a description not. The last word of a name decides."""
    side = _sentence("A white bus side", "DT JJ NN NN", _labels([3], [(3, 2)], [(3, 1)]))
    calm = _sentence("A sense of calm painting", "DT NN IN JJ NN", _labels([1, 4], [(4, 3)]))
    assert _words([side]) == [("bus side", "white"), ("bus side",)]
    assert _words([calm]) == [("sense",), ("calm painting",)]
    house = _sentence("A red house", "DT JJ NN", _labels([2], [], [(2, 1)]))
    assert {fact.rule for fact in facts_of([side, house], _names(), is_long=True).apart} == {"abstract"}
    assert ("calm painting",) in _words([calm, house])
    assert ("sense",) not in _words([calm, house])


def test_what_a_text_is_about_is_drawn() -> None:
    """Where all else is kept apart, what would be drawn last is drawn; what is denied never is."""
    calm = _sentence("A sense of calm", "DT NN IN NN", _labels([1]))
    assert _words([calm]) == [("sense",)]
    no_dog = _sentence("no dog", "DT NN", _labels([1]), None, Scope(1, (2,)))
    assert _words([calm, no_dog]) == [("sense",)]
    assert _words([no_dog]) == []


def test_a_name_has_no_words_from_another_phrase() -> None:
    """The network may take both "street" for parts of the sign."""
    labels = _labels([1, 4], [(1, 0), (4, 0), (4, 3)])
    assert set(_words([_sentence("street corner and street sign", "NN NN CC NN NN", labels)])) == {
        ("street corner",),
        ("street sign",),
    }


def test_a_verb_that_is_a_noun_of_sounds_is_no_thing() -> None:
    """ "Bangs" is what a cook does to pots, though its tag is that of a noun."""
    words = ["cook", "bang", "the", "pots"]
    labels = _labels([0, 3], [], [], [(0, 3, "bang")])._replace(tags=["NN", "NN", "DT", "NNS"])
    graph = _graph(labels, words, replace(_names(), known=frozenset(words)), is_alone=True)
    assert [node.name for node in graph.nodes] == ["cook", "pots"]


def test_tokens_count_through_all_sentences() -> None:
    """A fact's words are found in the text, whichever sentence it comes from."""
    graph = _sentence("A dog", "DT NN", _labels([1]))
    other = _sentence("A cat", "DT NN", _labels([1]))
    assert [fact.tokens for fact in facts_of([graph, other], _names(), is_long=True).seen] == [((1,),), ((3,),)]


def test_a_missing_network_is_named(tmp_path: Path) -> None:
    """The message says what can't be read."""
    with pytest.raises(DataError, match="scene parser's network can't be read"):
        load_network(tmp_path)


@pytest.fixture(scope="module")
def scenes() -> CaptionPipeline:
    """The scene parser."""
    return load_pipeline("scene")


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a dog lying on a bed", {("dog", "bed", "lay on"), ("dog",), ("bed",)}),
        ("a red fire hydrant", {("fire hydrant", "red"), ("fire hydrant",)}),
        ("two brown horses", {("horses", "two"), ("horses", "brown"), ("horses",)}),
        ("a doll scrubbing a toilet", {("doll", "toilet", "scrub"), ("doll",), ("toilet",)}),
        ("A man sits while a dog plays.", {("man",), ("dog",), ("dog", "plays")}),
        ("A dog runs after a cat.", {("dog", "cat", "run after"), ("dog",), ("cat",)}),
        ("There are no people.", set()),
        ("The image evokes a sense of calm.", {("sense",)}),
        ("There is no sense of calm.", set()),
    ],
)
def test_captions_as_people_draw_them(scenes: CaptionPipeline, text: str, wanted: set[tuple[str, ...]]) -> None:
    """What SPICE's rules drop or split is there."""
    assert set(next(scenes.captions([text])).tuples) == wanted


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("A dog in a garden chases a cat in the snow.", ("dog", "cat", "chase")),
        ("In a kitchen a chef in a hat cuts onions.", ("chef", "onions", "cut")),
        ("On a stage, a woman in an orange wig sings.", ("woman", "stage", "on")),
    ],
)
def test_a_relation_reaches_over_another_one(scenes: CaptionPipeline, text: str, fact: tuple[str, ...]) -> None:
    """A phrase between both ends, or the place in front, neither hides what is done nor gives it another name."""
    assert fact in next(scenes.captions([text])).tuples


@pytest.mark.model
def test_odd_texts(scenes: CaptionPipeline) -> None:
    """Empty, blank, without words, of one letter, with surrogates, with digits: each gives a graph or none, no error."""
    texts = ["", "  ", ".", "a", "\ud800 dog", "((((", "4 8 15 16", "a\n\nb", "\u00e9t\u00e9 \U0001f600", "no " * 50]
    found = list(scenes.captions(texts))
    assert [caption.text for caption in found] == texts
    assert found[0].tuples == ()


@pytest.mark.model
def test_company_changes_nothing(scenes: CaptionPipeline) -> None:
    """A caption's facts do not depend on those that it is parsed with."""
    texts = ["a man rides a horse", "a cat", "two dogs play with a red ball on the grass. They are wet."]
    together = [caption.facts for caption in scenes.captions(texts)]
    assert together == [next(scenes.captions([text])).facts for text in texts]


@pytest.mark.model
def test_every_fact_knows_its_words(scenes: CaptionPipeline) -> None:
    """Objects and attributes stand in the text where their tokens say."""
    caption = next(scenes.captions(["A tall man in a polo shirt holds a ball. The man smiles."]))
    forms = [form for parse in caption.sentences for form in parse.forms]
    objects = {
        fact.words[0]: [forms[token] for token in fact.tokens[0]] for fact in caption.facts if len(fact.words) == 1
    }
    assert objects["polo shirt"] == ["polo", "shirt"]
    assert objects["ball"] == ["ball"]


@pytest.mark.model
def test_json_has_what_is_kept_apart(scenes: CaptionPipeline) -> None:
    """With reason and certainty, where anything is kept apart."""
    denied, plain = map(caption_dict, scenes.captions(["a street without cars", "a red car"]))
    assert {"tuple": ["cars"], "reason": "denied", "certainty": 0.0} in denied["apart"]
    assert set(plain) == {"text", "tuples", "rules", "spans", "entities"}


@pytest.mark.model
def test_a_caption_of_sounds(scenes: CaptionPipeline) -> None:
    [caption] = scenes.captions(["Loud applause and laughter followed by speech"])
    assert {("applause",), ("applause", "loud"), ("laughter",), ("speech",)} <= {fact.words for fact in caption.facts}


def test_a_game_may_be_a_ball(scenes: CaptionPipeline) -> None:
    """What WordNet calls an abstraction first, and a thing then, is not left out of a caption."""
    caption = next(scenes.captions(["a man is dribbling a basketball"]))
    assert ("man", "basketball", "dribble") in caption.tuples


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("a street without cars", "cars"),
        ("A park without trees.", "trees"),
        ("A person without shoes", "shoes"),
        ("a kitchen without a window", "window"),
        ("There are no people on the beach.", "people"),
        ("A corner with no fire hydrant", "fire hydrant"),
        ("a road without any parked cars", "cars"),
    ],
)
def test_what_is_denied_is_told_apart(scenes: CaptionPipeline, text: str, denied: str) -> None:
    """Whether people would draw it or not, under its own name, and not among what can be seen."""
    caption = next(scenes.captions([text]))
    assert (denied,) in {fact.words for fact in caption.apart if fact.rule == DENIED}
    assert not any(denied in word for fact in caption.tuples for word in fact)


@pytest.mark.model
def test_graded_matching_sees_denials(scenes: CaptionPipeline) -> None:
    """For SPICE-G what is denied has a note that says so; for SPICE it is an object of its own, never the thing."""
    facts = next(scenes.facts(["a street without cars"]))
    assert [fact.words[0] for fact in facts if fact.rule == DENIED] == ["cars"]
    assert [fact.words for fact in facts if fact.rule == LOOSE] == [("cars",)]
    assert [node.strings for node in merge([facts], load_lexicon()).tuples()] == [
        ("no cars",),
        ("street",),
        ("street", "with", "no cars"),
    ]
    read = {fact.words for fact in read_caption(facts)[0]}
    assert ("no cars",) in read
    assert not any(fact.rule == WORD_RULE for fact in read_caption(facts)[0])


@pytest.mark.model
@pytest.mark.slow
def test_in_descriptions_only_objects_have_attributes_and_relations() -> None:
    """The network's margin for objects holds for all that it says of them; a short caption lacks margins."""
    text = """The image shows a calm lake under a soft glow of light . In the background , a line of tall trees and a
    few white buildings can be seen . A sense of peace fills the quiet scene , with gentle shades of blue and green ."""
    sentences = [part.split() for part in text.split(". ")]
    forms, lengths = [word for own in sentences for word in own], list(map(len, sentences))
    network = load_network(SCENE_WEIGHTS)

    def heads(labels: Labels) -> set[int]:
        ends = [end for one, other, _ in labels.relations for end in (one, other)]
        return {*ends, *(one for one, _ in labels.attributes)}

    strict = network.label(forms, lengths, [1.0] * len(lengths))
    assert all(heads(own) <= set(own.objects) for own in strict)
    plain = network.label(forms, lengths, [0.0] * len(lengths))
    assert all(own.faint is None for own in plain)
    for own, whole in zip(strict, plain, strict=True):
        assert own.faint is not None
        assert sorted([*own.objects, *own.faint.objects]) == whole.objects
        assert {*own.attributes, *own.faint.attributes} == set(whole.attributes)
        ends = {relation[:2] for relation in (*own.relations, *own.faint.relations)}
        assert ends == {relation[:2] for relation in whole.relations}
    assert all(set(few.objects) <= set(many.objects) for few, many in zip(strict, plain, strict=True))
    assert sum(len(own.objects) for own in strict) < sum(len(own.objects) for own in plain)


@pytest.mark.model
def test_scores_count_what_people_do_not_draw(scenes: CaptionPipeline) -> None:
    """Of a description, too: whether with loose words or without, and the graph has less."""
    text = """A wooden coffee table sits in front of the sofa, holding a vase of fresh tulips and two magazines. To the
    left of the sofa, a tall floor lamp casts a warm glow. A rug is placed in the background."""
    caption = next(scenes.captions([text]))
    said = {fact.words for fact in caption.said}
    assert set(caption.tuples) < said
    assert {fact.words for fact in next(replace(scenes, loose=False).facts([text]))} == said
    assert said <= {fact.words for fact in next(scenes.facts([text]))}
    assert len(list(caption.graph().tuples())) < len(said)


@pytest.mark.model
def test_scores_count_the_verb_that_a_plain_relation_replaces(scenes: CaptionPipeline) -> None:
    """People draw that the shell has spots; "speckled" is said all the same."""
    sand = "It lies on the sand of a beach, beside a wooden boat and a rope, under a cloudy sky. " * 2
    [caption] = scenes.captions([f"A shell is here. {sand}The shell is speckled with a few brown spots."])
    assert ("shell", "spots", "have") in caption.tuples
    assert any("speckle" in fact.words[-1] for fact in caption.said)


@pytest.mark.model
def test_a_caption_that_denies_something_is_about_something_else(scenes: CaptionPipeline) -> None:
    texts = ["not for sale anymore .", "for the most part , you are not a superstitious person .", "There is no dog."]
    sale, part, nothing = scenes.captions(texts)
    assert [fact.words for fact in (*sale.facts, *part.facts)] == [("sale",), ("part",)]
    assert not nothing.facts


@pytest.mark.slow
def test_a_text_of_2000_words(scenes: CaptionPipeline) -> None:
    """Also as one sentence, it has a graph."""
    text = "a man in a red hat rides a brown horse near a tree and "
    found = list(scenes.captions([text * 160, text.replace(" and", ".") * 160]))
    assert [("hat", "red") in caption.tuples for caption in found] == [True, True]


def test_the_network_reads_equal_sentences_once_and_no_signs(
    scenes: CaptionPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What costs time is read as little as can be, however long a text repeats itself."""
    read: list[int] = []
    label = SceneNetwork.label

    def counted(own: SceneNetwork, forms: Sequence[str], *rest: Any) -> list[Labels]:
        read.append(len(forms))
        return label(own, forms, *rest)

    monkeypatch.setattr(SceneNetwork, "label", counted)
    signs, repeated = scenes.captions(["," * 2000, "A dog runs. " * 100])
    assert read == [len(["A", "dog", "runs", "."])]
    assert not signs.every_fact
    assert ("dog",) in {fact.words for fact in repeated.facts}


def test_the_signature_names_style_version_and_weights(scenes: CaptionPipeline) -> None:
    """Two trainings never pass for one."""
    style, version, digest = scenes.signature.split("-")
    assert (style, version.count("."), len(digest)) == ("scene", 2, 8)


@pytest.mark.model
def test_a_controller_is_nobody() -> None:
    """WordNet has a person of this name first."""
    text = "A young girl stands in a room. She is holding a white Wii controller in both hands. She wears a pink dress."
    caption = next(load_pipeline("scene").captions([text]))
    assert ("girl", "dress", "wear") in caption.tuples
    assert not [
        words for words in caption.tuples if words[0] == "controller" and len(words) == 3 and words[1] == "dress"
    ]


@pytest.mark.model
def test_members_and_things_of_one_name_in_json() -> None:
    """ "One" at the start of a sentence is read as a person, and named by its group."""
    text = "Two men stand on a street. One of them wears a hat. A man in a red shirt talks to a man in a blue shirt."
    caption = next(load_pipeline("scene").captions([text]))
    assert ("man", "hat", "wear") in caption.tuples
    printed = caption_dict(caption)
    things = printed["entities"]
    member = next(one for one in things if one["member_of"] is not None)
    assert things[member["member_of"] or 0]["name"] == "men"
    assert [text[start:end] for start, end in member["spans"][0]] == ["One"]
    shirts = [one["attributes"] for one in things if one["name"] == "shirt"]
    assert shirts == [["red"], ["blue"]]
    genome = visual_genome_dict(caption, 3)
    assert [one["attributes"] for one in genome["objects"] if one["names"] == ["shirt"]] == shirts
    assert {link["predicate"] for link in genome["relationships"]} >= {"wear", "stand on"}
    graph = thing_graph(caption)
    drawn = [at for at, node in enumerate(graph.objects) if node.concept.label == "shirt"]
    assert [[own.concept.label for own in graph.attributes if own.object == at] for at in drawn] == shirts
    questions = dsg_dict(caption)
    numbers = [number for number, text in questions["qid2tuple"].items() if text == "entity - whole (shirt)"]
    needs = {text: questions["qid2dependency"][at] for at, text in questions["qid2tuple"].items()}
    assert [needs[f"attribute - state (shirt, {colour})"] for colour in ("red", "blue")] == [[int(n)] for n in numbers]
    assert "entities" not in caption_dict(next(load_pipeline().captions([text])))
