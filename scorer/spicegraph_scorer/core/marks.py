"""What models leave in captions beside their words: control tokens, word pieces, prompts, markup, broken characters."""
# A mark is what its entry of ``MARKS`` changes, so that refusing and taking off never differ. Rules that keep captions
# of people as they are: of angle brackets only names of tokens and of HTML count ("I <3 NY", "5 > 3"); of ``*`` only
# ``**pairs**`` in texts of up to 30 words, and stars around the whole ("says *imagine*" is a quotation; longer texts
# are passages, whose Markdown the scene parser reads); of ``#`` two or more in front of a word; of labels only those
# of ``_LABELS``, at the beginning ("plan A: a dog" is none); of ``&`` only names of HTML that end with a semicolon.
# To add one: an entry of ``MARKS``, its characters in ``_SUSPECT``, a row in the test's table.

from __future__ import annotations

import ast
import html
import json
import re
import string
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from html.entities import html5
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_PASSAGE_WORDS: Final = 30
_PASSES: Final = 20  # Marks inside of marks, such as ``&amp;lt;eos&gt;``; deeper ones stay.
_NO_GAP_BEFORE: Final = ".,;:!?)'’"
_LEAST_LETTERS: Final = 2  # "Ġ" is also a letter of Maltese: "the Ġgantija temples"

_I, _S = re.IGNORECASE, re.DOTALL
# What stands between < and >; any other name counts that has an underscore, or letters and then digits.
_TOKENS: Final = (
    "s|eos|bos|sos|pad|unk|unknown|cls|sep|mask|go|blank|start|end|startoftext|endoftext|eot|eoc|eod|bot|startseq|endseq|"
    r"image|img|video|audio|vision|patch|ref|box|quad|grounding|phrase|object|\w{1,30}_\w{1,30}|[a-z]{1,30}\d{1,9}|\w{1,30}=[\d.]{1,9}"
)
_BRACKETED: Final = "pad|sep|cls|mask|unk|eos|bos|sos|start|end|img|enc|dec|inst|eod|seg|loc|box|point|unused ?\\d+"
_TOKEN: Final = re.compile(
    r"<[ ]?[|｜][ ]?[^<>|｜]{1,60}[|｜][ ]?>(?:(?<=start\|>)(?:system|user|assistant)\b|(?<=header_id\|>)\w+(?=<\|))?"
    rf"|<start_of_turn>(?:model|user)\b|<[ ]?/?[ ]?(?:{_TOKENS})[ ]?/?[ ]?>|\[[ ]?/?(?:{_BRACKETED})[ ]?\]|<</?SYS>>"
    r"|\b(?:startseq|endseq|unk)\b",
    _I,
)
_MISSING: Final = re.compile(r"unk", _I)  # Tokens that stand for a word.
_TAGS: Final = (
    "a|abbr|answer|article|b|big|blockquote|body|br|caption|center|code|description|div|em|final|font|h[1-6]|head|hr|html|"
    "i|image|img|li|mark|ol|output|p|pre|q|section|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|title|tr|tt|u|ul"
)
_TAG: Final = re.compile(rf"</?(?:{_TAGS})(?:\s+[\w:-]+\s*=[^<>]*)?\s*/?>|<!--[^>]*>", _I | _S)
_LABELS: Final = (
    "A|AI|ASSISTANT|Assistant|assistant|ANSWER|Answer|answer|CAPTION|Caption|caption|(?:Image )?[Dd]escription|"
    "(?:Image|Short) caption|MODEL|Model|Bot|Chatbot|GPT|Output|Response"
)
_PROMPT: Final = re.compile(
    rf"\A\s*(?:(?:USER|User|Human|Q|Question)\s*:.*?(?<!\w))?(?:\#+\s*)?(?:\*\*)?(?:{_LABELS})(?:\*\*)?:(?:\*\*)?\s*",
    _S,
)
_FENCE: Final = re.compile(r"```(?:(?:json|text|txt|plaintext|markdown|md|python|html|xml|yaml)\b)?", _I)
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|\A.*?</think(?:ing)?>", _I | _S)
_ESCAPE: Final = re.compile(r"""(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\[nrt"'])+""")
_ENTITY: Final = re.compile(r"&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BYTES: Final = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+")


def _in_windows(byte: int) -> str:
    return bytes((byte,)).decode("cp1252", errors="ignore") or chr(byte)


_BYTE_OF: Final = {_in_windows(byte): byte for byte in range(256)} | {chr(byte): byte for byte in range(0x80, 0xA0)}
_REST: Final = "[" + re.escape("".join(name for name, byte in _BYTE_OF.items() if 0x80 <= byte < 0xC0)) + "]"
# Beginnings of what Latin letters, punctuation and emoji become when UTF-8 is read as Latin-1 or Windows-1252.
_TWICE: Final = re.compile(f"(?:[ÂÃÄÅ]{_REST}|[âï]{_REST}{_REST}|ð{_REST}{_REST}{_REST})+")


def _cut(text: str, pattern: re.Pattern[str]) -> str:
    """Take the marks out, with one space or none in their place; a space where a word is missing: ``on a .``."""
    return _joined(pattern.split(text), pattern.findall(text) if pattern is _TOKEN else ())


def _joined(parts: Iterable[str], gaps: Iterable[str] = ()) -> str:
    text, is_missing = "", False
    for part, gap in zip_longest(map(str.strip, parts), ("", *gaps), fillvalue=""):
        is_missing = is_missing or _MISSING.search(gap) is not None
        if part:
            text += part if not text or (part[0] in _NO_GAP_BEFORE and not is_missing) else f" {part}"
            is_missing = False
    return text


def _printable(text: str) -> str:
    """Return the text with a space for each control character, and no lone surrogates."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    return "".join(" " if character < " " or character == "\xa0" else character for character in whole)


def _unescape(text: str, pattern: re.Pattern[str]) -> str:
    def put(match: re.Match[str]) -> str:
        return _printable(re.sub(r"""\\(u.{4}|x..|.)""", one, match.group()))

    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) > 1 else {"n": "\n", "r": "\n", "t": "\t"}.get(code, code)

    return pattern.sub(put, text).strip()


def _characters(text: str, pattern: re.Pattern[str]) -> str:
    def put(match: re.Match[str]) -> str:
        name = match.group()
        return _printable(html.unescape(name)) if name[1] == "#" or name[1:] in html5 else name

    return pattern.sub(put, text)


def _decode(text: str, pattern: re.Pattern[str]) -> str:
    """Read characters as the bytes that they were, and these as UTF-8."""

    def put(match: re.Match[str]) -> str:
        found = match.group()
        try:
            return _printable(bytes(_BYTE_OF[character] for character in found).decode()).replace("\ufeff", "")
        except ValueError:
            return found

    return pattern.sub(put, text)


def _decode_bytes(text: str, pattern: re.Pattern[str]) -> str:
    def put(match: re.Match[str]) -> str:
        return _printable(bytes.fromhex(re.sub("<0x|>", "", match.group())).decode(errors="ignore"))

    return pattern.sub(put, text)


def _unwrap(text: str, _pattern: re.Pattern[str]) -> str:
    """Return the only text of a list or an object in the notation of Python or JSON."""
    value: object = None
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = read(text.strip())
            break
    if isinstance(value, dict) and isinstance(caption := value.get("caption"), str):
        return caption
    texts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else text


def _spaced(text: str, pattern: re.Pattern[str]) -> str:
    """Join the pieces of words in which a sign stands where a space was: ``▁run ning`` is one word, ``a ▁dog`` two."""
    marked = len(pattern.findall(text))
    if marked < _LEAST_LETTERS and pattern is _BYTE_PIECE:
        return text
    pieces = text.split()
    joined = 2 * marked >= sum(any(map(str.isalnum, piece)) for piece in pieces)
    return " ".join(pattern.sub(" ", ("" if joined else " ").join(pieces)).split())


def _closed(text: str, pattern: re.Pattern[str]) -> str:
    """Join pieces of which each but the last of a word, or the last alone, has a sign behind it."""
    if pattern is _WORD_END:
        return _joined(pattern.split("".join(text.split())))
    return pattern.sub("", text)


def _plain(text: str, pattern: re.Pattern[str]) -> str:
    if len(text.split()) > _PASSAGE_WORDS:
        return text
    return pattern.sub(lambda match: next(filter(None, match.groups()), ""), text)


_LIST: Final = re.compile(r"""\A\s*(?:\[\s*["'].*["']\s*\]|\{\s*["'].*\})\s*\Z""", _S)
_BYTE_PIECE: Final = re.compile("[ĠĊ]")
_PIECE: Final = re.compile("▁")
_INNER: Final = re.compile(r"\s?(?<!\S)\#\#(?=\w)")
_CONTINUED: Final = re.compile(r"(?<=\w)@@(?:\s+|\Z)")
_WORD_END: Final = re.compile("</w>")
_EMPHASIS: Final = re.compile(
    r"\*\*(?=[^\s*])([^*]+)(?<=\S)\*\*|(?<!\w)__(?=[^\s_])([^_]+)(?<=\S)__(?!\w)|\A\s*\#{2,6}\s+(?=\w)"
    r"|\A\s*\*(?=[^\s*])([^*]+)(?<=\S)\*\s*\Z|\A\s*_(?=[^\s_])([^_]+)(?<=\S)_\s*\Z"
)


_NUMBER: Final = r"\s*\d{0,4}\.?\d{1,9}\s*"
_BOX: Final = re.compile(
    rf"\[{{1,2}}{_NUMBER}(?:[,;\s]{_NUMBER}){{3}}(?:[;,]{_NUMBER}(?:,{_NUMBER}){{3}})*\]{{1,2}}"
    rf"|\({_NUMBER},{_NUMBER}\)\s*,\s*\({_NUMBER},{_NUMBER}\)|\{{(?:<\d{{1,4}}>){{4}}\}}"
)
_NEXT_TURN: Final = re.compile(
    r"(?<=[^\s\#])\s*(?:\#{2,3}\s*|\n\s*)(?:Human|USER|User|Instruction|Question|Input|ASSISTANT|Assistant)\s*:.*\Z", _S
)
_ENDS: Final = re.compile(r"\A\s*(?:sos|bos)\s(?=.*\beos\s*\Z)|\s*\beos\s*\Z", _S)


class Mark(NamedTuple):
    """A kind of mark: its name (empty: each is called what it is), how it is found, and the text without it."""

    name: str
    signs: tuple[str, ...]  # a text with such a mark has one of them, which is found much faster
    pattern: re.Pattern[str]
    clean: Callable[[str, re.Pattern[str]], str]

    def is_possible(self, text: str) -> bool:
        """Say whether a text has a sign of the mark."""
        return any(sign in text for sign in self.signs)


MARKS: Final = (
    Mark("escape", ("\\",), _ESCAPE, _unescape),
    Mark("HTML entity", ("&",), _ENTITY, _characters),
    Mark("bytes", ("<0x",), _BYTES, _decode_bytes),
    Mark("UTF-8 twice", tuple("ÂÃÄÅâïð"), _TWICE, _decode),
    Mark("<think>", ("hink", "HINK"), _THOUGHT, _cut),
    Mark("code fence", ("```",), _FENCE, _cut),
    Mark("list", ("[", "{"), _LIST, _unwrap),
    Mark("prompt", (":",), _PROMPT, _cut),
    Mark("</w>", ("</w>",), _WORD_END, _closed),
    Mark("next turn", ("#", "\n"), _NEXT_TURN, _cut),
    Mark("box", ("[", "(", "{"), _BOX, _cut),
    Mark("eos", ("eos",), _ENDS, _cut),
    Mark("", ("<", "[", "nk", "NK", "seq", "SEQ"), _TOKEN, _cut),
    Mark("HTML", ("<",), _TAG, _cut),
    Mark("Ġ", ("Ġ", "Ċ"), _BYTE_PIECE, _spaced),
    Mark("▁", ("▁",), _PIECE, _spaced),
    Mark("##", ("##",), _INNER, _closed),
    Mark("@@", ("@@",), _CONTINUED, _closed),
    Mark("Markdown", ("*", "_", "##"), _EMPHASIS, _plain),
)

DECODED: Final = frozenset({"HTML entity", "UTF-8 twice"})
"""Marks that are no model's: characters in another notation, which are decoded where other marks are refused."""

# Nearly all captions have nothing but these characters, which are deleted ten times as fast as anything is searched.
_PLAIN: Final = string.ascii_letters.encode() + string.digits.encode() + b" \t\n\r.,;!?'\"()/$%+=~^|-"
_SUSPECT: Final = re.compile(r"[<\[{&\\:#*_`@ĠĊ▁ÂÃÄÅâïð]")
_WORDS: Final = re.compile(r"\b(?:UNK|unk|startseq|endseq|eos)\b|\(\s*\d[\d. ]*,[\d. ]+\)\s*,\s*\(")


_RARE: Final = ("unk", "UNK", "seq", "eos", "),")


def may_have_marks(text: str) -> bool:
    """Say whether a text, of one caption or of several, has a character or word of any mark; most have none."""
    if text.encode("utf-8", "surrogatepass").translate(None, _PLAIN) and _SUSPECT.search(text):
        return True
    return any(sign in text for sign in _RARE) and _WORDS.search(text) is not None


def _without_mark(text: str, mark: Mark) -> tuple[str, list[str]]:
    """Return a caption without one kind of marks, and the names of those that were there."""
    names = [mark.name or _name_of(match.group()) for match in mark.pattern.finditer(text)]
    cleaned = mark.clean(text, mark.pattern) if names else text
    return cleaned, names if cleaned != text else []


def without_marks(text: str) -> tuple[str, Mapping[str, int]]:
    """Return a caption without the marks of models, and how often each was there; without any it stays as it is.

    >>> without_marks("a dog runs <eos> <pad> <pad>")
    ('a dog runs', Counter({'<pad>': 2, '<eos>': 1}))
    >>> without_marks("I <3 NY &c, 5 > 3, AT&T: #1")
    ('I <3 NY &c, 5 > 3, AT&T: #1', Counter())
    """
    found: Counter[str] = Counter()
    for _ in range(_PASSES if may_have_marks(text) else 0):
        before = text
        for mark in MARKS:
            if mark.is_possible(text):
                text, names = _without_mark(text, mark)
                found.update(names)
        if text == before:
            break
    return (text.strip() if found else text), found


def _name_of(token: str) -> str:
    """Return a token's name for counting: lower-cased, ``<loc_12>`` as ``<loc_N>``."""
    return re.sub(r"\d+", "N", "".join(filter(str.isprintable, "".join(token.split()))).lower())


@dataclass(frozen=True, slots=True)
class FoundMarks:
    """The marks that were taken off the captions of a corpus, or were kept and are scored as words."""

    kept: bool = False
    candidates: int = 0  # that had any
    references: int = 0
    counts: tuple[tuple[str, int], ...] = ()  # of each mark, the most frequent first

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __add__(self, other: FoundMarks) -> FoundMarks:
        """Return the marks of both corpora together."""
        counts = Counter(dict(self.counts)) + Counter(dict(other.counts))
        return FoundMarks(
            self.kept or other.kept,
            self.candidates + other.candidates,
            self.references + other.references,
            tuple(counts.most_common()),
        )

    @property
    def missing(self) -> int:
        """How many stand for a word that the model did not know, such as ``<unk>``."""
        return sum(count for name, count in self.counts if _MISSING.search(name))

    def signature(self) -> dict[str, int | dict[str, int]]:
        """Return the mark counts that must match for two corpora's scores to be comparable."""
        where = {"candidates": self.candidates, "references": self.references, "missing_words": self.missing}
        return {"kept" if self.kept else "stripped": dict(self.counts), **{k: n for k, n in where.items() if n}}


NO_MARKS: Final = FoundMarks()
