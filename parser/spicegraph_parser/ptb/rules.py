"""The rules of Penn Treebank tokenization, in the order that decides ties.

A rule has a pattern of the token itself and a pattern of what must follow it. Where several rules fit, the
one that sees furthest wins (what must follow counts), and of two that see as far the earlier one: so the
rules need no exclusions of each other, and one can be read without the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spicegraph_parser.ptb import writing
from spicegraph_parser.ptb.abbreviations import (
    BEFORE_NUMBER,
    ENDING,
    ENDING_CAPITALISED,
    EXTENSIONS,
    STARTERS,
    TITLES,
)
from spicegraph_parser.ptb.patterns import (
    ACRONYM,
    ADDRESS,
    HOST,
    MAIL,
    MOST_NAMES,
    TAG,
    WEB,
    Patterns,
    Variant,
    any_case,
    capitalised,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from spicegraph_parser.ptb.alphabet import Alphabet

__all__ = ["Rule", "sign_rules", "word_rules"]


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
