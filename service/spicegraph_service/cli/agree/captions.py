"""``spicegraph agree captions``: rated captions in, correlation with the ratings out."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.studies.agreement.captions import agree_on_captions
from spicegraph_scorer.studies.agreement.protocols import (
    CAPTION_PROTOCOLS,
    CaptionProtocol,
    Own,
    Ratings,
    caption_protocol,
)
from spicegraph_scorer.studies.agreement.reading import read_judgements
from spicegraph_service.cli.agree.shared import JudgedMetricsOption, scoring_with
from spicegraph_service.cli.options import (  # noqa: TC001 (typer reads the annotations)
    CacheOption,
    FrequenciesOption,
    PipelineOption,
    VectorsOption,
    WorkersOption,
)
from spicegraph_service.cli.studies import (
    DrawsOption,
    FormatOption,
    OutputOption,
    SeedOption,
    TableOption,
    study_output,
)
from spicegraph_service.output.agreement.captions import CAPTION_TABLES, caption_study

if TYPE_CHECKING:
    from collections.abc import Mapping


class Coefficient(StrEnum):
    """The keys of ``COEFFICIENTS``."""

    TAU_B = "tau_b"
    TAU_C = "tau_c"
    PEARSON = "pearson"
    SPEARMAN = "spearman"


def captions(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="JSON Lines with candidate, references and ratings; Flickr8k's or Composite's annotation files; "
            "CLIPScore's JSON; several files are one set; - reads standard input.",
        ),
    ],
    *,
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help=f"What is averaged and removed: {', '.join(CAPTION_PROTOCOLS)}.")
    ] = "plain",
    references: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="For Flickr8k's and Composite's files: Flickr8k.token.txt and its like, or COCO annotations. May be "
            "given several times.",
        ),
    ] = None,
    rating: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="The field with the ratings. Default: ratings, rating, human_score or score."
        ),
    ] = None,
    coefficient: Annotated[
        Coefficient | None, typer.Option(help="The coefficient that tests compare. Default: the protocol's.")
    ] = None,
    ratings: Annotated[
        Ratings | None, typer.Option(help="Every single rating, or a caption's mean. Default: the protocol's.")
    ] = None,
    own: Annotated[
        Own | None,
        typer.Option(help="What becomes of captions that are a reference of their image. Default: the protocol's."),
    ] = None,
    metrics: JudgedMetricsOption = "spice",
    form: FormatOption = None,
    output: OutputOption = None,
    table: TableOption = None,
    draws: DrawsOption = 1000,
    seed: SeedOption = 12345,
    frequencies: FrequenciesOption = None,
    vectors: VectorsOption = None,
    workers: WorkersOption = 1,
    cache: CacheOption = "none",
    pipeline: PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Correlate metrics with ratings of captions: Kendall tau-b and tau-c, Pearson, Spearman.

    Every number comes with its protocol, ties, interval over images, and paired tests between the metrics.
    """
    chosen = _changed(
        caption_protocol(protocol),
        {
            "coefficient": coefficient.value if coefficient else None,
            "ratings": ratings,
            "own": own,
        },
    )
    writer = study_output(form, output, table, CAPTION_TABLES)
    judged = read_judgements(*sources, references=references or (), rating=rating)
    with scoring_with(
        metrics, pipeline=pipeline, workers=workers, cache=cache, frequencies=frequencies, vectors=vectors
    ) as scoring:
        found = agree_on_captions(judged.items, chosen, scoring=scoring, resampling=Resampling(draws, seed))
    writer.write(caption_study(found, judged))


def _changed(protocol: CaptionProtocol, options: Mapping[str, str | None]) -> CaptionProtocol:
    """Return the protocol with the options that are given; its name then says that it was changed."""
    given = {name: value for name, value in options.items() if value is not None and getattr(protocol, name) != value}
    if not given:
        return protocol
    about = (
        f"As {protocol.name}, changed by options: "
        + ", ".join(f"{name} {value}" for name, value in given.items())
        + "."
    )
    changes: dict[str, str] = {**given, "name": f"{protocol.name}, changed", "about": about}
    return replace(protocol, **changes)  # type: ignore[arg-type]  # the options have the fields' types
