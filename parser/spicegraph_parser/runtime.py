"""How a process starts and runs: names are found when asked for, and cycles are looked for rarely."""

from __future__ import annotations

import ast
import gc
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def exports(module: str, file: str) -> tuple[list[str], Callable[[], list[str]], Callable[[str], object]]:
    """Return a module's ``__all__``, ``__dir__`` and ``__getattr__`` (PEP 562), from the stub beside its ``file``."""
    # So names stand once, and are loaded when they are first asked for; modules on the way to them are known, too.
    # Type checkers read the same stub; a name of it is never that of a submodule, which would take its place.
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> object:
        if any(f"{place}.".startswith(f"{module}.{name}.") for place in places.values()):
            return import_module(f"{module}.{name}")
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return sorted(places), lambda: sorted({*vars(sys.modules[module]), *places}), load


RARE = (50_000, 20, 100)  # thresholds for Python's collector of cycles that suit many small values without any


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for reference cycles rarely within this, for all of the process."""
    # Scoring makes millions of small values without cycles, and Python's default is to look after every 700 of them,
    # which takes a tenth of the time.
    before = gc.get_threshold()
    gc.set_threshold(*RARE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
