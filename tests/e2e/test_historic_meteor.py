"""METEOR of 2005, as examples/historic has it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_historic.meteor import Meteor2005, NltkSynset, bundled_wordnet, nltk_wordnet
from spicegraph_parser.errors import DataError
from spicegraph_scorer import Corpus, Item

if TYPE_CHECKING:
    from spicegraph_scorer import Metric

pytestmark = pytest.mark.slow

CORPUS = Corpus(
    (
        Item(7, "A man rides a brown horse.", ("A man on a horse.", "A man rides a brown horse")),
        Item("x", "Two dogs", ("Cats sleeping", "Three people")),
        Item(3, "", ("Nothing to see",)),
    )
)


def test_the_synonyms_of_2005_are_read_once() -> None:
    assert bundled_wordnet() is bundled_wordnet()


FOX = "the quick brown fox jumped over the lazy dog"


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        # The values of a published notebook on captioning metrics, which nltk printed with its own WordNet.
        (FOX, 0.9993141289437586),
        ("the brown quick fox jumped over lazy the dog", 0.7647462277091907),
        ("the fast brown fox jumps over the lazy dogs", 0.9993141289437586),
    ],
)
def test_the_published_values_of_2005_come_out(candidate: str, expected: float) -> None:
    assert Meteor2005().score_tokens([(candidate.split(), [FOX.split()])]) == [pytest.approx(expected, abs=1e-12)]


def test_meteor_2005_is_a_metric() -> None:
    metric: Metric[float] = Meteor2005(bundled_wordnet())
    statistics = metric.collect(CORPUS)
    (result,) = metric.total(statistics)
    assert (metric.name, result.name) == ("meteor-2005", "METEOR_2005")
    assert result.each == pytest.approx((1 - 0.5 / 6**3, 0.0, 0.0))
    assert result.value == pytest.approx(sum(statistics) / 3)
    assert metric.total([])[0].value is None
    assert "without parts of speech" in metric.signature()["synonyms"]


def test_another_wordnet_may_answer() -> None:
    class Nothing:
        def synsets(self, word: str) -> list[NltkSynset]:
            return []

    fast = FOX.replace("quick", "fast").split()
    with_synonyms, without = (Meteor2005(w).score_tokens([(fast, [FOX.split()])]) for w in (None, Nothing()))
    assert without < with_synonyms
    assert Meteor2005(Nothing()).signature()["synonyms"] == "Nothing"


def test_a_missing_corpus_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    with pytest.raises(DataError, match=r"python -m nltk\.downloader wordnet"):
        nltk_wordnet()


def test_missing_nltk_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk.translate.meteor_score", None)
    with pytest.raises(DataError, match=r"pip install spicegraph$"):
        Meteor2005().score_tokens([(["a"], [["a"]])])
