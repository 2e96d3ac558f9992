"""The options that several commands share, and what they are read as."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.metrics import GROUPS, METRICS, MetricData, metric_names
from spicegraph_scorer.metrics.graded.vectors import Vectors, VectorTable
from spicegraph_scorer.metrics.ngram.counts import DocumentFrequencies
from spicegraph_scorer.metrics.spice.categories import read_categories
from spicegraph_scorer.readers.checks import Empty

if TYPE_CHECKING:
    from collections.abc import Collection

ReferencesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="The references, if INPUT contains none: COCO annotations, references by id, JSON Lines, a table, or "
        "plain text with one line per candidate. May be given several times.",
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
        help="TOML file with your own SPICE categories: word lists, or everything under a WordNet synset.",
    ),
]
FrequenciesOption = Annotated[
    str | None,
    typer.Option(
        "--idf",
        metavar="FILE",
        help="CIDEr's document frequencies, from spicegraph idf; default: counted in the references.",
    ),
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="SPICE-G's vectors, from spicegraph vectors build; default: those of COCO train2014.",
    ),
]
WorkersOption = Annotated[int, typer.Option(min=1, help="Number of processes that parse captions.")]
CacheOption = Annotated[
    str,
    typer.Option(
        metavar="PATH|URL|none",
        help="Keep parses between runs: an SQLite file, or redis://HOST.",
        envvar="SPICEGRAPH_CACHE",
        show_envvar=True,
    ),
]
EmptyOption = Annotated[
    Empty,
    typer.Option(
        help="What to do with an empty candidate: refuse the input, or score it as the original programs do: zero."
    ),
]
PipelineOption = Annotated[str, typer.Option(metavar="NAME", help="The spaCy pipeline that parses captions.")]


def names_of(metrics: str) -> tuple[str, ...]:
    """Return the metrics that a comma-separated option names.

    Raises:
        InputError: a name is unknown, or there is none.
    """
    return metric_names(name.strip() for name in metrics.split(",") if name.strip())


_FIELDS = {"--idf": "frequencies", "--categories": "categories", "--vectors": "vectors"}
"""The options that name files, and the field of a metric's data that each gives."""


def metric_data(
    computed: Collection[str],
    *,
    frequencies: str | None = None,
    categories: str | None = None,
    vectors: str | None = None,
) -> MetricData:
    """Read the files that metrics take.

    Args:
        computed: the metrics that the command computes, asked for or not.
        frequencies: what ``--idf`` says.
        categories: what ``--categories`` says.
        vectors: what ``--vectors`` says.

    Raises:
        InputError: a file is given that none of the metrics looks at, can't be read, or is faulty.
        DataError: the frequencies or the vectors can't be read.
    """
    given = {"--idf": frequencies, "--categories": categories, "--vectors": vectors}
    for option, path in given.items():
        users = [name for name, entry in METRICS.items() if _FIELDS[option] in entry.kind.needs.data]
        if path is not None and set(users).isdisjoint(computed):
            do = "does" if len(users) == 1 else "do"
            raise InputError(f"{option}: none of the chosen metrics uses {path}; {', '.join(users)} {do}")
    return MetricData(
        None if frequencies is None else DocumentFrequencies.read(Path(frequencies)),
        None if categories is None else read_categories(categories),
        None if vectors is None else Vectors.of(VectorTable.read(Path(vectors))),
    )


def cache_at(place: str) -> str | None:
    """Return where parses are kept; ``none`` is nowhere."""
    return None if place == "none" else place
