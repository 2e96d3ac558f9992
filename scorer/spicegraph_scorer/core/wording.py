"""Numbers in sentences for people."""

from __future__ import annotations


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
