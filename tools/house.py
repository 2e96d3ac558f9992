"""Measure the size and structure of the code, and hold them against the limits in tools/house.toml.

    python tools/house.py [--check]

Statements are Python's, docstrings and generated modules aside. A room is parser, scorer or service, or a wing.
With ``--check`` the exit status is 1 where a limit is passed; a limit is only ever lowered.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
LIMITS = ROOT / "tools" / "house.toml"
CORE = ("parser", "scorer", "service")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# First words of a name that has neither a verb nor a noun.
# fmt: off
EMPTY_WORDS = frozenset((
        "across", "again", "ahead", "apart", "as", "asked", "at", "behind", "beside", "between", "by", "else", "for",
        "found", "from", "given", "gone", "heard", "held", "here", "in", "its", "kept", "known", "left", "made",
        "named", "now", "of", "on", "other", "others", "own", "said", "shown", "so", "such", "taken", "than", "then",
        "there", "to", "told", "what", "which", "who", "whose", "with", "within", "without",
))
# fmt: on
CONVERSION = re.compile(r"(from|to|as|with|of)_[a-z]\w*")
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.match_case)


@dataclass(frozen=True)
class Module:
    """A module: its dotted name, its room, and its syntax tree."""

    name: str
    room: str
    tree: ast.Module
    inner_imports: int

    @property
    def folder(self) -> str:
        """The package that holds the module."""
        return self.name.rpartition(".")[0] or self.name

    @property
    def in_core(self) -> bool:
        """Whether the module belongs to parser, scorer or service."""
        return self.room in CORE


def read_modules(root: Path) -> list[Module]:
    """Return every module of the rooms but generated ones."""
    modules = []
    for top in (*CORE, "wings"):
        for path in sorted((root / top).rglob("*.py")):
            if "_pb2" in path.name:
                continue
            parts = path.relative_to(root / top).with_suffix("").parts
            source = path.read_text("utf-8")
            room = top if top != "wings" else parts[0]
            # A package has a name of two parts for its own folder: `a.b.__init__` stands in the folder `a.b`.
            modules.append(Module(".".join(parts), room, ast.parse(source), source.count("noqa: PLC0415")))
    return modules


def count_statements(tree: ast.AST) -> int:
    """Return the number of statements, docstrings and other bare strings aside."""
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    bare = sum(isinstance(node.value.value, str) for node in strings if isinstance(node.value, ast.Constant))
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - bare


def measure_complexity(function: ast.AST) -> int:
    """Return the cyclomatic complexity of a function, inner functions and classes aside."""
    total, pending = 1, list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
        else:
            total += isinstance(node, BRANCHES)
        pending += ast.iter_child_nodes(node)
    return total


def is_empty_name(node: ast.AST) -> bool:
    """Return whether a definition is named by a bare preposition, participle or pronoun."""
    if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) or CONVERSION.fullmatch(node.name):
        return False
    words = node.name.strip("_").lower().split("_")
    return words[0] in EMPTY_WORDS or (isinstance(node, FUNCTIONS) and len(words) == 1 and words[0].endswith("ed"))


def find_imports(module: Module, known: frozenset[str]) -> Iterator[str]:
    """Yield the modules of ours that a module imports, packages as their ``__init__``."""
    for node in ast.walk(module.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [
                name if (name := f"{node.module}.{alias.name}") in known or f"{name}.__init__" in known else node.module
                for alias in node.names
            ]
        for name in names:
            target = name if name in known else f"{name}.__init__"
            if target in known and target != module.name:
                yield target


def measure_structure(modules: list[Module]) -> dict[str, int]:
    """Return the figures that concern imports: public modules, imports of wings, circles of folders."""
    by_name = {module.name: module for module in modules}
    known = frozenset(by_name)
    public: set[str] = set()
    of_wings = 0
    folders: nx.DiGraph[str] = nx.DiGraph()
    for module in modules:
        for name in find_imports(module, known):
            target = by_name[name]
            if not module.in_core and target.in_core:
                public.add(name)
            of_wings += module.in_core and not target.in_core
            if module.folder != target.folder and module.folder.split(".")[0] == target.folder.split(".")[0]:
                folders.add_edge(module.folder, target.folder)
    group_of = {
        folder: number for number, group in enumerate(nx.strongly_connected_components(folders)) for folder in group
    }
    pairs = {
        frozenset(edge) for edge in folders.edges if group_of[edge[0]] == group_of[edge[1]] and not is_nested(*edge)
    }
    return {"public modules": len(public), "core imports of wings": of_wings, "circles of folders": len(pairs)}


def is_nested(one: str, other: str) -> bool:
    """Return whether one folder is within the other."""
    return one.startswith(f"{other}.") or other.startswith(f"{one}.")


def measure_code(modules: list[Module]) -> dict[str, int]:
    """Return the figures that are counted module by module."""
    figures: Counter[str] = Counter(dict.fromkeys(("functions over 50 lines", "names without a verb or noun"), 0))
    for module in modules:
        figures["statements"] += (count := count_statements(module.tree))
        figures["core statements"] += count * module.in_core
        figures["modules"] += 1
        figures["core modules"] += module.in_core
        figures["inner imports"] += module.inner_imports
        for node in ast.walk(module.tree):
            figures["names without a verb or noun"] += is_empty_name(node)
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                first_line = (ast.get_docstring(node) or "").partition("\n")[0]
                figures["first lines with what"] += bool(re.search(r"\b[Ww]hat (?!is wrong)", first_line))
            if isinstance(node, FUNCTIONS):
                arguments = node.args
                number = len(arguments.args) + len(arguments.kwonlyargs) + len(arguments.posonlyargs)
                figures["more than 7 parameters"] += number > 7
                figures["complexity over 10"] += measure_complexity(node) > 10
                figures["functions over 50 lines"] += (node.end_lineno or 0) - node.lineno + 1 > 50
    return dict(figures)


def count_rooms(modules: list[Module]) -> dict[str, int]:
    """Return the statements of each room."""
    rooms: Counter[str] = Counter()
    for module in modules:
        rooms[module.room] += count_statements(module.tree)
    return dict(rooms)


def find_excess(figures: dict[str, int], limits: dict[str, int]) -> list[str]:
    """Return one line for each figure that is over its limit, or that has none."""
    return [
        f"{name}: {value}, the limit is {limits.get(name, 'not set')}"
        for name, value in figures.items()
        if value > limits.get(name, -1)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print the figures beside limits and goals; with ``--check`` return 1 where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail where a limit is passed")
    options = parser.parse_args(arguments)
    modules = read_modules(ROOT)
    limits = tomllib.loads(LIMITS.read_text("utf-8"))
    measured = {"rooms": count_rooms(modules), "figures": measure_code(modules) | measure_structure(modules)}
    excess = []
    for kind, figures in measured.items():
        excess += find_excess(figures, limits[kind])
        if not options.check:
            for name, value in figures.items():
                goal = limits[f"{kind}-goals"].get(name, "")
                print(
                    f"{value:7,}  limit {limits[kind].get(name, 0):7,}  goal {goal:>7,}  {name}"
                    if goal != ""
                    else f"{value:7,}  {name}"
                )
    if excess:
        print("\n".join(excess), file=sys.stderr)
    return int(bool(excess) and options.check)


if __name__ == "__main__":
    sys.exit(main())
