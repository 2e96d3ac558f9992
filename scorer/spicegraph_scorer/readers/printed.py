"""Lists and objects that stand in texts, as JSON, Python and numpy print them."""

from __future__ import annotations

import ast
import re
from typing import Final

import msgspec

_QUOTED: Final = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_STRINGS: Final = re.compile(_QUOTED, re.DOTALL)
_ARRAY: Final = re.compile(r"(?:np\.|numpy\.)?array\((\[.*\])(?:,\s*dtype=[^()]*)?\)", re.DOTALL)
# Strings with spaces alone between them, which Python would take for one string.
_SPACED: Final = re.compile(rf"\[\s*(?:(?:{_QUOTED})\s*+)++\]", re.DOTALL)
_BEGINS: Final = re.compile(r"""\s*(?:[\[(]\s*['"]|(?:np\.|numpy\.)?array\(\[)""")
_CLOSED: Final = {"[": "]", "{": "}", "(": ")", "a": ")", "n": ")"}


def may_be_printed(text: str) -> bool:
    """Say whether a text begins and ends as a list, an object or an array does."""
    start = text[:1]
    if start.isspace():
        text = text.strip()
        start = text[:1]
    return start in _CLOSED and text.rstrip().endswith(_CLOSED[start])


def is_printed_list(text: str) -> bool:
    """Say whether a text seems to print a list of several texts, or one that cannot be read."""
    if not may_be_printed(text) or not _BEGINS.match(text):
        return False
    parts = parse_printed(text)
    return not isinstance(parts, list) or len(parts) != 1


def parse_printed(text: str) -> object:
    """Return the list or object that a text prints, or the text itself."""
    inner = text.strip()
    if array := _ARRAY.fullmatch(inner):
        inner = array[1]
    if inner[:1] not in {"[", "{"} and not _BEGINS.match(inner):
        return text
    try:
        return msgspec.json.decode(inner)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        if _SPACED.fullmatch(inner):
            return [ast.literal_eval(quoted) for quoted in _STRINGS.findall(inner)]
        value: object = ast.literal_eval(inner)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return list(value) if isinstance(value, tuple) else value
