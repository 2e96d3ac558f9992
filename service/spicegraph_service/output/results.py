"""Results and comparisons as text (in pieces: that of many items is large) or Parquet, and where they are written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.results import Json, Result, Summary
from spicegraph_scorer.core.significance import Resampling
from spicegraph_service.engines import objects
from spicegraph_service.output import terminal
from spicegraph_service.output.grid import Grid, csv_lines, to_csv, to_latex, to_markdown
from spicegraph_service.output.tables import Content, rendered, result_tables, systems_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from spicegraph_scorer.metrics.spice.difference import SystemDifference
    from spicegraph_scorer.scoring import SystemComparison

Compared = TypeVar("Compared", "SystemComparison", "SystemDifference")
_ROWS: Final = 4096  # items whose scores are turned into columns together


class ResultFormat(StrEnum):
    """The output formats of ``score``."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    SPICE = "spice"
    MARKDOWN = "markdown"
    LATEX = "latex"


def _json(head: Mapping[str, Json], name: str, rows: Iterable[Json]) -> Iterator[str]:
    """Yield the JSON of an object whose last field, of this name, is a list."""
    start, end = _pretty({**head, name: []}).rsplit("[]", 1)
    yield start
    yield from _pretty_list(rows, depth=1)
    yield end


def _csv(result: Result) -> Iterator[str]:
    """Yield CSV lines, one per item; categories are ``SPICE_categories_Color_f``, undefined values empty."""
    rows = (dict(objects.flat_scores(scores)) for scores in result.iter_scores())
    first = next(rows, {})
    lines = (
        [item.id, *(row[name] for name in first)] for item, row in zip(result.items, chain([first], rows), strict=False)
    )
    return csv_lines(chain([["image_id", *first]], lines))


def parquet_bytes(result: Result) -> bytes:
    """Return one item per row, in the columns of the CSV; signature and corpus scores are in the file's metadata."""
    with objects.parquet_extra():
        import pyarrow as pa  # noqa: PLC0415 (an extra)
    text_ids = any(isinstance(item.id, str) for item in result.items)
    scores = result.iter_scores()
    parts = [
        objects.score_table(items, list(islice(scores, _ROWS)), text_ids=text_ids)
        for items in (result.items[start : start + _ROWS] for start in range(0, len(result.items), _ROWS))
    ]
    about = {objects.METADATA: msgspec.json.encode(result.summary.to_dict())}
    return objects.table_bytes(pa.concat_tables(parts).combine_chunks().replace_schema_metadata(about))


def _spice(result: Result) -> Iterator[str]:
    from spicegraph_scorer.metrics.spice.metric import jar_rows  # noqa: PLC0415 (only this format needs it)

    yield from _pretty_list(jar_rows(result), depth=0)
    yield "\n"


def _pretty_list(values: Iterable[Json], *, depth: int) -> Iterator[str]:
    """Yield the text of a list as :func:`_pretty` gives it, a value at a time; it is within ``depth`` objects."""
    indent = "\n" + "  " * depth
    before = "["
    for value in values:
        yield f"{before}{indent}  " + _pretty(value).rstrip("\n").replace("\n", f"{indent}  ")
        before = ","
    yield "[]" if before == "[" else f"{indent}]"


def _pretty(value: Json) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


RESULT_FORMATS: Mapping[ResultFormat, Callable[[Result], Iterable[str]]] = {
    ResultFormat.TABLE: lambda result: (rendered(result_tables(result)),),
    ResultFormat.JSON: lambda result: _json(result.summary.to_dict(), "items", result.iter_rows()),
    # One item per line; the corpus scores and the signature are in the other formats.
    ResultFormat.JSONL: lambda result: (msgspec.json.encode(row).decode() + "\n" for row in result.iter_rows()),
    ResultFormat.CSV: _csv,
    ResultFormat.SPICE: _spice,
    ResultFormat.MARKDOWN: lambda result: (standing_text({"captions": result}, ResultFormat.MARKDOWN),),
    ResultFormat.LATEX: lambda result: (standing_text({"captions": result}, ResultFormat.LATEX),),
}  # The formats that are text; Parquet is not.


_STANDING_FORMATS: Mapping[ResultFormat, Callable[[Grid], str]] = {
    ResultFormat.CSV: to_csv,
    ResultFormat.LATEX: to_latex,
    ResultFormat.MARKDOWN: lambda grid: "\n".join((to_markdown(grid), *(f"{note}\n" for note in grid.notes))),
}


def standing_text(systems: Mapping[str, Result], form: ResultFormat) -> str:
    """Return a line a system: SPICE by category, with who is best and how surely, and the other metrics' scores."""
    # Imported here: most runs print other tables.
    from spicegraph_service.output.standing import result_standings, standing_grid  # noqa: PLC0415

    results = list(systems.values())
    rows = result_standings(results, Resampling())
    shown = [run for run in results[0].runs if not rows or run.headline == run.scores]
    places = [(n, s) for n, run in enumerate(results[0].runs) if run in shown for s in range(len(run.scores))]
    others = {
        results[0].runs[n].scores[s].name: [result.runs[n].scores[s].value for result in results] for n, s in places
    }
    return _STANDING_FORMATS[form](standing_grid(rows, list(systems), others))


class ComparisonFormat(StrEnum):
    """The output formats of ``compare``."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


def pair_text(
    comparison: Compared,
    names: tuple[str, str],
    form: ComparisonFormat,
    tables: Callable[[Compared, tuple[str, str]], Iterable[Content]],
) -> str:
    """Return the comparison of two named systems as tables or JSON."""
    if form is ComparisonFormat.TABLE:
        return rendered(tables(comparison, names))
    first, second = names
    return _pretty({"systems": {"first": first, "second": second}, **comparison.to_dict()})


COMPARISON_BY_ENDING: Mapping[str, ComparisonFormat] = {
    ".json": ComparisonFormat.JSON,
    ".html": ComparisonFormat.HTML,
    ".htm": ComparisonFormat.HTML,
    ".txt": ComparisonFormat.TABLE,
}


_OF_ENDINGS = (ResultFormat.JSON, ResultFormat.JSONL, ResultFormat.CSV, ResultFormat.PARQUET)
_BY_ENDING = {
    **{f".{form}": form for form in _OF_ENDINGS},
    ".txt": ResultFormat.TABLE,
    ".md": ResultFormat.MARKDOWN,
    ".tex": ResultFormat.LATEX,
}


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """The values of ``--format`` and ``--output``."""

    form: ResultFormat | None
    path: str | None

    @property
    def format(self) -> ResultFormat:
        """The output format: as given, else by file extension, else a table."""
        if self.form is None and self.is_folder:
            return ResultFormat.PARQUET
        return self.form or terminal.format_by_ending(self.path, _BY_ENDING, ResultFormat.TABLE)

    @property
    def is_folder(self) -> bool:
        """Whether the place is a folder of parts, which the machines of a cluster write."""
        return self.path is not None and self.path.endswith("/")

    def check(self, *, folders: bool = False) -> None:
        """Say now, before the work, that the result can't be written there."""
        is_parquet = self.format is ResultFormat.PARQUET
        if self.path is None:
            if is_parquet:
                raise InputError("--format parquet is binary and is not printed: name a file with -o")
            return
        if is_parquet and terminal.is_packed(self.path):
            raise InputError(f"{self.path}: Parquet is compressed already; name a file that ends in .parquet")
        if not is_parquet and (self.is_folder or objects.is_url(self.path)):
            raise InputError(
                f"{self.path}: only Parquet is written to a URL or a folder; give --format parquet, or a file"
            )
        if self.is_folder and not folders:
            raise InputError(f"{self.path}: only --engine ray writes a folder of parts; name a file")
        if self.is_folder:
            return
        if objects.is_url(self.path):
            objects.check_object(self.path)
        else:
            terminal.check_output(self.path)

    def check_systems(self) -> None:
        """Say now, before the work, that the results of several systems can't be written in the format."""
        if self.format not in {ResultFormat.TABLE, ResultFormat.JSON, *_STANDING_FORMATS}:
            forms = ", ".join((ResultFormat.TABLE, ResultFormat.JSON, *_STANDING_FORMATS))
            raise InputError(
                f"several systems are written as {forms}, not as {self.format}: score each system alone for that"
            )

    def write_systems(self, systems: Mapping[str, Result]) -> None:
        """Write the results of several systems, by name, as :meth:`write` does for one."""
        if self.format in _STANDING_FORMATS:
            terminal.write_text(standing_text(systems, self.format), self.path)
            return
        if self.format is ResultFormat.JSON:
            rows = ({"name": name, **result.to_dict()} for name, result in systems.items())
            terminal.write_text(_json({}, "systems", rows), self.path)
        if self.path is not None or self.format is not ResultFormat.JSON:
            self._write_table(rendered(systems_tables(systems)))

    def write_parts(self, summary: Summary, rows: Iterable[Json]) -> None:
        """Write corpus scores and rows of items that were made elsewhere, as table or JSON."""
        if self.format is ResultFormat.JSON:
            terminal.write_text(_json(summary.to_dict(), "items", rows), self.path)
        if self.path is not None or self.format is not ResultFormat.JSON:
            self._write_table(rendered(result_tables(summary)))

    def write(self, result: Result | Summary) -> None:
        """Write to the place, and print the table where nothing else was asked for."""
        if isinstance(result, Summary):
            self._write_table(rendered(result_tables(result)))
            return
        if self.path is not None:
            if self.format is ResultFormat.PARQUET:
                content = parquet_bytes(result)
                if objects.is_url(self.path):
                    objects.write_object(self.path, content)
                else:
                    with terminal.whole_path(self.path) as temporary:
                        temporary.write_bytes(content)
            else:
                terminal.write_text(RESULT_FORMATS[self.format](result), self.path)
        if self._is_printed:
            terminal.write_stdout(RESULT_FORMATS[self.form or ResultFormat.TABLE](result))

    def _write_table(self, table: str) -> None:
        if self.path is not None and self.format is ResultFormat.TABLE:
            terminal.write_text(table, self.path)
        if self._is_printed:
            terminal.write_stdout(table)

    @property
    def _is_printed(self) -> bool:
        """Whether standard output gets something: not of ``--quiet`` where a file holds it."""
        return self.path is None or (self.form is None and not terminal.is_quiet())
