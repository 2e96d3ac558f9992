"""Learn the table behind SPICE-G from the COCO train2014 captions that the SPICE jar carries.

No caption of val2014 is read, so that sets of human judgements over val2014 images stay clean. The same captions
and the same pipeline give the same file, byte for byte, on machines with the same numpy and scipy.
"""

import argparse
import json
import zipfile
from collections import defaultdict
from pathlib import Path

from captions import ANNOTATIONS
from spicegraph_graded.spice_g.building import DIMENSIONS, FEWEST, build_table, word_sets
from spicegraph_graded.spice_g.texts import learn_order
from spicegraph_parser.pipelines import load_pipeline

NAME = "coco-train2014"


def read_groups(spice_jar: Path) -> list[list[str]]:
    """Return the captions of each image of train2014, images by their ids and captions by theirs."""
    with zipfile.ZipFile(spice_jar) as archive:
        annotations = json.loads(archive.read(ANNOTATIONS))["annotations"]
    groups: dict[int, list[str]] = defaultdict(list)
    for annotation in sorted(annotations, key=lambda one: (one["image_id"], one["id"])):
        groups[annotation["image_id"]].append(annotation["caption"])
    return list(groups.values())


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jar", type=Path, help="spice-1.0.jar of the pycocoevalcap wheel")
    parser.add_argument("out", type=Path, help="the table to write (.npz)")
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS, help=f"length of a vector (default {DIMENSIONS})")
    parser.add_argument("--fewest", type=int, default=FEWEST, help=f"captions of a word, at least (default {FEWEST})")
    options = parser.parse_args()
    groups = read_groups(options.jar)
    images = list(word_sets(groups, load_pipeline()))
    order = learn_order(text for texts in groups for text in texts)
    table = build_table(images, name=NAME, dimensions=options.dimensions, fewest=options.fewest, order=order)
    table.write(options.out)
    print(f"{options.out}: {table.signature}, {len(table.words)} words, {table.images} images")


if __name__ == "__main__":
    main()
