"""Credit: an item's score, divided among the words of its candidate."""
# A metric divides its score among the parts that it is made of, such as tuples and n-grams: by the Shapley value
# (Shapley 1953), or where parts have sizes, by its limit for many small players, the Aumann-Shapley value (Aumann and
# Shapley 1974). A part's credit is divided equally among its slots, since it is there only if all of them are, and a
# slot's among its words. What no word stands for is divided among all words: the credits add up to the score.

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from operator import mul
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.parse import word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

Span = tuple[int, int]

FUNCTION_WORDS: Final = word_set(
    """
    a an the of in on at to with and is are by for from as it its his her their this that there some while up down out
    into over be being has have one s t
    """
)  # Words that say little themselves.
OBJECT: Final = "object"  # The kind of the parts whose words end phrases.
_WORD: Final = re.compile(r"\w+(?:['’-]\w+)*")


class CreditPart(NamedTuple):
    """Part of a score, with its credit."""

    kind: str  # object, attribute, relation, word, alignment, order, meaning, 1-gram to 4-gram, or length
    words: tuple[str, ...]  # of the part; none where it is the whole caption
    credit: float


class WordCredit(NamedTuple):
    """A word of a caption, ``text[start:end]`` in code points, and its credit: below 0 where it cost."""

    text: str
    start: int
    end: int
    credit: float


@dataclass(frozen=True, slots=True)
class Credit:
    """An item's score and who earned it: the credits of the words, in the order of the text, add up to it."""

    score: float
    words: tuple[WordCredit, ...]
    parts: tuple[CreditPart, ...]
    phrases: tuple[int, ...] = ()  # the number of words of each run that stands and falls together

    def of_tokens(self, offsets: Sequence[Span]) -> list[float]:
        """Return the credit of each token of any tokenizer, by its span in code points; they add up to the score.

        A word's credit is divided among the tokens that share characters with it, by how many they share; that of a
        word which no token covers goes to all tokens in equal parts.

        >>> credit = Credit(1.0, (WordCredit("hotdog", 0, 6, 0.75), WordCredit("bun", 7, 10, 0.25)), ())
        >>> credit.of_tokens([(0, 0), (0, 3), (3, 6), (6, 10)])
        [0.0, 0.375, 0.375, 0.25]
        """
        token_credits = [0.0] * len(offsets)
        for word in self.words:
            shared = {
                index: min(end, word.end) - max(start, word.start)
                for index, (start, end) in enumerate(offsets)
                if min(end, word.end) > max(start, word.start)
            } or dict.fromkeys(range(len(offsets)), 1)
            for index, length in shared.items():
                token_credits[index] += word.credit * length / sum(shared.values())
        return token_credits

    def of_phrases(self) -> list[tuple[Span, float]]:
        """Return the span and the credit of each phrase, in the order of the text; they add up to the score.

        A phrase is an object with all words before it that no earlier object has: "sitting on the grass". What follows
        with "of" belongs to it, too. A caption that lacks a phrase is parsed as it was before; one that lacks a word,
        or a verb without what it leads to, often is not. A score without objects has content words in their place.
        Without ``phrases``, each word is one.
        """
        each = iter(self.words)
        runs = [tuple(islice(each, size)) for size in self.phrases or [1] * len(self.words)]
        return [((run[0].start, run[-1].end), math.fsum(word.credit for word in run)) for run in runs]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, with the fields of the parts as keys."""
        return {
            "score": self.score,
            "words": [word._asdict() for word in self.words],
            "parts": [part._asdict() for part in self.parts],
        }

    @classmethod
    def mixed(cls, credits_of: Sequence[tuple[float, Credit]]) -> Credit:
        """Return the credit of a weighted sum of scores of one caption; of their phrases, the longest."""
        weights = [weight for weight, _ in credits_of]
        words = [
            same[0]._replace(credit=math.fsum(map(mul, weights, [word.credit for word in same])))
            for same in zip(*(credit.words for _, credit in credits_of), strict=True)
        ]
        return cls(
            math.fsum(weight * credit.score for weight, credit in credits_of),
            tuple(words),
            tuple(part._replace(credit=weight * part.credit) for weight, credit in credits_of for part in credit.parts),
            min((credit.phrases for _, credit in credits_of), key=len, default=()),
        )


Slots = tuple[tuple[int, ...], ...]  # For each slot of a part, the numbers of the caption's words that stand for it.


class Words:
    """The words of a caption, by their numbers from 0, and which of them a word of a fact stands for."""

    def __init__(self, text: str) -> None:
        self.text = text
        spans = [match.span() for match in _WORD.finditer(text)]
        blank = not text.strip()
        self.spans: Sequence[Span] = spans or (
            [] if blank else [(text.find(text.split(maxsplit=1)[0]), len(text.rstrip()))]
        )

    @cached_property
    def _by_form(self) -> Mapping[str, list[int]]:
        by_form: defaultdict[str, list[int]] = defaultdict(list)
        for number, (start, end) in enumerate(self.spans):
            for form in _forms(self.text[start:end].lower()):
                by_form[form].append(number)
        return by_form

    def of_form(self, form: str) -> Sequence[int]:
        """Return the words that facts may have under a form."""
        return self._by_form.get(form, ())

    def find(self, strings: Iterable[str]) -> tuple[int, ...]:
        """Return the words that stand for a concept, by what its strings are in facts: lemmas, or several words."""
        numbers: dict[int, None] = {}
        for string in strings:
            for word in (string,) if self.of_form(string) else string.split():
                numbers |= dict.fromkeys(self.of_form(word))
        return tuple(numbers)

    def overlapping(self, start: int, end: int) -> tuple[int, ...]:
        """Return the words that share characters with a span."""
        return tuple(number for number, span in enumerate(self.spans) if span[0] < end and start < span[1])

    def credit(self, score: float, parts: Iterable[tuple[CreditPart, Slots]]) -> Credit:
        """Return the credit of a score that is divided among parts already."""
        words, kept, everyone = [0.0] * len(self.spans), [], tuple(range(len(self.spans)))
        objects: set[int] = set()
        for part, slots in parts:
            kept.append(part)
            if part.kind == OBJECT:
                objects.update(*slots)
            filled = [slot for slot in slots if slot] or [everyone]
            for slot in filled:
                for number in slot:
                    words[number] += part.credit / len(filled) / len(slot)
        named = [WordCredit(self.text[a:b], a, b, credit) for (a, b), credit in zip(self.spans, words, strict=True)]
        return Credit(score, tuple(named), tuple(kept), tuple(self._phrases(objects or self._content())))

    def _content(self) -> set[int]:
        """Return the numbers of all words but function words."""
        return {number for number, (a, b) in enumerate(self.spans) if self.text[a:b].lower() not in FUNCTION_WORDS}

    def _phrases(self, heads: Set[int]) -> list[int]:
        """Return the number of words of each phrase, in their order."""
        # A phrase ends behind a head, or behind several in a row that nothing but space divides ("tennis court"),
        # unless "of" follows; what is behind the last head belongs to the last phrase.
        sizes: list[int] = []
        last, end = max(heads, default=0), 0
        for number, (start, stop) in enumerate(self.spans):
            row = number in heads and not self.text[end:start].strip()
            ended = number - 1 in heads and not row and number <= last and self.text[start:stop].lower() != "of"
            if ended or not sizes:
                sizes.append(0)
            sizes[-1] += 1
            end = stop
        return sizes


_ENDINGS: Final = (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"))


@lru_cache(maxsize=50_000)
def _forms(word: str) -> tuple[str, ...]:
    parts = word.split("-") if "-" in word else ()
    stems = [
        (word.removesuffix(end), base) for end, base in _ENDINGS if word.endswith(end) and len(word) > len(end) + 2
    ]
    regular = [stem + base for stem, base in stems]  # what the lemma of a word may be that WordNet lacks
    return tuple(dict.fromkeys((word, *load_lexicon().forms(word), *regular, *parts)))
