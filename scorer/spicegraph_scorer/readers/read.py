"""From files to items that can be scored, or one error that lists everything that stands against it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from os import PathLike, fspath
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import InputError, expect
from spicegraph_scorer.core.items import CheckedItems, Item, ItemId
from spicegraph_scorer.readers.checks import (
    Empty,
    Fault,
    caption_faults,
    id_faults,
    input_error,
    label,
    minded_items,
    reference_faults,
    shown,
)
from spicegraph_scorer.readers.records import (
    PLAIN_TEXT,
    Format,
    Record,
    Records,
    given_references,
    read_json,
    text_lines,
)
from spicegraph_scorer.readers.references import Annotations, read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, ReadLimits, Source, open_source
from spicegraph_scorer.readers.tables import PARQUET_MAGIC, Columns, has_header, read_delimited, read_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.readers.marks import ControlTokens


_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_ENDING: Final = re.compile(r"\.[A-Za-z]\w{1,4}$")
_PARTIAL_HINT = "To score only the images that have a result, say so: --partial."
_SEVERAL_HINT = "To score several candidates of an image, say how: --candidates best, or --candidates each."

_WITHOUT_REFERENCES = "is missing (and no --references file is given)"

_NUMBER_HINT = (
    'The ids are the same as numbers: to take COCO_val2014_000000000143.jpg, "143" and 143 for one image, say so: '
    "--ids number."
)

_BEGINNING: Final = 64
_NO_CAPTIONS: Final = {
    b"<!doctype html": "is an HTML page: was an error or login page saved in place of the file?",
    b"<html": "is an HTML page: was an error or login page saved in place of the file?",
    b"version https://git-lfs": "is a pointer of Git LFS, not the file itself: run git lfs pull",
    b"null": "is null, expected a list of items",
}  # How files begin that stand in place of captions, in lower case, and what is said of them.

_LISTS = frozenset({"candidates", "captions"})


class IdRule(StrEnum):
    """How the ids of candidates and references are compared: as they are, or by the last number in them."""

    GIVEN = "given"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items to score and where they come from."""

    items: tuple[Item, ...]
    source: str
    format: str  # what the content showed, such as COCO results (zip)
    left_out: int = 0  # images of the references without a candidate, if that was allowed
    references: str = ""  # the format of the file of references, if there is one
    images: tuple[ItemId, ...] = ()  # of each item, if images may have several candidates: id#1, id#2 ...


def read_items(
    path: str,
    *,
    references: str | Sequence[str] | None = None,
    partial: bool = False,
    several: bool = False,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    columns: Columns | None = None,
    ids: IdRule | str = IdRule.GIVEN,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Dataset:
    """Read the items of a file, whose content shows its format.

    Formats: the SPICE jar's ``[{"image_id", "test", "refs"}]``; COCO results ``[{"image_id", "caption"}]``;
    JSON Lines, or a list, of objects with ``image_id`` or ``id``, ``candidate``, ``caption`` or ``test``, and
    ``references`` or ``refs``; captions by id ``{"img1": "a dog"}``; CSV, TSV and Parquet with named columns;
    plain text with one caption per line; a zip that holds one such file.

    Args:
        path: the file, or ``-`` for standard input.
        references: a file with the references of every image (COCO annotations, ``{id: [reference, ...]}``, or
            one of the formats above), or several, which add up; plain text belongs to plain text.
        partial: leave out images of ``references`` that have no candidate, instead of refusing.
        several: let an image have several candidates: a list of them, or several records of one id.
        empty: what is done with an empty candidate: ``refuse`` it, or keep it to be scored as ``zero``.
        control_tokens: what is done with captions that hold what models leave behind, such as ``<eos>``: ``refuse``
            the file, ``strip`` it off, or ``keep`` it to be scored as words.
        columns: the columns of tables that are not called what people usually call them.
        ids: ``number`` compares ids with those of the references by the last number in them, so that
            ``COCO_val2014_000000000143.jpg``, ``"143"`` and 143 are one image; items have the references' ids.
        limits: how much is read at most.

    Raises:
        InputError: the message lists every fault with item, field and reason (the first 50 and a count).
        LimitError: a file, a line or what a zip unpacks to is too large.
        DataError: a Parquet file needs pyarrow, which is not installed.
    """
    expect(path, (str, PathLike), "path", "the path of a file")
    given = (references,) if isinstance(references, str | PathLike) else references or ()
    expect(given, (list, tuple), "references", "the path of a file, or a list of paths")
    for reference_path in given:
        expect(reference_path, (str, PathLike), "references", "the path of a file, or a list of paths")
    path, paths = fspath(path), tuple(map(fspath, given))
    with open_source(path, limits=limits) as source:
        records = _read_records(source, limits, columns)
        name, packing = source.name, source.packing
        annotations = read_reference_files(paths, limits=limits, columns=columns) if paths else None
        _check_pairing(name, records, annotations)
        if columns is not None and not (records.format.table or (annotations is not None and annotations.table)):
            raise InputError(
                f"{name}: is {records.format.name}, which has no columns: --columns and --delimiter are for tables"
            )
        collected = _Collected(records.format, annotations, several=several, empty=empty, ids=IdRule(ids))
        wrong = [fault for record in records.records for fault in collected.add(record)]
    faults = list(records.faults)
    form = records.format
    if collected.records and annotations is None and not collected.has_references:  # said once, not for every item
        beside = f"as {form.references[0]} of every item, or " if form.references else ""
        how = f"give them {beside}with --references FILE, such as COCO annotations"
        faults.append(Fault("", "", f"contains no references ({form.name}): {how}"))
        wrong = [fault for fault in wrong if fault.reason != _WITHOUT_REFERENCES]
    faults += wrong
    missing = collected.missing()
    hints = [_SEVERAL_HINT] if collected.has_several else []
    if missing and not partial:
        reason = f"is in {', '.join(paths)}, but has no result"
        faults += [
            Fault(f"line {image_id}" if form is PLAIN_TEXT else f"image_id {shown(image_id)}", "", reason)
            for image_id in missing
        ]
        same_numbers = collected.unknown and collected.are_known_numbers()
        hints.append(_NUMBER_HINT if same_numbers else _PARTIAL_HINT)
    if not collected.records and not faults:
        faults.append(Fault("", "", "contains no items"))
    items = CheckedItems(collected.found)
    if not faults:
        items = minded_items(items, faults, control_tokens, empty=empty)
    if faults:
        raise input_error(name, faults, hint="\n".join(hints))
    return Dataset(
        items,
        name,
        f"{form.name} ({packing})" if packing else form.name,
        len(missing),
        annotations.format if annotations else "",
        tuple(collected.images) if several else (),
    )


def items_of(
    records: Records, *, empty: Empty = "refuse", control_tokens: ControlTokens = "refuse"
) -> tuple[CheckedItems, list[Fault]]:
    """Return the items of records with references of their own, whose ids may repeat, and every fault of the others."""
    collected = _Collected(records.format, None, several=False, empty=empty, part=True)
    faults = list(records.faults)
    faults += [fault for record in records.records for fault in collected.add(record)]
    return minded_items(CheckedItems(collected.found), faults, control_tokens, empty=empty), faults


def read_references(path: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> Mapping[ItemId, tuple[str, ...]]:
    """Read references: each image's captions, in the file's order."""
    return read_reference_files([path], limits=limits).captions


def _read_records(source: Source, limits: ReadLimits, columns: Columns | None) -> Records:
    """Read the records of a file in the format that its content shows."""
    start = source.stream.peek(_BEGINNING)[:_BEGINNING]
    if start.startswith(PARQUET_MAGIC):
        return read_parquet(source, limits=limits, columns=columns, only_references=False)
    for beginning, reason in _NO_CAPTIONS.items():
        if start.lstrip().lower().startswith(beginning):
            raise InputError(f"{source.name}: {reason}")
    if start.lstrip()[:1] in (b"{", b"["):
        return read_json(source, limits=limits)
    if columns is not None or has_header(source, only_references=False):
        return read_delimited(source, limits=limits, columns=columns, only_references=False)
    if source.name.lower().endswith((".yaml", ".yml")):
        raise InputError(f"{source.name}: is YAML, which is not read: save the same lists and keys as JSON")
    faults: list[Fault] = []
    records = [
        Record(f"line {number}", {"line": number, "caption": line})
        for number, line in enumerate(text_lines(source, faults, limits=limits), start=1)
    ]
    if not any(str(record.fields["caption"]).strip() for record in records) and not faults:
        raise InputError(f"{source.name}: is empty")
    return Records(PLAIN_TEXT, records, faults)


def _check_pairing(name: str, records: Records, annotations: Annotations | None) -> None:
    """Refuse captions without ids and references with ids, or the reverse, and what is nothing that is known."""
    form = records.format
    if form is PLAIN_TEXT and records.faults and (annotations is None or not annotations.by_line):
        raise InputError(
            f"{name}: is not JSON, Parquet, a table with known columns or plain text ({records.faults[0]})"
        )
    if form is PLAIN_TEXT and annotations is None:
        raise InputError(
            f"{name}: is not JSON, Parquet or a table with known columns; as plain text, one caption per line, it "
            "needs --references FILE with a line for each caption (several files: several references), and a table "
            "with other names needs --columns"
        )
    if annotations is not None and (form is PLAIN_TEXT) != annotations.by_line:
        raise InputError(f"{name}: is {form.name}, which can't be paired with {annotations.format} as references")


class _Collected:
    """The items found so far, and the rules by which a record of a format becomes items."""

    def __init__(
        self,
        form: Format,
        annotations: Annotations | None,
        *,
        several: bool,
        part: bool = False,
        empty: Empty = "refuse",
        ids: IdRule = IdRule.GIVEN,
    ) -> None:
        self.unknown: list[ItemId] = []
        self._numbers = _by_number(annotations.captions) if annotations and ids is IdRule.NUMBER else {}
        self.found: list[Item] = []
        self.images: list[ItemId] = []
        self.records = 0
        self.has_several = False
        self.has_references = False
        self._format = form
        self._annotations = annotations
        self._several = several
        self._part = part
        self._empty: Empty = empty
        self._first: dict[ItemId, str] = {}
        self._candidates: dict[ItemId, int] = {}

    def add(self, record: Record) -> Iterator[Fault]:
        """Keep the items of a sound record, and yield the faults of another."""
        fields = record.fields
        self.records += 1
        self.has_references |= any(key in fields for key in self._format.references)
        id_key = _key(fields, self._format.ids)
        reasons = list(id_faults(fields[id_key])) if id_key in fields else ["is missing"]
        given = fields.get(id_key)
        faults = [Fault(record.place, id_key, reason) for reason in reasons]
        name = record.place
        names: tuple[str, ...] = ()
        image_id: ItemId | None = None
        if not reasons and isinstance(given, int | str):
            image_id = self._known(given)
            if self._format is not PLAIN_TEXT:
                name = label(record.place, image_id)
                names = self._annotations.names(image_id) if self._annotations else (str(image_id),)
            faults += self._repeated(image_id, name, id_key, record.place)
        candidates = list(self._read_candidates(fields, name, names, faults))
        if image_id is not None:
            references = self._references(fields, image_id, name, names, faults)
            for candidate in candidates if not faults else ():
                number = self._candidates[image_id] = self._candidates.get(image_id, 0) + 1
                item_id = f"{image_id}#{number}" if self._several else image_id
                self.found.append(Item(item_id, candidate, references))
                self.images.append(image_id)
        yield from faults

    def missing(self) -> list[ItemId]:
        """Return the images that have references and no candidate, in the order of the references."""
        known = self._annotations.captions if self._annotations else {}
        return [image_id for image_id, captions in known.items() if captions and image_id not in self._first]

    def _known(self, image_id: ItemId) -> ItemId:
        """Return the id as the references write it, if one side writes all ids as text."""
        if self._annotations is None or image_id in self._annotations.captions:
            return image_id
        number = number_in(image_id) if self._numbers else None
        if number is not None and number in self._numbers:
            return self._numbers[number]
        other = _other(image_id)
        loose = not (self._format.typed and self._annotations.typed)
        return other if loose and other is not None and other in self._annotations.captions else image_id

    def are_known_numbers(self) -> bool:
        """Return whether the unknown ids have the numbers of known ones."""
        known = _by_number(self._annotations.captions) if self._annotations else {}
        return all(number_in(image_id) in known for image_id in self.unknown)

    def _repeated(self, image_id: ItemId, name: str, key: str, location: str) -> Iterator[Fault]:
        other = _other(image_id)
        if other in self._first and str(other) == str(image_id) and not self._part:
            kinds = ("a number", "a string") if isinstance(image_id, int) else ("a string", "a number")
            yield Fault(name, key, f"is {kinds[0]} here, and {kinds[1]} in {self._first[other]}")
        earlier = self._first.setdefault(image_id, location)
        if earlier != location and not self._several and not self._part:
            self.has_several = True
            yield Fault(name, key, f"is also the id of {earlier}")

    def _read_candidates(
        self, fields: Mapping[str, object], name: str, names: tuple[str, ...], faults: list[Fault]
    ) -> Iterator[str]:
        """Yield the sound candidates of a record, and add what is wrong with the others."""
        key = _key(fields, self._format.candidates)
        value = fields.get(key)
        listed = value if isinstance(value, list) and value and (self._several or key in _LISTS) else None
        if listed is not None and len(listed) > 1 and not self._several:
            self.has_several = True
            faults.append(Fault(name, key, f"holds {len(listed)} captions, expected one"))
            return
        for index, candidate in enumerate([value] if listed is None else listed):
            wrong = list(caption_faults(candidate, names, empty=self._empty)) if key in fields else ["is missing"]
            faults += [Fault(name, key if listed is None else f"{key}[{index}]", reason) for reason in wrong]
            if isinstance(candidate, str):
                yield candidate

    def _references(
        self, fields: Mapping[str, object], image_id: ItemId, name: str, names: tuple[str, ...], faults: list[Fault]
    ) -> tuple[str, ...]:
        """Return the item's references, from its own record or from the annotations."""
        key = _key(fields, self._format.references) if self._format.references else ""
        if self._annotations is None:
            if key not in fields:
                faults.append(Fault(name, key or "references", _WITHOUT_REFERENCES))
                return ()
            value = given_references(key, fields[key])
            faults += [Fault(name, f"{key}{index}", reason) for index, reason in reference_faults(value, names)]
            return tuple(value) if isinstance(value, list) else ()
        known = self._annotations.captions
        if key in fields:
            faults.append(Fault(name, key, "stands in the file although --references gives the references"))
        elif image_id not in known:
            self.unknown.append(image_id)
            other, reason = _other(image_id), "is not in the references"
            if other is not None and other in known:
                kinds = ("a number", "a string") if isinstance(other, int) else ("a string", "a number")
                reason += f", which have {shown(other)}: {kinds[0]}, not {kinds[1]}"
            faults.append(Fault(name, self._format.ids[0], reason))
        elif not known[image_id]:
            faults.append(Fault(name, self._format.ids[0], "has no reference caption"))
        return known.get(image_id, ())


def _key(fields: Mapping[str, object], keys: tuple[str, ...]) -> str:
    """Return the first of the keys that the record has, or the best of them."""
    return next((key for key in keys if key in fields), keys[0])


def _other(image_id: ItemId) -> ItemId | None:
    """Return an id in its other type: a number as a string, or a string of digits as a number."""
    if isinstance(image_id, int):
        return str(image_id)
    return int(image_id) if image_id.strip().isascii() and image_id.strip().isdigit() else None


def number_in(image_id: ItemId) -> int | None:
    """Return the number that an id is, or the last one in it, before the ending of a file's name."""
    if isinstance(image_id, int):
        return image_id
    numbers = _DIGITS.findall(_ENDING.sub("", image_id))
    return int(numbers[-1]) if numbers else None


def _by_number(images: Iterable[ItemId]) -> dict[int | None, ItemId]:
    """Return ids by their numbers; two ids of one number, and none without a number, are left out."""
    by_number: dict[int | None, ItemId] = {}
    twice: set[int | None] = {None}
    for image_id in images:
        number = number_in(image_id)
        if number in by_number:
            twice.add(number)
        by_number[number] = image_id
    return {number: image_id for number, image_id in by_number.items() if number not in twice}
