"""The unit of scoring: one candidate caption and the references it is held against."""

from __future__ import annotations

from dataclasses import dataclass

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
