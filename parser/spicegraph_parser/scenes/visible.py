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

_NEGATED_VERBS: Final = word_set("not n't never cannot")
_NEGATED_NOUNS: Final = word_set("no without neither nor")
_JOINTS: Final = word_set("neither nor")
_NOTHING: Final = word_set("nothing nobody")
_OF_LACK: Final = word_set("devoid absence lack void bereft empty free instead rather")  # with "of", "from" or "than"
_LACKS: Final = word_set("lacks lacked lacking")
_LINKS: Final = word_set("of from than")
_NO_DENIAL: Final = word_set(
    "only just merely simply longer far unlike necessarily until yet doubt matter parking smoking"
)
_ARTICLES: Final = word_set("a an the")
_SEEN: Final = word_set("visible present seen shown depicted pictured discernible included evident apparent")
_GONE: Final = word_set("absent missing")
_BETWEEN: Final = word_set("be clearly readily fully immediately easily directly actually any")
_BE: Final = word_set("is are was were being be 's 're")
_ENDS: Final = word_set(
    ", . ; : ! ? -- ( ) but while although though except whereas however yet because which who where"
)
_FINITE: Final = frozenset({"VBZ", "VBP", "VBD", "MD"})
_PARTICIPLES: Final = frozenset({"VBG", "VBN"})
_PREPOSITIONS: Final = frozenset({"IN", "TO"})
_FAR_OR: Final = 6  # words within which "or" continues a list behind a comma

_LIKELY: Final = word_set(tables(__package__)["likely"])
_SEEMS: Final = word_set("appear appears appeared appearing seem seems seemed seeming look looks looking")
_HINTS: Final = word_set("hint hints hinted hinting")
_AS_IF: Final = word_set("if though")
_MODALS: Final = word_set("might may could would")
_SUMMARIES: Final = word_set("overall altogether")
_IN_SUMMARIES: Final = word_set("summary conclusion essence short all total")
_DENIALS: Final = _NEGATED_VERBS | _NEGATED_NOUNS | _NOTHING | _OF_LACK | _LACKS | _GONE
_HEDGES: Final = _LIKELY | _SEEMS | _HINTS | _MODALS | {"as"}

PICTURES: Final = word_set(tables(__package__)["pictures"])
"""Nouns of what holds or frames a picture, or stands for what is named elsewhere."""

DEPICTIONS: Final = word_set(tables(__package__)["depictions"])
"""Nouns that are "of" what they show, where a part is what its whole has."""


IMPRESSIONS: Final = word_set("distinctive striking unique notable remarkable noticeable visible stark")
"""What is said of how something strikes the viewer; people hardly ever draw it."""


def standings(forms: Sequence[str], tags: Sequence[str]) -> list[ApartReason | None]:
    """Return why each word of a sentence does not say what can be seen; ``None`` where it does."""
    words = [form.lower() for form in forms]
    out: list[ApartReason | None] = [None] * len(words)
    if not _HEDGES.isdisjoint(words):
        for at in _hedged(words, tags):
            out[at] = ApartReason.HEDGED
    if not _DENIALS.isdisjoint(words):
        for at in _denied(words, tags):
            out[at] = ApartReason.DENIED
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


def _denied(words: Sequence[str], tags: Sequence[str]) -> Iterator[int]:
    """Yield the positions of words that are denied."""
    for at, word in enumerate(words):
        behind = words[at + 1] if at + 1 < len(words) else ""
        if word in _NOTHING and behind != "like":  # "nothing like a dog" is no denial
            yield at
        elif word in _NEGATED_VERBS and behind not in _NO_DENIAL:
            predicate = next((p for p in range(at + 1, len(words)) if words[p] not in _BETWEEN), len(words))
            if words[predicate : predicate + 1] and words[predicate] in _SEEN:
                yield from _clause_before(words, at)
            else:
                yield from _phrase(words, tags, at + 1, verb=True)
        elif word in _NEGATED_NOUNS:
            is_name = word == "no" and at > 0 and words[at - 1] in _ARTICLES  # "a no parking sign"
            start = next((p for p in range(at, -1, -1) if words[p] == "neither"), -1)
            # "neither he nor she has" begins a clause, and denies its verb
            is_joint = word in _JOINTS and (start == 0 or (start > 0 and words[start - 1] in _ENDS))
            if not is_name and not is_joint and behind not in _NO_DENIAL:
                yield from _phrase(words, tags, at + 1)
        elif word in _LACKS:
            yield from _phrase(words, tags, at + 1)
        elif word in _OF_LACK and behind in _LINKS:
            yield from _phrase(words, tags, at + 2)
        elif word in _GONE and at and words[at - 1] in _BE:
            yield from _clause_before(words, at)


def _clause_before(words: Sequence[str], end: int) -> range:
    """Return the positions from the start of a clause to a predicate that denies its subject."""
    start = next((at for at in range(end - 1, -1, -1) if words[at] in _ENDS or words[at] == "'s"), -1)
    return range(start + 1, end)


def _phrase(words: Sequence[str], tags: Sequence[str], start: int, *, verb: bool = False) -> Iterator[int]:
    """Yield the positions of a noun phrase, or of several that "or" joins; ``verb``: of a verb and its object."""
    has_noun = False
    for at in range(start, len(words)):
        word, tag = words[at], tags[at]
        if word in {"or", "nor", "any"}:
            continue
        if has_noun and ((word == "," and "or" in words[at : at + _FAR_OR]) or words[at : at + 2] == ["and", "no"]):
            continue
        if has_noun and (word == "and" or tag in _PARTICIPLES or tag in _FINITE):
            return
        inside = word == "of" and (has_noun or not verb)
        if (
            word in _ENDS
            or (tag in _FINITE and not verb)
            or (tag in _PREPOSITIONS and not inside and (has_noun or verb))
        ):
            return
        has_noun = has_noun or tag.startswith("NN") or word == "one"  # "no one on the swing"
        yield at


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
