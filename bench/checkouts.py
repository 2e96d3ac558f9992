"""What does a change cost? Processor time and memory of the same commands in two checkouts, as ratios.

    python bench/checkouts.py OLD NEW [--images 1000] [--rounds 5] [--limit 1.03] [--only NAME ...]

OLD and NEW are folders of this repository, e.g. two ``git worktree``s; both run with the Python that runs this script,
so their requirements must be the same. The commands of a round run in turns, and the median of the rounds' ratios
counts, so that what else the machine does falls on both. Bytecode is kept in a folder of its own per checkout, and a
first round that fills it does not count. The exit code is 1 where a ratio is above the limit. ``make bench-checkouts
OLD=FOLDER`` compares this checkout with another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

ROOTS = ("proto", "parser", "scorer", "service", "wings")
PROGRAM = ("-m", "spicegraph_service")
MEASURED = Path(__file__).with_name("measured.py")
BOTH = ["{one}", "{two}"]


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds on the clock and of processor time, children included, and the peak of memory in MB."""

    wall: float
    cpu: float
    megabytes: float


CASES = {
    "import": ["-c", "from spicegraph_scorer import score"],
    "help": [*PROGRAM, "--help"],
    "one item": [*PROGRAM, "score", "{item}", "--cache", "none"],
    "parse": [*PROGRAM, "parse", "{captions}", "--format", "jsonl"],
    "spice": [*PROGRAM, "score", "{one}", "--cache", "none"],
    "spice, warm store": [*PROGRAM, "score", "{one}", "--cache", "{store}"],
    "spice, two workers": [*PROGRAM, "score", "{one}", "--cache", "none", "--workers", "2"],
    "spice-g, warm store": [*PROGRAM, "score", "{one}", "--cache", "{store}", "--metrics", "spice-g"],
    "bleu, rouge, cider": [*PROGRAM, "score", "{one}", "--metrics", "bleu,rouge,cider"],
    "meteor": [*PROGRAM, "score", "{one}", "--metrics", "meteor"],
    "intervals": [*PROGRAM, "score", "{one}", "--cache", "{store}", "--metrics", "spice,cider", "--confidence"],
    "compare": [*PROGRAM, "compare", *BOTH, "--cache", "{store}", "--metrics", "spice,bleu"],
    "bounds": [*PROGRAM, "bounds", "{one}", "--cache", "{store}", "--metrics", "spice,bleu"],
    "report": [*PROGRAM, "report", *BOTH, "--cache", "{store}", "-o", "{page}"],
}
"""What is measured, by the name that ``--only`` knows."""


def measure(name: str, checkout: Path, work: Path) -> Run:
    """Run a command in a checkout; ``work`` holds its inputs, and a folder for what the checkout keeps."""
    own = work / checkout.name
    own.mkdir(exist_ok=True)
    places = {key: str(work / f"{key}.jsonl") for key in ("one", "two", "item")}
    places |= {"captions": str(work / "captions.txt"), "store": str(own / "store.db"), "page": str(own / "page.html")}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPATH": os.pathsep.join(str(checkout / root) for root in ROOTS),
        "PYTHONPYCACHEPREFIX": str(own / "bytecode"),
    }
    command = [sys.executable, str(MEASURED), sys.executable, *(part.format(**places) for part in CASES[name])]
    found = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"{checkout}: {name} ended with status {found.returncode}:\n{found.stderr}")
    return Run(*json.loads(found.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--images", type=int, default=1000, help="items of six captions each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.03, help="the largest ratio of processor time that passes")
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    checkouts = options.old.resolve(), options.new.resolve()
    if checkouts[0].name == checkouts[1].name:
        parser.error("the two folders need different names")
    sys.path[:0] = [str(options.new / root) for root in ROOTS]
    from val2014 import distinct, items_of, write_lines  # noqa: PLC0415 (it imports the package of a checkout)

    table = Table("what", "CPU s", "ratio", "MB", "ratio", title=f"{checkouts[1]} against {checkouts[0]}")
    slower = []
    with TemporaryDirectory() as folder:
        work = Path(folder)
        one = items_of(options.images)
        write_lines(one, str(work / "one.jsonl"))
        write_lines(items_of(options.images, system=1), str(work / "two.jsonl"))
        write_lines(one[:1], str(work / "item.jsonl"))
        (work / "captions.txt").write_text("\n".join(distinct(one)) + "\n", encoding="utf-8")
        for name in options.only:
            print(f"measuring {name}", flush=True)
            rounds = [[measure(name, checkout, work) for checkout in checkouts] for _ in range(options.rounds + 1)][1:]
            cpu, memory = (
                median(new / old for old, new in pairs)
                for pairs in (
                    [(old.cpu, new.cpu) for old, new in rounds],
                    [(old.megabytes, new.megabytes) for old, new in rounds],
                )
            )
            seconds = " / ".join(f"{min(run.cpu for run in runs):.2f}" for runs in zip(*rounds, strict=True))
            peak = " / ".join(f"{min(run.megabytes for run in runs):.0f}" for runs in zip(*rounds, strict=True))
            table.add_row(name, seconds, f"{cpu:.3f}", peak, f"{memory:.3f}")
            slower += [name] * (cpu > options.limit)
    Console(width=None if os.isatty(1) else 120).print(table)
    print(f"above {options.limit}: {', '.join(slower) or 'nothing'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
