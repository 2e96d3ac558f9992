"""Write the tables of modules and rules into parser/README.md, and files and tables into pages that show them.

Without an option it writes; with --check it fails if a table is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

from spicegraph_parser.spice.rules import RULES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "parser" / "spicegraph_parser"
README = PACKAGE.parent / "README.md"
# A page shows a file, or a part of another page: what stands between these is written here.
SHOWN = re.compile(r"(<!-- shown: (\S+) \(tools/build_catalogue\.py\) -->).*?(<!-- shown: end -->)", re.DOTALL)
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


def shown(source: str) -> str:
    """Return what a page shows of a file: a program as a block, of ``FILE#NAME`` the part of a page with that name."""
    name, _, part = source.partition("#")
    text = (ROOT / name).read_text()
    if not part:
        return f"```text\n{text}```\n"
    found = re.search(rf"<!-- {part}: begin -->\n(.*?)<!-- {part}: end -->", text, re.DOTALL)
    if found is None:
        sys.exit(f"{name} has no part {part}")
    return found[1]


def main() -> int:
    pages = {path: path.read_text() for path in (README, *sorted((ROOT / "docs").rglob("*.md")))}
    fresh = {path: SHOWN.sub(lambda m: f"{m[1]}\n\n{shown(m[2])}\n{m[3]}", text) for path, text in pages.items()}
    for name, part in (("modules", modules()), ("rules", catalogue())):
        before, begin, rest = fresh[README].partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        fresh[README] = f"{before}{begin}\n\n{part}\n{end}{after}"
    stale = [path for path in pages if fresh[path] != pages[path]]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run python tools/build_catalogue.py", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.write_text(fresh[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
