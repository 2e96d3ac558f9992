"""The charts of a page of bounds: corpus scores as bars, the spread over captions as boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_service.output.charts import Bars, Ink, bar_chart, new_figure, series_ink, short, with_tip
from spicegraph_service.output.studies.model import Chart
from spicegraph_service.output.svg import to_svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spicegraph_scorer.studies.bounds import Bound, BoundsResult, TrialBounds

__all__ = ["metric_charts"]

_ROW = 24.0
_BOX = 14.0
_AXIS = 46.0
_TABLE = "The tables have the numbers."


def metric_charts(found: BoundsResult) -> list[Chart]:
    """Draw, for each metric, all its scores as bars, and the first of them as boxes.

    Raises:
        DataError: matplotlib is not installed.
    """
    return [chart for metric in found.human.metrics for chart in (_bar_chart(found, metric), _box_chart(found, metric))]


def _bar_chart(found: BoundsResult, metric: str) -> Chart:
    bars = [
        Bars(
            trial.name,
            [bound.value for bound in trial.metrics[metric]],
            ink,
            [(bound.low, bound.high) for bound in trial.metrics[metric]],
            [_share(bound) for bound in trial.metrics[metric]],
        )
        for trial, ink in _colored(found.trials)
    ]
    names = [bound.name for bound in found.human.metrics[metric]]
    svg = to_svg(
        bar_chart(names, bars, axis="corpus score"),
        title=f"{metric}: people, systems and lower bounds",
        description=f"Bars of corpus scores with 95 % intervals. {_TABLE}",
    )
    return Chart(svg, metric)


def _box_chart(found: BoundsResult, metric: str) -> Chart:
    title = f"{found.human.metrics[metric][0].name} of single captions"
    svg = to_svg(
        _boxes(found.trials, metric, title),
        title=title,
        description=f"Boxes from the first to the third quartile, lines from the least to the most. {_TABLE}",
    )
    return Chart(svg, title)


def _colored(trials: Sequence[TrialBounds]) -> Iterator[tuple[TrialBounds, Ink]]:
    for place, trial in enumerate(trials):
        yield trial, series_ink(place - 1) if place else Ink.HUMAN


def _share(bound: Bound) -> str:
    if bound.share is None:
        return "the upper bound"
    return "no human score" if bound.share.percent is None else f"{bound.share.percent:.1f} % of the human score"


def _boxes(trials: Sequence[TrialBounds], metric: str, title: str) -> Figure:
    figure, axes = new_figure(height=len(trials) * _ROW + _AXIS)
    for place, (trial, ink) in enumerate(_colored(trials)):
        _box(axes, place * _ROW, trial.name, trial.metrics[metric][0], ink)
    axes.set_yticks([place * _ROW for place in range(len(trials))], labels=[short(trial.name) for trial in trials])
    axes.set_ylim((len(trials) - 0.5) * _ROW, -0.5 * _ROW)
    axes.grid(visible=False, axis="y")
    axes.tick_params(length=0)
    axes.set_xlabel(title)
    return figure


def _box(axes: Axes, place: float, name: str, bound: Bound, ink: Ink) -> None:
    own = bound.captions
    least, q1, median, q3, most = own.minimum, own.q1, own.median, own.q3, own.maximum
    if least is None or q1 is None or median is None or q3 is None or most is None or own.mean is None:
        return
    axes.plot((least, most), (place, place), color=ink.value, linewidth=1.4, solid_capstyle="butt")
    (box,) = axes.barh(place, q3 - q1, left=q1, height=_BOX, color=ink.value)
    with_tip(box, f"{name}: {least:.3f}, {q1:.3f}, {median:.3f}, {q3:.3f}, {most:.3f}; mean {own.mean:.3f}")
    ends = (place - _BOX / 2, place + _BOX / 2)
    axes.plot((median, median), ends, color=Ink.PAGE.value, linewidth=2.4, solid_capstyle="butt")
    axes.plot(own.mean, place, color=Ink.TEXT.value, marker="D", markersize=3.5, linestyle="none")
