"""``spicegraph idf``: freeze the document frequencies of CIDEr, so that single captions can be scored."""

from __future__ import annotations

from typing import Annotated

import typer

from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.metrics.ngram.counts import DocumentFrequencies
from spicegraph_scorer.readers import read_references
from spicegraph_service.output.files import check_output, whole_path


def idf(
    references: Annotated[
        str, typer.Argument(metavar="ANNOTATIONS", help="COCO annotations with the reference captions.")
    ],
    *,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The file to write (.npz).")],
) -> None:
    """Count in how many images' references each n-gram occurs, for score --idf FILE."""
    check_output(output)
    captions = [texts for texts in read_references(references).values() if texts]
    frequencies = DocumentFrequencies.from_references([tokenize_texts(texts) for texts in captions])
    with whole_path(output) as temporary:
        frequencies.write(temporary)
    typer.echo(f"{output}: n-grams of {counted(frequencies.images, 'image')}, {frequencies.digest}")
