"""Wholes and parts of a description, and who wears what: relations that people draw though no word states them.

A pass over the things that are drawn: what belongs to nothing yet is given to the nearest thing that such a part
belongs to in the graphs that people drew of captions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.scenes.visible import name_noun
from spicegraph_parser.spice.discourse import PERSONS
from spicegraph_parser.spice.parse import tables, word_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

HAVE: Final = "have"
WEAR: Final = "wear"
WOMEN: Final = word_set("woman girl lady wife mother mom sister daughter bride girlfriend waitress female")
MEN: Final = word_set("man boy guy gentleman husband father dad brother son groom boyfriend waiter male")
_ANIMALS: Final = word_set("dog cat")
_WEARERS: Final = _ANIMALS | PERSONS | WOMEN | MEN | word_set("people individual companion figure")
GARMENTS: Final = word_set(tables(__package__)["garments"])
"""Garments, by the form that :func:`singular` gives."""
BODY_PARTS: Final = word_set(
    "hand arm leg paw foot feet head eye ear tail wing neck face hair coat fur mane beak eyebrow beard"
)
OF_THE_LIVING: Final = (
    BODY_PARTS | GARMENTS | word_set("body back torso chest shoulder mouth nose knee finger attire ensemble clothing")
)
_BELONGING: Final = frozenset([HAVE, WEAR, "hold", "carry"])

_MOST_NAMES: Final = 100_000

_FULL_TEXT: Final = """
    with,fill with,dot with,brim with,teem with,equip with,pack with,compose of,characterize by,speckle with,lace with,
    top with,crown with,dust with,sprinkle with,stud with,arm with,bustle with,boast,feature"""
_FULL: Final = frozenset(map(str.strip, _FULL_TEXT.split(",")))  # What people draw as "have" in a description.
_TURNED: Final = {f"{verb} with": verb for verb in ("adorn", "decorate", "line", "cover", "embellish")}
_COMPARING: Final = word_set("contrast blend match complement add")


@lru_cache(maxsize=_MOST_NAMES)
def singular(name: str) -> str:
    """Return the last word of a name, which says what it is, in the singular."""
    return plural_lemma(name_noun(name))


def is_worn(owner: str, name: str) -> bool:
    """Say whether the second is a garment, and the first may wear it."""
    garment, wearer = singular(name), singular(owner)
    return garment in GARMENTS and wearer in _WEARERS and not (garment == "coat" and wearer in _ANIMALS)


def described(subject: str, target: str, name: str) -> tuple[str, bool]:
    """Return the name that people give to a relation in a description, and whether its ends change places."""
    if name in _TURNED:
        return _TURNED[name], True
    if name in _FULL or name == HAVE:
        return (WEAR if is_worn(subject, target) else HAVE), False
    return name, False


def is_comparing(name: str) -> bool:
    """Say whether a relation only compares what it relates ("contrast with", "stand out against")."""
    return name.partition(" ")[0] in _COMPARING or name.startswith("stand out")


def is_of_garments(subject: str, target: str, name: str) -> bool:
    """Say whether a relation gives a garment to what can't have it: another garment, or hair."""
    return name in _BELONGING and singular(target) in GARMENTS and singular(subject) in GARMENTS | BODY_PARTS


def belonging(
    objects: Sequence[tuple[str, int]],
    relations: Collection[tuple[str, ...]],
    sentence_of: Sequence[int],
    parts: Collection[str],
) -> Iterator[tuple[int, int, str]]:
    """Yield whole, part (indices of objects) and relation of parts that nothing owns: the nearest whole that fits."""
    owned = {target for _, target, name in relations if name in _BELONGING}
    related = {frozenset(relation[:2]) for relation in relations}
    kinds = [singular(name) for name, _ in objects]
    for index, (name, at) in enumerate(objects):
        if name in owned:
            continue
        wholes = [
            whole
            for whole, (other, position) in enumerate(objects)
            if whole != index
            and 0 <= sentence_of[at] - sentence_of[position] <= 1
            and (f"{kinds[whole]}|{kinds[index]}" in parts or is_worn(other, name))
        ]
        if wholes:
            whole = min(wholes, key=lambda place: abs(objects[place][1] - at))
            if frozenset((objects[whole][0], name)) not in related:
                yield whole, index, described(objects[whole][0], name, HAVE)[0]
