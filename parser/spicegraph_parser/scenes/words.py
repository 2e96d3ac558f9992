"""Words of the language that rules of scene graphs read, by what they are: tables, tags, and WordNet's kinds."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.spice.parse import tables, word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """Say whether a noun names a kind of what one of WordNet's synsets is."""
    wordnet = load_wordnet()
    return any(wordnet.is_kind_of(noun, wordnet.find(kind)) for kind in kinds)
