"""Modules that load a name when it is first asked for (PEP 562): their names stand once, in the stub beside them."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def exports(module: str, file: str) -> tuple[list[str], Callable[[str], object]]:
    """Return a module's ``__all__`` and ``__getattr__``, from the imports of the stub (``.pyi``) beside its ``file``.

    Type checkers read the same stub; a name of it is never that of a submodule, which would take its place.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return sorted(places), load
