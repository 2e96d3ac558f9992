"""What do intervals and tests of agreement with ratings cost?

    python bench/agreement_speed.py [--captions 5664] [--images 1000] [--metrics 6] [--draws 1000]

Prints processor seconds of one core for holding metrics against three ratings of each caption, every rating an
observation, as Flickr8k-Expert is published: values and ratings are made up, with ties as in real ones. Scoring
captions is not in it.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np

from spicegraph_scorer.core.significance import Resampling
from spicegraph_studies.agreement.captions import correlate
from spicegraph_studies.agreement.judgements import Judgement
from spicegraph_studies.agreement.protocols import CAPTION_PROTOCOLS


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    for name, default in (("captions", 5664), ("images", 1000), ("metrics", 6), ("draws", 1000)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    options = arguments.parse_args()
    generator = np.random.default_rng(0)
    quality = generator.random(options.captions)
    judgements = [
        Judgement(
            f"{number}",
            f"{number % options.images}",
            "a caption",
            ("a reference",),
            tuple(np.clip(np.rint(1 + 3 * quality[number] + generator.normal(0, 0.7, 3)), 1, 4).tolist()),
        )
        for number in range(options.captions)
    ]
    values = {
        f"metric {number}": tuple(
            np.round(quality / 2 + generator.random(options.captions) * 0.6, 4 if number % 2 else 2).tolist()
        )
        for number in range(options.metrics)
    }
    start = process_time()
    correlate(
        judgements, values, CAPTION_PROTOCOLS["flickr8k-expert"], resampling=Resampling(draws=options.draws, seed=1)
    )
    print(f"{process_time() - start:.1f} s")


if __name__ == "__main__":
    main()
