"""What graded matching reads in a caption beside SPICE's facts. SPICE's own scene graphs never hold it.

Loose words are content words that no rule of SPICE uses, each tied to the noun that it belongs to ("stand" of "a man
standing by a red wall"). Further facts say what is plural and how much of something there is, and notes how the words
of other facts are to be read. ``merge`` leaves all of this out unless the caller asks for it. Scene graphs (the graph
style ``scene``) have no edges: there a loose word belongs to the noun beside it.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from spicegraph_parser.languages import ENGLISH, Language
from spicegraph_parser.spice.parse import Caption, Parse, is_word
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.parse import Arc


def is_plural(tag: str) -> bool:
    """Say whether a tag is that of a plural noun."""
    return tag in {"NNS", "NNPS"}


def quantified(parse: Parse, nouns: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of quantities and their nouns: (pair, dogs) of "a pair of dogs"."""
    lemmas, quantities = parse.lemmas, parse.language.quantities
    if quantities.isdisjoint(lemmas):
        return
    links = {(head, dependent) for label, head, dependent in parse.arcs if label in {"nmod", "nmod:of"}}
    for label, noun, preposition in parse.arcs:
        quantity = preposition - 1
        if (
            label == "case"
            and (quantity, noun) in links
            and lemmas[preposition - 1] in parse.language.of
            and lemmas[quantity - 1] in quantities
            and quantity in nouns
            and noun in nouns
        ):
            yield quantity, noun


NEGATIONS: Final = ENGLISH.negations


def denied(parse: Parse) -> Iterator[tuple[int, int]]:
    """Yield the positions of words that a caption denies, each with that of the word that denies it."""
    # a man without a hat or a tie -> (hat, without) (tie, without)
    # a man is not wearing a hat   -> (hat, not): of a verb, its direct objects; also where "not" governs the verb
    # a man is not standing        -> (standing, not): or itself, if it has none
    # a no parking sign            -> nothing: what has an article is there
    language = parse.language
    if language.without.isdisjoint(parse.lemmas) and language.negations.isdisjoint(parse.lemmas):
        return
    for arc in parse.arcs:
        for position, negation in _denied_by(parse, arc):
            yield position, negation
            if _below(parse, position, "cc", language.alternatives):  # what these join to it is denied as well
                for label, governor, word_at in parse.arcs:
                    if governor == position and label.partition(":")[0] == "conj":
                        yield word_at, negation


def _denied_by(parse: Parse, arc: Arc) -> Iterator[tuple[int, int]]:
    """Yield the positions of each word that a dependency denies and of its negation."""
    language, (label, head, dependent) = parse.language, arc
    word, negation = parse.lemmas[dependent - 1], dependent
    positions = [head]
    if label == "xcomp" and parse.lemmas[head - 1] in language.negations:
        positions, negation = _objects(parse, dependent) or [dependent], head
    elif label == "neg" and word in language.negations:
        if word == "no" and _below(parse, head, "det", language.articles):
            return
        if parse.tags[head - 1].startswith("V"):
            positions = _objects(parse, head) or [head]
    elif label != "case" or word not in language.without:
        return
    for position in positions:
        yield position, negation


def _objects(parse: Parse, verb: int) -> list[int]:
    return [word for label, head, word in parse.arcs if head == verb and label in {"dobj", "iobj"}]


def _below(parse: Parse, head: int, label: str, lemmas: frozenset[str]) -> bool:
    return any(arc[:2] == (label, head) and parse.lemmas[arc[2] - 1] in lemmas for arc in parse.arcs)


# The ``rule`` of a fact that SPICE's own graphs never hold: of a loose word, of what is plural ("dog", "plural"), and
# of how much of something there is ("people", "group").
LOOSE: Final = "loose"
PLURAL: Final = "plural"
QUANTITY: Final = "quantity"

# That of a fact of a scene graph.
SCENE_RULE: Final = "scene"  # that the network labels
PHRASE_RULE: Final = "phrase"  # whose noun phrase the network does not know
PREPOSITION_RULE: Final = "preposition"  # a relation named by the caption's preposition
VALUE_RULE: Final = "value"  # a text or a measure that a thing has
WORDING_RULE: Final = "wording"  # what is denied, and adjectives that two things of a description share
OWNER_RULE: Final = "owner"  # a relation to what "its" or "his" stands for
SAID_RULE: Final = "said"  # of a description, that people do not draw, and that scores count all the same
# What SPICE counts beside: content words that no other fact has, and what is denied. Graded matching reads these as
# loose words and notes instead.
WORD_RULE: Final = "word"
SCENE_RULES: Final = frozenset(
    {SCENE_RULE, PHRASE_RULE, PREPOSITION_RULE, VALUE_RULE, WORDING_RULE, OWNER_RULE, SAID_RULE, WORD_RULE}
)

# That of a note, which says how other facts are read and is not a fact itself. Notes stand last.
STANDS_FOR: Final = "stands for"  # the first word stands for the second, at its place ("group" for "people")
NO_OBJECT: Final = "no object"  # the noun is part of a preposition ("front" of "in front of")
DENIED: Final = "denied"  # the first word is denied by the second ("hat" by "no")
LEMMA: Final = "lemma"  # of a scene graph: the first name is read as the second ("hot dogs" as "hot dog")
IMPLIED: Final = "implied"  # of a scene graph: a relation has other words than the caption's, which a loose fact has
NOTES: Final = frozenset({STANDS_FOR, NO_OBJECT, DENIED, LEMMA, IMPLIED})

_BESIDE: Final = NOTES | {LOOSE, PLURAL, QUANTITY}
_UNDRAWN: Final = _BESIDE | {SAID_RULE, WORD_RULE}
_OBJECT_SLOTS: Final = {1: 1, 2: 1, 3: 2}  # by the length of a fact


def _objects_at(facts: Iterable[Fact]) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    """Yield the words of objects: where each stands, the object's name, and where all its words stand."""
    for words, _, tokens in facts:
        for slot in range(_OBJECT_SLOTS[len(words)]):
            for token in tokens[slot]:
                yield token, words[slot], tokens[slot]


def _no_objects(facts: Iterable[Fact], nouns: Mapping[int, str]) -> Iterator[Fact]:
    """Yield a note for every noun that stands inside of a relation ("front" in "in front of"), and is no object."""
    relations = (tokens[2] for words, _, tokens in facts if len(words) == 3)
    joined = set(chain.from_iterable(tokens for tokens in relations if len(tokens) > 1))
    for token, noun in nouns.items():
        if token in joined:
            yield Fact((noun,), NO_OBJECT, ((token,),))


def loose_facts(caption: Caption, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield a caption's facts that SPICE leaves out: loose words, number, and then notes."""
    # a man standing (no tuple with "stand")  -> (man, stand)
    # a pair of dogs                          -> (dog, plural) (dog, pair), and "pair" stands for "dog"
    # a man with no hat                       -> "hat" is denied by "no"
    # dogs tug a toy (dogs, toy, get)         -> of scene graphs: (dogs, toy, tug), and "dogs" are read as "dog"
    nouns = {token: word for token, word, _ in _objects_at(facts)}
    notes = list(_no_objects(facts, nouns))
    denials = list(_denials(caption))
    negations = set(chain.from_iterable(note.tokens[1] for note in denials))
    if any(parse.arcs for parse in caption.sentences):
        yield from _loose_words(caption, facts, nouns, negations)
    else:
        for fact in (*_scene_words(caption, facts), *_name_lemmas(caption, facts)):
            if fact.rule in NOTES:
                notes.append(fact)
            else:
                yield fact
    absent = set(chain.from_iterable(note.tokens[0] for note in denials))
    notes += denials
    for fact in _numbers(caption, nouns, absent):
        yield fact
        if fact.rule == QUANTITY:
            notes.append(Fact(fact.words[::-1], STANDS_FOR, fact.tokens[::-1]))
    yield from notes


def _denials(caption: Caption) -> Iterator[Fact]:
    """Yield a note for each word that a caption denies."""
    offset = -1
    for parse in caption.sentences:
        for word, negation in denied(parse):
            words = parse.lemmas[word - 1], parse.lemmas[negation - 1]
            yield Fact(words, DENIED, ((offset + word,), (offset + negation,)))
        offset += len(parse.tags)


def _numbers(caption: Caption, nouns: Mapping[int, str], absent: set[int]) -> Iterator[Fact]:
    """Yield which nouns that are there are plural, and how much of them there is."""
    offset = 0
    for parse in caption.sentences:
        here = {token - offset + 1: noun for token, noun in nouns.items() if 0 <= token - offset < len(parse.tags)}
        plural = {
            noun: position
            for position, noun in here.items()
            if is_plural(parse.tags[position - 1]) and offset + position - 1 not in absent
        }
        for noun, position in plural.items():
            tokens = (offset + position - 1,)
            yield Fact((noun, PLURAL), PLURAL, (tokens, tokens))
        for quantity, noun_at in quantified(parse, here):
            places = (offset + noun_at - 1,), (offset + quantity - 1,)
            yield Fact((here[noun_at], here[quantity]), QUANTITY, places)
        offset += len(parse.tags)


def loose_words(caption: Caption, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield the facts of a scene graph's loose words alone; negations are no words of their own beside denied facts."""
    has_denials = any(fact.rule == DENIED for fact in facts)
    for fact in _scene_words(caption, facts):
        if fact.rule == LOOSE and not (has_denials and fact.words[-1] in NEGATIONS):
            yield fact


def without(apart: Sequence[Fact]) -> Iterator[Fact]:
    """Yield the negative facts of a scene graph: object "no hat", attribute "not red"."""
    denied = {fact.words[0] for fact in apart if fact.rule == DENIED and len(fact.words) == 1}
    for fact in apart:
        if fact.rule != DENIED:
            continue
        names = [f"no {name}" if name in denied else name for name in fact.words]
        if fact.words == tuple(names):
            names[-1] = f"not {names[-1]}"
        elif len(names) > 1:
            names[-1] = fact.words[-1]
        yield Fact(tuple(names), WORD_RULE, fact.tokens)


def without_loose(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return a caption's facts without those that SPICE has not, which stand last."""
    return facts_until(facts, _BESIDE)


def drawn(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return a caption's facts without loose words, and without those that people do not draw, which stand before."""
    return facts_until(facts, _UNDRAWN)


def facts_until(facts: Sequence[Fact], last: frozenset[str]) -> Sequence[Fact]:
    """Return facts without those at their end whose rule is one of the last."""
    end = len(facts)
    while end and facts[end - 1].rule in last:
        end -= 1
    return facts if end == len(facts) else facts[:end]


def _loose_words(
    caption: Caption, facts: Sequence[Fact], nouns: Mapping[int, str], negations: set[int]
) -> Iterator[Fact]:
    """Yield a fact for every content word, and negation that denies nothing, at which no fact stands."""
    # The word becomes an attribute of its own subject, of the noun it hangs on, however far up, or of a noun that hangs
    # on it; without any, an object.
    used = negations | _places(facts)
    offset = 0
    for parse in caption.sentences:
        heads = {dependent: head for _, head, dependent in parse.arcs}
        hung: dict[int, list[tuple[str, int]]] = {}
        for label, head, dependent in parse.arcs:
            hung.setdefault(head, []).append((label, dependent))
        for position, tag in enumerate(parse.tags, 1):
            token = offset + position - 1
            if token in used:
                continue
            lemma = parse.lemmas[position - 1]
            if _is_loose(tag, lemma, parse.language):
                noun = _noun_of(position, heads, hung, offset - 1, nouns)
                word = (lemma, (token,))
                owner = [] if noun is None or nouns[noun] == lemma else [(nouns[noun], (noun,))]
                words, tokens = zip(*owner, word, strict=True)
                yield Fact(words, LOOSE, tokens)
        offset += len(parse.tags)


_PRONOUNS: Final = frozenset(("he", "she", "it", "they", "him", "her", "them"))
"""No words of their own; scene graphs have the tags of nouns for pronouns that begin a sentence."""


def _is_loose(tag: str, lemma: str, language: Language = ENGLISH) -> bool:
    """Say whether a word that no fact stands at is worth a fact of its own."""
    is_content = tag.startswith(("NN", "VB", "JJ", "CD")) and lemma not in language.light and lemma not in _PRONOUNS
    return lemma in language.negations or is_content


def _scene_words(caption: Caption, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield a fact for every content word of a caption that no fact of its scene graph stands at, then notes."""
    # The last verb between two things is their relation, if the graph's name of it has a word that the caption lacks; a
    # note then says so. Any other verb becomes an attribute of the nearest noun before it in its sentence, or else
    # behind it; adjectives, numbers and negations the other way round; nouns, and words of sentences without any,
    # objects. Signs without a letter or a digit ("!!!") are not words.
    used = _places(facts)
    slots = {token: (word, tokens) for token, word, tokens in _objects_at(facts)}
    guessed = [fact for fact in facts if all(fact.tokens[:2]) and lacks_words(fact)]
    notes = []
    offset = 0
    for parse in caption.sentences:
        end = offset + len(parse.tags)
        nouns = [token for token in sorted(slots) if offset <= token < end]
        loose = _loose_at(parse, offset, used)
        for fact in guessed:
            if stated := _stated_relation(fact, parse, offset, loose):
                yield stated
                notes.append(fact._replace(rule=IMPLIED))
        for token, (lemma, tag) in loose.items():
            owner = [slots[noun] for noun in _nearest(nouns, token, tag) if slots[noun][0] != lemma]
            words, tokens = zip(*owner, (lemma, (token,)), strict=True)
            yield Fact(words, LOOSE, tokens)
        offset = end
    yield from notes


def _loose_at(parse: Parse, offset: int, used: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return lemma and tag of a sentence's content words at which no fact stands."""
    return {
        token: (lemma, tag)
        for token, (lemma, tag) in enumerate(zip(parse.lemmas, parse.tags, strict=True), offset)
        if token not in used and _is_loose(tag, lemma) and is_word(lemma)
    }


def _places(facts: Iterable[Fact]) -> set[int]:
    """Return all places at which facts stand."""
    return {token for fact in facts for slot in fact.tokens for token in slot}


def lacks_words(fact: Fact) -> bool:
    """Say whether a relation of a scene graph has a name with words that the caption lacks ("wear" of "in")."""
    return len(fact.words) == 3 and len(fact.tokens[2]) <= fact.words[2].count(" ")


def _stated_relation(fact: Fact, parse: Parse, offset: int, loose: dict[int, tuple[str, str]]) -> Fact | None:
    """Return a guessed relation as the last loose verb between its things states it, which is loose no more."""
    end = offset + len(parse.tags)
    (*_, first), (last, *_) = sorted(fact.tokens[:2])
    between = range(max(first + 1, offset), min(last, end))
    verbs = [token for token in between if token in loose and loose[token][1].startswith("V")]
    if not verbs:
        return None
    lemma, _ = loose.pop(verbs[-1])
    others = [parse.forms[token - offset].lower() for token in fact.tokens[2] if offset <= token < end]
    label, places = " ".join([lemma, *others]), (verbs[-1], *fact.tokens[2])
    return Fact((*fact.words[:2], label), LOOSE, (*fact.tokens[:2], places))


def _nearest(nouns: Sequence[int], token: int, tag: str) -> list[int]:
    """Return the noun that a loose word belongs to: a verb to one before it, a noun to none, others to one behind."""
    if tag.startswith("NN"):
        return []
    before = [noun for noun in nouns if noun < token][-1:]
    behind = [noun for noun in nouns if noun > token][:1]
    return before or behind if tag.startswith("V") else behind or before


def _name_lemmas(caption: Caption, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield a note for every name of an object or attribute whose last word is not its own lemma."""
    forms, lemmas = (
        list(chain.from_iterable(getattr(p, column) for p in caption.sentences)) for column in ("forms", "lemmas")
    )
    seen = set()
    for fact in facts:
        for name, tokens in islice(zip(fact.words, fact.tokens, strict=True), 2):
            before, space, last = name.rpartition(" ")
            if tokens and tokens not in seen and forms[tokens[-1]].lower() == last != lemmas[tokens[-1]]:
                seen.add(tokens)
                yield Fact((name, f"{before}{space}{lemmas[tokens[-1]]}"), LEMMA, (tokens, tokens))


def _noun_of(
    position: int,
    heads: Mapping[int, int],
    hung: Mapping[int, Sequence[tuple[str, int]]],
    shift: int,
    nouns: Mapping[int, str],
) -> int | None:
    """Return the token of the noun that a word belongs to; ``shift`` turns positions into tokens."""
    at, left = position, len(heads) + 1
    while at and left:
        if at != position and at + shift in nouns:
            return at + shift
        for label, dependent in hung.get(at, ()):
            if label.startswith("nsubj") and dependent + shift in nouns:
                return dependent + shift
        at, left = heads.get(at, 0), left - 1
    return next((d + shift for _, d in hung.get(position, ()) if d + shift in nouns), None)
