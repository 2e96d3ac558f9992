"""Items of COCO val2014 for benchmarks, from the captions in the installed pycocoevalcap wheel."""

from __future__ import annotations

import json
import random
import zipfile
from collections import defaultdict
from functools import cache
from importlib.resources import files

from spicegraph_scorer.core.items import Item

REFERENCES = 5


@cache
def captions_by_image() -> dict[int, list[str]]:
    """Return the 202,654 captions of the 40,504 images, in a fixed random order of the images."""
    jar = files("pycocoevalcap.spice").joinpath("spice-1.0.jar")
    with jar.open("rb") as opened, zipfile.ZipFile(opened) as archive:
        annotations = json.loads(archive.read("coco/annotations/captions_val2014.json"))["annotations"]
    captions = defaultdict(list)
    for annotation in annotations:
        captions[annotation["image_id"]].append(annotation["caption"])
    order = sorted(captions)
    random.Random(0).shuffle(order)
    return {image: captions[image] for image in order}


def items_of(images: int, *, system: int = 0) -> list[Item]:
    """Return items with five references each; the candidates are captions of images that are not items.

    ``system`` 0 and 1 have different candidates, as long as ``images`` is at most 13,000.
    """
    captions = captions_by_image()
    order = list(captions)
    candidates = order[images * (system + 1) : images * (system + 2)]
    return [
        Item(image, captions[other][0], tuple(captions[image][:REFERENCES]))
        for image, other in zip(order[:images], candidates, strict=True)
    ]


def all_items() -> list[Item]:
    """Return an item for every image: its first caption against all of another's; the captions are all of val2014."""
    captions = captions_by_image()
    order = list(captions)
    return [
        Item(image, captions[other][0], tuple(captions[image]))
        for image, other in zip(order, [*order[1:], order[0]], strict=True)
    ]


def distinct(items: list[Item]) -> list[str]:
    """Return the captions of items, each once: what has to be parsed."""
    return list(dict.fromkeys(text for item in items for text in (item.candidate, *item.references)))


def write_lines(items: list[Item], path: str) -> None:
    """Write items as JSON Lines."""
    with open(path, "w", encoding="utf-8") as lines:  # noqa: PTH123
        for item in items:
            row = {"image_id": item.id, "candidate": item.candidate, "references": item.references}
            lines.write(json.dumps(row) + "\n")
