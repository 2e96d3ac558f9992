"""Run the same commands in two checkouts and compare what they write, byte for byte.

    tools/compare_checkouts.py OLD NEW [--images 2000] [--keep FOLDER]

A restructuring must not move a number: scores, JSON, CSV, tables, exit codes and error messages have to be the same
before and after it. OLD and NEW are folders of this repository, e.g. two ``git worktree``s; both run with the Python
that runs this script, so their requirements must be the same. A command's standard output, standard error, exit code
and output file count. The exit code of this script is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOTS = ("proto", "parser", "scorer", "service", "wings")
COCO = ["examples/coco/human.json", "--references", "examples/coco/captions_without_first.json"]
OTHER = ["examples/coco/retrieval.json", *COCO[1:]]
BOTH = [COCO[0], OTHER[0], *COCO[1:]]
EVERY = ["--metrics", "all"]


@dataclass(frozen=True, slots=True)
class Case:
    """A command line, the ending of the file that ``{out}`` stands for, and its exit code."""

    arguments: list[str]
    ending: str = "json"
    code: int = 0


def cases(images: Path) -> list[Case]:
    """Return the commands: every format, metric and study on the examples, and scores of many images."""
    formats = ["table", "json", "jsonl", "csv"]
    return [
        *(Case(["score", *COCO, *EVERY, "--format", name]) for name in formats),
        *(Case(["score", *OTHER, *EVERY, "--format", name, "-o", "{out}"], name) for name in formats[1:]),
        Case(["score", *COCO, "--format", "spice"]),
        Case(["score", *COCO, "--metrics", "coco", "--confidence", "--format", "json"]),
        Case(["score", *COCO, "--metrics", "coco", "--confidence"]),
        Case(["score", *COCO, *EVERY, "--explain", "--format", "json"]),
        Case(["score", *COCO, *EVERY, "--workers", "2", "--cache", "none", "--format", "json"]),
        Case(["score", *COCO, *EVERY, "--categories", "examples/categories.toml", "--format", "json"]),
        Case(["idf", "examples/coco/captions.json", "-o", "{out}"], "npz"),
        Case(["compare", *BOTH, *EVERY, "--format", "json"]),
        Case(["compare", *BOTH, "--metrics", "spice,cider,spider"]),
        Case(["compare", *BOTH, "-o", "{out}"], "html"),
        Case(["report", *BOTH, "-o", "{out}"], "json"),
        Case(["report", *BOTH, "-o", "{out}"], "md"),
        Case(["report", *BOTH, "-o", "{out}"], "html"),
        Case(
            ["bounds", "--references", COCO[2], "--metrics", "coco,spice-exact,cider-plain,spider", "--format", "json"]
        ),
        Case(["bounds", OTHER[0], *COCO[1:], "--metrics", "spice,bleu"]),
        Case(["parse", str(images), "--format", "jsonl"]),
        Case(["score", str(images), *EVERY, "--format", "json", "-o", "{out}"]),
        Case(["score", str(images), "--metrics", "coco", "--confidence", "-o", "{out}"]),
        # Errors are part of the contract, too.
        Case(["score", "missing.json"], code=2),
        Case(["score", *COCO, "--metrics", "nonsense"], code=2),
        Case(["score", "examples/categories.toml"], code=2),
        Case(["--help"]),
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command wrote, under the name of each stream."""

    streams: dict[str, bytes]

    def differences(self, other: Outcome) -> list[str]:
        """Return the names of the streams that differ."""
        return [name for name, data in self.streams.items() if other.streams[name] != data]


def run(case: Case, checkout: Path, out: Path) -> Outcome:
    """Run a command in a checkout; ``out`` is the path of its output file, the same for both checkouts."""
    out.unlink(missing_ok=True)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(checkout / root) for root in ROOTS),
        "SPICEGRAPH_CACHE": "none",
        "COLUMNS": "120",
        "SOURCE_DATE_EPOCH": "0",  # reports say when they were made
    }
    arguments = [argument.replace("{out}", str(out)) for argument in case.arguments]
    command = [sys.executable, "-m", "spicegraph_service", *arguments]
    found = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=False)
    streams = {
        "exit code": str(found.returncode).encode(),
        "standard output": found.stdout,
        "standard error": found.stderr,
        "file": out.read_bytes() if out.exists() else b"",
    }
    return Outcome({name: data.replace(str(checkout).encode(), b"CHECKOUT") for name, data in streams.items()})


def shown(old: bytes, new: bytes) -> str:
    """Return the first lines that differ, or the sizes of what is not text."""
    try:
        sides = [re.split(r"(?<=[,}])|\n", side.decode()) for side in (old, new)]
    except UnicodeDecodeError:
        return f"{len(old)} and {len(new)} bytes"
    lines = [line for line in difflib.unified_diff(*sides, "old", "new", n=0, lineterm="") if not line.startswith("@@")]
    return "\n".join(line[:200] for line in lines[:12])


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--images", type=int, default=2000, help="images of val2014 to score beside the examples")
    parser.add_argument("--keep", type=Path, help="folder for what differs")
    options = parser.parse_args()
    sys.path.append(str(options.new.resolve() / "bench"))
    from val2014 import items_of, write_lines  # noqa: PLC0415 (its folder is an argument)

    different = wrong = 0
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        images = Path(folder) / "images.jsonl"
        write_lines(items_of(options.images), str(images))
        todo = cases(images)
        for number, case in enumerate(todo, start=1):
            outs = [Path(folder) / side / f"out.{case.ending}" for side in ("old", "new")]
            for out in outs:
                out.parent.mkdir(exist_ok=True)
            checkouts = options.old.resolve(), options.new.resolve()
            old, new = threads.map(run, (case, case), checkouts, outs)
            old, new = (Outcome({k: v.replace(b"/old/", b"/new/") for k, v in o.streams.items()}) for o in (old, new))
            names = old.differences(new)
            different += bool(names)
            unexpected = new.streams["exit code"] != str(case.code).encode()
            wrong += unexpected
            verdict = "DIFFERS" if names else "same"
            sizes = ", ".join(f"{len(data)} bytes of {name}" for name, data in new.streams.items() if len(data) > 1)
            print(f"{number}/{len(todo)} {verdict} ({sizes}): {' '.join(case.arguments)}", flush=True)
            if unexpected:
                print(
                    f"  exit code {new.streams['exit code'].decode()}: {new.streams['standard error'].decode()[:500]}"
                )
            for name in names:
                print(f"  {name}:\n{shown(old.streams[name], new.streams[name])}")
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    for side, outcome in (("old", old), ("new", new)):
                        (options.keep / f"{number}-{name.replace(' ', '-')}.{side}").write_bytes(outcome.streams[name])
    print(f"{different} of {len(todo)} commands differ; {wrong} ended with another exit code than they should")
    return 1 if different or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
