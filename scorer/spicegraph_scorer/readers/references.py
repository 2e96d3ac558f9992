"""The references of a set of images in a file of their own, of any shape that is known."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import InputError, counted, kind_of
from spicegraph_scorer.readers.checks import (
    Fault,
    as_id,
    caption_faults,
    id_faults,
    is_plain,
    label,
    reference_faults,
    refuse_faults,
    shown,
    without_empty,
)
from spicegraph_scorer.readers.documents import read_json
from spicegraph_scorer.readers.fields import EXPECTED, Wanted, joined
from spicegraph_scorer.readers.records import PLAIN_TEXT, Format, Record, Records, given_references, text_lines
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, ReadLimits, Source, open_source
from spicegraph_scorer.readers.tables import (
    has_header,
    is_binary_table,
    read_binary_table,
    read_delimited,
    read_id_lines,
    refuse_records,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId

_BEGINNING: Final = 64
_PIECE: Final = 8192
_YAML: Final = re.compile(rb"---\s*\n|(?:- )?[a-z_]+:\s*\n|- [a-z_]+: \S")
_NO_CAPTIONS: Final = {
    b"<!doctype html": "is an HTML page: was an error or login page saved in place of the file?",
    b"<html": "is an HTML page: was an error or login page saved in place of the file?",
    b"version https://git-lfs": "is a pointer of Git LFS, not the file itself: run git lfs pull",
    b"null": "is null, expected a list of items",
    b"<?xml": "is XML, which is not read: save ids and captions as JSON or as a table",
    b"webvtt": "is a file of subtitles, which have no ids of images or videos",
}  # How files begin that stand in place of captions, in lower case, and what is said of them.


def read_records(source: Source, *, limits: ReadLimits, wanted: Wanted) -> Records | None:
    """Read the records of a file in the shape that its content shows; ``None``: it is plain text."""
    if is_binary_table(source):
        return read_binary_table(source, limits=limits, wanted=wanted)
    start = source.stream.peek(_BEGINNING)[:_BEGINNING].lstrip()
    for beginning, reason in _NO_CAPTIONS.items():
        if start.lower().startswith(beginning):
            raise InputError(f"{source.name}: {reason}")
    if start[:1] in (b"{", b"["):
        return read_json(source, limits=limits, wanted=wanted)
    if b"\r" in (piece := source.stream.peek(_PIECE)) and b"\n" not in piece:
        raise InputError(f"{source.name}: has lines that end with a carriage return alone; save it with line feeds")
    if wanted.columns is not None and wanted.columns.delimiter == "\n":
        return None
    if wanted.columns is not None or has_header(source, wanted):
        return read_delimited(source, limits=limits, wanted=wanted)
    if source.name.lower().endswith((".yaml", ".yml")) or _YAML.match(start):
        raise InputError(f"{source.name}: is YAML, which is not read: save the same lists and keys as JSON")
    return read_id_lines(source, limits=limits, wanted=wanted)


_PROOF: Final = 1_000  # Lines of plain text of which none may look like a record.


def plain_captions(source: Source, faults: list[Fault], *, limits: ReadLimits, wanted: Wanted) -> list[str]:
    """Return the lines of plain text, none of which looks like a record, unless users say that lines are captions."""
    lines = list(text_lines(source, faults, limits=limits))
    if wanted.columns is None or wanted.columns.delimiter != "\n":
        refuse_records(source, lines[:_PROOF])
    return lines


@dataclass(frozen=True, slots=True)
class Annotations:
    """Contents of a reference file: each image's captions in order, and image metadata."""

    captions: Mapping[ItemId, tuple[str, ...]]
    file_names: Mapping[ItemId, str]
    format: str = "COCO annotations"
    typed: bool = True  # False: ids are text, and an integer that is meant for one is one
    by_line: bool = False  # has no ids: the lines' numbers, from 1, stand for them
    aliases: Mapping[str, Mapping[object, ItemId]] = field(default_factory=dict)  # by key: what else images are called
    splits: Mapping[ItemId, str] = field(default_factory=dict)
    tags: Mapping[ItemId, str] = field(default_factory=dict)  # domains
    left_out: frozenset[object] = frozenset()  # images without captions because these were left out
    notes: tuple[str, ...] = ()

    def names(self, image_id: ItemId) -> tuple[str, ...]:
        """Return an image's names: its id and, if known, its file name."""
        file_name = self.file_names.get(image_id)
        return (str(image_id), file_name) if file_name else (str(image_id),)

    def split_named(self, wanted: str) -> str:
        """Return a split as the file calls it."""
        names = sorted(set(self.splits.values()))
        for name in names:
            if wanted.lower() in {name.lower(), _SPLITS.get(name.lower())}:
                return name
        has = f"it has {', '.join(names)}" if names else "the references have no splits"
        raise InputError(f"--split {shown(wanted)}: there is no such split; {has}")

    def of_split(self, wanted: str | None) -> Annotations:
        """Return the images of a split; ``None``: all."""
        if wanted is None:
            return self
        name = self.split_named(wanted)
        return replace(self, captions={i: texts for i, texts in self.captions.items() if self.splits.get(i) == name})


_SPLITS: Final = {"validate": "val", "validation": "val", "dev": "val", "training": "train", "testing": "test"}


def coco_annotations(source: Source, content: bytes) -> Annotations:
    """Read ``{"images": [...], "annotations": [{"image_id", "caption"}, ...]}``, with or without images."""
    if b'"annotations"' not in content:
        reason = 'is not COCO annotations, expected an object with a list "annotations" of {"image_id", "caption"}'
        raise InputError(f"{source.name}: {reason}")
    return annotations_of(source, content)


def annotations_of(source: Source, content: bytes) -> Annotations:
    """Read references from the content of a file."""
    again = source._replace(stream=io.BufferedReader(io.BytesIO(content)))
    return _read(again, DEFAULT_LIMITS, Wanted("references"))


def read_reference_files(paths: Sequence[str], *, limits: ReadLimits, wanted: Wanted | None = None) -> Annotations:
    """Read references; several files add up, in their order: an image's captions, or a line's of plain text."""
    read = []
    for path in paths:
        with open_source(path, limits=limits) as source:
            read.append(_read(source, limits, wanted or Wanted("references")))
    if len(read) == 1:
        return read[0]
    by_line = {reference_file.by_line for reference_file in read}
    if len(by_line) > 1:
        raise InputError(f"{', '.join(paths)}: some are plain text, whose captions have no ids, and some are not")
    lengths = [len(reference_file.captions) for reference_file in read]
    if by_line == {True} and len(set(lengths)) > 1:
        counts = ", ".join(f"{path} has {length}" for path, length in zip(paths, lengths, strict=True))
        raise InputError(f"files of references must have the same number of lines: {counts}")
    return _together(paths, read)


def _together(paths: Sequence[str], read: Sequence[Annotations]) -> Annotations:
    """Put several files of references together; 1 in one file and "1" in another are the same image."""
    captions: dict[ItemId, tuple[str, ...]] = {}
    called: dict[str, ItemId] = {}
    files: Counter[ItemId] = Counter()
    aliases: dict[str, dict[object, ItemId]] = {}
    for each in read:
        for image, texts in each.captions.items():
            image_id = called.setdefault(str(image), image)
            captions[image_id] = captions.get(image_id, ()) + texts
            files[image_id] += bool(texts)
        for key, known in each.aliases.items():
            aliases.setdefault(key, {}).update(known)
    notes = list(chain.from_iterable(each.notes for each in read))
    several = sum(count > 1 for count in files.values())
    if several and not read[0].by_line:
        notes.append(f"{counted(several, 'image')} with references in several of {', '.join(paths)}: they add up")
    return Annotations(
        captions,
        _merged(each.file_names for each in read),
        " + ".join(dict.fromkeys(each.format for each in read)),
        all(each.typed for each in read),
        read[0].by_line,
        aliases,
        _merged(each.splits for each in read),
        _merged(each.tags for each in read),
        frozenset().union(*(each.left_out for each in read)),
        tuple(notes),
    )


def _merged(parts: Iterable[Mapping[ItemId, str]]) -> dict[ItemId, str]:
    """Merge the mappings of all files; on conflicts the last one wins."""
    return {image: said for part in parts for image, said in part.items()}


def _read(source: Source, limits: ReadLimits, wanted: Wanted) -> Annotations:
    records = read_records(source, limits=limits, wanted=wanted)
    if records is not None:
        return _from_records(source, records, empty_references=wanted.drop_empty)
    # One caption per line; an empty line is an image for which this file has none.
    captions: dict[ItemId, tuple[str, ...]] = {}
    faults: list[Fault] = []
    for number, line in enumerate(plain_captions(source, faults, limits=limits, wanted=wanted), start=1):
        captions[number] = (line,) if line.strip() else ()
    if not captions and not faults:
        raise InputError(f"{source.name}: is empty")
    refuse_faults(source.name, faults)
    return Annotations(captions, {}, PLAIN_TEXT.name, by_line=True)


_COCO_NAME: Final = re.compile(r"(?:.*/)?COCO_(?:train|val|test)\d{4}_(\d{12})(?:\.\w+)?")


class _Images:
    """Image data collected while captions are read."""

    def __init__(self) -> None:
        self.captions: dict[ItemId, list[str]] = {}
        self.file_names: dict[ItemId, str] = {}
        self.splits: dict[ItemId, str] = {}
        self.tags: dict[ItemId, str] = {}
        self.aliases: dict[str, dict[object, ItemId]] = {}
        self.padded = 0

    def call(self, key: str, name: object, image_id: ItemId) -> None:
        """Record an image's alias, such as a file name; ambiguous aliases are dropped."""
        if isinstance(name, str) and name and name != image_id:
            known = self.aliases.setdefault(key, {})
            if known.setdefault(name, image_id) != image_id:
                known[name] = ""  # no image's id
            if "COCO_" in name and (number := _COCO_NAME.fullmatch(name)):
                self.aliases.setdefault("COCO's number", {}).setdefault(int(number[1]), image_id)

    def note(self, form: Format, fields: Mapping[str, object], image_id: ItemId) -> None:
        """Record an image's aliases and split from its record."""
        for alias in form.aliases:
            self.call(alias, fields.get(alias), image_id)
        if type(image_id) is str and (number := _COCO_NAME.fullmatch(image_id)):
            self.aliases.setdefault("COCO's number", {}).setdefault(int(number[1]), image_id)
        if form.split and isinstance(split := fields.get(form.split), str):
            self.splits[image_id] = split

    def add_image(self, place: str, image: object, key: str) -> Iterator[Fault]:
        """Note an image of a list of images."""
        id_key = next((name for name in (key, "id") if isinstance(image, dict) and name in image), "id")
        if not isinstance(image, dict) or id_key not in image:
            yield Fault(place, "", 'is not an object with an "id"')
            return
        image_id = image[id_key]
        reasons = list(id_faults(image_id))
        if reasons:
            yield from (Fault(place, "id", reason) for reason in reasons)
        elif image_id in self.file_names:
            yield Fault(f"{place} (id {shown(image_id)})", "id", "is the id of an earlier image")
        else:
            yield from self._add_sound(place, image, image_id)

    def _add_sound(self, place: str, image: Mapping[str, object], image_id: ItemId) -> Iterator[Fault]:
        """Note the file, the split and the domain of an image."""
        name, split, domain = image.get("file_name"), image.get("split"), image.get("domain")
        self.file_names[image_id] = name if isinstance(name, str) else ""
        self.call("file_name", name, image_id)
        if isinstance(split, str) and split:
            self.splits[image_id] = split
        if isinstance(domain, str) and domain:
            self.tags[image_id] = domain
        elif domain is not None and not isinstance(domain, str):
            yield Fault(place, "domain", f"is {kind_of(domain)}, expected a string")


def _from_records(source: Source, records: Records, *, empty_references: bool = False) -> Annotations:
    """Collect the references of every id; records of the same id add up."""
    form = records.format
    known = _Images()
    faults: list[Fault] = []
    id_key = form.ids[0]
    for place, row in form.images or ():
        faults += known.add_image(place, row, id_key)
    known.captions = {image_id: [] for image_id in known.file_names}
    count, collected = _collect_all(records, known, drop_empty=empty_references)
    faults += collected
    if form.name == "COCO results" and count == len(known.captions) > 0 and not faults:
        raise InputError(f"{source.name}: is COCO results, which hold candidates; --references takes {EXPECTED}")
    faults = [*records.faults, *faults]
    if not known.captions and not faults:
        faults.append(
            Fault("", "annotations", "contains no caption")
            if form.images or form.name == "COCO annotations"
            else Fault("", "", "contains no references")
        )
    refuse_faults(source.name, faults)
    return _annotations(source.name, form, known)


def _collect_all(records: Records, known: _Images, *, drop_empty: bool) -> tuple[int, list[Fault]]:
    """Keep the references of all records; return how many records there are, and what is wrong with them."""
    form, count = records.format, 0
    faults: list[Fault] = []
    id_key, captions_key, listed = form.ids[0], form.references[0], bool(known.file_names)
    is_simple = not form.aliases and not form.split
    captions, names = known.captions, known.file_names
    for record in records.records:
        count += 1
        image, text = record.fields.get(id_key), record.fields.get(captions_key)
        # The usual record, checked at once.
        if (
            is_simple
            and type(image) is int
            and type(text) is str
            and image in captions
            and is_plain(text)
            and text != names.get(image)
        ):
            captions[image].append(text)
        else:
            faults += _collect(record, form, known, listed=listed, drop_empty=drop_empty)
    return count, faults


def _annotations(name: str, form: Format, known: _Images) -> Annotations:
    whole = {
        image_id: (joined(texts),) if form.joined and texts else tuple(texts)
        for image_id, texts in known.captions.items()
    }
    notes = [*form.notes, *([f"{counted(known.padded, 'empty reference')} dropped"] if known.padded else [])]
    return Annotations(
        whole,
        known.file_names,
        form.name,
        form.typed,
        aliases=known.aliases,
        splits=known.splits,
        tags=known.tags,
        left_out=frozenset(image for image in form.left_out if isinstance(image, int | str) and not whole.get(image)),
        notes=tuple(f"{name}: {note}" for note in notes),
    )


def _collect(record: Record, form: Format, known: _Images, *, listed: bool, drop_empty: bool) -> Iterator[Fault]:
    """Keep the references of a record, and yield what is wrong with it."""
    place, fields = record
    id_key, key = form.ids[0], form.references[0]
    missing = [name for name in (id_key, key) if name not in fields]
    if missing:
        yield from (Fault(place, name, "is missing") for name in missing)
        return
    image_id, value = as_id(fields[id_key]), given_references(key, fields[key])
    reasons = list(id_faults(image_id))
    if reasons or not isinstance(image_id, int | str):
        yield from (Fault(place, id_key, reason) for reason in reasons)
        return
    if listed and image_id not in known.file_names:
        yield Fault(label(place, image_id), id_key, 'is not among the "images"')
        return
    texts, dropped = without_empty([value] if isinstance(value, str) else value, drop=drop_empty)
    known.padded += dropped
    names = (str(image_id), known.file_names.get(image_id, ""))
    wrong = list(_wrong_texts(value, texts, names, may_be_none=drop_empty))
    yield from (Fault(label(place, image_id), f"{key}{index}", reason) for index, reason in wrong)
    if not wrong and isinstance(texts, list):
        known.captions.setdefault(image_id, []).extend(texts)
        known.note(form, fields, image_id)


def _wrong_texts(
    value: object, texts: object, names: tuple[str, ...], *, may_be_none: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with references, and at which place of a list; ``texts`` are those that are kept."""
    if isinstance(value, str) and texts:
        yield from (("", reason) for reason in caption_faults(value, names))
    elif not (may_be_none and texts == []):
        yield from reference_faults(texts, names)
