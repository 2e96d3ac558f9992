"""Where ``score`` writes a result, and in which format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_service.cli.formats import RESULT_FORMATS, ResultFormat, parquet_bytes
from spicegraph_service.cli.output import check_output, format_by_ending, whole_path, write_text
from spicegraph_service.cli.terminal import write_stdout
from spicegraph_service.engines.object_store import is_url, write_object

if TYPE_CHECKING:
    from spicegraph_scorer.results import Result

__all__ = ["ResultOutput"]

_BY_ENDING = {
    ".json": ResultFormat.JSON,
    ".jsonl": ResultFormat.JSONL,
    ".csv": ResultFormat.CSV,
    ".parquet": ResultFormat.PARQUET,
}


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """What ``--format`` and ``--output`` say, as they were given."""

    form: ResultFormat | None
    path: str | None

    @property
    def format(self) -> ResultFormat:
        """The format of what is written: the one that is told, or what the file's ending says, or a table.

        Raises:
            InputError: the ending is that of a format in which scores are not written.
        """
        return self.form or format_by_ending(self.path, _BY_ENDING, ResultFormat.TABLE)

    def check(self) -> None:
        """Say now, before the work, that the result can't be written there.

        Raises:
            InputError: the folder is missing or not writable, or the place is none for the format.
        """
        is_parquet = self.format is ResultFormat.PARQUET
        if self.path is None:
            if is_parquet:
                raise InputError("--format parquet is no text: name a file with -o")
        elif not is_url(self.path):
            check_output(self.path)
        elif not is_parquet:
            raise InputError(f"{self.path}: only Parquet is written to a URL; give --format parquet, or a file")

    def write(self, result: Result) -> None:
        """Write to the place, and the table for the person who looks on if nothing else was asked for."""
        if self.path is not None:
            if self.format is ResultFormat.PARQUET:
                _write_bytes(self.path, parquet_bytes(result))
            else:
                write_text(RESULT_FORMATS[self.format](result), self.path)
        if self.path is None or self.form is None:
            write_stdout(RESULT_FORMATS[self.form or ResultFormat.TABLE](result))


def _write_bytes(place: str, content: bytes) -> None:
    if is_url(place):
        write_object(place, content)
    else:
        with whole_path(place) as temporary:
            temporary.write_bytes(content)
