"""Which synset connects two concepts that match, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.wordnet import load_wordnet
from spicegraph_service.output.report.data import SynsetView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spicegraph_parser.lexicon import Concept
    from spicegraph_service.output.report.data import ImageView

__all__ = ["connecting_synset", "synset_views"]


def connecting_synset(one: Concept, other: Concept, parts: str) -> int:
    """Return the number of the synset that two concepts share; of several, that of the most frequent sense.

    Args:
        one: a concept.
        other: another, with a synset in common.
        parts: parts of speech, the likeliest first.
    """
    wordnet = load_wordnet()
    theirs = {sense for string in other.strings for sense in wordnet.senses(string)}
    mine = (sense for string in one.strings for sense in wordnet.senses(string, parts) if sense in theirs)
    # Two words may share a bare number that is a noun's synset for one and a verb's for the other.
    return next((sense.number for sense in mine), min(one.synsets & other.synsets))


def synset_views(images: Iterable[ImageView]) -> dict[int, tuple[SynsetView, ...]]:
    """Return what the synsets mean that connect tuples; a number may stand for several."""
    numbers = {n for image in images for c in image.candidates for t in c.candidate for n in t.how if n}
    wordnet = load_wordnet() if numbers else None
    return {
        number: tuple(SynsetView(wordnet.name(s), wordnet.gloss(s)) for s in wordnet.readings(number))
        for number in sorted(numbers)
        if wordnet is not None
    }
