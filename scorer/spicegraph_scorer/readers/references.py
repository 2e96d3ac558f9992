"""The references of a set of images in a file of their own: COCO annotations, or any other format."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.checks import (
    Fault,
    caption_faults,
    id_faults,
    input_error,
    label,
    reference_faults,
    shown,
)
from spicegraph_scorer.readers.records import (
    COCO_RESULTS,
    PLAIN_TEXT,
    Record,
    Records,
    decode,
    decode_fields,
    decode_list,
    given_references,
    is_mapping,
    mapping_records,
    read_all,
    read_json,
    text_lines,
)
from spicegraph_scorer.readers.source import ReadLimits, Source, open_source
from spicegraph_scorer.readers.tables import PARQUET_MAGIC, Columns, has_header, read_delimited, read_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a file of references says: each image's captions in the file's order, and the images' file names."""

    captions: Mapping[ItemId, tuple[str, ...]]
    file_names: Mapping[ItemId, str]
    format: str = "COCO annotations"
    typed: bool = True  # False: ids are text, and an integer that is meant for one is one
    by_line: bool = False  # has no ids: the lines' numbers, from 1, stand for them
    table: bool = False  # has columns

    def names(self, image_id: ItemId) -> tuple[str, ...]:
        """Return what the image is called: its id and, where it is known, its file name."""
        file_name = self.file_names.get(image_id)
        return (str(image_id), file_name) if file_name else (str(image_id),)


def coco_annotations(source: Source, content: bytes) -> Annotations:
    """Read ``{"images": [...], "annotations": [{"image_id", "caption"}, ...]}``, with or without images."""
    fields = decode_fields(content)
    given = fields.get("annotations") if fields else None
    annotations = None if given is None else decode_list(source, content, given)
    if fields is None or annotations is None:
        reason = decode(content)[1] or (
            'is not COCO annotations, expected an object with a list "annotations" of {"image_id", "caption"}'
        )
        raise InputError(f"{source.name}: {reason}")
    images = decode_list(source, content, fields["images"]) if "images" in fields else ()
    file_names: dict[ItemId, str] = {}
    captions: dict[ItemId, list[str]] = {}
    faults = list(_read_images(images, file_names))
    captions.update((image_id, []) for image_id in file_names)
    faults += _read_captions(annotations, captions, file_names)
    if not captions and not faults:
        faults.append(Fault("", "annotations", "contains no caption"))
    if faults:
        raise input_error(source.name, faults)
    return Annotations({image_id: tuple(texts) for image_id, texts in captions.items()}, file_names)


def _read_images(images: Iterable[object] | None, file_names: dict[ItemId, str]) -> Iterator[Fault]:
    if images is None:
        yield Fault("", "images", "is not a list")
        return
    for index, image in enumerate(images, start=1):
        if not isinstance(image, dict) or "id" not in image:
            yield Fault(f"image {index}", "", 'is not an object with an "id"')
            continue
        image_id = image["id"]
        reasons = list(id_faults(image_id))
        if reasons:
            yield from (Fault(f"image {index}", "id", reason) for reason in reasons)
        elif image_id in file_names:
            yield Fault(f"image {index} (id {shown(image_id)})", "id", "is the id of an earlier image")
        else:
            name = image.get("file_name")
            file_names[image_id] = name if isinstance(name, str) else ""


def _read_captions(
    annotations: Iterable[object], captions: dict[ItemId, list[str]], file_names: Mapping[ItemId, str]
) -> Iterator[Fault]:
    for index, annotation in enumerate(annotations, start=1):
        location = f"annotation {index}"
        if not isinstance(annotation, dict):
            yield Fault(location, "", f"is {shown(annotation)}, expected an object")
            continue
        missing = [key for key in ("image_id", "caption") if key not in annotation]
        if missing:
            yield from (Fault(location, key, "is missing") for key in missing)
            continue
        image_id, caption = annotation["image_id"], annotation["caption"]
        reasons = list(id_faults(image_id))
        if reasons:
            yield from (Fault(location, "image_id", reason) for reason in reasons)
            continue
        if file_names and image_id not in file_names:
            yield Fault(label(location, image_id), "image_id", 'is not among the "images"')
            continue
        names = (str(image_id), file_names.get(image_id, ""))
        yield from (Fault(label(location, image_id), "caption", reason) for reason in caption_faults(caption, names))
        captions.setdefault(image_id, []).append(caption)


_REFERENCE_KEYS = ("references", "refs", "captions", "caption", "facts")
_EXPECTED = "COCO annotations, references by id, JSON Lines, a table, or plain text with a line for each candidate"


def read_reference_files(paths: Sequence[str], *, limits: ReadLimits, columns: Columns | None = None) -> Annotations:
    """Read references; several files add up, in their order: an image's captions, or a line's of plain text."""
    read = []
    for path in paths:
        with open_source(path, limits=limits) as source:
            read.append(_read(source, limits, columns))
    if len(read) == 1:
        return read[0]
    by_line = {reference_file.by_line for reference_file in read}
    if len(by_line) > 1:
        raise InputError(f"{', '.join(paths)}: some are plain text, whose captions have no ids, and some are not")
    lengths = [len(reference_file.captions) for reference_file in read]
    if by_line == {True} and len(set(lengths)) > 1:
        counts = ", ".join(f"{path} has {length}" for path, length in zip(paths, lengths, strict=True))
        raise InputError(f"files of references must have the same number of lines: {counts}")
    captions: dict[ItemId, tuple[str, ...]] = {}
    file_names: dict[ItemId, str] = {}
    for reference_file in read:
        for image_id, texts in reference_file.captions.items():
            captions[image_id] = captions.get(image_id, ()) + texts
        file_names.update(reference_file.file_names)
    names = dict.fromkeys(reference_file.format for reference_file in read)
    typed = all(reference_file.typed for reference_file in read)
    table = any(reference_file.table for reference_file in read)
    return Annotations(captions, file_names, " + ".join(names), typed=typed, by_line=read[0].by_line, table=table)


def _read(source: Source, limits: ReadLimits, columns: Columns | None) -> Annotations:
    start = source.stream.peek(len(PARQUET_MAGIC))
    if start.startswith(PARQUET_MAGIC):
        return _from_records(source, read_parquet(source, limits=limits, columns=columns, only_references=True))
    if start.lstrip()[:1] in (b"{", b"["):
        return _from_json(source, limits)
    if columns is not None or has_header(source, only_references=True):
        return _from_records(source, read_delimited(source, limits=limits, columns=columns, only_references=True))
    # One caption per line; an empty line is an image for which this file has none.
    captions: dict[ItemId, tuple[str, ...]] = {}
    faults: list[Fault] = []
    for number, line in enumerate(text_lines(source, faults, limits=limits), start=1):
        captions[number] = (line,) if line.strip() else ()
    if not captions and not faults:
        raise InputError(f"{source.name}: is empty")
    if faults:
        raise input_error(source.name, faults)
    return Annotations(captions, {}, PLAIN_TEXT.name, by_line=True)


def _from_json(source: Source, limits: ReadLimits) -> Annotations:
    """Read COCO annotations, references by id, one object per line, or a list of objects."""
    if source.stream.peek(1).lstrip()[:1] == b"[":
        return _from_records(source, read_json(source, limits=limits))
    content = read_all(source, limits=limits)
    fields = decode_fields(content)
    if fields and "annotations" in fields and not fields.keys() & set(_REFERENCE_KEYS):
        return coco_annotations(source, content)
    value, reason = decode(content)
    if isinstance(value, dict):
        if is_mapping(value):
            return _from_records(source, mapping_records(value))
        if not value.keys() & set(_REFERENCE_KEYS):
            return coco_annotations(source, content)
    elif reason and not isinstance(decode(content.partition(b"\n")[0])[0], dict):
        raise InputError(f"{source.name}: {reason}")
    again = Source(source.name, io.BufferedReader(io.BytesIO(content)), source.packing)
    return _from_records(source, read_json(again, limits=limits))


def _from_records(source: Source, records: Records) -> Annotations:
    """Collect the references of every id; records of the same id add up."""
    form = records.format
    if form is COCO_RESULTS:
        raise InputError(f"{source.name}: is COCO results, which hold candidates; --references takes {_EXPECTED}")
    captions: dict[ItemId, list[str]] = {}
    wrong = [fault for record in records.records for fault in _collect(record, form.ids, captions)]
    faults = [*records.faults, *wrong]
    if not captions and not faults:
        faults.append(Fault("", "", "contains no references"))
    if faults:
        raise input_error(source.name, faults)
    by_image = {image_id: tuple(texts) for image_id, texts in captions.items()}
    return Annotations(by_image, {}, form.name, typed=form.typed, table=form.table)


def _collect(record: Record, id_keys: Sequence[str], captions: dict[ItemId, list[str]]) -> Iterator[Fault]:
    fields = record.fields
    id_key = next((key for key in id_keys if key in fields), id_keys[0])
    key = next((key for key in _REFERENCE_KEYS if key in fields), "references")
    missing = [name for name in (id_key, key) if name not in fields]
    if missing:
        yield from (Fault(record.place, name, "is missing") for name in missing)
        return
    image_id, value = fields[id_key], given_references(key, fields[key])
    reasons = list(id_faults(image_id))
    if reasons or not isinstance(image_id, int | str):
        yield from (Fault(record.place, id_key, reason) for reason in reasons)
        return
    texts = [value] if isinstance(value, str) else value
    faults = [
        Fault(label(record.place, image_id), f"{key}{index if isinstance(value, list) else ''}", reason)
        for index, reason in reference_faults(texts, (str(image_id),))
    ]
    yield from faults
    if not faults and isinstance(texts, list):
        captions.setdefault(image_id, []).extend(texts)
