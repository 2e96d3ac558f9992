"""The captions of images that judgements refer to: Flickr's token files, or COCO annotations."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.annotations import read_annotations
from spicegraph_scorer.readers.faults import Fault, input_error, shown
from spicegraph_scorer.readers.source import Limits, open_source
from spicegraph_scorer.readers.text import read_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.studies.agreement.reading.values import Row

__all__ = ["CaptionBank", "read_bank"]

_LAST_NUMBER = re.compile(r"(\d+)$")


class CaptionBank:
    """Captions by image (file name without its ending) and by caption id (``image.jpg#0``)."""

    def __init__(self, images: Mapping[str, tuple[str, ...]], captions: Mapping[str, str], name: str) -> None:
        self._images = images
        self._captions = captions
        self._name = name

    def references(self, image: str, row: Row) -> tuple[str, ...]:
        """Return an image's captions; a fault of the row if there are none."""
        stem = _stem(image)
        number = _LAST_NUMBER.search(stem)
        found = self._images.get(stem) or (self._images.get(str(int(number[1]))) if number else None)
        if not found:
            row.fault("image", f"{shown(image)} has no captions in {self._name}")
        return found or ()

    def caption(self, caption_id: str, row: Row) -> str:
        """Return the caption of an id; a fault of the row if there is none."""
        if caption_id not in self._captions:
            row.fault("caption", f"{shown(caption_id)} is not in {self._name}")
        return self._captions.get(caption_id, "")


def read_bank(paths: Sequence[str], *, needed_by: str, limits: Limits, option: str = "--references") -> CaptionBank:
    """Read token files (``image.jpg#0``, tab, caption) or COCO annotations into one bank.

    Args:
        paths: the files.
        needed_by: the format that can't be read without it.
        limits: how much is read at most.
        option: what the command calls the paths.

    Raises:
        InputError: no path is given, or a file is neither; the message lists every fault.
    """
    if not paths:
        raise InputError(
            f"{needed_by} hold no reference captions: give them with {option} (Flickr8k.token.txt, "
            "results_20130124.token, or COCO annotations)"
        )
    images: dict[str, tuple[str, ...]] = {}
    captions: dict[str, str] = {}
    for path in paths:
        with open_source(path, limits=limits) as source:
            is_json = source.stream.peek(1).lstrip()[:1] == b"{"
        found = _from_annotations(path, limits) if is_json else _from_tokens(path, limits)
        images |= found[0]
        captions |= found[1]
    return CaptionBank(images, captions, ", ".join(paths))


def _from_annotations(path: str, limits: Limits) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    with open_source(path, limits=limits) as source:
        annotations = read_annotations(source, limits=limits)
    images = {str(image): captions for image, captions in annotations.captions.items()}
    images |= {_stem(name): annotations.captions[image] for image, name in annotations.file_names.items() if name}
    return images, {}


def _from_tokens(path: str, limits: Limits) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    captions: dict[str, str] = {}
    images: dict[str, list[str]] = {}
    faults: list[Fault] = []
    for number, line in enumerate(read_lines(path, limits=limits), start=1):
        if not line.strip():
            continue
        caption_id, tab, text = line.partition("\t")
        image, mark, _ = caption_id.rpartition("#")
        if not tab or not mark or not text.strip():
            faults.append(Fault(f"line {number}", "", 'is not "image.jpg#0", a tab and a caption'))
            continue
        captions[caption_id] = text.strip()
        images.setdefault(_stem(image), []).append(text.strip())
    if faults:
        raise input_error(path, faults)
    return {image: tuple(texts) for image, texts in images.items()}, captions


def _stem(image: str) -> str:
    return PurePosixPath(image).stem
