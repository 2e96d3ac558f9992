"""The word index: how words are looked up, and what a damaged file says."""

from __future__ import annotations

import gzip
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.index import Concept, Lexicon
from spicegraph_parser.spice.lexicon import load_lexicon


@pytest.mark.parametrize(
    ("form", "base"),
    [("dogs", "dog"), ("buses", "bus"), ("boxes", "box"), ("puppies", "puppy"), ("geese", "goose"), ("riding", "ride")],
)
def test_an_inflected_form_has_the_synsets_of_its_base(form: str, base: str) -> None:
    """By the exception list, else by the first suffix that leads to a known word."""
    synsets = load_lexicon().synsets
    assert synsets(base)
    assert synsets(form) >= synsets(base)


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [("sofa", "couch", True), ("gray", "grey", True), ("dog", "puppy", False), ("fire hydrant", "fireplug", True)],
)
def test_synonyms_share_a_synset(one: str, other: str, related: bool) -> None:
    """Phrases are looked up with underscores for spaces."""
    concept = load_lexicon().concept
    assert concept(one).shares(concept(other)) is related
    assert not load_lexicon().exact_concept(one).shares(load_lexicon().exact_concept(other))


@pytest.mark.parametrize("word", ["", " ", "zzxq", "🐶", "\x00", "\n", "zs", "zzss", "x" * 10_000])
def test_unknown_words_have_no_synsets(word: str) -> None:
    """They are concepts all the same, equal to themselves."""
    concept = load_lexicon().concept(word)
    assert (concept.strings, concept.synsets) == ((word,), frozenset())
    assert concept.shares(concept)


@given(st.text(max_size=20))
def test_no_word_makes_it_raise(word: str) -> None:
    """Whatever a caption holds, its word is among its concept's strings."""
    assert load_lexicon().concept(word).label == word


def test_union_keeps_order_and_prints_in_the_reference_order() -> None:
    """Strings stay in the order of merging; the label has the order of a Java hash set."""
    lexicon = load_lexicon()
    bathroom, toilet = lexicon.concept("bathroom"), lexicon.concept("toilet")
    merged = bathroom.union(toilet)
    assert merged.strings == ("bathroom", "toilet")
    assert merged.label == str(merged) == "toilet/bathroom"
    assert merged.synsets == bathroom.synsets | toilet.synsets
    assert merged.union(toilet) is merged


def test_many_strings_still_print() -> None:
    """More strings than a small hash table holds, some outside of the basic plane."""
    words = [f"w{i}" for i in range(40)] + ["🐶"]
    assert sorted(Concept.of(words, frozenset()).printed) == sorted(words)


def test_it_is_loaded_once_and_travels_by_name() -> None:
    """A worker process loads its own copy; nothing is sent."""
    lexicon = load_lexicon()
    assert load_lexicon() is lexicon
    assert pickle.loads(pickle.dumps(lexicon)) is lexicon
    assert lexicon.signature.startswith("wordnet3.0-")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "damaged"),
        (b"no archive", "damaged"),
        (gzip.compress(b"no table", mtime=0), "damaged"),
        (gzip.compress(msgspec.msgpack.encode({"format": 1}), mtime=0), "damaged"),
        (
            gzip.compress(
                msgspec.msgpack.encode(
                    {"format": 9, "source": "", "words": "", "counts": b"", "synsets": b"", "bases": {}}
                ),
                mtime=0,
            ),
            "has format 9, this version reads 1",
        ),
    ],
)
def test_a_damaged_index_says_so(data: bytes, reason: str) -> None:
    """One message that says what to do."""
    with pytest.raises(DataError, match=reason):
        Lexicon(data)
