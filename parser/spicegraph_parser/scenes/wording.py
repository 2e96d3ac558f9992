"""How descriptions put what captions put otherwise: "its white structure", "adorned with lights", "features a door".

The network learned from captions, which hardly have such words. Where it says nothing of them, these rules do; what it
says is kept.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from spicegraph_parser.parse import word_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

Pair = tuple[int, int]
Relation = tuple[int, int, str]


_COLOURS: Final = word_set(
    """white black red blue green yellow brown gray grey orange pink purple silver beige tan gold golden maroon teal
    turquoise crimson navy violet bronze cream ivory burgundy lavender vibrant bright"""
)
_HUES: Final = word_set("hue hues color colors colour colours shade shades tone tones tint tints scheme expanse")
_SURFACES: Final = word_set("structure structures surface surfaces exterior exteriors facade facades finish")
_APART: Final = _HUES | _SURFACES
_MIXES: Final = _HUES | word_set("mix blend mixture combination canvas")
_OWNERS: Final = word_set("its their")
_JOINTS: Final = word_set(", and or &")
_BE: Final = word_set("is are")
_LINKS: Final = _BE | word_set("who which that has have been also")
_BEFORE_COLOURS: Final = frozenset({"JJ", "RB", "DT"})


def colours_apart(
    words: Sequence[str], tags: Sequence[str], objects: Collection[int], attributes: Sequence[Pair]
) -> list[Pair]:
    """Return a sentence's attributes, and the colours that it says apart from what has them.

    "Its white structure" and "a red hue" are colours of what has the structure and the hue, whatever the network says;
    in "shades of brown and gray" and "is a deep blue" they are attributes unless the network says otherwise.

    Args:
        words: in lower case.
        tags: of the words.
        objects: positions of the objects.
        attributes: pairs of an object and an attribute, as the network labels them.
    """
    out = list(attributes)
    if _COLOURS.isdisjoint(words):
        return out
    said = {colour for _, colour in attributes}
    at = 0
    while at < len(words):
        if words[at] not in _COLOURS:
            at += 1
            continue
        colours, end = _run(words, tags, at)
        start = next((position for position in range(at - 1, -1, -1) if tags[position] not in _BEFORE_COLOURS), -1)
        is_apart = end < len(words) and words[end] in _APART
        of_noun = {(end, colour) for colour in colours} & set(out) if is_apart else set()
        owner = _coloured(words, tags, objects, (start, end))
        if owner is not None:
            free = [colour for colour in colours if colour not in said or (end, colour) in of_noun]
            out = [*(pair for pair in out if pair not in of_noun), *((owner, colour) for colour in free)]
        at = colours[-1] + 1
    return out


def _run(words: Sequence[str], tags: Sequence[str], at: int) -> tuple[list[int], int]:
    """Return the positions of the colours that a list of them starts with, and where what follows the list starts."""
    colours = [at]
    for position in range(at + 1, len(words)):
        if words[position] in _COLOURS:
            colours.append(position)
        elif words[position] not in _JOINTS and tags[position] != "JJ":
            break
    end = colours[-1] + 1
    return colours, end + sum(1 for _ in takewhile(lambda tag: tag == "JJ", tags[end:]))


def _coloured(words: Sequence[str], tags: Sequence[str], objects: Collection[int], around: Pair) -> int | None:
    """Return what has the colours between two positions, if they are said apart from it; or a pronoun that owns it."""
    start, end = around
    behind = words[end] if end < len(words) else ""
    before = words[start] if start >= 0 else ""
    if behind in _HUES and words[end + 1 : end + 2] == ["of"] and _COLOURS.isdisjoint(words[end + 2 : end + 4]):
        return _only_noun(range(end + 2, len(words)), tags, objects)  # "the red hues of the sky"
    if behind in _APART and before in _OWNERS:
        return start
    skipped = 0
    if behind in _SURFACES and before != "'s":
        return None
    if behind not in _APART:
        if before not in _BE and not (before == "of" and words[start - 1 : start] and words[start - 1] in _MIXES):
            return None
        skipped = 1 if before in _BE else 2
    return _only_noun(range(start - skipped, -1, -1), tags, objects)


def _only_noun(places: Iterable[int], tags: Sequence[str], objects: Collection[int]) -> int | None:
    """Return the first noun of given places, if it is an object."""
    noun = next((at for at in places if tags[at].startswith("NN")), None)
    return noun if noun in objects else None


_ADORNED: Final = {
    "lined": "line",
    **dict.fromkeys(("adorned", "decorated", "embellished"), "adorn"),
    **dict.fromkeys(("covered", "carpeted", "blanketed"), "cover"),
}
_FEATURES: Final = word_set("features featuring boasts boasting displays displaying bears bearing showcases houses has")
_WEARS: Final = word_set("sporting sports sport donning dons wears wearing")
_HAVE_OR_WEAR: Final = dict.fromkeys(_FEATURES, "have") | dict.fromkeys(_WEARS, "wear")
_IN_PHRASES: Final = frozenset({"DT", "JJ", "JJR", "CD", "RB", "NN", "NNP", "PRP$", "VBN"})


def stated(
    words: Sequence[str], tags: Sequence[str], objects: Collection[int], relations: Sequence[Relation]
) -> Iterator[Relation]:
    """Yield relations that a sentence states of objects that the network relates to none.

    What adorns, lines or covers something is the subject ("a wall adorned with tiles": tiles adorn a wall), as people
    draw it; what is "equipped with" something has it. The second of two in a list ("holds a cup and a plate") has the
    relations that the first has to what stands before both.

    Args:
        words: in lower case.
        tags: of the words.
        objects: positions of the objects.
        relations: those that the network labels: subject, object, name.
    """
    related = {end for relation in relations for end in relation[:2]}
    ordered = sorted(objects)
    for noun in ordered:
        if noun == ordered[0] or noun in related:
            continue
        before = (at for at in range(noun - 1, -1, -1) if tags[at] not in _IN_PHRASES or at in objects)
        verb = next(before, 0)
        if words[verb] == "with":
            verb = next((at for at in range(verb - 1, -1, -1) if tags[at] != "RB"), 0)
            if words[verb] in _ADORNED:
                yield noun, _subject(words, tags, ordered, verb), _ADORNED[words[verb]]
            elif tags[verb] == "VBN":
                yield _subject(words, tags, ordered, verb), noun, "have"
        elif words[verb] == "and":
            yield from _shared(noun, next((at for at in range(verb - 1, -1, -1) if words[at] != ","), 0), relations)
        elif words[verb] in _HAVE_OR_WEAR and tags[verb].startswith("VB"):
            yield _subject(words, tags, ordered, verb), noun, _HAVE_OR_WEAR[words[verb]]


def _shared(noun: int, other: int, relations: Sequence[Relation]) -> Iterator[Relation]:
    """Yield the relations of an object that another one shares with it: to what stands before it."""
    for subject, target, name in relations:
        if target == other and subject < other:
            yield subject, noun, name
        elif subject == other and target < other:
            yield noun, target, name


def _subject(words: Sequence[str], tags: Sequence[str], ordered: Sequence[int], verb: int) -> int:
    """Return the object right before a verb, but for adverbs and the like; else the first one."""
    near = next((at for at in range(verb - 1, -1, -1) if tags[at] != "RB" and words[at] not in _LINKS), 0)
    return near if near in ordered else ordered[0]
