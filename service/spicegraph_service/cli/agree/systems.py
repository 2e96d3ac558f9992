"""``spicegraph agree systems``: human results and scores of systems in, correlation out."""

from __future__ import annotations

from typing import Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.studies.agreement.reading import read_system_scores, read_system_table
from spicegraph_scorer.studies.agreement.systems import agree_on_systems
from spicegraph_service.cli.inputs import system_name
from spicegraph_service.cli.studies import (
    DrawsOption,
    FormatOption,
    OutputOption,
    SeedOption,
    TableOption,
    study_output,
)
from spicegraph_service.output.agreement.systems import SYSTEM_TABLES, system_study
from spicegraph_service.output.terminal import warned_progress


def systems(
    human: Annotated[
        str,
        typer.Argument(metavar="HUMAN", help="A table of human results: CSV or JSON with system and M1, M2 ..."),
    ],
    scores: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]SCORES",
            help="One file a system, the JSON of spicegraph score; or a table with system and one column a metric.",
        ),
    ],
    *,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these scores, comma-separated. Default: all.")
    ] = None,
    form: FormatOption = None,
    output: OutputOption = None,
    table: TableOption = None,
    draws: DrawsOption = 1000,
    seed: SeedOption = 12345,
) -> None:
    """Correlate corpus scores with human results over systems: Pearson, Spearman, Kendall, with p-values.

    For instance the entries of a challenge with COCO's M1 to M5.
    """
    writer = study_output(form, output, table, SYSTEM_TABLES)
    judged = read_system_table(human)
    found: dict[str, dict[str, float | None]] = {}
    for source in scores:
        name, path = system_name(source)
        for system, values in read_system_scores(path, name).items():
            known = found.setdefault(system, {})
            twice = sorted(known.keys() & values.keys())
            if twice:
                raise InputError(f"{path}: {system!a} has a score {twice[0]!a} already")
            known.update(values)
    if metrics is not None:
        found = _only(found, metrics)
    with warned_progress():
        agreed = agree_on_systems(judged, found, resampling=Resampling(draws, seed))
    writer.write(system_study(agreed, human))


def _only(scores: dict[str, dict[str, float | None]], metrics: str) -> dict[str, dict[str, float | None]]:
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    known = list(dict.fromkeys(name for values in scores.values() for name in values))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InputError(f"--metrics: there is no score {', '.join(unknown)!a}; there are {', '.join(known)}")
    return {system: {name: values.get(name) for name in names} for system, values in scores.items()}
