"""BLEU, ROUGE-L and CIDEr are the COCO toolkit's, to the last digits."""

import contextlib
import gzip
import io
import json
import math
import random
import warnings
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu as TheirBleu
from pycocoevalcap.cider.cider import Cider as TheirCider
from pycocoevalcap.rouge.rouge import Rouge as TheirRouge

from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus, TokenizedItem
from spicegraph_scorer.metrics.bleu import Bleu, bleu_statistics
from spicegraph_scorer.metrics.cider import COCO_CIDER, cider_statistics
from spicegraph_scorer.metrics.rouge import RougeL, common_length, rouge_l_statistic

GOLDEN = Path(__file__).parents[1] / "golden" / "ngram" / "ngram_scores.json.gz"
SYSTEMS = ["near", "far", "human"]

STATISTICS = {
    Bleu(): bleu_statistics,
    RougeL(): lambda items: [rouge_l_statistic(item) for item in items],
    COCO_CIDER: cider_statistics,
}
METRICS = pytest.mark.parametrize("metric", STATISTICS, ids=lambda metric: metric.name)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "2\u00a01/2"]), max_size=7).map(tuple)
ITEM = st.builds(TokenizedItem, WORDS, st.lists(WORDS, min_size=1, max_size=4).map(tuple))


def scores(metric, items):
    return metric.total(STATISTICS[metric](items))


def golden(system):
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as stream:
        return json.load(stream)[system]


def split(text):
    return tuple(text.split(" ")) if text else ()


def tokenized(rows):
    return [
        TokenizedItem(split(row["tokens"]["candidate"]), tuple(split(text) for text in row["tokens"]["references"]))
        for row in rows
    ]


@METRICS
@pytest.mark.parametrize("system", SYSTEMS)
def test_goldens(metric, system):
    """Corpus and items of 400 images score as with pycocoevalcap 1.2."""
    wanted = golden(system)
    for score in scores(metric, tokenized(wanted["items"])):
        assert score.value == pytest.approx(wanted["corpus"][score.name], rel=0, abs=1e-12)
        assert score.each == pytest.approx([row[score.name] for row in wanted["items"]], rel=0, abs=1e-12)


def toolkit(items):
    """Score tokenized items with pycocoevalcap: values of the corpus and of each item."""
    gts = {place: [" ".join(tokens) for tokens in item.references] for place, item in enumerate(items)}
    res = {place: [" ".join(item.candidate)] for place, item in enumerate(items)}
    with contextlib.redirect_stdout(io.StringIO()):
        bleu, bleus = TheirBleu(4).compute_score(gts, res, verbose=0)
        rouge, rouges = TheirRouge().compute_score(gts, res)
        cider, ciders = TheirCider().compute_score(gts, res)
    values = {f"Bleu_{n}": (bleu[n - 1], bleus[n - 1]) for n in range(1, 5)}
    return values | {"ROUGE_L": (rouge, rouges), "CIDEr": (cider, ciders)}


@given(st.lists(ITEM, min_size=2, max_size=6))
def test_any_items_score_as_with_the_toolkit(items):
    """Also items with repeated words, fractions, nothing left, or references shorter than n."""
    assume(any(tokens for item in items for tokens in item.references))  # the toolkit raises on none
    wanted = toolkit(items)
    for metric in STATISTICS:
        for score in scores(metric, items):
            value, each = wanted[score.name]
            assert score.value == pytest.approx(value, rel=1e-9, abs=1e-9)
            assert score.each == pytest.approx(list(each), rel=1e-9, abs=1e-9)


@METRICS
def test_each_follows_the_order_of_the_items(metric):
    items = tokenized(golden("near")["items"][:50])
    shuffled = random.Random(0).sample(range(50), 50)
    one, other = scores(metric, items), scores(metric, [items[place] for place in shuffled])
    for a, b in zip(one, other, strict=True):
        assert b.each == pytest.approx([a.each[place] for place in shuffled], abs=1e-12)
        assert b.value == pytest.approx(a.value, abs=1e-12)


@METRICS
def test_statistics_of_parts_add_up(metric):
    """The scores of a sample follow from its statistics alone, as intervals need."""
    statistics = STATISTICS[metric](tokenized(golden("far")["items"]))
    sample = [statistics[place] for place in (3, 3, 7, 250)]
    for whole, part in zip(metric.total(statistics), metric.total(sample), strict=True):
        assert part.each == pytest.approx([whole.each[place] for place in (3, 3, 7, 250)], abs=1e-12)


@METRICS
def test_scores_from_captions(metric):
    """A metric tokenizes the captions of a corpus itself."""
    corpus = Corpus((Item("a", "A dog's toy.", ("the dog's toy", "A toy!")), Item(2, "a cat", ("two cats",))))
    tokens = [
        TokenizedItem(("a", "dog", "'s", "toy"), (("the", "dog", "'s", "toy"), ("a", "toy"))),
        TokenizedItem(("a", "cat"), (("two", "cats"),)),
    ]
    assert metric.total(metric.collect(corpus)) == scores(metric, tokens)


@METRICS
def test_no_items_have_no_score(metric):
    assert [(score.value, score.each) for score in scores(metric, [])] == [(None, ())] * len(scores(metric, []))


@METRICS
def test_identical_captions_score_highest(metric):
    items = [TokenizedItem(tokens, (tokens,)) for tokens in (("a", "b", "c", "d", "e"), ("f", "g", "h", "i"))]
    highest = 10.0 if metric is COCO_CIDER else 1.0
    for score in scores(metric, items):
        assert score.each == pytest.approx([highest, highest], abs=1e-6)


@METRICS
def test_signature_names_variant_and_tokenizer(metric):
    signature = metric.signature()
    assert {"variant", "tokenizer"} <= signature.keys()
    assert all(isinstance(value, str) and value for value in signature.values())
    json.dumps(dict(signature))


def test_statistics_are_plain_numbers():
    """Statistics are kept in files: no number in them is numpy's."""
    items = tokenized(golden("near")["items"][:2])
    flat = json.dumps([STATISTICS[metric](items) for metric in STATISTICS])
    assert len(json.loads(flat)) == len(STATISTICS)


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=8))
def test_common_length_is_that_of_the_table(first, second):
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, word in enumerate(first):
        for j, other in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if word == other else max(table[i][j + 1], table[i + 1][j])
    assert common_length(first, second) == table[-1][-1]


def test_no_warning_on_usual_input():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for metric in STATISTICS:
            values = [score.value for score in scores(metric, tokenized(golden("human")["items"]))]
            assert all(value is not None and math.isfinite(value) for value in values)
