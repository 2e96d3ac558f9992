"""Results and captions as tables for people."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from spicegraph_scorer.core.categories import micro_shares
from spicegraph_scorer.core.results import Summary
from spicegraph_scorer.core.tokens import SPICE_TEXTS
from spicegraph_scorer.metrics import lower_is_better
from spicegraph_service.output.terminal import is_terminal, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rich.measure import Measurement

    from spicegraph_parser.extract import ParsedCaption
    from spicegraph_scorer.core.categories import Counts
    from spicegraph_scorer.core.results import Json, Result, RunSummary
    from spicegraph_scorer.metrics.spice.difference import SystemDifference
    from spicegraph_scorer.scoring import SystemComparison

UNDEFINED = "–"
TOOLKIT_NOTE = (
    "SPICE is of the COCO toolkit's tokens, as COCOEvalCap prints it; for captions as written: --spice-text written"
)
SIGNIFICANT = 0.05
_PLAIN_WIDTH = 120
_ANY_WIDTH = 10_000
_LONGEST_HEAD = 24
BEST, WORST, SIGNIFICANT_P = "bold green", "red", "bold"
"""Styles of the best and the worst value of a row or column, and of a small p."""

_SHOWN_ITEMS = 20


def _width() -> int:
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _PLAIN_WIDTH


def rendered(contents: Iterable[RenderableType]) -> str:
    """Return what rich makes of tables and texts: with colour on a terminal, plain elsewhere."""
    console = Console(
        file=io.StringIO(),
        force_terminal=is_terminal(sys.stdout),
        width=_width(),
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for content in contents:
            for part in fitted(content, console) if isinstance(content, Table) else (content,):
                console.print(part, soft_wrap=isinstance(part, Text))
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def fitted(table: Table, console: Console) -> Iterator[Table]:
    """Yield a table in as many parts as it takes for no number to be cut or broken, one below another.

    Whole are the cells of columns that are aligned to the right, and of those that may not wrap. Each part has the
    columns before the first such one (the table's first column in any case), which may wrap between words, and as many
    of the others as fit.
    """
    whole = [place for place, column in enumerate(table.columns) if _is_whole(column)]
    if not whole or _measured(table, console).maximum <= console.width:
        yield table
        return
    labels = list(range(next((place for place in whole if place), 1)))
    chosen = list(labels)
    parts = [chosen]
    for place in range(len(labels), len(table.columns)):
        wider = _part(table, [*chosen, place], console, first=True)
        if len(chosen) > len(labels) and _measured(wider, console).minimum > console.width:
            chosen = list(labels)
            parts.append(chosen)
        chosen.append(place)
    yield from (_part(table, places, console, first=number == 0) for number, places in enumerate(parts))


def _is_whole(column: Column) -> bool:
    return column.justify == "right" or column.no_wrap


def _measured(table: Table, console: Console) -> Measurement:
    """Return how wide a table is if its texts wrap between words, and if they do not."""
    return console.measure(table, options=console.options.update(max_width=_ANY_WIDTH))


def _part(table: Table, places: Sequence[int], console: Console, *, first: bool) -> Table:
    """Return some columns of a table; its title stands above the first part alone."""
    part = Table(
        title=table.title if first else None,
        title_justify=table.title_justify,
        box=table.box,
        pad_edge=table.pad_edge,
        padding=table.padding,
    )
    columns = [table.columns[place] for place in places]
    options = console.options
    for column in columns:
        whole = _is_whole(column)
        cells = (column.header, *column.cells)
        width = max(console.measure(cell, options=options).maximum for cell in cells) if whole else None
        part.add_column(column.header, justify=column.justify, overflow="fold", no_wrap=whole, min_width=width)
    for row, shown in zip(table.rows, zip(*(column.cells for column in columns), strict=True), strict=True):
        part.add_row(*shown, style=row.style, end_section=row.end_section)
    return part


def result_tables(result: Result | Summary) -> Iterator[RenderableType]:
    """Yield the tables of a result: all metrics, each SPICE's categories, and the signature."""
    summary = result if isinstance(result, Summary) else result.summary
    yield _metric_table(summary)
    for run in summary.runs:
        if run.categories:
            yield _category_table(run)
    if _is_toolkit_text(summary.signature):
        yield Text(TOOLKIT_NOTE)
    yield from _signatures(summary.signature)


def systems_tables(systems: Mapping[str, Result | Summary]) -> Iterator[RenderableType]:
    """Yield the tables of several systems by name, a column each: all metrics, F by category, and the signatures.

    All were scored with the same metrics. Where a name is too long for the head of a column, all are numbered and
    listed first. On a terminal with colour the best value of a row is bold and green, the worst red.
    """
    summaries = [each if isinstance(each, Summary) else each.summary for each in systems.values()]
    heads = [printable(name) for name in systems]
    if max(map(len, heads)) > _LONGEST_HEAD:
        numbers = [f"({number})" for number in range(1, len(heads) + 1)]
        yield Text("".join(f"{number} {name}\n" for number, name in zip(numbers, heads, strict=True)))
        heads = numbers
    metrics = summaries[0].signature["metrics"]
    lower = lower_is_better(metrics if isinstance(metrics, Mapping) else ())
    yield _side_by_side("Corpus scores", "Metric", heads, map(_score_rows, summaries), lower)
    for runs in zip(*(summary.runs for summary in summaries), strict=True):
        if runs[0].categories:
            title = f"{runs[0].headline[0].name} F by category"
            yield _side_by_side(
                title, "Category", heads, ({n: (m.f, "") for n, m in r.categories.items()} for r in runs)
            )
    signatures = [summary.signature for summary in summaries]
    common = {key: value for key, value in signatures[0].items() if all(each.get(key) == value for each in signatures)}
    if _is_toolkit_text(common):
        yield Text(TOOLKIT_NOTE)
    yield from _signatures(common)
    for head, signature in zip(heads, signatures, strict=True):
        if own := {key: value for key, value in signature.items() if key not in common}:
            yield Text(f"{head}: {_fields(own)}", style="dim")


def _score_rows(summary: Summary) -> dict[str, tuple[float | None, str]]:
    """Return the scores of a system by name, each with its interval as text, if there is one."""
    shown = {i.name: _interval(i.low, i.high) for run in summary.runs for i in run.intervals}
    scores = [score for run in summary.runs for score in (run.scores if run.intervals else run.headline)]
    return {score.name: (score.value, shown.get(score.name, "")) for score in scores}


def _side_by_side(
    title: str,
    label: str,
    heads: Sequence[str],
    columns: Iterable[Mapping[str, tuple[float | None, str]]],
    lower: Collection[str] = (),
) -> Table:
    """Return a table with a column of values for each system; what stands beside a value is printed below it."""
    values = list(columns)
    table = _table(title)
    table.add_column(label)
    for head in heads:
        table.add_column(Text(head), justify="right")
    for name in values[0]:
        cells = [column[name] for column in values]
        shown = [_number(value) for value, _ in cells]
        styles = ranked([value for value, _ in cells], lower=name in lower)
        table.add_row(
            Text(name),
            *(
                Text.assemble((number, styles.get(number, "")), f"\n{beside}" if beside else "")
                for number, (_, beside) in zip(shown, cells, strict=True)
            ),
        )
    return table


def ranked(
    values: Iterable[float | None], *, lower: bool = False, write: Callable[[float], str] | None = None
) -> dict[str, str]:
    """Return the styles of the best and the worst value by what is printed; none if all that are defined print alike.

    Args:
        values: those of a row or a column; undefined ones are left out.
        lower: whether the lowest is best.
        write: how a value is printed; four decimal places by default.

    >>> ranked([0.1, None, 0.25], lower=False), ranked([0.1, 0.1], lower=False)
    ({'0.1000': 'red', '0.2500': 'bold green'}, {})
    """
    defined = sorted((value for value in values if value is not None), reverse=lower)
    ends = [(write or _number)(value) for value in (*defined[:1], *defined[-1:])]
    return dict(zip(ends, (WORST, BEST), strict=True)) if len(set(ends)) > 1 else {}


def p_style(p: object) -> str:
    """Return the style of a p: bold if it is small."""
    return SIGNIFICANT_P if isinstance(p, int | float) and p < SIGNIFICANT else ""


def _is_toolkit_text(signature: Mapping[str, Json]) -> bool:
    metrics = signature["metrics"]
    signatures = metrics.values() if isinstance(metrics, Mapping) else ()
    return any(isinstance(one, Mapping) and one.get("text") == SPICE_TEXTS["coco"] for one in signatures)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)


def _metric_table(summary: Summary) -> Table:
    table = _table("Corpus scores")
    table.add_column("Metric")
    table.add_column("Score", justify="right")
    table.add_column("Items", justify="right")
    if summary.confidence:
        table.add_column("95 % interval", justify="right")
    for run in summary.runs:
        shown = {interval.name: _interval(interval.low, interval.high) for interval in run.intervals}
        for score in run.scores if run.intervals else run.headline:
            cells = [_number(score.value), str(score.items), *([shown[score.name]] if shown else [])]
            table.add_row(Text(score.name), *cells)
    return table


def plain_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of texts, which are made harmless."""
    table = _table("")
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def score_table(scores: Mapping[str, float | None]) -> Table:
    """Return a table of scores by name."""
    table = _table("Corpus scores")
    table.add_column("Score")
    table.add_column("Value", justify="right")
    for name, value in scores.items():
        table.add_row(Text(name), _number(value))
    return table


def comparison_tables(found: SystemComparison, names: tuple[str, str]) -> Iterator[RenderableType]:
    """Yield the table of all differences between two systems, what its marks mean, and the signature.

    On a terminal with colour the better system of a significant difference is green, the other red.
    """
    first, second = map(printable, names)
    yield Text(f"A: {first}\nB: {second}\n")
    table = _table("B against A")
    table.add_column("Score")
    for name in ("A", "B", "B - A", "95 % interval", "p bootstrap", "p randomization", ""):
        table.add_column(name, justify="right")
    lower = lower_is_better(found.metrics)
    for metric in found.metrics.values():
        for row in metric:
            values = (row.p_bootstrap, row.p_randomization)
            sure = all(p is not None and p < SIGNIFICANT for p in values)
            styles = ranked((row.first, row.second), lower=row.name in lower) if sure else {}
            shown = [_number(value) for value in (row.first, row.second)]
            table.add_row(
                Text(row.name),
                *(Text(number, styles.get(number, "")) for number in shown),
                Text(_number(row.difference), styles.get(shown[1], "")),
                _interval(row.low, row.high),
                *(UNDEFINED if p is None else Text(f"{p:.4f}", p_style(p)) for p in values),
                "*" if sure else "",
            )
    yield table
    if _is_toolkit_text(found.signature):
        yield Text(TOOLKIT_NOTE)
    if lower:
        yield Text(f"lower is better: {', '.join(sorted(lower))}", style="dim")
    if any(row.difference is not None and row.low is None for rows in found.metrics.values() for row in rows):
        yield Text(f"{UNDEFINED}: fewer than two images of A or of B have the score", style="dim")
    yield Text(f"* both tests: p < {SIGNIFICANT:g}, not corrected for the number of scores", style="dim")
    yield from _signatures(found.signature)


def difference_tables(found: SystemDifference, names: tuple[str, str]) -> Iterator[RenderableType]:
    """Yield what B changes in all, the tuples that it adds and removes in the first images, and the signature."""
    first, second = map(printable, names)
    yield Text(f"A: {first}\nB: {second}\n")
    corpus = found.corpus()
    table = _table("From A to B")
    table.add_column("Score")
    table.add_column("Value", justify="right")
    for name, value in corpus.items():
        table.add_row(Text(name.replace("_", " ")), str(value) if isinstance(value, int) else _number(value))
    yield table
    tuples = Table(box=SIMPLE_HEAD, title="Changed tuples", title_justify="left", pad_edge=False)
    for name in ("Image", "Change", "Tuples"):
        tuples.add_column(name, overflow="fold")
    for own, item in list(zip(found.ids, found.items, strict=True))[:_SHOWN_ITEMS]:
        shown = printable(str(own))
        for name, kind in item.changed().items():
            if kind:
                words = " ".join(f"({', '.join(each.strings)})" for each in kind)
                tuples.add_row(Text(shown), Text(name.replace("_", " ")), Text(printable(words)))
                shown = ""
    yield tuples
    if len(found.items) > _SHOWN_ITEMS:
        yield Text(f"the first {_SHOWN_ITEMS} of {len(found.items)} images; --format json has all", style="dim")
    yield Text("|".join(f"{key}:{value}" for key, value in found.signature.items()), style="dim")


def _interval(low: float | None, high: float | None) -> str:
    return UNDEFINED if low is None or high is None else f"{low:.4f} .. {high:.4f}"


def _category_table(run: RunSummary) -> Table:
    """Return means as SPICE takes them on the left, and sums over every item on the right, if tuples are counted."""
    table = _table(f"{run.headline[0].name} by category")
    table.add_column("Category")
    counted = any(means.micro is not None for means in run.categories.values())
    micro = ("micro P", "micro R", "micro F", "tp", "fp", "fn") if counted else ()
    for name in ("F", "P", "R", "Items", *micro):
        table.add_column(name, justify="right")
    for name, means in run.categories.items():
        shares, tallies = _micro(means.micro) if means.micro else ((), ())
        table.add_row(
            Text(name),
            *map(_number, (means.f, means.pr, means.re)),
            str(means.items),
            *map(_number, shares),
            *map(str, tallies),
        )
    return table


def _micro(counts: Counts) -> tuple[tuple[float | None, ...], tuple[int, ...]]:
    """Return precision, recall and F1 of summed counts, and tp, fp and fn."""
    shares = micro_shares(counts)
    return tuple(shares.values()), (counts.matched, counts.false_positives, counts.false_negatives)


def _signatures(signature: Mapping[str, Json]) -> Iterator[Text]:
    yield Text(_fields({key: value for key, value in signature.items() if key != "metrics"}), style="dim")
    metrics = signature["metrics"]
    for name, parts in metrics.items() if isinstance(metrics, Mapping) else ():
        fields = parts.items() if isinstance(parts, Mapping) else ()
        shown = "|".join(f"{key}:{value}" for key, value in fields if key != "metric")
        yield Text(f"{name}|{shown}", style="dim")


def _fields(signature: Mapping[str, Json]) -> str:
    return "|".join(f"{key}:{_flat(value)}" for key, value in signature.items())


def _flat(value: Json) -> str:
    return ",".join(f"{key}={part}" for key, part in value.items()) if isinstance(value, dict) else str(value)


def _number(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.4f}"


def caption_table(captions: Iterable[ParsedCaption]) -> Table:
    """Return one table of all captions' tuples, with the rule that made each."""
    table = Table()
    table.add_column("Caption", overflow="fold", ratio=2)
    table.add_column("Tuple", overflow="fold", ratio=2)
    table.add_column("Rule")
    for caption in captions:
        text = Text(printable(" ".join(caption.text.split())))
        for index, fact in enumerate(caption.facts):
            words = Text(printable(f"({', '.join(fact.words)})"))
            table.add_row(text if index == 0 else "", words, fact.rule, end_section=index + 1 == len(caption.facts))
        if not caption.facts:
            table.add_row(text, UNDEFINED, "", end_section=True)
    return table
