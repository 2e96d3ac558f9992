"""Bring the outputs that the documentation shows up to date: new weights move many numbers by a little.

Runs the blocks of each page as ``tests/e2e/test_docs.py`` does. Where an output differs from what is shown in its
numbers alone, the page gets the new numbers; every other difference is printed, for a person to look at. Run it in an
environment where the package is installed with its test requirements::

    python tools/refresh_docs.py [PAGE...]
"""

from __future__ import annotations

import re
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("e2e", "support")]

import test_docs as docs  # noqa: E402 (found by the line above)

_NUMBER = re.compile(r"[-+]?\d*\.?\d+")
_FILL = re.compile(r"[ ─-╿]+|-{3,}")  # what pads the columns of a table


def skeleton(line: str) -> str:
    """Return a line without its numbers and without what pads its columns."""
    return _FILL.sub(" ", _NUMBER.sub("0", line)).strip()


def renewed(shown: str, output: str) -> str:
    """Return what is shown with the lines of an output that differ in numbers alone."""
    left = output.splitlines()
    lines = []
    for line in shown.splitlines():
        place = next((i for i, new in enumerate(left) if "..." not in line and skeleton(new) == skeleton(line)), None)
        lines.append(line if place is None else left[place].rstrip())
        left = left if place is None else left[place + 1 :]
    return "\n".join(lines)


def refresh(path: Path) -> bool:
    """Run a page and renew it; return whether all of it is right now."""
    text = path.read_text(encoding="utf-8")
    ports = {port: docs.free_port() for port in docs.PORTS}
    run = text
    for port, other in ports.items():
        run = run.replace(port, other)
    steps = list(docs.steps(docs.blocks(run)))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "examples").symlink_to(ROOT / "examples")
        _, outputs, said = docs.run_steps(steps, place, stop=False)
    right = True
    for step, output, errors in zip_longest(steps, outputs, said, fillvalue=""):
        shown = docs.as_pattern(step.shown or "...")
        if any(shown.fullmatch(own) for own in (output, errors + output)):
            continue
        new = renewed(step.shown, errors + output)
        old = step.shown.rstrip("\n")
        for port, other in ports.items():
            new, old = new.replace(other, port), old.replace(other, port)
        text = text.replace(old, new, 1)
        pattern = docs.as_pattern(new)
        if not any(pattern.fullmatch(own) for own in (output, errors + output)):
            right = False
            print(f"{path.relative_to(ROOT)}: {step.command}\n{errors}{output}")
    path.write_text(text, encoding="utf-8")
    return right


def main() -> int:
    """Run the command line; 1 if a page is still wrong."""
    pages = [Path(name).resolve() for name in sys.argv[1:]] or docs.WITH_BLOCKS
    return 0 if sum(not refresh(path) for path in pages) == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
