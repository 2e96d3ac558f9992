"""What one description says that another does not: tuples added and removed, and which of them references support.

Both descriptions are matched with the same references; a tuple is right if it has a partner there. A tuple of one
description is added or removed if it has no partner in the other one; "sofa" for "couch" changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.categories import Counts
from spicegraph_scorer.core.items import Item, ItemId, in_order_of
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.match import Match, match_tuples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Sized

    from spicegraph_parser.spice.graph import SceneTuple
    from spicegraph_scorer.metrics.spice.metric import Spice


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes from one description to another, judged by their shared references."""

    added_right: tuple[SceneTuple, ...]
    added_wrong: tuple[SceneTuple, ...]
    removed_right: tuple[SceneTuple, ...]
    removed_wrong: tuple[SceneTuple, ...]
    covered: tuple[SceneTuple, ...]  # reference tuples that only the second has
    uncovered: tuple[SceneTuple, ...]  # those that only the first has
    before: Counts
    after: Counts
    missed_before: int

    @property
    def gain(self) -> float:
        """SPICE of the second description less SPICE of the first, in [-1, 1]."""
        return self.after.f1 - self.before.f1

    @property
    def changes(self) -> Counts:
        """The changes as counts: right ones, all of them, and all that would have been right."""
        # Right changes are right tuples added and wrong ones removed. Those that would have been right are the
        # reference tuples that the first description lacks and its wrong tuples.
        right = len(self.added_right) + len(self.removed_wrong)
        made = right + len(self.added_wrong) + len(self.removed_right)
        return Counts(right, made, self.missed_before + self.before.false_positives)

    @property
    def precision(self) -> float | None:
        """Share of the changes that are right, in [0, 1]; ``None`` without any."""
        return self.changes.precision if self.changes.candidate else None

    @property
    def recall(self) -> float | None:
        """Share of the missed and wrong tuples that were mended, in [0, 1]; ``None`` where nothing was to mend."""
        wanted = self.changes.reference
        return (len(self.covered) + len(self.removed_wrong)) / wanted if wanted else None

    @property
    def net(self) -> int:
        """Right changes less wrong ones; 0 for a description that says the same in other words."""
        return 2 * self.changes.matched - self.changes.candidate

    def scores(self) -> dict[str, float | int | None]:
        """Return ``gain``, ``precision``, ``recall``, ``net``, and how many tuples there are of each kind."""
        kinds = {name: len(tuples) for name, tuples in self.tuples().items()}
        shares = {"gain": self.gain, "precision": self.precision, "recall": self.recall, "net": self.net}
        return {"before": self.before.f1, "after": self.after.f1, **shares, **kinds}

    def changed(self) -> dict[str, tuple[SceneTuple, ...]]:
        """Return the tuples that were added or removed, right and wrong ones, by the name of the field."""
        return {name: kind for name, kind in self.tuples().items() if name.startswith(("added", "removed"))}

    def tuples(self) -> dict[str, tuple[SceneTuple, ...]]:
        """Return the tuples of each kind of change by its name."""
        return {
            "added_right": self.added_right,
            "added_wrong": self.added_wrong,
            "removed_right": self.removed_right,
            "removed_wrong": self.removed_wrong,
            "covered": self.covered,
            "uncovered": self.uncovered,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: ``scores``, and ``tuples`` by kind, each as SPICE prints it."""
        tuples = {name: [list(each.strings) for each in kind] for name, kind in self.tuples().items()}
        return {"scores": self.scores(), "tuples": tuples}


def _only_with(
    tuples: Sequence[SceneTuple], partners: Sequence[Sized], others: Sequence[Sized]
) -> tuple[SceneTuple, ...]:
    """Return the tuples that have partners on one side alone."""
    return tuple(each for each, here, there in zip(tuples, partners, others, strict=True) if here and not there)


def difference(before: Match, after: Match) -> Difference:
    """Return the changes between two descriptions, from matches with the same references."""
    if [each.strings for each in before.reference] != [each.strings for each in after.reference]:
        raise InputError("two descriptions can be compared only by the same references")
    between = match_tuples(before.candidate, after.candidate)
    removed = [index for index, partners in enumerate(between.candidate_partners) if not partners]
    added = [index for index, partners in enumerate(between.reference_partners) if not partners]
    had, has = before.reference_partners, after.reference_partners
    return Difference(
        added_right=_chosen(after, added, right=True),
        added_wrong=_chosen(after, added, right=False),
        removed_right=_chosen(before, removed, right=True),
        removed_wrong=_chosen(before, removed, right=False),
        covered=_only_with(after.reference, has, had),
        uncovered=_only_with(after.reference, had, has),
        before=_total(before),
        after=_total(after),
        missed_before=len(before.missed),
    )


def _chosen(match: Match, indices: Iterable[int], *, right: bool) -> tuple[SceneTuple, ...]:
    return tuple(match.candidate[index] for index in indices if bool(match.candidate_partners[index]) == right)


def _total(match: Match) -> Counts:
    return Counts(sum(map(bool, match.candidate_partners)), len(match.candidate), len(match.reference))


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """The differences of two systems' descriptions, by item, and what they are by."""

    signature: Mapping[str, str]
    ids: tuple[ItemId, ...]
    items: tuple[Difference, ...]

    def corpus(self) -> dict[str, float | int | None]:
        """Return the means of SPICE and its gain, and precision, recall and net of all items' changes together."""
        changes = sum((item.changes for item in self.items), Counts())
        mended = sum(len(item.covered) + len(item.removed_wrong) for item in self.items)
        kinds: dict[str, float | int | None] = {
            name: sum(len(item.tuples()[name]) for item in self.items) for name in self.items[0].tuples()
        }
        size = len(self.items)
        return {
            "before": math.fsum(item.before.f1 for item in self.items) / size,
            "after": math.fsum(item.after.f1 for item in self.items) / size,
            "gain": math.fsum(item.gain for item in self.items) / size,
            "precision": changes.precision if changes.candidate else None,
            "recall": mended / changes.reference if changes.reference else None,
            "net": 2 * changes.matched - changes.candidate,
            **kinds,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: ``signature``, ``corpus`` and ``items``."""
        rows = [{"image_id": image_id, **item.to_dict()} for image_id, item in zip(self.ids, self.items, strict=True)]
        return {"signature": dict(self.signature), "corpus": self.corpus(), "items": rows}


def differences(first: Sequence[Item], second: Sequence[Item], spice: Spice) -> SystemDifference:
    """Return the changes between two systems' checked items, by a SPICE with evidence."""
    other = in_order_of(first, second)
    both = Corpus((*first, *other))
    statistics = spice.collect(both)
    pairs = zip(statistics[: len(first)], statistics[len(first) :], strict=True)
    items = tuple(difference(old.match, new.match) for old, new in pairs)
    return SystemDifference(spice.signature(), tuple(item.id for item in first), items)
