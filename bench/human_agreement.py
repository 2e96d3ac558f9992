"""Table I of the COCO captions paper (Chen et al. 2015): a person's caption against others of its image, on val2014.

The paper's captions of the test set are not public. Here the first caption of an image stands against its others, the
five of val2014 that most images have: four references in place of five.

Usage: python bench/human_agreement.py [--images N]
"""

from __future__ import annotations

import argparse

from spicegraph_scorer import Item, score
from val2014 import REFERENCES, captions_by_image

METRICS = ("bleu", "meteor", "rouge", "cider")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5000, help="the first N by their ids")
    options = parser.parse_args()
    captions = captions_by_image()
    items = [Item(image, captions[image][0], tuple(captions[image][1:REFERENCES])) for image in sorted(captions)]
    for name, value in score(items[: options.images], METRICS).scores.items():
        print(f"{name:10} {value:.3f}")


if __name__ == "__main__":
    main()
