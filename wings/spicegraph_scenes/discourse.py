"""Pronouns that stand for something in an earlier sentence of a long caption.

SPICE 1.0 looks for antecedents inside a sentence only; so this is a pipeline of its own ("A dog lies. It is brown.").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.spice.parse import Caption, Parse, word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONG = "+long"  # what a pipeline's name ends with where pronouns are resolved across sentences
PERSONAL = word_set("he him his himself she her hers herself")
THINGS = word_set("it its itself")
SEVERAL = word_set("they them their theirs themselves")
_RESOLVED = PERSONAL | THINGS | SEVERAL
PERSONS = word_set(
    """adult artist athlete baby batter biker bride boy boyfriend brother catcher chef child cook couple cowboy
    customer cyclist dad dancer daughter doctor driver employee father female fireman fisherman friend gentleman
    girl girlfriend goalie groom guard guy husband infant jockey kid lady machinist male man mom mother
    motorcyclist musician narrator nurse officer operator passenger pedestrian person pilot pitcher player
    policeman rider sailor server singer sister skateboarder skater skier snowboarder soldier someone son speaker
    spectator student surfer teacher teenager toddler umpire vendor waiter waitress wife woman worker youth"""
)
_SINGULAR = frozenset({"NN", "NNP"})
_PLURAL = frozenset({"NNS", "NNPS"})
_Noun = tuple[str, str]  # lemma and tag
_Nouns = tuple[_Noun, ...]  # of a sentence, the most prominent first: subjects, the root, then the others in order


def resolve_across(caption: Caption) -> Caption:
    """Return the caption with pronouns of later sentences, at their places, as the nouns that they stand for."""
    # A pronoun behind a noun of its own sentence that it can stand for is left to the rules' clean-up. Another one
    # takes the most prominent noun (a subject before others) that agrees with it in number and kind (persons for "he"
    # and "she", others for "it" where there are any) in the nearest earlier sentence that has one.
    if len(caption.sentences) < 2:
        return caption
    earlier: list[_Nouns] = []
    sentences = []
    for parse in caption.sentences:
        resolved = _resolve(parse, earlier) if earlier else parse
        earlier.insert(0, tuple(_in_order_of_prominence(resolved)))
        sentences.append(resolved)
    return Caption(caption.text, tuple(sentences))


def _antecedent(word: str, earlier: Iterable[_Nouns]) -> tuple[str, str] | None:
    """Return the noun of the nearest sentence that has one that a pronoun may stand for."""
    for nouns in earlier:
        fitting = [noun for noun in nouns if _fits(word, noun)]
        if not fitting and word in THINGS:  # "it" may be a person ("a baby") where nothing else is
            fitting = [noun for noun in nouns if noun[1] in _SINGULAR]
        if fitting:
            return fitting[0]
    return None


def _resolve(parse: Parse, earlier: Iterable[_Nouns]) -> Parse:
    """Put nouns of earlier sentences, the nearest first, in the place of a sentence's pronouns."""
    tags, lemmas = list(parse.tags), list(parse.lemmas)
    expletives = {dependent for label, _, dependent in parse.arcs if label == "expl"}
    for position, (tag, form) in enumerate(zip(parse.tags, parse.forms, strict=True)):
        word = form.lower()
        if not tag.startswith("PRP") or position + 1 in expletives:
            continue
        if word not in _RESOLVED:  # "I" and "you" stand for nobody in the picture
            continue
        if any(_fits(word, noun) for noun in zip(lemmas[:position], tags[:position], strict=True)):
            continue
        lemmas[position], tags[position] = _antecedent(word, earlier) or (lemmas[position], tags[position])
    if tags == list(parse.tags):
        return parse
    return Parse.from_columns(parse.forms, tags, lemmas, parse.arcs, parse.spans, language=parse.language)


def _fits(word: str, noun: _Noun) -> bool:
    """Say whether a pronoun can stand for a noun: by number, and persons for "he" and "she" alone."""
    lemma, tag = noun
    if word in SEVERAL:
        return tag in _PLURAL
    return tag in _SINGULAR and (lemma in PERSONS) == (word in PERSONAL)


def _in_order_of_prominence(parse: Parse) -> Iterator[_Noun]:
    nouns = {
        position: (lemma, tag)
        for position, (lemma, tag) in enumerate(zip(parse.lemmas, parse.tags, strict=True), start=1)
        if tag in _SINGULAR | _PLURAL
    }
    first = [dependent for label, _, dependent in parse.arcs if label in {"nsubj", "nsubjpass"}]
    first += [dependent for _, head, dependent in parse.arcs if head == 0]
    for position in dict.fromkeys([*first, *nouns]):
        if position in nouns:
            yield nouns[position]
