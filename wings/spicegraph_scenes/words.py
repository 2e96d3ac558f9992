"""Words of the language that rules of scene graphs read: tables, tags, WordNet's kinds, and what can be seen of them.

What cannot be seen is kept apart: summaries, places, impressions, nouns of no thing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.spice.parse import tables, word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TABLES: Final = tables(__package__)

WORDS: Final[Mapping[str, frozenset[str]]] = {
    name: word_set(text) for name, text in _TABLES.items() if isinstance(text, str)
}
"""Lists of words."""

NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    name: {key: own for keys, own in table.items() for key in keys.split()}
    for name, table in _TABLES.items()
    if not isinstance(table, str)
}
"""Tables of words, each with what stands for it; several words with one value stand in one key of the file."""

NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
PLURAL: Final = frozenset({"NNS", "NNPS"})
FINITE: Final = frozenset({"VBZ", "VBP", "VBD", "MD"})
PREPOSITIONS: Final = frozenset({"IN", "TO"})
MOST: Final = 100_000  # Words, names or texts of which it is kept what a rule says of them.


@lru_cache(maxsize=MOST)
def is_noun(word: str) -> bool:
    """Say whether WordNet has a noun, which typing errors are not."""
    wordnet = load_wordnet()
    last = word.rpartition("-")[2]
    forms = (word, last, plural_lemma(last))
    return word in WORDS["depictions"] or any(wordnet.senses(form, "n") for form in forms)


def lives(noun: str) -> bool:
    """Say whether a noun in the singular names a person or an animal."""
    return noun == "people" or is_a(noun, "person.n.01", "animal.n.01")


@lru_cache(maxsize=MOST)
def is_a(noun: str, *kinds: str) -> bool:
    """Say whether a noun is a hyponym of one of the given WordNet synsets."""
    wordnet = load_wordnet()
    return any(wordnet.is_kind_of(noun, wordnet.find(kind)) for kind in kinds)


PICTURES: Final = WORDS["pictures"]
"""Nouns of what holds or frames a picture, or stands for what is named elsewhere."""


def is_summary(words: Sequence[str]) -> bool:
    """Return whether a sentence, in lower case, is a summary ("Overall, the image is")."""
    start = [*words[:2], ""]
    return start[0] in WORDS["summaries"] or (start[0] == "in" and start[1] in WORDS["in_summaries"])


def is_place(tags: Sequence[str]) -> bool:
    """Return whether an attribute's tags are those of a place in the picture ("in the distance", "on the left")."""
    return tags[0] in {"IN", "TO", "RP"} or (tags[0] == "DT" and len(tags) > 1)  # "two" may be said as "both"


def name_noun(name: str) -> str:
    """Return the noun of an object's name, its last word, which says whether it can be seen.

    >>> name_noun("lively scene")
    'scene'
    """
    return name.rpartition(" ")[2]


@lru_cache(maxsize=MOST)
def singular(name: str) -> str:
    """Return the noun of a name, its last word, in the singular."""
    return plural_lemma(name_noun(name))
