"""WordNet beyond synonyms: broader synsets, distances, definitions, and numbers that mean several things."""

from __future__ import annotations

import gzip
import pickle
from importlib.resources import files

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import DataError, InputError
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.wordnet import PARTS, Synset, WordNet, load_wordnet

WORDNET = load_wordnet()
WORDS = load_lexicon().words()
DATA = (files("spicegraph_parser") / "data" / "wordnet-relations.msgpack.gz").read_bytes()


@pytest.mark.parametrize(
    ("word", "part", "name"),
    [
        ("dog", "n", "dog.n.01"),
        ("dogs", "n", "dog.n.01"),
        ("polar bear", "n", "ice_bear.n.01"),
        ("crane", "n", "crane.n.04"),  # its first three senses are two writers and a constellation
        ("ride", "v", "ride.v.01"),
        ("huge", "a", "huge.a.01"),
        ("quickly", "r", "quickly.r.01"),
    ],
)
def test_the_common_sense_of_a_word(word: str, part: str, name: str) -> None:
    sense = WORDNET.common_sense(word, part)
    assert sense is not None
    assert WORDNET.name(sense) == name
    assert WORDNET.find(name) == sense


def test_a_word_without_such_a_sense_has_none() -> None:
    assert WORDNET.common_sense("xyzzy") is None
    assert WORDNET.common_sense("the") is None
    assert WORDNET.common_sense("sofa", "v") is None


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("dog", "dog", 0), ("sofa", "couch", 0), ("puppy", "dog", 1), ("man", "woman", 2), ("dog", "cat", 4)],
)
def test_distances_between_nouns(one: str, other: str, distance: int) -> None:
    assert WORDNET.distance(WORDNET.find(one), WORDNET.find(other)) == distance


def test_verbs_without_anything_broader_than_both_have_no_distance() -> None:
    assert WORDNET.distance(WORDNET.find("rain.v.01"), WORDNET.find("walk.v.01")) is None


def test_a_satellite_adjective_is_one_step_from_its_head() -> None:
    huge, large = WORDNET.find("huge", "a"), WORDNET.find("large", "a")
    assert WORDNET.broader(huge) == (large,)
    assert WORDNET.broader(large) == ()


def test_definitions_come_without_examples() -> None:
    assert WORDNET.gloss(WORDNET.find("object.n.01")) == (
        "a tangible and visible entity; an entity that can cast a shadow"
    )


@pytest.mark.slow
def test_a_number_may_stand_for_several_synsets() -> None:
    lexicon = load_lexicon()
    several = [n for word in WORDS[:40_000] for n in lexicon.synsets(word) if len(WORDNET.readings(n)) > 1]
    assert several
    readings = WORDNET.readings(several[0])
    assert len({reading.part for reading in readings}) == len(readings)
    assert len({WORDNET.gloss(reading) for reading in readings}) == len(readings)


@given(st.sampled_from(WORDS))
def test_the_senses_of_a_word_are_its_synsets(word: str) -> None:
    senses = WORDNET.senses(word.replace("_", " "))
    assert {sense.number for sense in senses} == load_lexicon().synsets(word)
    for sense in senses:
        assert sense in WORDNET.readings(sense.number)
        assert WORDNET.find(WORDNET.name(sense)) == sense
        assert WORDNET.gloss(sense).strip()


@given(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from(PARTS))
def test_distance_is_symmetric_and_0_only_within_a_synset(one: str, other: str, part: str) -> None:
    first, second = WORDNET.common_sense(one, part), WORDNET.common_sense(other, part)
    if first is not None and second is not None:
        distance = WORDNET.distance(first, second)
        assert distance == WORDNET.distance(second, first)
        assert (distance == 0) == (first == second)
        assert WORDNET.is_kind_of(one, first)
        for above, steps in WORDNET.ancestors(first).items():
            straight = WORDNET.distance(first, above)
            assert straight is not None
            assert straight <= steps  # further up and down again may be shorter
            assert above.part == part


def test_every_noun_leads_to_entity() -> None:
    entity = WORDNET.find("entity.n.01")
    for word in WORDS[::97]:
        for sense in WORDNET.senses(word, "n"):
            assert entity in WORDNET.ancestors(sense)


@pytest.mark.parametrize("name", ["", "xyzzy", "dog.n.99", "dog.x.01", "xyzzy.n.01", "."])
def test_unknown_names_are_input_errors(name: str) -> None:
    with pytest.raises(InputError, match=r"WordNet 3\.0 has no synset"):
        WORDNET.find(name)
    with pytest.raises(InputError, match=r"WordNet 3\.0 has no"):
        WORDNET.gloss(Synset("n", 1))


def test_a_damaged_or_foreign_file_is_a_clear_error() -> None:
    with pytest.raises(DataError, match="damaged"):
        WordNet(DATA[:1000], load_lexicon())
    table = msgspec.msgpack.decode(gzip.decompress(DATA))
    for change in ({"format": 99}, {"lexicon": "wordnet3.0-other"}):
        other = gzip.compress(msgspec.msgpack.encode(table | change), 1)
        with pytest.raises(DataError, match="different versions"):
            WordNet(other, load_lexicon())


def test_a_worker_process_loads_its_own_copy() -> None:
    assert pickle.loads(pickle.dumps(WORDNET)) is WORDNET
