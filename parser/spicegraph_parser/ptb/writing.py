"""How the Penn Treebank writes what stands in the text, and which words keep the period that follows them.

The word lists were found by probing CoreNLP 3.4.1 and 3.6.0 with some 580,000 word forms.
"""

from __future__ import annotations

from typing import Final

from spicegraph_parser.parse import word_set

TITLES: Final = word_set(
    """adj adm adv alex assoc asst atty attys ave brig capt cf cie cmdr col comdr cpl dept det dr drs elec ens
    ft gen gov govs hon insp jos lieut lt maj messrs mfg mlle mme mr mrs ms msgr mt mtg natl pfc ph pres prof
    profs pvt rep reps rev sen sens sfc sgt spc st ste supt treas vs wm"""
)
"""Abbreviations that never end a sentence: their period is never doubled."""

ENDING: Final = word_set(
    """al ala apr ariz assn aug bancorp bhd bldg blvd bros calif co colo conn corp cos ct dak dec esq est
    etc ext feb fla fri ga inc ind intl jan jr jul jun kan kans ky ltd mar md mich minn mo mon mont neb nev
    nov oct okla penn plc pte ptes pty rd rt sep sept seq sq sr sys tel tenn thu thurs tue tues univ va vt wed
    wis wisc wyo"""
)
"""Abbreviations that may end a sentence: their period is doubled where the sentence ends."""

ENDING_CAPITALISED: Final = word_set("ark az del ill la mass miss ore pa tex wash")
"""Abbreviations like those in ``ENDING`` that are words as well: they count only with a capital."""

BEFORE_NUMBER: Final = word_set("no nos fig figs art ca op pp prop")
"""Abbreviations only in front of a number: ``fig. 3``."""

STARTERS: Final = word_set(
    """a about according additionally after an as at but earlier he her here however if in it last many more
    now once one other our she since so some such that the their then there these they this we what when while
    yet you"""
)
"""Words that show, when capitalised, that the initial or acronym in front of them ended a sentence."""

EXTENSIONS: Final = word_set(
    """bat bmp c class cgi cpp dll doc docx exe gif gz h htm html jar java jpeg jpg mov mp3 pdf php pl png ppt
    ps py sql tar txt wav x xml zip"""
)
"""Endings of file names: a name that begins with a digit keeps its period in front of them."""


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
