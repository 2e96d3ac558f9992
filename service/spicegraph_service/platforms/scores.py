"""What every platform shows of a result: corpus scores as one flat table of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.compat.lists import flat_scores
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.results import Result

__all__ = ["leaderboard_scores", "score_files"]


def score_files(
    candidates: str,
    references: str,
    *,
    metrics: Sequence[str] = ("spice",),
    partial: bool = False,
    pipeline: str = DEFAULT_PIPELINE,
) -> Result:
    """Score a file of candidates against a file of references, in any format of ``spicegraph score``.

    Raises:
        InputError: a file is missing or faulty; the message lists every fault.
        DataError: a pipeline or the data of a metric is not installed.
    """
    dataset = read_items(candidates, references=references, partial=partial)
    return score(dataset.items, tuple(metrics), pipeline=pipeline)


def leaderboard_scores(result: Result) -> dict[str, float]:
    """Return the corpus scores that are defined, under flat keys (``spice``, ``spice_color_f``, ``bleu_4`` ...)."""
    return {name: value for name, value in flat_scores(result).items() if not math.isnan(value)}
