"""Categories of the user's own: read from TOML, counted like SPICE's, from the same matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer import score_tuples
from spicegraph_scorer.spice.categories import CATEGORIES
from spicegraph_scorer.spice.counts import Counts
from spicegraph_scorer.spice.custom import read_categories, recount

if TYPE_CHECKING:
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


def test_the_same_match_is_counted_anew(path: Path) -> None:
    path.write_text(TOML)
    result = score_tuples(
        [["dog"], ["sofa"], ["sofa", "wooden"], ["man", "dog", "ride"], ["table"]],
        [[["dog"], ["polar bear"], ["couch"], ["sofa"], ["man", "horse", "ride"]]],
    )
    (counted,) = recount([result.statistic], read_categories(str(path)))
    assert counted.match is result.statistic.match
    assert counted.counts["Animal"] == Counts(1, 1, 2)
    assert counted.counts["Seat"] == Counts(1, 1, 1)
    assert counted.counts["Material"] == Counts(0, 1, 0)
    assert counted.counts["Motion"] == Counts(0, 1, 1)
    assert {name: counted.counts[name] for name in result.statistic.counts} == dict(result.statistic.counts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no category"),
        ("[", "is not TOML"),
        ("a = 1", "category 'a'"),
        ("[Color]\nkind = 'object'\nwords = ['a']", "category 'Color': the name is taken"),
        ("[A]\nkind = 'verb'\nwords = ['a']", "category 'A': kind is 'verb', expected one of object"),
        ("[A]\nkind = 'object'\nwords = []", "category 'A': words is empty"),
        ("[A]\nkind = 'object'\nwords = ['a', ' ']", "category 'A': words is empty, or one"),
        ("[A]\nkind = 'object'", "category 'A': Object missing required field `words`"),
        ("[A]\nkind = 'object'\nword = ['a']\nwords = ['b']", "unknown field `word`"),
        ("[A]\nkind = 'object'\nwords = [1]", "category 'A': Expected `str`, got `int`"),
    ],
)
def test_a_fault_names_file_and_category(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_categories(str(path))
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


def test_a_missing_file_is_an_input_error(path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_categories(str(path))
