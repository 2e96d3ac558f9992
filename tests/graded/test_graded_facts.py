"""SPICE-G reads quantities as what they are of, tells one from several, and takes denials for what they are."""

from __future__ import annotations

import pytest

from spicegraph_graded.spice_g.building import words_of
from spicegraph_graded.spice_g.facts import comparable_facts, content_words, read_caption
from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_parser.spice.loose import (
    DENIED,
    IMPLIED,
    LEMMA,
    LOOSE,
    NO_OBJECT,
    PLURAL,
    QUANTITY,
    SCENE_RULE,
    STANDS_FOR,
)
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import Item
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.tokens import Corpus


def words(*facts: Fact) -> list[tuple[str, ...]]:
    return [fact.words for fact in comparable_facts(facts)]


def fact(*slots: tuple[str, int], rule: str = "written") -> Fact:
    return Fact(tuple([word for word, _ in slots]), rule, tuple([(token,) for _, token in slots]))


MAN, GROUP, PEOPLE, HAT = ("man", 0), ("group", 1), ("people", 3), ("hat", 4)


def test_a_quantity_is_read_as_what_it_is_of() -> None:
    note = fact(GROUP, PEOPLE, rule=STANDS_FOR)
    said = [fact(GROUP), fact(PEOPLE), fact(GROUP, PEOPLE, ("of", 2)), fact(GROUP, HAT, ("wear", 5))]
    assert words(*said, note) == [("people",), ("people",), ("people", "hat", "wear")]


def test_names_of_scene_graphs_are_read_as_their_lemmas_at_their_places_alone() -> None:
    dogs, man, balls = ("hot dogs", 1), ("men", 4), ("balls", 6)
    notes = [fact(dogs, ("hot dog", 1), rule=LEMMA), fact(balls, ("ball", 6), rule=LEMMA)]
    said = [fact(dogs, man, ("near", 2)), fact(balls), fact(dogs, ("plural", 1), rule=PLURAL)]
    assert words(*said, *notes) == [("hot dog", "men", "near"), ("ball",), ("hot dog", "plural")]


def test_a_relation_that_a_scene_graph_guesses_gives_way_to_the_verb_of_the_caption() -> None:
    guess = Fact(("man", "sofa", "type on"), SCENE_RULE, ((0,), (4,), (2,)))
    stated = Fact(("man", "sofa", "lounge on"), LOOSE, ((0,), (4,), (1, 2)))
    other = Fact(("man", "sofa", "type on"), SCENE_RULE, ((0,), (9,), (8,)))
    found = comparable_facts([guess, other, stated, guess._replace(rule=IMPLIED)])
    assert found == [other, stated]


def test_words_that_a_scene_graph_guesses_are_compared_in_relations_and_not_as_words_of_the_caption() -> None:
    wear = Fact(("man", "hat", "wear"), SCENE_RULE, ((0,), (2,), ()))
    sit = Fact(("man", "hat", "sit on"), SCENE_RULE, ((0,), (2,), (4, 5)))
    for facts, content in (([wear], {"man", "hat"}), ([wear, sit], {"man", "hat", "sit"})):
        told, words = read_caption(facts)
        assert (told, words, content_words(told)) == (facts, content, content)


def test_a_changed_scene_graph_whose_facts_lack_places_keeps_the_names_it_was_given() -> None:
    """What ``--explain`` and reports try out are such graphs."""
    assert content_words([Fact(("man", "hat", "wear"), SCENE_RULE, ())]) == {"man", "hat", "wear"}


def test_what_is_said_of_a_quantity_itself_is_not_said_of_the_things() -> None:
    note = fact(GROUP, PEOPLE, rule=STANDS_FOR)
    said = [fact(GROUP, ("large", 0), rule="amod"), fact(GROUP, ("stand", 5), rule="predicate")]
    how_many = fact(PEOPLE, GROUP, rule=QUANTITY)
    assert words(*said, how_many, note) == [("people", "stand"), ("people", "large group")]


def test_quantities_of_quantities_end_where_something_is_meant() -> None:
    notes = [fact(("pair", 0), GROUP, rule=STANDS_FOR), fact(GROUP, PEOPLE, rule=STANDS_FOR)]
    assert words(fact(("pair", 0)), *notes) == [("people",)]
    circle = [fact(MAN, GROUP, rule=STANDS_FOR), fact(GROUP, MAN, rule=STANDS_FOR)]
    assert len(words(fact(MAN), *circle)) == 1


def test_a_noun_of_a_preposition_is_no_object_but_may_have_relations() -> None:
    note = fact(("front", 2), rule=NO_OBJECT)
    assert words(fact(("front", 2)), fact(("front", 2), HAT, ("of", 3)), note) == [("front", "hat", "of")]


def test_what_is_denied_is_another_object_attribute_or_relation() -> None:
    said = [fact(HAT), fact(MAN, HAT, ("wear", 2)), fact(MAN, ("red", 3))]
    assert words(*said, fact(HAT, ("no", 1), rule=DENIED)) == [("no hat",), ("man", "no hat", "wear"), ("man", "red")]
    assert words(*said, fact(("red", 3), ("not", 1), rule=DENIED))[-1] == ("man", "no red")
    assert words(*said, fact(("wear", 2), ("not", 1), rule=DENIED))[1] == ("man", "hat", "no wear")


def test_of_marks_and_notes_only_negations_are_words_of_a_table() -> None:
    plural = Fact(("dog", "plural"), "plural", ((1,), (1,)))
    assert words_of([fact(("dog", 1)), plural, fact(HAT, ("no", 1), rule=DENIED)]) == {"dog", "no"}


def test_a_denial_is_like_other_denials_and_unlike_what_it_denies() -> None:
    rows = load_vectors().rows([("no hat",), ("hat",), ("no cap",), ("cap",)])
    denied, hat, no_cap, cap = rows.vectors
    assert float(denied @ hat) == pytest.approx(-1)
    assert float(denied @ no_cap) == pytest.approx(float(hat @ cap))
    assert float(hat @ cap) > 0.3
    assert rows.idf[0] == rows.idf[1]


def test_a_relation_is_above_all_its_verb() -> None:
    rows = load_vectors().rows([("ride on",), ("ride",), ("on",)])
    relation, verb, preposition = rows.vectors
    assert float(relation @ verb) > float(relation @ preposition) + 0.3
    assert rows.idf[1] > rows.idf[0] > rows.idf[2]


HATS = ("a man with a hat on the street", "a man in a hat walks down the street", "an older man wearing a hat")
NO_HATS = ("a man with no hat on the street", "a bald man without a hat")
DOGS = ("two dogs on a couch",)


@pytest.fixture(scope="module")
def metric() -> SpiceG:
    return SpiceG(load_pipeline(), texts=False)


def f1(metric: SpiceG, candidate: str, references: tuple[str, ...]) -> float:
    return metric.collect(Corpus((Item(1, candidate, references),)))[0].weights[ALL].f1


@pytest.mark.model
@pytest.mark.parametrize("denial", ["with no hat", "without a hat", "not wearing a hat"])
def test_to_deny_what_references_affirm_costs_more_than_to_leave_it_out(metric: SpiceG, denial: str) -> None:
    assert f1(metric, "a man on the street", HATS) > f1(metric, f"a man {denial} on the street", HATS) + 0.05


@pytest.mark.model
@pytest.mark.parametrize("denial", ["with no hat", "without a hat"])
def test_to_deny_what_references_deny_is_right(metric: SpiceG, denial: str) -> None:
    right = f1(metric, f"a man {denial} on the street", NO_HATS)
    assert right > f1(metric, "a man on the street", NO_HATS) + 0.1
    assert right > f1(metric, "a man with a hat on the street", NO_HATS) + 0.2


@pytest.mark.model
def test_a_denied_attribute_is_worse_than_none(metric: SpiceG) -> None:
    assert f1(metric, "the bus is not red", ("the bus is not red",)) == pytest.approx(1)
    assert f1(metric, "a bus", ("the bus is red",)) > f1(metric, "the bus is not red", ("the bus is red",)) + 0.1


@pytest.mark.model
def test_a_pair_of_dogs_are_two_and_one_dog_is_not(metric: SpiceG) -> None:
    assert f1(metric, "a pair of dogs on a couch", DOGS) == pytest.approx(1)
    assert f1(metric, "a couple of dogs on a couch", DOGS) == pytest.approx(1)
    some, one = f1(metric, "dogs on a couch", DOGS), f1(metric, "a dog on a couch", DOGS)
    assert 1 > some > one + 0.03
    assert one > f1(metric, "three dogs on a couch", DOGS)


@pytest.mark.model
def test_a_group_of_people_are_people(metric: SpiceG) -> None:
    references = ("a crowd of people standing around a table",)
    assert f1(metric, "a group of people standing around a table", references) > 0.85
    assert f1(metric, "people standing around a table", references) > 0.65
    assert f1(metric, "a person standing around a table", references) < 0.5
