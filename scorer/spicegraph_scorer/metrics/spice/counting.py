"""Counts straight from merged concepts: what ``count_match(match_tuples(...))`` gives, without listing the matches.

Attributes and relations can only match where their objects do, so that objects are compared first.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from spicegraph_scorer.core.categories import ALL, Counts
from spicegraph_scorer.metrics.spice.categories import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.graph import ConceptGraph
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.metrics.spice.categories import Category

__all__ = ["count_concepts"]

_Paired = tuple["Concept", list["Concept"]]
"""What a candidate's tuple ends with (its object, attribute or relation), and the same of each of its partners."""


def count_concepts(
    candidate: ConceptGraph, reference: ConceptGraph, *, categories: Mapping[str, Category] = CATEGORIES
) -> dict[str, Counts]:
    """Match two graphs, and count in total (``All``) and by category.

    Example:
        >>> from spicegraph_parser import Fact, load_lexicon
        >>> from spicegraph_parser.graph import merge_concepts
        >>> mine, theirs = (
        ...     merge_concepts([[Fact((noun, "brown"), "amod", ())]], load_lexicon()) for noun in ("sofa", "couch")
        ... )
        >>> count_concepts(mine, theirs)["Color"]
        Counts(matched=1, candidate=1, reference=1)
    """
    near = [_sharing(concept, reference.objects) for concept in candidate.objects]
    mine: dict[int, list[_Paired]] = {
        1: [
            (concept, [reference.objects[i] for i in those])
            for concept, those in zip(candidate.objects, near, strict=True)
        ],
        2: list(_attributes(candidate, reference, near)),
        3: list(_relations(candidate, reference, near)),
    }
    theirs: dict[int, list[Concept]] = {
        1: reference.objects,
        2: [reference.labels[number] for numbers in reference.attributes.values() for number in numbers],
        3: [reference.labels[number] for numbers in reference.relations.values() for number in numbers],
    }
    whole = {length: _counts(mine[length], theirs[length]) for length in mine}
    by_category = {
        name: whole[category.length]
        if category.takes_all
        else _counts_within(category, mine[category.length], theirs[category.length])
        for name, category in categories.items()
    }
    total = Counts(*map(sum, zip(*whole.values(), strict=True)))
    return {ALL: total, **by_category}


def _sharing(concept: Concept, others: Sequence[Concept]) -> list[int]:
    """Return which concepts have a string or a synset in common with one."""
    is_apart = concept.keys.isdisjoint
    return [index for index, other in enumerate(others) if not is_apart(other.keys)]


def _attributes(candidate: ConceptGraph, reference: ConceptGraph, near: Sequence[Sequence[int]]) -> Iterator[_Paired]:
    for owner, numbers in candidate.attributes.items():
        known = [reference.labels[number] for index in near[owner] for number in reference.attributes.get(index, ())]
        for number in numbers:
            yield _paired(candidate.labels[number], known)


def _relations(candidate: ConceptGraph, reference: ConceptGraph, near: Sequence[Sequence[int]]) -> Iterator[_Paired]:
    for (subject, target), numbers in candidate.relations.items():
        places = product(near[subject], near[target])
        known = [reference.labels[number] for place in places for number in reference.relations.get(place, ())]
        for number in numbers:
            yield _paired(candidate.labels[number], known)


def _paired(concept: Concept, known: Sequence[Concept]) -> _Paired:
    is_apart = concept.keys.isdisjoint
    return concept, [other for other in known if not is_apart(other.keys)]


def _counts(mine: Sequence[_Paired], theirs: Sequence[Concept]) -> Counts:
    return Counts(sum(1 for _, partners in mine if partners), len(mine), len(theirs))


def _counts_within(category: Category, mine: Sequence[_Paired], theirs: Iterable[Concept]) -> Counts:
    """Count a category's tuples, which match each other only."""
    takes = category.takes
    own = [partners for (_, partners), is_taken in zip(mine, takes([c for c, _ in mine]), strict=True) if is_taken]
    return Counts(sum(1 for partners in own if any(takes(partners))), len(own), sum(takes(theirs)))
