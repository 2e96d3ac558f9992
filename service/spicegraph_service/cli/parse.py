"""``spicegraph parse``, and ``spicegraph pipelines``, the model card of what parses."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from spicegraph_parser.errors import InputError
from spicegraph_parser.export import caption_dict, sng_dict, to_dot
from spicegraph_parser.extract import ParsedCaption, extract
from spicegraph_parser.graph_text import graph_text
from spicegraph_parser.parse import read_conllu
from spicegraph_parser.picture import to_svg
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline, model_card, parse_captions
from spicegraph_parser.ud2 import Scheme, ud1_lines
from spicegraph_scorer.readers.records import read_lines
from spicegraph_service.cli.options import GraphStyle, GraphStyleOption, parser_of
from spicegraph_service.output.tables import caption_table, rendered
from spicegraph_service.output.terminal import write_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class ParseFormat(StrEnum):
    """The output formats of ``parse``."""

    JSONL = "jsonl"
    TABLE = "table"
    DOT = "dot"
    SVG = "svg"
    SNG = "sng"
    FACTUAL = "factual"


def _jsonl(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    encoder = msgspec.json.Encoder()
    return (encoder.encode(caption_dict(caption)).decode() + "\n" for caption in captions)


def _table(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    yield rendered([caption_table(captions)])


def _dot(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    return (to_dot(caption.graph(), title=caption.text) for caption in captions)


def _svg(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    yield to_svg((caption.text, caption.graph()) for caption in captions)


def _sng(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    encoder = msgspec.json.Encoder()
    return (encoder.encode(sng_dict(caption)).decode() + "\n" for caption in captions)


def _factual(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    return (graph_text(caption.tuples) + "\n" for caption in captions)


PARSE_FORMATS: Mapping[ParseFormat, Callable[[Iterable[ParsedCaption]], Iterator[str]]] = {
    ParseFormat.JSONL: _jsonl,
    ParseFormat.TABLE: _table,
    ParseFormat.DOT: _dot,
    ParseFormat.SVG: _svg,
    ParseFormat.SNG: _sng,
    ParseFormat.FACTUAL: _factual,
}


def parse(
    source: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="One caption per line; - reads standard input.")
    ] = "-",
    *,
    pipeline: Annotated[
        str, typer.Option(metavar="NAME", help="The spaCy pipeline that parses captions.")
    ] = DEFAULT_PIPELINE,
    graph_style: GraphStyleOption = GraphStyle.SPICE,
    form: Annotated[
        ParseFormat,
        typer.Option(
            "--format",
            help="JSON Lines, a table, Graphviz, a picture, or the formats of sng_parser (one dict per line) and "
            "FACTUAL.",
        ),
    ] = ParseFormat.JSONL,
    conllu: Annotated[
        bool, typer.Option("--conllu", help="The input consists of parses: CoNLL-U in Universal Dependencies v1 or v2.")
    ] = False,
    scheme: Annotated[
        Scheme, typer.Option(help="The version of the --conllu parses; auto detects it for each sentence.")
    ] = Scheme.AUTO,
) -> None:
    """Turn captions into the tuples of their scene graphs."""
    lines = read_lines(source)
    captions: Iterable[ParsedCaption]
    if conllu:
        if graph_style is GraphStyle.SCENE:
            raise InputError(
                "--graph-style scene reads captions; --conllu gives parses, whose graphs are of style spice"
            )
        captions = map(extract, read_conllu(ud1_lines(lines, scheme=scheme), source=source))
    else:
        captions = parse_captions(lines, parser_of(graph_style, pipeline))
    for text in PARSE_FORMATS[form](captions):
        write_stdout(text)


def pipelines() -> None:
    """Print the bundled pipeline's signature and its model card: data, licences, agreement with SPICE, weaknesses."""
    write_stdout(f"{load_pipeline().signature}\n\n{model_card()}")
