"""Rounds, substitutes, summaries and rankings of a study of bounds."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from spicegraph_parser.errors import InputError
from spicegraph_scorer import CategoryDefinition, Item, MetricData, make_categories, score
from spicegraph_scorer.core.length import control_of
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.core.tokens import toolkit_text
from spicegraph_studies.bounds import (
    SUBSTITUTES,
    BoundsStudy,
    Distribution,
    Lower,
    Trial,
    find_bounds,
    human,
    lower_trials,
    system,
)
from spicegraph_studies.bounds.results import resample_weights
from spicegraph_studies.pages.bounds import bounds_study
from word_facts import WordFacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CAPTIONS: Mapping[int, tuple[str, ...]] = {
    7: ("a dog runs", "the brown dog runs fast", "a running dog"),
    3: ("two cats", "cats on a sofa"),
    5: ("a man rides a horse", "a man on a horse", "someone rides", "a horse and a man"),
    1: ("a red car", "the red car is parked", "a car on the street"),
}
FEW = Resampling(draws=40)


def mean(values: Sequence[float | None]) -> float:
    return statistics.fmean(value for value in values if value is not None)


@pytest.fixture
def study() -> BoundsStudy:
    return BoundsStudy.of(CAPTIONS)


def test_a_round_holds_one_caption_of_each_image_out_in_order(study: BoundsStudy) -> None:
    mine = human(study).candidates
    assert study.rounds == 4
    for number in range(4):
        items = study.corpus(mine, number).items
        assert [item.id for item in items] == list(CAPTIONS)
        for item in items:
            captions = CAPTIONS[int(item.id)]
            place = number % len(captions)
            assert item.candidate == captions[place]
            assert item.references == tuple(text for k, text in enumerate(captions) if k != place)


def test_every_caption_is_new_in_exactly_one_round(study: BoundsStudy) -> None:
    assert sorted(study.held[study.new].tolist()) == list(range(12))


def test_a_system_is_the_same_in_every_round_against_one_reference_less(study: BoundsStudy) -> None:
    trial = system("s", dict.fromkeys(CAPTIONS, "a dog"), study)
    for number in range(4):
        for item in study.corpus(trial.candidates, number).items:
            assert item.candidate == "a dog"
            assert len(item.references) == len(CAPTIONS[int(item.id)]) - 1


def test_what_cannot_be_held_out_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"1 image with fewer than 2 captions: 'b'; --partial"):
        BoundsStudy.of({"a": ("x", "y"), "b": ("z",)})
    assert BoundsStudy.of({"a": ("x", "y"), "b": ("z",)}, partial=True).ids == ("a",)
    with pytest.raises(InputError, match="no images"):
        BoundsStudy.of({"b": ("z",)}, partial=True)
    with pytest.raises(InputError, match="at least 2 of each image"):
        BoundsStudy.of({"a": ("x", "y")}, first=1)
    with pytest.raises(InputError, match="more than once: 'a'"):
        BoundsStudy(("a", "a"), (("x", "y"), ("x", "y")))
    with pytest.raises(InputError, match=r"s: 1 image without a caption: 'a'"):
        system("s", {}, BoundsStudy.of({"a": ("x", "y")}))


def test_only_the_first_captions() -> None:
    study = BoundsStudy.of(CAPTIONS, first=3, partial=True)
    assert study.ids == (7, 5, 1)
    assert study.captions[1] == CAPTIONS[5][:3]


@pytest.mark.parametrize("metric", ["bleu", "rouge", "cider", "bleu-sentence", "spider"])
def test_numbers_are_those_of_score_round_by_round(study: BoundsStudy, metric: str) -> None:
    systems = {"people": {}, "cats": dict.fromkeys(CAPTIONS, "two cats on a horse")}
    trial = system("cats", systems["cats"], study)
    found = find_bounds(study, [trial], [metric], resampling=FEW)
    for place, mine in enumerate((human(study), trial)):
        results = [score(study.corpus(mine.candidates, number).items, [metric]) for number in range(study.rounds)]
        for index, bound in enumerate(found.trials[place].scores):
            values = [result.runs[0].scores[index].value for result in results]
            assert bound.rounds == pytest.approx(values, abs=1e-9)
            assert bound.value == pytest.approx(mean(values), abs=1e-9)
            each = [
                [results[k].runs[0].scores[index].each[image] for k in range(len(texts))]
                for image, texts in enumerate(study.captions)
            ]
            flat = [value for row in each for value in row if value is not None]
            means = [mean(row) for row in each]
            assert bound.captions.n == 12
            assert bound.captions.mean == pytest.approx(statistics.fmean(flat))
            assert bound.captions.sd == pytest.approx(statistics.stdev(flat))
            assert bound.captions.median == pytest.approx(statistics.median(flat))
            assert (bound.captions.minimum, bound.captions.maximum) == pytest.approx((min(flat), max(flat)))
            assert bound.images.n == 4
            assert bound.images.mean == pytest.approx(statistics.fmean(means))
            assert bound.images.sd == pytest.approx(statistics.stdev(means))
            deviations = [statistics.stdev([value or 0.0 for value in row]) for row in each]
            assert bound.within.mean == pytest.approx(statistics.fmean(deviations))


@pytest.mark.slow
def test_intervals_and_shares_are_those_of_resampled_studies(study: BoundsStudy) -> None:
    """A resample is the study of the images drawn; for BLEU the mean of rounds of summed counts."""
    trial = system("s", dict.fromkeys(CAPTIONS, "a man on a red horse"), study)
    found = find_bounds(study, [trial], ["bleu"], resampling=FEW)
    weights = resample_weights(4, FEW)
    assert weights.sum(axis=1).tolist() == [4] * 40
    draws: dict[str, list[float]] = {"human": [], "s": []}
    for row in weights:
        for mine in (human(study), trial):
            values = []
            for number in range(study.rounds):
                items = study.corpus(mine.candidates, number).items
                drawn = [
                    replace(item, id=f"{item.id}-{copy}")
                    for item, count in zip(items, row, strict=True)
                    for copy in range(count)
                ]
                values.append(score(drawn, ["bleu"]).runs[0].scores[0].value or 0.0)
            draws[mine.name].append(statistics.fmean(values))
    for bounds, name in zip(found.trials, draws, strict=True):
        low, high = np.quantile(draws[name], [0.025, 0.975])
        assert (bounds.scores[0].low, bounds.scores[0].high) == pytest.approx((low, high), abs=1e-9)
    share = found.trials[1].scores[0].share
    assert share is not None
    ratios = 100 * np.array(draws["s"]) / np.array(draws["human"])
    assert (share.low, share.high) == pytest.approx(tuple(np.quantile(ratios, [0.025, 0.975])), abs=1e-9)
    value = found.trials[1].scores[0].value
    assert value is not None
    assert share.value == pytest.approx(100 * value / (found.human.scores[0].value or math.nan))
    assert found.human.scores[0].share is None


def test_ranking_is_scipys_tau_b(study: BoundsStudy) -> None:
    found = find_bounds(study, metrics=["bleu-sentence", "rouge", "cider"], resampling=FEW)
    names = tuple(found.ranking["captions"])
    assert names == (*(f"SentenceBleu_{n}" for n in range(1, 5)), "ROUGE_L", "CIDEr")
    each = {
        run_score.name: [
            [
                score(study.corpus(human(study).candidates, k).items, [metric]).runs[0].scores[index].each[image]
                for k in range(len(texts))
            ]
            for image, texts in enumerate(study.captions)
        ]
        for metric, index, run_score in (
            (name, index, bound) for name, bounds in found.human.metrics.items() for index, bound in enumerate(bounds)
        )
    }
    for first in names:
        for second in names:
            flat = [[value for row in each[name] for value in row] for name in (first, second)]
            means = [[mean(row) for row in each[name]] for name in (first, second)]
            for mine, columns in ((found.ranking["captions"], flat), (found.ranking["images"], means)):
                assert mine[first][second].value == pytest.approx(kendalltau(*columns).statistic, abs=1e-9)


def test_spice_is_that_of_score_with_a_real_pipeline() -> None:
    """Also where captions have words that hang loose, whose facts SPICE leaves out."""
    captions = {
        1: ("A dog , brown , with a ball in it's mouth .", "man dog red ball", "the brown dog's red ball"),
        2: ("there are three large white cats", "3 cats", "a couple of cats , white"),
        3: ("red stop sign street night", "a stop sign at night", "the sign is red"),
    }
    study = BoundsStudy.of(captions)
    for metric in ("spice", "spice-exact"):
        bounds = find_bounds(study, metrics=[metric], resampling=FEW).human.scores
        results = [score(study.corpus(human(study).candidates, number).items, [metric]) for number in range(3)]
        for place, bound in enumerate(bounds):
            values = [result.runs[0].scores[place].value for result in results]
            assert bound.rounds == pytest.approx(values, abs=1e-9), bound.name


def test_categories_of_spice_are_not_ranked() -> None:
    study = BoundsStudy.of(CAPTIONS)
    found = find_bounds(study, metrics=["spice", "rouge"], resampling=FEW)
    assert tuple(found.ranking["captions"]) == ("SPICE", "ROUGE_L")
    assert [bound.name for bound in found.human.metrics["spice"]][:2] == ["SPICE", "SPICE_Relation"]
    cardinality = next(bound for bound in found.human.scores if bound.name == "SPICE_Cardinality")
    assert cardinality.captions.n == 1
    assert cardinality.captions.sd is None


@pytest.mark.filterwarnings("ignore:CIDEr is undefined")
def test_undefined_is_none_everywhere() -> None:
    study = BoundsStudy((1,), (("a dog", "the dog"),))
    found = find_bounds(study, [system("s", {1: "a cat"}, study)], ["cider"], resampling=FEW)
    for trial in found.trials:
        bound = trial.scores[0]
        assert (bound.value, bound.low, bound.high, bound.rounds) == (None, None, None, (None, None))
        assert bound.captions == Distribution(0, None, None, None, None, None, None, None)
    share = found.trials[1].scores[0].share
    assert share is not None
    assert share.value is None
    assert found.ranking["captions"]["CIDEr"]["CIDEr"].value is None


def test_two_trials_of_one_name_are_refused(study: BoundsStudy) -> None:
    trial = system("human", dict.fromkeys(CAPTIONS, "x"), study)
    with pytest.raises(InputError, match="two trials are called 'human'"):
        find_bounds(study, [trial], ["rouge"])


def test_json_has_every_number(study: BoundsStudy) -> None:
    found = find_bounds(study, list(lower_trials(study, Lower(kinds=("intra",)))), ["rouge"], resampling=FEW)
    values = found.to_dict()
    assert (values["images"], values["captions"], values["rounds"]) == (4, 12, 4)
    assert values["references"] == {"min": 1, "max": 3}
    trials = values["trials"]
    assert isinstance(trials, list)
    assert [trial["name"] for trial in trials] == ["human", "intra"]
    assert set(trials[1]["scores"]["ROUGE_L"]) == {
        "value",
        "low",
        "high",
        "rounds",
        "share",
        "captions",
        "images",
        "within",
    }


# Substitutes


def big() -> BoundsStudy:
    captions = tuple(tuple(f"caption {image} {place}" for place in range(2 + image % 5)) for image in range(300))
    return BoundsStudy(tuple(range(300)), captions)


def trials(**options: object) -> dict[str, Trial]:
    return {trial.name: trial for trial in lower_trials(big(), Lower(**options))}  # type: ignore[arg-type]


def test_another_images_captions_are_drawn_evenly_and_never_the_images_own() -> None:
    study = big()
    drawn = trials(kinds=("intra",))["intra"].candidates
    everything = {text for texts in study.captions for text in texts}
    seen = [text for texts in drawn for text in texts]
    for own, texts in zip(study.captions, drawn, strict=True):
        assert len(texts) == len(own)
        assert not set(texts) & set(own)
    assert set(seen) <= everything
    # 1,200 draws among 1,200 captions: the share of captions that are drawn at all is 1 - 1/e.
    assert len(set(seen)) / len(everything) == pytest.approx(1 - 1 / math.e, abs=0.04)


def test_the_two_halves_around_an_image_are_both_drawn_from() -> None:
    study = BoundsStudy((1, 2, 3), (("a1", "a2"), ("b1", "b2"), ("c1", "c2")))
    drawn = [next(iter(lower_trials(study, Lower(kinds=("intra",), seed=seed)))).candidates[1][0] for seed in range(60)]
    assert set(drawn) == {"a1", "a2", "c1", "c2"}


def test_each_kind_draws_from_its_own_texts() -> None:
    sentences = ("too short", "this one has more than five words in it", "a b c d e")
    found = trials(others=(("other one", "other two"), ("third",)), sentences=sentences, lengths=(3, None))
    assert list(found) == [
        "intra",
        "inter",
        "sentences",
        "definitions",
        "gibberish-3",
        "gibberish-sentences-3",
        "words-3",
    ]
    texts = {name: {text for row in trial.candidates for text in row} for name, trial in found.items()}
    assert texts["inter"] == {"other one", "other two", "third"}
    assert texts["sentences"] == {"this one has more than five words in it"}  # the other is of nine characters
    assert all(len(text.split()) >= 5 for text in texts["definitions"])
    words = {word for name in ("gibberish-3",) for text in texts[name] for word in text.split()}
    assert words <= {"caption", *map(str, range(300))}
    assert all(len(text.split()) == 3 for name in ("gibberish-3", "words-3") for text in texts[name])
    assert {word for text in texts["gibberish-sentences-3"] for word in text.split()} <= {
        word for text in sentences for word in text.split()
    }


def test_gibberish_has_the_words_as_often_as_the_captions() -> None:
    text = " ".join(text for row in trials(kinds=("gibberish",))["gibberish-10"].candidates for text in row).split()
    assert text.count("caption") / len(text) == pytest.approx(1 / 3, abs=0.02)


def test_the_corpora_of_others_are_equally_likely() -> None:
    other = tuple(f"large {k}" for k in range(1000))
    drawn = trials(kinds=("inter",), others=(other, ("small",)))["inter"].candidates
    seen = [text for row in drawn for text in row]
    assert seen.count("small") / len(seen) == pytest.approx(0.5, abs=0.06)


def test_the_same_seed_draws_the_same_whatever_else_is_asked_for() -> None:
    assert trials(kinds=("words",))["words-10"] == trials(kinds=("intra", "gibberish", "words"))["words-10"]
    assert trials(kinds=("words",), seed=1) != trials(kinds=("words",), seed=2)


def test_fewer_texts_for_an_image_are_used_again() -> None:
    trial = trials(kinds=("intra",), per_image=2)["intra"]
    assert trial.title == "a caption of another image, 2 drawn for each image"
    for row in trial.candidates:
        assert list(row) == [row[place % 2] for place in range(len(row))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ("noise",)}, "there is no lower bound 'noise'; there are intra"),
        ({"lengths": (0,)}, "at least one word"),
        ({"per_image": 0}, "at least one text"),
        ({"others": ((),)}, "contains no caption"),
        ({"kinds": ("sentences",), "sentences": ("short",)}, "none has 5 words"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trials(**options)


def test_a_single_image_has_no_other() -> None:
    with pytest.raises(InputError, match="only one image"):
        list(lower_trials(BoundsStudy((1,), (("a", "b"),)), Lower(kinds=("intra",))))


def test_every_kind_is_in_the_default() -> None:
    assert set(Lower().kinds) == set(SUBSTITUTES)


NUMBERS = st.lists(st.one_of(st.floats(-1e3, 1e3), st.just(math.nan)), max_size=12)


@given(NUMBERS)
def test_a_distribution_is_that_of_the_defined_values(values: list[float]) -> None:
    found = Distribution.of(np.array(values))
    defined = sorted(value for value in values if not math.isnan(value))
    assert found.n == len(defined)
    if defined:
        assert found.mean == pytest.approx(statistics.fmean(defined), abs=1e-9)
        assert (found.minimum, found.maximum) == (defined[0], defined[-1])
        assert found.median == pytest.approx(statistics.median(defined), abs=1e-9)
    if len(defined) > 1:
        assert found.sd == pytest.approx(statistics.stdev(defined), abs=1e-6)
        quartiles = statistics.quantiles(defined, n=4, method="inclusive")
        assert (found.q1, found.q3) == pytest.approx((quartiles[0], quartiles[2]), abs=1e-9)


def test_items_of_a_round_can_be_scored_as_any_others(study: BoundsStudy) -> None:
    items = study.corpus(human(study).candidates, 0).items
    assert items[0] == Item(7, "a dog runs", ("the brown dog runs fast", "a running dog"))


@pytest.mark.model
def test_notes_on_words_are_read_as_in_a_score() -> None:
    """SPICE-G reads denials and quantities by the places of their words, which a study keeps for it."""
    captions = {1: ("a man with no hat", "a man without a hat"), 2: ("a group of people", "a pair of dogs")}
    study = BoundsStudy.of(captions)
    found = find_bounds(study, metrics=("spice-g",), resampling=FEW).human.scores[0]
    rounds = [score(study.corpus(human(study).candidates, number).items, ["spice-g"]) for number in range(2)]
    assert found.rounds == tuple(result.corpus["SPICE-G"] for result in rounds)


def test_of_chair_the_lowest_ranks_first_and_the_result_says_so(study: BoundsStudy) -> None:
    captions = {
        n: (f"a {one} and a man", f"a {other} and a man")
        for n, (one, other) in enumerate([("dog", "dog"), ("dog", "cat"), ("bus", "kite"), ("cat", "cat")])
    }
    found = find_bounds(BoundsStudy.of(captions), metrics=("chair", "rouge"), resampling=FEW)
    assert found.lower_is_better == ("CHAIRi", "CHAIRs")
    assert found.to_dict()["lower_is_better"] == ("CHAIRi", "CHAIRs")
    assert found.ranking["captions"]["CHAIRi"]["ROUGE_L"].value == pytest.approx(1)
    assert find_bounds(study, metrics=("rouge",), resampling=FEW).lower_is_better == ()


def test_bounds_hold_out_captions_of_the_same_text() -> None:
    study = BoundsStudy((1, 2), (("A dog.", "A dog, running!"), ("Two CATS.", "two cats (sleeping)")))
    tokens = BoundsStudy(study.ids, tuple(tuple(map(toolkit_text, texts)) for texts in study.captions))
    found = find_bounds(study, metrics=("spice",), pipeline=WordFacts(), spice_text="coco").human.scores[0]
    assert found.value == find_bounds(tokens, metrics=("spice",), pipeline=WordFacts()).human.scores[0].value
    assert found.value != find_bounds(study, metrics=("spice",), pipeline=WordFacts()).human.scores[0].value


def test_data_that_are_given_twice_or_unknown_are_refused() -> None:
    pets = make_categories([CategoryDefinition("Pet", words=("dog",))])
    study = BoundsStudy((1, 2), (("dog", "dog"), ("cat", "cat")))
    with pytest.raises(InputError, match=r"^categories is given twice: as a keyword and in data$"):
        find_bounds(study, pipeline=WordFacts(), data=MetricData(categories=pets), categories=pets)
    with pytest.raises(TypeError, match="'category'"):
        find_bounds(study, pipeline=WordFacts(), category=pets)


def test_of_descriptions_each_system_stands_beside_people_with_length_held_constant() -> None:
    """As two systems do in ``compare``: people's score of an image is the mean of its held-out captions'."""
    generator = np.random.default_rng(1)
    words = ["dog", "cat", "man", "sofa", "street", "ride", "red"]
    captions = {
        n: tuple(" ".join(generator.choice(words, size=size)) for size in generator.integers(31, 50, size=3))
        for n in range(20)
    }
    study = BoundsStudy.of(captions)
    said = {n: " ".join(generator.choice(words, size=generator.integers(20, 70))) for n in captions}
    found = find_bounds(study, [system("s", said, study)], ["rouge", "bleu"], resampling=FEW)
    control = found.length["s"]["ROUGE_L"]
    items = [
        Item(f"{n} {place} {side}", text, tuple(other for other in texts if other != texts[place]))
        for n, texts in captions.items()
        for place in range(3)
        for side, text in enumerate((said[n], texts[place]))
    ]
    each = score(items, ["rouge"]).runs[0].scores[0].each
    by_image = np.array(each).reshape(20, 3, 2).mean(axis=1)
    lengths = np.array([len(item.candidate.split()) for item in items]).reshape(20, 3, 2).mean(axis=1)
    expected = control_of(lengths.tolist(), by_image.tolist())
    assert control.words == pytest.approx(expected.words)
    for name in ("longer_wins", "difference", "low", "high"):
        assert getattr(control, name) == pytest.approx(getattr(expected, name))
    assert list(found.length["s"]) == ["ROUGE_L", "Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4"]
    length = found.to_dict()["length"]
    assert isinstance(length, dict)
    assert length["s"]["ROUGE_L"]["difference"] == control.difference
    (grid,) = next(section for section in bounds_study(found).sections if section.key == "length").grids
    assert grid.title == f"Length: s {control.words[0]:.0f} words, people {control.words[1]:.0f}"
    assert grid.rows[0] == ("s", "ROUGE_L", control.longer_wins, control.difference, (control.low, control.high))


def test_of_short_captions_length_is_not_said(study: BoundsStudy) -> None:
    found = find_bounds(study, [system("s", dict.fromkeys(CAPTIONS, "a dog"), study)], ["rouge"], resampling=FEW)
    assert found.length == {}
    assert "length" not in found.to_dict()
