"""``spicegraph agree pairs``: pairs of captions in, how often metrics prefer what people prefer out."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.studies.agreement.pairwise import agree_on_pairs
from spicegraph_scorer.studies.agreement.protocols import (
    PAIR_PROTOCOLS,
    Own,
    PairProtocol,
    ReferenceChoice,
    Ties,
    pair_protocol,
)
from spicegraph_scorer.studies.agreement.reading import read_pairs
from spicegraph_service.cli.agree.shared import JudgedMetricsOption, scoring_with, whole_numbers
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
from spicegraph_service.output.agreement.pairs import PAIR_TABLES, pair_study

_ALL = "all"


def pairs(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="JSON Lines with captions (two), preferred or label, references and category; the folder with "
            "PASCAL-50S's consensus_pascal.mat and pair_pascal.mat; SugarCrepe's, VALSE's or FOIL's JSON; several "
            "files are one set; - reads standard input.",
        ),
    ],
    *,
    annotations: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="For SugarCrepe, VALSE and FOIL: COCO annotations with the references. May be given several times.",
        ),
    ] = None,
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help=f"How ties and references count: {', '.join(PAIR_PROTOCOLS)}.")
    ] = "plain",
    ties: Annotated[Ties | None, typer.Option(help="What an equal score counts. Default: the protocol's.")] = None,
    own: Annotated[
        Own | None, typer.Option(help="What becomes of references that equal a caption. Default: the protocol's.")
    ] = None,
    count: Annotated[
        str | None,
        typer.Option("--references", metavar="NUMBER|all", help="References a pair. Default: the protocol's."),
    ] = None,
    choice: Annotated[
        ReferenceChoice | None, typer.Option(help="Which references, if fewer than all. Default: the protocol's.")
    ] = None,
    reference_draws: Annotated[
        int | None, typer.Option(min=1, help="Draws of random references that are averaged. Default: the protocol's.")
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Accuracy with these numbers of references, too, such as 1,2,5,10,48."),
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
    """Count how often metrics prefer the caption that people prefer, by category of pair.

    For PASCAL-50S (HC, HI, HM, MM) and hard negatives such as FOIL, SugarCrepe and VALSE.
    """
    given = pair_protocol(protocol)
    chosen = _named(
        given,
        replace(
            given,
            ties=ties or given.ties,
            own=own or given.own,
            references=given.references if count is None else _count(count),
            choice=choice or given.choice,
            draws=reference_draws or given.draws,
        ),
    )
    counts = whole_numbers(curve, "--curve") if curve is not None else ()
    writer = study_output(form, output, table, PAIR_TABLES)
    judged = read_pairs(*sources, annotations=annotations or ())
    with scoring_with(
        metrics, pipeline=pipeline, workers=workers, cache=cache, frequencies=frequencies, vectors=vectors
    ) as scoring:
        found = agree_on_pairs(judged.items, chosen, scoring=scoring, resampling=Resampling(draws, seed), curve=counts)
    writer.write(pair_study(found, judged))


def _count(text: str) -> int | None:
    if text.strip() == _ALL:
        return None
    numbers = whole_numbers(text, "--references")
    if len(numbers) != 1:
        raise InputError(f"--references: one number or {_ALL!r} is expected, got {text!a:.60}; see --curve")
    return numbers[0]


def _named(given: PairProtocol, chosen: PairProtocol) -> PairProtocol:
    """Return the protocol with a name that says whether options changed it."""
    if chosen == given:
        return given
    return replace(chosen, name=f"{given.name}, changed", about=f"As {given.name}, changed by options.")
