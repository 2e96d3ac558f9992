"""Passes over what belongs to what in a caption: reciprocals, comparisons, tools, later objects, clauses."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.scenes.relations import (
    OFTEN,
    RECIPROCAL,
    is_preposition_word,
    last_preposition,
    own_name,
    verb_base,
)
from spicegraph_parser.scenes.words import FINITE, PLURAL, PREPOSITIONS, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_parser.scenes.sentence import Sentence

Relation = tuple[int, int, str]

_SIDE_BY_SIDE: Final = ["side", "by", "side"]


def reciprocals(sentence: Sentence) -> Sentence:
    """What several do to "each other", "one another" or "side by side" relates them to themselves, with their number.

    "two giraffes stand next to each other": -> relation giraffes - stand next to - giraffes
    """
    words, tags = sentence.words, sentence.labels.tags
    for at in range(len(words) - 1):
        if words[at : at + 2] in RECIPROCAL or words[at : at + 3] == _SIDE_BY_SIDE:
            ends = _several(sentence, at)
            name = _reciprocal_name(sentence, ends[-1], at) if ends else None
            if name is not None and not any({*row[:2]} <= {*ends} for row in sentence.labels.relations):
                numbers = [p for p in range(sentence.starts().get(ends[0], ends[0]), ends[0]) if tags[p] == "CD"]
                sentence = sentence.adding(
                    relations=[(ends[0], ends[-1], name)], attributes=[(ends[0], number) for number in numbers]
                )
    return sentence


def _several(sentence: Sentence, at: int) -> Sequence[int]:
    """Return the nearest noun before a position that names several, or the two that "and" joins, or none."""
    words, tags = sentence.words, sentence.labels.tags
    before, starts = sorted((noun for noun in sentence.labels.objects if noun < at), reverse=True), sentence.starts()
    for second, first in pairwise([*before, -1]):
        if words[at - 1] == "with" and tags[starts.get(second, second) - 1].startswith("VB"):
            continue  # "shake hands with each other"
        inner = slice(max(0, second - 1), second + 1)
        if tags[second] in PLURAL or tags[inner][0] == "CD" or not WORDS["several"].isdisjoint(words[inner]):
            return (second,)
        if first >= 0 and "and" in words[first:second]:
            return first, second
    return ()


def _reciprocal_name(sentence: Sentence, subject: int, at: int) -> str | None:
    """Return what several do to each other: the verb's base and prepositions, or prepositions alone."""
    words = sentence.words
    name = own_name(words, sentence.labels.tags, subject + 1, at)
    if words[at] == _SIDE_BY_SIDE[0]:
        return f"{name or ''} side by side with".strip()
    _, stated = last_preposition(tuple(words[subject + 1 : at]))
    return stated.name if name is None and stated else name


def comparisons(sentence: Sentence) -> Sentence:
    """What is bigger than a thing is related to it by this alone.

    "a ball bigger than a head": relation ball - have - head -> relation ball - bigger than - head
    """
    words, labels = sentence.words, sentence.labels
    for at in [at for at, word in enumerate(words) if word == "than" and labels.tags[at - 1] in {"JJR", "RBR"}]:
        ends = max((noun for noun in labels.objects if noun < at), default=-1), sentence.behind(at).head
        if {*ends} <= {*labels.objects}:
            rows = sentence.labels.relations
            others = [row for row in rows if {*row[:2]} != {*ends} and not _is_of_first(row, ends, rows)]
            sentence = sentence.deciding(relations=[*others, (*ends, f"{words[at - 1]} than")])
    return sentence


def _is_of_first(row: Relation, ends: tuple[int, int], rows: Sequence[Relation]) -> bool:
    """Say whether a relation of the second of two compared things is the first one's: "bigger than a box is on ..."."""
    return row[0] == ends[1] and (ends[0], *row[1:]) in rows


def of_others(sentence: Sentence) -> Sentence:
    """What belongs to another thing: what covers the noun before its verb, a clause behind "as", another's attribute.

    "a sign against a fence covered in ivy": relation ivy - cover - sign ->
    """
    labels, tags = sentence.labels, (*sentence.labels.tags, "")
    return sentence.deciding(
        relations=[
            row
            for row in labels.relations
            if not (row[2] == "as" and tags[row[1] + 1].startswith("VB"))
            and not (row[2] in WORDS["covering"] and _is_nearer(sentence, row))
        ],
        attributes=[pair for pair in labels.attributes if not _is_others(sentence, *pair)],
    )


def _is_nearer(sentence: Sentence, row: Relation) -> bool:
    """Say whether a subject does the same to another noun, nearer to it, that is not joined to the first by "and"."""
    subject, target, name = row
    return any(
        (first, same) == (subject, name) and target < other < subject and "and" not in sentence.words[target:other]
        for first, other, same in sentence.labels.relations
    )


def _is_others(sentence: Sentence, noun: int, at: int) -> bool:
    """Say whether an attribute is not its noun's: "two cows have black hooves"; in captions, another's number."""
    words, tags = sentence.words, sentence.labels.tags
    between = {words[p] for p in range(at + 1, noun) if tags[p] in FINITE | PREPOSITIONS}
    if not between:
        return False
    is_part = tags[at] == "CD" or words[at] in WORDS["portions"]
    if not sentence.is_alone:
        return is_part or between != {"of"}
    return is_part and between != {"of"} and [own for _, own in sentence.labels.attributes].count(at) > 1


def instruments(sentence: Sentence) -> Sentence:
    """A tool behind "with" is of who does something with it, and not of the place before it.

    "a man drives nails into wood with a hammer": relation wood - with - hammer -> relation man - drive with - hammer
    """
    for start, tool in sentence.phrases:
        is_used = sentence.words[start - 1] == "with" and tool in sentence.labels.objects
        if is_used and plural_lemma(sentence.words[tool]) in WORDS["tools"]:
            sentence = _used(sentence, start - 1, tool)
    return sentence


def _used(sentence: Sentence, at: int, tool: int) -> Sentence:
    """Return a sentence in which the subject of the last verb with an object, or a participle, has a tool."""
    rows = sentence.labels.relations
    done = [row for row in rows if row[1] < at and _is_done(sentence, row, at)]
    subject, thing, name = max(done, key=lambda row: row[1], default=(-1, -1, ""))
    owners = {row[0] for row in rows if row[1] == tool}
    if not done or not owners.isdisjoint((subject, thing)):
        return sentence
    others = [row for row in rows if row[1] != tool]
    return sentence.deciding(relations=[*others, (subject, tool, f"{name.partition(' ')[0]} with")])


def _is_done(sentence: Sentence, row: Relation, end: int) -> bool:
    """Say whether a relation is a verb with its object, or a participle, in the clause that ends before a word."""
    (subject, target, name), words, tags = row, sentence.words, sentence.labels.tags
    base, space, _ = name.partition(" ")
    between = zip(words[subject:target], tags[subject:target], strict=True)
    verbs = [tag for word, tag in between if tag.startswith("VB") and verb_base(word, tag) == base]
    is_direct = bool(verbs) and not (space and verbs[-1] != "VBN")
    return is_direct and base not in WORDS["had"] and (FINITE | {"CC", ",", "WDT"}).isdisjoint(tags[target:end])


def later_objects(sentence: Sentence) -> Sentence:
    """The second thing behind a verb has the preposition before it in its relation.

    "a man pushes a cart through a gate": relation man - push - gate -> relation man - push through - gate
    """
    relations = sentence.labels.relations
    return sentence.deciding(relations=list(_with_prepositions(sentence))) if len(relations) > 1 else sentence


def _with_prepositions(sentence: Sentence) -> Iterator[Relation]:
    words, rows, starts = sentence.words, sentence.labels.relations, sentence.starts()
    for subject, target, name in rows:
        earlier = [row[1] for row in rows if row[::2] == (subject, name) and subject < row[1] < target]
        _, stated = last_preposition(tuple(words[max(earlier, default=target) + 1 : starts.get(target, target)]))
        is_placed = stated is not None and stated.name != "of" and _is_verb(name)
        yield subject, target, f"{name} {stated.name}" if stated and is_placed else name


def _is_verb(name: str) -> bool:
    """Say whether the name of a relation is a verb alone, and one that says what is done."""
    return not (" " in name or name in OFTEN or is_preposition_word(name))
