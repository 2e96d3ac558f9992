"""Agreement on rated captions: what the protocols average and remove, ties, intervals and tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.scoring import score
from spicegraph_studies.agreement import (
    CAPTION_PROTOCOLS,
    Judgement,
    JudgementScoring,
    agree_on_captions,
    caption_protocol,
)
from spicegraph_studies.agreement.captions import correlate
from spicegraph_studies.agreement.judgements import caption_scores
from spicegraph_studies.agreement.protocols import Own, Ratings, pair_protocol, prepare, prepare_pairs

QUICK = Resampling(draws=40, seed=7)
GIVEN = JudgementScoring(metrics=())


def judged(image, candidate, ratings, *, references=("a dog runs",), **more):
    return Judgement(f"{image}/{candidate}", image, candidate, references, tuple(ratings), **more)


def random_set(size=90, *, seed=0):
    generator = np.random.default_rng(seed)
    return tuple(
        judged(
            f"image {n // 3}",
            f"caption {n}",
            generator.integers(1, 5, size=3).astype(float),
            given={"A": round(float(generator.normal()), 1), "B": round(float(generator.normal()), 1)},
        )
        for n in range(size)
    )


def test_flickr8k_expert_takes_every_rating_and_leaves_out_own_references():
    judgements = (
        judged("1", "a cat", (1, 2, 2)),
        judged("1", "a  dog runs", (4, 4, 4)),  # a reference, up to white space
        judged("2", "a dog sits", (2, 3, 3)),
        judged("3", "two dogs run", (3, 4, 4)),
    )
    found = agree_on_captions(
        judgements, caption_protocol("flickr8k-expert"), scoring=JudgementScoring(("rouge",)), resampling=QUICK
    )
    assert (found.captions, found.images, found.observations) == (3, 3, 9)
    assert found.removed == {"captions that are a reference of their image": 1}
    items = [Item(n, j.candidate, j.references) for n, j in enumerate(judgements) if n != 1]
    values = np.repeat(score(items, ("rouge",)).runs[0].scores[0].each, 3)
    expected = stats.kendalltau(values, [1, 2, 2, 2, 3, 3, 3, 4, 4], variant="c").statistic
    assert found.coefficients["ROUGE_L"]["tau_c"].value == pytest.approx(expected, abs=1e-12)


def test_flickr8k_expert_counts_every_rating_as_a_document_of_cider():
    """As the script does, which scores a row for every rating; with mean ratings a caption is one document."""
    texts = ("a cat sleeps on a sofa", "two men ride horses", "a red bus on a street")
    judgements = [
        judged(str(n), text, (1, 2, 3)[: n + 1], references=(f"{text} today", "a dog runs on grass"))
        for n, text in enumerate(texts)
    ]
    protocol, scoring = caption_protocol("flickr8k-expert"), JudgementScoring(("cider",))
    rows = [each for each in judgements for _ in each.ratings]
    for ratings, scored in ((Ratings.EACH, rows), (Ratings.MEAN, judgements)):
        found = agree_on_captions(judgements, replace(protocol, ratings=ratings), scoring=scoring, resampling=QUICK)
        items = [Item(n, j.candidate, j.references) for n, j in enumerate(scored)]
        each = score(items, ("cider",)).runs[0].scores[0].each
        expected = each if ratings is Ratings.MEAN else [each[0], each[1], each[3]]
        assert found.points["CIDEr"] == pytest.approx(expected, abs=1e-12)
        assert found.captions == 3


def test_flickr8k_cf_removes_one_equal_reference_for_each_judged_caption_and_merges_none():
    references = ("a dog runs", "a  dog runs", "a dog is running")
    one = judged("1", "a dog runs", (1.0,), references=references)
    kept, removed = prepare([one], caption_protocol("flickr8k-cf"))
    assert kept[0].references == ("a  dog runs", "a dog is running")
    assert removed == {"references equal to a judged caption, removed": 1}
    twice = replace(one, ratings=(1.0, 0.0))  # equal captions that follow each other
    kept, _ = prepare([twice], caption_protocol("flickr8k-cf"))
    assert kept[0].references == ("a dog is running",)
    other = judged("2", "a cat", (0.5,))
    found = agree_on_captions([twice, other], caption_protocol("flickr8k-cf"), scoring=JudgementScoring(("rouge",)))
    assert found.observations == 3


def test_flickr8k_cf_keeps_the_caption_and_removes_it_from_its_references():
    own = judged("1", "a dog runs", (1.0,), references=("a dog runs", "a dog is running"))
    kept, removed = prepare([own, judged("2", "a cat", (0.0,))], caption_protocol("flickr8k-cf"))
    assert [judgement.references for judgement in kept] == [("a dog is running",), ("a dog runs",)]
    assert removed == {"references equal to a judged caption, removed": 1}
    other = replace(own, candidate="a bird")
    of_image, _ = prepare([own, other], caption_protocol("flickr8k-cf"))
    assert [judgement.references for judgement in of_image] == [("a dog is running",)] * 2
    alone, _ = prepare([own, other], replace(caption_protocol("flickr8k-cf"), own=Own.DROP_REFERENCE))
    assert [len(judgement.references) for judgement in alone] == [1, 2]
    alone, removed = prepare(
        [judged("1", "a dog runs", (1.0,)), judged("2", "a cat", (0.0,))], caption_protocol("flickr8k-cf")
    )
    assert [judgement.image for judgement in alone] == ["2"]
    assert removed == {"captions without another reference": 1}


def test_thumb_machine_leaves_out_people():
    judgements = [judged("1", "a dog", (5.0,), system="Human"), judged("1", "a cat", (1.0,), system="Up-Down")]
    assert [j.system for j in prepare(judgements, caption_protocol("thumb-machine"))[0]] == ["Up-Down"]
    assert len(prepare(judgements, caption_protocol("thumb"))[0]) == 2
    with pytest.raises(InputError, match=r"thumb-machine leaves no caption: captions by left-out systems \(1\)"):
        prepare(judgements[:1], caption_protocol("thumb-machine"))


@pytest.mark.parametrize("ratings", Ratings)
def test_coefficients_ties_and_defined_values_are_those_of_the_observations(ratings):
    judgements = random_set()
    protocol = replace(CAPTION_PROTOCOLS["plain"], ratings=ratings)
    found = agree_on_captions(judgements, protocol, scoring=GIVEN, resampling=QUICK)
    repeat = 3 if ratings is Ratings.EACH else 1
    values = np.repeat([j.given["A"] for j in judgements], repeat)
    human = np.concatenate([j.ratings if repeat == 3 else [np.mean(j.ratings)] for j in judgements])
    coefficients, ties = found.coefficients["A"], found.ties["A"]
    assert coefficients["tau_b"].value == pytest.approx(stats.kendalltau(values, human).statistic, abs=1e-12)
    assert coefficients["spearman"].value == pytest.approx(stats.spearmanr(values, human).statistic, abs=1e-12)
    i, j = np.triu_indices(len(values), 1)
    assert ties["pairs"] == len(i)
    assert ties["metric"] == np.sum(values[i] == values[j])
    assert ties["human"] == np.sum(human[i] == human[j])
    assert ties["both"] == np.sum((values[i] == values[j]) & (human[i] == human[j]))
    assert (ties["values"], ties["ratings"]) == (len(set(values)), len(set(human)))


def test_intervals_are_those_of_resampled_images():
    judgements = random_set(60, seed=4)
    found = agree_on_captions(judgements, scoring=GIVEN, resampling=Resampling(draws=400, seed=1))
    generator = np.random.default_rng(99)
    values = np.array([j.given["A"] for j in judgements]).reshape(20, 3)
    human = np.array([np.mean(j.ratings) for j in judgements]).reshape(20, 3)
    draws = []
    for _ in range(400):
        images = generator.integers(0, 20, size=20)
        draws.append(stats.kendalltau(values[images].ravel(), human[images].ravel()).statistic)
    low, high = np.quantile(draws, [0.025, 0.975])
    interval = found.coefficients["A"]["tau_b"]
    assert interval.low == pytest.approx(low, abs=0.05)
    assert interval.high == pytest.approx(high, abs=0.05)
    again = agree_on_captions(judgements, scoring=GIVEN, resampling=Resampling(draws=400, seed=1))
    assert again == found


def test_comparisons_hold_the_protocols_coefficient_and_find_the_better_metric():
    generator = np.random.default_rng(8)
    judgements = tuple(
        judged(f"{n}", f"caption {n}", (rating,), given={"good": rating + noise, "poor": float(generator.normal())})
        for n, (rating, noise) in enumerate(
            zip(generator.integers(1, 6, 120).astype(float), generator.normal(size=120), strict=True)
        )
    )
    found = agree_on_captions(judgements, scoring=GIVEN, resampling=Resampling(draws=200))
    (row,) = found.comparisons
    assert (row.first_metric, row.second_metric, row.statistic) == ("good", "poor", "tau_b")
    assert row.first == found.coefficients["good"]["tau_b"].value
    assert row.difference == row.second - row.first
    assert row.high < 0
    assert row.p_permutation == 1 / 201
    assert row.p_williams < 0.001


def test_a_metric_without_a_value_leaves_the_caption_out_for_all():
    judgements = (
        judged("1", "a", (1.0,), given={"A": 0.1, "B": None}),
        judged("2", "b", (2.0,), given={"A": 0.2, "B": 1.0}),
        judged("3", "c", (3.0,), given={"A": 0.3, "B": 3.0}),
        judged("4", "d", (4.0,), given={"A": 0.2, "B": 2.0}),
    )
    found = agree_on_captions(judgements, scoring=GIVEN, resampling=QUICK)
    assert found.captions == 3
    assert found.undefined == {"A": 0, "B": 1}
    assert found.coefficients["A"]["pearson"].value == pytest.approx(stats.pearsonr([2, 3, 2], [2, 3, 4])[0])
    with pytest.raises(InputError, match="no caption has a value of every metric"):
        correlate(judgements[:1], {"A": [None]}, CAPTION_PROTOCOLS["plain"])


def test_a_constant_metric_has_no_coefficient_and_no_test():
    judgements = tuple(judged(f"{n}", f"{n}", (float(n),), given={"A": 1.0, "B": float(n)}) for n in range(5))
    found = agree_on_captions(judgements, scoring=GIVEN, resampling=QUICK)
    assert found.coefficients["A"]["tau_b"] == found.coefficients["A"]["pearson"]
    assert found.coefficients["A"]["tau_b"].value is None
    assert found.comparisons[0].difference is None
    assert found.coefficients["B"]["tau_b"].value == pytest.approx(1)


def test_people_against_people_pools_every_ordered_pair_of_ratings():
    judgements = (
        judged("1", "a", (1.0, 2.0), given={"A": 1.0}),
        judged("2", "b", (3.0, 4.0), given={"A": 2.0}),
        judged("3", "c", (2.0, 2.0), given={"A": 3.0}),
    )
    found = agree_on_captions(judgements, scoring=GIVEN, resampling=QUICK)
    expected = stats.pearsonr([1, 2, 3, 4, 2, 2], [2, 1, 4, 3, 2, 2])[0]
    people = found.between_people["pearson"]
    assert people.value == pytest.approx(expected)
    assert people.low < people.value < people.high
    assert people.p is None
    together = [replace(judgement, image="one") for judgement in judgements]
    alone = agree_on_captions(together, scoring=GIVEN, resampling=QUICK).between_people["pearson"]
    assert (alone.low, alone.high) == pytest.approx((expected, expected))
    alone = tuple(replace(judgement, ratings=judgement.ratings[:1]) for judgement in judgements)
    found = agree_on_captions(alone, scoring=GIVEN, resampling=QUICK)
    assert {interval.value for interval in found.between_people.values()} == {None}


def test_computed_and_given_scores_stand_side_by_side_and_may_not_clash():
    judgements = tuple(judged(f"{n}", "a dog", (float(n),), given={"Mine": float(n)}) for n in range(3))
    scores, _ = caption_scores(judgements, JudgementScoring(("rouge", "bleu")))
    assert list(scores) == ["ROUGE_L", "Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "Mine"]
    clash = [replace(judgement, given={"ROUGE_L": 1.0}) for judgement in judgements]
    with pytest.raises(InputError, match=r"metrics\.ROUGE_L: is computed, too"):
        caption_scores(clash, JudgementScoring(("rouge",)))
    gap = [judgements[0], replace(judgements[1], given={})]
    with pytest.raises(InputError, match=r"1/a dog, metrics\.Mine: is missing, but other rows have it"):
        caption_scores(gap, GIVEN)
    bare = [replace(judgement, references=()) for judgement in judgements]
    with pytest.raises(InputError, match="references: are missing, but a metric is to be computed"):
        caption_scores(bare, JudgementScoring(("rouge",)))
    assert caption_scores(bare, GIVEN)[0] == {"Mine": [0.0, 1.0, 2.0]}
    with pytest.raises(InputError, match="there is no metric"):
        caption_scores([replace(judgement, given={}) for judgement in judgements], GIVEN)


def test_every_protocol_says_what_it_does_and_unknown_ones_are_refused():
    for name, protocol in CAPTION_PROTOCOLS.items():
        assert protocol.name == name
        assert protocol.about.endswith(".")
    assert caption_protocol("flickr8k-expert").own is Own.DROP_CAPTION
    with pytest.raises(InputError, match="there is no protocol 'flickr'"):
        caption_protocol("flickr")


def test_of_descriptions_length_alone_and_scores_with_length_held_constant_are_said():
    """The partial rank correlation is that of the residuals of ranks; a score that is length has none left."""
    generator = np.random.default_rng(3)
    words = generator.integers(32, 90, size=60)
    quality = generator.normal(size=60)
    ratings = words / 30 + quality
    judgements = [
        judged(f"i{n}", " ".join(["word"] * count), (rating,), given={"A": float(q + s), "L": float(count) + float(s)})
        for n, (count, rating, q, s) in enumerate(
            zip(words.tolist(), ratings.tolist(), quality, generator.normal(size=60), strict=True)
        )
    ]
    found = agree_on_captions(judgements, scoring=GIVEN, resampling=QUICK)
    ranks = {"words": stats.rankdata(words), "ratings": stats.rankdata(ratings)}
    ranks["A"] = stats.rankdata([each.given["A"] for each in judgements])
    fit = {name: stats.linregress(ranks["words"], rank) for name, rank in ranks.items()}
    rest = {name: rank - fit[name].intercept - fit[name].slope * ranks["words"] for name, rank in ranks.items()}
    assert found.length[""] == pytest.approx(stats.spearmanr(words, ratings).statistic)
    assert found.length["A"] == pytest.approx(np.corrcoef(rest["A"], rest["ratings"])[0, 1])
    assert found.length["A"] > 0.4
    assert abs(found.length["L"]) < 0.3
    assert found.to_dict()["length"]["length alone"] == found.length[""]
    short = agree_on_captions(random_set(), scoring=GIVEN, resampling=QUICK)
    assert short.length == {}
    assert "length" not in short.to_dict()


def test_pairs_refuse_the_treatment_of_equal_references_of_rated_captions():
    with pytest.raises(InputError, match="--own drop-one-from-image: is for rated captions"):
        prepare_pairs([], replace(pair_protocol("foil"), own=Own.DROP_ONE_FROM_IMAGE))
