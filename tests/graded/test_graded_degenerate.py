"""SPICE-G on captions that nobody should be rewarded for, made from the captions of people."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer import Item
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.readers import read_items

pytestmark = pytest.mark.model

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Change = Callable[[str, random.Random], str]


def _twice(caption: str, _rng: random.Random) -> str:
    return f"{caption} {caption}"


def _twice_with_and(caption: str, _rng: random.Random) -> str:
    return f"{caption.rstrip('.')} and {caption}"


def _last_word_again(caption: str, _rng: random.Random) -> str:
    words = caption.rstrip(".").split()
    return " ".join([*words, *words[-1:] * 5])


def _gibberish(caption: str, rng: random.Random) -> str:
    return " ".join("".join(rng.choices(LETTERS, k=rng.randint(3, 8))) for _ in caption.split())


def _function_words(_caption: str, _rng: random.Random) -> str:
    return "the of and a to in is it"


def _with_gibberish(caption: str, rng: random.Random) -> str:
    return f"{caption.rstrip('.')} {_gibberish(caption, rng)}"


@pytest.fixture(scope="module")
def people() -> tuple[Item, ...]:
    references = [str(EXAMPLES / "captions_without_first.json")]
    return tuple(read_items(str(EXAMPLES / "human.json"), references=references).items)


@pytest.fixture(scope="module")
def metric() -> SpiceG:
    return SpiceG(load_pipeline())


def each(metric: SpiceG, items: tuple[Item, ...]) -> list[float]:
    return [value or 0.0 for value in metric.total(metric.collect(Corpus(items)))[0].each]


def changed(items: tuple[Item, ...], change: Change) -> tuple[Item, ...]:
    rng = random.Random(1)
    return tuple(Item(item.id, change(item.candidate, rng), item.references) for item in items)


def test_people_score_high(metric: SpiceG, people: tuple[Item, ...]) -> None:
    assert fmean(each(metric, people)) == pytest.approx(0.6566, abs=0.005)


@pytest.mark.parametrize("change", [_twice, _twice_with_and, _last_word_again])
def test_repetition_does_not_raise_the_score(metric: SpiceG, people: tuple[Item, ...], change: Change) -> None:
    """Repeated tuples count once; what is left is that the parser reads a longer caption otherwise here and there."""
    assert fmean(each(metric, changed(people, change))) <= fmean(each(metric, people)) + 0.003


@pytest.mark.parametrize("change", [_gibberish, _function_words])
def test_captions_without_content_score_nothing(metric: SpiceG, people: tuple[Item, ...], change: Change) -> None:
    assert fmean(each(metric, changed(people, change))) < 0.005


def test_gibberish_in_a_caption_costs(metric: SpiceG, people: tuple[Item, ...]) -> None:
    assert fmean(each(metric, changed(people, _with_gibberish))) < fmean(each(metric, people)) - 0.1


def test_captions_of_other_images_score_little(metric: SpiceG, people: tuple[Item, ...]) -> None:
    moved = zip(people, (*people[1:], people[0]), strict=True)
    others = tuple(Item(item.id, other.candidate, item.references) for item, other in moved)
    assert fmean(each(metric, others)) < 0.25 * fmean(each(metric, people))


def _shuffled(caption: str, rng: random.Random) -> str:
    words = caption.split()
    return " ".join(rng.sample(words, len(words)))


def _backwards(caption: str, _rng: random.Random) -> str:
    return " ".join(reversed(caption.rstrip(".").split()))


def _in_the_order_of_a_dictionary(caption: str, _rng: random.Random) -> str:
    return " ".join(sorted(caption.lower().rstrip(".").split()))


@pytest.mark.parametrize(
    ("change", "kept"), [(_shuffled, 0.2), (_backwards, 0.05), (_in_the_order_of_a_dictionary, 0.15)]
)
def test_the_words_of_a_caption_in_another_order_score_little(
    metric: SpiceG, people: tuple[Item, ...], change: Change, kept: float
) -> None:
    assert fmean(each(metric, changed(people, change))) < kept * fmean(each(metric, people))


def _as_typed(caption: str, _rng: random.Random) -> str:
    return caption


def _as_models_write(caption: str, _rng: random.Random) -> str:
    return caption.lower().rstrip(".")


def _without_articles(caption: str, _rng: random.Random) -> str:
    return " ".join(word for word in caption.split() if word.lower() not in {"a", "an", "the"})


@pytest.mark.parametrize(("change", "kept"), [(_as_typed, 1), (_as_models_write, 1), (_without_articles, 0.99)])
def test_other_ways_of_writing_cost_nothing_for_their_order(
    metric: SpiceG, people: tuple[Item, ...], change: Change, kept: float
) -> None:
    order = metric.vectors.order
    assert order is not None
    items = changed(people, change)
    assert fmean([order.share(item.candidate, item.references) for item in items]) >= kept
