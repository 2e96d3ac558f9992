"""Differences of a description and its references: what it says wrong, what nobody else says, and what it leaves out.

A difference stands for all claims that fail for one reason: a thing that the references do not have, with all that is
said of it. What the differences of a side lose, and what its other claims lack, add up to what its score lacks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_detail.claims import MISSING, VAGUE, is_thing
from spicegraph_parser.scenes.passages import sentence_spans
from spicegraph_parser.spice.loose import PLURAL
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.rules import Fact
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scorer.core.credit import Span, Words
from spicegraph_scorer.metrics.graded.facts import NO, content_words, deny, values_of
from spicegraph_scorer.metrics.graded.verdicts import CONTRADICTED, SUPPORTED, UNMENTIONED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_detail.claims import Claim, Claims
    from spicegraph_parser.spice.wordnet import Synset
    from spicegraph_scorer.core.results import Json

UNSUPPORTED: Final = "unsupported"
KINDS: Final = (CONTRADICTED, UNSUPPORTED, MISSING)
"""What a difference is: the references say otherwise, do not say it, or say what the candidate does not."""

_LONGEST: Final = 7  # words of a passage that stands for a claim
_SENSES: Final = 2
_LOOSE: Final = frozenset({"loose", "predicate", "quantity", "clause", "prepositional", "possessive"})
"""Rules whose attributes read badly by themselves: verbs ("man, get"), quantities, places."""
_PEOPLE: Final = word_set(
    "person people someone man woman boy girl child kid youngster baby toddler lady gentleman guy adult male female"
)
"""Words for a person that say little more: who says one of them, or "bride", has said the others well enough."""
_POSTURES: Final = word_set(
    "sit stand lie lay rest hang place locate position fill see set be have get go do make take use look"
)
_LEAST: Final = 0.25  # probability below which a reader need not be told
_NEAR: Final = 4  # steps in WordNet from a dog to a cat


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
    """Return the differences of an item.

    Args:
        claims: of the item.
        candidate: its text.
        references: those that it was compared with.
    """
    said, told = _Texts((candidate,)), _Texts(tuple(references))
    weights, reference_weights = (sum(claim.weight for claim in side) for side in (claims.candidate, claims.references))
    missing = _missing(claims, said)
    differences = []
    for failed in _failed(claims.candidate):
        claim = failed[0]
        names = _contrary(claim, claims)
        denied = bool(names)
        beside = next((missing.pop(fact) for fact, (first, *_) in missing.items() if first.words == names), [])
        places, other = said.places(claim.words), told.places(names)
        differences.append(
            ClaimDifference(
                CONTRADICTED if denied else UNSUPPORTED,
                claim.aspect,
                said.phrase(claim.words, places),
                told.phrase(names, other),
                tuple((place.start, place.end) for place in places),
                other,
                max(_share(failed, weights), _share(beside, reference_weights)),
                claim.probability,
                tuple(each.fact for each in failed),
                tuple(each.fact for each in beside),
                _lost(failed, weights),
                _lost(beside, reference_weights),
            )
        )
    for lacking in missing.values():
        claim = lacking[0]
        other = told.places(claim.words)
        differences.append(
            ClaimDifference(
                MISSING,
                claim.aspect,
                "",
                told.phrase(claim.words, other),
                (),
                other,
                _share(lacking, reference_weights),
                claim.probability,
                (),
                tuple(each.fact for each in lacking),
                0.0,
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


def _failed(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Return the candidate's claims that do not hold, those with the same reason together, the plainest first."""
    groups: defaultdict[tuple[str, ...], list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.status in {CONTRADICTED, UNMENTIONED} and _is_told(claim):
            apart = claim.doubt is None or (claim.status == CONTRADICTED and claim.value == 0 and len(claim.words) == 2)
            groups[claim.words if apart else (claim.doubt or "",)].append(claim)
    return [sorted(group, key=lambda claim: (len(claim.words), claim.fact)) for group in groups.values()]


def _is_told(claim: Claim) -> bool:
    """Return whether a reader can see what a claim is about: its ends are things, not places of the picture."""
    ends = [name.partition("/")[0].rpartition(" ")[2] for name in (*claim.words[:1], *claim.words[2:])]
    if not claim.weight or PLURAL in claim.words or claim.probability < _LEAST:
        return False
    if len(claim.words) == 1 and load_wordnet().senses(claim.words[0].partition("/")[0], "a"):  # "more", "speckled"
        return False
    if len(claim.words) == 2:
        quality = claim.words[1].partition("/")[0]
        if claim.rules <= _LOOSE or quality.endswith("ing") or quality in _POSTURES or quality in VAGUE:
            return False
        if claim.aspect == "count" and claim.status == UNMENTIONED:  # people count what they like
            return False
    return all(end not in VAGUE and is_thing(end) and not values_of((end,)) for end in ends)


def _missing(claims: Claims, said: _Texts) -> dict[int, list[Claim]]:
    """Return the references' claims that are not said, by the first of those that lack the same thing.

    A thing of which the candidate names a kind, or that is a kind of what it names, is said well enough, and so is
    what things do and where they are if the candidate has all the words. Of things that it names, a quality or a deed
    is missed.
    """
    lacking = [claim for claim in claims.references if claim.status == MISSING and _is_told(claim)]
    objects = {name for claim in claims.candidate for name in claim.words}
    things = {
        claim.words[0]: claim.fact
        for claim in lacking
        if len(claim.words) == 1 and not any(_are_akin(claim.words[0], other) for other in objects)
    }
    groups: defaultdict[int, list[Claim]] = defaultdict(list)
    for claim in sorted(lacking, key=lambda claim: (len(claim.words), claim.fact)):
        ends = claim.words[:1] if len(claim.words) < 3 else (claim.words[0], claim.words[2])
        lacks = [things[end] for end in ends if end in things]
        is_deed = len(claim.words) == 3 and claim.aspect in {"action", "text"}
        if lacks or len(claim.words) == 2 or (is_deed and not said.has(claim.words[1])):
            groups[lacks[0] if lacks else claim.fact].append(claim)
    return dict(groups)


@lru_cache(maxsize=50_000)
def _are_akin(label: str, other: str) -> bool:
    """Return whether one thing is a kind of the other, by the two most frequent senses of their last words."""
    first, second = ({sense for name in names.split("/") for sense in _senses(name)} for names in (label, other))
    wordnet = load_wordnet()
    person = wordnet.find("person.n.01")
    if not _PEOPLE.isdisjoint(label.split("/")) and any(person in wordnet.ancestors(sense) for sense in second):
        return True
    return any(
        sense in wordnet.ancestors(beside) or beside in wordnet.ancestors(sense) for sense in first for beside in second
    )


def _senses(name: str) -> Sequence[Synset]:
    return load_wordnet().senses(name.rpartition(" ")[2], "n")[:_SENSES]


def _contrary(claim: Claim, claims: Claims) -> tuple[str, ...]:
    """Return what the references say instead: another value of the same thing or kind, a thing near it, or nothing."""
    if claim.status != CONTRADICTED:
        return ()
    if claim.value > 0 or len(claim.words) != 2:
        rival = claim.instead
        return (rival,) if rival and len(claim.words) == 1 and _are_near(claim.words[0], rival) else ()
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
def _are_near(label: str, other: str) -> bool:
    wordnet = load_wordnet()
    steps = [
        wordnet.distance(sense, beside)
        for sense in _senses(label.partition("/")[0])[:1]
        for beside in _senses(other)[:1]
    ]
    return any(step is not None and step <= _NEAR for step in steps)


def _share(claims: Iterable[Claim], total: float) -> float:
    return min(1.0, sum(claim.weight for claim in claims) / total) if total else 0.0


def _lost(claims: Iterable[Claim], total: float) -> float:
    return sum(claim.weight * (1 - claim.value) for claim in claims) / total if total else 0.0


@dataclass(frozen=True)
class _Texts:
    """Texts in which the words of claims are found."""

    texts: tuple[str, ...]

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

    def has(self, label: str) -> bool:
        """Return whether the texts have the content words of a relation, or it has none but those of postures."""
        words = content_words([Fact((label.partition("/")[0],), "", ())]) - _POSTURES
        return all(any(each.find([word]) for _, _, each in self._sentences) for word in words)

    def phrase(self, names: Sequence[str], places: Sequence[Place]) -> str:
        """Return a claim in words: the passage that holds them, where it is short, else the words of its tuple."""
        if len(places) == len(names) and names:
            passage = self.texts[places[0].reference][places[0].start : places[-1].end]
            if len(passage.split()) <= _LONGEST:
                return passage
        order = (1, 0) if len(names) == 2 else range(len(names))
        return " ".join(names[index].partition("/")[0] for index in order)
