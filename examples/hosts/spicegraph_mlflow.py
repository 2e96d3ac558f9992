"""A scorer for MLflow 3: ``mlflow.genai.evaluate(data=..., scorers=[caption_scorer()])``.

The references of a row are ``expectations["references"]``, a list, or ``expectations["expected_response"]``, a string;
``outputs`` is the caption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlflow.entities import Feedback
from mlflow.genai.scorers import Scorer, scorer

from spicegraph_compat.caption_metric import per_caption_metric
from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def caption_scorer(
    metrics: str | Sequence[str] = "spice",
    *,
    name: str = "captions",
    idf: str | None = None,
    pipeline: str = DEFAULT_PIPELINE,
) -> Scorer:
    """Return a scorer that gives one numeric feedback per score (``spice``, ``spice_precision``, ``rouge_l`` ...).

    Args:
        metrics: names, or one string with commas between them.
        name: the scorer's own name.
        idf: a file of document frequencies, for CIDEr and SPIDEr.
        pipeline: what parses captions.

    Raises:
        InputError: a metric is unknown, or needs document frequencies.
    """
    metric = per_caption_metric(metrics, idf=idf, pipeline=pipeline)

    @scorer(name=name)
    def score(outputs: Any, expectations: dict[str, Any]) -> list[Feedback]:
        scores = metric.score_one(_caption(outputs), _references(expectations))
        return [Feedback(name=key, value=value) for key, value in scores.items()]

    return score


def _caption(outputs: object) -> str:
    if not isinstance(outputs, str):
        raise InputError(f"outputs: is {type(outputs).__name__}, expected the caption, a string")
    return outputs


def _references(expectations: Mapping[str, Any]) -> str | list[str]:
    references: str | list[str] | None = expectations.get("references", expectations.get("expected_response"))
    if references is None:
        raise InputError("expectations: holds neither references nor expected_response")
    return references
