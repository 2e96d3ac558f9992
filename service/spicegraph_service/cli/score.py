"""``spicegraph score``: a file of captions in, scores out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.ngram.frequencies import DocumentFrequencies
from spicegraph_scorer.readers import Dataset, read_items
from spicegraph_scorer.scoring import score as score_items
from spicegraph_scorer.significance import Resampling
from spicegraph_service.cli.formats import RESULT_FORMATS, ResultFormat
from spicegraph_service.cli.options import MetricsOption, PipelineOption, ReferencesOption, names_of
from spicegraph_service.cli.output import check_output, whole_file
from spicegraph_service.cli.terminal import note, progress_bar, say_warning, write_stdout
from spicegraph_service.engines.local import local_facts

__all__ = ["score"]

_BY_ENDING = {".json": ResultFormat.JSON, ".jsonl": ResultFormat.JSONL, ".csv": ResultFormat.CSV}


def score(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="The SPICE jar's JSON (image_id, test, refs), COCO results with --references, JSON Lines, "
            "or a zip of one of them; - reads standard input.",
        ),
    ],
    *,
    references: ReferencesOption = None,
    metrics: MetricsOption = "spice",
    form: Annotated[
        ResultFormat | None,
        typer.Option(
            "--format",
            help="How to write the result; spice is the jar's own JSON. Default: a table, and for -o what "
            "the file's ending says.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to this file; without --format the table is shown too.",
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Score only the images of --references that have a result.")
    ] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add 95 % bootstrap intervals of every corpus score.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the intervals' resamples: the same seed, the same intervals.")
    ] = 12345,
    frequencies: Annotated[
        str | None,
        typer.Option(
            "--idf",
            metavar="FILE",
            help="CIDEr's document frequencies, made by spicegraph idf; default: those of the references.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that parse captions.")] = 1,
    cache: Annotated[
        str,
        typer.Option(
            metavar="PATH|URL|none",
            help="Keep parses from run to run: an SQLite file, or redis://HOST.",
            envvar="SPICEGRAPH_CACHE",
            show_envvar=True,
        ),
    ] = "none",
    pipeline: PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Score captions against references, with SPICE by category and the COCO metrics."""
    names = names_of(metrics)
    if output is not None:
        check_output(output)
    frozen = DocumentFrequencies.read(Path(frequencies)) if frequencies is not None else None
    dataset = read_items(source, references=references, partial=partial)
    note(_description(dataset))
    with progress_bar() as progress, warnings.catch_warnings():
        warnings.showwarning = say_warning
        warnings.filterwarnings("always", module="spicegraph")
        with local_facts(pipeline, workers=workers, cache=None if cache == "none" else cache) as facts:
            result = score_items(
                dataset.items,
                names,
                pipeline=facts,
                progress=progress,
                confidence=Resampling(seed=seed) if confidence else None,
                frequencies=frozen,
            )
    if output is not None:
        chosen = form or _BY_ENDING.get(Path(output).suffix.lower(), ResultFormat.TABLE)
        text = RESULT_FORMATS[chosen](result)
        with whole_file(output) as stream:
            stream.write(text)
    if output is None or form is None:
        write_stdout(RESULT_FORMATS[form or ResultFormat.TABLE](result))


def _description(dataset: Dataset) -> str:
    left_out = f", {dataset.left_out} images without a result left out" if dataset.left_out else ""
    return f"{dataset.source}: {dataset.format}, {len(dataset.items)} items{left_out}"
