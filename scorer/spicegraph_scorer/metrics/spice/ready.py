"""SPICE of ready tuples: for graphs that come from another parser, and for proof against the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import InputError
from spicegraph_parser.graph import merge
from spicegraph_parser.lexicon import load_lexicon
from spicegraph_parser.rules import Fact
from spicegraph_scorer.core.categories import CategoryScore
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.metrics.spice.metric import SpiceStatistic, score_graphs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.metrics.spice.categories import Category
    from spicegraph_scorer.metrics.spice.match import Match

_READY = "ready"


class ScoredTuple(NamedTuple):
    """A merged tuple as SPICE prints it (subject, relation, object) and whether it found a partner."""

    tuple: tuple[str, ...]
    truth_value: bool


@dataclass(frozen=True, slots=True)
class TupleResult:
    """The SPICE result of one item.

    ``scores`` maps ``All`` and every category to ``f``, ``pr``, ``re`` (``None`` where undefined) and the
    counts ``tp``, ``fp``, ``fn``; ``statistic`` holds the match that they come from.
    """

    scores: dict[str, dict[str, float | int | None]]
    statistic: SpiceStatistic

    @property
    def candidate(self) -> tuple[ScoredTuple, ...]:
        """The merged tuples of the candidate, matched ones first."""
        return scored_tuples(self.statistic.match)[0]

    @property
    def reference(self) -> tuple[ScoredTuple, ...]:
        """The merged tuples of the references, matched ones first."""
        return scored_tuples(self.statistic.match)[1]


def score_tuples(
    candidate: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    exact: bool = False,  # noqa: FBT001, FBT002 (public signature)
    *,
    categories: Mapping[str, Category] = CATEGORIES,
) -> TupleResult:
    """Score ready tuples of a candidate against those of its references.

    Args:
        candidate: tuples (object), (object, attribute) or (subject, object, relation), in a parser's order.
        references: one such list per reference caption.
        exact: no synonyms (SPICE's ``-noSynsets``).
        categories: what is counted beside the total.

    Raises:
        InputError: a tuple has no or more than three words, or a word is not a non-empty string.

    Example:
        >>> result = score_tuples([["sofa"], ["sofa", "brown"]], [[["couch"], ["couch", "brown"]]])
        >>> result.scores["All"]["f"]
        1.0
    """
    lexicon = load_lexicon()
    mine = [_facts(candidate, "candidate")]
    theirs = [_facts(tuples, f"references[{index}]") for index, tuples in enumerate(references)]
    graphs = merge(mine, lexicon, exact=exact), merge(theirs, lexicon, exact=exact)
    statistic = score_graphs(*graphs, categories=categories)
    scores = {name: CategoryScore.of(counts, name).to_dict() for name, counts in statistic.counts.items()}
    return TupleResult(scores, statistic)


def _facts(tuples: Sequence[Sequence[str]], field: str) -> list[Fact]:
    facts = []
    for index, words in enumerate(tuples):
        if not isinstance(words, list | tuple) or not 1 <= len(words) <= 3:
            raise InputError(f"{field}[{index}]: a tuple is a list of one to three words, got {words!r}")
        if not all(map(_is_word, words)):
            raise InputError(f"{field}[{index}]: a word is a non-empty string, got {words!r}")
        facts.append(Fact(tuple(words), _READY, ()))
    return facts


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != "" and not value.isspace()


def scored_tuples(match: Match) -> tuple[tuple[ScoredTuple, ...], tuple[ScoredTuple, ...]]:
    """Return both sides of a match as SPICE prints them, matched tuples first.

    A reference tuple counts as true when it is the *first* partner of a candidate tuple.
    """
    firsts = {partners[0] for partners in match.candidate_partners if partners}
    candidate = [
        ScoredTuple(t.strings, bool(p)) for t, p in zip(match.candidate, match.candidate_partners, strict=True)
    ]
    reference = [ScoredTuple(t.strings, index in firsts) for index, t in enumerate(match.reference)]
    return tuple(sorted(candidate, key=_unmatched)), tuple(sorted(reference, key=_unmatched))


def _unmatched(scored: ScoredTuple) -> bool:
    return not scored.truth_value
