"""``spicegraph parse``: captions in, tuples and scene graphs out."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from spicegraph_parser.export import caption_dict, to_dot
from spicegraph_parser.extract import ParsedCaption, extract
from spicegraph_parser.parse import read_conllu
from spicegraph_parser.picture import to_svg
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, parse_captions
from spicegraph_scorer.readers.text import read_lines
from spicegraph_service.cli.tables import caption_table, rendered
from spicegraph_service.cli.terminal import write_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["parse"]


class ParseFormat(StrEnum):
    """The output formats of ``parse``."""

    JSONL = "jsonl"
    TABLE = "table"
    DOT = "dot"
    SVG = "svg"


def _jsonl(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    encoder = msgspec.json.Encoder()
    return (encoder.encode(caption_dict(caption)).decode() + "\n" for caption in captions)


def _table(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    yield rendered([caption_table(captions)])


def _dot(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    return (to_dot(caption.graph(), title=caption.text) for caption in captions)


def _svg(captions: Iterable[ParsedCaption]) -> Iterator[str]:
    yield to_svg((caption.text, caption.graph()) for caption in captions)


PARSE_FORMATS: Mapping[ParseFormat, Callable[[Iterable[ParsedCaption]], Iterator[str]]] = {
    ParseFormat.JSONL: _jsonl,
    ParseFormat.TABLE: _table,
    ParseFormat.DOT: _dot,
    ParseFormat.SVG: _svg,
}


def parse(
    source: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="One caption a line; - reads standard input.")
    ] = "-",
    *,
    pipeline: Annotated[
        str, typer.Option(metavar="NAME", help="The spaCy pipeline that parses captions.")
    ] = DEFAULT_PIPELINE,
    form: Annotated[
        ParseFormat, typer.Option("--format", help="JSON Lines, a table, Graphviz, or a picture.")
    ] = ParseFormat.JSONL,
    conllu: Annotated[
        bool, typer.Option("--conllu", help="The input holds parses: CoNLL-U, basic or collapsed UD v1.")
    ] = False,
) -> None:
    """Turn captions into the tuples of their scene graphs."""
    lines = read_lines(source)
    captions = map(extract, read_conllu(lines, source=source)) if conllu else parse_captions(lines, pipeline)
    for text in PARSE_FORMATS[form](captions):
        write_stdout(text)
