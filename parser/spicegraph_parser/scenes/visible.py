"""What of a text can be seen, and why the rest is kept apart: summaries, places, impressions, nouns of no thing."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.scenes.words import MOST, WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence


class ApartReason(StrEnum):
    """Why a tuple is kept apart from what can be seen."""

    DENIED = "denied"
    HEDGED = "hedged"
    ABSTRACT = "abstract"
    PLACE = "place"
    SUMMARY = "summary"
    FAINT = "faint"


CERTAINTY: Final = {
    ApartReason.DENIED: 0.0,
    ApartReason.ABSTRACT: 0.05,
    ApartReason.HEDGED: 0.1,
    ApartReason.PLACE: 0.1,
    ApartReason.SUMMARY: 0.05,
    ApartReason.FAINT: 0.2,
}
"""How certain it is that what a tuple says can be seen; 1 for all others.

Rounded shares of what people drew all the same in 300 descriptions of DiscoSG; of places, summaries and what is faint,
in 100 (``training/scenes.md``).
"""

SAID: Final = frozenset(ApartReason) - {ApartReason.DENIED}
"""Why people do not draw what a text says of the picture; scores count it all the same."""

PICTURES: Final = WORDS["pictures"]
"""Nouns of what holds or frames a picture, or stands for what is named elsewhere."""


def is_summary(words: Sequence[str]) -> bool:
    """Return whether a sentence sums up what was said ("Overall, the image is"); words are in lower case."""
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
    """Return the last word of a name, which says what it is, in the singular."""
    return plural_lemma(name_noun(name))
