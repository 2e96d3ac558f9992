"""From files, whose content shows their format, to judgements and results of systems, or one error with every fault."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer.readers.checks import Empty, Fault, refuse_faults, shown
from spicegraph_scorer.readers.records import decode
from spicegraph_studies.agreement import published
from spicegraph_studies.agreement.judgements import CaptionPair, Judged, Judgement
from spicegraph_studies.agreement.records import (
    CaptionBank,
    Content,
    Faults,
    JudgementRow,
    judgements_of_records,
    pairs_of_records,
    read_bank,
    read_content,
    records_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_studies.agreement.records import Records

_JSON_LINES = "JSON Lines"
_PASCAL50S = "PASCAL-50S"
_OTHER_COMMANDS: Final = (
    ({"hallucinated"}, "marked words", "hallucinations"),
    ({"grounding"}, "marked words", "hallucinations"),
    ({"baseline", "foil"}, "captions with foils", "hallucinations"),
    ({"captions", "label"}, "pairs of captions", "pairs"),
    ({"captions", "preferred"}, "pairs of captions", "pairs"),
)
"""The fields by which records for another command are known: what they are, and the command."""
SystemTable = dict[str, dict[str, float | None]]  # by system, numbers by the name of their column

_SYSTEM = "system"


def read_judgements(
    *paths: str, references: Sequence[str] = (), rating: str | None = None, empty: Empty = "refuse"
) -> Judged[Judgement]:
    """Read rated captions; the content of the file shows its format.

    JSON Lines (or a list) with ``candidate`` (or ``caption``, ``hyp``, ``test``), ``references`` (``refs``),
    ``ratings`` (``rating``, ``human_score``, ``score``: a number, or a list with one a rater), and if known
    ``image_id``, ``system`` and ``metrics``: scores of other metrics by name. Published: Flickr8k's
    ``ExpertAnnotations.txt`` and ``CrowdFlowerAnnotations.txt``, Composite's tables, and the JSON that CLIPScore's
    scripts make of them; Polaris's and Nebula's tables.

    Args:
        paths: the file, or ``-`` for standard input; several, if a set is in several files.
        references: Flickr's token files or COCO annotations, for formats and records without references.
        rating: the field with the rating, where a file has several (JSON Lines only).
        empty: whether an empty caption is a fault, or is kept, to be scored as zero.
    """
    bank_of = partial(read_bank, references)
    records = partial(judgements_of_records, rating=rating)
    read = partial(_read, bank_of=bank_of, empty=empty)
    return _joined([read(read_content(path), published.JUDGEMENT_FORMATS, records, "rated caption") for path in paths])


def read_pairs(*paths: str, annotations: Sequence[str] = (), empty: Empty = "refuse") -> Judged[CaptionPair]:
    """Read pairs of captions; the content of the file shows its format.

    JSON Lines (or a list) with ``captions`` (two), ``preferred`` or ``label`` (0, 1, or null for a tie),
    ``references``, and if known ``category``, ``image_id`` and ``metrics``: two scores by name of the metric.
    Published: the folder that holds PASCAL-50S's ``consensus_pascal.mat`` and ``pair_pascal.mat``; SugarCrepe's,
    VALSE's, FOIL's, D-FOIL's and FENSE's JSON.

    Args:
        paths: the file, or ``-`` for standard input; several, if a set is in several files.
        annotations: COCO annotations (or token files) with the references, for formats and records that have none.
        empty: whether an empty caption is a fault, or is kept, to be scored as zero (not of PASCAL-50S).
    """
    bank_of = partial(read_bank, annotations, option="--annotations")
    return _joined(
        [
            Judged(published.read_pascal50s(path), path, _PASCAL50S)
            if published.is_pascal50s(path)
            else _read(
                read_content(path), published.PAIR_FORMATS, pairs_of_records, "pair", bank_of=bank_of, empty=empty
            )
            for path in paths
        ]
    )


def _read(
    content: Content,
    formats: Sequence[published.JudgementFormat[published.AnyJudged]],
    of_records: Callable[[Records, list[Fault]], Iterator[published.AnyJudged | None]],
    what: str,
    *,
    bank_of: partial[CaptionBank],
    empty: Empty,
) -> Judged[published.AnyJudged]:
    """Read a file of one of the formats, or of records; ``bank_of`` has the references that stand elsewhere."""
    faults = Faults(empty)
    records: published.JudgementFormat[published.AnyJudged] = published.JudgementFormat(
        _JSON_LINES,
        lambda content: content.data.lstrip()[:1] in {b"{", b"["},
        lambda content, _bank, faults: of_records(records_of(content, faults), faults),
    )
    known = list(formats)
    known.append(records)
    form = next((form for form in known if form.recognises(content)), None)
    if form is None:
        raise _unknown_format(content, [form.name for form in known], what)
    bank = bank_of(needed_by=form.needs) if form.needs else CaptionBank({}, {}, "")
    rows = list(form.read(content, bank, faults))
    judged = [row for row in rows if row is not None]
    if form is records and bank_of.args[0]:
        judged = _with_references(judged, bank_of, faults)
    nothing = "" if judged else f"contains no {what}"
    refuse_faults(content.name, _together(faults), nothing=nothing, hint=_other_command(content, what))
    return Judged(tuple(judged), content.name, form.name, len(rows) - len(judged))


def _unknown_format(content: Content, names: Sequence[str], what: str) -> InputError:
    known = "; ".join([*names, f"{_PASCAL50S}: its folder"] if what == "pair" else names)
    return InputError(f"{content.name}: contains no {what}s in a format that is known ({known})")


def _with_references(
    judged: Sequence[published.AnyJudged], bank_of: partial[CaptionBank], faults: Faults
) -> list[published.AnyJudged]:
    """Return the judged records, with the bank's references where they have none."""
    if all(each.references for each in judged):
        return list(judged)
    bank = bank_of(needed_by="the records")
    return [
        each
        if each.references
        else replace(each, references=bank.references(each.image, JudgementRow(each.place, {}, faults)))
        for each in judged
    ]


def _together(faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults; a fault of more than five rows appears once, with their number."""
    alike: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.field, fault.reason), []).append(fault)
    together: list[Fault] = []
    for group in alike.values():
        first, *others = group
        if len(others) < 5:
            together += group
        else:
            together.append(first._replace(reason=f"{first.reason} (and in {counted(len(others), 'row')} more)"))
    return together


def _other_command(content: Content, what: str) -> str:
    """Return a hint where another command of ``agree`` reads such files, else nothing."""
    names = _first_names(content)
    kind, command = next(((kind, command) for keys, kind, command in _OTHER_COMMANDS if keys <= names), ("", ""))
    if not command or (what == "pair" and command == "pairs"):
        return ""
    return f"The file holds {kind}: spicegraph agree {command}."


def _first_names(content: Content) -> set[str]:
    """Return the names of the fields of the first record, if there is one."""
    value = content.value
    rows = list(value.values()) if isinstance(value, dict) else value
    first = rows[0] if isinstance(rows, list) and rows else None
    if value is None:
        first = decode(content.data.split(b"\n", 1)[0])[0]
    return set(first) if isinstance(first, dict) else set()


def _joined(read: Sequence[Judged[published.AnyJudged]]) -> Judged[published.AnyJudged]:
    """Return the records of several files as one set."""
    if len(read) == 1:
        return read[0]
    return Judged(
        tuple(replace(each, place=f"{part.source}, {each.place}") for part in read for each in part.items),
        ", ".join(part.source for part in read),
        ", ".join(dict.fromkeys(part.format for part in read)),
        sum(part.unrated for part in read),
    )


def read_system_table(path: str) -> SystemTable:
    """Read a table of systems, CSV or JSON: ``system`` and a column for each measure; empty or a dash: unknown."""
    return _table(read_content(path))


def read_system_scores(path: str, name: str) -> SystemTable:
    """Read scores of one system (the JSON of ``spicegraph score``, called ``name``), or of many (a table)."""
    content = read_content(path)
    value = content.value
    if not isinstance(value, dict) or not isinstance(value.get("corpus"), dict):
        return _table(content)
    numbers: dict[str, float | None] = {}
    for key, part in value["corpus"].items():
        if isinstance(part, dict):
            numbers |= _category_scores(key.removesuffix("_categories"), part)
        elif part is None or isinstance(part, int | float):
            numbers[key] = None if part is None else float(part)
    return {name: numbers}


def _category_scores(metric: str, categories: Mapping[str, object]) -> dict[str, float | None]:
    """Return the F of categories as ``SPICE_Color``."""
    numbers: dict[str, float | None] = {}
    for category, scores in categories.items():
        if isinstance(scores, dict) and category != "All":
            f = scores.get("f")
            numbers[f"{metric}_{category}"] = float(f) if isinstance(f, int | float) else None
    return numbers


def _table(content: Content) -> SystemTable:
    faults: list[Fault] = []
    if content.reason:
        raise InputError(f"{content.name}: {content.reason}")
    table: SystemTable = {}
    for place, system, cells in _table_rows(content):
        if not isinstance(cells, dict):
            raise InputError(f"{content.name}: {place.removeprefix('row ')} is {shown(cells)}, expected an object")
        row = JudgementRow(f"{place} ({shown(system)})", cells, faults)
        if not isinstance(system, str) or not system.strip():
            faults.append(Fault(place, _SYSTEM, "is missing"))
        elif system in table:
            row.fault(_SYSTEM, "appears twice")
        else:
            table[system] = {name: row.number(name, value) for name, value in cells.items() if name != _SYSTEM}
    refuse_faults(content.name, faults, nothing="" if table else "contains no system")
    return table


def _table_rows(content: Content) -> Iterable[tuple[str, object, object]]:
    """Return the rows of a table of systems: their place, their system, and their cells."""
    value = content.value
    if isinstance(value, dict):
        return [(f"row {shown(key)}", key, cells) for key, cells in value.items()]
    if isinstance(value, list):
        named = [(row.get(_SYSTEM) if isinstance(row, dict) else None, row) for row in value]
        return [(f"row {number}", system, row) for number, (system, row) in enumerate(named, start=1)]
    return _csv_rows(content)


def _csv_rows(content: Content) -> Iterator[tuple[str, object, dict[str, object]]]:
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
            raise InputError(f"{content.name}: line {number} does not have as many cells as the first line")
        yield f"line {number}", cells[_SYSTEM], {name: _cell(cell.strip()) for name, cell in cells.items()}


def _cell(text: str) -> float | str | None:
    """Return the number in a cell, or its text; ``None``: it is empty or a dash."""
    if text in {"", "-", "–"}:
        return None
    try:
        return float(text)
    except ValueError:
        return text
