"""What wings and other packages may use of the service, by subject.

Registration (:class:`Command`, :class:`ServiceEntry`, :class:`StatePart`); statuses of calls (``wrong``, ``refused``,
``CallError`` ...), the call under way (:func:`current_call`), what a server offers to a service (:class:`Host`), the
way to its workers (:class:`Scheduler`); child processes and their frames; the store's errors; validation; the web
(:class:`Gateway`, pages); options of commands, the terminal, tables, grids and charts. Other doors are
``spicegraph_service.client`` and ``spicegraph_service.report``. A name is loaded when it is first asked for.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path


@cache
def _modules() -> dict[str, str]:
    """Return the module of each name. The stub beside this file lists them once, for type checkers as well."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> object:
    if name.startswith("_") or name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_modules()[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(_modules())
