"""From entries of any shape to records: where ids, captions, splits and languages stand in them."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import msgspec

from spicegraph_parser.errors import InputError, counted
from spicegraph_parser.languages import LANGUAGES, find_language
from spicegraph_scorer.readers import shapes
from spicegraph_scorer.readers.checks import Fault, shown
from spicegraph_scorer.readers.records import Format, Record, Records, given_references, untyped_id
from spicegraph_scorer.readers.shapes import Columns, Shape, Side, captions_of, find_fields, has_path, plain, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Row = Mapping[str, object]

_HEAD: Final = 40  # Entries that show what a file is.
_FLAGS: Final = ("is_precanned", "is_rejected")
_USUAL: Final = dict.fromkeys(("JSON Lines", "JSON list"), ("references",))  # where references may stand
SURE: Final = frozenset(
    {"candidate", "candidates", "caption", "captions", "test", "prediction", "references", "refs", "facts"}
)
_DENSE: Final = "timestamps|captions[].timestamp|captions[].segment|annotations[].segment"
_ENDS: Final = (".", "!", "?")
_CHINESE: Final = (
    "zh",
    "ch",
    "cn",
    "chinese",
)  # which has no table of its own, and whose captions files have beside English
_MOST: Final = 20
_MOST_REASONS: Final = 5
EXPECTED: Final = (
    "COCO annotations, references by id, JSON Lines, a table, or plain text with a line for each candidate"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a file is read, and what users say of it."""

    side: Side = "both"
    columns: Columns | None = None
    language: str | None = None
    drop_empty: bool = False  # references that are empty, as lists of one length are padded


def is_texts(rows: Sequence[Row]) -> Callable[[str], bool]:
    """Return what says whether texts stand under a name in some rows."""

    def holds(name: str) -> bool:
        if plain(name) in SURE:
            return True
        values = [value for row in rows if (value := value_at(row, name)) not in (None, "", [])]
        return not values or any(captions_of(value) is not None for value in values)

    return holds


def records_of(
    source: str,
    name: str,
    entries: Iterator[tuple[str, object]],
    wanted: Wanted,
    *,
    shape: Shape | None = None,
    images: Iterable[tuple[str, object]] | None = None,
    typed: bool = True,
    table: bool = False,
    faults: list[Fault] | None = None,
    unknown: Callable[[Sequence[Row]], str] | None = None,
) -> Records:
    """Turn the entries of a file into records; the first ones show where ids and captions stand."""
    faults = [] if faults is None else faults
    objects = _objects(entries, faults)
    head = list(islice(objects, _HEAD))
    rows = [record.fields for record in head]
    if not rows:
        known = shape.name if shape else name
        return Records(Format(known, ("image_id",), ("caption",), ("references",), typed, images=images), [], faults)
    if shape is None:
        shape = shapes.recognised(rows, lambda path: list(rows) if path in {"[]", name} else [])
    _check_side(source, shape, wanted)
    columns = _columns(source, rows, wanted, shape, is_table=table)
    if shape is None and unknown and other_task(rows, shapes.NO_CAPTIONS):
        raise InputError(f"{source}: {unknown(rows)}")
    missing = (
        columns.candidate is None if wanted.side == "candidates" else not (columns.references or columns.candidate)
    )
    if missing or (wanted.side == "references" and not columns.references):
        raise InputError(f"{source}: {unknown(rows) if unknown else 'has no captions under names that are known'}")
    if wanted.side == "both" and columns.candidate is None:
        what = f" of the shape {shape.name}" if shape else ""
        raise InputError(f"{source}: holds references{what} ({columns}), and no candidates; give it with --references")
    reading = _Reading.of(rows, wanted, columns, shape, is_table=table)
    shown_name = f"{name} ({columns})" if table else name
    if shape is not None and shape.name != name:
        shown_name = f"{shape.name}: {shown_name}" if table else shape.name
    form = Format(
        shown_name,
        (columns.id or ("row" if reading.is_numbered else "image_id"),),
        (columns.candidate or "candidate",),
        (reading.references,) if columns.references else _USUAL.get(name, ()) if shape is None else shape.usual,
        typed=typed and not table,
        soft=columns.soft,
        aliases=reading.aliases,
        split=reading.split,
        notes=reading.notes,
        left_out=reading.left_out,
        joined=shape.joined if shape else False,
        images=images,
    )
    records = chain(head, objects)
    return Records(form, records if reading.is_simple else reading.read(records, faults), faults)


def given_records(name: str, columns: Columns, rows: Iterable[tuple[str, Row]], faults: list[Fault]) -> Records:
    """Turn the rows of a table into records whose columns are known; without ids, an id is the row's number."""
    reading = _Reading.of([], Wanted(), columns, None, is_table=True)
    candidates, references = (columns.candidate or "candidate",), (reading.references,) if columns.references else ()
    form = Format(name, (columns.id or "row",), candidates, references, typed=False)
    return Records(form, reading.read((Record(place, row) for place, row in rows), faults), faults)


def _objects(entries: Iterable[tuple[str, object]], faults: list[Fault]) -> Iterator[Record]:
    for place, value in entries:
        if type(value) is dict:
            yield Record(place, value)
        else:
            faults.append(Fault(place, "", f"is {shown(value)}, expected an object"))


def other_task(rows: Sequence[Row], tasks: Sequence[tuple[str, str]] = (*shapes.OTHERS, *shapes.NO_CAPTIONS)) -> str:
    """Return what a file of another task holds, by its first entries; nothing: it may hold captions."""
    found = (what for keys, what in tasks if any(all(has_path(row, key) for key in keys.split()) for row in rows))
    return next(found, "")


def _check_side(source: str, shape: Shape | None, wanted: Wanted) -> None:
    if shape is None or shape.side in {"both", wanted.side} or wanted.columns is not None:
        return
    if shape.side == "references":
        article = "" if "'s " in shape.name else "an " if shape.name[0] in "AEIOU" else "a "  # "Karpathy's COCO"
        raise InputError(f"{source}: is {article}{shape.name} file, which holds references; give it with --references")
    if wanted.side == "references":
        raise InputError(f"{source}: is {shape.name}, which hold candidates; --references takes {EXPECTED}")


def _columns(source: str, rows: Sequence[Row], wanted: Wanted, shape: Shape | None, *, is_table: bool) -> Columns:
    """Return where ids and captions stand: as users say, as the shape has it, or by the names of keys."""
    named, names = wanted.columns or Columns(), shapes.nested_names(rows)

    def there(path: str | None) -> str | None:
        return path if path and any(value_at(row, path) is not None for row in rows) else None

    # Names that are not there belong to the other of two files; of a table, and of the only file, all must be there.
    sides = {"id": named.id, "candidate": named.candidate, "references": named.references}
    unused = {"both": "", "candidates": "references", "references": "candidate"}[wanted.side]
    flat = [
        (side, name) for side, value in sides.items() for name in ([value] if isinstance(value, str) else value or ())
    ]
    lost = [(side, name) for side, name in flat if not there(name) and name not in names]
    missing = [name for side, name in lost if side != unused and (is_table or wanted.side == "both")]
    if missing:
        has = ", ".join(map(shown, names[:_MOST]))
        raise InputError(f"{source}: has no column {', '.join(map(shown, missing))}; its columns are {has}")
    gone = {name for _, name in lost}
    named = Columns(
        None if named.id in gone else named.id,
        None if named.candidate in gone else named.candidate,
        tuple(name for name in named.references if name not in gone),
    )
    given = _of_language(shape.references if shape else "", names, wanted.language)
    named = Columns(
        named.id or there(shape.id if shape else None),
        named.candidate or there(shape.candidate if shape else None),
        named.references or ((given,) if there(given) else ()),
    )
    found = find_fields(names, named=named, side=wanted.side, is_text=is_texts(rows))
    if found.candidate in found.references:  # what either side may be is the candidate
        found = Columns(found.id, found.candidate)
    if shape is not None and wanted.side == "references" and not found.references and shape.references:
        return Columns(found.id or shape.id, None, (shape.references,))
    return found


def _of_language(path: str, names: Sequence[str], language: str | None) -> str:
    """Return which of several fields has the captions of a language, by default English."""
    choices = path.split("|") if "|" in path else names if language else []
    codes = _called(language or "en")
    wanted = {f"{a}{code}{b}" for code in codes for a in ("", "caption", "captions") for b in ("", "cap", "caption")}
    return next((name for name in choices if plain(name) in wanted), path.partition("|")[0])


def _called(language: str) -> tuple[str, ...]:
    """Return what files call a language: by its codes and its name."""
    if language not in LANGUAGES:
        return _CHINESE if language in _CHINESE else (language,)
    known = find_language(language)
    return known.code, known.wordnet, known.name.lower()


@dataclass(frozen=True, slots=True)
class _Reading:
    """How an entry becomes a record."""

    columns: Columns
    references: str  # the key of a record's references
    is_simple: bool  # an entry is a record
    is_numbered: bool
    is_joined: bool
    is_table: bool
    aliases: tuple[str, ...]
    split: str
    language: tuple[str, frozenset[str]] | None  # where it stands, and which is wanted
    needed: tuple[str, ...]  # what an entry without is left out for
    flags: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    left_out: set[object] = field(default_factory=set)

    @classmethod
    def of(
        cls, rows: Sequence[Row], wanted: Wanted, columns: Columns, shape: Shape | None, *, is_table: bool
    ) -> _Reading:
        """Look at the first entries."""
        names = list(dict.fromkeys(key for row in rows for key in row))
        captions = [name for name in (columns.candidate, *columns.references) if name]
        is_joined = shape.joined if shape else any(has_path(row, _DENSE) for row in rows)
        numbered = columns.id is None and (
            is_table
            or (
                bool(columns.candidate and columns.references) and (shape is None or shape.rows in {"columns", "lists"})
            )
        )
        column = next((name for name in names if plain(name) in shapes.LANGUAGE_NAMES), None)
        codes = frozenset(_called(wanted.language or "en"))
        is_given = wanted.side == "references"
        flags = tuple(name for name in names if name in _FLAGS and is_given)
        needed = tuple(shape.keys.split()) if shape and shape.some else ()
        plainly = all(path in names for path in (*captions, columns.id) if path) and not (flags or needed or is_joined)
        values = [row.get(name) for name in captions for row in rows]
        return cls(
            columns,
            columns.references[0] if len(columns.references) == 1 and not is_table else "references",
            plainly
            and column is None
            and not (is_table or numbered)
            and len(columns.references) < 2
            and all(map(_is_plain, values)),
            numbered,
            is_joined,
            is_table,
            tuple(n for n in names if is_given and plain(n) in shapes.ID_NAMES and n not in {columns.id, *captions}),
            next((name for name in names if is_given and plain(name) in shapes.SPLIT_KEYS), ""),
            (column, codes) if column else None,
            needed,
            flags,
        )

    def read(self, records: Iterable[Record], faults: list[Fault]) -> Iterator[Record]:
        """Yield the record of each entry, but those that are left out, and say how many these are."""
        out: Counter[str] = Counter()
        kept = 0
        for number, (place, row) in enumerate(records, start=1):
            if reason := self._left_out(row):
                out[reason] += 1
                if reason in self.flags and isinstance(image := row.get(self.columns.id or ""), int | str):
                    self.left_out.add(image)
                continue
            kept += 1
            yield Record(place, dict(self._fields(row, number)))
        if self.language and out and not kept:
            faults.append(
                Fault(
                    "",
                    self.language[0],
                    f"no caption is in the wanted language; there are {', '.join(out)}: say --caption-language",
                )
            )
        elif out and not self.needed:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in out.most_common(_MOST_REASONS))
            self.notes.append(f"{counted(sum(out.values()), 'caption')} left out ({counts})")

    def _left_out(self, row: Row) -> str:
        """Return why an entry is left out, or nothing."""
        if self.needed and not all(has_path(row, key) for key in self.needed):
            return "something else"
        if self.flags:
            return next((flag for flag in self.flags if row.get(flag)), "")
        if self.language:
            said = str(row.get(self.language[0]) or "").strip()
            return said if said and said.lower().partition("-")[0].partition("_")[0] not in self.language[1] else ""
        return ""

    def _fields(self, row: Row, number: int) -> Iterator[tuple[str, object]]:
        columns = self.columns
        if self.is_numbered:
            yield "row", number
        elif columns.id is not None and (image := value_at(row, columns.id)) not in (None, ""):
            yield columns.id, untyped_id(image.strip()) if self.is_table and isinstance(image, str) else image
        for name in (*self.aliases, self.split) if self.split else self.aliases:
            if name in row:
                value = row[name]
                yield name, untyped_id(value) if self.is_table and isinstance(value, str) else value
        if columns.candidate is not None and (value := value_at(row, columns.candidate)) is not None:
            texts = self._texts(value)
            yield columns.candidate, texts[0] if isinstance(texts, list) and len(texts) == 1 else texts
        if columns.references and (self.is_table or any(value_at(row, n) is not None for n in columns.references)):
            yield self.references, self._merged(row)

    def _merged(self, row: Row) -> object:
        """Return the references of all columns: texts or lists of them; the text of a cell of facts has one a line."""
        merged: list[object] = []
        for name in self.columns.references:
            value = self._texts(given_references(plain(name), self._cell(value_at(row, name))))
            if isinstance(value, list):
                merged += value
            elif value not in (None, ""):
                merged.append(value)
        return merged

    def _cell(self, value: object) -> object:
        return listed(value) if self.is_table and isinstance(value, str) else value

    def _texts(self, value: object) -> object:
        if isinstance(value, str):
            return value
        texts = captions_of(value)
        if texts and self.is_joined:
            return joined(texts)
        return value if texts is None else texts


def joined(texts: Iterable[str]) -> str:
    """Return sentences as one text, each with its full stop."""
    return " ".join(text if text.rstrip().endswith(_ENDS) else f"{text.rstrip()}." for text in texts)


def _is_plain(value: object) -> bool:
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, list) and all(type(part) is str for part in value))
    )


def listed(cell: str) -> object:
    """Return the list that a cell holds as JSON or as Python prints it (pandas writes that), or the cell."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return cell
    try:
        return msgspec.json.decode(cell)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        value: object = ast.literal_eval(cell)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return cell
    return value
