"""What graded matching reads in the facts of captions: quantities, denials, and values that exclude each other."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from spicegraph_parser.spice import loose
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

NO: Final = "no "  # What stands before a word that is denied: "no hat".

_EMPTY_WORDS: Final = frozenset({"a", "be", "do", "have"})
_OF_THE_QUANTITY: Final = frozenset({"amod", "compound", "count"})  # rules: "a large group", "two pairs"
_OBJECT_SLOTS: Final = {1: 1, 2: 1, 3: 2}  # by the length of a fact

_NUMBERS_ALONE: Final = word_set("one two three four five six seven eight nine ten eleven twelve")
_READ: Final = _EMPTY_WORDS | _NUMBERS_ALONE
_COPULA: Final = "be "
_words_of: Final = itemgetter(0)  # of a fact
_FUNCTION_WORDS: Final = word_set(
    """
    a an the be have do of in on at to with by for from as into onto over under near next through along across around
    against behind beside between above below among inside outside out up down off about before after while and or
    than like toward towards upon within without beneath underneath amongst atop via during past per alongside amid
    since until except
    """
)

_Slot = tuple[str, tuple[int, ...]]


def comparable_facts(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts that graded matching compares.

    Attributes that say nothing are left out: SPICE makes ("banana", "a") of "a bunch of bananas". A quantity is read
    as its members: "a large group of people" are people; the group says how many they are, not that they are large.
    Nouns of prepositions are not objects, nor are numbers ("two" in "two of the dogs", or where the parse takes it for
    a noun). What is denied is an object, attribute or relation of its own: "no hat".
    """
    return read_caption(facts)[0]


def read_caption(facts: Sequence[Fact]) -> tuple[Sequence[Fact], frozenset[str]]:
    """Return the facts of :func:`comparable_facts` and their content words; a denied one is "no hat"."""
    if facts and facts[0][1] in loose.SCENE_RULES:
        facts = [fact for fact in facts if fact[1] != loose.WORD_RULE]
    if facts and facts[-1][1] in loose.NOTES:  # in few captions
        facts = _as_noted(facts)
    strings = set(chain.from_iterable(map(_words_of, facts)))
    if not strings.isdisjoint(_READ):  # in some captions
        facts = [fact for fact in facts if len(words := fact[0]) != 2 or words[1] not in _EMPTY_WORDS]
        if not _NUMBERS_ALONE.isdisjoint(strings):
            facts = list(_without_numbers(facts))
        strings = set(chain.from_iterable(map(_words_of, facts)))
    if facts and facts[0][1] in loose.SCENE_RULES:
        strings = _stated(facts)
    return facts, _content_of(facts, strings)


def _without_numbers(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield facts of things alone; of a relation to a number ("two"), the label is an attribute of the other end."""
    for fact in facts:
        words, rule, tokens = fact
        ends = [end for end in (0, 1)[: _OBJECT_SLOTS[len(words)]] if words[end] not in _NUMBERS_ALONE]
        if len(ends) == _OBJECT_SLOTS[len(words)]:
            yield fact
        elif len(words) == 3:
            label = words[2].removeprefix(_COPULA)
            for end in ends:
                yield Fact((words[end], label), rule, (tokens[end], tokens[2]) if tokens else ())


def content_words(facts: Iterable[Fact]) -> frozenset[str]:
    """Return the content words of comparable facts, whatever they are said of; "no hat" is one."""
    given_facts = list(facts)
    return _content_of(given_facts, _stated(given_facts))


def _content_of(facts: Sequence[Fact], strings: set[str]) -> frozenset[str]:
    """Return the content words of facts, given all their strings; the mark of plurals is not a word."""
    if loose.PLURAL in strings and not any(loose.PLURAL in words for words, rule, _ in facts if rule != loose.PLURAL):
        strings = strings - {loose.PLURAL}
    return frozenset(chain.from_iterable(map(_content, strings)))


def _stated(facts: Iterable[Fact]) -> set[str]:
    """Return the strings of facts, without scene graphs' names of relations that the caption lacks ("wear" of "in")."""
    # A fact without places, as a changed graph has, has the names that it was given.
    return set(
        chain.from_iterable(
            words[:2]
            if tokens and rule in loose.SCENE_RULES and len(words) == 3 and len(tokens[2]) <= words[2].count(" ")
            else words
            for words, rule, tokens in facts
        )
    )


@lru_cache(maxsize=50_000)
def _content(string: str) -> tuple[str, ...]:
    if string.startswith(NO):
        return (string,)
    return tuple([word for word in string.split() if word not in _FUNCTION_WORDS])


def _as_named(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return a scene graph's facts with lemmas for names, and each relation as stated best."""
    lemmas = {tokens[0][-1]: words for words, rule, tokens in facts if rule == loose.LEMMA}
    implied = {(words, tokens) for words, rule, tokens in facts if rule == loose.IMPLIED}
    if not lemmas and not implied:
        return facts
    scene_facts = []
    for words, rule, tokens in facts:
        if rule not in {loose.LEMMA, loose.IMPLIED} and (words, tokens) not in implied:
            said = [_lemma(word, of_slot, lemmas) for word, of_slot in zip(words, tokens, strict=True)]
            scene_facts.append(Fact(tuple(said), rule, tokens))
    return scene_facts


def _lemma(word: str, tokens: Sequence[int], lemmas: Mapping[int, tuple[str, ...]]) -> str:
    """Return the lemma of a name, by the last of its tokens, or the name."""
    name, *lemma = lemmas.get(tokens[-1], ("",)) if tokens else ("",)
    return lemma[0] if lemma and name == word else word


def _as_noted(facts: Sequence[Fact]) -> list[Fact]:
    """Return facts as their notes say; of scene graphs, with lemmas for names, and each relation as stated best."""
    facts = _as_named(facts)
    told = loose.facts_until(facts, loose.NOTES)
    notes = facts[len(told) :]
    quantities = {tokens[0]: (words[1], tokens[1]) for words, rule, tokens in notes if rule == loose.STANDS_FOR}
    no_objects, denied = (
        {tokens[0] for _, rule, tokens in notes if rule == wanted} for wanted in (loose.NO_OBJECT, loose.DENIED)
    )
    if not quantities and not denied:  # as in most captions with notes
        return [fact for fact in told if len(fact[2]) > 1 or fact[2][0] not in no_objects]
    return list(_with_quantities(told, quantities, no_objects, denied))


Tokens: TypeAlias = "tuple[int, ...]"


def _with_quantities(
    told: Sequence[Fact], quantities: Mapping[Tokens, tuple[str, Tokens]], no_objects: set[Tokens], denied: set[Tokens]
) -> Iterator[Fact]:
    """Yield facts in which things stand for their quantities, with "large" and "two" of these, and denials."""
    noted = {*quantities, *no_objects, *denied}
    sizes: defaultdict[Tokens, list[str]] = defaultdict(list)  # "large", "two": of the quantity itself
    for fact in told:
        words, rule, tokens = fact
        if noted.isdisjoint([slot_tokens[:1] for slot_tokens in tokens]):
            yield fact
        elif rule in _OF_THE_QUANTITY and tokens[0] in quantities:
            sizes[tokens[0]].append(words[1])
        elif rule == loose.QUANTITY and tokens[1] in sizes:
            size = " ".join([*dict.fromkeys(sizes[tokens[1]]), words[1]])
            yield from _read(Fact((words[0], size), rule, tokens), quantities, denied)
        elif len(tokens) > 1 or tokens[0] not in no_objects:
            yield from _read(fact, quantities, denied)


def _read(fact: Fact, quantities: Mapping[tuple[int, ...], _Slot], denied: Container[tuple[int, ...]]) -> list[Fact]:
    """Return a fact with nouns for their quantities and denials marked; none where it's reflexive."""
    slots = list(zip(fact.words, fact.tokens, strict=True))
    for slot in range(_OBJECT_SLOTS[len(slots)]):
        for _ in quantities:  # "two pairs of a group": as many steps as there are quantities
            slots[slot] = quantities.get(slots[slot][1], slots[slot])
    if len(slots) > 1 and slots[0][1] == slots[1][1] != fact.tokens[0]:
        return []
    words = [NO + word if slot_tokens[:1] in denied else word for word, slot_tokens in slots]
    return [Fact(tuple(words), fact.rule, tuple([slot_tokens for _, slot_tokens in slots]))]


Values = frozenset[tuple[str, int]]  # A family and a number each: ``gray/grey`` has one, ``red`` another.

FAMILIES: Final[Mapping[str, str]] = {
    "colour": "black brown blue red yellow pink gray/grey green white orange purple maroon beige violet tan",
    "count": "one/1/single two/2/couple/pair three/3/trio four/4 five/5 six/6 seven/7 eight/8 nine/9 ten/10",
}  # Families of words that exclude each other; a slash joins words that do not.

_NUMBERS: Final[Mapping[str, tuple[str, int]]] = {
    word: (family, value)
    for family, words in FAMILIES.items()
    for value, group in enumerate(words.split())
    for word in group.split("/")
}


def values_of(strings: Iterable[str]) -> Values:
    """Return the values that a concept's strings have."""
    return frozenset([_NUMBERS[string] for string in strings if string in _NUMBERS])


@lru_cache(maxsize=4096)
def deny(values: Values, others: Values) -> bool:
    """Say whether concepts exclude each other by their values: both have some of a family, and none in common."""
    families = {family for family, _ in values} & {family for family, _ in others}
    return any(all(family != common for family, _ in values & others) for common in families)


def verdicts(
    candidate: Sequence[tuple[int, Values]], reference: Sequence[tuple[int, Values]]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return which concepts of two lists exclude each other, and which say the same value ("two" and "a pair")."""
    excluded, agreed = [], []
    for row, candidate_values in candidate:
        for column, reference_values in reference:
            if deny(candidate_values, reference_values):
                excluded.append((row, column))
            elif not candidate_values.isdisjoint(reference_values):
                agreed.append((row, column))
    return excluded, agreed
