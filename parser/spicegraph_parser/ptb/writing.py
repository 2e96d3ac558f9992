"""How the Penn Treebank writes what stands in the text: brackets, quotes, fractions, entities."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BRACKETS",
    "CURRENCIES",
    "FRACTIONS",
    "QUOTES",
    "bracketed",
    "cleaned",
    "closed",
    "dashes",
    "decoded",
    "dots",
    "joined",
    "nothing",
    "opened",
    "opened_single",
    "straight",
    "with_period",
]

BRACKETS: Final = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
FRACTIONS: Final = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3"}
CURRENCIES: Final = {"€": "$", "¤": "$", "\x80": "$", "£": "#", "¢": "cents"}
ENTITIES: Final = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
QUOTES: Final = {
    ord(mark): written
    for marks, written in (
        ("“«\x93", "``"),
        ("”»\x94", "''"),
        ("`‘‛‹\x91", "`"),
        ("’›\x92", "'"),
        ("‚", "‚"),
        ("„", "„"),
        ("‟", "‟"),
    )
    for mark in marks
}
"""Typographic quotes; the low ones stay as they are. Java takes the C1 codes for Windows' quotes."""


def with_period(text: str) -> str:
    """Give an abbreviation the period that it shares with the end of its sentence."""
    return text + "."


def straight(text: str) -> str:
    """Write typographic quotes in ASCII."""
    return text.replace("&apos;", "'").translate(QUOTES)


def cleaned(text: str) -> str:
    """Drop soft hyphens."""
    return text.replace("\u00ad", "")


def decoded(text: str) -> str:
    """Write the characters that HTML entities stand for."""
    for entity, character in ENTITIES.items():
        text = text.replace(entity, character).replace(entity.upper(), character)
    return text


def joined(text: str) -> str:
    """Keep a telephone number, a fraction or a tag in one piece by no-break spaces."""
    return text.replace(" ", "\u00a0").replace("\t", "\u00a0")


def bracketed(text: str) -> str:
    """Write the round brackets of a smiley or telephone number in words."""
    return joined(text).replace("(", "-LRB-").replace(")", "-RRB-")


def opened(_: str) -> str:
    """Write an opening double quote."""
    return "``"


def closed(_: str) -> str:
    """Write a closing double quote."""
    return "''"


def opened_single(_: str) -> str:
    """Write an opening single quote."""
    return "`"


def dots(_: str) -> str:
    """Write an ellipsis."""
    return "..."


def dashes(_: str) -> str:
    """Write a dash."""
    return "--"


def nothing(_: str) -> str:
    """Drop what matched."""
    return ""
