"""Agreement on pairs: how often a metric prefers the caption that people prefer, by category."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.length import LIKE, LONG
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_studies.agreement import coefficients, protocols
from spicegraph_studies.agreement.judgements import CaptionPair, JudgementScoring, pair_scores
from spicegraph_studies.agreement.length import length_json, word_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Json

_PROTOCOL = ("name", "ties", "own", "references", "choice", "draws")
ALL = "all"  # the category that holds every pair
MEAN = "mean"  # the mean of the categories' accuracies, as papers on PASCAL-50S print it


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One metric's pairs of a category (means over draws) and its accuracy, with a 95 % interval over images."""

    metric: str
    category: str
    pairs: int
    right: float
    tied: float
    wrong: float
    value: float | None
    low: float | None
    high: float | None

    @property
    def interval(self) -> coefficients.Bounded:
        """The accuracy with its interval."""
        return coefficients.Bounded(self.value, self.low, self.high)


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How often metrics prefer the caption that people prefer, under a protocol.

    ``curve`` holds accuracies by number of references, over the pairs that have as many; ``too_few`` counts the others.
    ``length`` is empty where captions have 30 words or fewer in the mean: else how often people prefer the longer
    caption (named ``""``), and each metric's accuracy on pairs of like length.
    """

    protocol: protocols.PairProtocol
    pairs: int
    images: int
    categories: tuple[str, ...]
    removed: Mapping[str, int]
    fewer_references: int  # pairs that have fewer references than the protocol takes: all of theirs are used
    undefined: Mapping[str, int]  # by metric: pairs for which it has no value; they are left out for all metrics
    accuracies: tuple[Accuracy, ...]
    comparisons: tuple[coefficients.MetricComparison, ...]
    curve: Mapping[int, tuple[Accuracy, ...]]
    too_few: Mapping[int, int]
    signature: Mapping[str, Json]
    length: Mapping[str, float | None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values."""
        protocol = {name: getattr(self.protocol, name) for name in _PROTOCOL}
        protocol["people_tied"] = "coin" if self.protocol.coin else "left out"
        return {
            "signature": self.signature,
            "protocol": protocol | {name: getattr(self.protocol, name) for name in ("about", "source")},
            "pairs": self.pairs,
            "images": self.images,
            "removed": self.removed,
            "fewer_references": self.fewer_references,
            "undefined": self.undefined,
            "metrics": _metrics_dict(self.accuracies),
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
            "curve": [
                {"references": count, "fewer_references": self.too_few[count], "metrics": _metrics_dict(accuracies)}
                for count, accuracies in self.curve.items()
            ],
            **({"length": length_json(self.length)} if self.length else {}),
        }


def by_metric(accuracies: Sequence[Accuracy]) -> dict[str, dict[str, Accuracy]]:
    """Return accuracies by metric and category."""
    table: dict[str, dict[str, Accuracy]] = {}
    for row in accuracies:
        table.setdefault(row.metric, {})[row.category] = row
    return table


def _metrics_dict(accuracies: Sequence[Accuracy]) -> dict[str, Json]:
    return {
        metric: {
            category: {name: value for name, value in asdict(row).items() if name not in {"metric", "category"}}
            for category, row in rows.items()
        }
        for metric, rows in by_metric(accuracies).items()
    }


def agree_on_pairs(
    pairs: Sequence[CaptionPair],
    protocol: protocols.PairProtocol = protocols.PAIR_PROTOCOLS["plain"],
    *,
    scoring: JudgementScoring | None = None,
    resampling: Resampling | None = None,
    curve: Sequence[int] = (),
) -> PairAgreement:
    """Score both captions of every pair and count how often the preferred one gets more.

    Args:
        pairs: what people chose, for instance from :func:`read_pairs`.
        protocol: how ties and references count; an entry of ``PAIR_PROTOCOLS`` or a changed one.
        scoring: our metrics to compute; scores that the pairs carry are compared as well.
        resampling: draws and seed of intervals and tests; references are drawn with the same seed.
        curve: numbers of references to compute the accuracy for as well, each over the pairs that have as many.

    Raises:
        InputError: the protocol leaves nothing, scores or references are missing, or the curve is to be drawn
            from given scores.
    """
    resampling = resampling or Resampling()
    scoring = (scoring or JudgementScoring()).shared()
    kept, removed = protocols.prepare_pairs(pairs, protocol)
    _check_counts(kept, protocol, curve)

    categories = tuple(sorted({pair.category for pair in kept} - {""}))
    table = _Table(kept, categories, protocol, scoring, resampling)
    main = tuple(table.accuracies())

    def with_fewer(references: int) -> int:
        return sum(len(pair.references) < references for pair in kept)

    def accuracies(references: int) -> tuple[Accuracy, ...]:
        enough = [pair for pair in kept if len(pair.references) >= references]
        if not enough:
            return tuple(Accuracy(row.metric, row.category, 0, 0.0, 0.0, 0.0, None, None, None) for row in main)
        of_count = _Table(enough, categories, replace(protocol, references=references), scoring, resampling)
        return tuple(of_count.accuracies())

    return PairAgreement(
        protocol,
        len(kept) - table.left_out,
        len({pair.image for pair in kept}),
        categories,
        removed,
        with_fewer(protocol.references or 0),
        table.undefined,
        main,
        tuple(table.comparisons()),
        {count: accuracies(count) for count in sorted(set(curve))},
        {count: with_fewer(count) for count in curve},
        {**table.signature, "resampling": resampling.signature()},
        table.of_like_length(kept),
    )


def _check_counts(kept: Sequence[CaptionPair], protocol: protocols.PairProtocol, curve: Sequence[int]) -> None:
    """Refuse numbers of references and draws that there cannot be, and a curve of scores that are given."""
    counts = (*curve, protocol.references, protocol.draws)
    if wrong := [count for count in counts if count is not None and count < 1]:
        raise InputError(f"numbers of references and draws begin at 1, got {wrong[0]}")
    if curve and any(pair.given for pair in kept):
        raise InputError("given scores belong to one set of references: there is no curve over their number")


class _Table:
    """The scored pairs with their categories and images, by which points are summed."""

    # ``outcomes`` has, by metric, each pair's shares of draws in which it was right, tied, wrong: (pairs, 3); NaN:
    # undefined. ``undefined`` counts such pairs by metric; ``left_out`` are those of any.

    def __init__(
        self,
        pairs: Sequence[CaptionPair],
        categories: Sequence[str],
        protocol: protocols.PairProtocol,
        scoring: JudgementScoring,
        resampling: Resampling,
    ) -> None:
        self._groups = coefficients.numbered(pair.image for pair in pairs)
        self._images = int(self._groups.max()) + 1
        of = np.array([pair.category for pair in pairs])
        self._rows = {name: of == name for name in categories} | {ALL: np.ones(len(pairs), dtype=np.bool_)}
        self._categories = tuple(categories)
        self._credit = np.array([1.0, protocols.TIE_CREDIT[protocol.ties], 0.0])
        self._resampling = resampling
        self.outcomes, self.signature = self._scored(pairs, protocol, scoring)
        unknown = {name: np.isnan(each).any(axis=1) for name, each in self.outcomes.items()}
        left_out = np.any(list(unknown.values()), axis=0)
        if left_out.all():
            raise InputError("no pair has a value of every metric")
        for each in self.outcomes.values():
            each[left_out] = np.nan
        self.undefined = {name: int(each.sum()) for name, each in unknown.items()}
        self.left_out = int(left_out.sum())

    def _scored(
        self, pairs: Sequence[CaptionPair], protocol: protocols.PairProtocol, scoring: JudgementScoring
    ) -> tuple[dict[str, coefficients.Matrix], Mapping[str, Json]]:
        """Score the pairs once for each draw of references, and average the outcomes."""
        count, generator = protocol.references, self._resampling.generator()
        draws = _draws_of_references(protocol, pairs)

        def used(references: tuple[str, ...]) -> tuple[str, ...]:
            if count is None or len(references) <= count or protocol.choice is protocols.ReferenceChoice.FIRST:
                return references[:count]
            return tuple(references[place] for place in generator.permutation(len(references))[:count])

        def with_used(pair: CaptionPair) -> CaptionPair:
            references = used(pair.references)
            return replace(pair, references=references, second=None if pair.second is None else used(pair.second))

        sums: dict[str, coefficients.Matrix] = {}
        signature: Mapping[str, Json] = {}
        preferred = np.array([pair.preferred for pair in pairs], np.float64)
        for _ in range(draws):
            (first, signature), (second, _) = pair_scores(list(map(with_used, pairs)), scoring)
            for name in first:
                outcomes = _outcomes(np.array([first[name], second[name]], np.float64), preferred)
                sums[name] = sums[name] + outcomes if name in sums else outcomes
        empty = sum(not text.strip() for pair in pairs for text in pair.captions)
        if signature and empty:
            signature = {**signature, "empty": {"candidates": empty, "scored": "zero"}}
        return {name: total / draws for name, total in sums.items()}, signature

    def accuracies(self) -> Iterator[Accuracy]:
        """Yield every metric's accuracy in every category, over all pairs, and the mean of the categories."""
        for name, outcomes in self.outcomes.items():
            known = ~np.isnan(outcomes[:, 0])
            draws = self._draws(outcomes)
            values: dict[str, float | None] = {}
            for category, rows in self._rows.items():
                of_category = outcomes[rows & known]
                totals, size = of_category.sum(axis=0), len(of_category)
                right, tied, wrong = map(float, totals)
                values[category] = float(totals @ self._credit) / size if size else None
                ends = percentile_bounds(draws[category])
                yield Accuracy(name, category, size, right, tied, wrong, values[category], *ends)
            if len(self._categories) > 1:
                each = [values[category] for category in self._categories]
                known_values = [value for value in each if value is not None]
                mean = float(np.mean(known_values)) if len(known_values) == len(each) else None
                ends = percentile_bounds(np.mean([draws[category] for category in self._categories], axis=0))
                right, tied, wrong = map(float, outcomes[known].sum(axis=0))
                yield Accuracy(name, MEAN, int(known.sum()), right, tied, wrong, mean, *ends)

    def of_like_length(self, pairs: Sequence[CaptionPair]) -> dict[str, float | None]:
        """Return how often people prefer the longer caption, and accuracies where neither is a quarter longer."""
        words = np.maximum([word_counts(pair.captions) for pair in pairs], 1)
        if words.mean() <= LONG:
            return {}
        preferred = np.array([pair.preferred for pair in pairs], np.float64)
        decided = ~np.isnan(preferred)
        unequal = decided & (words[:, 0] != words[:, 1])
        longer = (words[:, 1] > words[:, 0]) == (preferred == 1)
        held: dict[str, float | None] = {"": float(longer[unequal].mean()) if unequal.any() else None}
        like = decided & (words.max(axis=1) <= LIKE * words.min(axis=1))
        for name, outcomes in self.outcomes.items():
            rows = like & ~np.isnan(outcomes[:, 0])
            held[name] = float((outcomes[rows] @ self._credit).mean()) if rows.any() else None
        return held

    def _draws(self, outcomes: coefficients.Matrix) -> dict[str, coefficients.Vector]:
        """Return the accuracy of each category for resamples of the images."""
        known = ~np.isnan(outcomes[:, 0])
        credit = np.where(known, np.nan_to_num(outcomes) @ self._credit, 0.0)
        columns = np.stack(
            [
                np.bincount(self._groups, weights=part * rows, minlength=self._images)
                for rows in self._rows.values()
                for part in (credit, known.astype(np.float64))
            ],
            axis=1,
        )
        sums = np.concatenate([drawn @ columns for drawn in coefficients.resamples(self._resampling, self._images)])
        shares = coefficients.ratio(sums[:, ::2], sums[:, 1::2])
        return {category: shares[:, index] for index, category in enumerate(self._rows)}

    def comparisons(self) -> Iterator[coefficients.MetricComparison]:
        """Yield the comparison of every two metrics over all pairs."""
        draws = {name: self._draws(each)[ALL] for name, each in self.outcomes.items()}
        for first, second in combinations(self.outcomes, 2):
            of_first, of_second = (self.outcomes[name] @ self._credit for name in (first, second))
            known = ~np.isnan(of_first)
            yield coefficients.MetricComparison(
                first,
                second,
                "accuracy",
                float(of_first[known].mean()),
                float(of_second[known].mean()),
                float((of_second - of_first)[known].mean()),
                *percentile_bounds(draws[second] - draws[first]),
                coefficients.accuracy_permutation(
                    (of_second - of_first)[known], self._groups[known], resampling=self._resampling
                ),
                None,
            )


def _draws_of_references(protocol: protocols.PairProtocol, pairs: Sequence[CaptionPair]) -> int:
    """Return how often references are drawn: once, where the same ones are used each time."""
    is_drawn = protocol.choice is protocols.ReferenceChoice.RANDOM and protocol.references is not None
    most = max(len(pair.references) for pair in pairs)
    return protocol.draws if is_drawn and most > (protocol.references or 0) else 1


def _outcomes(scores: coefficients.Matrix, preferred: coefficients.Vector) -> coefficients.Matrix:
    """Return whether both captions' scores are right, tied or wrong for each pair, (pairs, 3); NaN where undefined."""
    difference = np.where(preferred == 0, scores[0] - scores[1], scores[1] - scores[0])
    outcomes = np.stack([difference > 0, difference == 0, difference < 0], axis=1).astype(np.float64)
    outcomes[np.isnan(preferred)] = 0.5, 0, 0.5  # half right and half wrong where people are tied
    outcomes[np.isnan(difference)] = np.nan
    return outcomes
