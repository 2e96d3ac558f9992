"""The rules of Penn Treebank tokenization, in the order that decides ties, their patterns, and what they write.

A rule has a pattern of the token and one of what must follow. Of several that fit, the one that sees furthest wins
(what must follow counts), of two that see as far the earlier: so a rule excludes no other. Loops are possessive
(``++``) or bounded, so that no text takes long. The word lists were found by probing CoreNLP 3.4.1 and 3.6.0 with some
580,000 word forms.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from spicegraph_parser.spice.parse import word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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


def always(written: str) -> Callable[[str], str]:
    """Return what writes the same, whatever matched."""
    return lambda _matched: written


DOTS: Final = always("...")

# The insides of regular expression classes (``[...]``) by name, and the forms of an apostrophe. ``mark``: what may
# stand inside a word but not begin it (combining marks, soft and typographic hyphens); ``symbol``: all that is a token
# of its own when no other rule takes it; ``apostrophe``: what counts as one in every contraction; ``quote``: what else
# counts as one in ``don't`` and in names.
Alphabet: TypeAlias = "Mapping[str, str]"

ASCII: Final[Alphabet] = {
    "capital": "A-Z",
    "letter": "A-Za-z",
    "digit": "0-9",
    "mark": "",
    "space": r" \t\n\r\f\x0b\x00",
    "symbol": r"!-/:-@\[-`{-~",
    "apostrophe": "(?:'|&apos;)",
    "quote": "`",
}


@cache
def basic_plane() -> Alphabet:
    """Return the classes for text with characters outside ASCII; astral characters are in none of them."""
    # Java knows no script that Unicode got later: of the 55,501 letters, marks, digits and signs here, its tokenizer
    # takes some 2,800 rare ones in another way.
    categories = [unicodedata.category(chr(code)) for code in range(0x10000)]

    def of(*starts: str, but: str = "") -> str:
        """Write the characters of some categories as the ranges of a class."""
        belong = (category.startswith(starts) and chr(code) not in but for code, category in enumerate(categories))
        runs: list[str] = []
        for inside, run in groupby(enumerate(belong), key=itemgetter(1)):
            if inside:
                codes = [code for code, _ in run]
                runs.append(f"{re.escape(chr(codes[0]))}-{re.escape(chr(codes[-1]))}")
        return "".join(runs)

    return {
        "capital": of("Lu"),
        "letter": of("L"),
        "digit": of("Nd"),
        "mark": of("M") + "\u00ad\u2010\u2011",
        "space": ASCII["space"] + "\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff",
        "symbol": of("P", "S", "No", but="\u2010\u2011\u2012"),
        "apostrophe": "(?:['\u2019\u0092]|&apos;)",
        "quote": "[`\u2018\u201b\u0091]",
    }


Variant = Literal["coco", "spice"]  # CoreNLP 3.4.1, as the COCO toolkit runs it; 3.6, as SPICE 1.0 runs it


class Patterns:
    """The patterns that several rules share, over one alphabet."""

    def __init__(self, alphabet: Alphabet, variant: Variant) -> None:
        self.space = f"[{alphabet['space']}]"
        self.symbol = f"[{alphabet['symbol']}]"
        self.letter = f"[{alphabet['letter']}]"
        self.capital = f"[{alphabet['capital']}]"
        self.digit = f"[{alphabet['digit']}]"
        self.inside = f"[{alphabet['letter']}{alphabet['digit']}{alphabet['mark']}]"
        self.run = f"[{alphabet['letter']}{alphabet['digit']}]{self.inside}*+"
        self.word = rf"{self.letter}{self.inside}*+(?:[.!?]{self.letter}{self.inside}*+)*+"
        self.number = rf"{self.digit}++(?:[.,:]{self.digit}++)*"
        self.phone = f"{self.digit}{{3,4}}[- ]?{self.digit}{{3,5}}"
        self.apostrophe = alphabet["apostrophe"]
        self.quote = f"(?:{alphabet['apostrophe']}|{alphabet['quote']})"
        self.name = f"[dDlLoO]{self.quote}{self.inside}{{2,}}+"
        self.write_name = straight if variant == "spice" else None


def any_case(words: Iterable[str]) -> str:
    """Return a pattern of any of the words in any case, the longer first."""
    return "(?i:" + "|".join(sorted(words, key=_longest_first)) + ")"


def capitalised(words: Iterable[str]) -> str:
    """Return a pattern of any of the words, capitalised or in capitals, the longer first."""
    forms = (f"{word.capitalize()}|{word.upper()}" for word in sorted(words, key=_longest_first))
    return "(?:" + "|".join(forms) + ")"


def _longest_first(word: str) -> tuple[int, str]:
    return -len(word), word


MOST_NAMES: Final = 20  # that an address may have; no text is searched further for an address's end
ACRONYM: Final = r"[A-Za-z]\.(?:[A-Za-z]\.)++"
ADDRESS: Final = r'[^\s"<>|(){}]+[^\s"<>|.!?(){},-]'
HOST: Final = (
    rf"(?:[^\s!\"$'(),\-./0-9A-Z:;<=>?@\[\\\]^_`{{|}}]{{1,63}}\.){{1,{MOST_NAMES}}}(?i:com|net|org|edu)"
    rf"(?:/{ADDRESS})?"
)
MAIL: Final = r'[A-Za-z0-9][^\s"<>|(){}]{0,99}@(?:[^\s"<>|().{}]++\.)*[^\s"<>|().{}]++'
WEB: Final = rf"(?i:www)\.(?:[^\s\"<>|.(){{}},]{{1,63}}\.){{1,{MOST_NAMES}}}[A-Za-z]{{2,4}}(?:/{ADDRESS})?"
_NAME: Final = "[A-Za-z][A-Za-z0-9_:.-]*+"
_VALUE: Final = r"(?:\"[^\"\n]{0,999}\"|'[^'\n]{0,999}')"
TAG: Final = rf"<(?:{_NAME}(?:[ \t]++{_NAME}(?:={_VALUE})?)*[ \t]*/?|/{_NAME}[ \t]*|[!?][A-Za-z-][^>\r\n]{{0,999}})>"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a token looks like, what must follow it, and how it is written."""

    token: str
    ahead: str = ""
    write: Callable[[str], str] | None = None  # the token's text from what matched; ``None``: as it stands


def word_rules(alphabet: Alphabet, variant: Variant) -> tuple[Rule, ...]:
    """Return the rules for tokens that begin with a letter or digit, in the order that decides ties."""
    a = Patterns(alphabet, variant)
    d = a.digit
    return (
        # The first halves of words that fall into two tokens: cannot, gonna, don't, dog's, we've.
        Rule("(?i:can(?=not)|(?:gon|wan)(?=na)|got(?=ta)|(?:lem|gim)(?=me))", "(?i:not|na|ta|me)"),
        Rule("[A-Za-z]*[A-MO-Za-mo-z]", f"(?i:n{a.quote}t)"),
        Rule(f"(?i:n{a.quote}t)", "", straight),
        Rule(a.word, f"{a.apostrophe}(?i:[sdm]|re|ve|ll)"),
        # Words; a word that begins with a letter runs on over a lone period or mark: ``toilet.next``.
        Rule(a.word, "", cleaned),
        Rule(a.run, "", cleaned),
        # Web and mail addresses, and currencies named by capitals (``US$``).
        Rule(f"(?i:https?)://{ADDRESS}"),
        Rule(WEB),
        Rule(HOST),
        Rule(f"{MAIL}(?:>|&gt;)?"),
        Rule(r"[A-Z]+\$"),
        *_abbreviations(a),
        *_joined_words(a),
        # Numbers with their separators, fractions, telephone numbers, names of files.
        Rule(a.number),
        Rule(f"(?:{d}{{1,4}}[- ])?{d}{{1,4}}/{d}{{1,4}}", "", joined),
        Rule(f"(?:{d}{{2,4}}[- ])?{d}{{2,4}}[- ]{a.phone}", "", joined),
        Rule(rf"(?:{a.run}\.){{1,{MOST_NAMES}}}{any_case(EXTENSIONS)}", r"[\s.,!?]"),
        # Names that end in an exclamation mark; only the later version knows them.
        *((Rule("(?i:yahoo|jeopardy|e)!"),) if variant == "spice" else ()),
    )


def sign_rules(alphabet: Alphabet, variant: Variant) -> tuple[Rule, ...]:
    """Return the rules for all other tokens, in the order that decides ties."""
    a = Patterns(alphabet, variant)
    d = a.digit
    country = rf"\+{{1,2}}(?:{d}{{2,4}}[- ])?{d}{{2,4}}[- ]"
    # Runs of periods; the later version takes all of them, but leaves one as an end before a word.
    ellipses: tuple[Rule, ...] = (
        Rule(r"\.{3,}|\. \. \.(?: \.)*", "", DOTS),
        Rule(r"\.{3,}(?=\.)|\. \. \.(?: \.)*(?= )", rf" ?\.\s++{a.letter}", DOTS),
        Rule("={2,}"),
    )
    if variant == "coco":
        ellipses = (Rule(r"\.{3,5}|\. \. \.(?: \.){0,2}", "", DOTS),)
    return (
        # The second halves of words that fall into two tokens.
        Rule(f"{a.apostrophe}(?i:[sdm]|re|ve|ll)", "[^A-Za-z]", straight),
        Rule("'[tT]", "(?i:is|was)"),
        *_quotes(a),
        # Numbers with a sign, a leading separator or a bracket in front.
        Rule(rf"[-+]?[.,:]?{a.number}"),
        Rule(rf"(?:\({d}{{2,3}}\) ?|{country}){a.phone}", "", bracketed),
        Rule(f"[{''.join(FRACTIONS)}]", "", FRACTIONS.__getitem__),
        # Names and topics of a network, mail addresses in brackets, tags.
        Rule(f"@[A-Za-z_][A-Za-z_0-9]*|#{a.letter}+"),
        Rule(f"(?:<|&lt;){MAIL}(?:>|&gt;)?"),
        Rule(TAG, "", joined),
        Rule(HOST),
        *ellipses,
        *_symbols(a),
    )


def _abbreviations(a: Patterns) -> tuple[Rule, ...]:
    """Words that keep the period after them, and those that share it with the end of the sentence."""
    ending = rf"(?:{any_case(ENDING)}|{capitalised(ENDING_CAPITALISED)}|(?i:ph\.d))"
    starter = rf"{a.space}++(?:{capitalised(STARTERS)}|M[rRsS]\.|{TAG}){a.space}"
    return (
        Rule(r"[A-Za-z]\."),
        Rule("[A-Za-z]", rf"\.{starter}"),
        Rule(ACRONYM),
        Rule(r"[A-Za-z](?:\.[A-Za-z])++", rf"\.{starter}", with_period),
        Rule(rf"{any_case(TITLES)}\."),
        Rule(rf"{any_case(BEFORE_NUMBER)}\.", rf"\s?{a.digit}"),
        Rule(ending, rf"\.{a.space}(?:{a.space}|{a.capital}|{TAG})", with_period),
        Rule(rf"{ending}\.", "(?s:..)"),
        Rule(ending, r"\.", with_period),
    )


def _joined_words(a: Patterns) -> tuple[Rule, ...]:
    """What joins words: hyphens, slashes, apostrophes, ampersands."""
    q = a.apostrophe
    hyphenated = f"(?:{a.name}|{a.run})(?:[-_](?:{a.name}|{a.run}))+"
    hyphenated_late = f"[A-Za-z0-9][A-Za-z0-9.,]*+(?:-(?:{ACRONYM}|[A-Za-z0-9]++))+"
    slash = "[A-Za-z0-9]++(?:-[A-Za-z]++)*"
    company = "[A-Z]++(?:(?:&amp;|[&+])[A-Z]++)+"
    return (
        Rule(hyphenated, "", cleaned),
        Rule(hyphenated_late),
        Rule(a.name, "", a.write_name),
        Rule(f"[nA-HJ-XZ]{a.quote}{a.letter}{{2,}}", "", a.write_name),
        Rule(f"{a.letter}+[aeiouyAEIOUY]{a.quote}[aeiouA-Z]{a.letter}*", "", a.write_name),
        Rule(f"(?i:c{q}est|c{q}mon|e{q}er|s{q}mores)", "", a.write_name),
        Rule(f"[dDlLjJ]{q}|(?i:ol|dunkin|somethin){q}", "", a.write_name),
        Rule(f"[yY]{q}", a.letter, a.write_name),
        Rule(rf"{slash}(?:\\?/{slash}){{1,2}}"),
        Rule(company, "", decoded),
        Rule(rf"(?:{a.word}|{a.run}|{hyphenated}|{hyphenated_late}|{a.name}|{company})\.", "[,;:]", cleaned),
        Rule(r"[cC]\+\+|[cCfF]#"),
    )


def _quotes(a: Patterns) -> tuple[Rule, ...]:
    """Quotes become PTB's opening and closing forms; some words begin with an apostrophe."""
    q = a.apostrophe
    return (
        Rule(f"{q}(?i:em|till?|cause|n{q}|n)|{q}{a.digit}0[sS]", "", a.write_name),
        Rule(f"{q}{a.digit}{{2}}", a.space),
        Rule("''"),
        Rule("'", r"[A-Za-z]\S", always("`")),
        Rule(f"{q}(?i:[sdm]|re|ve|ll)", "", straight),
        Rule("'|&apos;", "", straight),
        Rule('"|&quot;', "[A-Za-z0-9$]", always("``")),
        Rule('"|&quot;', "", always("''")),
        Rule(f"[{''.join(map(chr, QUOTES))}]{{1,2}}", "", straight),
    )


def _symbols(a: Patterns) -> tuple[Rule, ...]:
    """Smileys, runs of signs, signs."""
    return (
        Rule(r"[<>]?[:;=][-o*']?[()\[\]{@\\|dpDOP]", "[^A-Za-z0-9]", bracketed),
        Rule("[-^x=~<>']_[-^x=~<>']"),
        Rule(r"\([-^x=~<>'][-_.]?[-^x=~<>']\)", "", bracketed),
        Rule("…|\x85", "", DOTS),
        Rule("-{2,4}|[–—\x96\x97]|&[mn]dash;", "", always("--")),
        Rule(r"-{5,}|(?:\\\*)+|[!?]+|#+|\*+|_+|@+|<<|>>"),
        Rule("-(?i:[lr][rcs]b)-"),
        Rule(r"[()\[\]{}]", "", BRACKETS.__getitem__),
        Rule(r"\$"),
        Rule(f"[{''.join(CURRENCIES)}]", "", CURRENCIES.__getitem__),
        Rule("(?i:&(?:amp|lt|gt);)", "", decoded),
        Rule("&#[0-9]+;"),
        Rule("(?i:&nbsp;)", "", always("")),
        Rule(a.symbol),
    )
