"""How fast the scene parser is: short captions, descriptions, and one long text; per second of CPU time, one thread."""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import gzip
import json
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from spicegraph_parser import CaptionPipeline, load_pipeline

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "spice" / "spice_parses.jsonl.gz"
DESCRIPTION = 150  # words
LONG = 2_000


def captions(path: Path) -> list[str]:
    """Read the ``text`` of gzipped JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(json.loads(line)["text"] for line in lines))


def joined(texts: Sequence[str], words: int) -> list[str]:
    """Join captions, each as a sentence, to texts of about so many words."""
    out: list[str] = []
    sentences: list[str] = []
    count = 0
    for text in texts:
        sentences.append(text.strip().rstrip(".") + ".")
        count += len(text.split())
        if count >= words:
            out.append(" ".join(sentences))
            sentences, count = [], 0
    return out


def seconds(pipeline: CaptionPipeline, texts: Sequence[str]) -> float:
    """Return the CPU time that parsing takes."""
    start = time.process_time()
    for _ in pipeline.captions(texts):
        pass
    return time.process_time() - start


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captions", type=Path, nargs="?", default=GOLDEN, help="captions (jsonl.gz with text)")
    parser.add_argument("--pipeline", default="scene", help="scene, or scene+fast")
    parser.add_argument("--most", type=int, default=20_000, help="captions that are read")
    arguments = parser.parse_args()
    texts = captions(arguments.captions)[: arguments.most]
    pipeline = load_pipeline(arguments.pipeline)
    seconds(pipeline, texts[:100])
    descriptions, long = joined(texts, DESCRIPTION), joined(texts * 3, LONG)[:3]
    print(f"captions: {len(texts) / seconds(pipeline, texts):,.0f} a second")
    print(f"descriptions of {DESCRIPTION} words: {len(descriptions) / seconds(pipeline, descriptions):,.0f} a second")
    print(f"a text of {LONG:,} words: {max(seconds(pipeline, [text]) for text in long):.2f} s")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
