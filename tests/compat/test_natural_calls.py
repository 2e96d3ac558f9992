"""What programs get for values of a wrong kind from the classes and functions of other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_compat import aac_metrics
from spicegraph_compat.caption_metric import CaptionMetric, per_caption_metric
from spicegraph_compat.pycocoevalcap import (
    COCO,
    Bleu,
    Cider,
    CiderD,
    COCOEvalCap,
    Meteor,
    PTBTokenizer,
    Rouge,
    Spice,
    compute_scores,
)
from wrong_values import check_wrong_values

if TYPE_CHECKING:
    from collections.abc import Callable

GTS = {1: ["a dog"]}

CALLS: dict[str, Callable[[Any], object]] = {
    "CaptionMetric": lambda value: CaptionMetric(value).compute(predictions=["a dog"], references=[["a dog"]]),
    "CaptionMetric.compute, predictions": lambda value: CaptionMetric().compute(predictions=value, references=["x"]),
    "CaptionMetric.compute, references": lambda value: CaptionMetric().compute(predictions=["a dog"], references=value),
    "CaptionMetric.add, prediction": lambda value: CaptionMetric().add(prediction=value, reference="a dog"),
    "CaptionMetric.add, reference": lambda value: CaptionMetric().add(prediction="a dog", reference=value),
    "per_caption_metric": per_caption_metric,
    "aac_metrics.spice, candidates": lambda value: aac_metrics.spice(value, [["a dog"]]),
    "aac_metrics.spice, references": lambda value: aac_metrics.spice(["a dog"], value),
    "aac_metrics.cider_d": lambda value: aac_metrics.cider_d(value, [["a dog"]]),
    "COCO": COCO,
    "COCOEvalCap": lambda value: COCOEvalCap(value, value).evaluate(),
    "PTBTokenizer.tokenize": PTBTokenizer.tokenize,
    "compute_scores": lambda value: compute_scores(value, GTS),
    "CiderD": lambda value: CiderD(df="corpus").compute_score(GTS, value),
    "CiderD, df": lambda value: CiderD(df=value),
    "Cider, gts": Cider,
    "Bleu, n": Bleu,
    "Rouge.calc_score, candidate": lambda value: Rouge().calc_score(value, ["a"]),
    "Rouge.calc_score, references": lambda value: Rouge().calc_score(["a"], value),
    **{f"{kind.__name__}, gts": lambda value, kind=kind: kind().compute_score(value, GTS) for kind in (Bleu, Meteor)},
    **{f"{kind.__name__}, res": lambda value, kind=kind: kind().compute_score(GTS, value) for kind in (Rouge, Cider)},
    "Spice, gts": lambda value: Spice().compute_score(value, GTS),
    "Spice, both": lambda value: Spice().compute_score(value, value),
}
"""Public functions, each by the argument that gets a wrong value."""


@pytest.mark.filterwarnings("ignore::spicegraph_scorer.metrics.cider.CiderWarning")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_get_a_message_and_no_raw_error(name: str) -> None:
    if name.startswith("Meteor"):
        pytest.importorskip("snowballstemmer")
    check_wrong_values(name, CALLS[name])
