"""The errors of spicegraph: one base, and one child per kind of cause."""

from __future__ import annotations


class SpicegraphError(Exception):
    """Base of every error that spicegraph raises on purpose; its text is meant for the user."""


class InputError(SpicegraphError):
    """The input is wrong: the message names the item, the field and the reason."""


class LimitError(SpicegraphError):
    """The input is larger than the limit that the message states."""


class DataError(SpicegraphError):
    """A pipeline or data file is missing or damaged; the message says how to get it."""
