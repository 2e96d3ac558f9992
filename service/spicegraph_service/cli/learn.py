"""``spicegraph idf``: document frequencies of reference captions."""

from __future__ import annotations

from typing import Annotated

import typer

from spicegraph_parser.errors import counted
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.readers import read_references
from spicegraph_service.output.terminal import check_output, whole_path


def idf(
    references: Annotated[str, typer.Argument(metavar="ANNOTATIONS")],
    *,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE")],
) -> None:
    """Count in how many images' references each n-gram occurs, for score --idf FILE.

    Options:
        references: COCO annotations with the reference captions.
        output: The file to write (.npz).
    """
    check_output(output)
    captions = [texts for texts in read_references(references).values() if texts]
    frequencies = DocumentFrequencies.from_references([tokenize_texts(texts) for texts in captions])
    with whole_path(output) as temporary:
        frequencies.write(temporary)
    typer.echo(f"{output}: n-grams of {counted(frequencies.images, 'image')}, {frequencies.digest}")
