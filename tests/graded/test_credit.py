"""Credit: scores divided among words."""

import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded.spice_g.credit import Shares, earned_by, of_maximum
from spicegraph_parser import Fact, load_pipeline
from spicegraph_parser.errors import InputError
from spicegraph_scorer import METRICS, Corpus, Credit, Item, credit, score
from spicegraph_scorer.core.credit import CreditPart, WordCredit, Words
from spicegraph_scorer.core.facts import FactCache, FunctionSource
from spicegraph_scorer.core.ngrams import frequencies_of
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.metrics.cider import Cider
from spicegraph_scorer.metrics.spice.match import tuple_credits
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import resources

ROOT = Path(__file__).parents[2]
COCO = ROOT / "examples" / "coco"
CREDITED = tuple(
    name
    for name, entry in METRICS.items()
    if entry.kind.credits and str(entry.place).startswith(("spicegraph_scorer.", "spicegraph_graded.spice_g."))
)


def items_of(name: str, references: str) -> tuple[Item, ...]:
    return read_items(str(COCO / name), references=[str(COCO / references)]).items


def golden() -> tuple[Item, ...]:
    with gzip.open(ROOT / "tests" / "golden" / "spice" / "spice_scores.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(Item(number, row["candidate"], tuple(row["references"])) for number, row in enumerate(rows))


def test_which_metrics_divide_their_scores() -> None:
    assert CREDITED == ("spice", "spice-exact", "spice-g", "cider", "cider-plain", "cider-r", "spider")


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize(
    "items",
    [items_of("human.json", "captions_without_first.json") + golden(), items_of("retrieval.json", "captions.json")],
    ids=["human and goldens", "retrieval"],
)
def test_credits_add_up_to_the_score_of_every_item(items: tuple[Item, ...]) -> None:
    metrics = make_metrics(CREDITED, resources(FactCache(load_pipeline())))
    corpus = Corpus(items)
    for name, metric in metrics.items():
        statistics = metric.collect(corpus)
        for item, found, value in zip(
            items, metric.credit(corpus, statistics), metric.total(statistics)[0].each, strict=True
        ):
            assert found.score == pytest.approx(value, abs=1e-12), name
            assert math.fsum(word.credit for word in found.words) == pytest.approx(value, abs=1e-9), (name, item)
            assert math.fsum(part.credit for part in found.parts) == pytest.approx(value, abs=1e-9), (name, item)
            assert [item.candidate[word.start : word.end] for word in found.words] == [w.text for w in found.words]


OBJECTS = (
    (
        "A man is sitting on top of a red tennis court, while Holding a bat up",
        ("man", "top", "tennis", "court", "bat"),
        ["A man", "is sitting on top of a red tennis court", "while Holding a bat up"],
    ),
    ("dogs, cats and a dog's toy", ("dog", "cat", "toy"), ["dogs", "cats", "and a dog's toy"]),
    (
        "Red couch and the dog lying on it with a cup of tea",
        (),
        ["Red couch", "and the dog lying", "on it with a cup of tea"],
    ),
    ("on it with a", (), ["on it with a"]),
    ("...", ("dog",), ["..."]),
    ("", (), []),
)


@pytest.mark.parametrize(("text", "objects", "phrases"), OBJECTS)
def test_phrases_end_with_objects_or_else_with_content_words(
    text: str, objects: tuple[str, ...], phrases: list[str]
) -> None:
    words = Words(text)
    parts = [(CreditPart("object", (one,), 1.0), (words.find((one,)),)) for one in objects]
    parts.append((CreditPart("relation", ("sit",), -0.25), (words.find(("sit",)),)))
    assert [text[a:b] for (a, b), _ in words.credit(1.0, parts).of_phrases()] == phrases


@given(st.text("ab of,.", max_size=40), st.lists(st.sampled_from(["a", "b", "ab", "of"]), max_size=3))
def test_phrases_divide_all_words(text: str, objects: list[str]) -> None:
    words = Words(text)
    parts = [(CreditPart("object", (one,), float(n)), (words.find((one,)),)) for n, one in enumerate(objects)]
    found = words.credit(1.0, parts)
    assert sum(found.phrases) == len(found.words)
    assert math.fsum(value for _, value in found.of_phrases()) == pytest.approx(
        math.fsum(word.credit for word in found.words)
    )


def test_without_phrases_each_word_is_one() -> None:
    made = WordCredit("a", 0, 1, 0.5), WordCredit("dog", 2, 5, -0.25)
    assert Credit(0.25, made, ()).of_phrases() == [((0, 1), 0.5), ((2, 5), -0.25)]
    assert Credit(0.0, (), ()).of_phrases() == []


ODD = (
    Item(1, "$ 5 !!", ("it costs $ 5", "five dollars")),
    Item(2, "No hat, no hat; a hat", ("a man without a hat", "a hat")),
    Item(3, "🦒", ("a giraffe 🦒",)),
    Item(4, "", ("a dog",)),
    Item(5, "on dog a the red of couch in dog dog the of of in", ("a dog on a red couch",)),
    Item(6, "black-and-white 2 1/2 cups", ("a black and white cup", "2 1/2 cups")),
    Item(7, "İstanbul'da a dog's toy", ("a dog's toy in İstanbul",)),
    Item(8, "dog", ("dog",)),
    Item(9, "purple", ("a dog",)),
)


@pytest.mark.model
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_odd_captions_are_divided_too() -> None:
    for run in score(ODD, CREDITED, credit=True, empty="zero").runs:
        for value, found in zip(run.scores[0].each, run.credits, strict=True):
            assert math.fsum(word.credit for word in found.words) == pytest.approx(value, abs=1e-9), run.name
    salad = credit(ODD[4:5])[0]
    assert {part.kind for part in salad.parts} >= {"object", "word", "alignment", "order"}
    assert all(part.credit < 0 for part in salad.parts if part.kind == "order")


def shapley(players: Sequence[bool], reference: int) -> list[float]:
    """Return the Shapley values of tuples, by definition: the mean over all orders of what each adds."""
    values = [0.0] * len(players)
    orders = list(permutations(range(len(players))))
    for order in orders:
        matched = 0
        for before, player in enumerate(order):
            after = matched + players[player]
            values[player] += 2 * after / (before + 1 + reference) - (
                2 * matched / (before + reference) if before else 0
            )
            matched = after
    return [value / len(orders) for value in values]


@pytest.mark.parametrize(("right", "wrong", "reference"), [(1, 0, 3), (2, 3, 4), (1, 5, 1), (4, 1, 12), (3, 3, 1)])
def test_spice_s_closed_form_is_the_shapley_value(right: int, wrong: int, reference: int) -> None:
    truth = shapley([True] * right + [False] * wrong, reference)
    matched, unmatched = tuple_credits(right, right + wrong, reference)
    assert [matched] * right + [unmatched] * wrong == pytest.approx(truth, abs=1e-12)


def test_no_match_no_credit() -> None:
    assert tuple_credits(0, 4, 5) == (0, 0) == tuple_credits(0, 0, 0)


def test_the_closed_form_of_a_maximum_is_the_shapley_value() -> None:
    offers = np.random.default_rng(0).random((5, 3)).round(1)
    truth = np.zeros_like(offers)
    orders = list(permutations(range(5)))
    for order in orders:
        best = np.zeros(3)
        for player in order:
            truth[player] += np.maximum(best, offers[player]) - best
            best = np.maximum(best, offers[player])
    np.testing.assert_allclose(of_maximum(offers), truth / len(orders), atol=1e-12)


def grown(item: Item, metric: Cider, ngrams: dict[tuple[str, ...], float], length: float) -> float:
    """Return CIDEr-D by its definition of a candidate whose n-grams and length have grown to a share of theirs."""
    total = 0.0
    assert metric.frequencies is not None
    images = {tuple(text.split()): count for text, count in metric.frequencies.ngrams()}
    weight = {g: math.log(metric.frequencies.images) - math.log(max(1, images.get(g, 0))) for g in ngrams}
    for reference in item.references:
        theirs = reference.split()
        penalty = math.exp(-((length - (len(theirs) - 1)) ** 2) / 72)
        for order in range(1, 5):
            counts: dict[tuple[str, ...], float] = {}
            for start in range(len(theirs) - order + 1):
                gram = tuple(theirs[start : start + order])
                counts[gram] = counts.get(gram, 0) + 1
            idf = {g: math.log(metric.frequencies.images) - math.log(max(1, images.get(g, 0))) for g in counts}
            norm = math.sqrt(sum((counts[g] * idf[g]) ** 2 for g in counts))
            own = [g for g in ngrams if len(g) == order]
            mine = math.sqrt(sum(ngrams[g] * weight[g] ** 2 for g in own))
            product = sum(ngrams[g] * min(1, counts.get(g, 0)) * counts.get(g, 0) * weight[g] ** 2 for g in own)
            total += penalty * product / (mine * norm) if mine * norm else 0.0
    return 10 / 4 * total / len(item.references)


def test_cider_s_closed_form_is_the_aumann_shapley_value() -> None:
    """Against the definition: the integral, along the way from nothing to the caption, of what each n-gram adds."""
    item = Item(1, "a brown dog runs far", ("a dog runs on grass now", "the brown dog"))
    others = (Item(2, "a", ("a cat on grass",)), Item(3, "a", ("a man runs",)), Item(4, "a", ("the end of a day",)))
    metric = Cider("CIDEr-D", frequencies=frequencies_of(Corpus((item, *others))))
    corpus = Corpus((item,))
    statistics = metric.collect(corpus)
    found = metric.credit(corpus, statistics)[0]
    words = item.candidate.split()
    ngrams = [tuple(words[s : s + n]) for n in range(1, 5) for s in range(len(words) - n + 1)]
    assert grown(item, metric, dict.fromkeys(ngrams, 1.0), 4) == pytest.approx(found.score, abs=1e-12)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    truth = dict.fromkeys([*ngrams, ()], 0.0)
    step = 1e-5
    for node, weight in zip((1 + nodes) / 2, weights / 2, strict=True):
        share = node**2  # the integrand has a singularity of 1 / sqrt(share) at 0
        for gram in truth:
            sides = []
            for sign in (1, -1):
                sizes = dict.fromkeys(ngrams, share)
                if gram:
                    sizes[gram] *= 1 + sign * step
                sides.append(grown(item, metric, sizes, 4 * share * (1 + (0 if gram else sign * step))))
            truth[gram] += weight * 2 * node * (sides[0] - sides[1]) / (2 * step * share)
    for part in found.parts:
        assert part.credit == pytest.approx(truth[part.words], abs=1e-6), part


class Written:
    """Facts that are written down: ``dog; dog brown; dog cat chase``."""

    signature = "written"

    def facts(self, texts: Sequence[str]) -> list[tuple[Fact, ...]]:
        return [
            tuple(
                Fact(tuple(said.split()), "objects", tuple((n,) for n in range(len(said.split()))))
                for said in text.split("; ")
            )
            for text in texts
        ]


def test_graded_credit_is_the_aumann_shapley_value() -> None:
    """Against the definition: the integral, along the way from nothing to all players, of what each adds to F1."""
    weights, powers = np.array([2.0, 1.0, 3.0, 1.0]), np.array([1.8, 0.9, 0.0, 0.4])
    found = np.array([0.3, 0.0, 0.0, 0.1])

    def precision(sizes: np.ndarray) -> float:
        return float(((powers * sizes).sum() / (weights * sizes).sum()) ** (4 / 3))

    def f1(sizes: np.ndarray) -> float:
        mine, recall = precision(sizes), float((found * sizes).sum())
        return 2 * mine * recall / (mine + recall)

    step = 1e-6
    growth = np.array([(precision(1 + step * row) - precision(1 - step * row)) / (2 * step) for row in np.eye(4)])
    nothing = Shares(None, None, np.zeros(0), np.zeros(0))
    ours = earned_by(Shares(precision(np.ones(4)), float(found.sum()), growth, found), nothing)
    nodes, quadrature = np.polynomial.legendre.leggauss(60)
    truth = np.zeros(4)
    for share, weight in zip((1 + nodes) / 2, quadrature / 2, strict=True):
        for player, row in enumerate(np.eye(4)):
            sides = [f1(share * (1 + sign * step * row)) for sign in (1, -1)]
            truth[player] += weight * (sides[0] - sides[1]) / (2 * step * share)
    np.testing.assert_allclose(ours, truth, atol=1e-6)
    assert ours.sum() == pytest.approx(f1(np.ones(4)), abs=1e-9)
    assert ours[2] < 0 < ours[0]


def test_what_is_not_supported_costs() -> None:
    (metric,) = make_metrics(["spice-g"], resources(Written())).values()
    metric = replace(metric, texts=False)
    references = ("dog; dog brown; cat; dog cat chase", "hat; dog")
    corpus = Corpus((Item(1, "puppy; puppy red; oven; puppy cat chase", references),))
    statistics = metric.collect(corpus)
    (found,) = metric.credit(corpus, statistics)
    value = metric.total(statistics)[0].each[0]
    assert math.fsum(part.credit for part in found.parts) == pytest.approx(value, abs=1e-12)
    by_part = {(part.kind, part.words): part.credit for part in found.parts}
    assert by_part["object", ("oven",)] < 0 < by_part["object", ("puppy",)]
    assert by_part["attribute", ("puppy", "red")] < 0
    assert by_part["word", ("oven",)] < 0


@pytest.mark.model
def test_deleting_the_lowest_words_raises_the_score() -> None:
    """Without the facts of the word with the lowest credit, where that is negative, SPICE and SPICE-G are higher."""
    items = items_of("retrieval.json", "captions.json") + golden()[:300]
    facts = FactCache(load_pipeline())
    for name, metric in make_metrics(("spice", "spice-g"), resources(facts)).items():
        corpus = Corpus(items)
        credits_of = metric.credit(corpus, metric.collect(corpus))
        known, cases = dict(facts.known), []
        for item, found in zip(items, credits_of, strict=True):
            lowest = min(found.words, key=lambda word: word.credit)
            if lowest.credit < -1e-9:
                words = Words(item.candidate)
                number = words.spans.index((lowest.start, lowest.end))
                text = item.candidate[: lowest.start] + item.candidate[lowest.end :] + " " * len(cases)
                known[text] = tuple(
                    fact
                    for fact in facts.known[item.candidate]
                    if not any(number in words.find((w,)) for w in fact.words)
                )
                cases.append((replace(item, candidate=text), found.score))
        changed = replace(metric, source=FunctionSource.of_table(facts.signature, known))
        after = changed.total(changed.collect(Corpus(tuple(item for item, _ in cases))))[0].each
        rises = [value > before for value, (_, before) in zip(after, cases, strict=True)]
        assert len(rises) > 100
        assert sum(rises) / len(rises) >= 0.95, name


@pytest.mark.model
@pytest.mark.slow
def test_deleting_the_lowest_phrase_from_the_text_raises_the_score() -> None:
    """The text without the phrase of the lowest credit, parsed anew."""
    items = golden()
    for name, metric in make_metrics(("spice", "spice-g"), resources(FactCache(load_pipeline()))).items():
        corpus = Corpus(items)
        cases = []
        for item, found in zip(items, metric.credit(corpus, metric.collect(corpus)), strict=True):
            (start, end), value = min(found.of_phrases(), key=itemgetter(1), default=((0, 0), 0.0))
            if value < -1e-9:
                text = f"{item.candidate[:start]} {item.candidate[end:]}"
                cases.append((replace(item, candidate=" ".join(text.split())), found.score))
        after = metric.total(metric.collect(Corpus(tuple(item for item, _ in cases))))[0].each
        rises = [(value or 0) > before for value, (_, before) in zip(after, cases, strict=True)]
        assert len(rises) > 100
        assert sum(rises) / len(rises) >= 0.95, name


@pytest.mark.model
def test_deleting_the_lowest_word_from_the_text_raises_cider() -> None:
    """With document frequencies of the references of all images, as a training loop has them."""
    items = golden()
    metric = Cider("CIDEr-D").weighted(frequencies_of(Corpus(items)))
    corpus = Corpus(items)
    cases = []
    for item, found in zip(items, metric.credit(corpus, metric.collect(corpus)), strict=True):
        lowest = min(found.words, key=lambda word: word.credit)
        if lowest.credit < 0:
            text = item.candidate[: lowest.start] + item.candidate[lowest.end :]
            cases.append((replace(item, candidate=text), found.score))
    after = metric.total(metric.collect(Corpus(tuple(item for item, _ in cases))))[0].each
    rises = [value > before for value, (_, before) in zip(after, cases, strict=True)]
    assert len(rises) > 1000
    assert sum(rises) / len(rises) >= 0.95


def test_tokens_of_any_tokenizer_share_the_score() -> None:
    found = Words("A hotdog, 🦒 big").credit(
        1.0, [(CreditPart("object", ("hotdog",), 1.0), ((1,),)), (CreditPart("length", (), -0.3), ())]
    )
    assert [word.text for word in found.words] == ["A", "hotdog", "big"]
    offsets = [(0, 0), (0, 1), (1, 5), (5, 8), (8, 9), (9, 12)]
    tokens = found.of_tokens(offsets)
    assert math.fsum(tokens) == pytest.approx(0.7)
    assert tokens[2] == tokens[3] == pytest.approx(0.45 - 0.1 / 6)
    assert tokens[0] == pytest.approx(-0.1 / 6)  # "big" has no token: all have its credit


def test_mixed_credit_is_that_of_the_mixed_score() -> None:
    one, other = (
        Credit(value, (WordCredit("a", 0, 1, value),), (CreditPart("word", ("a",), value),), (1,))
        for value in (0.5, 2.0)
    )
    mixed = Credit.mixed([(1.0, one), (-0.1, other)])
    assert mixed.score == pytest.approx(0.3) == pytest.approx(mixed.words[0].credit)
    assert mixed.phrases == (1,)
    assert [part.credit for part in mixed.parts] == pytest.approx([0.5, -0.2])


def test_what_cannot_be_divided_is_refused() -> None:
    item = Item(1, "a dog", ("a dog",))
    with pytest.raises(InputError, match="bleu does not divide its score among words; spice, "):
        credit([item], "bleu")
    with pytest.warns(UserWarning, match="CIDEr is undefined"), pytest.raises(InputError, match="single image"):
        credit([item], "cider-d")
    (metric,) = make_metrics(["spice-g"], resources(Written())).values()
    corpus = Corpus((Item(1, "dog", ("dog",)),))
    with pytest.raises(ValueError, match="no match"):
        metric.credit(corpus, [metric.compact(found) for found in metric.collect(corpus)])
    (metric,) = make_metrics(["spice"], resources(Written())).values()
    with pytest.raises(ValueError, match="no match"):
        metric.credit(corpus, [metric.compact(found) for found in metric.collect(corpus)])
