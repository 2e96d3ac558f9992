"""Code that imports pycocoevalcap or pyciderevalcap runs on spicegraph, without Java and without a changed line.

```python
import spicegraph_shim

spicegraph_shim.install()  # before the first import of pycocoevalcap
```

For a script that is to stay as it is: ``python -m spicegraph_shim script.py ...``, or for a module
``python -m spicegraph_shim -m package.module ...``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["install"]

_HOME: Final = "spicegraph_scorer.compat"
_REPLACED: Final = {
    "pycocoevalcap": f"{_HOME}.pycocoevalcap",
    "pyciderevalcap": f"{_HOME}.pyciderevalcap",
    "coco_caption.pycocoevalcap": f"{_HOME}.pycocoevalcap",
}
"""Packages that are answered even where they are installed."""
_FILLED_IN: Final = {
    "pycocotools": f"{_HOME}.pycocotools",
    "coco_caption": _HOME,
    "coco_caption.pycocotools": f"{_HOME}.pycocotools",
}
"""Packages that are answered where they are not installed."""


def install() -> None:
    """Let every later import of pycocoevalcap or pyciderevalcap give spicegraph's classes; a second call does nothing.

    ``pycocotools`` and ``coco_caption`` are answered where they are not installed; of pycocotools there is ``coco``,
    for captions.

    Raises:
        ImportError: one of the packages is imported already, so that code may hold its classes.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    early = sorted(name for name in _REPLACED if name in sys.modules)
    if early:
        raise ImportError(f"{', '.join(early)}: imported already; call spicegraph_shim.install() before")
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the modules of the packages that spicegraph stands in for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module comes from; ``None`` leaves it to the other finders."""
        del target
        home = _home_of(fullname, _REPLACED)
        if home is None and PathFinder.find_spec(fullname, path) is None:
            home = _home_of(fullname, _FILLED_IN)
        found = None if home is None else importlib.util.find_spec(home)
        if home is None or found is None:
            return None
        return ModuleSpec(fullname, _Alias(home), is_package=found.submodule_search_locations is not None)


class _Alias(Loader):
    """Gives a module the names of another; the classes are the same objects."""

    def __init__(self, home: str) -> None:
        self._home = home

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module that was just made."""
        home = importlib.import_module(self._home)
        names = {name: value for name, value in vars(home).items() if not name.startswith("__")}
        module.__dict__.update(names, __doc__=home.__doc__)


def _home_of(fullname: str, packages: dict[str, str]) -> str | None:
    """Return the module of spicegraph that stands for another, of the longest package name that fits."""
    fitting = [name for name in packages if fullname == name or fullname.startswith(f"{name}.")]
    if not fitting:
        return None
    package = max(fitting, key=len)
    home = packages[package] + fullname.removeprefix(package)
    try:
        return home if importlib.util.find_spec(home) else None
    except ModuleNotFoundError:  # find_spec imports the parent, which may not be there either
        return None
