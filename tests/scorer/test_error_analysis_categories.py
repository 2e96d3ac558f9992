"""Categories of the user's own: read from TOML, counted like SPICE's, from the same matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import score, score_tuples
from spicegraph_scorer.core.categories import Counts
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics.spice.categories import (
    CATEGORIES,
    CategoryDefinition,
    categories_digest,
    make_categories,
    read_categories,
)
from spicegraph_scorer.scoring import compare_systems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

TOML = """
[Animal]
kind = "object"
words = ["dog", "Polar  bear"]

[Seat]
kind = "object"
words = ["couch"]
synonyms = true

[Material]
kind = "attribute"
words = ["wooden"]

[Motion]
kind = "relation"
words = ["ride"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "categories.toml"


def test_spices_own_come_first(path: Path) -> None:
    path.write_text(TOML)
    assert list(read_categories(str(path))) == [*CATEGORIES, "Animal", "Seat", "Material", "Motion"]


def test_they_are_counted_like_spices(path: Path) -> None:
    path.write_text(TOML)
    candidate = [["dog"], ["sofa"], ["sofa", "wooden"], ["man", "dog", "ride"], ["table"]]
    references = [[["dog"], ["polar bear"], ["couch"], ["sofa"], ["man", "horse", "ride"]]]
    result = score_tuples(candidate, references, categories=read_categories(str(path)))
    counts = result.statistic.counts
    assert counts["Animal"] == Counts(1, 1, 2)
    assert counts["Seat"] == Counts(1, 1, 1)
    assert counts["Material"] == Counts(0, 1, 0)
    assert counts["Motion"] == Counts(0, 1, 1)
    assert result.scores["Animal"] == {"f": pytest.approx(2 / 3), "pr": 1.0, "re": 0.5, "tp": 1, "fp": 0, "fn": 1}
    plain = score_tuples(candidate, references)
    assert {name: counts[name] for name in plain.statistic.counts} == dict(plain.statistic.counts)


SUBTREES = """
[Animal]
subtree = "animal"

[Seat]
subtree = ["seat.n.03"]
words = ["windowsill"]

[Going]
kind = "relation"
subtree = "travel.v.01"

[Large]
kind = "attribute"
subtree = "large"
"""


def test_a_subtree_holds_every_kind_of_its_root_in_the_common_sense(path: Path) -> None:
    path.write_text(SUBTREES)
    categories = read_categories(str(path))
    result = score_tuples(
        [
            ["puppy"],
            ["polar bears"],
            ["chair"],
            ["windowsill"],
            ["hot dog"],
            ["chair", "huge"],
            ["man", "bike", "ride"],
        ],
        [[["dog"], ["couch"], ["table"], ["chair", "large"], ["man", "road", "walk"], ["man", "road", "on"]]],
        categories=categories,
    )
    counts = result.statistic.counts
    assert counts["Animal"] == Counts(0, 2, 1)
    assert counts["Seat"] == Counts(1, 2, 2)
    assert counts["Going"] == Counts(0, 1, 1)
    assert counts["Large"] == Counts(0, 1, 1)


def test_the_signature_names_them_however_they_are_written(path: Path) -> None:
    path.write_text('[Pet]\nwords = ["Dog", "cat", "dog"]')
    same = make_categories([CategoryDefinition("Pet", words=("cat", "dog"))])
    other = make_categories([CategoryDefinition("Pet", words=("cat",))])
    below = make_categories([CategoryDefinition("Pet", words=("cat",), subtree=("dog",))])
    digests = [categories_digest(c) for c in (read_categories(str(path)), same, other, below)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    assert categories_digest(CATEGORIES) is None


class Words:
    signature = "words-1"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            yield tuple(Fact((word,), "objects", ()) for word in text.split())


def test_score_and_compare_count_them_and_say_so() -> None:
    items = [Item(1, "dog cat", ("dog",)), Item(2, "tree", ("cat",)), Item(3, "tree", ("tree",))]
    pets = make_categories([CategoryDefinition("Pet", words=("cat", "dog"))])
    result = score(items, ("spice", "spice-exact"), pipeline=Words(), data=MetricData(categories=pets)).to_dict()
    assert result["corpus"]["SPICE_categories"]["Pet"]["micro"]["tp"] == 1
    assert result["corpus"]["SPICE-exact_categories"]["Pet"]["items"] == 2
    assert result["signature"]["metrics"]["spice"]["categories"] == categories_digest(pets)
    assert "Pet" in result["items"][2]["scores"]["SPICE_categories"]
    plain = score(items, pipeline=Words())
    assert "categories" not in plain.runs[0].signature
    assert plain.corpus["SPICE"] == result["corpus"]["SPICE"]
    found = compare_systems(
        items, items, pipeline=Words(), data=MetricData(categories=pets), resampling=Resampling(20)
    ).to_dict()
    assert found["scores"]["SPICE_Pet"]["difference"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no category"),
        ("[", "is not TOML"),
        ("a = 1", "category 'a': is not a table: expected [NAME]"),
        ("[Color]\nwords = ['a']", "category 'Color': name: is taken"),
        ("[' A']\nwords = ['a']", "category ' A': name: is not 1 to 60 printable"),
        ("[A]\nkind = 'verb'\nwords = ['a']", "category 'A': kind: is 'verb', expected one of object"),
        ("[A]\nkind = 'object'", "category 'A': words: is empty, and there is no subtree"),
        ("[A]\nwords = ['a', ' ']", "category 'A': words[1]: is empty, or longer"),
        (
            "[A]\nword = ['a']\nwords = ['b']",
            "category 'A': there is no key 'word'; the keys are kind, words, subtree, synonyms",
        ),
        ("[A]\nwords = [1]", "category 'A': words: expected a list of strings"),
        ("[A]\nkind = 1\nwords = ['a']", "category 'A': kind: expected a string"),
        ("[A]\nsynonyms = 'yes'\nwords = ['a']", "category 'A': synonyms: expected true or false"),
        ("[A]\nsubtree = [1]", "category 'A': subtree: expected a string or a list of strings"),
        ("[A]\nsubtree = 'xyzzy'", "category 'A': subtree[0]: WordNet 3.0 has no synset 'xyzzy'"),
        ("[A]\nkind = 'relation'\nsubtree = 'dog.n.99'", "has no synset 'dog.n.99'"),
    ],
)
def test_a_fault_names_file_and_category(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_categories(str(path))
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


def test_all_faults_are_told_at_once(path: Path) -> None:
    path.write_text("[A]\nwords = []\n[Color]\nwords = ['']\n[B]\nwords = 3\n")
    with pytest.raises(InputError) as raised:
        read_categories(str(path))
    assert len(str(raised.value).splitlines()) == 4
    assert all(line.startswith(f"{path}: category ") for line in str(raised.value).splitlines())


def test_numbers_and_lengths_are_bounded() -> None:
    with pytest.raises(InputError, match="51 categories, at most 50"):
        make_categories([CategoryDefinition(f"c{n}", words=("a",)) for n in range(51)])
    with pytest.raises(InputError, match="10001 entries, at most 10000"):
        make_categories([CategoryDefinition("A", words=("a",) * 10_001)])
    with pytest.raises(InputError, match="name: is taken"):
        make_categories([CategoryDefinition("A", words=("a",)), CategoryDefinition("A", words=("b",))])


def test_a_missing_file_is_an_input_error(path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_categories(str(path))
