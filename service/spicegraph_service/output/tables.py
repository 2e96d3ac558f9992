"""Results and captions as tables for people."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from spicegraph_parser.export.graph_text import tuple_text
from spicegraph_scorer.core.categories import micro_shares
from spicegraph_scorer.core.results import CorpusScore, Json, Result, RunSummary, Summary
from spicegraph_scorer.core.significance import SIGNIFICANT
from spicegraph_scorer.core.tokens import SPICE_TEXTS
from spicegraph_scorer.metrics import lower_is_better
from spicegraph_service.output.grid import UNDEFINED, Cell, Column, Grid, headings, ranked, to_rich
from spicegraph_service.output.terminal import is_terminal, printable

if TYPE_CHECKING:
    from rich.measure import Measurement

    from spicegraph_parser.spice.extraction import ParsedCaption
    from spicegraph_scorer.metrics.spice.difference import SystemDifference
    from spicegraph_scorer.scoring import SystemComparison

Content: TypeAlias = "Grid | RenderableType"

TOOLKIT_NOTE = (
    "SPICE is of the COCO toolkit's tokens, as COCOEvalCap prints it; for captions as written: --spice-text written"
)
_PLAIN_WIDTH = 120
_LONGEST_HEAD = 24
_SHOWN_ITEMS = 20


def console_width() -> int:
    """Return how many columns there are: those of the terminal, else a fixed number."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _PLAIN_WIDTH


def rendered(contents: Iterable[Content]) -> str:
    """Render tables and texts with rich: in colour on a terminal, plain elsewhere."""
    console = Console(
        file=io.StringIO(),
        force_terminal=is_terminal(sys.stdout),
        width=console_width(),
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for content in contents:
            shown = to_rich(content) if isinstance(content, Grid) else content
            for part in fitted(shown, console) if isinstance(shown, Table) else (shown,):
                console.print(part, soft_wrap=isinstance(part, Text))
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def fitted(table: Table, console: Console) -> Iterator[Table]:
    """Yield a table in as many parts, each with its first columns, as it takes for no number to be cut or broken."""
    whole = [number for number, column in enumerate(table.columns) if column.justify == "right" or column.no_wrap]
    if not whole or _measured(table, console).maximum <= console.width:
        yield table
        return
    labels = list(range(next((number for number in whole if number), 1)))
    chosen = list(labels)
    parts = [chosen]
    for number in range(len(labels), len(table.columns)):
        wider = _part(table, [*chosen, number], console, first=True)
        if len(chosen) > len(labels) and _measured(wider, console).minimum > console.width:
            chosen = list(labels)
            parts.append(chosen)
        chosen.append(number)
    yield from (_part(table, numbers, console, first=part == 0) for part, numbers in enumerate(parts))


def _measured(table: Table, console: Console) -> Measurement:
    """Return how wide a table is if its texts wrap between words, and if they do not."""
    return console.measure(table, options=console.options.update(max_width=10_000))


def _part(table: Table, numbers: Sequence[int], console: Console, *, first: bool) -> Table:
    """Return some columns of a table; its title stands above the first part alone."""
    part = Table(
        title=table.title if first else None,
        title_justify=table.title_justify,
        box=table.box,
        pad_edge=table.pad_edge,
        padding=table.padding,
    )
    columns = [table.columns[number] for number in numbers]
    options = console.options
    for column in columns:
        whole = column.justify == "right" or column.no_wrap
        cells = (column.header, *column.cells)
        width = max(console.measure(cell, options=options).maximum for cell in cells) if whole else None
        part.add_column(column.header, justify=column.justify, overflow="fold", no_wrap=whole, min_width=width)
    for row, shown in zip(table.rows, zip(*(column.cells for column in columns), strict=True), strict=True):
        part.add_row(*shown, style=row.style, end_section=row.end_section)
    return part


def result_tables(result: Result | Summary) -> Iterator[Content]:
    """Yield the tables of a result: all metrics, each SPICE's categories, and the signature."""
    summary = result if isinstance(result, Summary) else result.summary
    columns = headings("Metric|text", "Score|score", "Items|count", "95 % interval|score span")
    rows = [(score.name, score.value, score.items, ends) for score, ends in _corpus_scores(summary)]
    width = 4 if summary.confidence else 3
    yield Grid("Corpus scores", columns[:width], [row[:width] for row in rows])
    yield from (_category_grid(run) for run in summary.runs if run.categories)
    if _is_toolkit_text(summary.signature):
        yield Text(TOOLKIT_NOTE)
    yield from _signatures(summary.signature)


_SUMS = ("micro P|score", "micro R|score", "micro F|score", "tp|count", "fp|count", "fn|count")


def _category_grid(run: RunSummary) -> Grid:
    """Return a metric's categories: means as SPICE takes them, and sums over every item, if tuples are counted."""
    counted = any(means.micro is not None for means in run.categories.values())
    more = _SUMS if counted else ()
    cells: list[tuple[Cell, ...]] = []
    for name, means in run.categories.items():
        sums: tuple[Cell, ...] = ("",) * len(more)
        if (micro := means.micro) is not None:
            sums = (*micro_shares(micro).values(), micro.matched, micro.false_positives, micro.false_negatives)
        cells.append((name, means.f, means.pr, means.re, means.items, *sums))
    names = ("Category|text", "F|score", "P|score", "R|score", "Items|count")
    return Grid(f"{run.headline[0].name} by category", headings(*names, *more), cells)


def systems_tables(systems: Mapping[str, Result | Summary]) -> Iterator[Content]:
    """Yield the tables of several systems by name, a column each: all metrics, F by category, and the signatures."""
    summaries = [each if isinstance(each, Summary) else each.summary for each in systems.values()]
    heads = [printable(name) for name in systems]
    if max(map(len, heads)) > _LONGEST_HEAD:
        numbered = {f"({number})": name for number, name in enumerate(heads, start=1)}
        yield Text("".join(f"{number} {name}\n" for number, name in numbered.items()))
        heads = list(numbered)
    metrics = summaries[0].signature["metrics"]
    lower = lower_is_better(metrics if isinstance(metrics, Mapping) else ())
    yield _side_by_side("Corpus scores", "Metric", heads, list(map(_estimates, summaries)), lower)
    for runs in zip(*(summary.runs for summary in summaries), strict=True):
        if runs[0].categories:
            title = f"{runs[0].headline[0].name} F by category"
            yield _side_by_side(title, "Category", heads, list(map(_category_estimates, runs)))
    yield from _signatures_of(heads, [summary.signature for summary in summaries])


def _estimates(summary: Summary) -> dict[str, tuple[float | None, float | None, float | None]]:
    return {score.name: (score.value, *(ends or (None, None))) for score, ends in _corpus_scores(summary)}


def _category_estimates(run: RunSummary) -> dict[str, tuple[float | None, float | None, float | None]]:
    return {name: (means.f, None, None) for name, means in run.categories.items()}


def _signatures_of(heads: Sequence[str], signatures: Sequence[Mapping[str, Json]]) -> Iterator[Content]:
    """Yield the fields common to all systems' signatures, then each system's own."""
    common = {key: value for key, value in signatures[0].items() if all(each.get(key) == value for each in signatures)}
    if _is_toolkit_text(common):
        yield Text(TOOLKIT_NOTE)
    yield from _signatures(common)
    for head, signature in zip(heads, signatures, strict=True):
        if different := {key: value for key, value in signature.items() if key not in common}:
            yield Text(f"{head}: {_fields(different)}", style="dim")


def _corpus_scores(summary: Summary) -> Iterator[tuple[CorpusScore, tuple[float | None, float | None] | None]]:
    """Yield the corpus scores, each with the ends of its interval, if there is one; categories only with intervals."""
    for run in summary.runs:
        ends = {interval.name: (interval.low, interval.high) for interval in run.intervals}
        for score in run.scores if run.intervals else run.headline:
            yield score, ends.get(score.name)


def _side_by_side(
    title: str,
    label: str,
    heads: Sequence[str],
    columns: Sequence[Mapping[str, tuple[float | None, float | None, float | None]]],
    lower: Collection[str] = (),
) -> Grid:
    """Return a table with a column of values for each system; the interval of a value is printed below it."""
    rows: list[tuple[Cell, ...]] = []
    styles = []
    for name in columns[0]:
        values = [column[name][0] for column in columns]
        marks = ranked(values, lower=name in lower)
        written = (UNDEFINED if value is None else f"{value:.4f}" for value in values)
        styles.append({number: marks.get(text, "") for number, text in enumerate(written, start=1)})
        rows.append((name, *(column[name] for column in columns)))
    return Grid(title, (Column(label, "text"), *(Column(head, "estimate") for head in heads)), rows, styles=styles)


def _is_toolkit_text(signature: Mapping[str, Json]) -> bool:
    metrics = signature["metrics"]
    parts = metrics.values() if isinstance(metrics, Mapping) else ()
    return any(isinstance(part, Mapping) and part.get("text") == SPICE_TEXTS["coco"] for part in parts)


def plain_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    """Return a table of texts."""
    return Grid("", [Column(name, "text") for name in names], rows)


def comparison_tables(comparison: SystemComparison, names: tuple[str, str]) -> Iterator[Content]:
    """Yield the table of differences between two systems, its legend, and the signature."""
    first, second = map(printable, names)
    yield Text(f"A: {first}\nB: {second}\n")
    lower = lower_is_better(comparison.metrics)
    rows, styles = [], []
    for row in chain.from_iterable(comparison.metrics.values()):
        marks = ranked((row.first, row.second), lower=row.name in lower) if row.is_sure else {}
        colours = [marks.get("" if value is None else f"{value:.4f}", "") for value in (row.first, row.second)]
        styles.append(dict(enumerate((*colours, colours[1]), start=1)) if row.is_sure else {})
        ps = (row.p_bootstrap, row.p_randomization, row.p_corrected)
        ends = (row.low, row.high)
        rows.append((row.name, row.first, row.second, row.difference, ends, *ps, "*" if row.is_sure else ""))
    columns = headings(
        *("Score|text", "A|score", "B|score", "B - A|score", "95 % interval|score span"),
        *("p bootstrap|exact p", "p randomization|exact p", "p corrected|exact p", "|count"),
    )
    yield Grid("B against A", columns, rows, styles=styles)
    if _is_toolkit_text(comparison.signature):
        yield Text(TOOLKIT_NOTE)
    yield from (Text(note, style="dim") for note in _comparison_notes(comparison))
    if comparison.length:
        yield from _length_tables(comparison)
    yield from _signatures(comparison.signature)


def _comparison_notes(comparison: SystemComparison) -> Iterator[str]:
    """Yield the legend of a comparison table: its marks and its gaps."""
    rows = list(chain.from_iterable(comparison.metrics.values()))
    if lower := lower_is_better(comparison.metrics):
        yield f"lower is better: {', '.join(sorted(lower))}"
    if any(row.difference is not None and row.low is None for row in rows):
        yield f"{UNDEFINED}: fewer than two images of A or of B have the score"
    yield f"* corrected p < {SIGNIFICANT:g}: the larger of both tests, by Holm's procedure over the {len(rows)} scores"
    resampling = comparison.signature.get("resampling")
    if isinstance(resampling, dict) and len(rows) / (resampling["draws"] + 1) >= SIGNIFICANT:
        yield f"{resampling['draws']} draws are too few for that: --draws asks for more"


def _length_tables(comparison: SystemComparison) -> Iterator[Content]:
    """Yield the length-only baseline and each difference between systems at equal length."""
    rows = [
        (name, control.longer_wins, control.difference, (control.low, control.high))
        for name, control in comparison.length.items()
    ]
    words = next(iter(comparison.length.values())).words
    columns = headings(
        "Score|text", "the longer caption has more|percent", "B - A at equal length|score", "95 % interval|score span"
    )
    yield Grid(f"Length: {words[1]:.0f} words a caption of A, {words[0]:.0f} of B", columns, rows)
    yield Text(
        f"At equal length: regressed on the log of the ratio of words; {UNDEFINED}: no image has captions of like "
        "length. A difference whose interval has 0 here may be one of length alone.",
        style="dim",
    )


def difference_tables(difference: SystemDifference, names: tuple[str, str]) -> Iterator[Content]:
    """Yield the totals of B's changes, the first images' changed tuples, and the signature."""
    first, second = map(printable, names)
    yield Text(f"A: {first}\nB: {second}\n")
    corpus = difference.corpus()
    values = [(n.replace("_", " "), str(v) if isinstance(v, int) else v) for n, v in corpus.items()]
    yield Grid("From A to B", headings("Score|text", "Value|score"), values)
    rows = [
        (str(image), name.replace("_", " "), " ".join(f"({', '.join(each.strings)})" for each in tuples))
        for image, item in list(zip(difference.ids, difference.items, strict=True))[:_SHOWN_ITEMS]
        for name, tuples in item.changed().items()
        if tuples
    ]
    columns = headings("Image|text", "Change|text", "Tuples|text")
    yield Grid("Changed tuples", columns, rows, is_grouped=True)
    if len(difference.items) > _SHOWN_ITEMS:
        yield Text(f"the first {_SHOWN_ITEMS} of {len(difference.items)} images; --format json has all", style="dim")
    yield Text("|".join(f"{key}:{value}" for key, value in difference.signature.items()), style="dim")


def signature_lines(signature: Mapping[str, Json], *, leave: Collection[str] = ()) -> Iterator[str]:
    """Yield the shared signature line, then one per metric without the ``leave`` fields."""
    yield _fields({key: value for key, value in signature.items() if key != "metrics"})
    metrics = signature.get("metrics")
    for name, parts in metrics.items() if isinstance(metrics, Mapping) else ():
        fields = {key: value for key, value in parts.items() if key not in leave} if isinstance(parts, Mapping) else {}
        yield f"{name}|{_fields(fields)}"


def _signatures(signature: Mapping[str, Json]) -> Iterator[Text]:
    return (Text(line, style="dim") for line in signature_lines(signature, leave={"metric"}))


def _fields(signature: Mapping[str, Json]) -> str:
    return "|".join(f"{key}:{_flat(value)}" for key, value in signature.items())


def _flat(value: Json) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}={_flat(part)}" for key, part in value.items())
    return printable(str(value))


def caption_table(captions: Iterable[ParsedCaption]) -> Table:
    """Return one table of all captions' tuples, with the rule that made each, or why it is kept apart."""
    table = Table()
    table.add_column("Caption", overflow="fold", ratio=2)
    table.add_column("Tuple", overflow="fold", ratio=2)
    table.add_column("Rule")
    for caption in captions:
        text = Text(printable(" ".join(caption.text.split())))
        rows = [(fact, fact.rule) for fact in caption.facts]
        rows += [(fact, f"apart: {fact.rule}") for fact in caption.apart]
        for index, (fact, rule) in enumerate(rows):
            words = Text(printable(tuple_text(fact.words)))
            table.add_row(text if index == 0 else "", words, rule, end_section=index + 1 == len(rows))
        if not rows:
            table.add_row(text, UNDEFINED, "", end_section=True)
    return table
