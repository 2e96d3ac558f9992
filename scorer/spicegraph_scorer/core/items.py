"""The unit of scoring: one candidate caption and the references it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from spicegraph_scorer.core.tokens import TokenizedItems, tokenize_items

__all__ = ["Corpus", "Item", "ItemId"]

ItemId = int | str
"""An image's identifier, as its file gives it: COCO uses integers, other sets use strings."""


@dataclass(frozen=True, slots=True)
class Item:
    """One candidate caption with the references of its image.

    ``references`` holds at least one caption; their order is kept, because SPICE merges references in order.
    """

    id: ItemId
    candidate: str
    references: tuple[str, ...]


class CheckedItems(tuple[Item, ...]):
    """Items that can be scored together: there are some, their ids differ, and their captions are sound."""

    __slots__ = ()


@dataclass(frozen=True)
class Corpus:
    """Items that are scored together, and what every n-gram metric derives from them once."""

    items: tuple[Item, ...]

    @cached_property
    def tokens(self) -> TokenizedItems:
        """The items after COCO's PTB tokenization, in the order of ``items``."""
        return tokenize_items(self.items)
