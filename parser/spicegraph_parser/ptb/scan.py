"""From text to tokens: of the rules that match, the one that sees furthest wins; plain captions take a shortcut."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.ptb import rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Token(NamedTuple):
    """A token as PTB writes it (brackets as ``-LRB-``), and the code points ``text[start:end]`` that it stands for."""

    text: str
    start: int
    end: int


def tokenize(text: str, *, variant: rules.Variant = "coco") -> list[Token]:
    """Split one text into Penn Treebank tokens, seen alone; text with nothing to take (blank, emoji only) has none."""
    if _is_plain(text):
        return [Token(match.group(), *match.span()) for match in _PLAIN_TOKENS.finditer(text)]
    return _scan(text, 0, len(text), variant)


def words(text: str, *, variant: rules.Variant = "coco") -> list[str]:
    """Return the written forms of ``tokenize(text)``, somewhat faster."""
    if _is_plain(text):
        return _PLAIN_TOKENS.findall(text)
    return [token.text for token in _scan(text, 0, len(text), variant)]


def plain_words(text: str) -> list[str] | None:
    """Return the tokens of a plain caption (letters, commas, periods), ``None`` for other text."""
    # Such tokens are the caption's own characters in every variant, and every period ends a sentence.
    return _PLAIN_TOKENS.findall(text) if _is_plain(text) else None


def tokenize_lines(lines: Iterable[str], *, variant: rules.Variant = "coco") -> list[list[str]]:
    """Tokenize lines as Java tokenizes a file: line by line, with later lines as context."""
    # So a caption's tokens can depend on the next one: ``letter K.`` keeps its ``K.`` unless a line like ``A man``
    # follows. Line breaks inside a line count as spaces.
    flat = [_LINE_BREAKS.sub(" ", line) for line in lines]
    joined = "\n".join(flat)
    tokenized: list[list[str]] = []
    start = 0
    for line in flat:
        stop = start + len(line)
        if _is_plain(line):
            tokenized.append(_PLAIN_TOKENS.findall(line))
        else:
            tokenized.append([token.text for token in _scan(joined, start, stop, variant)])
        start = stop + 1
    return tokenized


def split_sentences(tokens: Sequence[Token]) -> list[int]:
    """Return how many tokens each sentence has by CoreNLP's sentence splitter; closing quotes are part of it."""
    lengths: list[int] = []
    length = 0
    ended = False
    for token in tokens:
        if ended and token.text not in {"''", "'", '"', "-RRB-", "-RSB-", "-RCB-"}:
            lengths.append(length)
            length = 0
            ended = False
        length += 1
        ended = ended or _SENTENCE_END.fullmatch(token.text) is not None
    return [*lengths, length] if length else lengths


# The shortcut: words of letters between spaces, before a comma, or before a period and another word. It gives
# what the rules give: behind letters none of them sees over a space, or over a comma or a period and a space, but
# those of the split words, of the abbreviations and of spaced ellipses, which are excluded here.
_PLAIN_WORD: Final = r"(?!(?i:cannot|gonna|wanna|gotta|lemme|gimme)(?![A-Za-z]))[A-Za-z]++"
_KEEPS_PERIOD: Final = frozenset(rules.TITLES | rules.ENDING | rules.ENDING_CAPITALISED | rules.BEFORE_NUMBER)
_LAST_WORD: Final = rf"(?!(?i:[a-z]|{'|'.join(sorted(_KEEPS_PERIOD))})\.){_PLAIN_WORD}\."
_PLAIN_WORDS: Final = f"(?:{_PLAIN_WORD},? ++|{_LAST_WORD} ++(?=[A-Za-z]))*+"
_PLAIN: Final = re.compile(rf" *+{_PLAIN_WORDS}(?:(?={_PLAIN_WORD})([A-Za-z]++) *+(\.?) *+)?")
_SENTENCE_END: Final = re.compile(r"[.。]|[!?！？]+")
_LINE_BREAKS: Final = re.compile(r"[\n\r\x0b\x0c\u2028\u2029]")
_PLAIN_TOKENS: Final = re.compile(r"[A-Za-z]+|[,.]")
_GAP: Final = re.compile(rf"[^\S\x85]*+({_PLAIN_WORDS})")


def _is_plain(text: str) -> bool:
    match = _PLAIN.fullmatch(text)
    if match is None:
        return False
    last, period = match.groups()
    return not period or (len(last) > 1 and last.lower() not in _KEEPS_PERIOD)


# One pattern that tries all rules, for each a group for its token and one for where it stops seeing; and the rules.
_Scanner = tuple["Callable[[str, int], re.Match[str] | None]", tuple[rules.Rule, ...]]


def _scanner(table: tuple[rules.Rule, ...]) -> _Scanner:
    tries = (f"(?:(?=({rule.token}){rule.ahead}())|)" for rule in table)
    return re.compile("".join(tries)).match, table


@cache
def _scanners(variant: rules.Variant, *, ascii_only: bool) -> tuple[_Scanner, _Scanner]:
    """Return two scanners: for tokens that begin with a letter or digit, and for others."""
    alphabet = rules.ASCII if ascii_only else rules.basic_plane()
    return _scanner(rules.word_rules(alphabet, variant)), _scanner(rules.sign_rules(alphabet, variant))


def _scan(text: str, start: int, stop: int, variant: rules.Variant) -> list[Token]:
    """Tokenize ``text[start:stop]``, with the text after it as lookahead."""
    for_words, for_signs = _scanners(variant, ascii_only=text.isascii())
    tokens: list[Token] = []
    position = start
    while True:
        gap = _GAP.match(text, position, stop)
        if gap is not None:
            position = gap.end()
            if gap[1]:
                matches = _PLAIN_TOKENS.finditer(text, gap.start(1), position)
                tokens.extend(Token(token.group(), *token.span()) for token in matches)
        if position >= stop:
            return tokens
        character = text[position]
        scanner = for_words if character.isalpha() or character.isdecimal() else for_signs
        end, written = _longest(scanner, text, position)
        if written:
            tokens.append(Token(written, position, end))
        position = end


def _longest(scanner: _Scanner, text: str, position: int) -> tuple[int, str]:
    """Return the end and the written form of the token at ``position``: the rule that sees furthest wins."""
    match, table = scanner
    tried = match(text, position)
    spans = tried.regs if tried is not None else ()
    seen, winner = position, 0
    for group in range(2, len(spans), 2):
        if spans[group][0] > seen:
            seen, winner = spans[group][0], group
    if not winner:  # no rule takes it: an emoji, a control character
        return position + 1, ""
    end = spans[winner - 1][1]
    write = table[winner // 2 - 1].write
    return end, text[position:end] if write is None else write(text[position:end])
