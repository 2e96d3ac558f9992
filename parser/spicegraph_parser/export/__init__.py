"""Captions and scene graphs in the forms of other tools and data sets: JSON values, Graphviz, GraphML.

The picture of a graph is drawn in :mod:`spicegraph_parser.export.picture`.
"""

from __future__ import annotations

from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from spicegraph_parser.export.graph_text import graph_text
from spicegraph_parser.spice.extraction import CERTAINTY, ApartReason
from spicegraph_parser.spice.graph import Attribute, Relation, SceneGraph, SceneObject
from spicegraph_parser.spice.lexicon import load_lexicon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spicegraph_parser.spice.extraction import Entity, ParsedCaption
    from spicegraph_parser.spice.parse import Parse, Word

JsonDict = dict[str, Any]  # the function that makes one says which fields it has


def caption_dict(caption: ParsedCaption) -> JsonDict:
    """Return a caption's own tuples, in SPICE's order and before merging, with their rules and places."""
    # ``spans``: for each slot those of its words in ``text`` (code points, end excluded), as far as they stand there.
    # ``apart``: what the caption states but a picture cannot show, with the certainty, 0 to 1, that it can be seen.
    spans = [(word.start, word.end) for word in _words(caption)]

    def places(tokens: Iterable[int]) -> list[tuple[int, int]]:
        return [spans[token] for token in tokens if spans[token][0] >= 0]

    result: JsonDict = {
        "text": caption.text,
        "tuples": [list(fact.words) for fact in caption.facts],
        "rules": [fact.rule for fact in caption.facts],
        "spans": [list(map(places, fact.tokens)) for fact in caption.facts],
    }
    if caption.entities:
        result["entities"] = [
            {
                "name": entity.name,
                "spans": list(map(places, entity.mentions)),
                "attributes": list(entity.attributes),
                "relations": list(entity.relations),
                "member_of": entity.member_of,
            }
            for entity in caption.entities
        ]
    if caption.apart:
        result["apart"] = [
            {"tuple": list(fact.words), "reason": fact.rule, "certainty": CERTAINTY[ApartReason(fact.rule)]}
            for fact in caption.apart
        ]
    return result


def to_dot(graph: SceneGraph, *, title: str = "") -> str:
    """Return a Graphviz graph: objects as boxes, attributes as ellipses, relations as labelled arrows."""
    lines = [
        "digraph scene {",
        f"  graph [rankdir=LR, labelloc=t, label={_quoted(title)}]",
        '  node [fontname="Helvetica"]; edge [fontname="Helvetica"]',
    ]
    for index, node in enumerate(graph.objects):
        label = _quoted(node.concept.label)
        lines.append(f'  o{index} [shape=box, style=filled, fillcolor="#fde2e4", label={label}]')
    for index, attribute in enumerate(graph.attributes):
        lines.append(f'  a{index} [style=filled, fillcolor="#e2f0d9", label={_quoted(attribute.concept.label)}]')
        lines.append(f"  o{attribute.object} -> a{index} [arrowhead=none]")
    lines += [f"  o{r.subject} -> o{r.object} [label={_quoted(r.concept.label)}]" for r in graph.relations]
    return "\n".join([*lines, "}\n"])


def _quoted(text: str) -> str:
    """Return a Graphviz string that shows the text as it is: backslashes doubled, control characters as spaces."""
    return '"' + _printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _words(caption: ParsedCaption) -> list[Word]:
    return list(chain.from_iterable(parse.words for parse in caption.sentences))


def _sng_entity(words: Sequence[Word], head: int, in_front: Sequence[tuple[str, int]]) -> JsonDict:
    """Return a noun with the words in front of it, which are labels and places."""
    start = min([head, *(position for _, position in in_front)])
    inside = words[start : head + 1]
    return {
        "span": " ".join(word.form for word in inside),
        "lemma_span": " ".join(word.lemma for word in inside),
        "head": words[head].form,
        "lemma_head": words[head].lemma,
        "span_bounds": (start, head + 1),
        "modifiers": [
            {"dep": label, "span": words[position].form, "lemma_span": words[position].lemma}
            for label, position in in_front
        ],
        "type": "unknown",
    }


def sng_dict(caption: ParsedCaption) -> JsonDict:
    """Return a caption's graph in the shape of ``sng_parser.parse``: an entity for each noun in a fact.

    An entity is its head noun with the words in front of it, as text; ``span_bounds`` counts the caption's words
    from 0, the end excluded, and ``type`` is always ``unknown``, as it is there for most entities. Relations give the
    indices of two entities.

    What SPICE calls an attribute of a predicate ("the wall is white") has no place there, unless the word
    is in front of its noun; it is added to the entity's modifiers with the name of the rule as ``dep``.

    Example:
        >>> from spicegraph_parser import parse_captions
        >>> graph = sng_dict(next(parse_captions(["A man rides a brown horse."])))
        >>> [entity["span"] for entity in graph["entities"]], graph["relations"][0]["lemma_relation"]
        (['A man', 'a brown horse'], 'ride')
    """
    words = _words(caption)
    # Objects are the subject and the object of a relation, else the first slot.
    heads = sorted({fact.tokens[slot][0] for fact in caption.facts for slot in range(2 if len(fact.words) == 3 else 1)})
    in_front = _modifiers(caption.sentences)
    index = {head: number for number, head in enumerate(heads)}
    entities = [_sng_entity(words, head, in_front.get(head, [])) for head in heads]

    def text(positions: Sequence[int]) -> str:
        return " ".join(words[position].form for position in positions)

    relations = []
    for fact in caption.facts:
        if len(fact.words) == 2:
            modifiers = entities[index[fact.tokens[0][0]]]["modifiers"]
            span = text(fact.tokens[1]) or fact.words[1]
            if all(modifier["span"] != span for modifier in modifiers):
                modifiers.append({"dep": fact.rule, "span": span, "lemma_span": fact.words[1]})
        elif len(fact.words) == 3:
            relations.append(
                {
                    "subject": index[fact.tokens[0][0]],
                    "object": index[fact.tokens[1][0]],
                    "relation": text(fact.tokens[2]) or fact.words[2],
                    "lemma_relation": fact.words[2],
                }
            )
    return {"entities": entities, "relations": relations}


def _modifiers(sentences: Iterable[Parse]) -> dict[int, list[tuple[str, int]]]:
    """Return each word's modifiers in front of it as (relation, position), in word order."""
    modifying = {"det", "amod", "nummod", "compound", "nmod:poss", "det:qmod", "det:predet"}
    by_head: dict[int, list[tuple[str, int]]] = {}
    offset = 0
    for parse in sentences:
        for edge in parse.edges:
            if edge.label in modifying and edge.dependent < edge.head:
                by_head.setdefault(offset + edge.head - 1, []).append((edge.label, offset + edge.dependent - 1))
        offset += len(parse.words)
    return {head: sorted(modifiers, key=itemgetter(1)) for head, modifiers in by_head.items()}


def discosg_dict(caption: ParsedCaption) -> JsonDict:
    """Return a caption's graph as DiscoSG's records have it: FACTUAL's notation beside the text."""
    return {"caption": caption.text, "scene_graph": graph_text(caption.tuples)}


def visual_genome_dict(caption: ParsedCaption, image_id: int) -> JsonDict:
    """Return a graph as ``scene_graphs.json`` of Visual Genome has it, without boxes; ``phrase`` is the caption."""
    names, said = _numbered(caption)
    attributes: list[list[str]] = [[] for _ in names]
    relations = []
    for words, ends in said:
        if len(words) == 2:
            attributes[ends[0]].append(words[1])
        else:
            relations.append((words[2], *ends))
    return {
        "image_id": image_id,
        "phrase": caption.text,
        "objects": [
            {"object_id": at, "names": [name], "attributes": own}
            for at, (name, own) in enumerate(zip(names, attributes, strict=True))
        ],
        "relationships": [
            {"relationship_id": number, "predicate": predicate, "subject_id": subject, "object_id": target}
            for number, (predicate, subject, target) in enumerate(relations)
        ],
    }


_Said: TypeAlias = "tuple[tuple[str, ...], tuple[int, ...]]"  # an attribute or a relation, and its objects' numbers


def _said_of(entities: Sequence[Entity]) -> Iterator[_Said]:
    """Yield the relations of entities, then their attributes."""
    for at, entity in enumerate(entities):
        for name, to in entity.relations:
            yield (entity.name, entities[to].name, name), (at, to)
    for at, entity in enumerate(entities):
        for name in entity.attributes:
            yield (entity.name, name), (at,)


def _numbered(caption: ParsedCaption) -> tuple[list[str], list[tuple[tuple[str, ...], tuple[int, ...]]]]:
    """Return the names of objects, and attributes and relations, each with the numbers of its objects.

    Things that share a name are objects of their own where the graph tells things apart.
    """
    if caption.entities:
        return [entity.name for entity in caption.entities], list(_said_of(caption.entities))
    objects = dict.fromkeys(name for words in caption.tuples for name in (words[:2] if len(words) == 3 else words[:1]))
    numbers = {name: number for number, name in enumerate(objects)}
    rows = [(words, tuple([numbers[end] for end in words[:-1]])) for words in caption.tuples if len(words) > 1]
    return list(numbers), rows


def thing_graph(caption: ParsedCaption) -> SceneGraph:
    """Return a caption's graph with an object for each thing: of a scene graph also for those that share a name."""
    if not caption.entities:
        return caption.graph()
    names, said = _numbered(caption)
    concept = load_lexicon().exact_concept
    return SceneGraph(
        tuple([SceneObject(concept(name), ()) for name in names]),
        tuple([Attribute(ends[0], concept(words[1]), ()) for words, ends in said if len(words) == 2]),
        tuple([Relation(ends[0], ends[1], concept(words[2]), ()) for words, ends in said if len(words) == 3]),
    )


def dsg_dict(caption: ParsedCaption, kind: Callable[[Sequence[str]], str] | None = None) -> JsonDict:
    """Return a caption's graph as a Davidsonian Scene Graph (Cho et al., ICLR 2024), without questions."""
    # ``qid2dependency`` has the numbers of the tuples that each depends on, [0] for none. ``kind`` gives the second
    # part of an attribute's or a relation's type, such as ``color``; by default ``state`` and ``action``.
    names, said = _numbered(caption)
    tuples = {str(number): f"entity - whole ({_argument(name)})" for number, name in enumerate(names, 1)}
    needs = {number: [0] for number in tuples}
    for number, (words, ends) in enumerate(said, len(names) + 1):
        form, usual = ("attribute", "state") if len(words) == 2 else ("relation", "action")
        tuples[str(number)] = f"{form} - {kind(words) if kind else usual} ({', '.join(map(_argument, words))})"
        needs[str(number)] = sorted({end + 1 for end in ends})
    return {"text": caption.text, "qid2tuple": tuples, "qid2dependency": needs}


def _argument(word: str) -> str:
    return " ".join(word.replace(",", " ").replace("(", " ").replace(")", " ").split())


def to_graphml(graphs: Iterable[tuple[str, SceneGraph]]) -> str:
    """Return captions with their graphs as one GraphML document: objects are nodes, relations edges."""
    import networkx as nx  # noqa: PLC0415 (0.2 s of import that only this needs)

    whole: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for number, (text, graph) in enumerate(graphs):
        for index, node in enumerate(graph.objects):
            attributes = [attribute.concept.label for attribute in graph.attributes if attribute.object == index]
            labels = {"label": _printable(node.concept.label), "attributes": _printable("; ".join(attributes))}
            whole.add_node(f"{number}.{index}", **labels, caption=number, text=_printable(text))
        for relation in graph.relations:
            ends = f"{number}.{relation.subject}", f"{number}.{relation.object}"
            whole.add_edge(*ends, label=_printable(relation.concept.label))
    return "\n".join(nx.generate_graphml(whole)) + "\n"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def json_ld(graphs: Iterable[tuple[str, SceneGraph]]) -> dict[str, object]:
    """Return captions with their graphs as a JSON-LD document: blank nodes in a vocabulary of its own."""
    nodes: list[object] = []
    for number, (text, graph) in enumerate(graphs):
        ids = [f"_:c{number}o{index}" for index in range(len(graph.objects))]
        objects = [
            {
                "@id": ids[index],
                "@type": "Object",
                "label": node.concept.label,
                "attributes": [a.concept.label for a in graph.attributes if a.object == index],
            }
            for index, node in enumerate(graph.objects)
        ]
        relations = [
            {
                "@type": "Relation",
                "label": relation.concept.label,
                "subject": {"@id": ids[relation.subject]},
                "object": {"@id": ids[relation.object]},
            }
            for relation in graph.relations
        ]
        nodes.append(
            {"@id": f"_:c{number}", "@type": "Caption", "text": text, "objects": objects, "relations": relations}
        )
    return {"@context": {"@vocab": "urn:spicegraph:scene-graph:"}, "@graph": nodes}
