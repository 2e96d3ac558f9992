"""Differences of a description and its references: what it says wrong, what nobody else says, and what it leaves out.

A difference stands for all claims that fail for one reason: a thing that the references do not have, with all that is
said of it. What the differences of a side lose, and what its other claims lack, add up to what its score lacks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_graded.detail.claims import MISSING, VAGUE, WORDS, Claim, Claims, is_thing, sentence_spans
from spicegraph_graded.detail.swaps import Swap, swap_of
from spicegraph_graded.spice_g.facts import NO, deny, values_of
from spicegraph_graded.spice_g.verdicts import CONTRADICTED, SUPPORTED, UNMENTIONED
from spicegraph_parser.spice.loose import PLURAL
from spicegraph_parser.spice.wordnet import Synset, load_wordnet
from spicegraph_scorer.core.credit import Span, Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Json

UNSUPPORTED: Final = "unsupported"

_LONGEST: Final = 7  # words of a passage that stands for a claim
_SENSES: Final = 2
_LOOSE: Final = frozenset({"loose", "predicate", "quantity", "clause", "prepositional", "possessive"})
"""Rules whose attributes read badly by themselves: verbs ("man, get"), quantities, places."""
_SAME: Final = (
    ({"ground"}, WORDS["ground"]),
    (WORDS["paths"], WORDS["ways"]),
    (WORDS["ways"], WORDS["paths"]),
    (WORDS["people"] | WORDS["spouses"], WORDS["groups"]),
)
"""Who says a word of the second set has said those of the first well enough."""
_KINDS: Final = {"people": "person.n.01", "clothes": "clothing.n.01", "animals": "animal.n.01", "plants": "plant.n.02"}
_NAMELESS: Final = VAGUE | WORDS["nameless"]
_PASSED: Final = re.compile(
    r"""\b(?:(?:no|without|out\ of)|(?:or|perhaps|probably|reminiscent\ of|resembl\w+)(?:\ an?|\ the|\ some)?
    |(?:used|prepar\w+|wait\w*)\ (?:for|to)\b[^,;]*|as\ (?:if|though)\b.*|(?:shelter|protection|safe)\ from\b[^,;]*
    |can\ be\ (?!seen|found|spotted|observed|noticed|identified|discerned|glimpsed|viewed).*)\s+$""",
    re.IGNORECASE | re.VERBOSE,
)
"""What stands before things that are denied, are one of two, are likened, or are only thought of."""
_TO_DO: Final = re.compile(r"\b(?!next|close|near|adjacent|attached|connected|lead|similar|up|due)\w+\s+to\s+$")
_PARTICIPLE: Final = re.compile(r"(?:ed|ing|een)$")
_WORD_BEFORE, _WORD_BEHIND = re.compile(r"([a-z]+)[ -]$", re.IGNORECASE), re.compile(r"[ -]([a-z]+)", re.IGNORECASE)
_WHERE: Final = re.compile(
    r"^ (?:in|on|of|at|near|behind|above|below|under) (?:(?!it |that |when |which |who )[a-z]+ ){1,5}(?=is |are )"
)
_OF: Final = re.compile(r"\s+of\b")
_OF_PICTURES: Final = re.compile(r"['’]s[- ]eye\b|\s+(?:shot|view|photo|photograph|image|picture)\b")
_MAYBE: Final = re.compile(r"\b(?:may|might|could|would|should|suggests?|indicat\w+|possibly|likely)\b")
_LEAST: Final = 0.25  # probability below which a reader need not be told
_NEAR: Final = 2  # steps in WordNet between two things of one kind, such as a cow and an ox
_NEAR_ANIMALS: Final = 4  # a dog and a cat


class Place(NamedTuple):
    """The place of a word in a reference: the reference's number, and character offsets in it."""

    reference: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ClaimDifference:
    """Something that a candidate and its references do not agree on.

    Attributes:
        kind: ``contradicted``, ``unsupported`` or ``missing``.
        aspect: ``object``, ``attribute``, ``colour``, ``count``, ``size``, ``relation``, ``action``, ``place`` or
            ``text``.
        claim: what the candidate says, in words; empty where something is missing.
        reference: what the references say, in words; empty where they say nothing of it.
        spans: where the claim's words are in the candidate, as character offsets.
        reference_spans: where those of the references' claim are.
        severity: its share of the weight of all that the candidate says, or of all that the references say where that
            is more; in [0, 1].
        probability: that the claim is wrong, or that what is missing is not said; in [0, 1].
        facts: the candidate's claims behind it, by their ``fact``.
        reference_facts: the references' claims behind it.
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
    because they are too unsure; likewise for coverage.
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
    weights = _total(claims.candidate), _total(claims.references)
    groups, missing = _failed(claims, said), _missing(claims, said, told)
    differences = []
    if (swap := swap_of(candidate, references)) is not None:
        own, beside = _claims_of_swap(swap, claims, told)
        groups = [group for group in groups if group[0] not in own]
        missing = {fact: lacking for fact, lacking in missing.items() if lacking[0] not in beside}
        sides = (candidate, references[swap.reference])
        differences.append(_swapped(swap, sides, (own, beside), weights))
    differences += [_difference(unlike, said, told, weights) for unlike in _unlike(claims, told, groups, missing)]
    differences.sort(key=lambda each: (-each.severity, each.kind, each.claim, each.reference))
    return Differences(
        claims.correctness,
        claims.coverage,
        max(0.0, 1 - claims.correctness - sum(each.correctness for each in differences)),
        max(0.0, 1 - claims.coverage - sum(each.coverage for each in differences)),
        tuple(differences),
    )


def _claims_of_swap(swap: Swap, claims: Claims, told: _Texts) -> tuple[list[Claim], list[Claim]]:
    """Return the claims of the candidate, and of the references, that stand where two things are swapped."""
    own = [claim for claim in claims.candidate if any(_overlap(span, swap.span) for span in claim.spans)]
    beside = [
        claim
        for claim in claims.references
        if any(at[0] == swap.reference and _overlap(at[1:], swap.other) for at in told.places(claim.words))
    ]
    return own, beside


def _total(claims: Iterable[Claim]) -> float:
    return sum(claim.weight for claim in claims)


class _Unlike(NamedTuple):
    """A difference: the claim that it is of, both sides' words, and both sides' claims."""

    kind: str
    claim: Claim
    names: tuple[str, ...]
    reference_names: tuple[str, ...]
    failed: list[Claim]
    lacking: list[Claim]


def _difference(unlike: _Unlike, said: _Texts, told: _Texts, weights: tuple[float, float]) -> ClaimDifference:
    """Return a difference with the passages that say it; ``weights``: of all that either side says."""
    places, reference_places = said.places(unlike.names), told.places(unlike.reference_names)
    of_candidate, of_references = weights
    return ClaimDifference(
        unlike.kind,
        unlike.claim.aspect,
        said.phrase(unlike.names, places),
        told.phrase(unlike.reference_names, reference_places),
        tuple((place.start, place.end) for place in places),
        reference_places,
        max(_share(unlike.failed, of_candidate), _share(unlike.lacking, of_references)),
        unlike.claim.probability,
        tuple(each.fact for each in unlike.failed),
        tuple(each.fact for each in unlike.lacking),
        _lost(unlike.failed, of_candidate),
        _lost(unlike.lacking, of_references),
    )


def _unlike(
    claims: Claims, told: _Texts, groups: list[list[Claim]], missing: dict[int, list[Claim]]
) -> Iterator[_Unlike]:
    """Yield the differences; pops from ``missing`` the reference claims that they account for."""
    for claim, other in _opposites(claims):
        own = _group_of(claim, groups)
        groups = [group for group in groups if group is not own]
        yield _Unlike(CONTRADICTED, claim, claim.words, other.words, own, missing.pop(other.fact, [other]))
    for failed in groups:
        claim = failed[0]
        names = _contrary(claim, claims)
        if _may_be_said(claim, told, is_contrary=bool(names)):
            continue
        beside = next((missing.pop(fact) for fact, (first, *_) in missing.items() if first.words == names), [])
        yield _Unlike(CONTRADICTED if names else UNSUPPORTED, claim, claim.words, names, failed, beside)
    for lacking in missing.values():
        yield _Unlike(MISSING, lacking[0], (), lacking[0].words, [], lacking)


def _group_of(claim: Claim, groups: Sequence[list[Claim]]) -> list[Claim]:
    return next((group for group in groups if claim in group), [claim])


def _may_be_said(claim: Claim, told: _Texts, *, is_contrary: bool) -> bool:
    """Return whether a failed claim is tolerated: an uncontradicted count, or words of one sentence."""
    if claim.aspect == "count" and not is_contrary:
        return True
    return len(claim.words) == 2 and told.share(*claim.words, sentence=True)


def _overlap(span: Sequence[int], other: Sequence[int]) -> bool:
    return span[0] < other[1] and other[0] < span[1]


def _swapped(
    swap: Swap, texts: tuple[str, str], sides: tuple[list[Claim], list[Claim]], weights: tuple[float, float]
) -> ClaimDifference:
    """Return the difference of a word in place of another, with all claims of both sides in which it stands."""
    own, beside = sides
    return ClaimDifference(
        CONTRADICTED,
        swap.aspect,
        texts[0][slice(*swap.span)],
        texts[1][slice(*swap.other)],
        (swap.span,),
        (Place(swap.reference, *swap.other),),
        max(map(_share, sides, weights)),
        max((claim.probability for claim in own), default=1.0),
        tuple(claim.fact for claim in own),
        tuple(claim.fact for claim in beside),
        *map(_lost, sides, weights),
    )


def _opposites(claims: Claims) -> Iterator[tuple[Claim, Claim]]:
    """Yield pairs of a candidate's and a reference's claim where one denies the other's object."""
    for claim in claims.candidate:
        if len(claim.words) == 1 and claim.weight:
            alike = [other for other in claims.references if len(other.words) == 1 and _name_one(claim, other)]
            if {other.words[0].startswith(NO) for other in alike} == {not claim.words[0].startswith(NO)}:
                yield claim, alike[0]


def _name_one(claim: Claim, other: Claim) -> bool:
    """Return whether two claims name one thing, which one of them may deny."""
    first, second = ({name.removeprefix(NO) for name in each.words[0].split("/")} for each in (claim, other))
    return not first.isdisjoint(second)


def _failed(claims: Claims, said: _Texts) -> list[list[Claim]]:
    """Return the candidate's claims that do not hold, those with the same reason together, the plainest first."""
    # A thing of which the references name a kind holds well enough.
    groups: defaultdict[tuple[str, ...], list[Claim]] = defaultdict(list)
    things = _things(claims.references)
    for claim in claims.candidate:
        if claim.status in {CONTRADICTED, UNMENTIONED} and _is_told(claim, said):
            if claim.doubt is None or _is_of_quality(claim):
                groups[claim.words].append(claim)
            elif not any(_covers(claim.doubt, thing) for thing in things):
                groups[claim.doubt,].append(claim)
    return [sorted(group, key=_plainness) for group in groups.values()]


def _things(claims: Iterable[Claim]) -> set[str]:
    """Return the things that claims say are there."""
    return {claim.words[0] for claim in claims if len(claim.words) == 1}


def _plainness(claim: Claim) -> tuple[int, int]:
    return len(claim.words), claim.fact


def _is_of_quality(claim: Claim) -> bool:
    """Return whether a thing has another quality than is said, so that no word alone is wrong."""
    return claim.status == CONTRADICTED and claim.value == 0 and len(claim.words) == 2


def _is_told(claim: Claim, texts: _Texts) -> bool:
    """Return whether a claim is worth reporting: its ends are things, not places in pictures."""
    labels = (*claim.words[:1], *claim.words[2:])
    if not claim.weight or PLURAL in claim.words or claim.probability < _LEAST or min(map(len, claim.words)) < 2:
        return False
    if len(claim.words) == 2:
        if not _is_told_quality(claim, _end(labels[0]), texts):
            return False
    elif any(map(_is_body, labels)):
        return False
    return all(_is_told_thing(label, texts) for label in labels)


def _is_body(label: str) -> bool:
    """Return whether a label is a body part or denied."""
    return label.startswith(NO) or not WORDS["body"].isdisjoint(label.split("/"))


def _end(label: str) -> str:
    """Return the last word of a label's first name."""
    return label.partition("/")[0].rpartition(" ")[2]


def _is_told_thing(label: str, texts: _Texts) -> bool:
    end = _end(label)
    if load_wordnet().senses(end, "a"):  # "more", "speckled"
        return False
    return end not in _NAMELESS and is_thing(end) and not values_of((end,)) and not texts.passes_over(label)


def _is_told_quality(claim: Claim, thing: str, texts: _Texts) -> bool:
    """Return whether a thing's quality reads well by itself, and stands together with it."""
    quality = claim.words[1].partition("/")[0]
    if claim.rules <= _LOOSE or quality.endswith("ing") or quality in WORDS["postures"] or quality in _NAMELESS:
        return False
    return not WORDS["people"].issuperset((thing, quality)) and texts.joins(claim.words)  # "toddler boy"


def _forms_of(name: str) -> Sequence[str]:
    """Return a thing's word and its adjectives: "cloudy", "sunny", "wooden"; tables have tops."""
    return (name, name.removesuffix("top"), f"{name}y", f"{name}{name[-1:]}y", f"{name}en")


def _shades(quality: str) -> str:
    """Return a quality with the colours in it: "orange-red" is "red" well enough."""
    parts = quality.split("-")
    return "/".join([quality, *parts]) if values_of(parts[-1:]) else quality


def _missing(claims: Claims, said: _Texts, told: _Texts) -> dict[int, list[Claim]]:
    """Return the references' claims that are not said, by the first of those that lack the same thing."""
    # A thing of which the candidate names a kind, or that is a kind of what it names, is said well enough, and so is
    # another name of a thing that holds: one of the same kind, in no reference together with it. Of things that it
    # names, a quality is missed, unless a sentence has both words, or a text; what they do and where they are is told
    # with a thing that is missed.
    lacking = [claim for claim in claims.references if claim.status == MISSING and _is_told(claim, told)]
    things = _unsaid(lacking, claims.candidate, said, told)
    groups: defaultdict[int, list[Claim]] = defaultdict(list)
    for claim in sorted(lacking, key=_plainness):
        lacks = [things[end] for end in claim.words[::2] if end in things]  # the thing, or both ends of a relation
        if lacks:
            groups[lacks[0]].append(claim)
        elif claim.aspect == "text" or _lacks_quality(claim, said, told):
            groups[claim.fact].append(claim)
    return dict(groups)


def _is_said(thing: str, said: _Texts, told: _Texts, objects: set[str], held: set[str]) -> bool:
    """Return whether a candidate, with its objects and those that hold, says a thing of the references well enough."""
    return (
        not said.words.isdisjoint(form for name in thing.split("/") for form in _forms_of(name))
        or any(_are_akin(thing, other) for other in objects)
        or any(_are_of_a_kind(thing, other) and not told.share(thing, other) for other in held)
    )


def _unsaid(lacking: Sequence[Claim], candidate: Sequence[Claim], said: _Texts, told: _Texts) -> dict[str, int]:
    """Return the things that are not said, with the claims that they are there."""
    objects = set(chain.from_iterable(claim.words for claim in candidate))
    held = _things(claim for claim in candidate if claim.status == SUPPORTED)
    return {
        claim.words[0]: claim.fact
        for claim in lacking
        if len(claim.words) == 1 and not _is_said(claim.words[0], said, told, objects, held)
    }


def _lacks_quality(claim: Claim, said: _Texts, told: _Texts) -> bool:
    """Return whether a claim is of a quality, and no sentence of the candidate has it and its thing."""
    if len(claim.words) != 2 or said.share(claim.words[0], _shades(claim.words[1]), sentence=True):
        return False
    name = claim.words[1]
    is_thing_itself = len(told.texts) > 1 and name in told.things and _is_noun(name)  # "an apple sunglasses"
    return not is_thing_itself or is_compound(name, claim.words[0])


def _are_akin(label: str, other: str) -> bool:
    return _covers(label, other) or _covers(other, label)


@lru_cache(maxsize=50_000)
def _covers(label: str, other: str) -> bool:
    """Return whether one thing is the other or a broader one, by the two most frequent senses of their words."""
    names, others = set(label.split("/")), set(other.split("/"))
    if any(not wide.isdisjoint(names) and not narrow.isdisjoint(others) for wide, narrow in _SAME):
        return True
    wordnet = load_wordnet()
    broader = _senses_and_kinds(names)
    deep = {wordnet.find("animal.n.01"), wordnet.find("vehicle.n.01")}  # a ram is a sheep by its fourth sense
    rarely = {sense for sense in broader if not deep.isdisjoint(wordnet.ancestors(sense))}
    return any(
        not (broader if rank < _SENSES else rarely).isdisjoint(wordnet.ancestors(sense))
        for name in others
        for rank, sense in enumerate(_all_senses(name) if rarely else _senses(name))
    )


def _senses_and_kinds(names: set[str]) -> set[Synset]:
    """Return the most frequent senses of names, and the kinds of things that some of them stand for."""
    kinds = {load_wordnet().find(kind) for words, kind in _KINDS.items() if not WORDS[words].isdisjoint(names)}
    return kinds.union(chain.from_iterable(map(_senses, names)))


@lru_cache(maxsize=50_000)
def _all_senses(name: str) -> Sequence[Synset]:
    return load_wordnet().senses(name, "n") or load_wordnet().senses(name.rpartition(" ")[2], "n")


def _senses(name: str) -> Sequence[Synset]:
    return _all_senses(name)[:_SENSES]


def _contrary(claim: Claim, claims: Claims) -> tuple[str, ...]:
    """Return the references' contradicting words: another value, a thing of the kind, or nothing."""
    if claim.status != CONTRADICTED:
        return ()
    if claim.value > 0 or len(claim.words) != 2:
        rival = claim.instead
        return (rival,) if rival and len(claim.words) == 1 and _are_of_a_kind(claim.words[0], rival) else ()
    rivals = list(_denials(claim, claims))
    return next((words for words in rivals if words[0] == claim.words[0]), next(iter(rivals), ()))


def _denials(claim: Claim, claims: Claims) -> Iterator[tuple[str, ...]]:
    """Yield the references' qualities that contradict a claim's quality."""
    alike = {claim.words[0], *_nearest(claim.words[0], claims)}
    values = values_of(claim.words[1].split("/"))
    for other in claims.references:
        if len(other.words) == 2 and other.words[0] in alike and deny(values, values_of(other.words[1].split("/"))):
            yield other.words


def _nearest(name: str, claims: Claims) -> Iterator[str]:
    """Yield the references' names for a supported thing of the candidate."""
    for thing in claims.candidate:
        if thing.words == (name,) and thing.status == SUPPORTED and thing.nearest and _are_akin(name, thing.nearest[0]):
            yield thing.nearest[0]


@lru_cache(maxsize=50_000)
def _are_of_a_kind(label: str, other: str) -> bool:
    """Return whether two things are of one kind, neither a kind of the other, nor both parts of a body."""
    wordnet = load_wordnet()
    for sense in _senses(label.partition("/")[0])[:1]:
        for beside in _senses(other.partition("/")[0])[:1]:
            shared = wordnet.ancestors(sense).keys() & wordnet.ancestors(beside)
            steps = wordnet.distance(sense, beside)
            if steps is not None and shared.isdisjoint({sense, beside, wordnet.find("body_part.n.01")}):
                return steps <= (_NEAR_ANIMALS if wordnet.find("animal.n.01") in shared else _NEAR)
    return False


def _share(claims: Iterable[Claim], total: float) -> float:
    return min(1.0, sum(claim.weight for claim in claims) / total) if total else 0.0


def _lost(claims: Iterable[Claim], total: float) -> float:
    return sum(claim.weight * (1 - claim.value) for claim in claims) / total if total else 0.0


def _is_object(word: str) -> bool:
    wordnet = load_wordnet()
    kinds = {wordnet.find("object.n.01"), wordnet.find("matter.n.03")}
    return any(not kinds.isdisjoint(wordnet.ancestors(sense)) for sense in _senses(word))


def _is_noun(word: str) -> bool:
    return len(word) > 3 and is_thing(word) and not any(load_wordnet().senses(word, part) for part in "av")


@lru_cache(maxsize=50_000)
def is_compound(first: str, second: str, parts: str = "n") -> bool:
    """Return whether two words name something together: "cell phone", "snow storm"; as a verb, too, "stir fry"."""
    wordnet, first = load_wordnet(), first.lower()
    ends = (second.lower(), second.lower().removesuffix("s"))
    return min(len(first), len(second)) > 2 and any(
        wordnet.senses(name, part)
        for part in (parts if wordnet.senses(first, "n") else "")
        for name in (f"{first}{link}{end}" for link in (" ", "") for end in ends)
    )


def _close_together(lists: Sequence[Sequence[Span]]) -> Iterator[list[Span]]:
    """Yield for each span of the first list the nearest of the others, each the nearest to the one before."""
    first, *others = lists or [[]]
    for head in first:
        near = [head]
        for here in others:
            middle = near[-1][0]
            free = [span for span in here if span not in near] or here
            near.append(min(free, key=lambda span: (abs(span[0] - middle), span)))
        yield near


class _Texts:
    """Texts in which the words of claims are found."""

    def __init__(self, claims: Sequence[Claim], *texts: str) -> None:
        self.texts = tuple(text.replace("’", "'") for text in texts)  # as words are told apart in both
        self.things = {name for claim in claims if len(claim.words) == 1 for name in claim.words[0].split("/")}

    @cached_property
    def _sentences(self) -> list[tuple[int, Span, Words]]:
        return [
            (number, span, Words(text[slice(*span)]))
            for number, text in enumerate(self.texts)
            for span in sentence_spans(text)
        ]

    def places(self, names: Sequence[str]) -> tuple[Place, ...]:
        """Return where the words of a claim stand: in the first of the sentences that have most of them, close by."""
        number, spans = self._closest(names)
        return tuple(sorted({Place(number, *span) for span in spans}))

    def _closest(self, names: Sequence[str]) -> tuple[int, list[Span]]:
        """Return the text and spans, in the order of the names, of words for most of them, the closest together."""
        # in the first sentence that has most of them, where they are read together
        wanted = [name.removeprefix(NO).split("/") for name in names]
        best: tuple[int, int, list[Span]] = (1, 0, [])
        for number, (start, _), words in self._sentences:
            lists = [[words.spans[index] for index in words.find(strings)] for strings in wanted]
            ways = [[(start + a, start + b) for a, b in near] for near in _close_together(list(filter(None, lists)))]
            if ways:
                near = min(ways, key=lambda near: max(near)[1] - min(near)[0] if len(near) > 1 else 0)
                rank = -2 * len(near) - (len(near) == 2 and self._are_joined(number, *near))
                best = min(best, (rank, number, near), key=lambda each: each[0])
        return best[1], best[2]

    def joins(self, names: Sequence[str]) -> bool:
        """Return whether a thing and its quality stand together as they are read, where the texts have both."""
        number, spans = self._closest(names)
        return len(spans) != 2 or self._are_joined(number, *spans)

    def _are_joined(self, number: int, thing: Span, quality: Span) -> bool:
        (first, last), (start, end) = thing, quality
        text, wordnet = self.texts[number].lower(), load_wordnet()
        if start < first:
            middle = text[end:first]
            ends = re.findall(r"([a-z]+)(?:,|,? and\b)", middle)
            return WORDS["apart"].isdisjoint(re.findall("[a-z]+", middle)) and not any(_is_noun(word) for word in ends)
        behind = _WORD_BEHIND.match(text, end)
        return not (behind and is_thing(behind[1])) and all(
            word in WORDS["links"] or word.endswith(("ly", "ed")) or wordnet.senses(word, "a")
            for word in re.findall("[a-z]+", _WHERE.sub(" ", text[last:start]))
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """All words as they stand, in lower case, those with a hyphen in parts."""
        return frozenset(re.findall("[a-z]+", " ".join(self.texts).lower()))

    def passes_over(self, label: str) -> bool:
        """Return whether each mention of a thing is in passing."""
        # It is denied ("out of water"), only may be, is a portion of another thing ("a carpet of grass"), part of a
        # name ("Fifth Avenue"), of a compound ("tooth brush") or of a colour ("sky blue"), is done ("to board"), or
        # says what the picture is ("a bird's-eye view").
        names = label.split("/")
        return all(
            self._is_in_passing(self.texts[number], sentence, (sentence[0] + start, sentence[0] + end), names)
            for number, sentence, words in self._sentences
            for start, end in map(words.spans.__getitem__, words.find(names))
        )

    def _is_in_passing(self, text: str, sentence: Span, mention: Span, names: Sequence[str]) -> bool:
        (first, last), (start, end) = sentence, mention
        word, before = text[start:end], text[first:start]
        is_name = start > first and word[:1].isupper() and not text[first:last].isupper()
        return bool(
            _PASSED.search(before)
            or _MAYBE.search(text, first, last)
            or _is_no_noun(word.lower(), before, names)
            or self._is_part(text, mention, names)
            or (is_name and not (word.isupper() and len(word) < 4))  # "SUV", "TV"
        )

    def _is_part(self, text: str, mention: Span, names: Sequence[str]) -> bool:
        """Return whether a word belongs to the next one, or is of another thing."""
        start, end = mention
        behind = _WORD_BEHIND.match(text, end)
        return bool(
            (behind and (self._names_more(text[start:end].lower(), behind[1]) or values_of((behind[1],))))
            or _OF_PICTURES.match(text, end)
            or (not WORDS["portions"].isdisjoint(names) and _OF.match(text, end))
        )

    def _names_more(self, said: str, behind: str) -> bool:
        return is_compound(said, behind) and not self.things.isdisjoint((behind, behind.removesuffix("s")))

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
            passage = self._passage(names, places)
            if len(passage.split()) <= _LONGEST:
                return f"{NO}{passage}" if names[0].startswith(NO) else passage
        order = (1, 0) if len(names) == 2 else range(len(names))
        return " ".join(names[index].partition("/")[0] for index in order)

    def _passage(self, names: Sequence[str], places: Sequence[Place]) -> str:
        """Return the passage from the first to the last place, with the other half of a compound."""
        text, start, end = self.texts[places[0].reference], places[0].start, places[-1].end
        passage, before, behind = text[start:end], _WORD_BEFORE.search(text, 0, start), _WORD_BEHIND.match(text, end)
        said = passage.split()[0].lower()
        if before and _is_first_half(before[1].lower(), said, is_alone=len(names) == 1):
            return f"{before[0]}{passage}"
        if behind and len(names) == 1 and is_compound(said, behind[1]):  # "cell phone"
            return f"{passage}{behind[0]}"
        return passage


def _is_no_noun(said: str, before: str, names: Sequence[str]) -> bool:
    """Return whether a word is a participle, or done."""
    if _PARTICIPLE.search(said) and not _is_object(said):
        return True
    return bool(said in names and load_wordnet().senses(said, "v") and _TO_DO.search(before))


def _is_first_half(cut: str, said: str, *, is_alone: bool) -> bool:
    """Return whether the word before a passage belongs to its first word."""
    if is_alone and _is_noun(cut) and not said.endswith("ing"):  # "baggage carrier"
        return True
    if said.endswith("ed") and not values_of((said,)) and len(cut) > 2 and is_thing(cut):  # "snow dusted"
        return True
    return is_compound(cut, said, "nv")
