"""Results of systems: small tables (CSV or JSON), and the JSON that ``spicegraph score`` writes."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.faults import Fault, input_error, shown
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, Limits
from spicegraph_scorer.studies.agreement.reading.content import Content, read_content, text_of
from spicegraph_scorer.studies.agreement.reading.values import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["SystemTable", "read_system_scores", "read_system_table"]

SystemTable = dict[str, dict[str, float | None]]
"""By system, numbers by the name of their column."""

_SYSTEM = "system"


def read_system_table(path: str, *, limits: Limits = DEFAULT_LIMITS) -> SystemTable:
    """Read a table of systems: CSV with a column ``system`` and one a measure, or the same as JSON.

    JSON: a list of objects with ``system``, or an object of objects by system. An empty cell, ``null`` or a dash
    is an unknown number.

    Raises:
        InputError: the message lists every fault.

    Example:
        >>> read_system_table("human.csv")  # doctest: +SKIP
        {'A': {'M1': 0.25, 'M2': 0.27}, 'B': {'M1': 0.11, 'M2': 0.13}}
    """
    return _table(read_content(path, limits))


def read_system_scores(path: str, name: str, *, limits: Limits = DEFAULT_LIMITS) -> SystemTable:
    """Read scores of one system (the JSON of ``spicegraph score``, called ``name``), or of many (a table).

    Raises:
        InputError: the message lists every fault.
    """
    content = read_content(path, limits)
    value = content.value
    if isinstance(value, dict) and isinstance(value.get("corpus"), dict):
        return {name: dict(_numbers(value["corpus"]))}
    return _table(content)


def _numbers(corpus: Mapping[str, object]) -> Iterator[tuple[str, float | None]]:
    """Yield the scores of a result; categories have their F as ``SPICE_Color``."""
    for key, value in corpus.items():
        if isinstance(value, dict):
            name = key.removesuffix("_categories")
            yield from (
                (f"{name}_{category}", float(f) if isinstance(f, int | float) else None)
                for category, part in value.items()
                if isinstance(part, dict) and category != "All"
                for f in (part.get("f"),)
            )
        elif value is None or isinstance(value, int | float):
            yield key, None if value is None else float(value)


def _table(content: Content) -> SystemTable:
    faults: list[Fault] = []
    if content.reason:
        raise InputError(f"{content.name}: {content.reason}")
    rows = _json_rows(content) if content.value is not None else _csv_rows(content)
    table: SystemTable = {}
    for place, system, cells in rows:
        row = Row(f"{place} ({shown(system)})", cells, faults)
        if not isinstance(system, str) or not system.strip():
            faults.append(Fault(place, _SYSTEM, "is missing"))
        elif system in table:
            row.fault(_SYSTEM, "stands twice")
        else:
            table[system] = {name: row.number(name, value) for name, value in cells.items() if name != _SYSTEM}
    if not table and not faults:
        faults.append(Fault("", "", "holds no system"))
    if faults:
        raise input_error(content.name, faults)
    return table


def _json_rows(content: Content) -> Iterator[tuple[str, object, Mapping[str, object]]]:
    value = content.value
    items = value.items() if isinstance(value, dict) else enumerate(value, start=1) if isinstance(value, list) else ()
    for key, cells in items:
        if not isinstance(cells, dict):
            raise InputError(f"{content.name}: {shown(key)} is {shown(cells)}, expected an object")
        system = key if isinstance(value, dict) else cells.get(_SYSTEM)
        yield f"row {shown(key)}", system, cells


def _csv_rows(content: Content) -> Iterator[tuple[str, object, Mapping[str, object]]]:
    text = text_of(content)
    separator = "\t" if "\t" in text.split("\n", 1)[0] else ","
    reader = csv.DictReader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or ()]
    if _SYSTEM not in names or len(names) < 2:
        raise InputError(
            f"{content.name}: its first line names no column {_SYSTEM!r} and a measure, but {shown(', '.join(names))}"
        )
    reader.fieldnames = names
    for number, cells in enumerate(reader, start=2):
        if None in cells or None in cells.values():
            raise InputError(f"{content.name}: line {number} has not as many cells as the first line")
        yield f"line {number}", cells[_SYSTEM], {name: _cell(text) for name, text in cells.items() if name != _SYSTEM}


def _cell(text: str) -> object:
    stripped = text.strip()
    if stripped in {"", "-", "–"}:
        return None
    try:
        return float(stripped)
    except ValueError:
        return stripped
