"""Languages: their tables, and how they are found."""

from __future__ import annotations

import pickle

import pytest

from spicegraph_parser import InputError
from spicegraph_parser.languages import ENGLISH, LANGUAGES, find_language


@pytest.mark.parametrize("code", sorted(LANGUAGES))
def test_every_code_has_a_table_with_the_words_that_every_language_has(code: str) -> None:
    language = find_language(code)
    assert code in (language.code, language.wordnet)
    assert language.copulas
    assert language.without
    assert language.negations
    assert language.singular_pronouns
    assert pickle.loads(pickle.dumps(language)) is language


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^language: 'tlh' is not known; known are cs, de, en, es, fr, it, pt$"):
        find_language("tlh")
    with pytest.raises(InputError, match="language: is a number, expected a code such as fr"):
        find_language(3)  # type: ignore[arg-type]


def test_english_is_the_default_and_has_its_own_table() -> None:
    assert find_language("EN") is ENGLISH
    assert ENGLISH.agents == {"by"}
