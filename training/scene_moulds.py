"""Captions put as descriptions put them: "a cup on the table" as "On the table sits a cup", with the same graph.

Region captions name a thing and what it stands on; descriptions start with the place, list several things, and say
"can be seen" and "features". The graphs of what is moulded are those that people drew of the captions.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from scene_data import Labelled
from spicegraph_scenes.network import ATTRIBUTE, OBJECT, PART, RELATION

Value = TypeVar("Value")
Piece = range | tuple[str, ...]
"""Positions of a sentence's words, or words that stand between them."""


def phrases(text: str) -> list[tuple[str, ...]]:
    """Return the phrases of a text, between lines and ``|``, as words."""
    return [tuple(phrase.split()) for line in text.splitlines() for phrase in line.split("|")]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ARTICLES = frozenset(_words("a an the some two three his her its their several many"))
PLACES = frozenset(
    _words(
        """on in at near by behind beside under above below over beneath against along across inside outside around
        atop underneath between among within next to front top of the left right side both sides edge middle center"""
    )
)
STANDING = {"standing": "stand", "sitting": "sit", "hanging": "hang", "lying": "lay", "laying": "lay"}
STANDING |= {"resting": "rest", "growing": "grow", "walking": "walk", "floating": "float", "flying": "fly"}
FINITE = {"lay": "lies"}
BE = frozenset(("is", "are", "being"))
HAVE = frozenset(("with", "has", "have", "having"))
WEAR = frozenset(("wearing", "wears"))
SEEN = phrases("""can be seen|is seen|are seen|is visible|are visible|is located|is positioned|is situated|is placed
are located|are positioned|is clearly visible""")
THERE = phrases("""there is|there are|there 's|we see|you can see|we can see|is|are|one can see""")
FEATURES = phrases(
    """features|boasts|has|displays|, with|, featuring|showcases|is equipped with|have|, complete with"""
)
DRESSED = phrases("""dressed in|clad in|is dressed in|, dressed in|is wearing|, wearing|sporting|donning|is clad in
, clad in|, who is wearing""")
COLOURS = _words("white black red blue green yellow brown gray orange pink purple silver beige tan gold")
COLOURED = phrases("""is|are|is predominantly|, painted in|is painted in shades of|, in hues of|is painted a vibrant
is mostly|, rendered in|is a vibrant|is painted in|, colored in|is a striking|, its color|displays hues of""")
SAID = phrases("""is|are|appears|looks|, which is|, visibly""")
ADVERBS = _words(
    """majestically prominently elegantly comfortably neatly proudly gracefully quietly securely casually
confidently leisurely patiently tall"""
)
BACKGROUND = ("in", "the", "background")


class Simple(NamedTuple):
    """A caption of two phrases, one relation between both, and the words that stand between."""

    first: range
    middle: range
    second: range
    ends: tuple[int, int]


def simple(own: Labelled) -> Simple | None:
    """Return the two phrases of a caption, if it has no more, and the subject stands first."""
    found = None
    for one, other in own.relations:
        if one < other:
            above = [pair for pair in own.pairs if min(pair) <= one < max(pair) and max(pair) > one]
            labelled = {at for pair in own.pairs for at in pair}
            inside = sorted(at for at in labelled if one < at <= other)
            second = inside[0]
            before = [at for at in labelled if at < second]
            crossing = [pair for pair in own.pairs if min(pair) < second <= max(pair)]
            if crossing == [(one, other)] and above and max(before) == one:
                found = one, other, second
    if found is None:
        return None
    one, other, second = found
    start = second - (own.words[second - 1].lower() in ARTICLES and second - 1 > one)
    if start == one + 1:
        return None
    return Simple(range(one + 1), range(one + 1, start), range(start, len(own.words)), (one, other))


def arranged(own: Labelled, pieces: Iterable[Piece], names: dict[tuple[int, int], str] | None = None) -> Labelled:
    """Return a sentence of pieces of another; ``names``: relations by positions in ``own`` that are new or renamed."""
    words: list[str] = []
    place: dict[int, int] = {}
    for piece in pieces:
        for item in piece:
            if isinstance(item, str):
                words.append(item)
            else:
                place[item] = len(words)
                words.append(own.words[item])
    relations = own.relations | (names or {})
    pairs = own.pairs | dict.fromkeys(names or {}, RELATION)
    return Labelled(
        tuple(words),
        {(place[a], place[b]): label for (a, b), label in pairs.items() if a in place and b in place},
        {(place[a], place[b]): name for (a, b), name in relations.items() if a in place and b in place},
        own.style,
    )


class Moulds:
    """Moulds captions; names of relations are those that captions have at least twice."""

    def __init__(self, data: Sequence[Labelled], random: np.random.Generator) -> None:
        self._random = random
        counts = Counter(name for own in data for name in own.relations.values())
        self._names = {name for name, count in counts.items() if count > 1}
        self._of_head: dict[str, list[tuple[Labelled, Simple]]] = {}
        for own in data:
            parts = simple(own)
            if parts is not None and own.words[parts.middle.start] != "'s":
                self._of_head.setdefault(own.words[parts.ends[0]].lower(), []).append((own, parts))

    def _one_of(self, values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return values[self._random.integers(len(values))]

    def _chance(self, share: float) -> bool:
        return bool(self._random.random() < share)

    def moulded(self, own: Labelled, other: Labelled) -> Labelled:
        """Return a caption as a description might put it, now and then with a phrase of the other in a list."""
        parts = simple(own)
        if self._chance(0.2):
            return self._predicated(own)
        if parts is None:
            return own
        second = simple(other)
        if second is not None and self._chance(0.35):
            own, parts = self._listed(own, parts, other, second)
        alike = self._of_head.get(own.words[parts.ends[0]].lower(), ())
        is_top = all(target != parts.ends[0] for _, target in own.relations)
        if is_top and len(alike) > 1 and self._chance(0.3):
            return self._chained(own, parts, *alike[self._random.integers(len(alike))])
        return self._put(own, parts)

    def _chained(self, own: Labelled, parts: Simple, other: Labelled, more: Simple) -> Labelled:
        """Return a caption that goes on with what another one says of a thing of the same name."""
        said = range(more.middle.start, more.second.stop)
        if other.words[said.start].lower() in BE and len(more.middle) > 1:
            said = range(said.start + 1, said.stop)
        size = len(own.words)
        both = together(own, other, said)
        added = range(size, size + len(said))
        name = {(parts.ends[0], more.ends[1] - said.start + size): other.relations[more.ends]}
        comma = (",",)
        if parts.first.stop == parts.ends[0] + 1 and self._chance(0.5):
            return arranged(both, (parts.first, comma, added, comma, parts.middle, parts.second), name)
        joint = (comma, (",", "and"), ("and",))[self._random.integers(3)]
        return arranged(both, (parts.first, parts.middle, parts.second, joint, added), name)

    def _predicated(self, own: Labelled) -> Labelled:
        """Return a caption of which an adjective that stood before a noun is said behind it ("the cat is white")."""
        labelled = {at for pair in own.pairs for at in pair}
        several = {one for one, label in ((pair[0], own.pairs[pair]) for pair in own.pairs) if label == PART}
        adjectives = [
            (one, other)
            for (one, other), label in own.pairs.items()
            if label == ATTRIBUTE and other < one and other not in several and {*range(other, one)} <= labelled
        ]
        if not adjectives:
            return own
        head, at = adjectives[self._random.integers(len(adjectives))]
        size = len(own.words)
        is_colour = own.words[at].lower() in COLOURS
        shown: list[Piece] = [range(at), range(at + 1, head + 1), self._one_of(COLOURED if is_colour else SAID)]
        shown.append(range(at, at + 1))
        if is_colour and self._chance(0.35):
            second = COLOURS[self._random.integers(len(COLOURS))]
            own = Labelled((*own.words, second), own.pairs | {(head, size): ATTRIBUTE}, own.relations)
            shown += [("and",), range(size, size + 1)]
        rest = range(head + 1, size)
        if rest and own.words[rest.start].lower() in BE:
            shown.append(("and",))
        elif rest:
            shown.append((",",))
        return arranged(own, (*shown, rest))

    def _put(self, own: Labelled, parts: Simple) -> Labelled:
        """Return a caption with its parts in the order, and with the words between, of a description."""
        first, middle, second, ends = parts
        between = [word for word in (own.words[at].lower() for at in middle) if word not in BE]
        if between and set(between) <= HAVE:
            return arranged(own, (first, self._one_of(FEATURES), second), self._renamed(own, ends, "have"))
        if between and set(between) <= WEAR:
            return arranged(own, (first, self._one_of(DRESSED), second))
        verb = STANDING.get(between[0]) if between else None
        place = tuple(between[1:] if verb else between)
        if not place or not set(place) <= PLACES:
            return own
        if self._chance(0.3):
            return arranged(own, (first, self._one_of(SEEN), (between[0],) if verb else (), place, second))
        return self._standing(own, parts, place, verb)

    def _standing(self, own: Labelled, parts: Simple, place: tuple[str, ...], verb: str | None) -> Labelled:
        """Return a caption that says first where something is, or how it stands there."""
        first, _, second, ends = parts
        name = own.relations[ends]
        comma = (",",) if self._chance(0.4) else ()
        if verb is not None and self._chance(0.4):
            adverb = (ADVERBS[self._random.integers(len(ADVERBS))],) if self._chance(0.6) else ()
            return arranged(own, (first, (FINITE.get(verb, f"{verb}s"),), adverb, place, second))
        if verb is None and self._chance(0.6):
            if self._chance(0.7):
                return arranged(own, (place, second, comma, self._one_of(THERE), first))
            return arranged(own, (place, second, (",",), first, self._one_of(SEEN) if self._chance(0.7) else ()))
        if verb is None:
            verb = ("stand", "sit", "hang", "rest", "lay")[self._random.integers(5)]
            name = f"{verb} {name}"
        if name not in self._names:
            return own
        finite = (FINITE.get(verb, f"{verb}s") if self._chance(0.6) else verb.replace("lay", "lie"),)
        order = (comma, first, finite) if comma else (finite, first)
        return arranged(own, (place, second, *order), self._renamed(own, ends, name))

    @staticmethod
    def _renamed(own: Labelled, ends: tuple[int, int], name: str) -> dict[tuple[int, int], str]:
        """Return what a relation, and all that a list shares it with, are called."""
        before = own.relations[ends]
        same = [pair for pair in own.relations if own.relations[pair] == before]
        return {pair: name for pair in same if pair[0] == ends[0] or pair[1] == ends[1]}

    def _listed(self, own: Labelled, parts: Simple, other: Labelled, more: Simple) -> tuple[Labelled, Simple]:
        """Return a caption in which a phrase of another one stands beside its first or its second."""
        phrase = range(more.second.start, more.second.stop) if self._chance(0.5) else more.first
        head = more.ends[phrase is not more.first]
        size = len(own.words)
        both = together(own, other, phrase)
        added = range(size, size + len(phrase))
        new = head - phrase.start + size
        joint = ("and",) if self._chance(0.85) else (",",)
        subject, target = parts.ends
        is_first = self._chance(0.3) and own.words[parts.middle.start] != "'s"
        pair = (new, target) if is_first else (subject, new)
        pieces = (
            (parts.first, joint, added, parts.middle, parts.second)
            if is_first
            else (parts.first, parts.middle, parts.second, joint, added)
        )
        made = arranged(both, pieces, {pair: own.relations[parts.ends]})
        by = len(joint) + len(added)
        if is_first:
            spans = [range(parts.first.stop + by), *(range(own.start + by, own.stop + by) for own in parts[1:3])]
            return made, Simple(*spans, (subject, target + by))
        return made, Simple(parts.first, parts.middle, range(parts.second.start, len(made.words)), parts.ends)


def together(own: Labelled, other: Labelled, inside: range) -> Labelled:
    """Return a caption with some words of another one behind it, and what both say of their own words."""
    size = len(own.words)
    return Labelled(
        (*own.words, *(other.words[at] for at in inside)),
        own.pairs | _shifted(other.pairs, inside, size),
        own.relations | _shifted(other.relations, inside, size),
    )


def _shifted(values: dict[tuple[int, int], Value], inside: range, size: int) -> dict[tuple[int, int], Value]:
    by = size - inside.start
    return {(a + by, b + by): value for (a, b), value in values.items() if a in inside and b in inside}


def in_background(own: Labelled, *, is_first: bool, joint: Sequence[str] = ()) -> Labelled:
    """Return a caption whose main thing is said to be in the background, which people draw; or the caption as it is.

    Args:
        own: the caption.
        is_first: the background stands in front of it.
        joint: words between both.
    """
    targets = {one for (_, one), label in own.pairs.items() if label in (ATTRIBUTE, RELATION)}
    main = [one for (one, two), label in own.pairs.items() if label == OBJECT and one == two and one not in targets]
    size = len(own.words)
    if not main or (len(main) > 1 and "and" not in own.words):
        return own
    background = range(size, size + 3)
    both = Labelled((*own.words, *BACKGROUND), own.pairs | {(size + 2, size + 2): OBJECT}, own.relations)
    order = (background, tuple(joint), range(size)) if is_first else (range(size), tuple(joint), background)
    return arranged(both, order, {(one, size + 2): "in" for one in main})
