"""CIDEr's variants, its document frequencies, and what it says when they mean nothing."""

import gzip
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import DataError
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import Corpus, TokenizedItem
from spicegraph_scorer.metrics import METRICS, make_metrics, metric_names
from spicegraph_scorer.metrics.cider import COCO_CIDER, Cider, CiderWarning, cider_statistics

GOLDEN = Path(__file__).parents[1] / "golden" / "ngram" / "ngram_scores.json.gz"
WORDS = st.lists(st.sampled_from("abcd"), max_size=6).map(tuple)
ITEMS = st.lists(
    st.builds(TokenizedItem, WORDS, st.lists(WORDS, min_size=1, max_size=3).map(tuple)), min_size=2, max_size=5
)


def golden_items():
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as stream:
        rows = json.load(stream)["near"]["items"]
    return [
        TokenizedItem(
            tuple(row["tokens"]["candidate"].split(" ")),
            tuple(tuple(text.split(" ")) for text in row["tokens"]["references"]),
        )
        for row in rows
    ]


def each(items, **options):
    return cider_statistics(items, **options)


def plain_cider(items):
    """CIDEr by its definition: equations 15 to 17 of the COCO paper, times ten."""
    grams = [lambda t, n=n: Counter(t[i : i + n] for i in range(len(t) - n + 1)) for n in range(1, 5)]
    scores = []
    for item in items:
        score = 0.0
        for count in grams:
            images = [set().union(*(count(r) for r in other.references)) for other in items]

            def weigh(tokens, count=count, images=images):
                return {
                    g: c * math.log(len(items) / max(1, sum(g in image for image in images)))
                    for g, c in count(tokens).items()
                }

            ours = weigh(item.candidate)
            for reference in item.references:
                theirs = weigh(reference)
                norm = math.sqrt(sum(v * v for v in ours.values()) * sum(v * v for v in theirs.values()))
                if norm:
                    score += sum(v * theirs.get(g, 0) for g, v in ours.items()) / norm
        scores.append(10 * score / 4 / len(item.references))
    return scores


@given(ITEMS)
def test_plain_cider_is_the_paper_s(items):
    assert each(items, variant="CIDEr") == pytest.approx(plain_cider(items), abs=1e-9)


@given(ITEMS, st.sampled_from(["CIDEr", "CIDEr-D", "CIDEr-R"]))
def test_scores_lie_between_0_and_10(items, variant):
    assert all(-1e-9 <= score <= 10 + 1e-9 for score in each(items, variant=variant))


def test_the_variants_have_their_names():
    """One name each, whoever makes it, and the variant in the signature."""
    corpus = Corpus((Item(1, "a dog dog", ("a dog runs far",)), Item(2, "cats", ("cats",))))
    names = {}
    for cider in (COCO_CIDER, Cider("CIDEr"), Cider("CIDEr-R")):
        (score,) = cider.total(cider.collect(corpus))
        names[cider.name, score.name, cider.signature()["variant"]] = score.value
    assert list(names) == [
        ("cider", "CIDEr", "CIDEr-D"),
        ("cider-plain", "CIDEr-plain", "CIDEr"),
        ("cider-r", "CIDEr-R", "CIDEr-R"),
    ]
    coco, plain, robust = names.values()
    assert max(coco, robust) < plain
    made = make_metrics(["cider", "cider-plain", "cider-r"], Resources(lambda: pytest.fail("CIDEr reads words")))
    assert [(name, made[name].name) for name in made] == [(name, name) for name, _, _ in names]


def test_cider_d_is_another_word_for_cider():
    assert metric_names("CIDEr-D,cider,cider_d") == ("cider",)
    assert "cider-d" not in METRICS


def test_a_difference_in_length_costs_only_cider_d():
    """Ten words more: exp(-100 / 72) of the cosine that clipping leaves."""
    reference = tuple("abcd")
    items = [TokenizedItem(reference * 3 + ("a", "b"), (reference,)), TokenizedItem(("x",), (("x", "y"),))]
    clipped = each(items)[0] / math.exp(-(10**2) / 72)
    assert 0 < clipped < each(items, variant="CIDEr")[0]


def clipped_cosine(items):
    """What CIDEr-D penalises: its first item's score, without the penalty on the length."""
    bigrams = [max(0, len(tokens) - 1) for tokens in (items[0].candidate, items[0].references[0])]
    return each(items)[0] / math.exp(-((bigrams[0] - bigrams[1]) ** 2) / 72)


@pytest.mark.parametrize(
    ("candidate", "reference", "repetition", "length"),
    [
        ("a b c d", "a b c d", 1, 1),
        ("a a b c", "a b c d", (1 / 2) ** (1 / 3), 1),  # of three words one is there once too often
        ("a a a a", "a b c d", 1 / 4, 1),
        ("a b", "a b c d", 1, math.exp(-((2 / 4) ** 2))),
        ("a b c d a b c d", "a b c d", 1 / 2, math.exp(-1)),
        ("a x x x", "a b c d", (1 / 3) ** (1 / 2), 1),  # a wrong word is repeated twice
        ("a b", "a a a b", (1 / 3) ** (1 / 2), math.exp(-((2 / 4) ** 2))),  # said too seldom
        ("t-shirt shirt", "a shirt", (1 / 2) ** (1 / 2), 1),  # runs of letters and digits: t, shirt, shirt
        ("a", "a b c", 1, math.exp(-((2 / 3) ** 2))),
        ("a b c d e f", "a b c", 1, math.exp(-1)),
    ],
)
def test_cider_r_is_the_clipped_cosine_times_two_penalties(candidate, reference, repetition, length):
    """Santos et al. 2021: weights .8 and .2; the words' differences by their geometric mean."""
    items = [
        TokenizedItem(tuple(candidate.split()), (tuple(reference.split()),)),
        TokenizedItem(("y",), (("y", "z"),)),
        TokenizedItem(("z",), (("z", "a"),)),
    ]
    found = each(items, variant="CIDEr-R")[0]
    assert clipped_cosine(items) > 0
    assert found == pytest.approx(clipped_cosine(items) * repetition**0.8 * length**0.2, abs=1e-9)


def test_cider_r_by_hand():
    """Both words weigh ln 2: the clipped cosine of words is 1 / (2 sqrt 2), of pairs 0; one word, once too often."""
    items = [TokenizedItem(("a", "a"), (("a", "b"),)), TokenizedItem((), (("c", "d"),))]
    assert each(items, variant="CIDEr-R") == pytest.approx([10 / 4 / math.sqrt(8) / 2**0.8, 0], abs=1e-9)


@given(st.lists(st.permutations("abcdef").map(tuple), min_size=2, max_size=4))
def test_cider_r_of_equal_lengths_without_repetition_is_clipped_cider(captions):
    items = [TokenizedItem(caption, (captions[0], captions[-1])) for caption in captions]
    assert each(items, variant="CIDEr-R") == pytest.approx(each(items), abs=1e-12)


def test_cider_r_says_its_penalties():
    signature = Cider("CIDEr-R").signature()
    assert (signature["variant"], signature["sigma"]) == ("CIDEr-R", "none")
    assert signature["penalties"] == "repetition^0.8 length^0.2"
    assert "penalties" not in Cider().signature()


@pytest.mark.parametrize("variant", ["CIDEr", "CIDEr-D", "CIDEr-R"])
def test_one_image_has_no_score_and_says_so(variant):
    items = [TokenizedItem(("a",), (("a",),))]
    with pytest.warns(CiderWarning, match="single image"):
        statistics = cider_statistics(items, variant=variant)
    (score,) = Cider(variant).total(statistics)
    assert (score.value, score.each) == (None, (None,))


def test_frozen_frequencies_give_the_corpus_s_scores():
    """Frequencies of the same references, in a file or not, change nothing, for one caption or for all."""
    items = golden_items()
    frozen = DocumentFrequencies.from_references([item.references for item in items])
    wanted = each(items)
    assert each(items, frequencies=frozen) == wanted
    assert [each([item], frequencies=frozen)[0] for item in items[:20]] == pytest.approx(wanted[:20], abs=1e-12)


def test_frequencies_survive_a_file(tmp_path):
    frozen = DocumentFrequencies.from_references([item.references for item in golden_items()])
    frozen.write(tmp_path / "frequencies.npz")
    read = DocumentFrequencies.read(tmp_path / "frequencies.npz")
    assert (read.images, read.vocabulary, read.digest) == (frozen.images, frozen.vocabulary, frozen.digest)
    assert dict(read.ngrams()) == dict(frozen.ngrams())


def test_the_digest_follows_the_contents():
    one = DocumentFrequencies.from_references([[("a", "b")], [("b", "c")]])
    same = DocumentFrequencies.from_references([[("b", "c")], [("a", "b")]])
    other = DocumentFrequencies.from_references([[("a", "b")], [("b", "b")]])
    assert one.digest == same.digest != other.digest
    assert one.digest in Cider(frequencies=one).signature()["document frequencies"]


@given(st.lists(st.lists(WORDS, max_size=3), max_size=4))
def test_frequencies_count_images(references):
    frequencies = DocumentFrequencies.from_references(references)
    wanted = Counter(
        gram
        for image in references
        for gram in {" ".join(t[i : i + n]) for t in image for n in range(1, 5) for i in range(len(t) - n + 1)}
    )
    assert dict(frequencies.ngrams()) == wanted
    assert frequencies.images == len(references)


def test_unknown_ngrams_weigh_as_if_in_no_image():
    """A word that no image has weighs as much as one that a single image has."""
    frozen = DocumentFrequencies.from_references([[("a", "b")], [("a", "c")], [("a", "d")]])
    known, unknown = (TokenizedItem(("a", word), (("a", word),)) for word in ("b", "z"))
    assert each([known], frequencies=frozen) == pytest.approx(each([unknown], frequencies=frozen))


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "frequencies.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"frequencies\.npz"):
        DocumentFrequencies.read(path)


def test_a_missing_or_foreign_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.npz"):
        DocumentFrequencies.read(tmp_path / "none.npz")
    np.savez(tmp_path / "foreign.npz", header=np.array([99, 1, 0]), words=np.zeros(0, np.uint8))
    with pytest.raises(DataError, match=r"foreign\.npz"):
        DocumentFrequencies.read(tmp_path / "foreign.npz")
