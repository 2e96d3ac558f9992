"""How much memory does `score --engine ray` take on the machine that runs the command, for each item?

    python bench/ray_driver.py [--items 10000 40000] [--metrics spice,bleu,rouge,cider] [--workers 2]

Scores val2014's captions (from the installed pycocoevalcap wheel) on a Ray cluster of this machine, with a folder of
parts as output and CIDEr's document frequencies frozen, at two sizes. The difference of the peaks, by items, is what
an item takes; the rest is Ray and Python. Some three minutes on two cores.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import METRICS
from spicegraph_service.cli import main as command_line
from val2014 import all_items, items_of, write_lines

FILE = 2_500  # items of a file


def peak_mb(arguments: list[str]) -> float:
    """Run a command in a process of its own, and return the peak of its memory; workers are not counted."""
    program = [sys.executable, __file__, "--run", *arguments]
    done = subprocess.run(program, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(done.stdout.splitlines()[-1])


def run(arguments: list[str]) -> None:
    code = command_line(arguments)
    print(f"\n{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}")
    sys.exit(code)


def measure(sizes: list[int], metrics: str, workers: int) -> None:
    items = all_items()
    table = Table("items", "peak of the command, MB")
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frozen = folder / "frequencies.npz"
        DocumentFrequencies.from_references([i.references for i in Corpus(tuple(items_of(500))).tokens]).write(frozen)
        for size in sizes:
            (folder / f"{size}").mkdir()
            for start in range(0, size, FILE):
                write_lines(items[start : min(size, start + FILE)], str(folder / f"{size}" / f"{start:06}.jsonl"))
            options = [
                "--engine",
                "ray",
                "--workers",
                str(workers),
                "--metrics",
                metrics,
                "-o",
                f"{folder}/scores{size}/",
            ]
            weighing = any("frequencies" in METRICS[name].kind.needs.data for name in metrics.split(","))
            frequencies = ["--idf", str(frozen)] if weighing else []
            peaks.append(peak_mb(["score", str(folder / f"{size}"), *options, *frequencies]))
            table.add_row(f"{size:,}", f"{peaks[-1]:,.0f}")
    console = Console()
    console.print(table)
    growth = (peaks[-1] - peaks[0]) * 2**20 / (sizes[-1] - sizes[0])
    console.print(f"an item takes {growth:,.0f} bytes")


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs=2, default=[10_000, 40_000])
    parser.add_argument("--metrics", default="spice,bleu,rouge,cider")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    measure(options.items, options.metrics, options.workers)


if __name__ == "__main__":
    main()
