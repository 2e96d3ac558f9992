"""The rules that explain a tuple without a partner, and what they see: one match, with its near misses."""
# Near is what has the same stem, or what WordNet calls a kind of the other, a few steps away ("puppy" for "dog"). Only
# the most frequent sense of each word is compared: over all senses, captions connect "runway" with "dog" (a runway is a
# track, a track is trod by a dog ...). "man" and "woman", two steps apart over "adult", are not near.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.spice.graph import SceneTuple
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scorer.metrics.porter import stem
from spicegraph_scorer.metrics.spice.categories import COLORS, SIZES

if TYPE_CHECKING:
    from spicegraph_parser.spice.index import Concept
    from spicegraph_scorer.metrics.spice.match import Match


def agreement(scene_tuple: SceneTuple) -> int:
    """Return how many captions say the tuple; of a reference tuple, how many references agree on it."""
    return len({caption for caption, _ in scene_tuple.evidence})


def word(scene_tuple: SceneTuple, slot: int) -> str:
    """Return the string that most captions behind the tuple use for a slot: one name of "couch/sofa" in all images."""
    strings = scene_tuple.concepts[slot].strings
    if len(strings) == 1:
        return strings[0]
    used = Counter(w for _, fact in scene_tuple.evidence for w in fact.words if w in strings)
    return max(strings, key=used.__getitem__)


class MatchView:
    """The tuples of a match by length, and what the other side knows of an object."""

    __slots__ = ("match", "matched_objects", "missed", "objects", "reference")

    def __init__(self, match: Match) -> None:
        self.match = match
        self.reference: dict[int, list[int]] = {1: [], 2: [], 3: []}
        for index, reference in enumerate(match.reference):
            self.reference[len(reference.concepts)].append(index)
        self.missed = {index for index, partners in enumerate(match.reference_partners) if not partners}
        self.objects = [reference.concepts[0] for reference in match.reference if len(reference.concepts) == 1]
        self.matched_objects = [
            candidate.concepts[0]
            for candidate, partners in zip(match.candidate, match.candidate_partners, strict=True)
            if partners and len(candidate.concepts) == 1
        ]

    def is_known(self, concept: Concept) -> bool:
        """Say whether the references have an object."""
        return any(concept.shares(other) for other in self.objects)

    def is_named(self, concept: Concept) -> bool:
        """Say whether the candidate names an object of the references."""
        return any(concept.shares(other) for other in self.matched_objects)

    def references(self, length: int) -> Iterator[tuple[int, SceneTuple]]:
        """Yield the reference tuples of a length, those that most references agree on first."""
        reference = self.match.reference
        for index in sorted(self.reference[length], key=lambda index: agreement(reference[index]), reverse=True):
            yield index, reference[index]


_STEPS = {"n": 3, "v": 2, "a": 1}  # How many steps broader or narrower still count as near, by part of speech.

_REMEMBERED = 50_000
_stem = lru_cache(maxsize=_REMEMBERED)(stem)


@dataclass(frozen=True, slots=True)
class Near:
    """How the candidate's word is near that of the references: ``same stem``, or it is ``broader`` or ``narrower``."""

    how: str
    distance: int | None = None  # steps between their synsets in WordNet; None for a stem

    def __str__(self) -> str:
        """Return it in words, such as ``narrower, WordNet distance 2``."""
        return self.how if self.distance is None else f"{self.how}, WordNet distance {self.distance}"


def near_concepts(candidate: Concept, reference: Concept, parts: str = "n") -> Near | None:
    """Return how a candidate's concept is near a reference's: by stem, else by WordNet under some parts of speech."""
    if {_stem(w) for w in candidate.strings} & {_stem(w) for w in reference.strings}:
        return Near("same stem")
    nears = [near for a in candidate.strings for b in reference.strings for near in _by_wordnet(a, b, parts)]
    return min(nears, key=lambda near: near.distance or 0, default=None)


@lru_cache(maxsize=_REMEMBERED)
def _by_wordnet(candidate: str, reference: str, parts: str) -> tuple[Near, ...]:
    wordnet = load_wordnet()
    nears: list[Near] = []
    for part in parts:
        sense, other_sense = wordnet.common_sense(candidate, part), wordnet.common_sense(reference, part)
        if sense is None or other_sense is None:
            continue
        up, down = wordnet.ancestors(sense).get(other_sense), wordnet.ancestors(other_sense).get(sense)
        for how, steps in (("narrower", up), ("broader", down)):
            if steps is not None and steps <= _STEPS[part]:
                nears.append(Near(how, wordnet.distance(sense, other_sense)))
    return tuple(nears)


class ErrorSide(StrEnum):
    """Whose tuple is without a partner."""

    INVENTED = "invented"
    MISSED = "missed"


class ErrorCause(NamedTuple):
    """What a rule says of a tuple: the words under which it is counted, and its counterpart, if any."""

    words: tuple[str, ...]
    counterpart: int | None = None  # an index into the other side's tuples
    near: Near | None = None  # how a near miss is near it


Rule = Callable[[MatchView, SceneTuple], ErrorCause | None]  # Explains a tuple, or ``None``.


@dataclass(frozen=True, slots=True)
class Chance:
    """The tuples that can have errors of some kinds: what their rates are shares of."""

    side: ErrorSide  # whose tuples
    length: int  # how long they are
    title: str  # what they are, in words
    known: bool = False  # only those whose objects the other side has, too
    words: frozenset[str] | None = None  # only attributes from this list; None: whatever they say
    others: bool = False  # only attributes that are neither colours nor counts nor sizes

    def holds(self, view: MatchView, scene_tuple: SceneTuple, *, matched: bool) -> bool:
        """Say whether a tuple of the side and length is one of them."""
        if self.words is not None or self.others:
            name = scene_tuple.concepts[1].label if self.side is ErrorSide.INVENTED else word(scene_tuple, 1)
            if name not in self.words if self.words is not None else name in _LISTED:
                return False
        has = view.is_known if self.side is ErrorSide.INVENTED else view.is_named
        return not self.known or matched or all(has(scene_tuple.concepts[slot]) for slot in range(0, self.length, 2))


_NUMERALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

# Counts by their words, which are SPICE's, and by their digits, which SPICE 1.0 does not count.
NUMBERS: Mapping[str, int] = {
    form: value for value, name in enumerate(_NUMERALS, start=1) for form in (name, str(value))
}
COUNTS = frozenset(NUMBERS)
_LISTS: Mapping[frozenset[str], str] = {COLORS: "Color", COUNTS: "Cardinality", SIZES: "Size"}
_LISTED = COLORS | COUNTS | SIZES


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of error: the tuples that it may explain, and the rule that does."""

    side: ErrorSide
    length: int
    title: str
    columns: tuple[str, ...]  # what the words of a Finding hold
    rule: Rule
    among: str  # the key in CHANCES of the tuples that can have it
    primary: bool = True  # False: follows from another one (an attribute of an invented object)

    @property
    def category(self) -> str:
        """The most special of SPICE's categories that all its tuples belong to."""
        words = CHANCES[self.among].words
        return ("Object", "Attribute", "Relation")[self.length - 1] if words is None else _LISTS[words]

    @property
    def near(self) -> bool:
        """Whether it is of what is almost right."""
        return self.columns == _NEAR


@dataclass(frozen=True, slots=True)
class Finding:
    """The explanation of one tuple without a partner."""

    kind: str
    words: tuple[str, ...]
    tuple: int  # its index among the tuples of its side
    counterpart: int | None
    agreeing: int  # the number of captions that say it
    near: Near | None = None


_OPPOSITES = (
    (
        word_set("big large huge enormous giant gigantic great massive colossal mammoth immense vast oversize"),
        word_set("small little tiny mini miniature minuscule microscopic teeny petite wee baby"),
    ),
    (word_set("tall towering lanky"), word_set("short small squat")),
    (word_set("fat obese overweight plump chubby pudgy"), word_set("thin skinny slim lean scrawny underweight")),
    (word_set("wide broad"), word_set("narrow slim thin")),
    (word_set("thick thickset"), word_set("thin slim")),
    (word_set("heavy"), word_set("light underweight")),
)


def are_opposite(first: str, second: str) -> bool:
    """Say whether two size words mean opposite sizes."""
    return any((first in a and second in b) or (first in b and second in a) for a, b in _OPPOSITES)


def _near_object(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain "puppy" where the references have a missed "dog"."""
    missed = ((index, reference) for index, reference in view.references(1) if index in view.missed)
    return _nearest(candidate, missed, 0, "n")


def _nearest(
    candidate: SceneTuple, missed: Iterable[tuple[int, SceneTuple]], slot: int, parts: str
) -> ErrorCause | None:
    """Explain a word by the nearest one that the references have in its place, if one is near."""
    nears = [
        (near.distance or 0, order, ErrorCause((word(reference, slot), word(candidate, slot), str(near)), index, near))
        for order, (index, reference) in enumerate(missed)
        if (near := near_concepts(candidate.concepts[slot], reference.concepts[slot], parts)) is not None
    ]
    return min(nears)[2] if nears else None


def _object(_view: MatchView, scene_tuple: SceneTuple) -> ErrorCause:
    """Explain an object that the other side lacks."""
    return ErrorCause((word(scene_tuple, 0),))


def _follows_from_object(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a tuple that can't match, since one of its objects is in no reference."""
    ends = [slot for slot in (0, 2) if slot < len(candidate.concepts)]
    unknown = [slot for slot in ends if not view.is_known(candidate.concepts[slot])]
    return ErrorCause((word(candidate, unknown[0]), word(candidate, 1))) if unknown else None


def _rivals(view: MatchView, candidate: SceneTuple, words: frozenset[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the missed attributes of the same object from the same word list: index, their word, my word."""
    said = candidate.concepts[1].label
    if said in words:
        for index, reference in view.references(2):
            if index in view.missed and reference.concepts[0].shares(candidate.concepts[0]):
                rival = word(reference, 1)
                if rival in words:
                    yield index, rival, said


def _color(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a blue car where the references have a red one."""
    for index, rival, word in _rivals(view, candidate, COLORS):
        return ErrorCause((rival, word), index)
    return None


def _count(differences: range) -> Rule:
    """Make the rule for counts with such a difference; of several rival counts, the nearest is meant."""

    def rule(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
        rivals = sorted(
            (abs(NUMBERS[rival] - NUMBERS[word]), order, index, rival, word)
            for order, (index, rival, word) in enumerate(_rivals(view, candidate, COUNTS))
        )
        for difference, _, index, rival, word in rivals[:1]:
            if difference in differences:
                return ErrorCause((rival, word), index)
        return None

    return rule


def _size(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a small dog where the references have a big one."""
    for index, rival, word in _rivals(view, candidate, SIZES):
        if are_opposite(rival, word):
            return ErrorCause((rival, word), index)
    return None


def _misplaced(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a brown dog beside a white horse where the horse is brown."""
    for index, reference in view.references(2):
        same = reference.concepts[1].shares(candidate.concepts[1])
        if same and not reference.concepts[0].shares(candidate.concepts[0]):
            return ErrorCause((word(candidate, 1), word(reference, 0), word(candidate, 0)), index)
    return None


def _near_attribute(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a "color" umbrella where the references have a missed "colorful"."""
    owner = candidate.concepts[0]
    missed = (
        (index, reference)
        for index, reference in view.references(2)
        if index in view.missed and reference.concepts[0].shares(owner)
    )
    return _nearest(candidate, missed, 1, "an")


def _attribute_of(words: frozenset[str] | None) -> Rule:
    """Make the rule for attributes of a word list that nothing in the references explains."""

    def rule(_view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
        fits = words is None or candidate.concepts[1].label in words
        return ErrorCause((word(candidate, 1), word(candidate, 0))) if fits else None

    return rule


def _swapped(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a horse that rides a man."""
    subject, relation, target = candidate.concepts
    for index, reference in view.references(3):
        first, name, second = reference.concepts
        if name.shares(relation) and first.shares(target) and second.shares(subject):
            return ErrorCause((word(reference, 0), word(reference, 1), word(reference, 2)), index)
    return None


def _near_relation(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a man who holds a bat where the references have him grip it."""
    missed = (
        (index, reference)
        for index, reference in view.references(3)
        if index in view.missed and _same_ends(candidate, reference)
    )
    return _nearest(candidate, missed, 1, "v")


def _same_ends(candidate: SceneTuple, reference: SceneTuple) -> bool:
    """Say whether both objects are right, in their places."""
    return all(reference.concepts[slot].shares(candidate.concepts[slot]) for slot in (0, 2))


def _relation_confused(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a cat under a mat where it is on it: both objects are right, in their places."""
    for index, reference in view.references(3):
        if _same_ends(candidate, reference):
            return ErrorCause((word(reference, 1), word(candidate, 1)), index)
    return None


def _relation_moved(view: MatchView, candidate: SceneTuple) -> ErrorCause | None:
    """Explain a man who rides a horse where he rides a bike, and the horse is there too."""
    for index, reference in view.references(3):
        shared = [a.shares(b) for a, b in zip(candidate.concepts, reference.concepts, strict=True)]
        if shared[1] and (shared[0] or shared[2]):
            slot = 2 if shared[0] else 0
            return ErrorCause((word(reference, 1), word(reference, slot), word(candidate, slot)), index)
    return None


def _relation(_view: MatchView, candidate: SceneTuple) -> ErrorCause:
    """Explain a relation between known objects that the references do not connect so."""
    return ErrorCause((word(candidate, 0), word(candidate, 1), word(candidate, 2)))


_SAID_FOR = ("References say", "Candidate says")
_NEAR = ("References say", "Candidate says", "How near")
_ATTRIBUTE = ("Object", "Attribute")
_ATTRIBUTE_OF = ("Attribute", "Of")
_OF_OBJECT = ("Object", "Relation")
_MISPLACED = ("Attribute", "Belongs to", "Given to")
_RELATION = ("Subject", "Relation", "Object")
_MOVED = ("Relation", "References have it with", "Candidate has it with")

_IN = ErrorSide.INVENTED
_OUT = ErrorSide.MISSED
CHANCES: Mapping[str, Chance] = {
    "objects_said": Chance(_IN, 1, "objects said"),
    "attributes_said": Chance(_IN, 2, "attributes said"),
    "attributes_of_right": Chance(_IN, 2, "attributes said of right objects", known=True),
    "colors_of_right": Chance(_IN, 2, "colors said of right objects", known=True, words=COLORS),
    "counts_of_right": Chance(_IN, 2, "counts said of right objects", known=True, words=COUNTS),
    "sizes_of_right": Chance(_IN, 2, "sizes said of right objects", known=True, words=SIZES),
    "others_of_right": Chance(_IN, 2, "other attributes said of right objects", known=True, others=True),
    "relations_said": Chance(_IN, 3, "relations said"),
    "relations_of_right": Chance(_IN, 3, "relations said between right objects", known=True),
    "objects": Chance(_OUT, 1, "objects in the references"),
    "attributes": Chance(_OUT, 2, "attributes in the references"),
    "colors_of_named": Chance(_OUT, 2, "colors of objects that the caption names", known=True, words=COLORS),
    "counts_of_named": Chance(_OUT, 2, "counts of objects that the caption names", known=True, words=COUNTS),
    "sizes_of_named": Chance(_OUT, 2, "sizes of objects that the caption names", known=True, words=SIZES),
    "others_of_named": Chance(_OUT, 2, "other attributes of objects that the caption names", known=True, others=True),
    "relations": Chance(_OUT, 3, "relations in the references"),
    "relations_of_named": Chance(_OUT, 3, "relations between objects that the caption names", known=True),
}
"""What can have an error, by key: the denominators of rates."""

INVENTED: Mapping[str, Kind] = {
    "object_near_miss": Kind(_IN, 1, "Object almost right", _NEAR, _near_object, "objects_said"),
    "object_invented": Kind(_IN, 1, "Object invented", ("Object",), _object, "objects_said"),
    "attribute_of_invented_object": Kind(
        _IN, 2, "Attribute of an invented object", _ATTRIBUTE, _follows_from_object, "attributes_said", primary=False
    ),
    "color_confused": Kind(_IN, 2, "Color confused", _SAID_FOR, _color, "colors_of_right"),
    "count_off_by_one": Kind(_IN, 2, "Count off by one", _SAID_FOR, _count(range(1, 2)), "counts_of_right"),
    "count_off_by_more": Kind(_IN, 2, "Count off by more than one", _SAID_FOR, _count(range(2, 10)), "counts_of_right"),
    "size_opposite": Kind(_IN, 2, "Size opposite", _SAID_FOR, _size, "sizes_of_right"),
    "attribute_misplaced": Kind(_IN, 2, "Attribute on the wrong object", _MISPLACED, _misplaced, "attributes_of_right"),
    "attribute_near_miss": Kind(_IN, 2, "Attribute almost right", _NEAR, _near_attribute, "attributes_of_right"),
    "color_invented": Kind(_IN, 2, "Color invented", _ATTRIBUTE_OF, _attribute_of(COLORS), "colors_of_right"),
    "count_invented": Kind(_IN, 2, "Count invented", _ATTRIBUTE_OF, _attribute_of(COUNTS), "counts_of_right"),
    "size_invented": Kind(_IN, 2, "Size invented", _ATTRIBUTE_OF, _attribute_of(SIZES), "sizes_of_right"),
    "attribute_invented": Kind(
        _IN, 2, "Other attribute invented", _ATTRIBUTE_OF, _attribute_of(None), "others_of_right"
    ),
    "relation_of_invented_object": Kind(
        _IN, 3, "Relation of an invented object", _OF_OBJECT, _follows_from_object, "relations_said", primary=False
    ),
    "relation_swapped": Kind(_IN, 3, "Subject and object swapped", _RELATION, _swapped, "relations_of_right"),
    "relation_near_miss": Kind(_IN, 3, "Relation almost right", _NEAR, _near_relation, "relations_of_right"),
    "relation_confused": Kind(
        _IN, 3, "Relation wrong, both objects right", _SAID_FOR, _relation_confused, "relations_of_right"
    ),
    "relation_moved": Kind(_IN, 3, "Relation with another object", _MOVED, _relation_moved, "relations_of_right"),
    "relation_invented": Kind(_IN, 3, "Relation invented", _RELATION, _relation, "relations_of_right"),
}  # Every explanation of a candidate tuple without a partner; the last one of each length always applies.

_WITH_PREPOSITION_ALONE = frozenset({"prepositional", "predicate"})
_OWNER = frozenset({"possessive"})


def _follows_from_missed(view: MatchView, reference: SceneTuple) -> ErrorCause | None:
    """Name a tuple that could not be matched, since the candidate does not name one of its objects."""
    ends = [slot for slot in (0, 2) if slot < len(reference.concepts)]
    missing = [slot for slot in ends if not view.is_named(reference.concepts[slot])]
    return ErrorCause((word(reference, missing[0]), word(reference, 1))) if missing else None


def _missed_attribute_of(words: frozenset[str] | None) -> Rule:
    """Make the rule for attributes of a word list, of objects that the candidate names."""

    def rule(_view: MatchView, reference: SceneTuple) -> ErrorCause | None:
        name = word(reference, 1)
        return ErrorCause((name, word(reference, 0))) if words is None or name in words else None

    return rule


def _relation_by(*, preposition: bool) -> Rule:
    """Make the rule for relations that are a preposition alone, or those that have a verb."""

    def rule(_view: MatchView, reference: SceneTuple) -> ErrorCause | None:
        rules = {evidence.fact.rule for evidence in reference.evidence}
        alone = bool(rules) and rules <= _WITH_PREPOSITION_ALONE
        return ErrorCause((word(reference, 1),)) if alone is preposition else None

    return rule


def _owner(_view: MatchView, reference: SceneTuple) -> ErrorCause | None:
    """Name an owner and what it has, which no verb of the caption says."""
    rules = {evidence.fact.rule for evidence in reference.evidence}
    return ErrorCause((word(reference, 0), word(reference, 2))) if rules and rules <= _OWNER else None


_FOLLOWS = ("Object", "Said of it")

MISSED: Mapping[str, Kind] = {
    "object_missed": Kind(_OUT, 1, "Object missed", ("Object",), _object, "objects"),
    "attribute_of_missed_object": Kind(
        _OUT, 2, "Attribute of a missed object", _FOLLOWS, _follows_from_missed, "attributes", primary=False
    ),
    "color_missed": Kind(_OUT, 2, "Color missed", _ATTRIBUTE_OF, _missed_attribute_of(COLORS), "colors_of_named"),
    "count_missed": Kind(_OUT, 2, "Count missed", _ATTRIBUTE_OF, _missed_attribute_of(COUNTS), "counts_of_named"),
    "size_missed": Kind(_OUT, 2, "Size missed", _ATTRIBUTE_OF, _missed_attribute_of(SIZES), "sizes_of_named"),
    "attribute_missed": Kind(
        _OUT, 2, "Other attribute missed", _ATTRIBUTE_OF, _missed_attribute_of(None), "others_of_named"
    ),
    "relation_of_missed_object": Kind(
        _OUT, 3, "Relation of a missed object", _FOLLOWS, _follows_from_missed, "relations", primary=False
    ),
    "owner_missed": Kind(_OUT, 3, "Owner missed", ("Owner", "Has"), _owner, "relations_of_named"),
    "preposition_missed": Kind(
        _OUT, 3, "Preposition missed", ("Preposition",), _relation_by(preposition=True), "relations_of_named"
    ),
    "verb_missed": Kind(_OUT, 3, "Verb missed", ("Verb",), _relation_by(preposition=False), "relations_of_named"),
}  # Every explanation of a reference tuple without a partner; the last one of each length always applies.
