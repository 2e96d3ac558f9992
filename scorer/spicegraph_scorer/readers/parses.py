"""Where facts come from besides a pipeline: graphs as text or in files, and parses that another parser made.

Graphs are read in the notations of data sets (FACTUAL, DiscoSG, Visual Genome, Davidsonian Scene Graphs) and of graph
tools (JSON-LD, GraphML) that ``spicegraph parse`` writes. Every fault of a file is in one error, with its line or image
and its field. Objects are known by their names: two men are one object, as everywhere in SPICE.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from spicegraph_parser.errors import InputError
from spicegraph_parser.export.graph_text import graph_fault, is_graph_text, read_graph_text
from spicegraph_parser.fronts.conllu import read_conllu
from spicegraph_parser.fronts.ud2 import Scheme, ud1_lines
from spicegraph_parser.languages import find_language
from spicegraph_parser.spice.extraction import ParsedCaption, extract
from spicegraph_parser.spice.loose import SAID_RULE, WORD_RULE
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.facts import FactSource, FunctionSource
from spicegraph_scorer.readers.checks import Fault, label, refuse_faults, shown
from spicegraph_scorer.readers.records import decode, read_all, read_lines
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import Item


def graph_texts(source: FactSource, graphs: Mapping[str, ParsedCaption] | None = None) -> FunctionSource:
    """Return a source for captions and graphs as text, ``( man , ride , horse )`` or another notation, side by side."""
    # Whether a text is a graph, the text alone decides; the others go to the source, also those that only look like
    # one, which check_graphs finds. Of a description beside graphs only what people would draw counts: people drew the
    # graphs.
    known = graphs or {}

    def facts(texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        wanted = [(text, known.get(text) or _graph_of(text)) for text in texts]
        parsed = source.facts([text for text, graph in wanted if not isinstance(graph, ParsedCaption)])
        return (
            graph.facts
            if isinstance(graph, ParsedCaption)
            else tuple([fact for fact in next(parsed) if fact.rule not in {SAID_RULE, WORD_RULE}])
            for _, graph in wanted
        )

    return FunctionSource(f"{source.signature}+graphs", facts, getattr(source, "language", None))


def check_graphs(items: Iterable[Item], *, source: str) -> dict[str, ParsedCaption]:
    """Return the texts of items that are graphs; refuse one that only looks so, which would be parsed as a caption."""
    graphs: dict[str, ParsedCaption] = {}
    faults: list[Fault] = []
    for number, item in enumerate(items, start=1):
        references = ((f"references[{index}]", text) for index, text in enumerate(item.references))
        for name, text in (("candidate", item.candidate), *references):
            graph = graphs.get(text) or _graph_of(text)
            if isinstance(graph, ParsedCaption):
                graphs[text] = graph
            elif graph is not None:
                faults.append(Fault(label(f"item {number}", item.id), name, str(graph)))
    refuse_faults(source, faults)
    return graphs


def is_graph(text: str) -> bool:
    """Say whether a text is a scene graph in one of the notations, or looks like one; else it is a caption."""
    return _graph_of(text) is not None


def _graph_of(text: str) -> ParsedCaption | Fault | None:
    """Return the graph that a text is, or what is wrong with one that looks like it; ``None``: it is a caption."""
    if is_graph_text(text):
        return ParsedCaption(text, (), read_graph_text(text))
    if reason := graph_fault(text):
        return Fault("", "", reason)
    notation = next((notation for notation, looks in _LOOKS.items() if looks.match(text)), None)
    if notation is None:
        return None
    read = list(_READERS[notation](text.splitlines()))
    faults = [graph for graph in read if isinstance(graph, Fault)]
    if faults or len(read) != 1:
        return faults[0] if faults else Fault("", "", f"has {len(read)} graphs, expected one")
    return read[0]


def given_parses(parses: Mapping[str, tuple[Fact, ...]], signature: str) -> FunctionSource:
    """Return a source of captions that were parsed before, by text; an InputError lists those without a parse."""

    def facts(texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        wanted = [_key(text) for text in texts]
        missing = [text for text in dict.fromkeys(wanted) if text not in parses]
        refuse_faults("parses", [Fault(f"caption {shown(text)}", "", "has no parse") for text in missing])
        return (parses[text] for text in wanted)

    return FunctionSource(signature, facts)


def read_parses(path: str, *, scheme: Scheme = Scheme.AUTO, language: str = "en") -> FunctionSource:
    """Read parses in CoNLL-U, Universal Dependencies v1 or v2, whose ``# text`` lines are captions in a language.

    A caption of several sentences begins with ``# newdoc``; then every caption of the file must. No caption may have
    two different parses.
    """
    lines = read_lines(path)
    parses: dict[str, tuple[Fact, ...]] = {}
    spoken = find_language(language)
    rows = ud1_lines(lines, scheme=scheme, language=spoken)
    for caption in read_conllu(rows, source=path, language=spoken):
        facts = extract(caption).every_fact
        if parses.setdefault(_key(caption.text), facts) != facts:
            raise InputError(f"{path}: the caption {shown(caption.text)} has two different parses")
    if not parses:
        raise InputError(f"{path}: contains no parse")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
    return replace(given_parses(parses, f"parses-{digest}"), language=spoken.code)


def _key(text: str) -> str:
    """Return a caption with single spaces, as a CoNLL-U comment holds it."""
    return " ".join(text.split())


class Notation(StrEnum):
    """How a file writes scene graphs."""

    FACTUAL = "factual"
    DISCOSG = "discosg"
    VISUAL_GENOME = "visual-genome"
    DSG = "dsg"
    JSON_LD = "json-ld"
    GRAPHML = "graphml"


_Read: TypeAlias = "Iterator[ParsedCaption | Fault]"
_RULE: Final = "given graph"
_EXPECTED: Final = "is not a graph, expected ( subject , relation , object ) , ..."
_DSG_LINE: Final = re.compile(r"\s*\d+\s*\|\s*(.*)")
_DSG_TUPLE: Final = re.compile(r"\s*([a-z]+)\s*(?:-\s*[^()]*)?\((.*)\)\s*", re.IGNORECASE)
_DSG_ARGUMENTS: Final = {"entity": 1, "attribute": 2, "relation": 3}
_MOST_ARGUMENTS: Final = 3
_GLOBAL: Final = "global"


def read_graphs(path: str, notation: Notation) -> Iterator[ParsedCaption]:
    """Read the graphs of a file; the captions' texts are those of the file, if it has any.

    - ``factual``: a graph on each line, ``( man , ride , horse ) , ( horse , is , brown )``.
    - ``discosg``: an object on each line, or a list of them, with ``scene_graph`` in that form, and ``caption``.
    - ``visual-genome``: ``scene_graphs.json`` or ``region_graphs.json``, a list of images; a region is a caption.
    - ``dsg``: ``1 | entity - whole (man)`` on each line, an empty line between graphs; or an object on each line with
      ``qid2tuple``. What a tuple says of the whole image (``global``) is left out.
    - ``json-ld``, ``graphml``: what :mod:`spicegraph_parser.export` writes; GraphML lacks captions without objects.
    """
    with open_source(path, limits=DEFAULT_LIMITS) as source:
        content = read_all(source, limits=DEFAULT_LIMITS)
    try:
        read = list(_READERS[notation](content.decode("utf-8-sig").splitlines()))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error.reason} at byte {error.start})") from error
    faults = [graph for graph in read if isinstance(graph, Fault)]
    refuse_faults(path, faults)
    if not read:
        raise InputError(f"{path}: contains no graph")
    return (graph for graph in read if isinstance(graph, ParsedCaption))


def _parsed(text: str, facts: Iterable[Fact]) -> ParsedCaption:
    return ParsedCaption(text, (), tuple(facts))


def _of_text(location: str, field: str, graph: str, text: str) -> ParsedCaption | Fault:
    if graph.strip() and not is_graph_text(graph):
        return Fault(location, field, graph_fault(graph) or f"{_EXPECTED}, got {shown(graph)}")
    return _parsed(text, read_graph_text(graph) if graph.strip() else ())


def _objects(lines: Sequence[str]) -> Iterator[tuple[str, Mapping[str, object] | Fault]]:
    """Yield the objects of a JSON list, or of one per line, each with its place."""
    content = "\n".join(lines).encode()
    if content.lstrip()[:1] == b"[":
        value, reason = decode(content)
        rows = value if isinstance(value, list) else [Fault("", "", reason)]
        values = [(f"item {number}", row) for number, row in enumerate(rows, start=1)]
    else:
        decoded = [(f"line {number}", *decode(line.encode())) for number, line in enumerate(lines, 1) if line.strip()]
        values = [(location, Fault(location, "", reason) if reason else value) for location, value, reason in decoded]
    for location, value in values:
        if isinstance(value, dict | Fault):
            yield location, value
        else:
            yield location, Fault(location, "", f"is {shown(value)}, expected an object")


def _discosg(lines: Sequence[str]) -> _Read:
    for location, fields in _objects(lines):
        if isinstance(fields, Fault):
            yield fields
            continue
        graph, text = fields.get("scene_graph"), fields.get("caption", "")
        wrong = [
            (name, value) for name, value in (("scene_graph", graph), ("caption", text)) if not isinstance(value, str)
        ]
        yield from (Fault(location, name, _not_a("string", value)) for name, value in wrong)
        if isinstance(graph, str) and isinstance(text, str):
            yield _of_text(location, "scene_graph", graph, text)


def _not_a(kind: str, value: object) -> str:
    return "is missing" if value is None else f"is {shown(value)}, expected {'an' if kind == 'object' else 'a'} {kind}"


def _visual_genome(lines: Sequence[str]) -> _Read:
    for item, image in _objects(lines):
        if isinstance(image, Fault):
            yield image
            continue
        image_id = image.get("image_id", image.get("id"))
        location = label(item, image_id) if isinstance(image_id, int | str) else item
        regions = image.get("regions")
        if regions is None:
            yield from _genome_graph(location, "", image, str(image.get("phrase", image_id)))
        elif isinstance(regions, list):
            for index, region in enumerate(regions):
                field = f"regions[{index}]"
                if isinstance(region, dict):
                    yield from _genome_graph(location, f"{field}.", region, str(region.get("phrase", "")))
                else:
                    yield Fault(location, field, _not_a("graph", region))
        else:
            yield Fault(location, "regions", _not_a("list", regions))


class _Keys(NamedTuple):
    """Key names of a scene-graph notation; the defaults are Visual Genome's."""

    objects: str = "objects"
    id: str = "object_id"
    name: str = "names"
    relations: str = "relationships"
    subject: str = "subject_id"
    target: str = "object_id"
    predicate: str = "predicate"


_GENOME: Final = _Keys()
_LINKED: Final = _Keys(
    id="@id", name="label", relations="relations", subject="subject", target="object", predicate="label"
)


def _json_ld(lines: Sequence[str]) -> _Read:
    value, reason = decode("\n".join(lines).encode())
    graphs = value.get("@graph") if isinstance(value, dict) else None
    if not isinstance(graphs, list):
        yield Fault("", "@graph", reason or _not_a("list", graphs))
        return
    for number, caption in enumerate(graphs, start=1):
        if isinstance(caption, dict):
            yield from _genome_graph(f"item {number}", "", caption, str(caption.get("text", "")), _LINKED)
        else:
            yield Fault(f"item {number}", "", _not_a("object", caption))


def _graphml(lines: Sequence[str]) -> _Read:
    import networkx as nx  # noqa: PLC0415 (0.2 s of import that only this needs)

    try:
        whole = nx.parse_graphml("\n".join(lines), force_multigraph=True)
    except (SyntaxError, KeyError, ValueError, nx.NetworkXError) as error:  # a ParseError is a SyntaxError
        yield Fault("", "", f"is not GraphML ({error})")
        return
    captions: dict[object, dict[str, Any]] = {}
    for name, row in whole.nodes(data=True):
        graph_row = captions.setdefault(
            row.get("caption", 0), {"text": row.get("text", ""), "objects": [], "relations": []}
        )
        said = [part for part in str(row.get("attributes", "")).split("; ") if part]
        graph_row["objects"].append({"@id": name, "label": row.get("label"), "attributes": said})
    for subject, target, row in whole.edges(data=True):
        relation = {"subject": subject, "object": target, "label": row.get("label")}
        captions[whole.nodes[subject].get("caption", 0)]["relations"].append(relation)
    for number, caption in captions.items():
        yield from _genome_graph(f"caption {number}", "", caption, str(caption["text"]), _LINKED)


def _genome_graph(location: str, path: str, graph: Mapping[str, object], text: str, keys: _Keys = _GENOME) -> _Read:
    faults: list[Fault] = []

    def listed(name: str) -> Iterator[tuple[str, dict[str, object]]]:
        value = graph.get(name)
        if not isinstance(value, list):
            faults.append(Fault(location, path + name, _not_a("list", value)))
            return
        for index, row in enumerate(value):
            field = f"{path}{name}[{index}]"
            if isinstance(row, dict):
                yield field, row
            else:
                faults.append(Fault(location, field, _not_a("object", row)))

    names: dict[int | str, str] = {}
    attributes: dict[tuple[str, ...], None] = {}
    relations: dict[tuple[str, ...], None] = {}
    for field, row in listed(keys.objects):
        faults += (Fault(location, f"{field}.{key}", why) for key, why in _genome_object(row, keys, names, attributes))
    for field, row in listed(keys.relations):
        faults += (Fault(location, f"{field}.{key}", why) for key, why in _genome_relation(row, keys, names, relations))
    yield from faults
    if not faults:
        rows = (*relations, *attributes, *dict.fromkeys((name,) for name in names.values()))
        yield _parsed(text, [Fact(words, _RULE, ()) for words in rows])


def _genome_object(
    row: Mapping[str, object], keys: _Keys, names: dict[int | str, str], attributes: dict[tuple[str, ...], None]
) -> Iterator[tuple[str, str]]:
    """Add an object and its attributes; yield what is wrong with it: a key and the reason."""
    object_id, given, said = row.get(keys.id), row.get(keys.name, row.get("name")), row.get("attributes") or []
    name = given[0] if isinstance(given, list) and given else given
    if not isinstance(object_id, int | str):
        yield keys.id, _not_a("number", object_id)
    elif object_id in names:
        yield keys.id, "is the id of an earlier object"
    if not isinstance(name, str) or not name.strip():
        yield keys.name, _not_a("name", name)
    elif isinstance(object_id, int | str):
        names[object_id] = _word(name)
        if isinstance(said, list) and all(isinstance(each, str) for each in said):
            attributes |= {(names[object_id], _word(each)): None for each in said if each.strip()}
        else:
            yield "attributes", _not_a("list of strings", said)


def _genome_relation(
    row: Mapping[str, object], keys: _Keys, names: Mapping[int | str, str], relations: dict[tuple[str, ...], None]
) -> Iterator[tuple[str, str]]:
    """Add a relation; yield what is wrong with it: a key and the reason."""
    known: list[str] = []
    for key in (keys.subject, keys.target):
        given = row.get(key)
        end = given.get(keys.id) if isinstance(given, dict) else given
        if isinstance(end, int | str) and end in names:
            known.append(names[end])
        else:
            yield key, f"{shown(end)} is not the {keys.id} of an object"
    predicate = row.get(keys.predicate)
    if not isinstance(predicate, str) or not predicate.strip():
        yield keys.predicate, _not_a("name", predicate)
    elif len(known) == 2:
        relations[known[0], known[1], _word(predicate)] = None


def _word(text: str) -> str:
    return " ".join(text.split()).lower()


def _dsg(lines: Sequence[str]) -> _Read:
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip()[:1] in {"{", "["}:
        for location, fields in _objects(lines):
            given = fields if isinstance(fields, Fault) else fields.get("qid2tuple")
            if isinstance(fields, Fault):
                yield fields
            elif isinstance(given, dict):
                rows = [(location, f"qid2tuple[{key}]", str(value)) for key, value in given.items()]
                yield from _dsg_graph(rows, str(fields.get("text", "")))
            else:
                yield Fault(location, "qid2tuple", _not_a("mapping of tuples", given))
        return
    block: list[tuple[str, str, str]] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            match = _DSG_LINE.fullmatch(line)
            block.append((f"line {number}", "", match[1] if match else line))
        elif block:
            yield from _dsg_graph(block, "")
            block = []


def _dsg_graph(rows: Iterable[tuple[str, str, str]], text: str) -> _Read:
    """Yield the graph of tuples, each with its place and field, or their faults."""
    faults: list[Fault] = []
    facts: dict[tuple[str, ...], None] = {}
    for location, field, row in rows:
        match = _DSG_TUPLE.fullmatch(row)
        kind = match[1].lower() if match else ""
        words = tuple(_word(word).removeprefix("==") for word in match[2].split(",")) if match else ()
        wanted = _DSG_ARGUMENTS.get(kind)
        if not match or not all(words):
            faults.append(
                Fault(location, field, f"is not a tuple, expected entity - whole (man) or the like: {shown(row)}")
            )
        elif kind != _GLOBAL and len(words) != (wanted or min(len(words), _MOST_ARGUMENTS)):
            faults.append(
                Fault(location, field, f"has {len(words)} arguments, expected {wanted or 'at most 3'}: {shown(row)}")
            )
        elif kind != _GLOBAL:
            facts[words] = None
    objects = dict.fromkeys((name,) for words in facts for name in (words[:2] if len(words) == 3 else words[:1]))
    if faults:
        yield from faults
    else:
        ordered = [*[words for words in facts if len(words) > 1], *objects]
        yield _parsed(text, [Fact(words, _RULE, ()) for words in ordered])


_READERS: Final[Mapping[Notation, Callable[[Sequence[str]], _Read]]] = {
    Notation.FACTUAL: lambda lines: (_of_text(f"line {n}", "", line, line) for n, line in enumerate(lines, start=1)),
    Notation.DISCOSG: _discosg,
    Notation.VISUAL_GENOME: _visual_genome,
    Notation.DSG: _dsg,
    Notation.JSON_LD: _json_ld,
    Notation.GRAPHML: _graphml,
}

_LOOKS: Final = {
    notation: re.compile(pattern, re.DOTALL)
    for notation, pattern in (
        (Notation.DISCOSG, r'\s*\{.*"scene_graph"\s*:'),
        (Notation.DSG, r'\s*\{.*"qid2tuple"\s*:|\s*\d+\s*\|\s*[a-z]+\b[^()]*\('),
        (Notation.JSON_LD, r'\s*\{.*"@graph"\s*:'),
        (Notation.VISUAL_GENOME, r'\s*\{.*"(?:objects|regions)"\s*:'),
        (Notation.GRAPHML, r"\s*<(?:\?xml|graphml)\b"),
    )
}  # What a text in a notation looks like.
