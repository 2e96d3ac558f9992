"""Worked values that others publish for the metrics.

Source: the notebook "Evaluation metrics for Image Captioning tasks" of Kokorev, Metha and Valdunciel (Saarland
University), which prints them from nltk's BLEU and Google's rouge-score.
"""

import math

import pytest

from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus, TokenizedItem
from spicegraph_scorer.metrics.bleu import Bleu, bleu_statistics
from spicegraph_scorer.metrics.rouge import Rouge155

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
    ("n", "value"),
    [(1, 0.772184789761521), (2, 0.6303549304175682), (3, 0.5883312683897303), (4, 0.5294981415507573)],
)
def test_bleu_of_one_order(n, value):
    """``weights`` of 1 for one order: its precision, with the penalty for a short candidate."""
    found = statistic("the fast fox jumped over the lazy dog")
    brevity = math.exp(1 - found.closest / found.length)
    assert brevity * found.matched[n - 1] / found.total[n - 1] == pytest.approx(value, abs=1e-12)


def test_bleu_1_needs_no_weights():
    """Of one word, the order's value is ``Bleu_1`` itself."""
    value = Bleu().total([statistic("the fast fox jumped over the lazy dog")])[0].value
    assert value == pytest.approx(0.772184789761521, abs=1e-8)


@pytest.mark.parametrize(
    ("measure", "value"),
    [("precision", 0.625), ("recall", 0.5555555555555556), ("f", 0.5882352941176471)],
)
def test_stemmed_rouge_l(measure, value):
    """``RougeScorer(["rougeL"], use_stemmer=True)`` on two sentences about a fox."""
    rouge = Rouge155(kinds=("L",), measure=measure)
    reference = "The quick brown fox jumps over the lazy dog"
    corpus = Corpus((Item(1, "The quick brown dog jumps on the log.", (reference,)),))
    (score,) = rouge.total(rouge.collect(corpus))
    assert score.value == pytest.approx(value, abs=1e-12)
