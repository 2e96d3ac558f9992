"""Texts and measures in a sentence: "a button labeled OK", "a 3 cm mass". They are values of attributes.

The network does not read them: it learned from captions that hardly have any, and took their words for things.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.scenes.network import Labels
from spicegraph_parser.scenes.prepositions import is_preposition_word
from spicegraph_parser.spice.parse import is_word, tables, word_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_LABELS: Final = word_set("labeled labelled titled entitled captioned marked inscribed")
_SAYS: Final = word_set("says say saying said reads read reading")
_WRITTEN: Final = word_set("written printed spelled")
_RELATIVES: Final = word_set("that which")
_BE: Final = word_set("is are was were")
_TEXTS: Final = word_set("caption captions title titles heading slogan words word letters")
"""Nouns of texts: capitals behind them are the text ("the caption Monday")."""
_NUMBERED: Final = word_set("number page platform gate route score total figure bus plate flight model")
"""Nouns of what has a number: "number 214", "a total of 23.50"."""
_ARTICLES: Final = word_set("the a an")
_OPENING: Final = frozenset({"``", "“"})
_CLOSING: Final = frozenset({"''", "”", '"'})
_DIGIT: Final = re.compile(r"\d")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_CODE: Final = re.compile(r"(?=.*\d)[A-Z0-9]{3,}")
_CURRENCIES: Final = frozenset("$€£¥")
_SIZE: Final = re.compile(r"\d+(?:[.,]\d+)*|[XS-]*[SML]|XX?L")
_MEASURE: Final = re.compile(r"\d+(?:[.,]\d+)*(?:[a-zA-Z]{1,3}|%)")
_UNITS: Final = word_set(tables(__package__)["units"])
_RANGES: Final = word_set("to : - –")
_CASED_UNITS: Final = frozenset({"L", "W", "V", "A", "K", "N", "Nm", "Hz", "M", "C", "F"})
_NO_UNITS: Final = frozenset({"in"})  # "3 in a row"
_BY_OR_OF: Final = word_set("by of")
_ENDS: Final = word_set("on in at above below with next near beside behind and , .")


class Value(NamedTuple):
    """A value and the words ``cut`` that the network does not read; ``is_thing``: it is an object itself (the "U")."""

    name: str
    tokens: tuple[int, ...]
    cut: range
    is_before: bool = False
    of_subject: bool = False
    is_thing: bool = False


_CUES: Final = _OPENING | _LABELS | _SAYS | _TEXTS | {"size"}


def values_of(forms: Sequence[str]) -> tuple[Value, ...]:
    """Return the values of a sentence; most have no word that values start with."""
    if _CUES.isdisjoint([form.lower() for form in forms]) and not any(map(_DIGIT.match, forms)):
        return ()
    return values(forms)


def values(forms: Sequence[str]) -> tuple[Value, ...]:
    """Return the values in a sentence, in order; none where the sentence would have no words without them."""
    sentence_values: list[Value] = []
    at = 0
    while at < len(forms):
        value = _text(forms, at) or _measure(forms, at)
        if value is None:
            at += 1
        else:
            sentence_values.append(value)
            at = value.cut.stop
    cut = set(unread(sentence_values))
    return (
        tuple(sentence_values)
        if any(is_word(form) for position, form in enumerate(forms) if position not in cut)
        else ()
    )


def _text(forms: Sequence[str], at: int) -> Value | None:
    """Return the text that starts at a word: in quotes, or capitals behind a word like "labeled"."""
    lower = forms[at].lower()
    if forms[at] in _OPENING:
        start, end = at, next((p for p in range(at + 1, len(forms)) if forms[p] in _CLOSING), len(forms))
        inner, stop = range(at + 1, end), min(end + 1, len(forms))
    else:
        if not {lower} & (_LABELS | _SAYS | _TEXTS):
            return None
        run = list(takewhile(lambda position: forms[position][:1].isupper(), range(at + 1, len(forms))))
        if not run:
            return None
        stop = run[-1] + 1
        if lower in _SAYS and at and forms[at - 1].lower() in _RELATIVES and _ENDS.isdisjoint(forms[stop:]):
            stop = len(forms)  # "a sign that says Keep off the grass"
        start, inner = at + 1, range(at + 1, stop)
    while inner and not any(map(str.isalnum, forms[inner[-1]])):
        inner = inner[:-1]  # "the U," has a comma within its quotes
    words = [forms[position] for position in inner]
    if not any(map(str.isalnum, words)):
        return None
    before = forms[start - 1].lower() if start else ""
    of_subject = False
    if before in _LABELS or before in _SAYS:
        start -= 1
        two = forms[start - 1].lower() if start else ""
        of_subject = two in _BE or (before in {"says", "say", "reads", "read"} and two not in _RELATIVES)
        start -= two in _RELATIVES
    if stop < len(forms) and forms[stop].lower() in _WRITTEN:
        stop += 1
    noun = stop < len(forms) and forms[stop].isalpha() and not _is_no_noun(forms[stop].lower())
    is_before = start == at and noun and before not in _TEXTS and before != "text"
    is_thing = start == at and before in _ARTICLES and not is_before
    return Value(f'"{" ".join(words).lower()}"', tuple(inner), range(start, stop), is_before, of_subject, is_thing)


def _measure(forms: Sequence[str], at: int) -> Value | None:
    """Return the measure that starts at a word: a number with its unit, or a size."""
    form = forms[at]
    behind = forms[at + 1] if at + 1 < len(forms) else ""
    before = [word.lower() for word in forms[max(0, at - 2) : at]]
    if (
        (_NUMBER.fullmatch(form) or _CODE.fullmatch(form))
        and before
        and before[-2 if before[-1] == "of" else -1 :][0] in _NUMBERED
    ):
        is_range = behind in _RANGES and _NUMBER.fullmatch("".join(forms[at + 2 : at + 3]))
        words = range(at, at + (3 if is_range else 1))
    elif (
        (form in _CURRENCIES and _NUMBER.fullmatch(behind))
        or (form.lower() == "size" and _SIZE.fullmatch(behind))
        or (
            _NUMBER.fullmatch(form)
            and (behind in _CASED_UNITS or (behind.lower() in _UNITS and (len(behind) > 1 or behind == behind.lower())))
            and not (behind in _NO_UNITS and forms[at + 2 :])
        )
    ):
        words = range(at, at + 2)
    elif _MEASURE.fullmatch(form) and form.lstrip("0123456789.,").lower() in _UNITS:
        words = range(at, at + 1)
    else:
        return None
    start = at - 1 if at and forms[at - 1].lower() in _BY_OR_OF else at
    name = ("" if form in _CURRENCIES else " ").join(forms[position] for position in words).lower().replace(" %", "%")
    next_word = forms[words.stop] if words.stop < len(forms) else ""
    is_before = start == at and next_word.isalpha() and next_word not in _NO_NOUNS
    return Value(name, tuple(words), range(start, words.stop), is_before)


_NO_NOUNS: Final = word_set("high wide long tall thick deep in on at from with under over by and away across")


def _is_no_noun(word: str) -> bool:
    return word in _NO_NOUNS | _BE or is_preposition_word(word)


def unread(sentence_values: Sequence[Value]) -> Iterator[int]:
    """Yield the positions of the words that the network does not read."""
    for value in sentence_values:
        yield from value.cut


def placed(labels: Labels, cut: Collection[int], tags: Sequence[str]) -> Labels:
    """Return the labels of a sentence that was read without some words, with positions in all of it.

    ``tags`` has a tag for each word, of which those of words that were cut stay.
    """
    at = [position for position in range(len(tags)) if position not in cut]
    own_tags = list(tags)
    for position, tag in zip(at, labels.tags, strict=True):
        own_tags[position] = tag
    return Labels(
        own_tags,
        [at[word] for word in labels.objects],
        [(at[head], at[part]) for head, part in labels.parts],
        [(at[head], at[word]) for head, word in labels.attributes],
        [(at[subject], at[target], name) for subject, target, name in labels.relations],
        placed(labels.faint._replace(tags=labels.tags), cut, tags) if labels.faint else None,
    )


_BEARERS: Final = _TEXTS | word_set(tables(__package__)["bearers"])
"""Nouns of what mostly bears the text where several things stand before it."""


def owner(value: Value, heads: Sequence[int], words: Sequence[str]) -> int | None:
    """Return which of the objects of a sentence has a value; ``heads`` are their positions in its words, in order."""
    if value.is_thing:
        return None
    before = [head for head in heads if head < value.cut.start]
    behind = [head for head in heads if head >= value.cut.stop]
    if value.of_subject and before:
        return before[0]
    is_text = value.name.startswith('"') and not value.is_before
    if is_text and value.cut.start == value.tokens[0] - 1 and before[-1:] == [value.cut.start - 1]:
        return before[-1]  # 'the phrase "Type here"'
    if is_text:  # "a note on a refrigerator that says"
        says = words[value.cut.start : value.cut.start + 1]
        otherwise = before[:1] if says and says[0] in _SAYS else before
        before = [head for head in before if words[head] in _BEARERS] or otherwise
        behind = behind if before or not (says and says[0] in _SAYS) else []
    near = [behind[:1], before[-1:]] if value.is_before else [before[-1:], behind[:1]]
    return next((head for some in near for head in some), None)
