"""Captions become the tokens that the COCO toolkit scores."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.ngrams import count_ngrams
from spicegraph_scorer.core.tokens import Corpus, TokenizedItem, TokenizedItems, tokenize_items, tokenize_texts

GOLDEN = Path(__file__).parents[1] / "golden" / "ptb"

TEXTS = ("a dog", "A man's hat.", "!", "2 1/2 cups", "a dog and a cat")
CAPTIONS = st.lists(st.lists(st.sampled_from("abc"), max_size=6).map(tuple), max_size=8)


def golden(name):
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def test_tokens_equal_the_toolkit_s_on_each_caption_alone():
    cases = golden("ptb_a_dev")
    texts = [case["text"] for case in cases]
    assert tokenize_texts(texts) == tuple(tuple(case["tokens_coco"]) for case in cases)
    assert tokenize_texts(texts, keep="all") == tuple(tuple(case["tokens_raw"]) for case in cases)


def test_tokens_equal_the_toolkit_s_on_batches():
    for case in golden("ptb_a_batch_dev"):
        wanted = tuple(map(tuple, case["tokens_coco"]))
        assert tokenize_texts(case["texts"], together=True) == wanted


def test_a_caption_with_nothing_left_keeps_its_place():
    items = [Item(1, "!", ("...", "a dog")), Item(2, "a cat", ("", "\U0001f642"))]
    wanted = (TokenizedItem((), ((), ("a", "dog"))), TokenizedItem(("a", "cat"), ((), ())))
    assert tuple(tokenize_items(items)) == wanted
    assert tuple(tokenize_items(items, together=True)) == wanted
    assert tuple(Corpus(tuple(items)).tokens) == wanted
    assert tuple(TokenizedItems.of(wanted)) == wanted


def test_line_breaks_shift_no_caption():
    texts = ["a\ndog", "a\rcat", "a\u2028bird", "a cow"]
    wanted = (("a", "dog"), ("a", "cat"), ("a", "bird"), ("a", "cow"))
    assert tokenize_texts(texts, together=True) == wanted
    assert tokenize_texts(texts) == wanted


def test_alone_does_not_depend_on_neighbours_but_together_does():
    items = [Item(1, "the letter K.", ("x",)), Item(2, "A man", ("x",))]
    assert tokenize_items(items)[0].candidate == ("the", "letter", "k.")
    assert tokenize_items(items, together=True)[0].candidate == ("the", "letter", "k")


def test_no_items():
    assert len(tokenize_items([])) == 0
    assert list(tokenize_items([], together=True)) == []


@given(st.lists(st.tuples(st.sampled_from(TEXTS), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3))), st.data())
def test_items_come_out_as_their_captions_tokens(pairs, data):
    """By number, from the end, in slices and one after the other, as a list of them would give them."""
    items = [Item(number, candidate, tuple(references)) for number, (candidate, references) in enumerate(pairs)]
    wanted = [TokenizedItem(tokenize_texts([i.candidate])[0], tokenize_texts(i.references)) for i in items]
    found = tokenize_items(items)
    assert list(found) == wanted
    part = data.draw(st.slices(len(items)))
    assert list(found[part]) == wanted[part]
    for place in range(-len(items), len(items)):
        assert found[place] == wanted[place]
    for place in (-len(items) - 1, len(items)):
        with pytest.raises(IndexError):
            found[place]


@given(CAPTIONS)
def test_counts_are_those_of_counting(captions):
    """Every n-gram has the count that going through the captions gives."""
    vocabulary, orders = count_ngrams(captions, orders=4)
    shorter = [()]
    for n, ngrams in enumerate(orders, 1):
        names = [
            (*shorter[prefix], vocabulary[last])
            for prefix, last in zip(ngrams.prefix.tolist(), ngrams.last.tolist(), strict=True)
        ]
        assert len(set(names)) == len(names)
        for row, caption in enumerate(captions):
            wanted = [caption[place : place + n] for place in range(len(caption) - n + 1)]
            counts = dict(zip(names, ngrams.matrix[[row]].toarray()[0].tolist(), strict=True))
            assert {name: count for name, count in counts.items() if count} == {
                name: wanted.count(name) for name in wanted
            }
        shorter = names
