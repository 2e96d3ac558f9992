"""A scorer for Inspect, in a task, or over a log that is stored.

    inspect score logs/captions.eval --scorer spicegraph_inspect.py@captions -S metrics=spice,rouge

The references of a sample are its ``target``: one string, or a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr

from spicegraph_compat.caption_metric import per_caption_metric
from spicegraph_parser.pipelines import DEFAULT_PIPELINE

if TYPE_CHECKING:
    from inspect_ai.solver import TaskState


@scorer(metrics={"*": [mean(), stderr()]})
def captions(metrics: str = "spice", idf: str | None = None, pipeline: str = DEFAULT_PIPELINE) -> Scorer:
    """Score each completion against the sample's targets; Inspect gives means and standard errors by score.

    Args:
        metrics: names, with commas between them.
        idf: a file of document frequencies, for CIDEr and SPIDEr.
        pipeline: what parses captions.

    Raises:
        InputError: a metric is unknown, or needs document frequencies.
    """
    metric = per_caption_metric(metrics, idf=idf, pipeline=pipeline)

    async def score(state: TaskState, target: Target) -> Score:
        caption = state.output.completion
        return Score(value=dict(metric.score_one(caption, list(target))), answer=caption)

    return score
