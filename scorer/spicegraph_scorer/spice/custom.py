"""Categories of the user's own, from a small TOML file.

.. code-block:: toml

    [Animal]
    kind = "object"            # object, attribute or relation
    words = ["dog", "cat", "polar bear"]
    synonyms = true            # also what shares a WordNet synset with one of them (default: false)
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_parser.lexicon import load_lexicon
from spicegraph_scorer.spice.categories import CATEGORIES, Category
from spicegraph_scorer.spice.counts import ALL, count_match

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.spice.metric import SpiceStatistic

__all__ = ["read_categories", "recount"]

_LENGTHS: Mapping[str, int] = {"object": 1, "attribute": 2, "relation": 3}


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    words: list[str]
    synonyms: bool = False


def read_categories(path: str) -> dict[str, Category]:
    """Read categories from a TOML file: SPICE's own, and behind them the file's.

    Raises:
        InputError: the file can't be read, or a category is faulty; the message names it.

    Example:
        >>> list(read_categories("categories.toml"))[-1]  # doctest: +SKIP
        'Animal'
    """
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from error
    if not tables:
        raise InputError(f"{path}: holds no category")
    return {**CATEGORIES, **{name: _category(path, name, table) for name, table in tables.items()}}


def _category(path: str, name: str, table: object) -> Category:
    place = f"{path}: category {name!a}"
    if name in (ALL, *CATEGORIES) or not name.isprintable():
        raise InputError(f"{place}: the name is taken or not printable")
    try:
        entry = msgspec.convert(table, _Entry)
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: {error}") from error
    if entry.kind not in _LENGTHS:
        raise InputError(f"{place}: kind is {entry.kind!a}, expected one of {', '.join(_LENGTHS)}")
    words = [" ".join(word.lower().split()) for word in entry.words]
    if not words or not all(words):
        raise InputError(f"{place}: words is empty, or one of the words is")
    keys: set[str | int] = set(words)
    if entry.synonyms:
        keys.update(*map(load_lexicon().synsets, words))
    return Category(_LENGTHS[entry.kind], keys=frozenset(keys))


def recount(statistics: Sequence[SpiceStatistic], categories: Mapping[str, Category]) -> tuple[SpiceStatistic, ...]:
    """Count the same matches by other categories; nothing is parsed or matched again."""
    return tuple(
        replace(statistic, counts=count_match(statistic.match, categories=categories)) for statistic in statistics
    )
