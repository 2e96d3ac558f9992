"""Leave-one-out: every fast path gives what the metric gives when it is called once for each held-out reference."""

from __future__ import annotations

import gzip
import json
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics import METRICS, make_metrics
from spicegraph_scorer.metrics.cider import Cider, CiderWarning
from spicegraph_scorer.metrics.meteor import Meteor
from spicegraph_studies.bounds import BoundsStudy, Lower, Trial, human, lower_trials, system
from spicegraph_studies.bounds.paths import CALL_THE_METRIC, path_of
from spicegraph_studies.bounds.study import batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_studies.bounds.study import Table

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[1] / "golden"
COSTLY = {"meteor": 60, "spice-exact": 150, "spider": 100}
"""Images that are enough of the golden ones, where calling a metric for each takes long."""


@dataclass(frozen=True)
class Parsed:
    """A source of facts: the tuples that SPICE 1.0 printed for the golden captions."""

    known: Mapping[str, tuple[Fact, ...]]
    signature: str = "golden"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return (self.known[text] for text in texts)


@dataclass(frozen=True)
class EveryWord:
    """A source of facts for made-up captions: each word is an object, and what stands before it an attribute."""

    signature: str = "words"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            words = [word for word in text.split() if word.isalpha()]
            objects = [Fact((word,), "word", ()) for word in words]
            pairs = [Fact((word, before), "pair", ()) for before, word in pairwise(words)]
            triples = [Fact((words[0], words[-1], words[1]), "triple", ())] if len(words) > 2 else []
            yield (*objects, *pairs, *triples)


def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "spice" / name, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture(scope="module")
def parsed() -> Parsed:
    rows = lines("spice_parses.jsonl.gz")
    return Parsed({row["text"]: tuple(Fact(tuple(words), "", ()) for words in row["tuples"]) for row in rows})


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[int, dict[str, Any]]]:
    """The golden items: by system, then by image."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for row in lines("spice_scores.jsonl.gz"):
        found.setdefault(row["system"], {})[row["image_id"]] = row
    return found


@pytest.fixture(scope="module")
def study(golden: dict[str, dict[int, dict[str, Any]]]) -> BoundsStudy:
    return BoundsStudy.of({name: row["references"] for name, row in golden["near"].items()})


@pytest.fixture(scope="module")
def near(golden: dict[str, dict[int, dict[str, Any]]], study: BoundsStudy) -> Trial:
    return system("near", {name: row["candidate"] for name, row in golden["near"].items()}, study)


def tables(metric: Metric[Any], study: BoundsStudy, trials: Sequence[Trial], *, fast: bool) -> list[Table]:
    path = path_of(metric) if fast else CALL_THE_METRIC
    told: list[tuple[int, int]] = []
    found = path(
        metric, study, [trial.candidates for trial in trials], spread=map, advance=lambda *done: told.append(done)
    )
    assert told[-1][0] == told[-1][1]
    return found


def assert_same(metric: Metric[Any], study: BoundsStudy, trials: Sequence[Trial]) -> None:
    for fast, slow in zip(
        tables(metric, study, trials, fast=True), tables(metric, study, trials, fast=False), strict=True
    ):
        assert fast.names == slow.names
        np.testing.assert_allclose(fast.each, slow.each, rtol=0, atol=1e-9)
        assert (fast.columns is None) == (slow.columns is None)
        if fast.columns is not None and slow.columns is not None:
            np.testing.assert_array_equal(fast.columns, slow.columns)


def test_every_metric_has_a_path_and_most_a_fast_one(parsed: Parsed) -> None:
    made = make_metrics(METRICS, Resources(lambda: parsed))
    assert {name for name, metric in made.items() if path_of(metric) is not CALL_THE_METRIC} >= {
        "spice",
        "spice-exact",
        "spice-g",
        "bleu",
        "bleu-sentence",
        "meteor",
        "rouge",
        "cider",
        "cider-plain",
        "spider",
    }


@pytest.mark.parametrize("name", METRICS)
def test_golden_images_as_calling_the_metric_for_each_held_out_reference(
    name: str, study: BoundsStudy, near: Trial, parsed: Parsed
) -> None:
    metric = make_metrics([name], Resources(lambda: parsed))[name]
    images = COSTLY.get(name, len(study.ids))
    few = BoundsStudy(study.ids[:images], study.captions[:images])
    trials = [human(few), Trial("near", "system", near.candidates[:images])]
    assert_same(metric, few, trials)


@pytest.mark.parametrize("name", ["bleu", "meteor", "rouge", "cider"])
def test_first_round_is_what_the_original_programs_print(name: str, study: BoundsStudy, parsed: Parsed) -> None:
    """Their ``human``: each image's first caption against the other four."""
    with gzip.open(GOLDEN / "ngram" / "ngram_scores.json.gz", "rt", encoding="utf-8") as stream:
        theirs = json.load(stream)["human"]["items"]
    by_image = {row["image_id"]: row for row in theirs}
    metric = make_metrics([name], Resources(lambda: parsed))[name]
    table = tables(metric, study, [human(study)], fast=True)[0]
    for place, score in enumerate(table.names):
        expected = [by_image[image][score] for image in study.ids]
        # The program's tokenizer reads all captions as one text, which changes a token here and there.
        assert np.isclose(table.each[0, :, place], expected, rtol=0, atol=1e-9).mean() > 0.98


def test_first_round_of_spice_is_what_spice_prints(
    study: BoundsStudy, golden: dict[str, dict[int, dict[str, Any]]], parsed: Parsed
) -> None:
    metric = make_metrics(["spice"], Resources(lambda: parsed))["spice"]
    table = tables(metric, study, [human(study)], fast=True)[0]
    for place, name in enumerate(table.names):
        category = name.removeprefix("SPICE").removeprefix("_") or "All"
        expected = [golden["human"][int(image)]["scores"][category]["f"] for image in study.ids]
        np.testing.assert_allclose(
            table.each[0, :, place], [np.nan if f is None else f for f in expected], rtol=0, atol=1e-9
        )


WORDS = ["a", "dog", "cat", "red", "runs", "running", "the", "2\u00a01/2", "!", "|||", "automobile", "car"]
CAPTION = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
IMAGE = st.lists(CAPTION, min_size=2, max_size=4).map(tuple)


@st.composite
def studies(draw: st.DrawFn) -> tuple[BoundsStudy, list[Trial]]:
    """Images with different numbers of captions, people, a system and something else for every caption."""
    captions = tuple(draw(st.lists(IMAGE, min_size=1, max_size=4)))
    study = BoundsStudy(tuple(range(len(captions))), captions)
    texts = {image: draw(CAPTION) for image in study.ids}
    other = tuple(tuple(draw(CAPTION) for _ in mine) for mine in captions)
    return study, [human(study), system("s", texts, study), Trial("other", "lower", other)]


FAST = [name for name in METRICS if name != "meteor"]


@pytest.mark.parametrize("name", FAST)
@given(made=studies())
def test_fast_is_slow(name: str, made: tuple[BoundsStudy, list[Trial]]) -> None:
    metric = make_metrics([name], Resources(EveryWord))[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CiderWarning)
        assert_same(metric, *made)


@given(made=studies())
def test_fast_is_slow_for_meteor(made: tuple[BoundsStudy, list[Trial]]) -> None:
    assert_same(Meteor(), *made)


@given(made=studies())
def test_fast_is_slow_with_frozen_document_frequencies(made: tuple[BoundsStudy, list[Trial]]) -> None:
    study, trials = made
    frozen = DocumentFrequencies.from_references([tokenize_texts(texts) for texts in (("a dog runs",), ("the cat",))])
    for variant in ("CIDEr", "CIDEr-D"):
        assert_same(Cider(variant, frequencies=frozen), study, trials)


def test_batches_hold_every_image_once_in_order() -> None:
    captions = tuple(tuple(f"{image} {place}" for place in range(2 + image % 40)) for image in range(400))
    study = BoundsStudy(tuple(range(400)), captions)
    found = list(batches(study, [captions]))
    assert len(found) > 5
    assert tuple(texts for of_people, _ in found for texts in of_people) == captions
    assert all(of_people == of_trial for of_people, of_trial in found)


def test_undefined_in_some_rounds_is_nan_there() -> None:
    """Only the first image names a colour, in one caption: without it no reference does."""
    study = BoundsStudy((1, 2), (("red car", "car"), ("a cat", "the cat")))
    metric = make_metrics(["spice"], Resources(EveryWord))["spice"]
    table = tables(metric, study, [human(study)], fast=True)[0]
    color = table.each[:, :, table.names.index("SPICE_Color")]
    assert np.isnan(color[0, 0])
    assert color[1, 0] == 0
    assert np.isnan(color[:, 1]).all()


def test_substitutes_of_the_golden_images_score_below_people(study: BoundsStudy, parsed: Parsed) -> None:
    metric = make_metrics(["cider"], Resources(lambda: parsed))["cider"]
    trials = [human(study), *lower_trials(study, Lower(kinds=("intra", "gibberish", "words")))]
    values = [np.nanmean(table.each) for table in tables(metric, study, trials, fast=True)]
    assert values[0] > 10 * max(values[1:])
