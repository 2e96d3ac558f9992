"""Passes over what descriptions put otherwise than captions: "its white structure", "frozen mid-flight".

The network learned from captions, which hardly have such words. Where it says nothing of them, these passes do; what it
says is kept.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from spicegraph_parser.scenes.visible import singular
from spicegraph_parser.scenes.words import NAMES, NOUNS, WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from spicegraph_parser.scenes.sentence import Sentence

Pair = tuple[int, int]
Relation = tuple[int, int, str]

_APART: Final = WORDS["hues"] | WORDS["surfaces"]
_MIXES: Final = WORDS["hues"] | WORDS["mixes"]
_HAVE_OR_WEAR: Final = WORDS["wears"] | WORDS["features"]
_IN_PHRASES: Final = frozenset({"DT", "JJ", "JJR", "CD", "RB", "NN", "NNP", "PRP$", "VBN"})
_IN_CLAUSES: Final = (["VBZ"], ["VBP"], ["VBD"], ["CC"])


def positions_in_names(sentence: Sentence) -> Sentence:
    """Positions are attributes and no part of a name; "bright blue" is "bright", too.

    "the left wing": name left wing -> attribute wing: left
    """
    labels, words = sentence.labels, sentence.words
    apart = [pair for pair in labels.parts if words[pair[1]] in WORDS["positions"]]
    bright = {head: at for head, at in labels.parts if words[at] in WORDS["shines"] and head not in labels.objects}
    kept = [pair for pair in labels.parts if pair not in {*apart, *bright.items()}]
    shining = [(noun, bright[colour]) for noun, colour in labels.attributes if colour in bright]
    return sentence.deciding(parts=kept).adding(attributes=[*apart, *shining])


def looks_of_owners(sentence: Sentence) -> Sentence:
    """What is said of the look of something is said of the thing, by its pronoun.

    "its smooth texture": attribute texture: smooth -> attribute its: smooth
    """
    labels, tags, looks = sentence.labels, sentence.labels.tags, _looks(sentence)
    others = sentence.deciding(
        objects=[at for at in labels.objects if at not in looks],
        attributes=[pair for pair in labels.attributes if pair[0] not in looks],
        relations=[row for row in labels.relations if looks.keys().isdisjoint(row[:2])],
    )
    said = ((start - 1, at) for noun, start in looks.items() for at in range(start, noun) if tags[at].startswith("JJ"))
    return others.adding(attributes=said)


def _looks(sentence: Sentence) -> dict[int, int]:
    """Return nouns of looks behind adjectives with an owner's pronoun, and where the adjectives start."""
    words, tags = sentence.words, sentence.labels.tags
    looks: dict[int, int] = {}
    for at in [at for at, word in enumerate(words) if word in WORDS["aspects"]]:
        start = at
        while start > 1 and tags[start - 1].startswith(("JJ", "CC")):
            start -= 1
        looks |= {at: start} if start < at and words[start - 1] in WORDS["things_owners"] else {}
    return looks


def colours_apart(sentence: Sentence) -> Sentence:
    """Colours that are said apart from what has them: "its white structure", "a red hue", "is a deep blue".

    "the sky is a clear blue": -> attribute sky: blue
    """
    said = {colour for _, colour in sentence.labels.attributes}
    for colours in _runs_of_colours(sentence):
        sentence = _with_colours(sentence, said, colours)
    return sentence


def _with_colours(sentence: Sentence, said: Collection[int], colours: Sequence[int]) -> Sentence:
    """Return a sentence in which what has colours has those of which nothing is said, or that are said of its look."""
    start, end = _around(sentence.labels.tags, colours)
    owner = _coloured(sentence, start, end)
    if owner is None:
        return sentence
    is_apart = end < len(sentence.words) and sentence.words[end] in _APART
    of_noun = {(end, colour) for colour in colours if is_apart}.intersection(sentence.labels.attributes)
    free = [(owner, colour) for colour in colours if colour not in said or (end, colour) in of_noun]
    kept = [pair for pair in sentence.labels.attributes if pair not in of_noun]
    return sentence.deciding(attributes=[*kept, *free])


def _runs_of_colours(sentence: Sentence) -> Iterator[list[int]]:
    """Yield the colours that stand together, with adjectives and words that join them between."""
    words, tags = sentence.words, sentence.labels.tags
    inside = [word in WORDS["joints_of_colours"] or tag == "JJ" for word, tag in zip(words, tags, strict=True)]
    run: list[int] = []
    for at, word in enumerate(words):
        if run and not (inside[at] or word in WORDS["colours"]):
            yield run
            run = []
        run += [at] if word in WORDS["colours"] else []
    if run:
        yield run


def _around(tags: Sequence[str], colours: Sequence[int]) -> Pair:
    """Return what is before a list of colours with its adverbs and adjectives, or -1, and what is behind it."""
    end = colours[-1] + 1
    end += sum(1 for _ in takewhile(lambda tag: tag == "JJ", tags[end:]))
    return next((at for at in range(colours[0] - 1, -1, -1) if tags[at] not in {"JJ", "RB", "DT"}), -1), end


def _coloured(sentence: Sentence, start: int, end: int) -> int | None:
    """Return what has the colours between two positions, if they are said apart from it; or a pronoun that owns it."""
    words = sentence.words
    before, behind = ("", *words)[start + 1], (*words, "")[end]
    is_hue, is_surface = behind in WORDS["hues"], behind in WORDS["surfaces"]
    if is_hue and words[end + 1 : end + 2] == ["of"] and WORDS["colours"].isdisjoint(words[end + 2 : end + 4]):
        return _only_noun(sentence, range(end + 2, len(words)))  # "the red hues of the sky"
    if behind in _APART and before in WORDS["things_owners"]:
        return start
    is_mix = not is_hue and before == "of" and ("", *words)[start] in _MIXES
    is_said = before == "'s" if is_surface else is_hue or is_mix or before in WORDS["are"]
    return _only_noun(sentence, range(start - 2 * is_mix, -1, -1)) if is_said else None


def _only_noun(sentence: Sentence, places: Iterable[int]) -> int | None:
    """Return the first noun of given places, if it is an object."""
    noun = next((at for at in places if sentence.labels.tags[at] in NOUNS), None)
    return noun if noun in sentence.labels.objects else None


def shared_adjectives(sentence: Sentence) -> Sentence:
    """The second of two things that "and" joins has the adjectives of the first.

    "white walls and ceilings": -> attribute ceilings: white
    """
    labels = sentence.labels
    plain = set(labels.objects).difference(dict(labels.attributes))
    seconds = [noun for noun in sorted(plain) if noun - 2 in labels.objects and _are_alike(sentence, noun)]
    adjectives = [pair for pair in labels.attributes if pair[1] < pair[0] and labels.tags[pair[1]].startswith("JJ")]
    return sentence.adding(attributes=[(noun, at) for noun in seconds for head, at in adjectives if head == noun - 2])


def _are_alike(sentence: Sentence, noun: int) -> bool:
    """Say whether "and" joins a noun to the one before, and not "dark hair and sunglasses"."""
    words, tags = sentence.words, sentence.labels.tags
    is_worn = tags[noun] != tags[noun - 2] and singular(words[noun]) in WORDS["garments"]
    return words[noun - 1] == "and" and words[noun - 2] != "hair" and not is_worn


def what_has_it(sentence: Sentence) -> Sentence:
    """What adorns or fills a thing, what a thing features or wears, items of lists, where nothing relates them.

    "a wall adorned with posters": -> relation posters - adorn - wall
    """
    related = sentence.linked()
    for noun in sorted(set(sentence.labels.objects))[1:]:
        if noun not in related:
            sentence = sentence.adding(relations=_stated_of(sentence, noun))
    return sentence


def _stated_of(sentence: Sentence, noun: int) -> Iterator[Relation]:
    """Yield relations of a noun by the word before its phrase, and those known of the item of a list before it."""
    words, tags, objects = sentence.words, sentence.labels.tags, sentence.labels.objects
    at = next((at for at in range(noun - 1, -1, -1) if tags[at] not in _IN_PHRASES or at in objects), 0)
    if words[at] == "with":
        yield from _by_with(sentence, noun, at)
    elif words[at] == "and" and not (words[at - 1] == "," and tags[noun + 1 : noun + 2] in _IN_CLAUSES):
        yield from _as_item_before(sentence, noun, at)
    elif words[at] in _HAVE_OR_WEAR and tags[at].startswith("VB"):
        yield _subject(sentence, at), noun, _having(words[at], words[noun])


def _having(verb: str, noun: str) -> str:
    return "wear" if verb in WORDS["wears"] and singular(noun) in WORDS["garments"] else "have"


def _by_with(sentence: Sentence, noun: int, at: int) -> Iterator[Relation]:
    """Yield that what is "lined with" something has it as its line, and what is "topped with" it has it."""
    words, tags = sentence.words, sentence.labels.tags
    verb = next((p for p in range(at - 1, -1, -1) if tags[p] != "RB"), 0)
    if words[verb] in NAMES["adorned"]:
        yield noun, _subject(sentence, verb), NAMES["adorned"][words[verb]]
    elif tags[verb] in {"VBN", "VBD"} or words[verb] in WORDS["teeming"]:
        yield _subject(sentence, verb), noun, "have"


def _as_item_before(sentence: Sentence, noun: int, joint: int) -> Iterator[Relation]:
    """Yield the relations of the item of a list before a noun, which are the noun's, too."""
    other = next((at for at in range(joint - 1, -1, -1) if sentence.words[at] != ","), 0)
    for subject, target, name in sentence.labels.relations:
        if target == other and subject < other:
            yield subject, noun, name
        elif subject == other and target < other:
            yield noun, target, name


def _subject(sentence: Sentence, verb: int) -> int:
    """Return the object right before a verb, but for adverbs and the like; else the first one."""
    words, tags, objects = sentence.words, sentence.labels.tags, sentence.labels.objects
    near = next((at for at in range(verb - 1, -1, -1) if tags[at] != "RB" and words[at] not in WORDS["links"]), 0)
    near -= words[near] == "," and words[near + 1] in {"which", "who", "that"}
    return near if near in objects else min(objects)
