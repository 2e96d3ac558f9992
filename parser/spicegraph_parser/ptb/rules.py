"""The rules of Penn Treebank tokenization, in the order that decides ties, and the patterns that they share.

A rule has a pattern of the token itself and a pattern of what must follow it. Where several rules fit, the
one that sees furthest wins (what must follow counts), and of two that see as far the earlier one: so the
rules do not need exclusions of each other, and one can be read without the rest.

Loops are possessive (``++``) where nothing that follows could take back a character, and bounded where it
could: so no text takes long, whoever wrote it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

from spicegraph_parser.ptb import writing
from spicegraph_parser.ptb.writing import (
    BEFORE_NUMBER,
    ENDING,
    ENDING_CAPITALISED,
    EXTENSIONS,
    STARTERS,
    TITLES,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Insides of regular expression classes (``[...]``), and the forms of an apostrophe."""

    capital: str
    letter: str
    digit: str
    mark: str
    """What may stand inside a word but not begin it: combining marks, soft and typographic hyphens."""
    space: str
    symbol: str
    """Everything that is a token of its own when no other rule takes it."""
    apostrophe: str
    """What counts as one in every contraction."""
    quote: str
    """What else counts as one in ``don't`` and in names."""


ASCII: Final = Alphabet(
    capital="A-Z",
    letter="A-Za-z",
    digit="0-9",
    mark="",
    space=r" \t\n\r\f\x0b\x00",
    symbol=r"!-/:-@\[-`{-~",
    apostrophe="(?:'|&apos;)",
    quote="`",
)


def _ranges(belong: Iterable[bool]) -> str:
    """Write the characters whose place in ``belong`` holds as the ranges of a class."""
    runs: list[str] = []
    for inside, run in groupby(enumerate(belong), key=itemgetter(1)):
        if inside:
            codes = [code for code, _ in run]
            runs.append(f"{re.escape(chr(codes[0]))}-{re.escape(chr(codes[-1]))}")
    return "".join(runs)


@cache
def basic_plane() -> Alphabet:
    """Return the classes for text with characters outside ASCII; astral characters are in none of them.

    Java sees an astral character as two surrogates, which no rule of the tokenizer takes. It also knows no
    script that Unicode got later: of the 55,501 letters, marks, digits and signs here, its tokenizer takes
    some 2,800 rare ones in another way.
    """
    categories = [unicodedata.category(chr(code)) for code in range(0x10000)]

    def of(*starts: str, but: str = "") -> str:
        return _ranges(category.startswith(starts) and chr(code) not in but for code, category in enumerate(categories))

    return Alphabet(
        capital=of("Lu"),
        letter=of("L"),
        digit=of("Nd"),
        mark=of("M") + "\u00ad\u2010\u2011",
        space=ASCII.space + "\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff",
        symbol=of("P", "S", "No", but="\u2010\u2011\u2012"),
        apostrophe="(?:['\u2019\u0092]|&apos;)",
        quote="[`\u2018\u201b\u0091]",
    )


Variant = Literal["coco", "spice"]
"""``coco``: CoreNLP 3.4.1, as the COCO toolkit runs it; ``spice``: CoreNLP 3.6, as SPICE 1.0 runs it."""


class Patterns:
    """The patterns that several rules share, over one alphabet."""

    def __init__(self, alphabet: Alphabet, variant: Variant) -> None:
        """Build the patterns."""
        self.space = f"[{alphabet.space}]"
        self.symbol = f"[{alphabet.symbol}]"
        self.letter = f"[{alphabet.letter}]"
        self.capital = f"[{alphabet.capital}]"
        self.digit = f"[{alphabet.digit}]"
        self.inside = f"[{alphabet.letter}{alphabet.digit}{alphabet.mark}]"
        self.run = f"[{alphabet.letter}{alphabet.digit}]{self.inside}*+"
        self.word = rf"{self.letter}{self.inside}*+(?:[.!?]{self.letter}{self.inside}*+)*+"
        self.number = rf"{self.digit}++(?:[.,:]{self.digit}++)*"
        self.phone = f"{self.digit}{{3,4}}[- ]?{self.digit}{{3,5}}"
        self.apostrophe = alphabet.apostrophe
        self.quote = f"(?:{alphabet.apostrophe}|{alphabet.quote})"
        self.name = f"[dDlLoO]{self.quote}{self.inside}{{2,}}+"
        self.write_name = writing.straight if variant == "spice" else None


def any_case(words: Iterable[str]) -> str:
    """Return a pattern of any of the words in any case, the longer first."""
    return "(?i:" + "|".join(sorted(words, key=_longest_first)) + ")"


def capitalised(words: Iterable[str]) -> str:
    """Return a pattern of any of the words, capitalised or in capitals, the longer first."""
    forms = (f"{word.capitalize()}|{word.upper()}" for word in sorted(words, key=_longest_first))
    return "(?:" + "|".join(forms) + ")"


def _longest_first(word: str) -> tuple[int, str]:
    return -len(word), word


MOST_NAMES: Final = 20
"""So many names an address may have; no text is searched further for an address's end."""
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
    write: Callable[[str], str] | None = None
    """The token's text from the text that matched; ``None``: as it stands."""


def word_rules(alphabet: Alphabet, variant: Variant) -> tuple[Rule, ...]:
    """Return the rules for tokens that begin with a letter or digit, in the order that decides ties."""
    a = Patterns(alphabet, variant)
    return (
        *_contracted(a),
        *_words(a),
        *ADDRESSES,
        *_abbreviations(a),
        *_joined_words(a),
        *_numbers(a),
        *_names(variant),
    )


def sign_rules(alphabet: Alphabet, variant: Variant) -> tuple[Rule, ...]:
    """Return the rules for all other tokens, in the order that decides ties."""
    a = Patterns(alphabet, variant)
    return (*_clitics(a), *_quotes(a), *_signed_numbers(a), *_tags(a), *_ellipses(a, variant), *_symbols(a))


def _contracted(a: Patterns) -> tuple[Rule, ...]:
    """The first halves of words that fall into two tokens: cannot, gonna, don't, dog's, we've."""
    return (
        Rule("(?i:can(?=not)|(?:gon|wan)(?=na)|got(?=ta)|(?:lem|gim)(?=me))", "(?i:not|na|ta|me)"),
        Rule("[A-Za-z]*[A-MO-Za-mo-z]", f"(?i:n{a.quote}t)"),
        Rule(f"(?i:n{a.quote}t)", "", writing.straight),
        Rule(a.word, f"{a.apostrophe}(?i:[sdm]|re|ve|ll)"),
    )


def _clitics(a: Patterns) -> tuple[Rule, ...]:
    """Their second halves."""
    return (
        Rule(f"{a.apostrophe}(?i:[sdm]|re|ve|ll)", "[^A-Za-z]", writing.straight),
        Rule("'[tT]", "(?i:is|was)"),
    )


def _words(a: Patterns) -> tuple[Rule, ...]:
    """Words; a word that begins with a letter runs on over a lone period or mark: ``toilet.next``."""
    return (Rule(a.word, "", writing.cleaned), Rule(a.run, "", writing.cleaned))


def _abbreviations(a: Patterns) -> tuple[Rule, ...]:
    """Words that keep the period after them, and those that share it with the end of the sentence."""
    ending = rf"(?:{any_case(ENDING)}|{capitalised(ENDING_CAPITALISED)}|(?i:ph\.d))"
    starter = rf"{a.space}++(?:{capitalised(STARTERS)}|M[rRsS]\.|{TAG}){a.space}"
    return (
        Rule(r"[A-Za-z]\."),
        Rule("[A-Za-z]", rf"\.{starter}"),
        Rule(ACRONYM),
        Rule(r"[A-Za-z](?:\.[A-Za-z])++", rf"\.{starter}", writing.with_period),
        Rule(rf"{any_case(TITLES)}\."),
        Rule(rf"{any_case(BEFORE_NUMBER)}\.", rf"\s?{a.digit}"),
        Rule(ending, rf"\.{a.space}(?:{a.space}|{a.capital}|{TAG})", writing.with_period),
        Rule(rf"{ending}\.", "(?s:..)"),
        Rule(ending, r"\.", writing.with_period),
    )


def _joined_words(a: Patterns) -> tuple[Rule, ...]:
    """What joins words: hyphens, slashes, apostrophes, ampersands."""
    q = a.apostrophe
    hyphenated = f"(?:{a.name}|{a.run})(?:[-_](?:{a.name}|{a.run}))+"
    hyphenated_late = f"[A-Za-z0-9][A-Za-z0-9.,]*+(?:-(?:{ACRONYM}|[A-Za-z0-9]++))+"
    slash = "[A-Za-z0-9]++(?:-[A-Za-z]++)*"
    company = "[A-Z]++(?:(?:&amp;|[&+])[A-Z]++)+"
    return (
        Rule(hyphenated, "", writing.cleaned),
        Rule(hyphenated_late),
        Rule(a.name, "", a.write_name),
        Rule(f"[nA-HJ-XZ]{a.quote}{a.letter}{{2,}}", "", a.write_name),
        Rule(f"{a.letter}+[aeiouyAEIOUY]{a.quote}[aeiouA-Z]{a.letter}*", "", a.write_name),
        Rule(f"(?i:c{q}est|c{q}mon|e{q}er|s{q}mores)", "", a.write_name),
        Rule(f"[dDlLjJ]{q}|(?i:ol|dunkin|somethin){q}", "", a.write_name),
        Rule(f"[yY]{q}", a.letter, a.write_name),
        Rule(rf"{slash}(?:\\?/{slash}){{1,2}}"),
        Rule(company, "", writing.decoded),
        Rule(
            rf"(?:{a.word}|{a.run}|{hyphenated}|{hyphenated_late}|{a.name}|{company})\.",
            "[,;:]",
            writing.cleaned,
        ),
        Rule(r"[cC]\+\+|[cCfF]#"),
    )


def _numbers(a: Patterns) -> tuple[Rule, ...]:
    """Numbers with their separators, fractions, telephone numbers, names of files."""
    d = a.digit
    return (
        Rule(a.number),
        Rule(f"(?:{d}{{1,4}}[- ])?{d}{{1,4}}/{d}{{1,4}}", "", writing.joined),
        Rule(f"(?:{d}{{2,4}}[- ])?{d}{{2,4}}[- ]{a.phone}", "", writing.joined),
        Rule(rf"(?:{a.run}\.){{1,{MOST_NAMES}}}{any_case(EXTENSIONS)}", r"[\s.,!?]"),
    )


def _signed_numbers(a: Patterns) -> tuple[Rule, ...]:
    """The same with a sign, a leading separator or a bracket in front."""
    d = a.digit
    country = rf"\+{{1,2}}(?:{d}{{2,4}}[- ])?{d}{{2,4}}[- ]"
    return (
        Rule(rf"[-+]?[.,:]?{a.number}"),
        Rule(rf"(?:\({d}{{2,3}}\) ?|{country}){a.phone}", "", writing.bracketed),
        Rule(f"[{''.join(writing.FRACTIONS)}]", "", writing.FRACTIONS.__getitem__),
    )


def _quotes(a: Patterns) -> tuple[Rule, ...]:
    """Quotes become PTB's opening and closing forms; some words begin with an apostrophe."""
    q = a.apostrophe
    return (
        Rule(f"{q}(?i:em|till?|cause|n{q}|n)|{q}{a.digit}0[sS]", "", a.write_name),
        Rule(f"{q}{a.digit}{{2}}", a.space),
        Rule("''"),
        Rule("'", r"[A-Za-z]\S", writing.opened_single),
        Rule(f"{q}(?i:[sdm]|re|ve|ll)", "", writing.straight),
        Rule("'|&apos;", "", writing.straight),
        Rule('"|&quot;', "[A-Za-z0-9$]", writing.opened),
        Rule('"|&quot;', "", writing.closed),
        Rule(f"[{''.join(map(chr, writing.QUOTES))}]{{1,2}}", "", writing.straight),
    )


def _tags(a: Patterns) -> tuple[Rule, ...]:
    """Names and topics of a network, mail addresses in brackets, tags."""
    return (
        Rule(f"@[A-Za-z_][A-Za-z_0-9]*|#{a.letter}+"),
        Rule(f"(?:<|&lt;){MAIL}(?:>|&gt;)?"),
        Rule(TAG, "", writing.joined),
        Rule(HOST),
    )


def _names(variant: Variant) -> tuple[Rule, ...]:
    """Names that end in an exclamation mark; only the later version knows them."""
    return (Rule("(?i:yahoo|jeopardy|e)!"),) if variant == "spice" else ()


def _ellipses(a: Patterns, variant: Variant) -> tuple[Rule, ...]:
    """Runs of periods; the later version takes all of them, but leaves one as an end before a word."""
    if variant == "coco":
        return (Rule(r"\.{3,5}|\. \. \.(?: \.){0,2}", "", writing.dots),)
    return (
        Rule(r"\.{3,}|\. \. \.(?: \.)*", "", writing.dots),
        Rule(r"\.{3,}(?=\.)|\. \. \.(?: \.)*(?= )", rf" ?\.\s++{a.letter}", writing.dots),
        Rule("={2,}"),
    )


def _symbols(a: Patterns) -> tuple[Rule, ...]:
    """Smileys, runs of signs, signs."""
    return (
        Rule(r"[<>]?[:;=][-o*']?[()\[\]{@\\|dpDOP]", "[^A-Za-z0-9]", writing.bracketed),
        Rule("[-^x=~<>']_[-^x=~<>']"),
        Rule(r"\([-^x=~<>'][-_.]?[-^x=~<>']\)", "", writing.bracketed),
        Rule("…|\x85", "", writing.dots),
        Rule("-{2,4}|[–—\x96\x97]|&[mn]dash;", "", writing.dashes),
        Rule(r"-{5,}|(?:\\\*)+|[!?]+|#+|\*+|_+|@+|<<|>>"),
        Rule("-(?i:[lr][rcs]b)-"),
        Rule(r"[()\[\]{}]", "", writing.BRACKETS.__getitem__),
        Rule(r"\$"),
        Rule(f"[{''.join(writing.CURRENCIES)}]", "", writing.CURRENCIES.__getitem__),
        Rule("(?i:&(?:amp|lt|gt);)", "", writing.decoded),
        Rule("&#[0-9]+;"),
        Rule("(?i:&nbsp;)", "", writing.nothing),
        Rule(a.symbol),
    )


ADDRESSES: Final = (
    Rule(f"(?i:https?)://{ADDRESS}"),
    Rule(WEB),
    Rule(HOST),
    Rule(f"{MAIL}(?:>|&gt;)?"),
    Rule(r"[A-Z]+\$"),
)
"""Web and mail addresses, and currencies named by capitals (``US$``)."""
