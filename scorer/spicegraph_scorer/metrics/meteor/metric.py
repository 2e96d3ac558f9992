"""METEOR 1.5 as a metric of items, as the COCO evaluation computes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spicegraph_scorer.core.metric import Score
from spicegraph_scorer.metrics.meteor.data import MeteorData, load_data
from spicegraph_scorer.metrics.meteor.protocol import SEPARATOR, split_line
from spicegraph_scorer.metrics.meteor.scoring import NO_ALIGNMENT, MeteorStatistic, scored_texts
from spicegraph_scorer.metrics.meteor.statistics import add_counts, score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.items import Corpus

__all__ = ["Meteor", "coco_texts"]

Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]


def coco_texts(candidate: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[str, list[str]]:
    """Return the texts that METEOR gets from the COCO evaluation for one item's tokens.

    The evaluation writes tokens with spaces between them, all on one line with ``|||`` between texts. It
    removes ``|||`` and the first of two adjacent spaces from the candidate alone; a reference that holds
    ``|||`` therefore counts as two.
    """
    text = " ".join(candidate).replace(SEPARATOR, "").replace("  ", " ")
    others = [" ".join(reference) for reference in references]
    if any(SEPARATOR in other for other in others):
        _, *others, text = split_line(f" {SEPARATOR} ".join(["", *others, text]))
    return text, others


@dataclass(frozen=True, slots=True)
class Meteor:
    """METEOR 1.5 for English: exact, stem, synonym and paraphrase matches, parameters of the ranking task.

    The corpus value is computed from the summed statistics; it is not the mean of the items' values.
    ``data`` may be handed in where many corpora are scored; otherwise each :meth:`collect` opens it (some
    50 ms, and on the first use on a machine some ten seconds to build the index). With ``evidence`` every
    statistic keeps its alignment.

    Source: Denkowski and Lavie 2014, "Meteor Universal: Language Specific Translation Evaluation for Any
    Target Language"; parity with ``meteor-1.5.jar -l en -norm`` as pycocoevalcap runs it.
    """

    data: MeteorData | None = field(default=None, repr=False)
    evidence: bool = True

    @property
    def name(self) -> str:
        """The key of the metric: ``meteor``."""
        return "meteor"

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two METEOR values to be comparable.

        Raises:
            DataError: METEOR's data is not installed.
        """
        data = self._open()
        return {
            "variant": "1.5",
            "language": "en",
            "task": "rank",
            "modules": "exact+stem+synonym+paraphrase",
            "normalization": "norm",
            "data": data.sources.fingerprint,
            "lexicon": data.lexicon.signature,
        }

    def collect(self, corpus: Corpus) -> list[MeteorStatistic]:
        """Return the statistic of each item, in the order of ``corpus.items``.

        Raises:
            DataError: METEOR's data is not installed, or its index cannot be kept.
        """
        items = (coco_texts(item.candidate, item.references) for item in corpus.tokens)
        found = scored_texts(items, data=self._open())
        return list(found) if self.evidence else [replace(one, alignment=NO_ALIGNMENT) for one in found]

    def total(self, statistics: Sequence[MeteorStatistic]) -> tuple[Score, ...]:
        """Return the score ``METEOR``; its corpus value is ``None`` where there are no items."""
        value = score(add_counts(statistic.counts for statistic in statistics)) if statistics else None
        return (Score("METEOR", value, tuple(statistic.score for statistic in statistics)),)

    def columns(self, statistics: Sequence[MeteorStatistic]) -> Matrix:
        """Return what the corpus score sums, (items, 23)."""
        return np.array([add_counts([statistic.counts]) for statistic in statistics], dtype=np.float64)

    def combine(self, sums: Matrix) -> dict[str, Vector]:
        """Return the corpus score of rows of sums."""
        return {"METEOR": np.array([score(row) for row in sums.tolist()], dtype=np.float64)}

    def _open(self) -> MeteorData:
        return self.data or load_data()
