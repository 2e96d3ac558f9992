"""How many descriptions ``detail`` scores in a second of processor time once they are parsed, and how memory grows.

    OPENBLAS_NUM_THREADS=1 python bench/detail_speed.py long_mllm.txt.gz long_human.txt.gz

Files have a description a line; those of 100 to 200 words are taken, one half as references of the other, again and
again in other pairs. A first pass over 64 pairs makes caches ready.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from pathlib import Path
from statistics import fmean

from spicegraph_graded.detail.metric import Detail
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer import Item
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FactCache, FunctionSource
from spicegraph_scorer.core.tokens import Corpus

STEP = 250


def resident() -> float:
    """Return the megabytes that the process holds."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1000


def main() -> None:
    """Print a line for each 250 pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--texts", type=int, default=1200, help="descriptions that are parsed")
    parser.add_argument("--pairs", type=int, default=2000)
    options = parser.parse_args()
    lines = [
        line.strip() for path in options.files for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    ]
    long = [line for line in lines if 100 <= len(line.split()) <= 200]
    texts = random.Random(0).sample(long, min(options.texts, len(long)))
    known = dict(zip(texts, FactCache(load_pipeline()).facts(texts), strict=True))
    metric = Detail.of(Resources(lambda: FunctionSource.of_table("parsed", known), evidence=False))
    half = len(texts) // 2
    pairs = [Item(n, texts[n % half], (texts[half + n * 7 % half],)) for n in range(options.pairs)]
    metric.collect(Corpus(tuple(pairs[:64])))
    print(f"{fmean(len(pair.candidate.split()) for pair in pairs):.0f} words; {resident():.0f} MB after 64")
    for start in range(0, len(pairs), STEP):
        began, some = time.process_time(), pairs[start : start + STEP]
        metric.collect(Corpus(tuple(some)))
        took = time.process_time() - began
        print(f"{start + len(some)}: {len(some) / took:.0f}/s, {resident():.0f} MB", flush=True)


if __name__ == "__main__":
    main()
