"""Compare the scene parser's graphs with graphs drawn by people."""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import scene_data
from spicegraph_scenes import SCENE_WEIGHTS
from spicegraph_scenes.parser import SceneParser
from spicegraph_scenes.passes import PASSES
from spicegraph_scorer import score_tuples

LONG = 9  # words
KINDS = {"All": "tuples", "Object": "objects", "Attribute": "attributes", "Relation": "relations"}


def evaluate(captions: list[scene_data.Caption], pipeline: SceneParser) -> dict[str, object]:
    """Return means over captions: SPICE's F1, precision and recall by kind of tuple, exact sets, objects."""
    found = [{fact.words for fact in caption.facts} for caption in pipeline.captions(c.text for c in captions)]
    wanted = [set(caption.tuples) for caption in captions]
    scores = [score_tuples(sorted(ours), [sorted(gold)]).scores for ours, gold in zip(found, wanted, strict=True)]

    def means(rows: list[int], kind: str) -> dict[str, float]:
        own = [scores[row][kind] for row in rows]
        values = {name: [s[name] for s in own if s[name] is not None] for name in ("f", "pr", "re")}
        return {name: round(float(np.mean(numbers)), 4) for name, numbers in values.items() if numbers}

    every = list(range(len(captions)))
    long = [row for row, caption in enumerate(captions) if len(caption.words) >= LONG]
    return {
        "captions": len(captions),
        **{title: means(every, kind) for kind, title in KINDS.items()},
        f"{LONG} words and more": means(long, "All") if long else None,
        "exact": round(float(np.mean([ours == gold for ours, gold in zip(found, wanted, strict=True)])), 4),
        "objects per caption": [
            round(float(np.mean([sum(len(words) == 1 for words in one) for one in side])), 2)
            for side in (found, wanted)
        ],
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", type=Path, nargs="+", help="captions with graphs (jsonl.gz)")
    parser.add_argument("--weights", type=Path, default=SCENE_WEIGHTS)
    parser.add_argument("--held-back", action="store_true", help="only the captions that training holds back")
    parser.add_argument("--without", action="append", default=[], choices=[own.name for own in PASSES], metavar="PASS")
    arguments = parser.parse_args()
    pipeline = SceneParser(arguments.weights, without=frozenset(arguments.without))
    for path in arguments.graphs:
        captions = scene_data.read(path)
        if arguments.held_back:
            captions = [caption for caption in captions if scene_data.is_held_back(caption.text)]
        began = time.perf_counter()
        figures = evaluate(captions, pipeline)
        print(path.name, json.dumps(figures), f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
