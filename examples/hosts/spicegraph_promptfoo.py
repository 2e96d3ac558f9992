"""A Python assertion for promptfoo: ``{type: python, value: file://spicegraph_promptfoo.py}``.

The references are the test's variable
``references``, a list or a string; the assertion's ``config`` may have ``metrics``, ``idf``, ``pipeline``, and
``threshold``: the least score that passes, of the first metric.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spicegraph_compat.caption_metric import per_caption_metric
from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_compat.caption_metric import CaptionMetric

_metric = lru_cache(maxsize=8)(per_caption_metric)  # promptfoo calls once for each output
_SETTINGS = frozenset({"metrics", "idf", "pipeline", "threshold"})


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Grade an output, which is a caption, against the references of its test.

    Args:
        output: the caption; an empty one scores 0.
        context: promptfoo's: ``vars`` with ``references``, and ``config`` if the assertion has one.

    Returns:
        ``pass``, ``score`` (the first one of the first metric), ``reason``, and ``namedScores``: every defined score.
        An undefined score counts as 0 and does not pass.

    Raises:
        InputError: the references are missing or faulty, a setting is unknown, or a metric is unknown or needs
            document frequencies.
    """
    config = context.get("config") or {}
    if unknown := sorted(set(config) - _SETTINGS):
        raise InputError(f"config: unknown {', '.join(unknown)}; it may have {', '.join(sorted(_SETTINGS))}")
    references = context["vars"].get("references")
    if not references:
        raise InputError("vars: the test has no references")
    metrics = config.get("metrics", "spice")
    names = metrics if isinstance(metrics, str) else tuple(metrics)
    metric: CaptionMetric = _metric(names, idf=config.get("idf"), pipeline=config.get("pipeline", DEFAULT_PIPELINE))
    scores = metric.score_one(output, references)
    name, value = next(iter(scores.items()))
    threshold = float(config.get("threshold", 0))
    if math.isnan(value):
        passes, reason = False, f"{name} is undefined"
    else:
        passes = value >= threshold
        reason = f"{name} {value:.4f}, {'at least' if passes else 'below'} {threshold:g}"
    defined = {key: score for key, score in scores.items() if not math.isnan(score)}
    return {"pass": passes, "score": defined.get(name, 0.0), "reason": reason, "namedScores": defined}
