"""The options that several commands share, and what they are read as."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_scorer.graded.table import VectorTable
from spicegraph_scorer.graded.vectors import Vectors
from spicegraph_scorer.metrics import GROUPS, METRICS, metric_names
from spicegraph_scorer.ngram.frequencies import DocumentFrequencies
from spicegraph_scorer.spice.categories import CATEGORIES
from spicegraph_scorer.spice.custom import read_categories

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.spice.categories import Category

__all__ = [
    "CacheOption",
    "CategoriesOption",
    "ColumnsOption",
    "FrequenciesOption",
    "MetricsOption",
    "PipelineOption",
    "ReferencesOption",
    "VectorsOption",
    "WorkersOption",
    "cache_at",
    "categories_in",
    "frequencies_in",
    "names_of",
    "vectors_in",
]

ReferencesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="The references, where INPUT has none: COCO annotations, references by id, JSON Lines, a table, or plain "
        "text with a line for each candidate. May be given several times.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="The columns of CSV, TSV and Parquet files: id=NAME,candidate=NAME,references=NAME+NAME. Default: found "
        "by their usual names.",
    ),
]
MetricsOption = Annotated[
    str, typer.Option(metavar="NAMES", help=f"Comma-separated: {', '.join((*METRICS, *GROUPS))}.")
]
CategoriesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="TOML with categories of your own for SPICE: word lists, or everything under a WordNet synset.",
    ),
]
FrequenciesOption = Annotated[
    str | None,
    typer.Option(
        "--idf",
        metavar="FILE",
        help="CIDEr's document frequencies, made by spicegraph idf; default: those of the references.",
    ),
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="SPICE-G's vectors, made by spicegraph vectors build; default: those of COCO train2014.",
    ),
]
WorkersOption = Annotated[int, typer.Option(min=1, help="Processes that parse captions.")]
CacheOption = Annotated[
    str,
    typer.Option(
        metavar="PATH|URL|none",
        help="Keep parses from run to run: an SQLite file, or redis://HOST.",
        envvar="SPICEGRAPH_CACHE",
        show_envvar=True,
    ),
]
PipelineOption = Annotated[str, typer.Option(metavar="NAME", help="The spaCy pipeline that parses captions.")]


def names_of(metrics: str) -> tuple[str, ...]:
    """Return the metrics that a comma-separated option names.

    Raises:
        InputError: a name is unknown, or there is none.
    """
    return metric_names(name.strip() for name in metrics.split(",") if name.strip())


def categories_in(path: str | None) -> Mapping[str, Category]:
    """Return SPICE's categories and those of a TOML file, if one is given.

    Raises:
        InputError: the file can't be read, or a category is faulty.
    """
    return CATEGORIES if path is None else read_categories(path)


def frequencies_in(path: str | None) -> DocumentFrequencies | None:
    """Return the document frequencies of a file, if one is given.

    Raises:
        InputError: it can't be read.
    """
    return None if path is None else DocumentFrequencies.read(Path(path))


def vectors_in(path: str | None) -> Vectors | None:
    """Return the vectors of a file, if one is given.

    Raises:
        DataError: it can't be read.
    """
    return None if path is None else Vectors.of(VectorTable.read(Path(path)))


def cache_at(place: str) -> str | None:
    """Return where parses are kept; ``none`` is nowhere."""
    return None if place == "none" else place
