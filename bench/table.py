"""What does scoring cost? One table of ratios, each measured in one run.

    python bench/table.py [--images 2000] [--rounds 5] [--only NAME ...]

SPICE against bare ``nlp.pipe`` of its pipeline; against SPICE 1.0 in Java (where Java and Maven are; CoreNLP comes
from Maven Central); METEOR, the PTB tokenizer and the n-gram metrics against pycocoevalcap; one worker process and
two; cold and warm store; growth from 1,000 to 100,000 captions; all of COCO val2014. Captions are val2014's, from
the installed pycocoevalcap wheel. Takes some ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.table import Table

import costs
import java_spice
import meteor_speed
import ngram_speed
from val2014 import captions_by_image, items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


ROUNDS = 3
"""How often whole commands with a store run; the best counts."""


class Row(NamedTuple):
    """A line of the table; ``target`` is what the ratio or the figure should reach."""

    what: str
    figures: str
    ratio: str = ""
    target: str = ""


class Sizes(NamedTuple):
    """How much is measured."""

    images: int
    rounds: int


def against_pipe(sizes: Sizes) -> Iterator[Row]:
    """SPICE end to end against the parser alone."""
    found = costs.fresh(costs.spice_against_pipe, sizes.images, sizes.rounds)
    figures = f"{found.whole:,.0f} against {found.bare:,.0f} captions per core-second"
    yield Row("SPICE, cold, one process, against bare nlp.pipe", figures, f"{found.ratio:.2f}", ">= 0.85")


def workers_and_java(sizes: Sizes) -> Iterator[Row]:
    """Two worker processes against one, and against SPICE 1.0."""
    found = costs.fresh(costs.spice_with_workers, sizes.images, sizes.rounds)
    two = found.two
    figures = f"{two:,.0f} against {found.one:,.0f} captions a second"
    yield Row("--workers 2 against 1", figures, f"{found.ratio:.2f}", ">= 1.8")
    what = f"SPICE --workers 2 against SPICE 1.0 with {java_spice.THREADS} threads, start-up not counted"
    if missing := java_spice.missing():
        yield Row(what, f"not measured: {missing} not installed", target=">= 60")
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spicegraph-bench" / "spice"
    folder.mkdir(parents=True, exist_ok=True)
    java_spice.fetch(folder)
    theirs = java_spice.captions_a_second(folder, max(20, sizes.images // 10))
    figures = f"{two:,.0f} against {theirs:,.1f} captions a second"
    yield Row(what, figures, f"{two / theirs:.0f}", ">= 60")


def stores(sizes: Sizes) -> Iterator[Row]:
    """A second system on the same references, and the same system again, with a store of parses."""
    found, start = costs.with_stores(sizes.images, ROUNDS), costs.best(costs.starting() for _ in range(ROUNDS))
    cold, second, warm = (run.cpu - start.cpu for run in found)
    figures = f"{second:.2f} against {cold:.2f} core-seconds beside the {start.cpu:.2f} of starting"
    yield Row("second system, warm store, against cold", figures, f"{cold / second:.1f}", ">= 4")
    figures = f"{warm:.2f} against {cold:.2f} core-seconds beside the {start.cpu:.2f} of starting"
    yield Row("the same system again, warm store, against cold", figures, f"{cold / warm:.1f}")
    again = costs.with_store(5000).warm
    yield Row("whole command, 5,000 x 5, fully warm", f"{again.cpu:.2f} core-seconds, {again.wall:.2f} s", "", "< 3 s")


def growth(_sizes: Sizes) -> Iterator[Row]:
    """SPICE, BLEU, ROUGE-L and CIDEr-D: cost and memory by the number of captions."""
    runs = {number: costs.whole_commands(number) for number in (1_000, 10_000, 100_000)}
    everything = len(captions_by_image())
    runs[202_654] = costs.whole_commands(None)
    first = runs[1_000].cpu
    for number, run in runs.items():
        target = "<= 350 MB" if number == 202_654 else ""
        name = f"SPICE, BLEU, ROUGE-L, CIDEr-D of {number:,} captions{' (val2014)' if target else ''}"
        figures = f"{run.cpu:.1f} core-seconds, {run.wall / 60:.2f} minutes, {run.megabytes:,.0f} MB"
        yield Row(name, figures, f"{run.cpu / first:.1f} x 1,000's", target)
    megabytes = runs[202_654].megabytes - runs[100_000].megabytes
    items = everything - 100_000 // costs.CAPTIONS_OF_AN_ITEM
    figures = f"{megabytes:,.0f} MB for {items:,}"
    yield Row("memory that an item of six captions adds", figures, f"{1000 * megabytes / items:.1f} kB")


def ngrams(_sizes: Sizes) -> Iterator[Row]:
    """The tokenizer and the n-gram metrics against pycocoevalcap."""
    if shutil.which("java") is None:
        yield Row("PTB tokenizer, BLEU, ROUGE-L, CIDEr-D against pycocoevalcap", "not measured: Java not installed")
        return
    items = items_of(5000)
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    ngram_speed.our_scores(items, ours)
    ngram_speed.their_scores(items, theirs)
    for name, own in ours.items():
        what = "PTB tokenizer against Java's" if name == "tokenizer" else f"{name} against pycocoevalcap's (Python)"
        yield Row(f"{what}, 5,000 x 5", f"{own:.2f} against {theirs[name]:.2f} s", f"{theirs[name] / own:.1f}")


def meteor(_sizes: Sizes) -> Iterator[Row]:
    """METEOR 1.5 against the jar, as whole commands."""
    what = "METEOR 1.5 against the jar, whole commands, 5,000 images"
    if shutil.which("java") is None:
        yield Row(what, "not measured: Java not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = meteor_speed.compare(5000, 1, Path(folder))
    mine, other = (statistics.median(run.wall for run in runs) for runs in (ours, theirs))
    yield Row(what, f"{mine:.2f} against {other:.2f} s", f"{other / mine:.1f}")


PARTS: Mapping[str, Callable[[Sizes], Iterator[Row]]] = {
    "pipe": against_pipe,
    "workers": workers_and_java,
    "store": stores,
    "growth": growth,
    "ngrams": ngrams,
    "meteor": meteor,
}
"""What is measured, by the name that ``--only`` knows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000, help="items of six captions each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    table = Table("what", "figures", "ratio", "target", title=f"spicegraph on {os.cpu_count()} cores")
    for name in options.only:
        print(f"measuring {name}: {PARTS[name].__doc__}", flush=True)
        for row in PARTS[name](Sizes(options.images, options.rounds)):
            table.add_row(*row)
    Console(width=None if os.isatty(1) else 160).print(table)


if __name__ == "__main__":
    main()
