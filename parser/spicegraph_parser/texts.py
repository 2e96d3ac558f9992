"""What is read of a caption's text: single spaces, no lone surrogates, up to a length."""

from __future__ import annotations

import re

from spicegraph_parser.errors import LimitError

__all__ = ["MAX_CAPTION_LENGTH", "normalise", "without_surrogates"]

MAX_CAPTION_LENGTH = 100_000
"""Longest caption that is parsed, in characters."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def normalise(text: str, index: int = 0) -> str:
    """Return what a pipeline reads of a caption.

    Raises:
        LimitError: it is longer than ``MAX_CAPTION_LENGTH``; the message names it by its index.

    >>> normalise(" a  dog ")
    'a dog'
    """
    if len(text) > MAX_CAPTION_LENGTH:
        raise LimitError(f"caption {index} has {len(text)} characters, the limit is {MAX_CAPTION_LENGTH}")
    return " ".join(without_surrogates(text).split())


def without_surrogates(text: str) -> str:
    """Return the text with the same length and without lone surrogates, which UTF-8 cannot hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
