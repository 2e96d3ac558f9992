"""Totals of parts: however a corpus is cut, the corpus scores are those of the whole, to the bit."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import load_pipeline
from spicegraph_scorer import Item
from spicegraph_scorer.core.items import Fingerprint
from spicegraph_scorer.core.results import ExactSums, Summary, added, result_of, signature_of, summary_of, totals_of
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import METRICS, make_metrics
from spicegraph_scorer.scoring import resources, score

WORDS = ("a", "the", "two", "brown", "small", "dog", "dogs", "cat", "couch", "sits", "runs", "on", "near", "red", "bus")
NAMES = tuple(name for name in METRICS if name != "meteor")  # the other metric of summed counts is bleu

floats = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150)


def corpus_of(size: int) -> Corpus:
    draw = random.Random(size)
    captions = [" ".join(draw.choices(WORDS, k=draw.randint(3, 9))) for _ in range(4 * size)]
    return Corpus(tuple(Item(n, captions[4 * n], tuple(captions[4 * n + 1 : 4 * n + 4])) for n in range(size)))


@pytest.fixture(scope="module")
def scored():
    corpus = corpus_of(60)
    metrics = make_metrics(NAMES, resources(load_pipeline(), evidence=False))
    return corpus, metrics, {name: metric.collect(corpus) for name, metric in metrics.items()}


@pytest.mark.model
@pytest.mark.parametrize("seed", range(5))
def test_totals_of_parts_make_the_scores_of_the_whole(scored, seed):
    corpus, metrics, statistics = scored
    draw = random.Random(seed)
    order = draw.sample(range(60), 60)
    cuts = [0, *sorted(draw.sample(range(1, 60), seed)), 60]
    parts = [order[start:end] for start, end in pairwise(cuts)]
    totals = added([{n: totals_of(m, [statistics[n][i] for i in part]) for n, m in metrics.items()} for part in parts])
    expected = result_of(corpus.items, metrics, statistics).summary
    found = Summary(expected.signature, tuple(summary_of(metric, totals[name]) for name, metric in metrics.items()))
    assert found == expected
    whole = expected.to_dict()
    whole.pop("empty_graphs", None)  # which sums do not know
    assert found.to_dict() == whole


@pytest.mark.model
def test_what_is_undefined_stays_so():
    items = [Item(1, "a dog", ("a cat",))]
    with pytest.warns(UserWarning, match="CIDEr is undefined"):
        expected = score(items, NAMES).summary
    metrics = make_metrics(NAMES, resources("en_caption", metrics=NAMES, evidence=False))
    with pytest.warns(UserWarning, match="CIDEr is undefined"):
        found = {name: totals_of(metric, metric.collect(Corpus(tuple(items)))) for name, metric in metrics.items()}
    assert tuple(summary_of(metric, found[name]) for name, metric in metrics.items()) == expected.runs
    assert expected.corpus["SPIDEr"] is None


@given(st.lists(floats, min_size=1, max_size=40), st.integers(1, 39), st.randoms())
def test_exact_sums_do_not_depend_on_cuts_and_order(values, cut, shuffle):
    whole = ExactSums.of([(value,) for value in values])
    assert whole.values() == [math.fsum(values)]
    shuffle.shuffle(values)
    parts = [ExactSums.of([(value,) for value in part]) for part in (values[:cut], values[cut:]) if part]
    assert sum(parts[1:], parts[0]).values() == whole.values()


def test_sums_keep_what_rounding_would_lose():
    parts = [ExactSums.of([(1e100,)]), ExactSums.of([(1.0,)]), ExactSums.of([(-1e100,)])]
    assert sum(parts[1:], parts[0]).rounded().tolist() == [[1.0]]


def test_fingerprints_of_parts_add_up():
    items = corpus_of(20).items
    whole = Fingerprint.of(items)
    assert Fingerprint.of(items[7:]) + Fingerprint.of(items[:7]) == whole
    assert signature_of(whole, {}) == signature_of(items, {})
    assert Fingerprint.of(items[1:]).digest != whole.digest
    swapped = (Item(0, "", items[1].references), Item(1, "", items[0].references), *items[2:])
    assert Fingerprint.of(swapped).digest != whole.digest
