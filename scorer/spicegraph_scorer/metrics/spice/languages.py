"""SPICE in other languages than English: what captions are in, whose words they are, and what else depends on it.

Candidates and references are in one language, that of the pipeline; or references are in English and are matched by the
synsets that both languages share (:mod:`spicegraph_parser.spice.shared`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.errors import InputError
from spicegraph_parser.languages import find_language
from spicegraph_parser.pipelines import check_language, load_pipeline
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.shared import load_shared
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scorer.core.categories import Category
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, COLORS, NUMERALS, SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_parser.spice.index import Synonyms
    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.facts import FactSource

_ENGLISH: Final = "en"


class Side(NamedTuple):
    """Language, fact source and lexicon of the candidates or the references."""

    language: str
    source: FactSource
    lexicon: Synonyms


def sides_of(data: MetricData, source: FactSource, *, exact: bool) -> tuple[Side, Side | None]:
    """Return the side of the candidates, and that of references where they are in another language.

    Raises:
        InputError: the pipeline reads another language, or the references' is not supported.
        DataError: the words of the language are not installed.
    """
    spoken = getattr(source, "language", None)
    language = find_language(data.language or spoken or _ENGLISH)
    if spoken is not None:
        check_language(language, spoken, source.signature)
    of_references = find_language(data.reference_language or language.code)
    if of_references is language:
        return Side(language.code, source, load_lexicon(_ENGLISH if exact else language.code)), None
    if of_references.code != _ENGLISH or exact:
        why = (
            "spice-exact matches equal words" if exact else "references in another language than candidates are English"
        )
        raise InputError(f"reference_language {of_references.code}: {why}")
    references = Side(_ENGLISH, replace(load_pipeline(), loose=False), load_shared(_ENGLISH))
    return Side(language.code, source, load_shared(language.code)), references


@cache
def categories_in(language: str, *, across: bool = False) -> Mapping[str, Category]:
    """Return SPICE's categories for a language: by its own words; where it has none, by the English ones' synsets.

    ``across``: by both, for captions of which some are in English.
    """
    if language == _ENGLISH:
        return CATEGORIES
    known = find_language(language)
    lists = {"Cardinality": (known.counts, NUMERALS), "Size": (known.sizes, SIZES), "Color": (known.colours, COLORS)}
    return {**CATEGORIES, **{name: _attributes(*words, across=across) for name, words in lists.items()}}


def _attributes(own: frozenset[str], english: frozenset[str], *, across: bool) -> Category:
    keys: set[str | int] = {*own, *(english if across else ())}
    if across or not own:  # adjectives alone: "light" and "lean" are verbs, too
        keys.update(synset.number for word in english for synset in load_wordnet().senses(word, "a"))
    return Category(2, keys=frozenset(keys))
