"""Bounds as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spicegraph_service.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from spicegraph_scorer.bounds import Bound, BoundsResult, TrialBounds
    from spicegraph_scorer.results import Json

__all__ = ["bounds_tables", "decimal", "percent"]

UNDEFINED = "–"
_TOGETHER = 4  # lower bounds side by side


def decimal(value: float | None, digits: int = 4) -> str:
    """Return a number, or a dash for what is undefined."""
    return UNDEFINED if value is None else f"{value:.{digits}f}"


def percent(bound: Bound) -> str:
    """Return a score in per cent of the human one."""
    return UNDEFINED if bound.share is None or bound.share.percent is None else f"{bound.share.percent:.1f} %"


def bounds_tables(found: BoundsResult) -> Iterator[RenderableType]:
    """Yield the tables: people, each system, the lower bounds, and how the metrics' rankings agree."""
    few, most = found.references
    against = f"{few}" if few == most else f"{few} to {most}"
    yield Text(
        f"{found.images} images, {found.captions} captions; every caption is held out once and scored against the "
        f"{against} others of its image; so is whatever stands in its place"
    )
    yield _people(found.human)
    systems = [trial for trial in found.trials if trial.kind == "system"]
    if systems:
        yield _against_people("Systems, and in per cent of the human score", found.human, systems)
    lower = [trial for trial in found.trials if trial.kind == "lower"]
    for start in range(0, len(lower), _TOGETHER):
        shown = lower[start : start + _TOGETHER]
        yield _against_people("Lower bounds, and in per cent of the human score", found.human, shown)
    for trial in lower:
        yield Text(f"{trial.name}: {trial.title}", style="dim")
    if len(found.ranking.names) > 1:
        yield _ranking(found)
    yield from _signatures(found)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)


def _people(human: TrialBounds) -> Table:
    table = _table(
        "People against people (upper bound): corpus score with its 95 % interval; spread over captions; images"
    )
    table.add_column("Score")
    for name in ("Human", "low", "high", "mean", "sd", "min", "q1", "median", "q3", "max", "images", "sd"):
        table.add_column(name, justify="right")
    for bound in human.scores:
        own = bound.captions
        spread = (own.mean, own.sd, own.minimum, own.q1, own.median, own.q3, own.maximum)
        table.add_row(
            Text(bound.name),
            decimal(bound.value),
            decimal(bound.low),
            decimal(bound.high),
            *(decimal(value, 3) for value in (*spread, bound.images.mean, bound.images.sd)),
        )
    return table


def _against_people(title: str, human: TrialBounds, trials: Sequence[TrialBounds]) -> Table:
    table = _table(title)
    table.add_column("Score")
    table.add_column("Human", justify="right")
    for trial in trials:
        table.add_column(Text(printable(trial.name)), justify="right")
        table.add_column("", justify="right")
    rows = zip(human.scores, *(trial.scores for trial in trials), strict=True)
    for bound, *others in rows:
        cells = (cell for other in others for cell in (decimal(other.value), percent(other)))
        table.add_row(Text(bound.name), decimal(bound.value), *cells)
    return table


def _ranking(found: BoundsResult) -> Table:
    """Return one square: below the diagonal images are ranked, above it captions."""
    ranking = found.ranking
    table = _table("Kendall tau-b of the metrics' rankings of people: above the diagonal captions, below it images")
    table.add_column("")
    for number in range(1, len(ranking.names) + 1):
        table.add_column(str(number), justify="right")
    for one, name in enumerate(ranking.names):
        cells = [
            "" if one == other else decimal((ranking.captions if other > one else ranking.images)[one][other].value, 2)
            for other in range(len(ranking.names))
        ]
        table.add_row(Text(f"{one + 1} {name}"), *cells)
    return table


def _signatures(found: BoundsResult) -> Iterator[Text]:
    for key, value in found.signature.items():
        if key == "metrics" and isinstance(value, dict):
            for name, parts in value.items():
                yield Text(f"{name}|{_flat(parts)}", style="dim")
        else:
            yield Text(f"{key}: {_flat(value)}", style="dim")


def _flat(value: Json) -> str:
    return "|".join(f"{key}:{part}" for key, part in value.items()) if isinstance(value, dict) else str(value)
