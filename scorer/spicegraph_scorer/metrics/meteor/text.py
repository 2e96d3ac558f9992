"""Text as METEOR 1.5 reads English: its own normaliser, white space and letters, and which words match alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib.metadata import version
from typing import TYPE_CHECKING

from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.index import java_hash
from spicegraph_scorer.metrics.meteor.data import INSTALL, MeteorData

if TYPE_CHECKING:
    from spicegraph_scorer.metrics.meteor.paraphrases import Occurrence, PhraseFinder

Prefixes = Mapping[str, bool]  # Words that may keep a final dot; true for those that keep it only before a number.

# What METEOR takes for a letter; Greek, CJK, Arabic and combining marks are not among them.
_LETTER = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017e\u0400-\u0527\ua640-\ua66e\ua67e-\ua697\u1d00-\u1d7f"
_ALNUM = _LETTER + "0-9"

_Substitution = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]


# One left-to-right substitution after the other. Each consumes the neighbours that it names, so that in
# a-b-c only every other hyphen is seen: look-around would be shorter and would differ.
_SUBSTITUTIONS: tuple[_Substitution, ...] = (
    (re.compile(rf"([^{_ALNUM} \t\n\v\f\r.'`,\-‘’])"), r" \1 "),
    # A run of dots is a word until all rules about single dots are through.
    (re.compile(r"\.{2,}"), lambda match: f" {'DOT' * (len(match[0]) - 1)}DOTMULTI "),
    (re.compile(r"DOTMULTI\."), "DOTDOTMULTI "),  # only where the text itself has that word
    (re.compile(r"([^0-9]),([^0-9])"), r"\1 , \2"),
    (re.compile(r"([0-9]),([^0-9])"), r"\1 , \2"),
    (re.compile(r"([^0-9]),([0-9])"), r"\1 , \2"),
    (re.compile(r"[`‘’]"), "'"),
    (re.compile(r"[“”]|''"), ' " '),
    (re.compile(r"–"), "-"),
    (re.compile(r"--"), "-"),
    (re.compile(rf"([{_ALNUM}.])-([{_ALNUM}])"), r"\1 \2"),
    (re.compile(rf"([^{_LETTER}])'([^{_LETTER}])"), r"\1 ' \2"),
    (re.compile(rf"([^{_ALNUM}])'([{_LETTER}])"), r"\1 ' \2"),
    (re.compile(rf"([{_LETTER}])'([^{_LETTER}])"), r"\1 ' \2"),
    (re.compile(rf"([{_LETTER}])'([{_LETTER}])"), r"\1 '\2"),
    (re.compile(r"([0-9])'(s)"), r"\1 '\2"),
)
_DOT_WORD = re.compile(r"(?:DOT)+MULTI")
_HAS_LETTER = re.compile(f"[{_LETTER}]")
_PUNCTUATION = re.compile(f"[^{_ALNUM}]")
_SPACES = re.compile(r"[ \u00a0\u2000-\u200a\u202f\u205f\u3000]+")
_WORDS = re.compile(r"[^ \t\n\r\f]+")
_PLAIN = re.compile(r"[a-z0-9 ]*")
_UP_TO_SPACE = "".join(map(chr, range(0x21)))

SEPARATOR = "|||"  # What stands between the texts of a line that METEOR's program reads.


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Text preprocessing options of METEOR; the default is the COCO evaluation's (``-norm``)."""

    normalize: bool = True  # run the normaliser and lower-case
    punctuation: bool = True  # keep it as tokens; False, with normalize, is -noPunct
    lowercase: bool = False  # what is not normalised (-lower)


COCO_TEXT = TextOptions()  # How the COCO evaluation has METEOR prepare text.


def _final_dot(word: str, following: str, prefixes: Prefixes) -> str:
    """Return a word that ends in a dot with the dot kept, dropped or split off."""
    stem = word[:-1]
    if "." in stem and _HAS_LETTER.search(stem):
        return stem.replace(".", "")
    numeric_only = prefixes.get(stem)
    if numeric_only is False or "a" <= following[:1] <= "z":
        return word
    if numeric_only and "0" <= following[:1] <= "9":
        return word
    return f"{stem} ."


def normalize(text: str, *, prefixes: Prefixes, punctuation: bool = True) -> str:
    """Return English text as METEOR 1.5's normaliser writes it: tokens with single spaces between, case kept."""
    text = f" {text} "
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    words: list[str] = _WORDS.findall(text)
    for index, word in enumerate(words):
        if len(word) > 1 and word[-1] == ".":
            # The word after this one has not been rewritten yet, and only its first character matters.
            following = words[index + 1] if index + 1 < len(words) else ""
            words[index] = _final_dot(word, following, prefixes)
    text = _DOT_WORD.sub(lambda match: "." * (len(match[0]) // 3 - 1), " ".join(words))
    if not punctuation:
        text = _PUNCTUATION.sub(" ", text)
    return _SPACES.sub(" ", text).strip(_UP_TO_SPACE)


def tokenize(text: str, *, prefixes: Prefixes, options: TextOptions = COCO_TEXT) -> tuple[str, ...]:
    """Return the tokens that METEOR matches; of spaces, only ASCII's separate them."""
    if _PLAIN.fullmatch(text):  # lower-case ASCII words: no rule of the normaliser applies
        return tuple(text.split())
    text = text.strip(_UP_TO_SPACE)  # as METEOR does with the fields of a line, before all else
    if options.normalize:
        text = normalize(text, prefixes=prefixes, punctuation=options.punctuation)
    if options.normalize or options.lowercase:
        text = text.lower()
    return tuple(_WORDS.findall(text))


def split_line(line: str) -> list[str]:
    """Return the fields of a line, stripped; empty ones at its end are dropped, but not one that holds a space."""
    fields = line.split(SEPARATOR)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return [field.strip(_UP_TO_SPACE) for field in fields]


def english_stemmer() -> Callable[[str], str]:
    """Return the Snowball stemmer for English in the version that METEOR has ("Porter2", about 2010)."""
    try:
        # Not snowballstemmer.stemmer("english"): that may pick a compiled stemmer of another version.
        from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped] # noqa: PLC0415 (an extra)

        installed = version("snowballstemmer")
    except ImportError as error:
        raise DataError(INSTALL) from error
    if not installed.startswith("2."):
        raise DataError(
            f"snowballstemmer {installed} has other stems than METEOR: pip install 'snowballstemmer>=2.2,<3'"
        )
    stem: Callable[[str], str] = EnglishStemmer().stemWord
    return stem


class Module(IntEnum):
    """Matcher of words or phrases, in the order that METEOR tries them."""

    EXACT = 0
    STEM = 1
    SYNONYM = 2
    PARAPHRASE = 3


class TextWords:
    """Numbers words as they come, and keeps for each which of the others match it."""

    # Words are compared by the 32-bit hash that METEOR uses, so that "an" and "c0" are one exact match.

    def __init__(self, data: MeteorData) -> None:
        self._lexicon = data.lexicon
        self._function_words = data.sources.function_words
        self._stem = english_stemmer()
        self._numbers: dict[str, int] = {}
        self._same_hash: dict[int, list[int]] = {}
        self._same_stem: dict[int, list[int]] = {}
        self._same_synset: dict[int, list[int]] = {}
        self.texts: list[str] = []
        """The words in the order of their numbers."""
        self.hashes: list[int] = []
        """Their 32-bit hashes."""
        self.is_function: list[bool] = []
        """Whether each is a function word."""
        self._matches: list[dict[int, tuple[Module, ...]]] = []

    def numbers(self, tokens: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of words, new words included."""
        known = self._numbers
        return tuple([known[word] if word in known else self._add(word) for word in tokens])

    def matches(self, number: int) -> Mapping[int, tuple[Module, ...]]:
        """Return the words that match a word (itself among them), and by which modules."""
        return self._matches[number]

    def _add(self, word: str) -> int:
        number = self._numbers[word] = len(self.texts)
        own_hash = java_hash(word)  # METEOR compares words by it alone
        self.texts.append(word)
        self.hashes.append(own_hash)
        self.is_function.append(word.lower() in self._function_words)
        self._matches.append({})
        for other in self._join(self._same_hash, [own_hash], number):
            self._note(number, other, Module.EXACT)
        different = [
            (Module.STEM, self._join(self._same_stem, [java_hash(self._stem(word))], number)),
            (Module.SYNONYM, self._join(self._same_synset, self._lexicon.synsets(word), number)),
        ]
        for module, others in different:
            for other in others:
                if self.hashes[other] != own_hash:
                    self._note(number, other, module)
        return number

    @staticmethod
    def _join(groups: dict[int, list[int]], keys: Iterable[int], number: int) -> set[int]:
        """Add a word to the groups of ``keys``, and return all their members."""
        members = set()
        for key in keys:
            group = groups.setdefault(key, [])
            group.append(number)
            members.update(group)
        return members

    def _note(self, word: int, other_word: int, module: Module) -> None:
        self._matches[word][other_word] = (*self._matches[word].get(other_word, ()), module)
        if word != other_word:
            self._matches[other_word][word] = self._matches[word][other_word]


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A text as the matcher sees it: the numbers and the hashes of its words, and the phrases in it."""

    words: tuple[int, ...]
    hashes: tuple[int, ...]
    phrases: Sequence[Occurrence]


def read_sentences(
    texts: Sequence[Sequence[str]], words: TextWords, finder: PhraseFinder
) -> tuple[list[Sentence], Sequence[Mapping[int, int]]]:
    """Return tokenized texts as sentences, and the links of their phrases by number."""
    numbers = [words.numbers(tokens) for tokens in texts]
    occurrences, links = finder.find(numbers, words.texts)
    sentences = [
        Sentence(row, tuple([words.hashes[word] for word in row]), phrases)
        for row, phrases in zip(numbers, occurrences, strict=True)
    ]
    return sentences, links
