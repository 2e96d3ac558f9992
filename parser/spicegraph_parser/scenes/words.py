"""Words of the language that rules of scene graphs read, by what they are: the tables of ``words.toml``, and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_parser.spice.parse import tables, word_set

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
