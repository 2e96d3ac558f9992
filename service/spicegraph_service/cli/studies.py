"""What ``agree`` and ``bounds`` share: the options of their output, and writing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_service.output.files import check_output, format_by_ending, write_text
from spicegraph_service.output.studies import BY_ENDING, STUDY_FORMATS, StudyFormat

if TYPE_CHECKING:
    from collections.abc import Collection

    from spicegraph_service.output.studies import Study

FormatOption = Annotated[
    StudyFormat | None,
    typer.Option("--format", help="The format of the result. Default: the one of -o's file ending, else a table."),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write to this file: .json, .csv, .tex, or .html for a page with charts."
    ),
]
TableOption = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="Which table to write as CSV. Default: the main one; an unknown name lists them all.",
    ),
]
DrawsOption = Annotated[int, typer.Option(min=1, help="Number of resamples for each interval and test.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same random choices and intervals.")]


@dataclass(frozen=True, slots=True)
class StudyOutput:
    """Where a study goes (``None``: standard output), in which format, and which table of it CSV holds."""

    form: StudyFormat
    path: str | None
    table: str | None

    def write(self, study: Study) -> None:
        """Write a study."""
        if self.table is not None:
            study = replace(study, tables={self.table: study.tables[self.table]})
        write_text(STUDY_FORMATS[self.form](study), self.path)


def study_output(form: StudyFormat | None, path: str | None, table: str | None, tables: Collection[str]) -> StudyOutput:
    """Say before the work whether the output can be written, and in which format.

    Args:
        form: what ``--format`` says.
        path: what ``-o`` says.
        table: what ``--table`` says.
        tables: the tables that the study has.

    Raises:
        InputError: the file can't be written, its ending is that of another format, or there is no such table.
    """
    if path is not None:
        check_output(path)
    chosen = form or format_by_ending(path, BY_ENDING, StudyFormat.TABLE)
    if table is not None and table not in tables:
        raise InputError(f"--table: there is no table {table!a:.60}; there are {', '.join(tables)}")
    if table is not None and chosen is not StudyFormat.CSV:
        raise InputError("--table selects a table for CSV: add --format csv, or -o with a file that ends in .csv")
    return StudyOutput(chosen, path, table)
