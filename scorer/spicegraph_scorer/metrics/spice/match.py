"""Which tuples of a candidate find a tuple of the references, and how many do, in total and by category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.core.categories import ALL, Category, Counts
from spicegraph_scorer.core.credit import Credit, CreditPart, Words
from spicegraph_scorer.metrics.spice.categories import CATEGORIES

if TYPE_CHECKING:
    from spicegraph_parser.spice.graph import ConceptGraph, SceneTuple
    from spicegraph_parser.spice.index import Concept


@dataclass(frozen=True, slots=True)
class Match:
    """Both tuple lists and, for every tuple, the indices of its partners on the other side."""

    # Matching is not one-to-one, as in SPICE 1.0: a reference tuple may serve several candidate tuples.

    candidate: tuple[SceneTuple, ...]
    reference: tuple[SceneTuple, ...]
    candidate_partners: tuple[tuple[int, ...], ...]
    reference_partners: tuple[tuple[int, ...], ...]

    @property
    def pairs(self) -> tuple[tuple[SceneTuple, SceneTuple], ...]:
        """Every matched candidate tuple with its first reference tuple."""
        return tuple(
            (candidate, self.reference[partners[0]])
            for candidate, partners in zip(self.candidate, self.candidate_partners, strict=True)
            if partners
        )

    @property
    def invented(self) -> tuple[SceneTuple, ...]:
        """Candidate tuples that no reference has."""
        return tuple(t for t, partners in zip(self.candidate, self.candidate_partners, strict=True) if not partners)

    @property
    def missed(self) -> tuple[SceneTuple, ...]:
        """Reference tuples that the candidate does not have."""
        return tuple(t for t, partners in zip(self.reference, self.reference_partners, strict=True) if not partners)


NO_MATCH: Final = Match((), (), (), ())  # Stands where a match is not kept.


def match_tuples(
    candidate: Sequence[SceneTuple],
    reference: Sequence[SceneTuple],
    *,
    by_length: Mapping[int, Sequence[int]] | None = None,
) -> Match:
    """Match two lists of tuples: equal length, and a common string or synset at every position."""
    # Source: Anderson et al., ECCV 2016, section 3.3 (binary matching operator with WordNet synonyms).
    lengths = group_by_length(reference) if by_length is None else by_length
    mine_to: list[list[int]] = [[] for _ in candidate]
    theirs_to: list[list[int]] = [[] for _ in reference]
    for i, scene_tuple in enumerate(candidate):
        keys = [concept.keys for concept in scene_tuple.concepts]
        first_keys, rest = keys[0], keys[1:]
        for j in lengths.get(len(keys), ()):
            concepts = reference[j].concepts
            if not first_keys.isdisjoint(concepts[0].keys) and all(
                not left.isdisjoint(other_concept.keys) for left, other_concept in zip(rest, concepts[1:], strict=True)
            ):
                mine_to[i].append(j)
                theirs_to[j].append(i)
    return Match(tuple(candidate), tuple(reference), tuple(map(tuple, mine_to)), tuple(map(tuple, theirs_to)))


def group_by_length(tuples: Sequence[SceneTuple]) -> dict[int, list[int]]:
    """Return the indices of tuples by their length: 1 object, 2 attribute, 3 relation."""
    by_length: dict[int, list[int]] = {}
    for index, scene_tuple in enumerate(tuples):
        by_length.setdefault(len(scene_tuple.concepts), []).append(index)
    return by_length


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts(Mapping[str, Counts]):
    """One item's counts by category, in a third of a dict's memory: a corpus has millions of them."""

    # Its places say which count is a category's: one dict for all items. Equal counts are one value, too.

    places: Mapping[str, int]
    each: tuple[Counts, ...]

    @classmethod
    def of(cls, counts: Mapping[str, Counts]) -> CategoryCounts:
        """Keep counts."""
        return cls(_places(tuple(counts)), tuple(map(_shared, counts.values())))

    def __getitem__(self, name: str) -> Counts:
        return self.each[self.places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.each)


@lru_cache(maxsize=256)
def _places(names: tuple[str, ...]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


@lru_cache(maxsize=1 << 14)
def _shared(counts: Counts) -> Counts:
    return counts


def count_match(
    match: Match,
    *,
    categories: Mapping[str, Category] = CATEGORIES,
    reference: Mapping[str, frozenset[int]] | None = None,
) -> dict[str, Counts]:
    """Count a match in total (``All``) and by category, given the reference's ``select_categories`` if it is known."""
    # Within a category only its own tuples match each other: "grey" does not match any of the colours when the
    # reference's is "gray/grey", as in SPICE 1.0.
    partners = match.candidate_partners
    counts = {ALL: Counts(sum(map(bool, partners)), len(match.candidate), len(match.reference))}
    candidate = select_categories(match.candidate, categories)
    if reference is None:
        reference = select_categories(match.reference, categories)
    for name, candidate_indices in candidate.items():
        reference_indices = reference[name]
        hits = sum(not reference_indices.isdisjoint(partners[index]) for index in candidate_indices)
        counts[name] = Counts(hits, len(candidate_indices), len(reference_indices))
    return counts


def select_categories(tuples: Sequence[SceneTuple], categories: Mapping[str, Category]) -> dict[str, frozenset[int]]:
    """Return the indices of the tuples of each category."""
    lengths = group_by_length(tuples)
    return {
        name: frozenset(category.select(tuples, lengths.get(category.length, ())))
        for name, category in categories.items()
    }


_Paired = tuple["Concept", list["Concept"]]  # What a candidate's tuple ends with, and the same of its partners.


def count_concepts(
    candidate: ConceptGraph, reference: ConceptGraph, *, categories: Mapping[str, Category] = CATEGORIES
) -> dict[str, Counts]:
    """Match two graphs, and count in total (``All``) and by category."""
    near = [  # for each object of the candidate, those that have a string or a synset in common with it
        [index for index, other in enumerate(reference.objects) if not concept.keys.isdisjoint(other.keys)]
        for concept in candidate.objects
    ]
    candidate_concepts: dict[int, list[_Paired]] = {
        1: [
            (concept, [reference.objects[i] for i in those])
            for concept, those in zip(candidate.objects, near, strict=True)
        ],
        2: list(_attributes(candidate, reference, near)),
        3: list(_relations(candidate, reference, near)),
    }
    reference_concepts: dict[int, list[Concept]] = {
        1: reference.objects,
        2: list(map(reference.labels.__getitem__, chain.from_iterable(reference.attributes.values()))),
        3: list(map(reference.labels.__getitem__, chain.from_iterable(reference.relations.values()))),
    }
    whole = {
        length: Counts(sum(map(bool, map(itemgetter(1), pairs))), len(pairs), len(reference_concepts[length]))
        for length, pairs in candidate_concepts.items()
    }
    by_category = {
        name: whole[category.length]
        if category.takes_all
        else _counts_within(category, candidate_concepts[category.length], reference_concepts[category.length])
        for name, category in categories.items()
    }
    total = Counts(*map(sum, zip(*whole.values(), strict=True)))
    return {ALL: total, **by_category}


def _attributes(candidate: ConceptGraph, reference: ConceptGraph, near: Sequence[Sequence[int]]) -> Iterator[_Paired]:
    for owner, numbers in candidate.attributes.items():
        known = [reference.labels[number] for index in near[owner] for number in reference.attributes.get(index, ())]
        for number in numbers:
            yield _paired(candidate.labels[number], known)


def _relations(candidate: ConceptGraph, reference: ConceptGraph, near: Sequence[Sequence[int]]) -> Iterator[_Paired]:
    for (subject, target), numbers in candidate.relations.items():
        pairs = product(near[subject], near[target])
        known = [reference.labels[number] for pair in pairs for number in reference.relations.get(pair, ())]
        for number in numbers:
            yield _paired(candidate.labels[number], known)


def _paired(concept: Concept, known: Sequence[Concept]) -> _Paired:
    is_apart = concept.keys.isdisjoint
    return concept, [other for other in known if not is_apart(other.keys)]


def _counts_within(category: Category, candidate: Sequence[_Paired], reference: Iterable[Concept]) -> Counts:
    """Count a category's tuples, which match each other only."""
    takes = category.takes
    taken_partners = [
        partners
        for (_, partners), is_taken in zip(candidate, takes([c for c, _ in candidate]), strict=True)
        if is_taken
    ]
    return Counts(
        sum(1 for partners in taken_partners if any(takes(partners))), len(taken_partners), sum(takes(reference))
    )


KINDS: Final = ("object", "attribute", "relation")  # What a tuple is, by its length less one.


def tuple_credits(matched: int, candidate: int, reference: int) -> tuple[float, float]:
    """Return the Shapley values of a matched and of an unmatched tuple of a candidate in its F1."""
    # The players are the candidate's tuples: k of them, m of which match, score 2 m / (k + reference). In a random
    # order k of the others stand before a tuple, m / (n - 1) of which match on average, so that a tuple without a
    # partner gets the mean over k from 0 to n - 1 of 2 k m / (n - 1) (1 / (k + 1 + reference) - 1 / (k + reference));
    # the matched ones share the rest.
    if not matched or not candidate + reference:
        return 0.0, 0.0
    wrong = 0.0
    if candidate > matched:
        lost = (k / (k + 1 + reference) - k / (k + reference) for k in range(1, candidate))
        wrong = 2 * matched / (candidate - 1) * sum(lost) / candidate
    return (2 * matched / (candidate + reference) - (candidate - matched) * wrong) / matched, wrong


def match_credit(match: Match, text: str) -> Credit:
    """Return which words of a candidate earned its F1: see :func:`tuple_credits`."""
    words, partners = Words(text), match.candidate_partners
    counts = Counts(sum(map(bool, partners)), len(match.candidate), len(match.reference))
    wrong_right = tuple_credits(*counts)[::-1]
    parts = [
        (
            CreditPart(KINDS[len(scene_tuple.concepts) - 1], scene_tuple.strings, wrong_right[bool(those)]),
            tuple([words.find(concept.strings) for concept in scene_tuple.concepts]),
        )
        for scene_tuple, those in zip(match.candidate, partners, strict=True)
    ]
    return words.credit(counts.f1, parts)
