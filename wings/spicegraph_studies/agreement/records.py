"""Records of judgements (JSON Lines), their checked values, and the captions of images that judgements refer to."""

from __future__ import annotations

import math
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers.checks import Fault, caption_faults, id_faults, reference_faults, refuse_faults, shown
from spicegraph_scorer.readers.records import decode, read_all, read_lines
from spicegraph_scorer.readers.references import annotations_of
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source
from spicegraph_studies.agreement.judgements import CaptionPair, Judgement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.readers.checks import Empty

Records: TypeAlias = "Sequence[tuple[str, Mapping[str, object]]]"  # objects and where they stand
IMAGES = ("image_id", "image", "imgid", "img", "seg_id")
CANDIDATES = ("candidate", "caption", "hyp", "test", "mt", "cand")
REFERENCES = ("references", "refs")


class Content:
    """A file's name and bytes; decoded as one JSON value if it is one."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self.value: object = None
        self.reason = ""
        if data.lstrip()[:1] in {b"{", b"["}:
            self.value, self.reason = decode(data)


def read_content(path: str) -> Content:
    """Read a whole file, standard input or the one file of a zip."""
    with open_source(path) as source:
        data = source.stream.read(DEFAULT_LIMITS.content + 1)
        name = source.name
    if len(data) > DEFAULT_LIMITS.content:
        raise LimitError(f"{name}: is larger than {DEFAULT_LIMITS.content:,} bytes")
    if not data.strip():
        raise InputError(f"{name}: is empty")
    return Content(name, data)


def text_of(content: Content) -> str:
    """Return a file's text."""
    try:
        return content.data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{content.name}: is not UTF-8 ({error.reason} at byte {error.start})") from error


def records_of(content: Content, faults: list[Fault]) -> Records:
    """Return the objects of a JSON list, or of one object per line."""
    if isinstance(content.value, list):
        values = [(f"item {index}", value, "") for index, value in enumerate(content.value, start=1)]
    else:
        lines = [(number, line) for number, line in enumerate(content.data.split(b"\n"), start=1) if line.strip()]
        values = [(f"line {number}", *decode(line)) for number, line in lines]
    records: list[tuple[str, Mapping[str, object]]] = []
    for place, value, reason in values:
        if isinstance(value, dict) and not reason:
            records.append((place, value))
        else:
            faults.append(Fault(place, "", reason or f"is {shown(value)}, expected an object"))
    return records


def is_number(value: object) -> bool:
    """Say whether a value is a finite number; truth values are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def field_of(fields: Mapping[str, object], names: Sequence[str]) -> str:
    """Return the first of the names that the record has; the first of all where it has none."""
    return next((name for name in names if name in fields), names[0])


class Faults(list[Fault]):
    """The faults of a file; with ``empty="zero"`` an empty caption under test is not one."""

    def __init__(self, empty: Empty = "refuse") -> None:
        super().__init__()
        self.empty: Empty = empty


class JudgementRow:
    """One record that is being read: its fields, and the faults found so far."""

    def __init__(self, place: str, fields: Mapping[str, object], faults: list[Fault]) -> None:
        self.place = place
        self.fields = fields
        self._faults = faults

    def fault(self, field: str, reason: str) -> None:
        """Note that a field is wrong."""
        self._faults.append(Fault(self.place, field, reason))

    def image(self, names: Sequence[str]) -> str | None:
        """Return the image's id as text; ``None`` if the record names no image."""
        name = field_of(self.fields, names)
        if name not in self.fields:
            return None
        value = self.fields[name]
        for reason in id_faults(value):
            self.fault(name, reason)
        return str(value)

    def caption(self, names: Sequence[str]) -> str:
        """Return a caption."""
        name = field_of(self.fields, names)
        if name not in self.fields:
            self.fault(name, "is missing")
            return ""
        return self.checked_caption(name, self.fields[name])

    def checked_caption(self, name: str, value: object) -> str:
        """Return a value as a caption."""
        empty = self._faults.empty if isinstance(self._faults, Faults) else "refuse"
        for reason in caption_faults(value, empty=empty):
            self.fault(name, reason)
        return value if isinstance(value, str) else ""

    def references(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the references; no fault where the record lacks them, because some studies need none."""
        name = field_of(self.fields, names)
        if name not in self.fields:
            return ()
        value = self.fields[name]
        for place, reason in reference_faults(value):
            self.fault(f"{name}{place}", reason)
        return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a number or a list of numbers; nothing for null, or where nulls are all that a list holds."""
        value = self.fields[name]
        values = value if isinstance(value, list) else [value]
        for index, number in enumerate(values):
            if number is not None and not is_number(number):
                where = f"{name}[{index}]" if isinstance(value, list) else name
                self.fault(where, f"is {shown(number)}, expected a number")
        return tuple(float(number) for number in values if isinstance(number, int | float) and is_number(number))

    def text(self, name: str) -> str | None:
        """Return a text field, if there is one."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            self.fault(name, f"is {shown(value)}, expected a string")
        return value if isinstance(value, str) else None

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a field that holds an object, empty if it is missing."""
        value = self.fields.get(name, {})
        if not isinstance(value, dict):
            self.fault(name, f"is {shown(value)}, expected an object")
            return {}
        return value

    def number(self, name: str, value: object) -> float | None:
        """Return a number, or ``None`` for null."""
        if value is not None and not is_number(value):
            self.fault(name, f"is {shown(value)}, expected a number or null")
        return float(value) if isinstance(value, int | float) and is_number(value) else None


def judgements_of_records(records: Records, faults: list[Fault], *, rating: str | None) -> Iterator[Judgement | None]:
    """Yield the rated captions; ``None`` for a record without a rating."""
    for place, fields in records:
        row = JudgementRow(place, fields, faults)
        candidate, references = row.caption(CANDIDATES), row.references(REFERENCES)
        key = rating if rating is not None else field_of(fields, ("ratings", "rating", "human_score", "score"))
        ratings = row.numbers(key) if key in fields else ()
        if key not in fields:
            row.fault(key, "is missing")
        given = {name: row.number(f"metrics.{name}", value) for name, value in row.mapping("metrics").items()}
        image = _image(row, references, candidate)
        system = row.text(field_of(fields, ("system", "SYS"))) if ratings else None
        yield Judgement(place, image, candidate, references, ratings, given, system) if ratings else None


def pairs_of_records(records: Records, faults: list[Fault]) -> Iterator[CaptionPair]:
    """Yield the pairs of captions; every record has a judgement."""
    for place, fields in records:
        row, captions, texts = JudgementRow(place, fields, faults), fields.get("captions"), ("", "")
        if isinstance(captions, list) and len(captions) == len(texts):
            first, second = (row.checked_caption(f"captions[{side}]", text) for side, text in enumerate(captions))
            texts = (first, second)
        else:
            row.fault("captions", "is missing" if captions is None else "is not a list of two captions")
        choice = _choice(row)
        references = row.references(REFERENCES)
        others = row.references(("references_b",)) if "references_b" in fields else None
        category = row.text("category") or ""
        image = _image(row, references, texts[0])
        yield CaptionPair(place, image, category, texts, choice, references, _given_scores(row), others)


def _choice(row: JudgementRow) -> int | None:
    """Return which of two captions people prefer; ``None``: neither."""
    key = field_of(row.fields, ("preferred", "label"))
    preferred = row.fields.get(key)
    if key not in row.fields:
        row.fault(key, "is missing")
    elif preferred is not None and (isinstance(preferred, bool) or preferred not in {0, 1}):
        row.fault(key, f"is {preferred!a:.60}, expected 0 or 1 (which of the captions), or null for a tie")
    return preferred if isinstance(preferred, int) else None


def _given_scores(row: JudgementRow) -> dict[str, tuple[float | None, float | None]]:
    """Return the scores of both captions that the record carries, by metric."""
    given: dict[str, tuple[float | None, float | None]] = {}
    for name, values in row.mapping("metrics").items():
        if isinstance(values, list) and len(values) == 2:
            first, second = (row.number(f"metrics.{name}[{side}]", value) for side, value in enumerate(values))
            given[name] = first, second
        else:
            row.fault(f"metrics.{name}", "is not a list of two numbers, one for each caption")
    return given


def _image(row: JudgementRow, references: tuple[str, ...], candidate: str) -> str:
    """Return the image; a record that names none belongs to those with the same references."""
    return row.image(IMAGES) or "\n".join(references) or candidate


class CaptionBank:
    """Captions by image (file name without its ending) and by caption id (``image.jpg#0``)."""

    def __init__(self, images: Mapping[str, tuple[str, ...]], captions: Mapping[str, str], name: str) -> None:
        self._images = images
        self._captions = captions
        self._name = name

    def references(self, image: str, row: JudgementRow) -> tuple[str, ...]:
        """Return an image's captions; a fault of the row if there are none."""
        stem = _stem(image)
        number = re.search(r"(\d+)$", stem)
        texts = self._images.get(stem) or (self._images.get(str(int(number[1]))) if number else None)
        if not texts:
            row.fault("image", f"{shown(image)} has no captions in {self._name}")
        return texts or ()

    def caption(self, caption_id: str, row: JudgementRow) -> str:
        """Return the caption of an id; a fault of the row if there is none."""
        if caption_id not in self._captions:
            row.fault("caption", f"{shown(caption_id)} is not in {self._name}")
        return self._captions.get(caption_id, "")


def read_bank(paths: Sequence[str], *, needed_by: str, option: str = "--references") -> CaptionBank:
    """Read token files (``image.jpg#0``, tab, caption), COCO annotations or JSON Lines into one bank."""
    if not paths:
        raise InputError(
            f"{needed_by} contain no reference captions: give them with {option} (Flickr8k.token.txt, "
            "results_20130124.token, COCO annotations, or JSON Lines with image and references)"
        )
    images: dict[str, tuple[str, ...]] = {}
    captions: dict[str, str] = {}
    for path in paths:
        with open_source(path) as source:
            is_json = source.stream.peek(1).lstrip()[:1] == b"{"
            first = decode(source.stream.readline(DEFAULT_LIMITS.content))[0] if is_json else None
        if isinstance(first, dict) and any(name in first for name in REFERENCES):  # JSON Lines, whatever its name
            images |= _from_records(path)
        elif is_json:
            images |= _from_annotations(path)
        else:
            of_file, of_ids = _from_tokens(path)
            images |= of_file
            captions |= of_ids
    return CaptionBank(images, captions, ", ".join(paths))


def _from_records(path: str) -> dict[str, tuple[str, ...]]:
    images: dict[str, tuple[str, ...]] = {}
    faults: list[Fault] = []
    for place, fields in records_of(read_content(path), faults):
        texts = JudgementRow(place, fields, faults).references(REFERENCES)
        images |= {_stem(str(fields[name])): texts for name in (*IMAGES, "id") if name in fields}
    refuse_faults(path, faults)
    return images


def _from_annotations(path: str) -> dict[str, tuple[str, ...]]:
    with open_source(path) as source:
        annotations = annotations_of(source, read_all(source, limits=DEFAULT_LIMITS))
    by_image, names = annotations.captions, annotations.file_names
    images = {str(image): texts for image, texts in by_image.items()}
    return images | {_stem(name): by_image[image] for image, name in names.items() if name}


def _from_tokens(path: str) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    captions: dict[str, str] = {}
    images: dict[str, list[str]] = {}
    faults: list[Fault] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        caption_id, tab, text = line.partition("\t")
        image, mark, _ = caption_id.rpartition("#")
        if not tab or not mark or not text.strip():
            faults.append(Fault(f"line {number}", "", 'is not "image.jpg#0", a tab and a caption'))
            continue
        captions[caption_id] = text.strip()
        images.setdefault(_stem(image), []).append(text.strip())
    refuse_faults(path, faults)
    return {image: tuple(texts) for image, texts in images.items()}, captions


def _stem(image: str) -> str:
    return PurePosixPath(image).stem
