"""Several systems on the same items: every system's items in one order, or what keeps them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.items import Item

__all__ = ["in_order_of"]

_SHOWN = 5


def in_order_of(
    first: Sequence[Item], second: Sequence[Item], *, names: tuple[str, str] = ("the first", "the second")
) -> tuple[Item, ...]:
    """Return the second system's items in the order of the first's.

    Args:
        first: a system's items; ids differ.
        second: another's, for the same ids with the same references, in any order.
        names: what the systems are called in an error.

    Raises:
        InputError: ids or references differ; the message names the first five.

    Example:
        >>> from spicegraph_scorer.core.items import Item
        >>> a, b = Item(1, "a dog", ("dog",)), Item(2, "a cat", ("cat",))
        >>> in_order_of([a, b], [b, a]) == (a, b)
        True
    """
    one, other = names
    by_id = {item.id: item for item in second}
    known = {item.id for item in first}
    faults = [f"item {item.id!r} is only in {one}" for item in first if item.id not in by_id]
    faults += [f"item {item.id!r} is only in {other}" for item in second if item.id not in known]
    faults += [
        f"item {item.id!r} has other references in {other}"
        for item in first
        if item.id in by_id and by_id[item.id].references != item.references
    ]
    if faults:
        more = f"\n... and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise InputError(f"{one} and {other} can't be compared:\n" + "\n".join(faults[:_SHOWN]) + more)
    return tuple(by_id[item.id] for item in first)
