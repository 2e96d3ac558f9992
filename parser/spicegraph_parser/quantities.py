"""Number: what is said of several things, and how many or how much of something there is.

SPICE reads "a group of people" as a group, "a pair of dogs" as a pair; what is seen are people and dogs. It does not
tell "a dog" from "dogs". Its own scene graphs stay that way: only graded matching reads these facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spicegraph_parser.parse import Parse

__all__ = ["is_plural", "quantified"]

_PLURAL_TAGS: Final = frozenset({"NNS", "NNPS"})
_SAID_OF_SEVERAL: Final = """
    pair couple trio dozen handful number several plenty total
    lot lots bunch slew ton tons load loads dozens hundreds thousands heap
    variety multitude assortment array range plethora series set collection
    group crowd herd flock pack school mob party band family team cluster row line string stack pile
"""
_QUANTITIES: Final = frozenset(_SAID_OF_SEVERAL.split())
"""Nouns (lemmas, and plurals that are lemmas of their own) that say how many or how much of what stands behind "of"."""


def is_plural(tag: str) -> bool:
    """Say whether a tag is that of a plural noun."""
    return tag in _PLURAL_TAGS


def quantified(parse: Parse, nouns: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of nouns that are quantities, each with that of what there is so much of.

    a pair of dogs                  -> (pair, dogs)
    a large group of people         -> (group, people)

    Args:
        parse: the sentence, with basic or collapsed dependencies.
        nouns: the positions of its objects.
    """
    lemmas = parse.lemmas
    if _QUANTITIES.isdisjoint(lemmas):
        return
    links = {(head, dependent) for label, head, dependent in parse.arcs if label in {"nmod", "nmod:of"}}
    for label, noun, preposition in parse.arcs:
        quantity = preposition - 1
        if (
            label == "case"
            and (quantity, noun) in links
            and lemmas[preposition - 1] == "of"
            and lemmas[quantity - 1] in _QUANTITIES
            and quantity in nouns
            and noun in nouns
        ):
            yield quantity, noun
