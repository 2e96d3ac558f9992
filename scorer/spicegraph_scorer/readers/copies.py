"""A usual mistake that no single item shows: the references themselves were given as candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.core.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.items import Item

__all__ = ["copies_note"]

_OTHERS = 0.1
_FEWEST = 5


def copies_note(source: str, items: Sequence[Item]) -> str | None:
    """Say that nine of ten candidates, or more, equal one of their own references; ``None``: fewer do.

    Spaces don't count. Of fewer than five items nothing is said: so few may well be right to the letter.

    Example:
        >>> from spicegraph_scorer.core.items import Item
        >>> copies_note("mine.json", [Item(n, "a dog", ("a dog", "the dog")) for n in range(5)])
        'mine.json: 5 of 5 candidates equal one of their own references; is it the right file?'
    """
    if len(items) < _FEWEST:
        return None
    others = 0
    for item in items:
        others += _plain(item.candidate) not in map(_plain, item.references)
        if others > _OTHERS * len(items):
            return None  # as nearly always, after a tenth of the items
    candidates = counted(len(items), "candidate")
    return f"{source}: {len(items) - others:,} of {candidates} equal one of their own references; is it the right file?"


def _plain(text: str) -> str:
    return " ".join(text.split())
