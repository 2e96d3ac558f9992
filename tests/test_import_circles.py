"""No modules of a package import each other in a circle: neither at run time nor for types, packages and their parts included.

import-linter's ``acyclic_siblings`` compares siblings only; a package whose part imports it back escapes it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]


def modules(package: Path) -> dict[str, ast.Module]:
    """Return the syntax trees of a package's modules by their names."""
    names = {path: ".".join(path.relative_to(package.parent).with_suffix("").parts) for path in package.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text()) for path, name in names.items()}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield all that a module imports, for types and within functions too: every name as a path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def circles(trees: dict[str, ast.Module]) -> list[list[str]]:
    """Return the groups of modules that import each other."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, tree in trees.items():
        for path in imported(tree):
            target = path if path in trees else path.rpartition(".")[0]
            if target in trees:
                graph.add_edge(name, target)
    return sorted(sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)


@pytest.mark.parametrize(
    "package", [path.parent for path in sorted(ROOT.glob("*/spicegraph*/__init__.py"))], ids=lambda path: path.name
)
def test_no_modules_import_each_other(package: Path) -> None:
    assert circles(modules(package)) == []


def test_a_circle_through_a_package_and_for_types_is_seen() -> None:
    sources = {
        "p": "from p.a import x",
        "p.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import y",
        "p.b": "def f():\n    import p.c",
        "p.c": "import p.d",
    }
    assert circles({name: ast.parse(source) for name, source in sources.items()}) == [["p", "p.a"]]
