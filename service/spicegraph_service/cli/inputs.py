"""``spicegraph inputs``: what a file is taken for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer.core.items import marks_of
from spicegraph_scorer.readers import SHAPES, parse_columns, read_items
from spicegraph_scorer.readers.fields import Wanted
from spicegraph_scorer.readers.marks import marks_notes
from spicegraph_scorer.readers.references import read_records, read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source
from spicegraph_service.output.terminal import printable, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_SHOWN: Final = 3
_OTHER_SIDE: Final = "give it with --references"  # Of a message: the file holds something else than was asked.
_LONGEST: Final = 100


def inputs(
    source: Annotated[str, typer.Argument(metavar="FILE")],
    *,
    columns: Annotated[str | None, typer.Option(metavar="NAMES")] = None,
    delimiter: Annotated[str | None, typer.Option(metavar="CHARACTER")] = None,
    caption_language: Annotated[str | None, typer.Option(metavar="CODE")] = None,
) -> None:
    """Say what a file is taken for, with its first entries.

    Options:
        source: A file as for score, or as for its --references.
        columns: The columns of tables and keys of JSON, as for score.
        delimiter: What separates the columns of CSV files, as for score.
        caption_language: The language of the captions, as for score.
    """
    named = parse_columns(columns, delimiter=delimiter)
    first: InputError | None = None
    for name, side in (("items", "both"), ("candidates", "candidates"), ("references", "references")):
        wanted = Wanted(side, named, caption_language)  # type: ignore[arg-type]  # one of three
        try:
            lines = list(_said_of(source, wanted))
        except InputError as error:
            first = error if first is None or str(first).endswith(_OTHER_SIDE) else first
            continue
        typer.echo(printable(f"{lines[0]}\n{name}: {lines[1]}"))
        for line in lines[2:]:
            typer.echo(f"  {printable(line)}")
        return
    if first is not None:
        raise first


def _said_of(source: str, wanted: Wanted) -> Iterator[str]:
    """Yield what a side of a file is taken for, how much it holds, and its first entries."""
    return _OF_SIDES[wanted.side](source, wanted)


def _items_said(source: str, wanted: Wanted) -> Iterator[str]:
    dataset = read_items(
        source, columns=wanted.columns, caption_language=wanted.language, control_tokens="keep", empty="zero"
    )
    yield _named(source, dataset.format)
    yield counted(len(dataset.items), "item")
    for note in (*dataset.notes, *marks_notes(len(dataset.items), marks_of(dataset.items))):
        say(note)
    for item in dataset.items[:_SHOWN]:
        yield f"{item.id}: {_short(item.candidate)} || {_texts(item.references)}"


def _references_said(source: str, wanted: Wanted) -> Iterator[str]:
    annotations = read_reference_files([source], limits=DEFAULT_LIMITS, wanted=wanted)
    captions = annotations.captions
    yield _named(source, annotations.format)
    count = sum(map(len, captions.values()))
    yield f"{counted(len(captions), 'image')}, {counted(count, 'caption')}"
    for note in annotations.notes:
        say(note)
    for image, texts in list(captions.items())[:_SHOWN]:
        yield f"{image}: {_texts(texts)}"


def _candidates_said(source: str, wanted: Wanted) -> Iterator[str]:
    with open_source(source, limits=DEFAULT_LIMITS) as opened:
        records = read_records(opened, limits=DEFAULT_LIMITS, wanted=wanted)
        if records is None:
            raise InputError(f"{source}: is plain text, one caption on each line")
        form, rows = records.format, [record.fields for record in records.records]
    values = [row.get(form.candidates[0]) for row in rows]
    ids = [row.get(form.ids[0]) for row in rows]
    if records.faults or any(map(_are_several, values)) or len(set(map(str, ids))) < len(ids) or not rows:
        raise InputError(f"{source}: holds no candidates, one for each image")
    yield _named(source, form.name)
    yield counted(len(rows), "caption")
    for image, value in list(zip(ids, values, strict=True))[:_SHOWN]:
        yield f"{image}: {_texts([str(value)])}"


def _are_several(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1


_OF_SIDES: Final[Mapping[str, Callable[[str, Wanted], Iterator[str]]]] = {
    "both": _items_said,
    "references": _references_said,
    "candidates": _candidates_said,
}


def _named(source: str, form: str) -> str:
    whose = next((f" ({shape.whose})" for shape in SHAPES if form.partition(":")[0] == shape.name), "")
    return f"{source}: {form}{whose}"


def _texts(texts: Iterable[str]) -> str:
    return " | ".join(map(_short, texts))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
