"""``spicegraph vectors``: vectors of words for SPICE-G, learned from captions."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Annotated, Final

import typer

from spicegraph_graded.spice_g.building import DIMENSIONS, FEWEST, build_table, extended_table, word_sets
from spicegraph_graded.spice_g.texts import learn_order
from spicegraph_graded.spice_g.vectors import VectorTable, load_table
from spicegraph_parser.errors import counted
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.readers import read_references
from spicegraph_service import kit

BUNDLED: Final = "coco"

vectors = typer.Typer(help="Make vectors for SPICE-G from your own captions.", no_args_is_help=True)


@vectors.callback()
def _vectors() -> None:
    """Make vectors for SPICE-G from your own captions."""


@vectors.command()
def build(
    references: Annotated[str, typer.Argument(metavar="CAPTIONS")],
    *,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE")],
    name: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    dimensions: Annotated[int, typer.Option(min=1)] = DIMENSIONS,
    fewest: Annotated[int, typer.Option(min=1)] = FEWEST,
    extend: Annotated[str | None, typer.Option(metavar="coco|FILE")] = None,
    parsing: kit.ParsingOptions,
) -> None:
    """Learn which words people use for the same images and in which order, for --vectors FILE of the other commands.

    A thousand images with five captions each are a beginning; the bundled vectors come from 82,783. With fewer, or for
    another domain than photographs, --extend coco keeps the bundled ones beside them.

    Options:
        references: Several captions of each image: COCO annotations, or references as for score.
        output: The file to write (.npz).
        name: The name of the vectors in signatures; default: the file's name.
        dimensions: Number of dimensions of a vector.
        fewest: In how many captions a word must occur.
        extend: Put the vectors beside those of another table: coco, the bundled one, or a file; for domains of few
            captions.
    """
    kit.check_output(output)
    base = None if extend is None else load_table() if extend == BUNDLED else VectorTable.read(Path(extend))
    captions = [texts for texts in read_references(references).values() if texts]
    with kit.progress_bar() as progress, parsing.facts() as facts:
        said = list(word_sets(captions, FactCache(facts, progress)))
    order = learn_order(text for texts in captions for text in texts)
    table = build_table(said, name=name or PurePath(output).stem, dimensions=dimensions, fewest=fewest, order=order)
    if base is not None:
        table = extended_table(base, table)
    with kit.whole_path(output) as temporary:
        table.write(temporary)
    words, images = counted(len(table.words), "word"), counted(table.images, "image")
    size = counted(table.vectors.shape[1], "dimension")
    typer.echo(f"{output}: {words} in {size}, of {images}, {table.signature}")
