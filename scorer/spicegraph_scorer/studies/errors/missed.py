"""What a reference tuple without a partner is: one rule per explanation, tried in the order of ``MISSED``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.metrics.spice.categories import COLORS, NUMERALS, SIZES
from spicegraph_scorer.studies.errors.findings import Explanation, Kind, Side
from spicegraph_scorer.studies.errors.view import word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_scorer.studies.errors.findings import Rule
    from spicegraph_scorer.studies.errors.view import MatchView

__all__ = ["MISSED"]

_WITH_PREPOSITION_ALONE = frozenset({"prepositional", "predicate"})
_OWNER = frozenset({"possessive"})


def _object(_view: MatchView, theirs: SceneTuple) -> Explanation:
    """Name an object of the references that the candidate lacks."""
    return Explanation((word(theirs, 0),))


def _follows_from_object(view: MatchView, theirs: SceneTuple) -> Explanation | None:
    """Name a tuple that could not be matched, since the candidate does not name one of its objects."""
    ends = [slot for slot in (0, 2) if slot < len(theirs.concepts)]
    missing = [slot for slot in ends if not view.is_named(theirs.concepts[slot])]
    return Explanation((word(theirs, missing[0]), word(theirs, 1))) if missing else None


def _attribute_of(words: frozenset[str] | None) -> Rule:
    """Make the rule for attributes of a word list, of objects that the candidate names."""

    def rule(_view: MatchView, theirs: SceneTuple) -> Explanation | None:
        name = word(theirs, 1)
        return Explanation((name, word(theirs, 0))) if words is None or name in words else None

    return rule


def _relation_by(*, preposition: bool) -> Rule:
    """Make the rule for relations that are a preposition alone, or those that have a verb."""

    def rule(_view: MatchView, theirs: SceneTuple) -> Explanation | None:
        rules = {evidence.fact.rule for evidence in theirs.evidence}
        alone = bool(rules) and rules <= _WITH_PREPOSITION_ALONE
        return Explanation((word(theirs, 1),)) if alone is preposition else None

    return rule


def _owner(_view: MatchView, theirs: SceneTuple) -> Explanation | None:
    """Name an owner and what it has, which no verb of the caption says."""
    rules = {evidence.fact.rule for evidence in theirs.evidence}
    return Explanation((word(theirs, 0), word(theirs, 2))) if rules and rules <= _OWNER else None


_ATTRIBUTE_OF = ("Attribute", "Of")
_FOLLOWS = ("Object", "Said of it")

_OUT = Side.MISSED
MISSED: Mapping[str, Kind] = {
    "object_missed": Kind(_OUT, 1, "Object missed", ("Object",), _object),
    "attribute_of_missed_object": Kind(
        _OUT, 2, "Attribute of a missed object", _FOLLOWS, _follows_from_object, primary=False
    ),
    "color_missed": Kind(_OUT, 2, "Color missed", _ATTRIBUTE_OF, _attribute_of(COLORS)),
    "count_missed": Kind(_OUT, 2, "Count missed", _ATTRIBUTE_OF, _attribute_of(NUMERALS)),
    "size_missed": Kind(_OUT, 2, "Size missed", _ATTRIBUTE_OF, _attribute_of(SIZES)),
    "attribute_missed": Kind(_OUT, 2, "Other attribute missed", _ATTRIBUTE_OF, _attribute_of(None)),
    "relation_of_missed_object": Kind(
        _OUT, 3, "Relation of a missed object", _FOLLOWS, _follows_from_object, primary=False
    ),
    "owner_missed": Kind(_OUT, 3, "Owner missed", ("Owner", "Has"), _owner),
    "preposition_missed": Kind(_OUT, 3, "Preposition missed", ("Preposition",), _relation_by(preposition=True)),
    "verb_missed": Kind(_OUT, 3, "Verb missed", ("Verb",), _relation_by(preposition=False)),
}
"""Every explanation of a reference tuple without a partner; the last one of each length always applies."""
