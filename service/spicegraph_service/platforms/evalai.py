"""EvalAI's ``evaluate``, under its first import path; :mod:`spicegraph_scorer.adapters.evalai` has the code."""

from spicegraph_scorer.adapters.evalai import evaluate

__all__ = ["evaluate"]
