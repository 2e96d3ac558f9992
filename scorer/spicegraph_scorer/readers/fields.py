"""From entries of any shape to records: where ids, captions, splits and languages stand in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import InputError, counted
from spicegraph_parser.languages import find_language, language_tables
from spicegraph_scorer.readers import shapes
from spicegraph_scorer.readers.checks import Fault, shown
from spicegraph_scorer.readers.printed import may_be_printed, parse_printed
from spicegraph_scorer.readers.records import Format, Record, Records, given_references, untyped_id
from spicegraph_scorer.readers.shapes import Columns, Shape, Side, captions_of, find_fields, has_path, plain, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    Row = Mapping[str, object]

_HEAD: Final = 1_000  # Entries that show what a file is.
_FLAGS: Final = ("is_precanned", "is_rejected", "foil")
_TRUE: Final = frozenset({"true", "1", "1.0", "yes"})
_BEGINS: Final = ("start", "starttime", "begin", "startsec", "startseconds", "tstart")
_FINISHES: Final = ("end", "endtime", "finish", "endsec", "endseconds", "tend", "stop")
_SPANS: Final = frozenset({"segment", "segments", "timestamp", "timestamps", "span", "interval"})
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
    """Options for reading a file: side, columns, language and empty references."""

    side: Side = "both"
    columns: Columns | None = None
    language: str | None = None
    drop_empty: bool = False  # references that are empty, as lists of one length are padded


def is_texts(rows: Sequence[Row]) -> Callable[[str], bool]:
    """Return a predicate: does the named field hold texts in these rows?"""

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
    columns = _columns(source, rows, wanted, shape)
    if shape is None and unknown and other_task(rows, shapes.NO_CAPTIONS):
        raise InputError(f"{source}: {unknown(rows)}")
    _check_captions(source, columns, wanted, shape, why=partial(unknown, rows) if unknown else None)
    if not (shape and shape.joined) and "+" not in (columns.id or ""):
        _check_no_parts(source, rows, columns)
    reading = _Reading.of(rows, wanted, columns, shape, is_table=table)
    form = replace(reading.format_of(name, shape), typed=typed and not table, images=images)
    records = chain(head, objects)
    return Records(form, records if reading.is_simple else reading.read(records, faults), faults)


def _format_name(name: str, shape: Shape | None, columns: Columns | None) -> str:
    shown_name = f"{name} ({columns})" if columns else name
    if shape is None or shape.name == name:
        return shown_name
    return f"{shape.name}: {shown_name}" if columns else shape.name


def _check_captions(
    source: str, columns: Columns, wanted: Wanted, shape: Shape | None, *, why: Callable[[], str] | None
) -> None:
    """Refuse a file without the wanted captions; ``why`` returns the reason for the message."""
    found = columns.references or columns.candidate
    if not {"candidates": columns.candidate, "references": columns.references, "both": found}[wanted.side]:
        raise InputError(f"{source}: {why() if why else 'has no captions under names that are known'}")
    if wanted.side == "both" and columns.candidate is None:
        what = f" of the shape {shape.name}" if shape else ""
        raise InputError(f"{source}: holds references{what} ({columns}), and no candidates; give it with --references")


def _check_no_parts(source: str, rows: Sequence[Row], columns: Columns) -> None:
    """Refuse captions of several parts of a video, which are no alternatives of one another."""
    names = {plain(name): name for name in chain.from_iterable(rows)}
    keys = [next((names[name] for name in choices if name in names), "") for choices in (_BEGINS, _FINISHES)]
    spans = [names[name] for name in names if name in _SPANS]
    if not all(keys) and not spans:
        return
    first: dict[object, object] = {}
    for row in rows:
        parts = [[row.get(key) for key in keys]] if all(keys) else [row.get(key) for key in spans]
        span = next((part for part in parts if isinstance(part, list) and len(part) > 1), None)
        if span is None or None in span:
            continue
        image = str(value_at(row, columns.id or ""))
        if any(isinstance(each, list) or str(each).startswith("[") for each in span) or (
            first.setdefault(image, span) != span
        ):
            said = " and ".join(map(shown, keys if all(keys) else spans[:1]))
            raise InputError(
                f"{source}: holds captions of parts of videos ({said} beside the caption), which are no references or "
                "candidates of one another; parts are scored by spicegraph dense, given as "
                '{video: [{"sentence", "timestamp": [start, end]}]} and {video: {"timestamps", "sentences"}}'
            )


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
    """Name the content of another task's file from its first entries; empty if unknown."""
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


def _columns(source: str, rows: Sequence[Row], wanted: Wanted, shape: Shape | None) -> Columns:
    """Return where ids and captions stand: as users say, as the shape has it, or by the names of keys."""
    names = shapes.nested_names(rows)
    of_shape = shape or Shape("", "", "")

    def there(path: str | None) -> str | None:
        return path if path and any(value_at(row, path) is not None for row in rows) else None

    named = _named_there(source, names, wanted, is_there=there)
    given = _of_language(of_shape.references, names, wanted.language)
    named = Columns(
        named.id or there(of_shape.id),
        named.candidate or there(of_shape.candidate),
        named.references or ((given,) if there(given) else ()),
    )
    found = find_fields(names, named=named, side=wanted.side, is_text=is_texts(rows))
    if found.candidate in found.references:  # what either side may be is the candidate
        found = Columns(found.id, found.candidate)
    if shape is not None and wanted.side == "references" and not found.references and shape.references:
        return Columns(found.id or shape.id, None, (shape.references,))
    return found


def _named_there(
    source: str, names: Sequence[str], wanted: Wanted, *, is_there: Callable[[str], str | None]
) -> Columns:
    """Return the names that users give, all of which must be there but those of the other side."""
    named = wanted.columns or Columns()
    every = named.id, named.candidate, *named.references
    gone = [name for name in every if name and not is_there(name) and name not in names]
    needed = {"both": every, "candidates": every[:2], "references": (named.id, *named.references)}[wanted.side]
    missing = [name for name in gone if name in needed]
    if missing:
        has = ", ".join(map(shown, names[:_MOST]))
        raise InputError(f"{source}: has no column {', '.join(map(shown, missing))}; its columns are {has}")
    return _without(named, gone)


def _without(named: Columns, gone: Container[str | None]) -> Columns:
    return Columns(
        None if named.id in gone else named.id,
        None if named.candidate in gone else named.candidate,
        tuple(name for name in named.references if name not in gone),
    )


def _of_language(path: str, names: Sequence[str], language: str | None) -> str:
    """Return which of several fields has the captions of a language, by default English."""
    choices = path.split("|") if "|" in path else names if language else []
    codes = _called(language or "en")
    wanted = {f"{a}{code}{b}" for code in codes for a in ("", "caption", "captions") for b in ("", "cap", "caption")}
    return next((name for name in choices if plain(name) in wanted), path.partition("|")[0])


def _called(language: str) -> tuple[str, ...]:
    """Return a language's names in files: its codes and its English name."""
    if language not in language_tables():
        return _CHINESE if language in _CHINESE else (language,)
    known = find_language(language)
    return known.code, known.wordnet, known.name.lower()


def _first(names: Iterable[str], known: Container[str]) -> str:
    """Return the first of names that is known, or nothing."""
    return next((name for name in names if plain(name) in known), "")


def _is_parallel(columns: Columns, shape: Shape | None) -> bool:
    """Return whether rows without an id have both sides, so that their number can be one."""
    return bool(columns.candidate and columns.references) and (shape is None or shape.rows in {"columns", "lists"})


def _are_records(rows: Sequence[Row], names: Sequence[str], columns: Columns) -> bool:
    """Return whether entries can be taken for records as they are."""
    captions = [name for name in (columns.candidate, *columns.references) if name]
    return (
        len(columns.references) < 2
        and set(names).issuperset(filter(None, (*captions, columns.id)))
        and all(_is_plain(row.get(name)) for name in captions for row in rows)
    )


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
        names = list(dict.fromkeys(chain.from_iterable(rows)))
        given = names if wanted.side == "references" else []
        is_joined = shape.joined if shape else any(has_path(row, _DENSE) for row in rows)
        is_numbered = columns.id is None and (is_table or _is_parallel(columns, shape))
        column = _first(names, shapes.LANGUAGE_NAMES)
        flags = tuple(name for name in given if name in _FLAGS)
        needed = tuple(shape.keys.split()) if shape and shape.some else ()
        is_changed = any((flags, needed, column, is_joined, is_numbered, is_table))
        captions = {columns.id, columns.candidate, *columns.references}
        return cls(
            columns,
            columns.references[0] if len(columns.references) == 1 and not is_table else "references",
            not is_changed and _are_records(rows, names, columns),
            is_numbered,
            is_joined,
            is_table,
            tuple(name for name in given if plain(name) in shapes.ID_NAMES and name not in captions),
            _first(given, shapes.SPLIT_KEYS),
            (column, frozenset(_called(wanted.language or "en"))) if column else None,
            needed,
            flags,
        )

    def format_of(self, name: str, shape: Shape | None) -> Format:
        """Return the format of the records of a file, which is called ``name`` where it has no shape."""
        columns = self.columns
        usual = _USUAL.get(name, ()) if shape is None else shape.usual
        return Format(
            _format_name(name, shape, columns if self.is_table else None),
            (columns.id or ("row" if self.is_numbered else "image_id"),),
            (columns.candidate or "candidate",),
            (self.references,) if columns.references else usual,
            soft=columns.soft,
            aliases=self.aliases,
            split=self.split,
            notes=self.notes,
            left_out=self.left_out,
            joined=shape.joined if shape else False,
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
            reason = f"no caption is in the wanted language; there are {', '.join(out)}: say --caption-language"
            faults.append(Fault("", self.language[0], reason))
        elif out and not self.needed:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in out.most_common(_MOST_REASONS))
            self.notes.append(f"{counted(sum(out.values()), 'caption')} left out ({counts})")

    def _left_out(self, row: Row) -> str:
        """Return why an entry is left out, or nothing."""
        if self.needed and not all(has_path(row, key) for key in self.needed):
            return "something else"
        if self.flags:
            return next((flag for flag in self.flags if str(row.get(flag)).strip().lower() in _TRUE), "")
        if self.language:
            said = str(row.get(self.language[0]) or "").strip()
            return said if said and said.lower().partition("-")[0].partition("_")[0] not in self.language[1] else ""
        return ""

    def _fields(self, row: Row, number: int) -> Iterator[tuple[str, object]]:
        columns = self.columns
        if self.is_numbered:
            yield "row", number
        elif columns.id is not None and (image := value_at(row, columns.id)) not in (None, ""):
            yield columns.id, self._id(image.strip() if isinstance(image, str) and self.is_table else image)
        for name in (*self.aliases, self.split):
            if name in row:
                yield name, self._id(row[name])
        if columns.candidate is not None and (value := value_at(row, columns.candidate)) is not None:
            texts = self._texts(_listed(value) if isinstance(value, str) else value)
            yield columns.candidate, texts[0] if isinstance(texts, list) and len(texts) == 1 else texts
        if columns.references and (self.is_table or any(value_at(row, n) is not None for n in columns.references)):
            yield self.references, self._merged(row)

    def _id(self, value: object) -> object:
        return untyped_id(value) if self.is_table and isinstance(value, str) else value

    def _merged(self, row: Row) -> object:
        """Return the references of all columns: texts or lists of them; the text of a cell of facts has one a line."""
        merged: list[object] = []
        for name in self.columns.references:
            value = self._texts(given_references(plain(name), value_at(row, name)))
            if isinstance(value, list):
                merged += value
            elif value not in (None, ""):
                merged.append(value)
        return merged

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


def _listed(text: str) -> object:
    """Return the captions of a text that prints objects of them, or the text."""
    parsed = parse_printed(text) if may_be_printed(text) else text
    if isinstance(parsed, list) and parsed and all(isinstance(part, dict) for part in parsed):
        return captions_of(parsed) or text
    return text
