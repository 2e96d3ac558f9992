"""Write the tables of modules and rules into parser/README.md from their docstrings.

Without an option it writes; with --check it fails if a table is stale.
"""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

from spicegraph_parser.spice.rules import RULES

PACKAGE = Path(__file__).parent.parent / "parser" / "spicegraph_parser"
README = PACKAGE.parent / "README.md"
BEGIN, END = "<!-- {}: begin (tools/build_catalogue.py) -->", "<!-- {}: end -->"


def modules() -> str:
    """Return a table of the modules, each with the first paragraph of its docstring."""
    rows = ["| module | what it does |", "|---|---|"]
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).with_suffix("")
        name = "." if place.name == "__init__" and len(place.parts) == 1 else ".".join(place.parts)
        summary = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0]
        if name != ".":
            plain = " ".join(summary.split()).removesuffix(".").replace("``", "`")
            rows.append(f"| `{name.removesuffix('.__init__')}` | {plain} |")
    return "\n".join(rows) + "\n"


def catalogue() -> str:
    parts = []
    for number, (name, rule) in enumerate(RULES.items(), start=1):
        summary, _, examples = inspect.cleandoc(rule.__doc__ or "").partition("\n\n")
        parts.append(f"### {number}. `{name}`\n\n{' '.join(summary.split())}\n\n```text\n{examples.strip()}\n```\n")
    return "\n".join(parts)


def main() -> int:
    fresh = stale = README.read_text()
    for name, part in (("modules", modules()), ("rules", catalogue())):
        before, begin, rest = fresh.partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        fresh = f"{before}{begin}\n\n{part}\n{end}{after}"
    if "--check" in sys.argv[1:]:
        if fresh != stale:
            print(f"{README} is stale: run python tools/build_catalogue.py", file=sys.stderr)
            return 1
        return 0
    README.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
