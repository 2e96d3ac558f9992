"""SPICE outside the pipeline: the score of ready tuples, from another parser, and results in the words of SPICE 1.0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.errors import InputError
from spicegraph_parser.graph import merge
from spicegraph_parser.lexicon import load_lexicon
from spicegraph_parser.rules import Fact
from spicegraph_scorer.core.categories import ALL, CategoryScore
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.metrics.spice.metric import SpiceStatistic, score_graphs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.results import Json, Result
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


JAR_METRICS: Final = ("spice", "spice-exact")
"""The metrics whose results the program's output can hold."""


def jar_output(result: Result, *, detailed: bool = True, subset: bool = True) -> list[dict[str, Json]]:
    """Return the SPICE part of a result as SPICE 1.0's JSON: one object per item.

    Args:
        result: what was scored.
        detailed: with the tuples (the program's ``-detailed``).
        subset: with the categories' scores beside those of ``All`` (``-subset``).

    ``f``, ``pr`` and ``re`` are ``None`` (``null``) in categories without reference tuples, as the program
    prints its NaN.

    Raises:
        InputError: SPICE was not among the metrics.
    """
    return list(jar_rows(result, detailed=detailed, subset=subset))


def jar_rows(result: Result, *, detailed: bool = True, subset: bool = True) -> Iterator[dict[str, Json]]:
    """Return what :func:`jar_output` lists, an item at a time: the tuples of many items are far larger than they are.

    Raises:
        InputError: SPICE was not among the metrics.
    """
    run = next((run for run in result.runs if run.name in JAR_METRICS), None)
    if run is None:
        raise InputError("the SPICE format holds SPICE results: ask for the metric spice or spice-exact")
    return (
        jar_item(item.id, statistic, detailed=detailed, subset=subset)
        for item, statistic in zip(result.items, run.statistics, strict=True)
    )


def jar_item(
    image_id: ItemId, statistic: SpiceStatistic, *, detailed: bool = True, subset: bool = True
) -> dict[str, Json]:
    """Return one item's scores and tuples, the tuples in the program's order."""
    scores: dict[str, Json] = {
        name: {**CategoryScore.of(counts, name).to_dict(), "numImages": 1}
        for name, counts in statistic.counts.items()
        if subset or name == ALL
    }
    item: dict[str, Json] = {"image_id": image_id, "scores": scores}
    if not detailed:
        return item
    candidate, reference = scored_tuples(statistic.match)
    return {**item, "test_tuples": _tuples(candidate), "ref_tuples": _tuples(reference)}


def _tuples(scored: Iterable[ScoredTuple]) -> list[dict[str, Json]]:
    return [{"tuple": list(strings), "truth_value": truth_value} for strings, truth_value in scored]
