"""The errors of spicegraph: one base, and one child per kind of cause; and how their messages write numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final


class SpicegraphError(Exception):
    """Base of every error that spicegraph raises on purpose; its text is meant for the user."""


class InputError(SpicegraphError):
    """The input is wrong: the message names the item, the field and the reason."""


class LimitError(SpicegraphError):
    """The input is larger than the limit that the message states."""


class DataError(SpicegraphError):
    """A pipeline or data file is missing or damaged; the message says how to get it."""


@contextmanager
def reading(path: object, what: str) -> Iterator[None]:
    """Turn errors from reading a file of numpy arrays into a DataError."""
    import zipfile  # noqa: PLC0415 (only who reads arrays needs it)

    try:
        yield
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is something else"
        raise DataError(f"{path}: cannot be read as {what} ({reason})") from error


@contextmanager
def needs_extra(name: str, purpose: str) -> Iterator[None]:
    """Import an extra's packages in this context; errors say how to install missing ones.

    Raises:
        DataError: a package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        message = f"{purpose} needs {error.name}, which is not installed: pip install 'spicegraph[{name}]'"
        raise DataError(message) from error


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    tuple: "a list",
    dict: "an object",
}
_SHOWN_FAULTS: Final = 5


def kind_of(value: object) -> str:
    """Return the type of a value, as JSON names it.

    Example:
        >>> kind_of(None), kind_of({}), kind_of(b""), kind_of(float("nan"))
        ('null', 'an object', 'bytes', 'NaN (a missing value)')
    """
    if isinstance(value, float) and value != value:  # noqa: PLR0124 (NaN alone differs from itself)
        return "NaN (a missing value)"
    return _KINDS.get(type(value), type(value).__name__)


def expect(value: object, types: type | tuple[type, ...], name: str, expected: str) -> None:
    """Refuse a value of another type, which a program without type checks can give.

    Raises:
        InputError: the message names the argument, what it is and what was expected.

    Example:
        >>> expect(3, str, "reward", "a string")
        Traceback (most recent call last):
            ...
        spicegraph_parser.errors.InputError: reward: is a number, expected a string
    """
    if not isinstance(value, types):
        raise InputError(f"{name}: is {kind_of(value)}, expected {expected}")


def expect_list(value: object, name: str, expected: str = "a list") -> None:
    """Refuse a single string, a mapping or a value that is not iterable.

    Raises:
        InputError: the message names the argument, what it is and what was expected.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name}: is {kind_of(value)}, expected {expected}")


def expect_texts(values: Iterable[object], name: str) -> list[str]:
    """Return the strings of a collection that has an order.

    Raises:
        InputError: it is a single string or no such collection, or holds something else; the first five are named.

    Example:
        >>> expect_texts(["a dog", None], "captions")
        Traceback (most recent call last):
            ...
        spicegraph_parser.errors.InputError: captions[1]: is null, expected a string
    """
    expect_list(values, name, "a list of strings")
    given = list(values)
    faults = [
        f"{name}[{index}]: is {kind_of(t)}, expected a string"
        for index, t in enumerate(given)
        if not isinstance(t, str)
    ]
    if faults:
        more = [f"... and {len(faults) - _SHOWN_FAULTS} more"] if len(faults) > _SHOWN_FAULTS else []
        raise InputError("\n".join([*faults[:_SHOWN_FAULTS], *more]))
    return [text for text in given if isinstance(text, str)]


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural but for 1; ``plural`` is it where it is not made with an s.

    Example:
        >>> counted(1, "item"), counted(20000, "item"), counted(0, "entry", "entries")
        ('1 item', '20,000 items', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
