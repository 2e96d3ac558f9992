"""Passes over what descriptions put otherwise than captions: "its white structure", "frozen mid-flight".

The network learned from captions, which hardly have such words. Where it says nothing of them, these passes do; what it
says is kept.
"""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final

from spicegraph_parser.scenes.parts import GARMENTS, singular
from spicegraph_parser.scenes.prepositions import preposition
from spicegraph_parser.scenes.relations import verb_base
from spicegraph_parser.spice.parse import tables, word_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

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


_MATERIALS: Final = word_set(tables(__package__)["materials"])
_MADE: Final = word_set("made constructed built composed crafted")
_OF_OR_FROM: Final = word_set("of from")
_AMOUNTS: Final = word_set(tables(__package__)["amounts"])
_PLAIN_COLOURS: Final = _COLOURS | word_set("deep light dark stark soft pale rich muted")
_IN_NOUN_PHRASES: Final = ("JJ", "NN", "RB", "DT")


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


def states_behind(sentence: Sentence) -> Sentence:
    """States and materials behind the thing that has them: "frozen mid-flight", "made of stone", "a serene blue".

    "a house constructed of stone": -> attribute house: stone
    """
    return _with_attributes(sentence, _states_behind(sentence))


def _states_behind(sentence: Sentence) -> Iterator[Pair]:
    words, tags, objects = sentence.words, sentence.labels.tags, sentence.labels.objects
    said = {at for _, at in sentence.labels.attributes}
    for at, word in enumerate(words):
        if at in objects:
            continue
        if word in _COLOURS:
            yield from _beside_colour(sentence, at)
        if at not in said and word.startswith("mid-"):
            yield from ((noun, at) for noun in _last_before(objects, at))
    for at, word in enumerate(words):
        if word in _MATERIALS and at not in said:
            start = _start(tags, at, _IN_NOUN_PHRASES) - 1
            if start > 0 and words[start] in _OF_OR_FROM and words[start - 1] in _MADE:
                yield from ((noun, at) for noun in _last_before(objects, start))


def _last_before(objects: Collection[int], at: int) -> Sequence[int]:
    return sorted(noun for noun in objects if noun < at)[-1:]


def _beside_colour(sentence: Sentence, at: int) -> Iterator[Pair]:
    """Yield the adjectives of a colour behind its noun ("is a serene blue"), shades aside."""
    words, tags = sentence.words, sentence.labels.tags
    start = _start(tags, at, _ADJECTIVES)
    noun = next((noun for noun, colour in sentence.labels.attributes if colour == at), start)
    if noun < start < at and words[start - 1] == "a":
        for inner in range(start, at):
            if tags[inner].startswith("JJ") and words[inner] not in _PLAIN_COLOURS:
                yield noun, inner


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


def adjectives_of_amounts(sentence: Sentence) -> Sentence:
    """What there is of an amount has the adjectives of the amount.

    "a vast expanse of sand": -> attribute sand: vast
    """
    return _with_attributes(sentence, _adjectives_of_amounts(sentence))


def _adjectives_of_amounts(sentence: Sentence) -> Iterator[Pair]:
    words, tags, objects = sentence.words, sentence.labels.tags, sentence.labels.objects
    said = {at for _, at in sentence.labels.attributes}
    for noun in sorted(objects):
        amount = _start(tags, noun, _IN_NOUN_PHRASES) - 2
        if amount > 0 and words[amount + 1] == "of" and words[amount] in _AMOUNTS and amount not in objects:
            yield from ((noun, at) for at in range(_start(tags, amount, ("JJ",)), amount) if at not in said)


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
_IN_PLACES: Final = ("DT", "JJ", "NN", "CD", "VBN", "VBG", "RB")
_WIDE: Final = word_set("background city")  # places that people do not draw a thing in
_INNERMOST: Final = word_set("heart midst center middle")
_INSIDE: Final = word_set("in inside within")
_POSTURES: Final = word_set("stand stands sit sits lie lies hang hangs rise rises rest rests")
_SIDES: Final = {"left": "at the left of", "right": "on the right side of", "front": "in front of"}
"""Names that people give to sides."""
_IN_LISTS: Final = frozenset({"CC", "DT", "JJ", "CD", "NN", ","})


def places_first(sentence: Sentence) -> Sentence:
    """The place that a sentence starts with has the things behind its comma.

    "in the heart of a field , a man stands": -> relation man - stand in - field
    """
    relations = list(_in_place(sentence))
    return (
        sentence.having(sentence.labels._replace(relations=[*sentence.labels.relations, *relations]))
        if relations
        else sentence
    )


def _in_place(sentence: Sentence) -> Iterator[Relation]:
    words, tags = sentence.words, sentence.labels.tags
    comma = words.index(",") if "," in words else 0
    place, behind = comma - 1, sorted(noun for noun in sentence.labels.objects if noun > comma)
    if not behind or place not in sentence.labels.objects or place in sentence.linked() or tags[0] not in _PREPOSITIONS:
        return
    name = _place_name(words[: _start(tags, place, _IN_PLACES)])
    if not name or words[place] in _WIDE or "," in words[comma + 1 : behind[0]]:
        return
    subjects = behind[:1]
    for noun in behind[1:]:
        between = range(subjects[-1] + 1, noun)
        if "and" not in words[between.start : noun] or any(tags[at] not in _IN_LISTS for at in between):
            break
        subjects.append(noun)
    verb = next((at for at in range(subjects[-1] + 1, len(words)) if tags[at] != "RB"), 0)
    if words[verb] in _POSTURES and " " not in name:
        name = f"{verb_base(words[verb], tags[verb])} {name}"
    yield from ((noun, place, name) for noun in subjects)


def _place_name(inner: Sequence[str]) -> str:
    """Return the name of a relation to a place from the words before the place."""
    side = next((_SIDES[word] for word in inner if word in _SIDES), "")
    if side:
        return side
    if inner and inner[0] in _INSIDE and (not _INNERMOST.isdisjoint(inner) or inner[-1] in {"of", "in"}):
        return "in"
    stated = preposition(inner, 0, len(inner))
    return stated.name if stated else ""


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
