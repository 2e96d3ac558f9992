"""Write the rule catalogue into parser/README.md from the rules' docstrings.

Without an option it writes; with --check it fails if the catalogue is stale.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from spicegraph_parser.rules import RULES

README = Path(__file__).parent.parent / "parser" / "README.md"
BEGIN, END = "<!-- rules: begin (tools/build_catalogue.py) -->", "<!-- rules: end -->"


def catalogue() -> str:
    parts = []
    for number, (name, rule) in enumerate(RULES.items(), start=1):
        summary, _, examples = inspect.cleandoc(rule.__doc__ or "").partition("\n\n")
        parts.append(f"### {number}. `{name}`\n\n{' '.join(summary.split())}\n\n```text\n{examples.strip()}\n```\n")
    return "\n".join(parts)


def main() -> int:
    before, _, rest = README.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    fresh = f"{before}{BEGIN}\n\n{catalogue()}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if fresh != README.read_text():
            print(f"{README} is stale: run python tools/build_catalogue.py", file=sys.stderr)
            return 1
        return 0
    README.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
