"""Worked values that others publish for the metrics.

Source: the notebook "Evaluation metrics for Image Captioning tasks" of Kokorev, Metha and Valdunciel (Saarland
University), which prints them from nltk's BLEU. Its ROUGE and METEOR are in tests/e2e/test_historic_*.py.
"""

import math

import pytest

from spicegraph_scorer.core.tokens import TokenizedItem
from spicegraph_scorer.metrics.bleu import Bleu, bleu_statistics

FOX = "the quick brown fox jumped over the lazy dog"


def statistic(candidate):
    (found,) = bleu_statistics([TokenizedItem(tuple(candidate.split()), (tuple(FOX.split()),))])
    return found


@pytest.mark.parametrize(
    ("candidate", "bleu4"),
    [
        ("the fast fox jumped over the lazy dog", 0.6240195441936914),
        (FOX, 1.0),
        ("the fast brown fox jumped over the lazy dog", 0.7506238537503395),
        ("the brown fox jumped over the dog", 0.5025431541540227),
    ],
)
def test_combined_bleu(candidate, bleu4):
    """``bleu_score(references, candidate, weights=(1/4, 1/4, 1/4, 1/4))``: our ``Bleu_4``."""
    assert Bleu().total([statistic(candidate)])[3].value == pytest.approx(bleu4, abs=1e-8)


@pytest.mark.parametrize(
    ("n", "value"), [(1, 0.772184789761521), (2, 0.6303549304175682), (3, 0.5883312683897303), (4, 0.5294981415507573)]
)
def test_bleu_of_one_order(n, value):
    """``weights`` of 1 for one order: its precision, with the penalty for a short candidate."""
    found = statistic("the fast fox jumped over the lazy dog")
    brevity = math.exp(1 - found.closest / found.length)
    assert brevity * found.matched[n - 1] / (found.length - n + 1) == pytest.approx(value, abs=1e-12)


def test_bleu_1_needs_no_weights():
    """Of one word, the order's value is ``Bleu_1`` itself."""
    value = Bleu().total([statistic("the fast fox jumped over the lazy dog")])[0].value
    assert value == pytest.approx(0.772184789761521, abs=1e-8)
