"""Every pass of the scene parser alone, on labels written by hand (tests/cases/passes.toml), and the table of them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.support.scenes import labels_of, sentence

from spicegraph_parser import load_pipeline
from spicegraph_parser.spice.loose import PREPOSITION_RULE, SCENE_RULE
from spicegraph_parser.spice.parse import Parse
from spicegraph_scenes import clauses, phrases
from spicegraph_scenes.denial import scopes
from spicegraph_scenes.passes import PASSES, changes, run
from spicegraph_scenes.sentence import Sentence, shown

if TYPE_CHECKING:
    from spicegraph_scenes.passes import Pass

_CASES: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parents[1] / "cases" / "passes.toml").read_text(encoding="utf-8")
)


def _before(own: Pass, case: dict[str, Any]) -> Sentence:
    words, tags = zip(*(word.rsplit("/", 1) for word in case["text"].split()), strict=True)
    given = sentence(
        words,
        tags,
        labels_of(" ".join(words), case.get("in", ())),
        known=case.get("known", ()),
        is_alone=own.of_captions,
    )
    if "arcs" in case:
        arcs = [(label, *map(int, ends.split(">"))) for ends, label in (arc.split(":") for arc in case["arcs"].split())]
        parse = Parse.from_columns(words, tags, words, [(label, a, b) for label, a, b in arcs], ())
        given = clauses.not_seen(given._replace(scopes=scopes(parse)))
    return given if own.treat is phrases.noun_phrases else phrases.noun_phrases(given)


@pytest.mark.parametrize("own", PASSES, ids=[own.name for own in PASSES])
def test_a_pass_changes_what_its_case_says(own: Pass) -> None:
    """And its docstring shows a caption, what comes in and what goes out."""
    case = _CASES[own.name]
    before = _before(own, case)
    old, new = list(shown(before)), list(shown(own.treat(before)))
    found = {f"-{row}" for row in old if row not in new} | {row for row in new if row not in old}
    assert found == set(case["out"])
    assert "->" in (own.treat.__doc__ or "")


def test_every_pass_has_a_case_and_a_name_of_its_own() -> None:
    assert [own.name for own in PASSES] == list(dict.fromkeys(_CASES))


def test_no_pass_calls_another() -> None:
    """By the names in its code."""
    names = {own.name for own in PASSES}
    for own in PASSES:
        assert names.isdisjoint(own.treat.__code__.co_names)


def test_a_trace_has_what_each_pass_changes_and_rules_say_who_decided() -> None:
    given = sentence(
        "a lamp beneath the shelf",
        "DT NN IN DT NN",
        labels_of("a lamp beneath the shelf", ["object lamp", "object shelf", "relation lamp - on - shelf"]),
    )
    (found, renamed) = changes(given)
    assert (found.name, renamed.name) == ("noun_phrases", "own_prepositions")
    assert (renamed.removed, renamed.added) == (("relation lamp - on - shelf",), ("relation lamp - beneath - shelf",))
    decided, rules = run(given)
    assert decided.labels.relations == [(1, 4, "beneath")]
    assert (rules[1], rules[1, 4, "beneath"]) == (SCENE_RULE, PREPOSITION_RULE)
    assert run(given, {"own_prepositions"})[0].labels.relations == [(1, 4, "on")]


def test_nobody_does_something_to_each_other_where_nothing_is_named() -> None:
    nothing = sentence("next to each other", "JJ TO DT JJ")
    assert clauses.reciprocals(nothing) == nothing


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Two giraffes standing next to each other.", {("giraffes", "giraffes", "stand next to"), ("giraffes", "two")}),
        ("Three dogs chase each other in the snow.", {("dogs", "dogs", "chase"), ("dogs", "three")}),
        ("Two women hug each other.", {("women", "women", "hug"), ("women",)}),
        ("Four horses run side by side on the beach.", {("horses", "horses", "run side by side with")}),
        ("a man and woman leaning against each other", {("man", "woman", "lean against")}),
        (
            "A sign leans against a fence covered in ivy.",
            {("ivy", "fence", "cover"), ("sign", "fence", "lean against")},
        ),
        ("A man pushes a cart through a gate.", {("man", "cart", "push"), ("cart", "gate", "through")}),
        ("A film still of two people", {("film still", "people", "of")}),
        ("A ball that is bigger than a box.", {("ball", "box", "bigger than")}),
        ("a man in a helmet skis", {("man", "helmet", "wear")}),
        ("a man in a helmet skis down a hill", {("man", "helmet", "wear"), ("man", "hill", "ski down")}),
        ("A goalkeeper in yellow dives to the left.", {("goalkeeper", "yellow", "in")}),
        (
            "A carpenter drives nails into a plank with a hammer.",
            {("carpenter", "hammer", "use"), ("nails", "plank", "into")},
        ),
        ("A man removes leaves from a pool with a net.", {("man", "net", "use")}),
        ("A woman pours tea into a cup with a gold handle.", {("cup", "handle", "have")}),
        ("A man holds a bag near a wall with a brush.", {("man", "bag", "hold")}),
        (
            "A handwritten recipe for pancakes pinned to a refrigerator with a magnet shaped like a pig.",
            {("recipe", "magnet", "pin with"), ("recipe", "refrigerator", "pin to"), ("magnet", "pig", "shape like")},
        ),
        ("A swimmer touches the wall ahead of her rival.", {("swimmer", "wall", "touch")}),
        (
            'A meme of a cat staring at a salad with the caption "what is this".',
            {("meme", "caption", "with"), ("cat", "salad", "stare at")},
        ),
        ("a tattoo of an anchor on his arm", {("tattoo", "arm", "on"), ("anchor", "arm", "on")}),
    ],
)
def test_attachment_in_captions(text: str, facts: set[tuple[str, ...]]) -> None:
    (caption,) = load_pipeline("scene").captions([text])
    assert facts <= set(caption.tuples)
    wrong = {("ivy", "sign", "cover"), ("plank", "hammer", "with"), ("man", "brush", "hold with")}
    wrong |= {("meme", "salad", "stare at"), ("dives",)}
    assert wrong.isdisjoint(caption.tuples)


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "facts", "wrong"),
    [
        ("Water is running and dishes are clanking.", {("dishes",)}, {("dishes", "water", "talk to")}),
        ("A man speaks while a crowd cheers.", {("man",), ("crowd",)}, {("man", "crowd", "speak while")}),
        ("A bell rings in the distance.", {("bell",)}, {("bell rings",)}),
        ("Rain falls on a roof as thunder rumbles.", {("rain", "roof", "fall on"), ("thunder",)}, {("rumbles",)}),
        ("Two boxes of apples stand on a cart.", {("boxes", "two")}, {("apples", "two")}),
        (
            "A dog that is held by a woman looks at a bird.",
            {("woman", "dog", "hold"), ("dog", "bird", "look at")},
            {("woman", "bird", "look at")},
        ),
        (
            "A cake with candles is about to be cut by a girl.",
            {("cake", "candles", "with")},
            {("girl", "cake", "cut"), ("girl", "candles", "cut")},
        ),
        ("hands holding a knife", {("hands", "knife", "hold")}, set()),
    ],
)
def test_clauses_numbers_and_relative_clauses(
    text: str, facts: set[tuple[str, ...]], wrong: set[tuple[str, ...]]
) -> None:
    (caption,) = load_pipeline("scene").captions([text])
    assert facts <= set(caption.tuples)
    assert wrong.isdisjoint(caption.tuples)
