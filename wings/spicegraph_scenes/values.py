"""Texts and measures in a sentence: "a button labeled OK", "a 3 cm mass". They are values of attributes.

The network does not read them: it learned from captions that hardly have any, and took their words for things.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.spice.parse import is_word
from spicegraph_scenes.network import Labels
from spicegraph_scenes.relations import is_preposition_word
from spicegraph_scenes.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_OPENING: Final = frozenset({"``", "“"})
_CLOSING: Final = frozenset({"''", "”", '"'})
_DIGIT: Final = re.compile(r"\d")
_NUMBER: Final = r"\d+(?:[.,]\d+)*"
_NUMBERED: Final = re.compile(rf"(?:{_NUMBER}|(?=\S*\d)[A-Z0-9]{{3,}})(?: (?:to|:|-|–) {_NUMBER})?(?!\S)")
"""Numbers and codes of what has one: "number 214", "a score of 3 to 1"."""
_LONG_UNITS: Final = "|".join(re.escape(unit) for unit in sorted(WORDS["units"] - {"in"}) if len(unit) > 1)
_SHORT_UNITS: Final = "|".join(re.escape(unit) for unit in sorted(WORDS["units"]) if len(unit) == 1)
_MEASURE: Final = re.compile(
    rf"(?:[$€£¥] {_NUMBER}|(?i:size) (?:{_NUMBER}|[XS-]*[SML]|XX?L)|{_NUMBER}(?i:{_LONG_UNITS}|{_SHORT_UNITS}|in)"
    rf"|{_NUMBER} (?:L|W|V|A|K|N|Nm|Hz|M|C|F|{_SHORT_UNITS}|(?i:{_LONG_UNITS})|in\Z))(?!\S)"
)
"""Prices, sizes and numbers with a unit; "in" is none in "3 in a row"."""
_WORDS_OF_MEASURES: Final = 4
_LABELS_OR_SAYS: Final = WORDS["labels"] | WORDS["says"]
_CUES: Final = _LABELS_OR_SAYS | WORDS["texts"]
_TRIGGERS: Final = _CUES | _OPENING | {"size"}


class Value(NamedTuple):
    """A value and the words ``cut`` that the network does not read; ``is_thing``: it is an object itself (the "U")."""

    name: str
    tokens: tuple[int, ...]
    cut: range
    is_before: bool = False
    of_subject: bool = False
    is_thing: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is a text, and not one that stands before its noun."""
        return self.name.startswith('"') and not self.is_before


def values_of(forms: Sequence[str]) -> tuple[Value, ...]:
    """Return the values in a sentence, in order; none where the sentence would have no words without them."""
    if _TRIGGERS.isdisjoint([form.lower() for form in forms]) and not any(map(_DIGIT.match, forms)):
        return ()  # most have no word that values start with
    found: list[Value] = []
    at = 0
    while at < len(forms):
        value = _text(forms, at) or _measure(forms, at)
        found += [value] if value else []
        at = value.cut.stop if value else at + 1
    return tuple(found) if has_word(forms, set(unread(found))) else ()


def has_word(forms: Sequence[str], cut: Collection[int] = ()) -> bool:
    """Say whether a sentence has a word beside those that are cut."""
    return any(is_word(form) for at, form in enumerate(forms) if at not in cut)


def _word(forms: Sequence[str], at: int) -> str:
    """Return a word in lower case, or nothing before and behind the sentence."""
    return forms[at].lower() if 0 <= at < len(forms) else ""


def _text(forms: Sequence[str], at: int) -> Value | None:
    """Return the text that starts at a word: in quotes, or capitals behind a word like "labeled"."""
    start, inner, stop = _quoted(forms, at) if forms[at] in _OPENING else _capitals(forms, at)
    while inner and not is_word(forms[inner[-1]]):  # "the U," has a comma within its quotes
        inner = inner[:-1]
    if not inner:
        return None
    before, two = _word(forms, start - 1), _word(forms, start - 2)
    is_said, is_relative = before in _LABELS_OR_SAYS, two in WORDS["relatives"]
    stop += _word(forms, stop) in WORDS["written"]
    cut = range(start - is_said - (is_said and is_relative), stop)
    is_noun = _word(forms, stop).isalpha() and not _is_no_noun(_word(forms, stop))
    is_before = cut.start == at and is_noun and before not in WORDS["texts"]
    is_thing = cut.start == at and before in {"the", "a", "an"} and not is_before
    name = " ".join([forms[position] for position in inner]).lower()
    return Value(f'"{name}"', tuple(inner), cut, is_before, _is_of_subject(before, two), is_thing)


def _is_of_subject(before: str, two: str) -> bool:
    """Say whether the two words before a text give it to the subject: "is labeled", "a sign says"."""
    is_verb = before in WORDS["finite_says"] and two not in WORDS["relatives"]
    return is_verb or (before in _LABELS_OR_SAYS and two in WORDS["copulas_of_texts"])


def _quoted(forms: Sequence[str], at: int) -> tuple[int, range, int]:
    """Return a quoted text's start, the range of its words, and the position behind it."""
    end = next((p for p in range(at + 1, len(forms)) if forms[p] in _CLOSING), len(forms))
    return at, range(at + 1, end), min(end + 1, len(forms))


def _capitals(forms: Sequence[str], at: int) -> tuple[int, range, int]:
    """Return the same of capitals behind a word like "labeled", or of all behind "that says"; no words of no text."""
    lower = forms[at].lower()
    run = list(takewhile(lambda position: forms[position][:1].isupper(), range(at + 1, len(forms))))
    if lower not in _CUES or not run:
        return at + 1, range(0), at + 1
    is_said = lower in WORDS["says"] and _word(forms, at - 1) in WORDS["relatives"]
    is_rest = is_said and WORDS["text_ends"].isdisjoint(forms[run[-1] + 1 :])  # "a sign that says Keep off the grass"
    stop = len(forms) if is_rest else run[-1] + 1
    return at + 1, range(at + 1, stop), stop


def _measure(forms: Sequence[str], at: int) -> Value | None:
    """Return the measure that starts at a word: a number with its unit, or a size."""
    before = _word(forms, at - 2 if _word(forms, at - 1) == "of" else at - 1)
    text = " ".join(forms[at : at + _WORDS_OF_MEASURES])
    found = (_NUMBERED.match(text) if before in WORDS["numbered"] else None) or _MEASURE.match(text)
    if found is None:
        return None
    stop = at + found[0].count(" ") + 1
    start = at - (_word(forms, at - 1) in {"by", "of"})
    name = re.sub(r"(?<=[$€£¥]) | (?=%)", "", found[0].lower())
    is_before = start == at and _word(forms, stop).isalpha() and forms[stop] not in WORDS["behind_values"]
    return Value(name, tuple(range(at, stop)), range(start, stop), is_before)


def _is_no_noun(word: str) -> bool:
    return word in WORDS["behind_values"] or word in WORDS["copulas_of_texts"] or is_preposition_word(word)


def unread(sentence_values: Sequence[Value]) -> Iterator[int]:
    """Yield the positions of the words that the network does not read."""
    for value in sentence_values:
        yield from value.cut


def placed(labels: Labels, cut: Collection[int], tags: Sequence[str]) -> Labels:
    """Return the labels of a sentence that was read without some words, with positions in all of it.

    ``tags`` has a tag for each word, of which those of words that were cut stay.
    """
    at = [position for position in range(len(tags)) if position not in cut]
    new_tags = dict(zip(at, labels.tags, strict=True))
    return Labels(
        [new_tags.get(position, tag) for position, tag in enumerate(tags)],
        [at[word] for word in labels.objects],
        [(at[head], at[part]) for head, part in labels.parts],
        [(at[head], at[word]) for head, word in labels.attributes],
        [(at[subject], at[target], name) for subject, target, name in labels.relations],
        placed(labels.faint._replace(tags=labels.tags), cut, tags) if labels.faint else None,
    )


def owner(value: Value, heads: Sequence[int], words: Sequence[str]) -> int | None:
    """Return which of the objects of a sentence has a value; ``heads`` are their positions in its words, in order."""
    before = [head for head in heads if head < value.cut.start]
    behind = [head for head in heads if head >= value.cut.stop]
    if value.is_thing:
        return None
    if value.of_subject and before:
        return before[0]
    if value.is_text:
        return _bearer(value, before, behind, words)
    near = [*behind[:1], *before[-1:]] if value.is_before else [*before[-1:], *behind[:1]]
    return next(iter(near), None)


def _bearer(value: Value, before: Sequence[int], behind: Sequence[int], words: Sequence[str]) -> int | None:
    """Return the noun of a text: right before its quotes, a usual bearer, or speaker."""
    start = value.cut.start
    if start == value.tokens[0] - 1 and before[-1:] == [start - 1]:
        return before[-1]  # 'the phrase "Type here"'
    says = start < len(words) and words[start] in WORDS["says"]
    bearing = [head for head in before if words[head] in WORDS["texts"] | WORDS["bearers"]]
    own = bearing or (before[:1] if says else before)  # "a note on a refrigerator that says"
    return next(iter([*own[-1:], *(() if says else behind[:1])]), None)
