"""Differences of a description and its references: what it says wrong, what nobody else says, and what it leaves out.

A difference stands for all claims that fail for one reason: a thing that the references do not have, with all that is
said of it. What the differences of a side lose, and what its other claims lack, add up to what its score lacks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_detail.claims import MISSING, VAGUE, Claim, Claims, is_thing
from spicegraph_parser.scenes.passages import sentence_spans
from spicegraph_parser.spice.loose import PLURAL
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.wordnet import Synset, load_wordnet
from spicegraph_scorer.core.credit import Span, Words
from spicegraph_scorer.metrics.graded.facts import NO, deny, values_of
from spicegraph_scorer.metrics.graded.verdicts import CONTRADICTED, SUPPORTED, UNMENTIONED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.results import Json

UNSUPPORTED: Final = "unsupported"

_LONGEST: Final = 7  # words of a passage that stands for a claim
_SENSES: Final = 2
_RARER_SENSES: Final = 5  # of what may be a kind of something: a van is a vehicle in its last
_LOOSE: Final = frozenset({"loose", "predicate", "quantity", "clause", "prepositional", "possessive"})
"""Rules whose attributes read badly by themselves: verbs ("man, get"), quantities, places."""
_PEOPLE: Final = word_set(
    "person people someone man woman boy girl child kid youngster baby toddler lady gentleman guy adult male female"
)
"""Words for a person that say little more: who says one of them, or "bride", has said the others well enough."""
_GROUPS: Final = word_set("couple family crowd")
_ANIMALS: Final = word_set("livestock wildlife creature beast")
_GREENERY: Final = word_set("greenery vegetation foliage")
_POSTURES: Final = word_set(
    "sit stand lie lay rest hang place locate position fill see set be have get go do make take use look"
)
_CLOTHES: Final = word_set("clothes clothing clothe outfit attire apparel garment wear")
_WAYS: Final = word_set("pavement sidewalk street road path pathway walkway runway tarmac")
_GROUND: Final = _WAYS | word_set("ground floor land dirt earth grass field lawn snow sand beach cement concrete")
"""What one stands on: who says one of them has said ``ground`` well enough."""
_NAMELESS: Final = VAGUE | word_set(
    """
    environment surroundings surrounding vicinity space spot site destination nature distance safety help beauty
    curiosity weight decay hazard obstacle transportation feature source member bit patch section layer shade shades
    scenery canvas tapestry mosaic expanse touch splash hint camera few several various different other personal typical
    own same next order entire whole main certain visible many multiple single lot neighboring point impression hobby
    wind air tip sunshine daylight habitat ecosystem predator photograph photo picture
    """
)
"""Words that tell a reader nothing: of what nobody can point at, of portions, and of qualities that anything has."""
_PORTIONS: Final = word_set("body carpet blanket sea line band strip stretch sheet bed cloud pool wall mass pop")
"""Words that say how much there is of what follows them ("a carpet of grass"), and are things where nothing follows."""
_DENIED: Final = re.compile(r"\b(?:no|without|out of)\s+$", re.IGNORECASE)
_OF: Final = re.compile(r"\s+of\b")
_OF_PICTURES: Final = re.compile(r"['’]s[- ]eye\b|\s+(?:shot|view|photo|photograph|image|picture)\b")
_MAYBE: Final = re.compile(r"\b(?:may|might|could|would|should|suggests?|indicat\w+|possibly|likely|used (?:for|to))\b")
_WORD_BEFORE: Final = re.compile(r"[A-Za-z]+ $")
_WORD_BEHIND: Final = re.compile(r" [A-Za-z]+")
_NO_THING: Final = re.compile(r"\b(?:or(?: an?)?|(?:for \w+|want|wants|wanting|ready|about|going|order) to)\s+$")
"""What stands before a thing that only may be, and before a verb that may be a thing elsewhere."""
_BODY: Final = word_set("hand head face body arm leg foot eye mouth nose ear neck finger back skin")
"""What every body has: nobody misses it."""
_LEAST: Final = 0.25  # probability below which a reader need not be told
_NEAR: Final = 2  # steps in WordNet between two things of one kind, such as a cow and an ox
_NEAR_ANIMALS: Final = 4  # a dog and a cat
_KINDS: Final = (
    (_PEOPLE, "person.n.01"),
    (_CLOTHES, "clothing.n.01"),
    (_ANIMALS, "animal.n.01"),
    (_GREENERY, "plant.n.02"),
)


class Place(NamedTuple):
    """Where a word stands in a reference: the reference's number, and character offsets in it."""

    reference: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ClaimDifference:
    """Something that a candidate and its references do not agree on.

    Attributes:
        kind: ``contradicted``, ``unsupported`` or ``missing``.
        aspect: ``object``, ``attribute``, ``colour``, ``count``, ``relation``, ``action``, ``place`` or ``text``.
        claim: what the candidate says, in words; empty where something is missing.
        reference: what the references say, in words; empty where they say nothing of it.
        spans: where the claim's words stand in the candidate, as character offsets.
        reference_spans: where those of the references' claim stand.
        severity: its share of the weight of all that the candidate says, or of all that the references say where that
            is more; in [0, 1].
        probability: that the claim is wrong, or that what is missing is not said; in [0, 1].
        facts: the candidate's claims that it stands for, by their ``fact``.
        reference_facts: the references' claims that it stands for.
        correctness: what it takes from the correctness, in [0, 1].
        coverage: what it takes from the coverage, in [0, 1].
    """

    kind: str
    aspect: str
    claim: str
    reference: str
    spans: tuple[Span, ...]
    reference_spans: tuple[Place, ...]
    severity: float
    probability: float
    facts: tuple[int, ...]
    reference_facts: tuple[int, ...]
    correctness: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of an item, the most severe first, and its scores.

    1 minus ``correctness`` is the sum of the differences' and ``other_correctness``, which claims that hold lack
    because nobody is certain of them; so it is for coverage.
    """

    correctness: float
    coverage: float
    other_correctness: float
    other_coverage: float
    differences: tuple[ClaimDifference, ...]

    def to_dict(self) -> Mapping[str, Json]:
        """Return JSON values, with the names of the fields as keys."""
        return asdict(self)


def differences_of(claims: Claims, candidate: str, references: Sequence[str]) -> Differences:
    """Return the differences of an item."""
    said, told = _Texts(claims.candidate, candidate), _Texts(claims.references, *references)
    weights, reference_weights = (sum(claim.weight for claim in side) for side in (claims.candidate, claims.references))
    missing = _missing(claims, said, told)
    rows: list[tuple[str, Claim, tuple[str, ...], tuple[str, ...], list[Claim], list[Claim]]] = []
    for failed in _failed(claims, said):
        claim = failed[0]
        names = _contrary(claim, claims)
        denied = bool(names)
        if claim.aspect == "count" and not denied:  # people count what they like
            continue
        beside = next((missing.pop(fact) for fact, (first, *_) in missing.items() if first.words == names), [])
        rows.append((CONTRADICTED if denied else UNSUPPORTED, claim, claim.words, names, failed, beside))
    rows += [(MISSING, lacking[0], (), lacking[0].words, [], lacking) for lacking in missing.values()]
    differences = []
    for kind, claim, names, reference_names, failed, lacking in rows:
        places, other = said.places(names), told.places(reference_names)
        differences.append(
            ClaimDifference(
                kind,
                claim.aspect,
                said.phrase(names, places),
                told.phrase(reference_names, other),
                tuple((place.start, place.end) for place in places),
                other,
                max(_share(failed, weights), _share(lacking, reference_weights)),
                claim.probability,
                tuple(each.fact for each in failed),
                tuple(each.fact for each in lacking),
                _lost(failed, weights),
                _lost(lacking, reference_weights),
            )
        )
    differences.sort(key=lambda each: (-each.severity, each.kind, each.claim, each.reference))
    return Differences(
        claims.correctness,
        claims.coverage,
        max(0.0, 1 - claims.correctness - sum(each.correctness for each in differences)),
        max(0.0, 1 - claims.coverage - sum(each.coverage for each in differences)),
        tuple(differences),
    )


def _failed(claims: Claims, said: _Texts) -> list[list[Claim]]:
    """Return the candidate's claims that do not hold, those with the same reason together, the plainest first."""
    # A thing of which the references name a kind, or that is a kind of what they name, holds well enough.
    groups: defaultdict[tuple[str, ...], list[Claim]] = defaultdict(list)
    named = {claim.words[0] for claim in claims.references if len(claim.words) == 1}
    for claim in claims.candidate:
        if claim.status in {CONTRADICTED, UNMENTIONED} and _is_told(claim, said):
            apart = claim.doubt is None or (claim.status == CONTRADICTED and claim.value == 0 and len(claim.words) == 2)
            if apart or not any(_are_akin(claim.doubt or "", thing) for thing in named):
                groups[claim.words if apart else (claim.doubt or "",)].append(claim)
    return [sorted(group, key=lambda claim: (len(claim.words), claim.fact)) for group in groups.values()]


def _is_told(claim: Claim, texts: _Texts) -> bool:
    """Return whether a reader can see what a claim is about: its ends are things, not places of the picture."""
    ends = [name.partition("/")[0].rpartition(" ")[2] for name in (*claim.words[:1], *claim.words[2:])]
    if not claim.weight or PLURAL in claim.words or claim.probability < _LEAST or min(map(len, claim.words)) < 2:
        return False
    if len(claim.words) == 1 and (claim.words[0].startswith(NO) or not _BODY.isdisjoint(claim.words[0].split("/"))):
        return False
    if len(claim.words) == 2:
        quality = claim.words[1].partition("/")[0]
        if claim.rules <= _LOOSE or quality.endswith("ing") or quality in _POSTURES or quality in _NAMELESS:
            return False
    if any(load_wordnet().senses(end, "a") for end in ends):  # "more", "speckled"
        return False
    return all(
        end not in _NAMELESS and is_thing(end) and not values_of((end,)) and not texts.passes_over(label)
        for end, label in zip(ends, (*claim.words[:1], *claim.words[2:]), strict=True)
    )


def _missing(claims: Claims, said: _Texts, told: _Texts) -> dict[int, list[Claim]]:
    """Return the references' claims that are not said, by the first of those that lack the same thing."""
    # A thing of which the candidate names a kind, or that is a kind of what it names, is said well enough, and so is
    # another name of a thing that holds: one of the same kind, in no reference together with it. Of things that it
    # names, a quality is missed, unless a sentence has both words, or a text; what they do and where they are is told
    # with a thing that is missed.
    lacking = [claim for claim in claims.references if claim.status == MISSING and _is_told(claim, told)]
    objects = {name for claim in claims.candidate for name in claim.words}
    held = {claim.words[0] for claim in claims.candidate if len(claim.words) == 1 and claim.status == SUPPORTED}
    things = {
        claim.words[0]: claim.fact
        for claim in lacking
        if len(claim.words) == 1
        and said.words.isdisjoint(name.removesuffix("top") for name in claim.words[0].split("/"))
        and not any(_are_akin(claim.words[0], other) for other in objects)
        and not any(_are_of_a_kind(claim.words[0], other) and not told.share(claim.words[0], other) for other in held)
    }
    groups: defaultdict[int, list[Claim]] = defaultdict(list)
    for claim in sorted(lacking, key=lambda claim: (len(claim.words), claim.fact)):
        ends = claim.words[:1] if len(claim.words) < 3 else (claim.words[0], claim.words[2])
        lacks = [things[end] for end in ends if end in things]
        is_quality = len(claim.words) == 2 and not said.share(*claim.words, sentence=True)
        if lacks or is_quality or claim.aspect == "text":
            groups[lacks[0] if lacks else claim.fact].append(claim)
    return dict(groups)


def _are_akin(label: str, other: str) -> bool:
    return _covers(label, other) or _covers(other, label)


@lru_cache(maxsize=50_000)
def _covers(label: str, other: str) -> bool:
    """Return whether one thing is the other or a broader one, by frequent senses of their words."""
    names, others = set(label.split("/")), set(other.split("/"))
    ways = _WAYS if not _WAYS.isdisjoint(names) else _GROUND if "ground" in names else frozenset()
    if not ways.isdisjoint(others) or not (_PEOPLE.isdisjoint(names) or _GROUPS.isdisjoint(others)):
        return True
    wordnet = load_wordnet()
    kinds = {wordnet.find(kind) for words, kind in _KINDS if not words.isdisjoint(names)}
    own = {sense for name in names for sense in _senses(name, _SENSES)}
    return any(
        not own.isdisjoint(above) or (rank < _SENSES and not kinds.isdisjoint(above))
        for name in others
        for rank, sense in enumerate(_senses(name, _RARER_SENSES))
        for above in [wordnet.ancestors(sense).keys()]
    )


def _senses(name: str, most: int) -> Sequence[Synset]:
    return load_wordnet().senses(name.rpartition(" ")[2], "n")[:most]


def _contrary(claim: Claim, claims: Claims) -> tuple[str, ...]:
    """Return what the references say instead: another value of the same thing or kind, a thing near it, or nothing."""
    if claim.status != CONTRADICTED:
        return ()
    if claim.value > 0 or len(claim.words) != 2:
        rival = claim.instead
        return (rival,) if rival and len(claim.words) == 1 and _are_of_a_kind(claim.words[0], rival) else ()
    alike = {claim.words[0]} | {
        thing.nearest[0]
        for thing in claims.candidate
        if thing.words == claim.words[:1]
        and thing.nearest
        and thing.status == SUPPORTED
        and _are_akin(thing.words[0], thing.nearest[0])
    }
    values = values_of(claim.words[1].split("/"))
    rivals = [
        other.words
        for other in claims.references
        if len(other.words) == 2 and other.words[0] in alike and deny(values, values_of(other.words[1].split("/")))
    ]
    return next((words for words in rivals if words[0] == claim.words[0]), next(iter(rivals), ()))


@lru_cache(maxsize=50_000)
def _are_of_a_kind(label: str, other: str) -> bool:
    """Return whether two things are of one kind, neither a kind of the other, nor both parts of a body."""
    wordnet = load_wordnet()
    for sense in _senses(label.partition("/")[0], 1):
        for beside in _senses(other.partition("/")[0], 1):
            shared = wordnet.ancestors(sense).keys() & wordnet.ancestors(beside)
            steps = wordnet.distance(sense, beside)
            if steps is not None and shared.isdisjoint({sense, beside, wordnet.find("body_part.n.01")}):
                return steps <= (_NEAR_ANIMALS if wordnet.find("animal.n.01") in shared else _NEAR)
    return False


def _share(claims: Iterable[Claim], total: float) -> float:
    return min(1.0, sum(claim.weight for claim in claims) / total) if total else 0.0


def _lost(claims: Iterable[Claim], total: float) -> float:
    return sum(claim.weight * (1 - claim.value) for claim in claims) / total if total else 0.0


class _Texts:
    """Texts in which the words of claims are found."""

    def __init__(self, claims: Sequence[Claim], *texts: str) -> None:
        self.texts = tuple(text.replace("’", "'") for text in texts)  # as words are told apart in both
        self._things = [word for claim in claims if len(claim.words) == 1 for word in claim.words[0].split("/")]

    @cached_property
    def _sentences(self) -> list[tuple[int, Span, Words]]:
        return [
            (number, span, Words(text[slice(*span)]))
            for number, text in enumerate(self.texts)
            for span in sentence_spans(text)
        ]

    def places(self, names: Sequence[str]) -> tuple[Place, ...]:
        """Return where the words of a claim stand: in the first of the sentences that have most of them, close by."""
        wanted = [name.removeprefix(NO).split("/") for name in names]
        best: list[tuple[int, Span]] = []
        for number, (start, _), words in self._sentences:
            near: list[Span] = []
            for strings in wanted:
                here = [words.spans[index] for index in words.find(strings)]
                if here:
                    middle = near[-1][0] if near else 0
                    near.append(min(here, key=lambda span: (abs(span[0] - middle), span)))
            if len(near) > len(best):
                best = [(number, (start + first, start + last)) for first, last in near]
        return tuple(sorted({Place(number, *span) for number, span in best}))

    @cached_property
    def words(self) -> frozenset[str]:
        """All words as they stand, in lower case, those with a hyphen in parts."""
        return frozenset(re.findall("[a-z]+", " ".join(self.texts).lower()))

    def passes_over(self, label: str) -> bool:
        """Return whether each mention of a thing is in passing."""
        # It is denied ("out of water"), only may be ("or a pond"), is a portion of another thing ("a carpet of grass"),
        # part of a name ("Fifth Avenue", "tooth brush"), or says what the picture is ("a bird's-eye view").
        names = label.split("/")
        is_portion = not _PORTIONS.isdisjoint(names)
        passed = []
        for number, (first, last), words in self._sentences:
            text = self.texts[number]
            mentions = words.find([*names, *(f"{name}'s" for name in names)])
            things = frozenset(words.find(self._things)).difference(mentions) if mentions else frozenset()
            for at in mentions:
                start, end = (first + offset for offset in words.spans[at])
                word = text[start:end]
                passed.append(
                    _DENIED.search(text, first, start)
                    or _NO_THING.search(text, first, start)
                    or (at + 1 in things and text[end : first + words.spans[at + 1][0]] == " ")
                    or _MAYBE.search(text, first, last)
                    or _OF_PICTURES.match(text, end)
                    or (is_portion and _OF.match(text, end))
                    or (start > first and word[:1].isupper() and not word.isupper())
                )
        return bool(passed) and all(passed)

    def share(self, label: str, other: str, *, sentence: bool = False) -> bool:
        """Return whether one of the texts, or of their sentences, has words for both labels."""
        first, second = (
            {(number, span if sentence else None) for number, span, words in self._sentences if words.find(each)}
            for each in (label.split("/"), other.split("/"))
        )
        return not first.isdisjoint(second)

    def phrase(self, names: Sequence[str], places: Sequence[Place]) -> str:
        """Return a claim in words: the passage that holds them, where it is short, else the words of its tuple."""
        if len(places) == len(names) and names:
            text, start, end = self.texts[places[0].reference], places[0].start, places[-1].end
            before, behind = _WORD_BEFORE.search(text, 0, start), _WORD_BEHIND.match(text, end)
            wider = ((before.start() if before else start, end), (start, behind.end() if behind else end))
            named = [text[slice(*span)] for span in wider if span != (start, end)] if len(names) == 1 else []
            name = next((name for name in named if load_wordnet().senses(name.lower(), "n")), "")
            if name:  # "teddy bear"
                return name
            passage = text[start:end]
            if len(passage.split()) <= _LONGEST:
                return passage
        order = (1, 0) if len(names) == 2 else range(len(names))
        return " ".join(names[index].partition("/")[0] for index in order)
