"""What of a description can be seen: words that it denies, words that it hedges, and nouns of no thing in the picture.

Read from words and tags alone. A cue has a scope, which ends where its phrase or clause ends: "no cars on the street"
denies cars, not the street; "suggesting a busy day" hedges up to the end of its clause.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from spicegraph_parser.spice.parse import tables, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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

_ENDS: Final = word_set(
    ", . ; : ! ? -- ( ) but while although though except whereas however yet because which who where"
)
_FINITE: Final = frozenset({"VBZ", "VBP", "VBD", "MD"})
_PREPOSITIONS: Final = frozenset({"IN", "TO"})

_LIKELY: Final = word_set(tables(__package__)["likely"])
_SEEMS: Final = word_set("appear appears appeared appearing seem seems seemed seeming look looks looking")
_HINTS: Final = word_set("hint hints hinted hinting")
_AS_IF: Final = word_set("if though")
_MODALS: Final = word_set("might may could would")
_SUMMARIES: Final = word_set("overall altogether")
_IN_SUMMARIES: Final = word_set("summary conclusion essence short all total")
_HEDGES: Final = _LIKELY | _SEEMS | _HINTS | _MODALS | {"as"}

PICTURES: Final = word_set(tables(__package__)["pictures"])
"""Nouns of what holds or frames a picture, or stands for what is named elsewhere."""

DEPICTIONS: Final = word_set(tables(__package__)["depictions"])
"""Nouns that are "of" what they show, where a part is what its whole has."""


IMPRESSIONS: Final = word_set("distinctive striking unique notable remarkable noticeable visible stark")
"""What is said of how something strikes the viewer; people hardly ever draw it."""


def hedged(words: Sequence[str], tags: Sequence[str]) -> list[ApartReason | None]:
    """Return of each word of a sentence, in lower case, whether it is hedged; ``None`` where it is not."""
    out: list[ApartReason | None] = [None] * len(words)
    if not _HEDGES.isdisjoint(words):
        for at in _hedged(words, tags):
            out[at] = ApartReason.HEDGED
    return out


def is_summary(words: Sequence[str]) -> bool:
    """Return whether a sentence sums up what was said ("Overall, the image is"); words are in lower case."""
    start = tuple(words[:2])
    return bool(start) and (start[0] in _SUMMARIES or (start[0] == "in" and start[-1] in _IN_SUMMARIES))


_PLACES: Final = frozenset({"IN", "TO", "RP"})


def is_place(tags: Sequence[str]) -> bool:
    """Return whether an attribute's tags are those of a place in the picture ("in the distance", "on the left")."""
    return tags[0] in _PLACES or (tags[0] == "DT" and len(tags) > 1)  # "two" may be said as "both"


def name_noun(name: str) -> str:
    """Return the noun of an object's name, its last word, which says whether it can be seen.

    >>> name_noun("lively scene")
    'scene'
    """
    return name.rpartition(" ")[2]


def _hedged(words: Sequence[str], tags: Sequence[str]) -> Iterator[int]:
    """Yield the positions of hedged words: to the end of a clause, or to what is said of its first noun."""
    for at, word in enumerate(words):
        behind, next_one = [*words[at + 1 : at + 3], "", ""][:2]
        tag = tags[at + 1] if at + 1 < len(tags) else ""
        if word in _LIKELY or (word in _HINTS and behind in {"at", "that"}):
            start = at + 1
        elif (word == "as" and behind in _AS_IF) or (word in _SEEMS and behind in {"to", "like"}):
            start = at + 2
        elif word in _SEEMS and behind == "as" and next_one in _AS_IF:
            start = at + 3
        elif (word in _SEEMS and not word.startswith("look") and tag in {"JJ", "VBN", "RB"}) or (
            word in _MODALS and tags[at] == "MD" and words[at + 1 : at + 3] != ["be", "seen"]
        ):
            start = at + 1
        else:
            continue
        has_noun = False
        for inner in range(start, len(words)):
            if words[inner] in _ENDS or (has_noun and words[inner] != "of" and tags[inner] in _FINITE | _PREPOSITIONS):
                break
            has_noun = has_noun or tags[inner].startswith("NN")
            yield inner
