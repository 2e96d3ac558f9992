"""Captions as parallel lists, as most libraries pass them, and scores as one flat table of floats."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.data import DataFields, MetricData, merged_data
from spicegraph_scorer.core.items import CheckedItems
from spicegraph_scorer.core.marks import NO_MARKS
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.metrics import check_names, needs_of
from spicegraph_scorer.readers.checks import Empty, References, check_items, paired_items
from spicegraph_scorer.scoring import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.results import Result
    from spicegraph_scorer.readers.marks import ControlTokens


__all__ = ["CaptionMetric", "References", "flat_scores", "metric_path", "paired_items", "per_caption_metric"]

_SUFFIXES = {"pr": "precision", "re": "recall"}


def flat_scores(result: Result, *, by_category: bool = True) -> dict[str, float]:
    """Return a result's corpus scores as floats under lower-case keys; undefined scores are NaN.

    SPICE gives ``spice``, ``spice_precision``, ``spice_recall`` and, for every category, ``spice_color_f``,
    ``spice_color_precision``, ``spice_color_recall``; every other metric its name (``bleu_4``, ``rouge_l``,
    ``cider`` ...). Without ``by_category`` the categories are left out.
    """
    flat: dict[str, float] = {}
    for run in result.runs:
        flat |= {score.name.lower(): _number(score.value) for score in run.headline}
        for category, means in run.categories().items():
            if category != ALL and not by_category:
                continue
            if means.micro is None:  # SPICE-G's are not part of these names
                continue
            head = run.headline[0].name.lower()
            prefix = head if category == ALL else f"{head}_{category.lower()}"
            if category != ALL:
                flat[f"{prefix}_f"] = _number(means.f)
            flat |= {f"{prefix}_{name}": _number(getattr(means, key)) for key, name in _SUFFIXES.items()}
    return flat


def _number(value: float | None) -> float:
    return math.nan if value is None else value


class CaptionMetric:
    """Scores in the shape of Hugging Face's ``evaluate``, without that package.

    Captions are collected by :meth:`add` and :meth:`add_batch`, or given to :meth:`compute` at once.
    Nothing is written to disk and nothing is locked, so that any number of processes can compute at once.

    >>> CaptionMetric().compute(predictions=["a dog"], references=[["a brown dog", "the dog"]])["spice"]
    0.6666666666666666
    """

    def __init__(
        self,
        metrics: str | Sequence[str] = ("spice",),
        *,
        pipeline: str | FactSource = DEFAULT_PIPELINE,
        data: MetricData | None = None,
        empty: Empty = "refuse",
        control_tokens: ControlTokens = "refuse",
        by_category: bool = True,
        **fields: Unpack[DataFields],
    ) -> None:
        """Take options of :func:`spicegraph_scorer.score`, and that of :func:`flat_scores`."""
        self._metrics = check_names(metrics)
        self._pipeline = pipeline
        self._data = merged_data(data, fields)
        self._empty: Empty = empty
        self._control_tokens: ControlTokens = control_tokens
        self._by_category = by_category
        self._predictions: list[str] = []
        self._references: list[str | Sequence[str]] = []

    def add(self, *, prediction: str, reference: str | Sequence[str]) -> None:
        """Keep one candidate and its reference, or list of references."""
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(self, *, predictions: Sequence[str], references: References) -> None:
        """Keep candidates and their references, or none of them if one is faulty."""
        self._paired(predictions, references)
        self._predictions.extend(predictions)
        self._references.extend(references)

    def compute(
        self, *, predictions: Sequence[str] | None = None, references: References | None = None
    ) -> dict[str, float]:
        """Return the :func:`flat_scores` of all added and given captions, and reset the metric."""
        parts = [self._paired(self._predictions, self._references)] if self._predictions else []
        if predictions is not None or references is not None:
            parts.append(self._paired(predictions or (), references or ()))
        items = [replace(item, id=number) for number, item in enumerate(chain.from_iterable(parts))]
        found = sum((part.marks for part in parts), NO_MARKS)
        scores = self._scores(CheckedItems.with_marks(items, found) if items else check_items(items))
        self._predictions.clear()
        self._references.clear()
        return scores

    def score_one(self, prediction: str, references: str | Sequence[str]) -> dict[str, float]:
        """Score one candidate by itself, whatever was kept; CIDEr needs document frequencies in the metrics' data."""
        return self._scores(self._paired([prediction], [references]))

    def _paired(self, predictions: Sequence[str], references: References) -> CheckedItems:
        return paired_items(predictions, references, empty=self._empty, control_tokens=self._control_tokens)

    def _scores(self, items: CheckedItems) -> dict[str, float]:
        result = score(items, self._metrics, data=self._data, pipeline=self._pipeline, evidence=False)
        return flat_scores(result, by_category=self._by_category)


def metric_path() -> str:
    """Return the path of the metric file that Hugging Face's ``evaluate.load`` takes."""
    return str(Path(__file__).with_name("evaluate_metric.py"))


def per_caption_metric(
    metrics: str | Sequence[str] = "spice",
    *,
    idf: str | Path | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
) -> CaptionMetric:
    """Return a metric for hosts that score one caption at a time and average the scores themselves.

    ``idf`` is a file of document frequencies (``spicegraph idf``), which CIDEr and SPIDEr need here. An empty caption
    scores 0, and what models leave behind (``<eos>``) is taken off: a host has no way to leave a caption out.
    """
    names = check_names(metrics)
    if idf is None and any("frequencies" in needs.data for needs in needs_of(names)):
        raise InputError(
            f"{', '.join(names)}: CIDEr of single captions needs document frequencies; give their file, idf"
        )
    data = None if idf is None else MetricData(frequencies=DocumentFrequencies.read(Path(idf)))
    return CaptionMetric(names, pipeline=pipeline, data=data, empty="zero", control_tokens="strip", by_category=False)
