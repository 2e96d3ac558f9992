"""Lemmas by rule, table and tag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.caption_pipeline.lemmas import Lemmas, plural_lemma, verb_lemma

_LEMMAS = Lemmas({"NNS": {"teeth": "tooth"}, "V": {"ate": "eat", "is": "be"}, "DT": {"an": "a"}})


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("dogs", "dog"),
        ("horses", "horse"),
        ("benches", "bench"),
        ("glasses", "glass"),
        ("boxes", "box"),
        ("puppies", "puppy"),
        ("pies", "pie"),
        ("women", "woman"),
        ("potatoes", "potato"),
        ("buses", "bus"),
        ("houses", "house"),
        ("cacti", "cactus"),
        ("grass", "grass"),
    ],
)
def test_plurals(plural: str, singular: str) -> None:
    assert plural_lemma(plural) == singular


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("sits", "sit"),
        ("catches", "catch"),
        ("flies", "fly"),
        ("sitting", "sit"),
        ("riding", "ride"),
        ("bringing", "bring"),
        ("eating", "eat"),
        ("leaving", "leave"),
        ("dancing", "dance"),
        ("carried", "carry"),
        ("parked", "park"),
        ("placed", "place"),
        ("dressed", "dress"),
        ("opened", "open"),
        ("sing", "sing"),
        ("bed", "bed"),
    ],
)
def test_verbs(form: str, base: str) -> None:
    assert verb_lemma(form) == base


@pytest.mark.parametrize(
    ("form", "tag", "lemma"),
    [
        ("Teeth", "NNS", "tooth"),
        ("ate", "VBD", "eat"),
        ("Is", "VBZ", "be"),
        ("An", "DT", "a"),
        ("dogs", "NNS", "dog"),
        ("Dogs", "NNPS", "dogs"),  # the reference leaves proper nouns alone
        ("standing", "NN", "standing"),
        ("standing", "VBG", "stand"),
        ("-LRB-", "-LRB-", "-lrb-"),
    ],
)
def test_tag_decides(form: str, tag: str, lemma: str) -> None:
    assert _LEMMAS.lemma(form, tag) == lemma


@given(st.text(max_size=12), st.sampled_from(["NN", "NNS", "VBG", "VBZ", "VBD", "JJ", ""]))
def test_any_word_has_a_lower_cased_lemma(form: str, tag: str) -> None:
    lemma = _LEMMAS.lemma(form, tag)
    assert bool(lemma) == bool(form.lower())
    assert lemma == lemma.lower()
