"""What is wrong with an input, as values, and the one error that lists it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SHOWN_FAULTS", "Fault", "input_error", "shown"]

SHOWN_FAULTS = 50
"""How many faults an error spells out; the rest is counted."""

_SHOWN_CHARACTERS = 60


class Fault(NamedTuple):
    """One thing wrong: where (``line 3 (image_id 7)``), in which field, and why.

    ``item`` is empty where the fault is the file's, ``field`` where it is the whole item's.
    """

    item: str
    field: str
    reason: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.item, self.field) if part)
        return f"{place}: {self.reason}" if place else self.reason


def input_error(source: str, faults: Sequence[Fault], *, hint: str = "", count: int | None = None) -> InputError:
    """Return the error that lists faults: the first ``SHOWN_FAULTS`` of them, and a count of all.

    Args:
        source: what holds them.
        faults: at least one.
        hint: a line at the end.
        count: how many there are in all, where ``faults`` are only the first.

    Example:
        >>> str(input_error("a.json", [Fault("item 1 (image_id 7)", "caption", "is empty")]))
        'a.json: item 1 (image_id 7), caption: is empty'
    """
    count = len(faults) if count is None else count
    if count == 1:
        lines = [f"{source}: {faults[0]}"]
    else:
        listed = faults[:SHOWN_FAULTS]
        lines = [f"{source}: {count} faults", *(f"  {fault}" for fault in listed)]
        if count > len(listed):
            lines.append(f"  ... and {count - len(listed)} more")
    return InputError("\n".join([*lines, hint] if hint else lines))


def shown(value: object) -> str:
    r"""Return a value for a message: short, on one line, without characters that steer a terminal.

    Example:
        >>> shown("a\\x1b[2J" + "b" * 100)[:12]
        "'a\\\\x1b[2Jbbb"
    """
    cut = value[:_SHOWN_CHARACTERS] if isinstance(value, str) else value
    text = ascii(cut)
    if text != ascii(value) or len(text) > 2 * _SHOWN_CHARACTERS:
        return f"{text[: 2 * _SHOWN_CHARACTERS]}..."
    return text
