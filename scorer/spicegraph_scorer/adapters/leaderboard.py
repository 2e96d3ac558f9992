"""What every platform shows of a result: corpus scores as one flat table of numbers."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.adapters.caption_metric import flat_scores
from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.notes import notes_on
from spicegraph_scorer.scoring import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.results import Result
    from spicegraph_scorer.metrics import MetricData
    from spicegraph_scorer.readers.checks import Empty


def score_files(
    candidates: str,
    references: str,
    *,
    metrics: Sequence[str] = ("spice",),
    partial: bool = False,
    empty: Empty = "refuse",
    pipeline: str = DEFAULT_PIPELINE,
    data: MetricData | None = None,
) -> Result:
    """Score a file of candidates against a file of references, in any format of ``spicegraph score``.

    With ``partial``, images without a candidate are left out, and with ``empty="zero"`` empty candidates score as the
    original programs score them; a warning says how many.

    Raises:
        InputError: a file is missing or faulty; the message lists every fault.
        DataError: a pipeline or the data of a metric is not installed.
    """
    dataset = read_items(candidates, references=references, partial=partial, empty=empty)
    if dataset.left_out:
        left_out, images = dataset.left_out, dataset.left_out + len(dataset.items)
        warnings.warn(
            f"{candidates}: {counted(left_out, 'image')} of the {images:,} in {references} left out: no candidate",
            stacklevel=2,
        )
    for note in notes_on(candidates, dataset.items):
        warnings.warn(note, stacklevel=2)
    return score(dataset.items, tuple(metrics), pipeline=pipeline, data=data)


def leaderboard_scores(result: Result) -> dict[str, float]:
    """Return the corpus scores that are defined, under flat keys (``spice``, ``spice_color_f``, ``bleu_4`` ...)."""
    return {name: value for name, value in flat_scores(result).items() if not math.isnan(value)}
