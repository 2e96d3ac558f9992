"""Where ``score`` writes a result, and in which format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.results import Summary
from spicegraph_service.engines.objects import check_object, is_url, write_object
from spicegraph_service.output.files import check_output, format_by_ending, is_packed, whole_path, write_text
from spicegraph_service.output.formats import RESULT_FORMATS, ResultFormat, parquet_bytes
from spicegraph_service.output.tables import rendered, result_tables
from spicegraph_service.output.terminal import write_stdout

if TYPE_CHECKING:
    from spicegraph_scorer.core.results import Result

_BY_ENDING = {
    ".json": ResultFormat.JSON,
    ".jsonl": ResultFormat.JSONL,
    ".csv": ResultFormat.CSV,
    ".parquet": ResultFormat.PARQUET,
    ".txt": ResultFormat.TABLE,
}


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """What ``--format`` and ``--output`` say, as they were given."""

    form: ResultFormat | None
    path: str | None

    @property
    def format(self) -> ResultFormat:
        """The format of what is written: the one given, else that of the file's ending, else a table.

        Raises:
            InputError: scores are not written in a format with that ending.
        """
        if self.form is None and self.is_folder:
            return ResultFormat.PARQUET
        return self.form or format_by_ending(self.path, _BY_ENDING, ResultFormat.TABLE)

    @property
    def is_folder(self) -> bool:
        """Whether the place is a folder of parts, which the machines of a cluster write."""
        return self.path is not None and self.path.endswith("/")

    def check(self, *, folders: bool = False) -> None:
        """Say now, before the work, that the result can't be written there.

        Args:
            folders: a folder of parts can be written.

        Raises:
            InputError: the folder is missing or not writable, or the format can't be written to the place.
        """
        is_parquet = self.format is ResultFormat.PARQUET
        if is_parquet and self.path is not None and is_packed(self.path):
            raise InputError(f"{self.path}: Parquet is compressed already; name a file that ends in .parquet")
        if self.path is None:
            if is_parquet:
                raise InputError("--format parquet is binary and is not printed: name a file with -o")
        elif not is_parquet and (self.is_folder or is_url(self.path)):
            raise InputError(
                f"{self.path}: only Parquet is written to a URL or a folder; give --format parquet, or a file"
            )
        elif self.is_folder:
            if not folders:
                raise InputError(f"{self.path}: only --engine ray writes a folder of parts; name a file")
        elif is_url(self.path):
            check_object(self.path)
        else:
            check_output(self.path)

    def write(self, result: Result | Summary) -> None:
        """Write to the place, and the table for the person who looks on if nothing else was asked for.

        Of a corpus without its items, only the table is written: Parquet was written with the work.
        """
        if isinstance(result, Summary):
            self._write_table(rendered(result_tables(result)))
            return
        if self.path is not None:
            if self.format is ResultFormat.PARQUET:
                _write_bytes(self.path, parquet_bytes(result))
            else:
                write_text(RESULT_FORMATS[self.format](result), self.path)
        if self.path is None or self.form is None:
            write_stdout(RESULT_FORMATS[self.form or ResultFormat.TABLE](result))

    def _write_table(self, table: str) -> None:
        if self.path is not None and self.format is ResultFormat.TABLE:
            write_text(table, self.path)
        if self.path is None or self.form is None:
            write_stdout(table)


def _write_bytes(place: str, content: bytes) -> None:
    if is_url(place):
        write_object(place, content)
    else:
        with whole_path(place) as temporary:
            temporary.write_bytes(content)
