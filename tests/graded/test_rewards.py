"""Rewards: mixtures of scores and of terms of the text."""

import importlib.util
import json
import math
import pickle
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spicegraph_graded import RewardModel, advantages_of
from spicegraph_graded.rewards.reward import PRESETS, Term, make_reward, parse_reward, reward_metric
from spicegraph_graded.rewards.trainers import (
    caption_of,
    completion_of,
    compute_score,
    compute_scores,
    self_critical_reward,
    trl_reward,
)
from spicegraph_graded.spice_g.vectors import load_table, load_vectors
from spicegraph_parser import Fact
from spicegraph_parser.errors import InputError
from spicegraph_scorer import METRICS, Corpus, Item, score
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import tokenize_texts
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
    assert parse_reward("cider-d=.1", METRICS) == parse_reward("cider=.1", METRICS)  # two words for one metric
    assert parse_reward(" spice-g = 1 , cider=.1,length=-.01 ", METRICS) == (
        Term(1.0, "spice-g"),
        Term(0.1, "cider"),
        Term(-0.01, "length"),
    )


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["has no term"]),
        ("spice", ["term 1: spice has no weight"]),
        ("spice=1,length=-2e9", ["term 2: length has the weight -2e+09; weights are at most 1e+09"]),
        ("spice=1,spice=2", ["term 2: spice appears twice"]),
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
    result = score(
        ITEMS, ["spice", "rouge", "bleu"], more={"reward": reward_metric(text)}, pipeline=Words(), empty="zero"
    )
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


def test_word_order_is_a_term_of_the_text() -> None:
    table = load_vectors()
    assert table.order is not None
    items = (Item(1, "a dog on a couch", ("a dog",)), Item(2, "couch a on dog the", ("a dog",)), Item(3, "dog", ("a",)))
    reward = make_reward("word-order=-1", resources(Words()))
    statistics = reward.collect(Corpus(items))
    junctions = list(table.order.junctions(items[1].candidate.split()))
    assert [one.values[0] for one in statistics] == pytest.approx([0, 1 - sum(junctions) / len(junctions), 0])
    assert statistics[1].values[0] > 0.5
    for value, found in zip(reward.total(statistics)[0].each, reward.credit(Corpus(items), statistics), strict=True):
        assert sum(word.credit for word in found.words) == pytest.approx(value)
    assert reward.signature()["word-order"] == table.signature


def test_a_generic_caption_is_less_specific_than_every_reference() -> None:
    references = ("A girl flies a kite on a beach", "a child with a kite in the sand")
    texts = ("a child at the beach", "a group of people", "a xqzzj is on a xqzzj", "", "sand on a beach")
    items = tuple(Item(n, text, references) for n, text in enumerate(texts))
    reward = make_reward("generic=-1", resources(Words()))
    statistics = reward.collect(Corpus(items))
    idf = load_table().idf()
    words = load_table().words
    rarity = {word: float(idf[words.index(word)]) for word in ("child", "beach", "group", "kite")}
    assert rarity["kite"] > rarity["beach"] > rarity["child"] > rarity["group"]
    assert [one.values[0] for one in statistics] == pytest.approx(
        [1 - rarity["beach"] / rarity["kite"], 1 - rarity["group"] / rarity["kite"], 1, 1, 0], abs=1e-6
    )
    assert make_reward("generic=1", resources(Words())).collect(Corpus((Item(1, "a dog", ()),)))[0].values == (0,)
    for value, found in zip(reward.total(statistics)[0].each, reward.credit(Corpus(items), statistics), strict=True):
        assert sum(word.credit for word in found.words) == pytest.approx(value if found.words else 0)


def test_a_preset_stands_for_its_terms() -> None:
    assert parse_reward(" guarded ", METRICS) == parse_reward(PRESETS["guarded"], METRICS)
    assert {term.name for term in parse_reward("guarded", METRICS)} == {
        "spice-g",
        "fluency",
        "word-order",
        "generic",
        "guard",
        "statement",
    }
    broken = "a dog on a couch with a"
    reward = make_reward("guarded", resources(Words()))
    corpus = Corpus((Item(1, "a dog on a couch", ("a dog on a sofa",)), Item(2, broken, ("a dog on a sofa",))))
    whole, worse = reward.total(reward.collect(corpus))[0].each
    assert worse < 0 < whole  # type: ignore[operator]
    assert reward.signature()["reward"] == PRESETS["guarded"].replace("=.", "=0.").replace("-.", "-0.")


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
    result = score(items, ["cider"], more={"reward": reward_metric("cider=.5")}, pipeline=Words())
    assert result.runs[1].scores[0].each == pytest.approx([0.5 * value for value in result.runs[0].scores[0].each])


REFERENCES = {"a": ["a dog", "the dog runs"], "b": ["a man walks", "a woman"], 3: ["a bird sings"]}


def model(reward: str = "spice=1,length=-.01") -> RewardModel:
    return RewardModel(reward, REFERENCES, pipeline=Words())


def test_the_model_gives_what_score_gives() -> None:
    images, captions = ["a", "b", "a", 3], ["a dog", "a cat", "a dog runs fast", ""]
    text = "spice=1,cider=.1,length=-.01"
    items = [
        Item(n, caption, tuple(REFERENCES[image]))
        for n, (image, caption) in enumerate(zip(images, captions, strict=True))
    ]
    frequencies = DocumentFrequencies.from_references([tokenize_texts(texts) for texts in REFERENCES.values()])
    run = score(
        items, ["spice"], more={"reward": reward_metric(text)}, pipeline=Words(), empty="zero", frequencies=frequencies
    ).runs[1]
    mine = model(text)
    assert mine.rewards(images, captions) == list(run.scores[0].each)
    assert mine.signature() == run.signature
    for value, found in zip(run.scores[0].each, mine.credit(images, captions), strict=True):
        assert math.fsum(word.credit for word in found.words) == pytest.approx(value, abs=1e-12)


def test_facts_of_candidates_are_not_kept() -> None:
    asked: list[str] = []

    class Asked(Words):
        def facts(self, texts):  # type: ignore[no-untyped-def]
            asked.extend(texts)
            return super().facts(texts)

    mine = RewardModel("spice=1,spice-exact=1", REFERENCES, pipeline=Asked())
    asked.clear()
    for _ in range(2):
        mine.rewards(["a", "a"], ["a cat", "a cat"])
    assert asked == ["a cat", "a cat"]  # once a call, whatever metrics there are


class Slow(Words):
    """The same, while other threads run."""

    def facts(self, texts):  # type: ignore[no-untyped-def]
        time.sleep(0.002)
        return super().facts(texts)


def test_threads_share_a_model() -> None:
    """As in verl, which asks for one caption after another in threads, and whose references come with them."""
    made = RewardModel("spice=1,length=-.01", {}, pipeline=Slow())

    def reward(number: int) -> float:
        made.add({number: [f"a dog w{number}"]})
        return made.rewards([number], [f"a dog x{number}"])[0]

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(reward, range(24)))) == 1


def test_a_model_can_be_sent_to_another_process() -> None:
    mine = model()
    assert pickle.loads(pickle.dumps(mine)).rewards(["a"], ["a dog"]) == mine.rewards(["a"], ["a dog"])


def test_advantages() -> None:
    rewards, groups = [1.0, 3.0, 2.0, 7.0], ["x", "x", "y", "x"]
    mean, deviation = 11 / 3, statistics.stdev([1, 3, 7])
    scaled = [(value - mean) / (deviation + 1e-4) for value in (1, 3, 7)]
    assert advantages_of(rewards, groups) == pytest.approx([*scaled[:2], 0, scaled[2]])
    plain = advantages_of(rewards, groups, scaled=False)
    assert plain == pytest.approx([1 - mean, 3 - mean, 0, 7 - mean])
    assert advantages_of(rewards, groups, baseline="others") == pytest.approx([1 - 5, 3 - 4, 0, 7 - 2])
    mine = model()
    images, captions = ["a", "a", "b"], ["a dog", "a cat", "a man"]
    assert mine.advantages(images, captions, baseline="others") == advantages_of(
        mine.rewards(images, captions), images, baseline="others"
    )


def test_rewards_over_the_greedy_caption() -> None:
    mine = model()
    greedy = {"a": "a cat", "b": "a man"}
    one, two = mine.rewards(["a", "b"], ["a dog", "a man"])
    base, same = mine.rewards(["a", "b"], list(greedy.values()))
    assert mine.over_greedy(["a", "b"], ["a dog", "a man"], greedy) == [one - base, two - same]
    with pytest.raises(InputError, match=r"1 image \(3\) without a greedy caption"):
        mine.over_greedy([3], ["a bird"], greedy)


def test_rewards_of_drafts() -> None:
    mine = model("added-right=1,removed-wrong=1,added-wrong=-1")
    assert mine.rewards(["a", "a"], ["a dog", "a cow"], drafts=["a cat", "a dog"]) == [2, -1]
    with pytest.raises(InputError, match="compare a candidate with a draft"):
        mine.rewards(["a"], ["a dog"])
    with pytest.raises(InputError, match="1 caption and 2 drafts don't pair up"):
        mine.rewards(["a"], ["a dog"], drafts=["", ""])


def test_faults_are_named() -> None:
    mine = model()
    with pytest.raises(InputError, match=r"2 images \('z', 9\) unknown"):
        mine.rewards(["a", "z", 9], ["", "", ""])
    with pytest.raises(InputError, match="1 image and 2 captions don't pair up"):
        mine.rewards(["a"], ["", ""])
    with pytest.raises(InputError, match=r"1 image \('q'\) without references"):
        mine.add({"q": [" "]})
    with pytest.raises(InputError, match="single image"):
        RewardModel("cider=1", {1: ["a dog"]}, pipeline=Words())


def test_trl_s_reward_function() -> None:
    reward = trl_reward(model())
    assert reward.__name__ == "spicegraph"
    expected = model().rewards(["a", "b"], ["a dog", "a man"])
    assert reward(prompts=["", ""], completions=["a dog", "a man"], image_id=["a", "b"]) == expected
    chats = [[{"role": "assistant", "content": text}] for text in ("a dog", "a man")]
    assert reward(prompts=["", ""], completions=chats, image_id=["a", "b"], completion_ids=[[1], [2]]) == expected
    with pytest.raises(InputError, match="no column 'image_id'"):
        reward(prompts=[""], completions=["a dog"])


@pytest.mark.parametrize(
    ("completion", "caption"),
    [
        ("a dog", "a dog"),
        ([{"role": "user", "content": "?"}, {"role": "assistant", "content": "a dog"}], "a dog"),
        (
            [{"role": "assistant", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "dog"}]}],
            "a dog",
        ),
        ([{"role": "assistant", "content": [{"type": "image"}]}], ""),
        ([{"role": "assistant", "content": None}], ""),
        ([], ""),
        ("", ""),
    ],
)
def test_the_caption_of_a_completion(completion: Any, caption: str) -> None:
    assert caption_of(completion) == caption


def test_a_string_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(InputError, match=r"1 image \('a'\) with a string in place of a list of references"):
        RewardModel("spice=1", {"a": "a dog"}, pipeline=Words())


def test_self_critical_rewards_have_a_row_for_each_sample() -> None:
    found = self_critical_reward(model(), ["a cat", "a man"], ["a dog", "a cat", "a man", "a"], ["a", "b"], length=5)
    assert found.shape == (4, 5)
    assert found[0, 0] > 0 == found[1, 0] == found[2, 4] > found[3, 2]
    with pytest.raises(InputError, match="3 samples and 2 greedy captions of 2 images"):
        self_critical_reward(model(), ["", ""], ["", "", ""], ["a", "b"], length=2)


@pytest.mark.parametrize(
    ("query", "prompt", "caption"),
    [
        ("<|im_start|>user\nDescribe.<|im_end|>a dog<|im_end|>", "<|im_start|>user\nDescribe.<|im_end|>", "a dog"),
        ("<s> Describe: a dog < 2 </s>", "Describe:", "a dog < 2"),
        ("Describe:", "Describe:", ""),
    ],
)
def test_openrlhf_s_queries_lose_prompt_and_special_tokens(query: str, prompt: str, caption: str) -> None:
    assert completion_of(query, prompt) == caption
    with pytest.raises(InputError, match="does not begin with its prompt 'another'"):
        completion_of(query, "another")


@pytest.mark.model
def test_verl_s_reward(tmp_path: Path) -> None:
    truth = ["a dog runs on grass", "a brown dog"]
    one = compute_score("coco", "a dog", truth, {"index": 3})
    assert one == compute_score("coco", "a dog", json.dumps(truth)) > 0
    assert compute_score("coco", "a dog", "a dog") == compute_score("coco", "a dog", ["a dog"])
    assert compute_score("coco", "a dog", '"a dog"') > 0
    assert compute_scores(["coco"] * 2, ["a dog", "a cat"], [truth] * 2, reward="spice=1") == [
        compute_score("", text, truth, reward="spice=1") for text in ("a dog", "a cat")
    ]
    table = tmp_path / "idf.npz"
    DocumentFrequencies.from_references([[("a", "dog")], [("a", "cat")]]).write(table)
    assert compute_score("", "a dog", truth, reward="cider=1", idf=str(table)) > 0
    with pytest.raises(InputError, match="single image"):
        compute_score("", "a dog", truth, reward="cider=1")


@pytest.mark.model
def test_the_example_learns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "rewards" / "toy_captioner.py"
    specification = importlib.util.spec_from_file_location("toy_captioner", path)
    assert specification is not None
    assert specification.loader is not None
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    for name, value in (("IMAGES", 6), ("STEPS", 15)):
        monkeypatch.setattr(example, name, value)
    example.main(example.COCO)
    curve = [
        float(line.split()[1])
        for line in capsys.readouterr().out.splitlines()
        if line[:3].strip().isdigit() and line[3] == " "
    ]
    assert len(curve) == 4
    assert curve[-1] > curve[0] + 0.1
