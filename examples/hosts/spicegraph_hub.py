"""Scores for the Hugging Face Hub: ``.eval_results/*.yaml`` of a model, and the metadata of its model card."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spicegraph_compat.caption_metric import flat_scores
from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from spicegraph_scorer.core.results import Result


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What was evaluated, as the Hub names it.

    Attributes:
        dataset: the id of the benchmark's dataset, such as ``lmms-lab/COCO-Caption2017``.
        task: the benchmark's own name of the task.
        split: of the dataset.
        revision: the commit of the dataset.
        name: what people call it; ``None``: the dataset's id.
    """

    dataset: str
    task: str = "default"
    split: str = "test"
    revision: str | None = None
    name: str | None = None


def eval_results(result: Result, benchmark: Benchmark, *, metric: str = "spice", date: str | None = None) -> str:
    """Return the text of a file ``.eval_results/NAME.yaml``: one score, and in its notes what made it.

    JSON is YAML; a reader of either reads it.

    Args:
        result: of ``spicegraph_scorer.score``.
        benchmark: what was evaluated.
        metric: the score's key in ``flat_scores``.
        date: ISO 8601; ``None``: the Hub takes the commit's.

    Raises:
        InputError: the result has no such score, or it is undefined.
    """
    dataset = {"id": benchmark.dataset, "task_id": benchmark.task}
    if benchmark.revision is not None:
        dataset["revision"] = benchmark.revision
    entry: dict[str, Any] = {"dataset": dataset, "value": _defined(result, metric), "notes": _notes(result, metric)}
    if date is not None:
        entry["date"] = date
    return json.dumps([entry], indent=2) + "\n"


def model_index(result: Result, benchmark: Benchmark, *, model: str) -> dict[str, Any]:
    """Return the ``model-index`` of a model card: every score that is defined, without categories.

    Args:
        result: of ``spicegraph_scorer.score``.
        benchmark: what was evaluated.
        model: the model's name.
    """
    dataset = {"name": benchmark.name or benchmark.dataset, "type": benchmark.dataset, "split": benchmark.split}
    if benchmark.revision is not None:
        dataset["revision"] = benchmark.revision
    metrics = [
        {"type": name, "value": value, "name": name}
        for name, value in flat_scores(result, by_category=False).items()
        if not math.isnan(value)
    ]
    task = {"type": "image-to-text", "name": "Image captioning"}
    return {"model-index": [{"name": model, "results": [{"task": task, "dataset": dataset, "metrics": metrics}]}]}


def _defined(result: Result, metric: str) -> float:
    scores = flat_scores(result)
    if metric not in scores:
        raise InputError(f"the result has no score {metric!r}; it has {', '.join(scores)}")
    if math.isnan(scores[metric]):
        raise InputError(f"the score {metric!r} is undefined")
    return scores[metric]


def _notes(result: Result, metric: str) -> str:
    return f"{metric}, spicegraph {result.signature['spicegraph']}, {len(result.items)} items"
