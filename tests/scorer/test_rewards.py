"""Rewards: mixtures of scores and of terms of the text."""

import math

import pytest

from spicegraph_parser import Fact
from spicegraph_parser.errors import InputError
from spicegraph_scorer import METRICS, Corpus, Item, score
from spicegraph_scorer.metrics import make_reward
from spicegraph_scorer.metrics.reward import Term, parse_reward
from spicegraph_scorer.scoring import resources


class Words:
    """A source that finds an object in every word but articles."""

    signature = "words"

    def facts(self, texts):  # type: ignore[no-untyped-def]
        return [
            tuple(Fact((word,), "objects", ((n,),)) for n, word in enumerate(text.split()) if word not in ("a", "the"))
            for text in texts
        ]


ITEMS = (
    Item(1, "a dog a cat", ("a dog", "the dog runs")),
    Item(2, "a man a man a man", ("a man walks", "a woman")),
    Item(3, "", ("a bird",)),
)


def test_a_reward_is_read() -> None:
    assert parse_reward(" spice-g = 1 , cider-d=.1,length=-.01 ", METRICS) == (
        Term(1.0, "spice-g"),
        Term(0.1, "cider-d"),
        Term(-0.01, "length"),
    )


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["has no term"]),
        ("spice", ["term 1: spice has no weight"]),
        ("spice=1,spice=2", ["term 2: spice stands twice"]),
        ("lengths=1,spice=nan", ["term 1: there is no term 'lengths'", "term 2: spice has no weight"]),
        ("length:words=1", ["term 1: there is no term 'length:words'"]),
        ("bleu:Bleu_9=1", ["bleu has no score 'Bleu_9'; it has Bleu_1, "]),
    ],
)
def test_every_fault_of_a_reward_is_named(text: str, faults: list[str]) -> None:
    with pytest.raises(InputError, match=r"^reward: ") as error:
        make_reward(text, resources(Words()))
    assert all(fault in str(error.value) for fault in faults)


def test_a_reward_is_the_weighted_sum_of_its_terms() -> None:
    weights = {"spice": 1.0, "rouge": 0.5, "bleu:Bleu_2": 2.0, "length": -0.01, "repetition": -0.1}
    text = ",".join(f"{name}={weight:g}" for name, weight in weights.items())
    result = score(ITEMS, ["spice", "rouge", "bleu"], reward=text, pipeline=Words(), empty="zero")
    spice, rouge, bleu, reward = result.runs
    assert [s.name for s in reward.scores] == ["Reward", *(f"Reward_{name}" for name in weights)]
    assert reward.signature["reward"] == text
    assert reward.signature["spice text"] == "as written"
    second = next(s.each for s in bleu.scores if s.name == "Bleu_2")
    lengths, repeated = (4, 6, 0), (0, 2, 0)
    for place, value in enumerate(reward.scores[0].each):
        own = (spice.scores[0].each[place], rouge.scores[0].each[place], second[place], lengths[place], repeated[place])
        assert value == pytest.approx(math.fsum(w * v for w, v in zip(weights.values(), own, strict=True)))


def test_the_credit_of_a_reward_is_the_mixture_of_its_terms_credits() -> None:
    reward = make_reward("spice=1,length=-.01,repetition=-.1", resources(Words()))
    corpus = Corpus(ITEMS)
    statistics = reward.collect(corpus)
    for value, found in zip(reward.total(statistics)[0].each, reward.credit(corpus, statistics), strict=True):
        assert math.fsum(word.credit for word in found.words) == pytest.approx(value, abs=1e-12)
    second = reward.credit(corpus, statistics)[1]
    assert [part.words for part in second.parts if part.kind == "repetition"] == [("a",), ("man",)]
    rouge = make_reward("rouge=1", resources(Words()))
    with pytest.raises(InputError, match="reward: rouge does not divide"):
        rouge.credit(corpus, rouge.collect(corpus))


def test_terms_of_drafts() -> None:
    reward = make_reward("added-right=1,removed-wrong=1,added-wrong=-1,removed-right=-1", resources(Words()))
    drafts = Corpus((Item(1, "a dog a cat", ("a dog", "a bird")), Item(2, "a dog", ("a dog",))))
    better = Corpus((Item(1, "a dog a bird", ("a dog", "a bird")), Item(2, "a cat", ("a dog",))))
    statistics = reward.compare(better, drafts)
    assert [one.values for one in statistics] == [(1, 1, 0, 0), (0, 0, 1, 1)]
    assert reward.total(statistics)[0].each == (2, -2)
    with pytest.raises(InputError, match="added-right, removed-wrong, added-wrong, removed-right compare"):
        reward.collect(better)


def test_cider_in_a_reward_takes_the_weights_of_the_corpus() -> None:
    items = (*ITEMS[:2], Item(4, "a dog", ("a dog runs",)))
    result = score(items, ["cider-d"], reward="cider-d=.5", pipeline=Words())
    assert result.runs[1].scores[0].each == pytest.approx([0.5 * value for value in result.runs[0].scores[0].each])
