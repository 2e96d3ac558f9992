"""Passes over what descriptions put otherwise than captions: "its white structure", "frozen mid-flight".

The network learned from captions, which hardly have such words. Where it says nothing of them, these passes do; what it
says is kept.
"""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final

from spicegraph_parser.scenes.parts import GARMENTS, singular
from spicegraph_parser.spice.parse import tables, word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.scenes.sentence import Sentence

Pair = tuple[int, int]
Relation = tuple[int, int, str]

_PORTIONS: Final = word_set("part portion rest half majority")
_POSITIONS: Final = word_set("left right front back rear hind upper lower")
_SHINES: Final = word_set("bright vibrant")
_CLAUSES: Final = frozenset({"IN", "VBZ", "VBP", "VBD"})
_COMMA_AND_ARTICLE: Final = frozenset({(",", "DT"), (",", "PRP$")})
_PREPOSITIONS: Final = frozenset({"IN", "TO"})


def attributes_of_others(sentence: Sentence) -> Sentence:
    """Attributes of another item of a list, of another phrase, and numbers of portions are not the noun's.

    "it has blue legs , green eyes": attribute eyes: blue -> attribute legs: blue
    """
    kept = [pair for pair in sentence.labels.attributes if _is_own(sentence, *pair)]
    return (
        sentence
        if len(kept) == len(sentence.labels.attributes)
        else sentence.having(sentence.labels._replace(attributes=kept))
    )


def _is_own(sentence: Sentence, noun: int, at: int) -> bool:
    """Say whether an attribute is its noun's, and not that of another one that is nearer."""
    labels, words = sentence.labels, sentence.words
    tags = labels.tags
    if at < noun and "of" in words[at:noun] and (tags[at] == "CD" or words[at] in _PORTIONS):
        return False
    if at < noun and (
        _COMMA_AND_ARTICLE.intersection(pairwise(tags[at:noun]))
        or any(tags[p] in _CLAUSES and words[p] != "of" for p in range(at + 1, noun))
    ):
        return False  # "pink embroidery, a black tank top"; "two tables with chairs", "an overhead shot shows a bun"
    other = at + 1
    while tags[other : other + 1] and tags[other].startswith(("JJ", "NN", "CC")) and other not in labels.objects:
        other += 1
    if other == noun or (other, at) not in labels.attributes:
        return True
    if noun < at and not _PREPOSITIONS.isdisjoint(tags[noun:at]):
        return False  # "an arched window out at the blue sky"
    return "," not in words[min(noun, at) : max(noun, at)] or (at < noun and not tags[noun - 1].startswith("JJ"))


def positions_in_names(sentence: Sentence) -> Sentence:
    """Positions are attributes and no part of a name; "bright blue" is "bright", too.

    "the left wing": name left wing -> attribute wing: left
    """
    labels, words = sentence.labels, sentence.words
    parts, attributes = [], list(labels.attributes)
    for head, part in labels.parts:
        if words[part] in _POSITIONS:
            attributes.append((head, part))
        elif words[part] in _SHINES and head not in labels.objects:
            attributes += [(noun, part) for noun, colour in labels.attributes if colour == head]
        else:
            parts.append((head, part))
    return (
        sentence
        if len(parts) == len(labels.parts)
        else sentence.having(sentence.labels._replace(parts=parts, attributes=attributes))
    )


_ASPECTS: Final = word_set("form forms shape presence texture design surface surfaces structure")
_OWNERS: Final = word_set("its their")
_ADJECTIVES: Final = ("JJ", "CC")


def looks_of_owners(sentence: Sentence) -> Sentence:
    """What is said of the look of something is said of the thing, by its pronoun.

    "its smooth texture": attribute texture: smooth -> attribute its: smooth
    """
    labels, words = sentence.labels, sentence.words
    if _OWNERS.isdisjoint(words):
        return sentence
    tags = labels.tags
    starts = {at: _start(tags, at, _ADJECTIVES) for at, word in enumerate(words) if word in _ASPECTS}
    looks = {at: start - 1 for at, start in starts.items() if 0 < start < at and words[start - 1] in _OWNERS}
    if not looks:
        return sentence
    of_owners = [(owner, at) for noun, owner in looks.items() for at in range(owner + 1, noun)]
    attributes = [pair for pair in labels.attributes if pair[0] not in looks]
    return sentence.having(
        sentence.labels._replace(
            objects=[at for at in labels.objects if at not in looks],
            attributes=attributes + [pair for pair in of_owners if tags[pair[1]].startswith("JJ")],
            relations=[row for row in labels.relations if looks.keys().isdisjoint(row[:2])],
        )
    )


_COLOURS: Final = word_set(tables(__package__)["colours"])
_HUES: Final = word_set("hue hues color colors colour colours shade shades tone tones tint tints scheme expanse")
_SURFACES: Final = word_set("structure structures surface surfaces exterior exteriors facade facades finish")
_APART: Final = _HUES | _SURFACES
_MIXES: Final = _HUES | word_set("mix blend mixture combination canvas")
_JOINTS: Final = word_set(", and or &")
_BE: Final = word_set("is are")
_BEFORE_COLOURS: Final = frozenset({"JJ", "RB", "DT"})


def colours_apart(sentence: Sentence) -> Sentence:
    """Colours that are said apart from what has them: "its white structure", "a red hue", "is a deep blue".

    "the sky is a clear blue": -> attribute sky: blue
    """
    labels, words = sentence.labels, sentence.words
    if _COLOURS.isdisjoint(words):
        return sentence
    out = list(labels.attributes)
    said = {colour for _, colour in labels.attributes}
    for colours in _runs_of_colours(sentence):
        start, end = _around(labels.tags, colours)
        owner = _coloured(sentence, start, end)
        if owner is not None:
            is_apart = end < len(words) and words[end] in _APART
            of_noun = {(end, colour) for colour in colours} & set(out) if is_apart else set()
            free = [colour for colour in colours if colour not in said or (end, colour) in of_noun]
            out = [*(pair for pair in out if pair not in of_noun), *((owner, colour) for colour in free)]
    return sentence if out == labels.attributes else sentence.having(sentence.labels._replace(attributes=out))


def _runs_of_colours(sentence: Sentence) -> Iterator[list[int]]:
    """Yield the colours that stand together, with adjectives and words that join them between."""
    words, tags = sentence.words, sentence.labels.tags
    at = 0
    while at < len(words):
        if words[at] in _COLOURS:
            inside = takewhile(
                lambda p: words[p] in _COLOURS or words[p] in _JOINTS or tags[p] == "JJ", range(at, len(words))
            )
            colours = [position for position in inside if words[position] in _COLOURS]
            yield colours
            at = colours[-1]
        at += 1


def _around(tags: Sequence[str], colours: Sequence[int]) -> Pair:
    """Return what is before a list of colours with its adverbs and adjectives, or -1, and what is behind it."""
    end = colours[-1] + 1
    end += sum(1 for _ in takewhile(lambda tag: tag == "JJ", tags[end:]))
    return next((at for at in range(colours[0] - 1, -1, -1) if tags[at] not in _BEFORE_COLOURS), -1), end


def _coloured(sentence: Sentence, start: int, end: int) -> int | None:
    """Return what has the colours between two positions, if they are said apart from it; or a pronoun that owns it."""
    words = sentence.words
    behind = words[end] if end < len(words) else ""
    before = words[start] if start >= 0 else ""
    if behind in _HUES and words[end + 1 : end + 2] == ["of"] and _COLOURS.isdisjoint(words[end + 2 : end + 4]):
        return _only_noun(sentence, range(end + 2, len(words)))  # "the red hues of the sky"
    if behind in _APART and before in _OWNERS:
        return start
    if behind in _SURFACES:
        return _only_noun(sentence, range(start, -1, -1)) if before == "'s" else None
    if behind in _HUES:
        return _only_noun(sentence, range(start, -1, -1))
    if before in _BE:
        return _only_noun(sentence, range(start - 1, -1, -1))
    is_mix = before == "of" and start > 0 and words[start - 1] in _MIXES
    return _only_noun(sentence, range(start - 2, -1, -1)) if is_mix else None


def _only_noun(sentence: Sentence, places: Iterable[int]) -> int | None:
    """Return the first noun of given places, if it is an object."""
    noun = next((at for at in places if sentence.labels.tags[at].startswith("NN")), None)
    return noun if noun in sentence.labels.objects else None


def _start(tags: Sequence[str], at: int, kinds: tuple[str, ...]) -> int:
    """Return where the words right before a position start whose tags are of given kinds."""
    while at and tags[at - 1].startswith(kinds):
        at -= 1
    return at


def _with_attributes(sentence: Sentence, more: Iterable[Pair]) -> Sentence:
    """Return a sentence with further attributes, each once."""
    given = sentence.labels.attributes
    new = [pair for pair in dict.fromkeys(more) if pair not in given]
    return sentence.having(sentence.labels._replace(attributes=[*given, *new])) if new else sentence


def shared_adjectives(sentence: Sentence) -> Sentence:
    """The second of two things that "and" joins has the adjectives of the first.

    "white walls and ceilings": -> attribute ceilings: white
    """
    return _with_attributes(sentence, _shared_adjectives(sentence))


def _shared_adjectives(sentence: Sentence) -> Iterator[Pair]:
    words, labels = sentence.words, sentence.labels
    tags = labels.tags
    for noun in sorted(set(labels.objects) - {head for head, _ in labels.attributes}):
        if noun < 2 or words[noun - 1] != "and" or noun - 2 not in labels.objects:
            continue
        if words[noun - 2] == "hair" or (tags[noun] != tags[noun - 2] and singular(words[noun]) in GARMENTS):
            continue  # "dark hair and sunglasses"
        for head, at in labels.attributes:
            if head == noun - 2 and at < head and tags[at].startswith("JJ"):
                yield noun, at


_ADORNED: Final = {
    "lined": "line",
    **dict.fromkeys(("adorned", "decorated", "embellished"), "adorn"),
    **dict.fromkeys(("covered", "carpeted", "blanketed"), "cover"),
}
_TEEMING: Final = word_set("teeming brimming bursting")
_WEARS: Final = word_set("sporting sports sport donning dons wears wearing")
_HAVE_OR_WEAR: Final = _WEARS | word_set(
    "features featuring boasts boasting displays displaying bears bearing showcases houses has"
)
_PAST: Final = frozenset({"VBN", "VBD"})
_IN_PHRASES: Final = frozenset({"DT", "JJ", "JJR", "CD", "RB", "NN", "NNP", "PRP$", "VBN"})
_LINKS: Final = _BE | word_set("who which that has have been also")
_FINITE: Final = (["VBZ"], ["VBP"], ["VBD"], ["CC"])
_RELATIVES: Final = word_set("which who that")


def what_has_it(sentence: Sentence) -> Sentence:
    """What adorns or fills a thing, what a thing features or wears, items of lists, where nothing relates them.

    "a wall adorned with posters": -> relation posters - adorn - wall
    """
    related, relations = sentence.linked(), list(sentence.labels.relations)
    for noun in sorted(sentence.labels.objects)[1:]:
        if noun not in related:
            relations += list(_stated_of(sentence, noun, relations))
    is_same = len(relations) == len(sentence.labels.relations)
    return sentence if is_same else sentence.having(sentence.labels._replace(relations=relations))


def _stated_of(sentence: Sentence, noun: int, known: Sequence[Relation]) -> Iterator[Relation]:
    """Yield relations of a noun by the word before its phrase, and those known of the item of a list before it."""
    words, tags, objects = sentence.words, sentence.labels.tags, sentence.labels.objects
    before = (at for at in range(noun - 1, -1, -1) if tags[at] not in _IN_PHRASES or at in objects)
    at = next(before, 0)
    if words[at] == "with":
        verb = next((p for p in range(at - 1, -1, -1) if tags[p] != "RB"), 0)
        if words[verb] in _ADORNED:
            yield noun, _subject(sentence, verb), _ADORNED[words[verb]]
        elif tags[verb] in _PAST or words[verb] in _TEEMING:
            yield _subject(sentence, verb), noun, "have"
    elif words[at] == "and" and not (words[at - 1] == "," and tags[noun + 1 : noun + 2] in _FINITE):
        yield from _as_item_before(sentence, noun, at, known)
    elif words[at] in _HAVE_OR_WEAR and tags[at].startswith("VB"):
        is_worn = words[at] in _WEARS and singular(words[noun]) in GARMENTS
        yield _subject(sentence, at), noun, "wear" if is_worn else "have"


def _as_item_before(sentence: Sentence, noun: int, joint: int, known: Sequence[Relation]) -> Iterator[Relation]:
    """Yield the relations of the item of a list before a noun, which are the noun's, too."""
    other = next((at for at in range(joint - 1, -1, -1) if sentence.words[at] != ","), 0)
    for subject, target, name in known:
        if target == other and subject < other:
            yield subject, noun, name
        elif subject == other and target < other:
            yield noun, target, name


def _subject(sentence: Sentence, verb: int) -> int:
    """Return the object right before a verb, but for adverbs and the like; else the first one."""
    words, tags, objects = sentence.words, sentence.labels.tags, sentence.labels.objects
    near = next((at for at in range(verb - 1, -1, -1) if tags[at] != "RB" and words[at] not in _LINKS), 0)
    near -= words[near] == "," and words[near + 1] in _RELATIVES
    return near if near in objects else min(objects)
