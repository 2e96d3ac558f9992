"""``spicegraph agree systems``: human results and scores of systems in, correlation out."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.agreement.reading import read_system_scores, read_system_table
from spicegraph_scorer.agreement.systems import agree_on_systems
from spicegraph_scorer.significance import Resampling
from spicegraph_service.agreement.system_study import system_study
from spicegraph_service.cli.agree.shared import (
    DrawsOption,
    FormatOption,
    OutputOption,
    SeedOption,
    prepare_output,
    warned_progress,
    write_study,
)

__all__ = ["systems"]


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
    draws: DrawsOption = 1000,
    seed: SeedOption = 12345,
) -> None:
    """Correlate corpus scores with human results over systems: Pearson, Spearman, Kendall, with p-values.

    For instance the entries of a challenge with COCO's M1 to M5.
    """
    write_as = prepare_output(form, output)
    table = read_system_table(human)
    found: dict[str, dict[str, float | None]] = {}
    for source in scores:
        name, path = _name_and_path(source)
        for system, values in read_system_scores(path, name).items():
            known = found.setdefault(system, {})
            twice = sorted(known.keys() & values.keys())
            if twice:
                raise InputError(f"{path}: {system!a} has a score {twice[0]!a} already")
            known.update(values)
    if metrics is not None:
        found = _only(found, metrics)
    with warned_progress():
        agreed = agree_on_systems(table, found, resampling=Resampling(draws, seed))
    write_study(system_study(agreed, human), write_as, output)


def _name_and_path(source: str) -> tuple[str, str]:
    """Return a system's name, which stands before the file or is the file's own, and the file."""
    name, equals, path = source.partition("=")
    return (name, path) if equals and name and "/" not in name else (PurePath(source).stem, source)


def _only(scores: dict[str, dict[str, float | None]], metrics: str) -> dict[str, dict[str, float | None]]:
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    known = list(dict.fromkeys(name for values in scores.values() for name in values))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InputError(f"--metrics: there is no score {', '.join(unknown)!a}; there are {', '.join(known)}")
    return {system: {name: values.get(name) for name in names} for system, values in scores.items()}
