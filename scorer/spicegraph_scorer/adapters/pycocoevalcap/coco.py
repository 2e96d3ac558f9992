"""The captions of COCO files, with the methods of ``pycocotools.coco.COCO`` that concern captions."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.checks import Fault, id_faults, input_error, shown
from spicegraph_scorer.readers.records import decode, read_all
from spicegraph_scorer.readers.references import coco_annotations
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_scorer.core.items import ItemId

Annotation = dict[str, Any]
"""An annotation or an image as its file has it: a JSON object with an ``id``."""


class CaptionIndex(Protocol):
    """What is needed of a COCO object: pycocotools' ``COCO`` has it, and so has :class:`COCO`."""

    @property
    def imgToAnns(self) -> Mapping[Any, Sequence[Mapping[str, object]]]:  # noqa: N802 (pycocotools' name)
        """The annotations of each image, each with a ``caption``."""
        ...

    def getImgIds(self) -> Sequence[Any]:  # noqa: N802 (pycocotools' name)
        """Return the ids of all images."""
        ...


class COCO:
    """The captions of COCO files, without pycocotools.

    ``dataset`` is the file's JSON object, and :meth:`createIndex` makes ``anns``, ``imgs`` and ``imgToAnns`` from it.
    Without a file the dataset is empty, to be filled by the caller.

    Raises:
        InputError: the file is missing or faulty; the message lists every fault.

    Example:
        >>> references = COCO("captions.json")  # doctest: +SKIP
        >>> COCOEvalCap(references, references.loadRes("results.json")).evaluate()  # doctest: +SKIP
    """

    def __init__(self, annotation_file: str | Path | None = None) -> None:
        self.dataset: dict[str, Any] = {}
        if annotation_file is not None:
            with open_source(str(annotation_file)) as source:
                content = read_all(source, limits=DEFAULT_LIMITS)
                coco_annotations(source, content)
            self.dataset = dict(_json(content))
        self.createIndex()

    def createIndex(self) -> None:  # noqa: N802 (pycocotools' name)
        """Make ``anns``, ``imgs`` and ``imgToAnns`` from ``dataset``; annotations without an id get a number."""
        self.anns: dict[Any, Annotation] = {}
        self.imgToAnns: defaultdict[Any, list[Annotation]] = defaultdict(list)
        for number, annotation in enumerate(self.dataset.get("annotations", ()), start=1):
            self.imgToAnns[annotation["image_id"]].append(annotation)
            self.anns[annotation.setdefault("id", number)] = annotation
        images = self.dataset.get("images") or [{"id": image_id} for image_id in self.imgToAnns]
        self.imgs: dict[Any, Annotation] = {image["id"]: image for image in images}

    def getImgIds(self, imgIds: ItemId | Iterable[ItemId] = ()) -> list[Any]:  # noqa: N802, N803 (pycocotools')
        """Return the ids of all images, in the order of the file, or of those named."""
        return _as_list(imgIds) or list(self.imgs)

    def getAnnIds(self, imgIds: ItemId | Iterable[ItemId] = ()) -> list[Any]:  # noqa: N802, N803 (pycocotools')
        """Return the ids of all annotations, or of those of some images."""
        named = _as_list(imgIds)
        if not named:
            return [annotation["id"] for annotation in self.dataset.get("annotations", ())]
        return [annotation["id"] for image_id in named for annotation in self.imgToAnns.get(image_id, ())]

    def loadAnns(self, ids: ItemId | Iterable[ItemId] = ()) -> list[Annotation]:  # noqa: N802 (pycocotools' name)
        """Return the annotations with these ids."""
        return [self.anns[annotation_id] for annotation_id in _as_list(ids)]

    def loadImgs(self, ids: ItemId | Iterable[ItemId] = ()) -> list[Annotation]:  # noqa: N802 (pycocotools' name)
        """Return the images with these ids."""
        return [self.imgs[image_id] for image_id in _as_list(ids)]

    def showAnns(self, anns: Iterable[Mapping[str, object]]) -> None:  # noqa: N802 (pycocotools' name)
        """Print the captions of annotations, one per line."""
        sys.stdout.writelines(f"{annotation['caption']}\n" for annotation in anns)

    def loadRes(  # noqa: N802 (pycocotools' name)
        self,
        resFile: str | Path | Sequence[Mapping[str, Any]] | np.ndarray[Any, Any],  # noqa: N803 (pycocotools' name)
    ) -> COCO:
        """Return the captions of a results file, or of a list or array of ``{"image_id", "caption"}``.

        Results may leave images out and, as in pycocotools, have several captions of an image; :class:`COCOEvalCap`
        scores one per image. An empty caption is one that scores 0.

        Raises:
            InputError: the file is missing or faulty, or has images that the annotations do not have; the message
                lists every fault.
        """
        name, entries = _results(resFile)
        faults = list(self._result_faults(entries))
        if faults:
            raise input_error(name, faults)
        results = COCO()
        named = {entry["image_id"] for entry in entries}
        results.dataset = {
            "info": self.dataset.get("info", {}),
            "images": [image for image_id, image in self.imgs.items() if image_id in named],
            "annotations": [{**entry, "id": number} for number, entry in enumerate(entries, start=1)],
        }
        results.createIndex()
        return results

    def _result_faults(self, entries: Sequence[Any]) -> Iterator[Fault]:
        if not entries:
            yield Fault("", "", "contains no result")
        for number, entry in enumerate(entries, start=1):
            place = f"result {number}"
            if not isinstance(entry, Mapping) or not {"image_id", "caption"} <= entry.keys():
                yield Fault(place, "", f'is {shown(entry)}, expected {{"image_id": ..., "caption": ...}}')
                continue
            reasons = list(id_faults(entry["image_id"]))
            yield from (Fault(place, "image_id", reason) for reason in reasons)
            if reasons:
                continue
            place = f"{place} (image_id {shown(entry['image_id'])})"
            if entry["image_id"] not in self.imgs:
                yield Fault(place, "image_id", "is not in the references")
            if not isinstance(entry["caption"], str):
                yield Fault(place, "caption", f"is {shown(entry['caption'])}, expected a string")


def _results(given: str | Path | Sequence[Mapping[str, Any]] | np.ndarray[Any, Any]) -> tuple[str, Sequence[Any]]:
    """Return what messages call the results, and the results."""
    if isinstance(given, str | Path):
        with open_source(str(given)) as source:
            entries, reason = decode(read_all(source, limits=DEFAULT_LIMITS))
        if reason:
            raise InputError(f"{given}: {reason}")
        name = str(given)
    else:
        name = "results"
        entries = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(entries, list | tuple):
        raise InputError(f'{name}: is not a list of {{"image_id", "caption"}}')
    return name, entries


def _json(content: bytes) -> dict[str, Any]:
    value, reason = decode(content)
    if not isinstance(value, dict):
        raise InputError(reason or "is not a JSON object")
    return value


def _as_list(ids: ItemId | Iterable[ItemId]) -> list[ItemId]:
    return [ids] if isinstance(ids, int | str | np.integer) else list(ids)
