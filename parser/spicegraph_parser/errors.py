"""The errors of spicegraph: one base, and one child per kind of cause; and how their messages write numbers."""

from __future__ import annotations


class SpicegraphError(Exception):
    """Base of every error that spicegraph raises on purpose; its text is meant for the user."""


class InputError(SpicegraphError):
    """The input is wrong: the message names the item, the field and the reason."""


class LimitError(SpicegraphError):
    """The input is larger than the limit that the message states."""


class DataError(SpicegraphError):
    """A pipeline or data file is missing or damaged; the message says how to get it."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, which is in the plural but for 1.

    Args:
        number: how many, from 0.
        noun: in the singular.
        plural: where it is not made with an s.

    Example:
        >>> counted(1, "item"), counted(20000, "item"), counted(0, "entry", "entries")
        ('1 item', '20,000 items', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
