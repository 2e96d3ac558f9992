"""How far people agree on words: counts, the model, precision at human recall, and the command."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import InputError
from spicegraph_service.cli import main
from spicegraph_studies import words

ROOT = Path(__file__).parents[2]
COCO = ROOT / "examples" / "coco"


def histogram(counts, people=5):
    return np.bincount(counts, minlength=people + 1).tolist()


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.2), (0.7, 0.05), (0.1, 0.6), (0.95, 0.01), (0.5, 1.0)])
def test_p_and_q_of_simulated_people_are_recovered_within_sampling_error(p, q):
    fits = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        there = generator.random(40_000) < q
        fits.append(words.fit(histogram(np.where(there, generator.binomial(5, p, size=40_000), 0))))
    for true, values in zip((p, q), np.array(fits).T, strict=True):
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - true) < 4 * error + 1e-4


def likelihoods(p, q, counts):
    """The log-likelihood of counts for each of many p and q."""
    people = len(counts) - 1
    total = 0.0
    for t, images in enumerate(counts):
        share = q * math.comb(people, t) * p**t * (1 - p) ** (people - t) + (1 - q if t == 0 else 0)
        total = total + images * np.log(np.maximum(share, 1e-300))
    return total


GRID = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))


@given(st.lists(st.integers(0, 40), min_size=3, max_size=7))
def test_no_other_p_and_q_are_more_likely(counts):
    fitted = words.fit(counts)
    if fitted is None:
        assert not any(counts[1:])
        return
    best = float(likelihoods(*map(np.float64, fitted), counts))
    assert best >= likelihoods(*GRID, counts).max() - 1e-7 * (1 + abs(best))


@pytest.mark.parametrize(
    ("p", "references", "precision"),
    [(0.5, 4, 2 / (2 + 0.5**4)), (0.5, 1, 0.5), (0.2, 4, 0.8 / (0.8 + 0.8**4)), (1.0, 4, 1.0), (0.0, 4, None)],
)
def test_worked_values_of_the_papers_formulas(p, references, precision):
    """Chen et al. 2015: recall is p and precision is pk / (pk + (1 - p)^k), whatever q is."""
    assert words.model_point(p, references) == (p, precision if precision is None else pytest.approx(precision))


@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1, max_size=8), st.integers(1, 3))
def test_the_human_point_is_the_mean_over_every_choice_of_captions(rows, references):
    right = wrong = said = 0.0
    for row in rows:
        choices = [
            (held, [row[i] for i in others])
            for held in range(len(row))
            for others in itertools.combinations([i for i in range(len(row)) if i != held], references)
        ]
        for held, others in choices:
            right += sum(others) * row[held] / len(choices)
            wrong += (sum(others) == 0 and row[held]) / len(choices)
            said += sum(others) / len(choices)
    expected = right / said if said else None, right / (right + wrong) if right + wrong else None
    for value, brute in zip(
        words.human_point(histogram([sum(row) for row in rows], 4), references), expected, strict=True
    ):
        assert value == (brute if brute is None else pytest.approx(brute, abs=1e-9))


def test_nobody_and_everybody():
    assert words.fit([10, 0, 0]) is None
    assert words.fit([5, 0, 5]) == (1.0, 0.5)
    assert words.fit([9, 1, 0]) == (0.05, 1.0)  # never repeated: all that is known is the product
    assert words.human_point([10, 0, 0], 1) == (None, None)


def test_precision_at_recall_walks_down_the_ranking():
    shares, counts, total = [0.9, 0.7, 0.8, 0.1], [3, 2, 0, 0], 2 + 4 / 3  # gains 2 and 4/3; both others cost 1
    for recall, precision in ((0.3, 1), (2 / total, 1), (1.0, total / (total + 1)), (0.0, None)):
        expected = precision if precision is None else pytest.approx(precision)
        assert words.precision_at_recall(shares, counts, 3, recall) == expected
    half = 2 + (4 / 3) / 2
    assert words.precision_at_recall(shares, counts, 3, half / total) == pytest.approx(half / (half + 1))


def test_equal_shares_are_taken_in_random_order():
    counts = np.random.default_rng(1).binomial(3, 0.4, size=30).tolist()
    gains, costs = sum(2 * count / 3 for count in counts), counts.count(0) + counts.count(1) / 3
    expected = pytest.approx(gains / (gains + costs))
    assert words.precision_at_recall([0.0] * 30, counts, 3, 0.5) == expected
    assert words.precision_at_recall([0.0] * 30, counts, 3, 1.0) == expected


@pytest.mark.model
def test_the_command_counts_the_words_of_captions_and_a_system(tmp_path, capsys):
    command = ["agree", "words", str(COCO / "captions.json"), "--system", str(COCO / "retrieval.json"), "--words", "50"]
    assert words_of_json(capsys, command) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["word"]: row for row in found["words"]}
    # Of the 200 images, those in which 0, 1 ... 5 people say "man" are counted here by white space alone.
    texts = {}
    for row in json.loads((COCO / "captions.json").read_text())["annotations"]:
        texts.setdefault(row["image_id"], []).append(row["caption"].lower().replace(".", " ").replace(",", " ").split())
    counts = histogram([sum("man" in text for text in five[:5]) for five in texts.values()])
    man = rows["man"]
    assert man["kind"] == "noun"
    assert [man["p"], man["q"]] == pytest.approx(words.fit(counts), abs=6e-4)
    assert rows["standing"]["kind"] == "verb"
    assert man["model"] == pytest.approx([words.model_point(man["p"], k)[1] for k in range(1, 5)])
    # As in Figure 3 of the paper: recall is that of any number of references, and precision rises with them.
    assert [point["references"] for point in found["curve"]] == [1, 2, 3, 4]
    assert len({round(point["recall"], 9) for point in found["curve"]}) == 1
    precisions = [point["precision"] for point in found["curve"]]
    assert precisions == sorted(precisions)
    assert 0 < man["system"] <= 1
    page = tmp_path / "words.html"
    assert main([*command, "-o", str(page)]) == 0
    assert "the model" in page.read_text("utf-8")
    assert main([*command, "--show", "3"]) == 0
    table = capsys.readouterr().out
    assert "200 images with 5 captions each, 50 words." in table
    assert main([*command, "--captions", "3", "--format", "csv", "--table", "curve"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def words_of_json(capsys, command):
    capsys.readouterr()
    return main([*command, "--format", "json"])


def test_images_with_few_captions_are_refused():
    with pytest.raises(InputError, match=r"2 images with fewer than 2 captions: 1, 'b'"):
        words.find_word_agreement({1: ["a dog"], "b": ["a cat"], 3: ["a dog", "a cat"]})
    with pytest.raises(InputError, match="1 image without a caption of the system: 1"):
        words.find_word_agreement({1: ["a dog", "a dog"]}, {2: ["a dog"]})
    with pytest.raises(InputError, match="there are no captions"):
        words.find_word_agreement({})
