"""Code that imports pycocoevalcap or pyciderevalcap runs on spicegraph, without Java and without a changed line.

```python
import spicegraph_shim

spicegraph_shim.install()  # before the first import of pycocoevalcap
```

For a script that is to stay as it is: ``python -m spicegraph_shim script.py ...``, or for a module
``python -m spicegraph_shim -m package.module ...``.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.compat import module_spec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["install"]

_REPLACED: Final = {
    "pycocoevalcap": "pycocoevalcap",
    "pyciderevalcap": "pyciderevalcap",
    "coco_caption.pycocoevalcap": "pycocoevalcap",
}
"""Packages that are answered even where they are installed, and their paths below ``spicegraph_scorer.compat``."""
_FILLED_IN: Final = {"pycocotools": "pycocotools", "coco_caption": "", "coco_caption.pycocotools": "pycocotools"}
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
        spec = _spec_of(fullname, _REPLACED)
        if spec is None and PathFinder.find_spec(fullname, path) is None:
            spec = _spec_of(fullname, _FILLED_IN)
        return spec


def _spec_of(fullname: str, packages: dict[str, str]) -> ModuleSpec | None:
    """Return what answers a module, by the longest package name that fits."""
    fitting = [name for name in packages if fullname == name or fullname.startswith(f"{name}.")]
    if not fitting:
        return None
    package = max(fitting, key=len)
    return module_spec(fullname, (packages[package] + fullname.removeprefix(package)).removeprefix("."))
