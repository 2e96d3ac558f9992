"""How descriptions put what captions put otherwise: "its white structure", "frozen mid-flight", "adorned with lights".

The network learned from captions, which hardly have such words. Where it says nothing of them, these rules do; what it
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

    from spicegraph_parser.scenes.network import Labels

Pair = tuple[int, int]
Relation = tuple[int, int, str]


_PORTIONS: Final = word_set("part portion rest half majority")
_POSITIONS: Final = word_set("left right front back rear hind upper lower")
_SHINES: Final = word_set("bright vibrant")


def put_plainly(labels: Labels, words: Sequence[str]) -> Labels:
    """Return the labels that a sentence of a description would have if it were put as captions are."""
    tags, parts = labels.tags, []
    attributes = _of_their_nouns(labels, words)
    for head, part in labels.parts:
        if words[part] in _POSITIONS:
            attributes.append((head, part))
        elif words[part] in _SHINES and head not in labels.objects:
            attributes += [(noun, part) for noun, colour in labels.attributes if colour == head]
        else:
            parts.append((head, part))
    aspects = owned_aspects(words, tags)
    if aspects:
        of_owners = [(owner, at) for noun, owner in aspects.items() for at in range(owner + 1, noun)]
        attributes = [pair for pair in attributes if pair[0] not in aspects]
        attributes += [pair for pair in of_owners if tags[pair[1]].startswith("JJ")]
    objects = [at for at in labels.objects if at not in aspects]
    relations = [
        row
        for row in labels.relations
        if aspects.keys().isdisjoint(row[:2]) and not is_of_list(words, tags, *sorted(row[:2]))
    ]
    attributes = colours_apart(words, tags, objects, attributes)
    attributes += attributes_apart(words, tags, objects, attributes)
    relations += stated(words, tags, objects, relations)
    return labels._replace(objects=objects, parts=parts, attributes=attributes, relations=relations)


_CLAUSES: Final = frozenset({"IN", "VBZ", "VBP", "VBD"})
_COMMA_AND_ARTICLE: Final = frozenset({(",", "DT"), (",", "PRP$")})


def _of_their_nouns(labels: Labels, words: Sequence[str]) -> list[Pair]:
    """Return attributes without those of another item of a list ("blue legs, green eyes") and of portions."""
    tags, given = labels.tags, set(labels.attributes)
    kept = []
    for noun, at in labels.attributes:
        if at < noun and "of" in words[at:noun] and (tags[at] == "CD" or words[at] in _PORTIONS):
            continue
        other = at + 1
        while tags[other : other + 1] and tags[other].startswith(("JJ", "NN", "CC")) and other not in labels.objects:
            other += 1
        between = words[min(noun, at) : max(noun, at)]
        is_listed = other != noun and (other, at) in given and "," in between
        if noun < at and other != noun and (other, at) in given and not _PREPOSITIONS.isdisjoint(tags[noun:at]):
            continue  # "an arched window out at the blue sky"
        if at < noun and (
            _COMMA_AND_ARTICLE.intersection(pairwise(tags[at:noun]))
            or any(tags[p] in _CLAUSES and words[p] != "of" for p in range(at + 1, noun))
        ):
            continue  # "pink embroidery, a black tank top"; "two tables with chairs", "an overhead shot shows a bun"
        if not is_listed or (at < noun and not tags[noun - 1].startswith("JJ")):
            kept.append((noun, at))
    return kept


def is_of_list(words: Sequence[str], tags: Sequence[str], first: int, second: int) -> bool:
    """Say whether only "and", articles, adjectives and an amount stand between two things ("and a piece of onion")."""
    return (
        words[first + 1] == "and"
        and "of" in words[first:second]
        and all(
            tag in _IN_LISTS or tag.startswith("NN") or words[at] == "of"
            for at, tag in enumerate(tags[first + 1 : second], first + 1)
        )
    )


_COLOURS: Final = word_set(tables(__package__)["colours"])
_HUES: Final = word_set("hue hues color colors colour colours shade shades tone tones tint tints scheme expanse")
_SURFACES: Final = word_set("structure structures surface surfaces exterior exteriors facade facades finish")
_APART: Final = _HUES | _SURFACES
_MIXES: Final = _HUES | word_set("mix blend mixture combination canvas")
_OWNERS: Final = word_set("its their")
_JOINTS: Final = word_set(", and or &")
_BE: Final = word_set("is are")
_LINKS: Final = _BE | word_set("who which that has have been also")
_BEFORE_COLOURS: Final = frozenset({"JJ", "RB", "DT"})


def colours_apart(
    words: Sequence[str], tags: Sequence[str], objects: Collection[int], attributes: Sequence[Pair]
) -> list[Pair]:
    """Return attributes with the colours that are said apart ("its white structure", "a red hue", "is a deep blue")."""
    out = list(attributes)
    if _COLOURS.isdisjoint(words):
        return out
    said = {colour for _, colour in attributes}
    at = 0
    while at < len(words):
        if words[at] not in _COLOURS:
            at += 1
            continue
        colours = [at]
        for position in range(at + 1, len(words)):
            if words[position] in _COLOURS:
                colours.append(position)
            elif words[position] not in _JOINTS and tags[position] != "JJ":
                break
        end = colours[-1] + 1  # of the list; adjectives may follow
        end += sum(1 for _ in takewhile(lambda tag: tag == "JJ", tags[end:]))
        start = next((position for position in range(at - 1, -1, -1) if tags[position] not in _BEFORE_COLOURS), -1)
        is_apart = end < len(words) and words[end] in _APART
        of_noun = {(end, colour) for colour in colours} & set(out) if is_apart else set()
        owner = _coloured(words, tags, objects, (start, end))
        if owner is not None:
            free = [colour for colour in colours if colour not in said or (end, colour) in of_noun]
            out = [*(pair for pair in out if pair not in of_noun), *((owner, colour) for colour in free)]
        at = colours[-1] + 1
    return out


_ASPECTS: Final = word_set("form forms shape presence texture design surface surfaces structure")
_MATERIALS: Final = word_set(tables(__package__)["materials"])
_MADE: Final = word_set("made constructed built composed crafted")
_OF_OR_FROM: Final = word_set("of from")
_AMOUNTS: Final = word_set(tables(__package__)["amounts"])
_PLAIN_COLOURS: Final = word_set("deep light dark stark soft pale rich muted")
_LATE: Final = _COLOURS | _MATERIALS  # said behind what has them
_ADJECTIVES: Final = ("JJ", "CC")
_IN_NOUN_PHRASES: Final = ("JJ", "NN", "RB", "DT")


def _start(tags: Sequence[str], at: int, kinds: tuple[str, ...]) -> int:
    """Return where the words right before a position start whose tags are of given kinds."""
    while at and tags[at - 1].startswith(kinds):
        at -= 1
    return at


def owned_aspects(words: Sequence[str], tags: Sequence[str]) -> dict[int, int]:
    """Return what is said of the look of something ("its smooth texture"): the noun's position, and its pronoun's."""
    if _OWNERS.isdisjoint(words):
        return {}
    starts = {at: _start(tags, at, _ADJECTIVES) for at, word in enumerate(words) if word in _ASPECTS}
    return {at: start - 1 for at, start in starts.items() if start < at and start and words[start - 1] in _OWNERS}


def attributes_apart(
    words: Sequence[str], tags: Sequence[str], objects: Collection[int], attributes: Sequence[Pair]
) -> list[Pair]:
    """Return further attributes said apart from what has them ("frozen mid-flight"), or of the first of two alone."""
    out: list[Pair] = []
    said = {at for _, at in attributes}
    late = [(at, word) for at, word in enumerate(words) if word in _LATE or word.startswith("mid-")]
    for at, word in late:
        if word in _COLOURS and at not in objects:
            start = _start(tags, at, _ADJECTIVES)
            noun = next((noun for noun, colour in attributes if colour == at), start)
            if noun < start < at and words[start - 1] == "a":
                plain = _COLOURS | _PLAIN_COLOURS
                out += [(noun, p) for p in range(start, at) if tags[p].startswith("JJ") and words[p] not in plain]
        if at in said:
            continue
        start = at
        if word in _MATERIALS:
            start = _start(tags, at, _IN_NOUN_PHRASES) - 1
            if start < 1 or words[start] not in _OF_OR_FROM or words[start - 1] not in _MADE:
                continue
        elif not word.startswith("mid-") or at in objects:
            continue
        out += [(noun, at) for noun in (max((noun for noun in objects if noun < start), default=-1),) if noun >= 0]
    with_attributes = {noun for noun, _ in attributes}
    for noun in sorted(set(objects) - with_attributes):
        if noun > 1 and words[noun - 1] == "and" and noun - 2 in objects:
            if words[noun - 2] == "hair" or (tags[noun] != tags[noun - 2] and singular(words[noun]) in GARMENTS):
                continue  # "dark hair and sunglasses"
            shared = [at for head, at in (*attributes, *out) if head == noun - 2 and at < head]
            out += [(noun, at) for at in shared if tags[at].startswith("JJ")]
    for noun in sorted(objects):
        amount = _start(tags, noun, _IN_NOUN_PHRASES) - 2
        if amount > 0 and words[amount + 1] == "of" and words[amount] in _AMOUNTS and amount not in objects:
            out += [(noun, at) for at in range(_start(tags, amount, ("JJ",)), amount) if at not in said]
    return [pair for pair in dict.fromkeys(out) if pair not in attributes]


def _coloured(words: Sequence[str], tags: Sequence[str], objects: Collection[int], around: Pair) -> int | None:
    """Return what has the colours between two positions, if they are said apart from it; or a pronoun that owns it."""
    start, end = around
    behind = words[end] if end < len(words) else ""
    before = words[start] if start >= 0 else ""
    if behind in _HUES and words[end + 1 : end + 2] == ["of"] and _COLOURS.isdisjoint(words[end + 2 : end + 4]):
        return _only_noun(range(end + 2, len(words)), tags, objects)  # "the red hues of the sky"
    if behind in _APART and before in _OWNERS:
        return start
    skipped = 0
    if behind in _SURFACES and before != "'s":
        return None
    if behind not in _APART:
        if before not in _BE and not (before == "of" and words[start - 1 : start] and words[start - 1] in _MIXES):
            return None
        skipped = 1 if before in _BE else 2
    return _only_noun(range(start - skipped, -1, -1), tags, objects)


def _only_noun(places: Iterable[int], tags: Sequence[str], objects: Collection[int]) -> int | None:
    """Return the first noun of given places, if it is an object."""
    noun = next((at for at in places if tags[at].startswith("NN")), None)
    return noun if noun in objects else None


_ADORNED: Final = {
    "lined": "line",
    **dict.fromkeys(("adorned", "decorated", "embellished"), "adorn"),
    **dict.fromkeys(("covered", "carpeted", "blanketed"), "cover"),
}
_TEEMING: Final = word_set("teeming brimming bursting")
_FEATURES: Final = word_set("features featuring boasts boasting displays displaying bears bearing showcases houses has")
_WEARS: Final = word_set("sporting sports sport donning dons wears wearing")
_HAVE_OR_WEAR: Final = _FEATURES | _WEARS
_PAST: Final = frozenset({"VBN", "VBD"})
_IN_PHRASES: Final = frozenset({"DT", "JJ", "JJR", "CD", "RB", "NN", "NNP", "PRP$", "VBN"})


def stated(
    words: Sequence[str], tags: Sequence[str], objects: Collection[int], relations: Sequence[Relation]
) -> Iterator[Relation]:
    """Yield relations (subject, object, name) that a sentence states of objects that the network relates to none."""
    related = {end for relation in relations for end in relation[:2]}
    ordered = sorted(objects)
    yield from _in_place(words, tags, ordered, related)
    for noun in ordered:
        if noun == ordered[0] or noun in related:
            continue
        before = (at for at in range(noun - 1, -1, -1) if tags[at] not in _IN_PHRASES or at in objects)
        verb = next(before, 0)
        if words[verb] == "with":
            verb = next((at for at in range(verb - 1, -1, -1) if tags[at] != "RB"), 0)
            if words[verb] in _ADORNED:
                yield noun, _subject(words, tags, ordered, verb), _ADORNED[words[verb]]
            elif tags[verb] in _PAST or words[verb] in _TEEMING:
                yield _subject(words, tags, ordered, verb), noun, "have"
        elif words[verb] == "and" and not (words[verb - 1] == "," and tags[noun + 1 : noun + 2] in _FINITE):
            other = next((at for at in range(verb - 1, -1, -1) if words[at] != ","), 0)
            for subject, target, name in relations:
                if target == other and subject < other:
                    yield subject, noun, name
                elif subject == other and target < other:
                    yield noun, target, name
        elif words[verb] in _HAVE_OR_WEAR and tags[verb].startswith("VB"):
            is_worn = words[verb] in _WEARS and singular(words[noun]) in GARMENTS
            yield _subject(words, tags, ordered, verb), noun, "wear" if is_worn else "have"


_FINITE: Final = (["VBZ"], ["VBP"], ["VBD"], ["CC"])
_RELATIVES: Final = word_set("which who that")
_PREPOSITIONS: Final = frozenset({"IN", "TO"})
_IN_PLACES: Final = ("DT", "JJ", "NN", "CD", "VBN", "VBG", "RB")
_WIDE: Final = word_set("background city")  # places that people do not draw a thing in
_INNERMOST: Final = word_set("heart midst center middle")
_INSIDE: Final = word_set("in inside within")
_POSTURES: Final = word_set("stand stands sit sits lie lies hang hangs rise rises rest rests")
_SIDES: Final = {"left": "at the left of", "right": "on the right side of", "front": "in front of"}
"""Names that people give to sides."""


def _in_place(
    words: Sequence[str], tags: Sequence[str], ordered: Sequence[int], related: Collection[int]
) -> Iterator[Relation]:
    """Yield the relations to the place that a sentence starts with ("in the heart of a field , a man stands")."""
    comma = words.index(",") if "," in words else 0
    place, behind = comma - 1, [noun for noun in ordered if noun > comma]
    if place not in ordered or place in related or not behind or tags[0] not in _PREPOSITIONS:
        return
    start = _start(tags, place, _IN_PLACES)
    inner = words[:start]
    stated_preposition = preposition(inner, 0, start)
    name = stated_preposition.name if stated_preposition else ""
    if inner and inner[0] in _INSIDE and (not _INNERMOST.isdisjoint(inner) or inner[-1] in {"of", "in"}):
        name = "in"
    name = next((_SIDES[word] for word in inner if word in _SIDES), name)
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


_IN_LISTS: Final = frozenset({"CC", "DT", "JJ", "CD", "NN", ","})


def _subject(words: Sequence[str], tags: Sequence[str], ordered: Sequence[int], verb: int) -> int:
    """Return the object right before a verb, but for adverbs and the like; else the first one."""
    near = next((at for at in range(verb - 1, -1, -1) if tags[at] != "RB" and words[at] not in _LINKS), 0)
    near -= words[near] == "," and words[near + 1] in _RELATIVES
    return near if near in ordered else ordered[0]
