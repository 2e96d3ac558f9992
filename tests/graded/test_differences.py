"""Differences name what a reader would name, and give back the scores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded import Differences, find_differences
from spicegraph_scorer import Item, score
from spicegraph_service.cli import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.model

REFERENCES = ("A brown dog lies on a sofa.", "A dog sleeps beside a cat.", "Two cushions lie next to the dog.")
CANDIDATE = "A black dog lies on a couch. There is a red ball in front of it."
SENTENCES = (
    "A black dog lies on a couch.",
    "There is a red ball.",
    "A cat sleeps.",
    "Three cushions lie there.",
    "It is odd.",
)


def _of(candidate: str, *references: str) -> Differences:
    (found,) = find_differences([Item(1, candidate, references)])
    return found


def test_each_kind_is_named_in_words_with_its_places() -> None:
    """Another colour, a thing that nobody names, and a thing that is left out; spans cut out the words."""
    told = {(one.kind, one.aspect, one.claim, one.reference): one for one in _of(CANDIDATE, *REFERENCES).differences}
    colour = told["contradicted", "colour", "black dog", "brown dog"]
    assert [CANDIDATE[start:end] for start, end in colour.spans] == ["black", "dog"]
    assert [REFERENCES[place.reference][place.start : place.end] for place in colour.reference_spans] == [
        "brown",
        "dog",
    ]
    assert told["unsupported", "object", "ball", ""].reference_spans == ()
    missing = told["missing", "object", "", "cat"]
    assert missing.spans == ()
    assert [(place.reference, place.start) for place in missing.reference_spans] == [(1, 22)]


def test_a_thing_that_nobody_names_is_one_difference_with_all_that_is_said_of_it() -> None:
    """The claims of a thing stand together, the plainest first, and each is a tuple of one difference at most."""
    found = _of(CANDIDATE, *REFERENCES)
    (claims,) = (
        run.statistics[0].evidence for run in score([Item(1, CANDIDATE, REFERENCES)], ["detail"], explain=True).runs
    )
    ball = next(one for one in found.differences if one.claim == "ball")
    assert {claims.candidate[fact].words for fact in ball.facts} >= {("ball",), ("ball", "red")}
    for side in ("facts", "reference_facts"):
        numbers = [number for one in found.differences for number in getattr(one, side)]
        assert len(set(numbers)) == len(numbers)


@given(
    st.lists(st.sampled_from(SENTENCES), min_size=1, unique=True),
    st.lists(st.sampled_from(REFERENCES), min_size=1, unique=True),
)
def test_differences_give_back_the_scores(said: list[str], references: list[str]) -> None:
    """1 minus a score is what the differences and the other claims take from it; all shares are within bounds."""
    found = _of(" ".join(said), *references)
    lost = sum(one.correctness for one in found.differences), sum(one.coverage for one in found.differences)
    assert 1 - found.correctness == pytest.approx(lost[0] + found.other_correctness)
    assert 1 - found.coverage == pytest.approx(lost[1] + found.other_coverage)
    assert all(0 <= one.severity <= 1 and 0 <= one.probability <= 1 for one in found.differences)
    assert [one.severity for one in found.differences] == sorted(
        (one.severity for one in found.differences), reverse=True
    )


@pytest.mark.parametrize(
    ("candidate", "references", "missing"),
    [
        ("A puppy sleeps.", ["A dog sleeps."], []),  # a kind of it
        ("A dog sleeps.", ["A puppy sleeps."], []),
        ("People sit at a table.", ["A girl sits at a table."], []),
        ("A man holds clothes.", ["A man holds two shirts."], []),
        ("A duck walks on a sidewalk.", ["A duck walks on the ground."], []),
        ("A cow eats hay.", ["A cow eats hay.", "An ox eats hay."], []),  # another name of what holds
        ("A cow eats hay.", ["A cow eats hay beside an ox."], ["ox"]),
        ("A duck walks.", ["A duck out of water walks."], []),
        ("A duck walks.", ["A duck walks in water."], ["water"]),
        ("A hill with trees.", ["A hill with trees and a carpet of moss."], ["moss"]),
        ("A bird sits.", ["A bird sits. It may be on a boat."], []),
        ("A bird sits.", ["A bird sits on a boat."], ["boat"]),
        ("A car passes a shop.", ["A car on Main Street passes a shop."], []),
        ("A man smiles.", ["A man with a bag in his hand smiles."], ["bag"]),
        ("A bathroom that is clean.", ["A clean bathroom."], []),
        ("A dog sleeps.", ["A few different dogs sleep."], []),
        ("A couple smiles.", ["A man and a woman smile."], []),
        ("A dog walks on a road.", ["A dog walks on a path."], []),
        ("A van waits.", ["A vehicle waits."], []),
        ("A sink.", ["A sink with a tooth brush."], ["tooth brush"]),
        ("A man.", ["A man in a snow storm."], ["snow storm"]),
        ("An airport.", ["An airport with a baggage carrier."], ["baggage carrier"]),
        ("A gate.", ["A gate for passengers to board."], ["passengers"]),
        ("A bird.", ["A bird on a lake or a pond."], ["lake"]),
        ("A newspaper.", ["A newspaper next to a teddy bear."], ["teddy bear"]),
        ("A relief.", ["A relief. It is likely of Noah’s animals."], []),
        ("A sheep looks up.", ["A ram looks up."], []),  # by its fourth sense
        ("A sheep looks up.", ["A ram looks up.", "A ram and a sheep."], []),
        ("A field with trees.", ["A field with trees and greenery."], []),
        ("A cloudy sky.", ["A sky with clouds."], []),
        ("A child.", ["A child painted in sky blue."], []),
        ("A dog sits.", ["A dog sits as if it were on a boat."], []),
        ("A statue.", ["A statue that resembles a dragon."], []),
        ("A statue.", ["A statue with a dragon."], ["dragon"]),
        ("A cat.", ["A cat that is eating."], []),
        ("A fence.", ["A fence with a poster that says FREE TOWN in red."], ["poster"]),
        ("A man.", ["A man next to an SUV."], ["SUV"]),
        ("A person at a table.", ["A person at a table kneels, with one knee on it."], []),
    ],
)
def test_what_is_said_well_enough_or_in_passing_is_not_missing(
    candidate: str, references: list[str], missing: list[str]
) -> None:
    """Kinds, other names, what is denied or only may be, portions, names and parts that every body has."""
    told = [one for one in _of(candidate, *references).differences if one.kind == "missing" and one.aspect != "count"]
    assert [one.reference for one in told] == missing


@pytest.mark.parametrize(
    ("candidate", "references", "missing"),
    [
        ("Birds fly.", ["Large birds fly."], ["Large birds"]),
        ("Birds fly.", ["The larger birds fly."], []),  # than others
        ("A young boy sits.", ["A toddler boy sits."], []),
        ("A hat.", ["An orange-red hat."], ["orange-red hat"]),
        ("A red hat.", ["An orange-red hat."], []),
        ("Fish swim.", ["Fish that have black eyes swim next to a brown fish."], ["brown fish"]),
        ("A floor near a door.", ["The floor near the door is pink."], ["floor near the door is pink"]),
        ("A person runs on a beach.", ["A person runs on a beach when it is almost empty."], []),
        ("A bear sits.", ["A bear sits with a white cat."], ["cat"]),
        ("Sunglasses.", ["An apple sunglasses.", "Sunglasses next to an apple."], ["apple"]),
        ("Sheep graze in a field.", ["Sheep are grazing in a snow dusted field."], ["snow dusted field"]),
    ],
)
def test_a_quality_is_missing_where_it_is_read_with_its_thing(
    candidate: str, references: list[str], missing: list[str]
) -> None:
    """It stands before its thing or behind a copula, says something by itself, and is told where both are closest."""
    told = [one.reference for one in _of(candidate, *references).differences if one.kind == "missing"]
    assert list(dict.fromkeys(told)) == missing  # "snow" and "dusted" are each a quality


@pytest.mark.parametrize(
    ("candidate", "references", "claims"),
    [
        ("A gray sky.", ["A blue sky with gray clouds."], []),  # a sentence has both
        ("A gray sky.", ["A blue sky."], ["gray sky"]),
        ("A giraffe has its head down.", ["A giraffe eats."], []),
        ("A dog finds shelter from the rain.", ["A dog."], ["shelter"]),
        ("A bag. It can be appealing to collectors.", ["A bag."], []),
        ("A bag. A ball can be seen.", ["A bag."], ["ball"]),
    ],
)
def test_what_references_may_mean_is_not_unsupported(candidate: str, references: list[str], claims: list[str]) -> None:
    """What they say of another thing of the sentence, parts that every body has, and what is only thought of."""
    assert [one.claim for one in _of(candidate, *references).differences if one.claim] == claims


@pytest.mark.parametrize(
    ("candidate", "references", "differing"),
    [
        ("A dog sits on a bed.", ["A cat sits on a bed.", "A cat on a bed."], ("contradicted", "dog", "cat")),
        ("A man sits on a chair.", ["A man sits on a bench.", "A man on a bench."], ("contradicted", "chair", "bench")),
        (
            "Muffins lie on chairs.",
            ["Muffins lie on two cabinets.", "Muffins in cabinets."],
            ("unsupported", "chairs", ""),
        ),
    ],
)
def test_a_thing_contradicts_another_of_its_kind(
    candidate: str, references: list[str], differing: tuple[str, ...]
) -> None:
    """Two steps apart in WordNet, or two animals; other things stand apart, as unsupported and missing."""
    told = [(one.kind, one.claim, one.reference) for one in _of(candidate, *references).differences]
    assert differing in told


def test_a_thing_of_which_the_references_name_a_kind_holds() -> None:
    """Whoever sees a truck and a car sees vehicles."""
    assert not [
        each for each in _of("Vehicles stand on a street.", "A car stands on a street.").differences if each.claim
    ]


def test_the_same_description_has_no_difference() -> None:
    """Nothing differs from itself."""
    assert _of(" ".join(REFERENCES), *REFERENCES).differences == ()


def test_the_command_writes_what_the_library_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A JSON object a line; for people, the severest first, with control characters escaped."""
    source, target = tmp_path / "items.jsonl", tmp_path / "found.jsonl"
    rows = [
        {"id": 1, "candidate": CANDIDATE, "references": REFERENCES},
        {"id": "b\x1b", "candidate": "A dog.", "references": ["A cat."]},
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["differences", str(source), "-o", str(target)]) == 0
    first, second = map(json.loads, target.read_text().splitlines())
    expected = _of(CANDIDATE, *REFERENCES)
    assert first == {"id": 1, **json.loads(json.dumps(expected.to_dict()))}
    assert second["id"] == "b\x1b"
    capsys.readouterr()
    assert main(["differences", str(source), "--least", "0.14"]) == 0
    told = capsys.readouterr().out
    assert "contradicted  colour     0.1" in told
    assert "black dog -> brown dog" in told
    assert "b\\x1b" in told
    assert all(float(line.split()[2]) >= 0.14 for line in told.splitlines() if line.startswith("  "))


@pytest.mark.parametrize("arguments", [["missing.jsonl"], ["{}", "-o", "x.csv"], ["{}", "--least", "2"]])
def test_a_wrong_call_is_one_error(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and a message on standard error."""
    source = tmp_path / "items.jsonl"
    source.write_text(json.dumps({"id": 1, "candidate": "A dog.", "references": ["A cat."]}))
    assert main(["differences", *(argument.format(source) for argument in arguments)]) == 2
    assert capsys.readouterr().err


def test_a_colour_of_something_else_contradicts_nothing() -> None:
    """A thing's colour is held against that of the same thing or kind, not of what is merely like it."""
    (differing,) = [
        each for each in _of("A man wears gray pants.", "A man wears a red jacket.").differences if each.claim
    ]
    assert (differing.kind, differing.claim, differing.reference) == ("unsupported", "gray pants", "")


@pytest.mark.parametrize("pipeline", ["en_caption", "scene"])
@pytest.mark.parametrize(
    ("candidate", "reference", "wanted"),
    [
        ("a kitchen with a refrigerator", "A kitchen. There is no refrigerator.", ("refrigerator", "no refrigerator")),
        ("A kitchen. There is no refrigerator.", "a kitchen with a refrigerator", ("no refrigerator", "refrigerator")),
        ("A man rides a bike with a helmet.", "A man rides a bike. He has no helmet.", ("helmet", "no helmet")),
    ],
)
def test_what_one_side_denies_contradicts_the_other(
    candidate: str, reference: str, wanted: tuple[str, str], pipeline: str
) -> None:
    """In either graph style; nothing is missing, and a pronoun is no thing."""
    (found,) = find_differences([Item(1, candidate, (reference,))], pipeline=pipeline)
    assert [(one.kind, one.claim, one.reference) for one in found.differences] == [("contradicted", *wanted)]


PLAIN_PAIRS = [
    ("A dog.", "A cat.", ("object", "dog", "cat")),
    ("A woman holds an umbrella.", "A man holds an umbrella.", ("object", "woman", "man")),
    ("A boy rides a bike.", "A girl rides a bike.", ("object", "boy", "girl")),
    ("A train near a platform.", "A bus near a platform.", ("object", "train", "bus")),
    ("A woman eats an apple.", "A woman eats a banana.", ("object", "apple", "banana")),
    ("A man stands.", "A man sits.", ("action", "stands", "sits")),
    ("A man is walking on the beach.", "A man is running on the beach.", ("action", "walking", "running")),
    ("A dog lies on a couch.", "A dog lies under a couch.", ("relation", "on", "under")),
    ("A cat on a table.", "A cat under a table.", ("relation", "on", "under")),
    ("A red car.", "A blue car.", ("colour", "red car", "blue car")),
    ("Two dogs run.", "Three dogs run.", ("count", "Two dogs", "Three dogs")),
]


@pytest.mark.parametrize(("candidate", "reference", "named"), PLAIN_PAIRS, ids=str)
def test_a_word_in_place_of_another_is_one_line(candidate: str, reference: str, named: tuple[str, ...]) -> None:
    (one,) = _of(candidate, reference).differences
    assert (one.kind, one.aspect, one.claim, one.reference) == ("contradicted", *named)


@pytest.mark.parametrize(
    ("candidate", "references"),
    [
        ("A puppy lies on a couch.", ["A dog lies on a couch."]),  # a kind of it
        ("A sofa in a room.", ["A couch in a room."]),  # synonyms
        (
            "A dog lies on a couch.",
            ["A dog lies under a couch.", "A couch with a dog on it."],
        ),  # another reference has it
        ("A dog lies near a couch.", ["A dog lies by a couch."]),  # both may hold
        ("A dog lies on a big couch.", ["A dog lies on a soft couch."]),
    ],
)
def test_a_word_that_may_hold_as_well_contradicts_nothing(candidate: str, references: list[str]) -> None:
    assert not [one for one in _of(candidate, *references).differences if one.kind == "contradicted"]
