"""A parsed caption as the dict of ``sng_parser`` (SceneGraphParser), for code that reads that."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_parser.extract import ParsedCaption
    from spicegraph_parser.parse import Parse, Word
    from spicegraph_parser.rules import Fact

__all__ = ["SngEntity", "SngGraph", "SngModifier", "SngRelation", "sng_dict"]

_MODIFIERS = frozenset({"det", "amod", "nummod", "compound", "nmod:poss", "det:qmod", "det:predet"})


class SngModifier(TypedDict):
    """A word or phrase in front of an entity's head."""

    dep: str
    span: str
    lemma_span: str


class SngEntity(TypedDict):
    """An object: its head noun with what stands in front of it, as text; ``span_bounds`` are word positions.

    ``span_bounds`` counts the caption's words from 0, the end excluded. ``type`` is always ``unknown``, as
    it is there for most entities.
    """

    span: str
    lemma_span: str
    head: str
    lemma_head: str
    span_bounds: tuple[int, int]
    modifiers: list[SngModifier]
    type: str


class SngRelation(TypedDict):
    """A relation between two entities, which are given by index."""

    subject: int
    object: int
    relation: str
    lemma_relation: str


class SngGraph(TypedDict):
    """A scene graph as ``sng_parser.parse`` returns it."""

    entities: list[SngEntity]
    relations: list[SngRelation]


def sng_dict(caption: ParsedCaption) -> SngGraph:
    """Return a caption's graph in the shape of ``sng_parser.parse``: an entity for each noun in a fact.

    What SPICE calls an attribute of a predicate ("the wall is white") has no place there, unless the word
    stands in front of its noun; it is added to the entity's modifiers with the name of the rule as ``dep``.

    Example:
        >>> from spicegraph_parser import parse_captions
        >>> graph = sng_dict(next(parse_captions(["A man rides a brown horse."])))
        >>> [entity["span"] for entity in graph["entities"]], graph["relations"][0]["lemma_relation"]
        (['A man', 'a brown horse'], 'ride')
    """
    words = [word for parse in caption.sentences for word in parse.words]
    heads = sorted({fact.tokens[slot][0] for fact in caption.facts for slot in _object_slots(fact)})
    in_front = _modifiers(caption.sentences)
    index = {head: number for number, head in enumerate(heads)}
    entities = [_entity(head, words, in_front.get(head, [])) for head in heads]
    relations: list[SngRelation] = []
    for fact in caption.facts:
        if len(fact.words) == 2:
            _add_attribute(fact, entities[index[fact.tokens[0][0]]], words)
        elif len(fact.words) == 3:
            relations.append(
                {
                    "subject": index[fact.tokens[0][0]],
                    "object": index[fact.tokens[1][0]],
                    "relation": _text(words, fact.tokens[2]) or fact.words[2],
                    "lemma_relation": fact.words[2],
                }
            )
    return {"entities": entities, "relations": relations}


def _object_slots(fact: Fact) -> range:
    """Return the slots of a fact that hold objects: subject and object of a relation, else the first."""
    return range(2 if len(fact.words) == 3 else 1)


def _modifiers(sentences: Iterable[Parse]) -> dict[int, list[tuple[str, int]]]:
    """Return for every word what modifies it from the front: (relation, position), in the order of the words."""
    found: dict[int, list[tuple[str, int]]] = {}
    offset = 0
    for parse in sentences:
        for edge in parse.edges:
            if edge.label in _MODIFIERS and edge.dependent < edge.head:
                found.setdefault(offset + edge.head - 1, []).append((edge.label, offset + edge.dependent - 1))
        offset += len(parse.words)
    return {head: sorted(modifiers, key=_position) for head, modifiers in found.items()}


def _position(modifier: tuple[str, int]) -> int:
    return modifier[1]


def _entity(head: int, words: Sequence[Word], modifiers: Sequence[tuple[str, int]]) -> SngEntity:
    start = min([head, *(position for _, position in modifiers)])
    inside = words[start : head + 1]
    return {
        "span": " ".join(word.form for word in inside),
        "lemma_span": " ".join(word.lemma for word in inside),
        "head": words[head].form,
        "lemma_head": words[head].lemma,
        "span_bounds": (start, head + 1),
        "modifiers": [
            {"dep": label, "span": words[position].form, "lemma_span": words[position].lemma}
            for label, position in modifiers
        ],
        "type": "unknown",
    }


def _add_attribute(fact: Fact, entity: SngEntity, words: Sequence[Word]) -> None:
    span = _text(words, fact.tokens[1]) or fact.words[1]
    if all(modifier["span"] != span for modifier in entity["modifiers"]):
        entity["modifiers"].append({"dep": fact.rule, "span": span, "lemma_span": fact.words[1]})


def _text(words: Sequence[Word], positions: Sequence[int]) -> str:
    return " ".join(words[position].form for position in positions)
