"""The references of a set of images, from COCO annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.checks import caption_faults, id_faults, label
from spicegraph_scorer.readers.faults import Fault, input_error, shown
from spicegraph_scorer.readers.records import decode, decode_fields, decode_list, read_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.readers.source import Limits, Source

__all__ = ["Annotations", "coco_annotations", "read_annotations"]


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a file of references says: each image's captions in the file's order, and the images' file names.

    An image that is listed without any caption has an empty tuple. ``format`` names what the content showed.
    Where the format writes ids as text (``typed`` is false), an integer that is meant for a string is one;
    where it has no ids (``by_line``), the lines' numbers, from 1, stand for them. A ``table`` has columns.
    """

    captions: Mapping[ItemId, tuple[str, ...]]
    file_names: Mapping[ItemId, str]
    format: str = "COCO annotations"
    typed: bool = True
    by_line: bool = False
    table: bool = False

    def names(self, image_id: ItemId) -> tuple[str, ...]:
        """Return what the image is called: its id and, where it is known, its file name."""
        file_name = self.file_names.get(image_id)
        return (str(image_id), file_name) if file_name else (str(image_id),)


def read_annotations(source: Source, *, limits: Limits) -> Annotations:
    """Read COCO annotations: ``{"images": [...], "annotations": [{"image_id", "caption"}, ...]}``.

    ``images`` may be missing.

    Raises:
        InputError: the file is something else, or captions are faulty; the message lists every fault.
        LimitError: it is larger than the limits.
    """
    return coco_annotations(source, read_all(source, limits=limits))


def coco_annotations(source: Source, content: bytes) -> Annotations:
    """Return what the content of a COCO annotations file says.

    Raises:
        InputError: it is something else, or captions are faulty; the message begins with the source's name.
    """
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
        faults.append(Fault("", "annotations", "holds no caption"))
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
        place = f"annotation {index}"
        if not isinstance(annotation, dict):
            yield Fault(place, "", f"is {shown(annotation)}, expected an object")
            continue
        missing = [key for key in ("image_id", "caption") if key not in annotation]
        if missing:
            yield from (Fault(place, key, "is missing") for key in missing)
            continue
        image_id, caption = annotation["image_id"], annotation["caption"]
        reasons = list(id_faults(image_id))
        if reasons:
            yield from (Fault(place, "image_id", reason) for reason in reasons)
            continue
        if file_names and image_id not in file_names:
            yield Fault(label(place, image_id), "image_id", 'is not among the "images"')
            continue
        names = (str(image_id), file_names.get(image_id, ""))
        yield from (Fault(label(place, image_id), "caption", reason) for reason in caption_faults(caption, names))
        captions.setdefault(image_id, []).append(caption)
