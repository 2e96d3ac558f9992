"""What the studies share: the options of their output and of their draws, and writing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_service.kit import check_output, format_by_ending, write_text
from spicegraph_studies.pages.output import BY_ENDING, STUDY_FORMATS, Study, StudyFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Where a study goes (standard output, if no file is named), and in which format.

    Output:
        form: The format of the result. Default: the one of -o's file ending, else a table.
        output: Write to this file: .json, .csv, .tex, or .html for a page with charts.
        table: Which table to write as CSV. Default: the main one; an unknown name lists them all.
    """

    form: Annotated[StudyFormat | None, typer.Option("--format")] = None
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE")] = None
    table: Annotated[str | None, typer.Option("--table", metavar="NAME")] = None

    def writer(self, tables: Collection[str]) -> Callable[[Study], None]:
        """Say before the work whether the output can be written, and return what writes a study with these tables."""
        if self.output is not None:
            check_output(self.output)
        form = self.form or format_by_ending(self.output, BY_ENDING, StudyFormat.TABLE)
        if self.table is not None and self.table not in tables:
            raise InputError(f"--table: there is no table {self.table!a:.60}; there are {', '.join(tables)}")
        if self.table is not None and form is not StudyFormat.CSV:
            raise InputError("--table selects a table for CSV: add --format csv, or -o with a file that ends in .csv")

        def write(study: Study) -> None:
            chosen = study if self.table is None else replace(study, tables={self.table: study.tables[self.table]})
            write_text(STUDY_FORMATS[form](chosen), self.output)

        return write


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(OutputOptions):
    """Where a study goes, in which format, and how it draws.

    Tests:
        draws: Number of resamples for each interval and test.
        seed: The same seed gives the same random choices and intervals.
    """

    draws: Annotated[int, typer.Option(min=1)] = 1000
    seed: Annotated[int, typer.Option(min=0)] = 12345

    @property
    def resampling(self) -> Resampling:
        """How intervals and tests are drawn."""
        return Resampling(self.draws, self.seed)
