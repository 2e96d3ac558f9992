"""The categories that SPICE scores beside the total, as a table.

To add a category: a word list, a line in ``CATEGORIES``, a test case.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

from spicegraph_parser.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.lexicon import Concept
    from spicegraph_parser.wordnet import Synset

__all__ = ["CATEGORIES", "COLORS", "NUMERALS", "SIZES", "Category"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COLORS = _words(
    """black brown blue red yellow pink gray grey green dark light white cream orange purple maroon beige
    violet"""
)
"""The attribute words that SPICE 1.0 counts as colours."""

NUMERALS = _words("one two three four five six seven eight nine ten")
"""The attribute words that SPICE 1.0 counts as counts."""

SIZES = _words(
    """baby beefy big bony boundless brawny broad colossal compact corpulent curvy elfin emaciated endless
    enormous epic expansive extensive fat fleshy full-size gargantuan gaunt giant gigantic grand great
    heavy hefty huge hulking illimitable immeasurable infinitesimal lanky large lean limitless little
    mammoth massive meager measly microscopic mini miniature minuscule narrow obese outsized oversize
    overweight paltry petite pint-size plump pocket-size portly pudgy puny rotund scanty scraggy scrawny
    short sizable skeletal skimpy skinny slim small squat stocky strapping sturdy tall teensy teeny
    teeny-tiny teeny-weeny thick thickset thin tiny titanic towering trifling trim tubby undersized
    underweight unlimited vast wee whopping wide"""
)
"""The attribute words that SPICE 1.0 counts as sizes."""


@dataclass(frozen=True, slots=True)
class Category:
    """Which tuples belong to a category: those of a length (1 object, 2 attribute, 3 relation), or some.

    ``words`` limits a category of attributes or relations to those whose whole label is in a word list.
    The label of a merged attribute ("gray/grey") is in no list: SPICE 1.0 loses such tuples from their
    category.

    ``keys`` and ``roots`` limit a category of the user's own to tuples whose object, attribute or relation has one
    of these strings or synsets, or a string that WordNet calls a kind of one of the roots; merged labels are not
    lost there.
    """

    length: int
    words: frozenset[str] | None = None
    keys: frozenset[str | int] | None = None
    roots: tuple[Synset, ...] = ()

    def select(self, tuples: Sequence[SceneTuple], indices: Iterable[int]) -> list[int]:
        """Return which of the given indices, all of tuples of this category's length, belong to it."""
        chosen = list(indices)
        if self.takes_all:
            return chosen
        slot = min(self.length - 1, 1)
        return list(compress(chosen, self.takes([tuples[i].concepts[slot] for i in chosen])))

    @property
    def takes_all(self) -> bool:
        """Whether every tuple of this category's length belongs to it."""
        return self.words is None and self.keys is None

    def takes(self, concepts: Iterable[Concept]) -> list[bool]:
        """Say which tuples of this category's length belong to it, given their objects, attributes or relations."""
        words, keys = self.words, self.keys
        if keys is not None:
            return [self._holds(keys, concept) for concept in concepts]
        return [words is None or concept.label in words for concept in concepts]

    def _holds(self, keys: frozenset[str | int], concept: Concept) -> bool:
        return not keys.isdisjoint(concept.keys) or any(
            load_wordnet().is_kind_of(string, root) for root in self.roots for string in concept.strings
        )


CATEGORIES: Mapping[str, Category] = {
    "Relation": Category(3),
    "Cardinality": Category(2, NUMERALS),
    "Attribute": Category(2),
    "Size": Category(2, SIZES),
    "Color": Category(2, COLORS),
    "Object": Category(1),
}
"""Every category beside ``All``, in the order in which SPICE 1.0 prints them."""
