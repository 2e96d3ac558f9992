"""From a parsed caption to its facts: collapse, clean up, rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.errors import LimitError
from spicegraph_parser.spice.cleanup import clean_up
from spicegraph_parser.spice.collapse import collapse
from spicegraph_parser.spice.graph import SceneGraph, merge
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.loose import (
    DENIED,
    LOOSE,
    NEGATIONS,
    SAID_RULE,
    WORD_RULE,
    loose_facts,
    loose_words,
    without,
)
from spicegraph_parser.spice.parse import Caption, Parse
from spicegraph_parser.spice.rules import Fact, apply_rules

if TYPE_CHECKING:
    from spicegraph_parser.spice.index import Synonyms

MAX_FACTS = 100_000  # Most facts that a caption may have; a COCO caption has up to 26.


class ApartReason(StrEnum):
    """Reason to keep a tuple apart from the visible facts."""

    DENIED = "denied"
    HEDGED = "hedged"
    ABSTRACT = "abstract"
    PLACE = "place"
    SUMMARY = "summary"
    FAINT = "faint"


CERTAINTY: Final = {
    ApartReason.DENIED: 0.0,
    ApartReason.ABSTRACT: 0.05,
    ApartReason.HEDGED: 0.1,
    ApartReason.PLACE: 0.1,
    ApartReason.SUMMARY: 0.05,
    ApartReason.FAINT: 0.2,
}
"""How certain it is that what a tuple says can be seen; 1 for all others.

Rounded shares of what people drew all the same in 300 descriptions of DiscoSG; of places, summaries and what is faint,
in 100 (``training/scenes.md``).
"""

SAID: Final = frozenset(ApartReason) - {ApartReason.DENIED}
"""Why people do not draw what a text says of the picture; scores count it all the same."""


class Entity(NamedTuple):
    """A thing in a scene, told apart from others of its name: two dogs are two, which facts do not say."""

    name: str  # of its object in the facts
    mentions: tuple[tuple[int, ...], ...]  # of each, the words that name it or stand for it; words count as in facts
    attributes: tuple[str, ...]
    relations: tuple[tuple[str, int], ...]  # with the index of the entity at the other end
    member_of: int | None = None  # the group that it is one of ("two men ... one of them")


@dataclass(frozen=True, slots=True)
class ParsedCaption:
    """A caption, the parses of its sentences and the facts that the rules found in it, in SPICE's order.

    ``apart`` has what the scene parser read, but what can't be seen or what people do not draw; the ``rule`` of each of
    these facts says why (``denied``, ``hedged``: :class:`ApartReason`). ``entities`` are the things of a
    scene graph, told apart also where they share a name; ``is_scene``: this is a scene graph, and not SPICE's own.
    """

    text: str
    sentences: tuple[Parse, ...]
    facts: tuple[Fact, ...]
    apart: tuple[Fact, ...] = ()
    entities: tuple[Entity, ...] = ()
    is_scene: bool = False

    @property
    def tuples(self) -> tuple[tuple[str, ...], ...]:
        """The facts as plain tuples: (object), (object, attribute) or (subject, object, relation)."""
        return tuple(fact.words for fact in self.facts)

    @property
    def said(self) -> tuple[Fact, ...]:
        """The facts that SPICE counts: of a scene graph also all else that the caption says.

        A denied thing is an object ("no hat"). A content word in no other fact is an attribute, a
        relation or an object: so captions that differ in a content word differ in their facts.
        """
        if not self.is_scene:
            return self.facts
        stated = self._stated
        loose = loose_words(Caption(self.text, self.sentences), (*self.facts, *self.apart))
        return (*stated, *without(self.apart), *[fact._replace(rule=WORD_RULE) for fact in loose])

    @property
    def _stated(self) -> tuple[Fact, ...]:
        """The facts that people draw, and the caption's other statements about the picture."""
        if not self.apart:
            return self.facts
        return (*self.facts, *[fact._replace(rule=SAID_RULE) for fact in self.apart if fact.rule in SAID])

    @property
    def every_fact(self) -> tuple[Fact, ...]:
        """The facts that scores count, and behind them those of loose words, which SPICE's graphs leave out."""
        said = self.said
        loose = loose_facts(Caption(self.text, self.sentences), self._stated)
        if not self.apart:
            return (*said, *loose)
        denied = [fact for fact in self.apart if fact.rule == DENIED and len(fact.words) == 1]
        absent = set(chain.from_iterable(fact.tokens[0] for fact in denied))
        present = (fact for fact in loose if absent.isdisjoint(chain.from_iterable(fact.tokens)))
        kept = [fact for fact in present if not (denied and _is_negation(fact))]
        named = [fact._replace(rule=LOOSE) for fact in denied]
        notes = [Fact((fact.words[0], "no"), DENIED, (fact.tokens[0], ())) for fact in denied]
        return (*said, *named, *kept, *notes)

    def graph(self, lexicon: Synonyms | None = None, *, exact: bool = False) -> SceneGraph:
        """Return the scene graph of this caption alone."""
        graph = merge([self.facts], lexicon or load_lexicon(), exact=exact)
        return replace(graph, spans=(tuple([span for parse in self.sentences for span in parse.spans]),))


def extract(caption: Caption) -> ParsedCaption:
    """Return the facts of a caption from its basic or collapsed dependencies; their tokens count all its words, from 0.

    Raises:
        LimitError: the caption has more than ``MAX_FACTS`` facts: subjects and objects that share a verb multiply.
    """
    facts: list[Fact] = []
    offset = 0
    for number, parse in enumerate(caption.sentences):
        sentence_facts = apply_rules(clean_up(collapse(parse, sentence=number), offset=offset, sentence=number))
        facts += islice(sentence_facts, MAX_FACTS + 1 - len(facts))
        if len(facts) > MAX_FACTS:
            raise LimitError(f"the caption {caption.text[:60]!r}... has more than {MAX_FACTS:,} facts")
        offset += len(parse.forms)
    return ParsedCaption(caption.text, caption.sentences, tuple(facts))


def _is_negation(fact: Fact) -> bool:
    return fact.rule == LOOSE and fact.words[-1] in NEGATIONS
