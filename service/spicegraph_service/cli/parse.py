"""``spicegraph parse``, and ``spicegraph pipelines``, the model card of what parses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from spicegraph_parser import export
from spicegraph_parser.errors import InputError
from spicegraph_parser.export.graph_text import graph_text, with_digits
from spicegraph_parser.export.picture import to_svg
from spicegraph_parser.fronts.conllu import read_conllu
from spicegraph_parser.fronts.ud2 import Scheme, ud1_lines
from spicegraph_parser.languages import find_language
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline, model_card, parse_captions
from spicegraph_parser.spice.extraction import ParsedCaption, extract
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.readers import parse_columns
from spicegraph_scorer.readers.parses import Notation, read_graphs
from spicegraph_scorer.readers.read import read_captions
from spicegraph_scorer.readers.records import looks_like_one_text, read_lines
from spicegraph_service.cli.options import GraphStyle, GraphStyleOption, parser_of
from spicegraph_service.output.tables import caption_table, rendered
from spicegraph_service.output.terminal import printable, say, write_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.graph import SceneGraph


class ParseFormat(StrEnum):
    """The output formats of ``parse``."""

    JSONL = "jsonl"
    TABLE = "table"
    DOT = "dot"
    SVG = "svg"
    SNG = "sng"
    FACTUAL = "factual"
    DISCOSG = "discosg"
    VISUAL_GENOME = "visual-genome"
    DSG = "dsg"
    GRAPHML = "graphml"
    JSON_LD = "json-ld"


def _encoded(values: Iterable[object]) -> Iterator[str]:
    encoder = msgspec.json.Encoder()
    return (encoder.encode(value).decode() + "\n" for value in values)


def _graphs(captions: Iterable[ParsedCaption]) -> Iterator[tuple[str, SceneGraph]]:
    return ((caption.text, export.thing_graph(caption)) for caption in captions)


def _visual_genome(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    between = "["
    for row in _encoded(map(export.visual_genome_dict, captions, count(1))):
        yield f"{between}\n{row.rstrip()}"
        between = ","
    yield "[]\n" if between == "[" else "\n]\n"


_DSG_KINDS = {"Color": "color", "Cardinality": "count", "Size": "size"}
_PREPOSITIONS = frozenset({"near", "up", "down", "like"})  # of which WordNet has a verb, too


def _dsg_kind(words: Sequence[str]) -> str:
    """Return the kind of an attribute by SPICE's categories, of a relation by whether it begins with a verb."""
    if len(words) == 2:
        kinds = (kind for name, kind in _DSG_KINDS.items() if words[1] in (CATEGORIES[name].words or ()))
        return next(kinds, "state")
    first = words[2].partition(" ")[0]
    return "action" if first not in _PREPOSITIONS and load_wordnet().senses(first, "v") else "spatial"


def _factual(caption: ParsedCaption, number: int) -> str:
    """Return a caption's graph on a line as FACTUAL writes it; what is kept apart is a note on standard error."""
    reasons: dict[str, list[Sequence[str]]] = {}
    for fact in caption.apart:
        reasons.setdefault(fact.rule, []).append(fact.words)
    for reason, tuples in reasons.items():
        say(f"caption {number}, apart ({reason}): {graph_text(tuples)}")
    return graph_text(with_digits(caption.tuples)) + "\n"


def _traced(pipeline: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield each sentence, and below it what each pass took away and added."""
    return (f"{printable(line)}\n" for line in load_pipeline(pipeline).trace(texts))


PARSE_FORMATS: Mapping[ParseFormat, Callable[[Iterable[ParsedCaption]], Iterable[str]]] = {
    ParseFormat.JSONL: lambda captions: _encoded(map(export.caption_dict, captions)),
    ParseFormat.TABLE: lambda captions: [rendered([caption_table(captions)])],
    ParseFormat.DOT: lambda captions: (export.to_dot(graph, title=text) for text, graph in _graphs(captions)),
    ParseFormat.SVG: lambda captions: [to_svg(_graphs(captions))],
    ParseFormat.SNG: lambda captions: _encoded(map(export.sng_dict, captions)),
    ParseFormat.FACTUAL: lambda captions: map(_factual, captions, count(1)),
    ParseFormat.DISCOSG: lambda captions: _encoded(map(export.discosg_dict, captions)),
    ParseFormat.VISUAL_GENOME: _visual_genome,
    ParseFormat.DSG: lambda captions: _encoded(export.dsg_dict(caption, _dsg_kind) for caption in captions),
    ParseFormat.GRAPHML: lambda captions: [export.to_graphml(_graphs(captions))],
    ParseFormat.JSON_LD: lambda captions: _encoded([export.json_ld(_graphs(captions))]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserOptions:
    """What draws the graphs.

    Parsing:
        pipeline: What parses captions: en_caption (bundled, run without spaCy), or a spaCy pipeline by name or folder.
    """

    pipeline: Annotated[str, typer.Option(metavar="NAME")] = DEFAULT_PIPELINE
    graph_style: GraphStyleOption = GraphStyle.SPICE

    @property
    def is_scene(self) -> bool:
        """Whether graphs are drawn as people draw them."""
        return self.graph_style is GraphStyle.SCENE


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What the input holds.

    Input:
        text: All lines are one caption: a description.
        columns: The columns of tables and keys of JSON: id=NAME,candidate=NAME. Default: found by their usual names.
        delimiter: What separates the columns of CSV files, or none: lines are captions. Default: as the header shows.
        conllu: The input consists of parses: CoNLL-U in Universal Dependencies v1 or v2.
        graphs: The input consists of scene graphs in a notation: FACTUAL's (a graph per line), DiscoSG's (JSON Lines),
            Visual Genome's (scene_graphs.json, region_graphs.json) or Davidsonian Scene Graphs.
        scheme: The version of the --conllu parses; auto detects it for each sentence.
    """

    text: Annotated[bool, typer.Option("--text")] = False
    columns: Annotated[str | None, typer.Option(metavar="NAMES")] = None
    delimiter: Annotated[str | None, typer.Option(metavar="CHARACTER")] = None
    conllu: Annotated[bool, typer.Option("--conllu")] = False
    graphs: Annotated[Notation | None, typer.Option("--graphs")] = None
    scheme: Annotated[Scheme, typer.Option()] = Scheme.AUTO


def parse(
    source: Annotated[str, typer.Argument(metavar="[FILE|-|CAPTION]")] = "-",
    *,
    parser: ParserOptions,
    form: Annotated[ParseFormat, typer.Option("--format")] = ParseFormat.JSONL,
    held: SourceOptions,
    trace: Annotated[bool, typer.Option("--trace")] = False,
    language: Annotated[str | None, typer.Option(metavar="CODE")] = None,
) -> None:
    """Turn captions into the tuples of their scene graphs.

    Input:
        source: One caption per line, or a file of any shape that spicegraph inputs knows; - reads standard input; or a
            caption itself, of several words.
        language: What captions are in, by code: fr, es, de ... Default: what --pipeline reads; for --conllu: en.

    Output:
        form: JSON Lines, a table, Graphviz, a picture, the notations of sng_parser (one dict per line), FACTUAL,
            DiscoSG, Visual Genome and Davidsonian Scene Graphs, or GraphML and JSON-LD.
        trace: Print what each pass of the scene parser (--graph-style scene) changed, in place of graphs.
    """
    _check(held, parser, form, trace=trace)
    captions: Iterable[ParsedCaption]
    if held.graphs is not None:
        captions = read_graphs(source, held.graphs)
    elif held.conllu:
        captions = _of_parses(source, parser, held.scheme, language)
    else:
        ids, texts = _texts(source, held)
        name = parser_of(parser.graph_style, parser.pipeline)
        if trace:
            _write(_traced(name, texts))
            return
        captions = parse_captions(texts, name, language=language)
        if ids and form is ParseFormat.JSONL:
            _write(
                _encoded({"id": image, **export.caption_dict(each)} for image, each in zip(ids, captions, strict=True))
            )
            return
    _write(PARSE_FORMATS[form](captions))


def _write(parts: Iterable[str]) -> None:
    """Write parts to standard output, each as it is made."""
    for part in parts:
        write_stdout(part)


def _check(held: SourceOptions, parser: ParserOptions, form: ParseFormat, *, trace: bool) -> None:
    """Refuse options that contradict each other."""
    if trace and (not parser.is_scene or held.graphs is not None or held.conllu):
        raise InputError("--trace shows the passes of the scene parser: it needs captions and --graph-style scene")
    if held.graphs is not None and (held.conllu or parser.is_scene or form is ParseFormat.SNG):
        raise InputError(
            "--graphs gives graphs that are ready: it does not go with --conllu or --graph-style scene, nor with "
            "--format sng, which has places in a caption"
        )


def _of_parses(source: str, parser: ParserOptions, scheme: Scheme, language: str | None) -> Iterator[ParsedCaption]:
    """Return the captions of a CoNLL-U file."""
    lines = read_lines(source)
    if parser.is_scene:
        raise InputError("--graph-style scene reads captions; --conllu gives parses, whose graphs are of style spice")
    spoken = find_language(language or "en")
    rows = ud1_lines(lines, scheme=scheme, language=spoken)
    return map(extract, read_conllu(rows, source=source, language=spoken))


def _texts(source: str, held: SourceOptions) -> tuple[Sequence[object], Sequence[str]]:
    """Return ids, if there are some, and the captions of a file, or an argument of several words as a caption."""
    is_file = os.path.exists(source)  # noqa: PTH110 (pathlib raises for long captions)
    if source.isalpha() and not is_file:
        raise InputError(f"{source}: there is no such file; a caption of one word: echo {source} | spicegraph parse")
    is_caption = len(source.split()) > 1 and not is_file
    columns = parse_columns(held.columns, delimiter=held.delimiter)
    ids, texts = ([], [source]) if is_caption else read_captions(source, is_one_text=held.text, columns=columns)
    if not ids and looks_like_one_text(texts):
        say("hint: these lines look like one text, but each is parsed as a caption; --text reads them as one")
    return ids, texts


def pipelines(name: Annotated[str, typer.Argument(metavar="[NAME]")] = DEFAULT_PIPELINE) -> None:
    """Print a bundled pipeline's signature and its model card: data, licences, figures, weaknesses.

    Options:
        name: en_caption, or scene: the parser of --graph-style scene.
    """
    card = model_card(name)
    write_stdout(f"{load_pipeline(name).signature}\n\n{card}")
