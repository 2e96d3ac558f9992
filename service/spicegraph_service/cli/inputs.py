"""Systems as arguments name them, read and looked at."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.checks import copies_note
from spicegraph_service.output.terminal import say_warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.readers.checks import Empty
    from spicegraph_service.output.report.data import SystemInput


def system_input(
    source: str,
    *,
    references: Sequence[str] | None,
    partial: bool,
    empty: Empty = "refuse",
    name: str | None = None,
) -> SystemInput:
    """Read a system; its name stands before the file (``mine=results.json``), or is given, or is the file's own."""
    # Imported here: it brings what draws reports, which the command that only scores need not load.
    from spicegraph_service.output.report.data import SystemInput  # noqa: PLC0415

    own, path = system_name(source)
    items = read_items(path, references=references, partial=partial, empty=empty).items
    count = sum(not item.candidate.strip() for item in items)
    if count:
        say_warning(f"{path}: {counted(count, 'empty candidate')} scored as zero")
    warn_of_copies(path, items)
    return SystemInput(name or own, items)


def system_name(source: str) -> tuple[str, str]:
    """Return the name and the file that an argument such as ``mine=results.json`` holds.

    Example:
        >>> system_name("runs/first.json"), system_name("mine=runs/first.json")
        (('first', 'runs/first.json'), ('mine', 'runs/first.json'))
    """
    name, equals, path = source.partition("=")
    return (name, path) if equals and name and "/" not in name else (PurePath(source).stem, source)


def warn_of_copies(source: str, items: Sequence[Item]) -> None:
    """Warn where the candidates look like a copy of the references."""
    note = copies_note(source, items)
    if note is not None:
        say_warning(note)
