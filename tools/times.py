"""Print where the tests' time goes: sums by folder beside their budgets, and the slowest tests.

    python tools/times.py build/junit.xml [--slowest 30]

The exit status is 1 where a folder takes more than twice its budget, so that a busy machine alone does not fail it.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

BUDGETS = Path(__file__).parent.parent / "tests" / "budgets.toml"
TOLERANCE = 2.0


def read_seconds(report: Path) -> dict[str, float]:
    """Return the seconds of every test of a JUnit file, set-up included, by the test's name."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):
        seconds[f"{case.get('classname')}.{case.get('name')}"] += float(case.get("time", 0))
    return dict(seconds)


def sum_by_folder(seconds: dict[str, float]) -> dict[str, float]:
    """Return the seconds of each folder of tests; tests of the repository itself stand under ``repository``."""
    sums: Counter[str] = Counter()
    for name, taken in seconds.items():
        parts = name.split(".")
        sums[parts[1] if len(parts) > 3 and not parts[1].startswith("test_") else "repository"] += taken
    return dict(sums)


def find_excess(sums: dict[str, float], budgets: dict[str, float]) -> list[str]:
    """Return the folders that take more than twice their budget, or that have none."""
    return sorted(name for name, taken in sums.items() if taken > TOLERANCE * budgets.get(name, 0))


def main(arguments: list[str] | None = None) -> int:
    """Print both tables; return 1 where a folder is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--slowest", type=int, default=30, metavar="N")
    options = parser.parse_args(arguments)
    seconds = read_seconds(options.report)
    budgets = tomllib.loads(BUDGETS.read_text("utf-8"))["seconds"]
    sums = sum_by_folder(seconds)
    for name, taken in sorted(sums.items(), key=lambda entry: -entry[1]):
        print(f"{taken:8.1f} s of {budgets.get(name, 0):6} s  {name}")
    print()
    for name, taken in sorted(seconds.items(), key=lambda entry: -entry[1])[: options.slowest]:
        print(f"{taken:8.1f} s  {name}")
    excess = find_excess(sums, budgets)
    if excess:
        print(f"more than twice the budget of {BUDGETS.name}: {', '.join(excess)}", file=sys.stderr)
    return int(bool(excess))


if __name__ == "__main__":
    sys.exit(main())
