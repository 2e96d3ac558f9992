"""Cut descriptions into the sentences that the scene parser reads, for teachers, as ``scene_phrases.py`` writes them.

Descriptions are plain text with line ends between them.
"""

import argparse
import gzip
import json
from pathlib import Path

from heldout import Hashes, add_hashes
from spicegraph_parser.errors import LimitError
from spicegraph_scenes import SCENE_WEIGHTS
from spicegraph_scenes.parser import SceneParser

FEWEST = 3  # words of a sentence


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, nargs="+", help="descriptions, in lines (txt.gz)")
    parser.add_argument("--longest", type=int, default=32, help="words of the longest sentence")
    parser.add_argument("--out", type=Path, required=True)
    add_hashes(parser)
    arguments = parser.parse_args()
    hashes = Hashes.read(arguments.held_out_hashes)
    pipeline = SceneParser(SCENE_WEIGHTS)
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for path in arguments.texts:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for text in hashes.kept(map(str.strip, lines)):
                try:
                    [caption] = pipeline.parse([text])
                except LimitError:
                    continue
                for sentence in caption.sentences:
                    words = tuple(word.form for word in sentence.words)
                    if FEWEST <= len(words) <= arguments.longest and not hashes.covers(" ".join(words)):
                        found.setdefault(words, tuple(word.tag for word in sentence.words))
    with gzip.open(arguments.out, "wt", encoding="utf-8") as out:
        for row in found.items():
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
