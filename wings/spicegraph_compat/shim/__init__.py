"""Programs that import pycocoevalcap or pyciderevalcap run on spicegraph, without Java and without a changed line.

``python -m spicegraph_compat.shim script.py ...`` runs a script, ``python -m spicegraph_compat.shim -m module ...`` a
module, and ``python -m spicegraph_compat.shim torchrun ...`` any other command. Processes that the program starts are
covered too: they find ``SPICEGRAPH_SHIM`` in their environment, and a start-up hook (``spicegraph_compat.pth``)
installs the shim.

From Python:

```python
from spicegraph_compat import shim

shim.install()  # before the first import of pycocoevalcap
```

This module is imported at the start of each covered process, so it imports little.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from spicegraph_compat.shim import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["install", "install_from_environment", "read_names"]

VARIABLE: Final = "SPICEGRAPH_SHIM"
"""The environment variable: ``1``, or ``NAME=TARGET`` for each vendored copy, separated by commas."""

_REPLACED: Final = ("pycocoevalcap", "pyciderevalcap")
"""Packages that are answered even where they are installed, below any other package."""
_FILLED_IN: Final = ("pycocotools", "coco_caption")
"""Packages that are answered where they are not installed, below any other package."""
_OFF: Final = ("", "0")
_ON: Final = "1"


def install(names: Mapping[str, str] | None = None, *, quiet: bool = False) -> None:
    """Let later imports of pycocoevalcap or pyciderevalcap give spicegraph's classes, here and in child processes.

    ``pycocotools`` and ``coco_caption`` are answered where they are not installed; of pycocotools there is ``coco``,
    for captions. When the program ends, stderr says what was replaced. A second call only adds names.

    Args:
        names: vendored copies of the two packages under other names: ``{"evaluation": "pycocoevalcap"}``. Of a copy,
            the modules that compute (scorers and tokenizer) are replaced; its own ``__init__`` and ``eval`` stay.
        quiet: the report at the end has warnings only.

    Raises:
        ImportError: one of the packages is imported already, so that code may hold its classes.
        ValueError: a name or a target is not a module's name, or the target is unknown.

    Example:
        >>> install({"evaluation": "numpy"})
        Traceback (most recent call last):
            ...
        ValueError: evaluation=numpy: the target must be pycocoevalcap or pyciderevalcap, or a module of them
    """
    names = dict(names or {})
    _check(names)
    finder = next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)
    asked = (*(() if finder else _REPLACED), *names)
    specs = {name: sys.modules[name].__spec__ for name in asked if sys.modules.get(name) is not None}
    early = [name for name, spec in specs.items() if not isinstance(getattr(spec, "loader", None), _RecordedLoader)]
    if early:
        raise ImportError(f"{', '.join(sorted(early))}: imported already; call spicegraph_compat.shim.install() before")
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
        record.start(quiet=quiet)
    finder.names.update(names)
    os.environ[VARIABLE] = ",".join(f"{name}={target}" for name, target in finder.names.items()) or _ON


def install_from_environment() -> None:
    """Install the shim as ``SPICEGRAPH_SHIM`` says; the start-up hook calls this in every process that has it set."""
    value = os.environ.get(VARIABLE, "")
    if value in _OFF:
        return
    try:
        install({} if value == _ON else read_names(value.split(",")))
    except (ImportError, ValueError) as error:  # the interpreter would print a traceback, and run the original program
        sys.stderr.write(f"error: {VARIABLE}: {error}\n")
        sys.stderr.flush()
        os._exit(2)


def read_names(values: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=TARGET`` values; a ValueError for another form or an unknown target."""
    names = {}
    for value in values:
        name, separator, target = (part.strip() for part in value.partition("="))
        if not separator:
            raise ValueError(f"{value!r}: expected NAME=pycocoevalcap")
        names[name] = target
    _check(names)
    return names


def _check(names: Mapping[str, str]) -> None:
    for name, target in names.items():
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"{name}={target}: {name!r} is not the name of a module")
        if target.partition(".")[0] not in _REPLACED:
            packages = " or ".join(_REPLACED)
            raise ValueError(f"{name}={target}: the target must be {packages}, or a module of them")


class _Finder:
    """Finds the modules that spicegraph stands in for, first in ``sys.meta_path``; ``names`` are vendored copies."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module comes from; ``None`` leaves it to the other finders."""
        parts = fullname.split(".")
        if parts[0].startswith("spicegraph_"):  # spicegraph's own modules have these names, too
            return None
        copy = max((name for name in self.names if f"{fullname}.".startswith(f"{name}.")), key=len, default=None)
        if copy is not None:
            return self._copied(fullname, self.names[copy] + fullname.removeprefix(copy), path, target)
        for package in _REPLACED:
            if package in parts:
                place = ".".join(parts[parts.index(package) :])
                return self._replaced(fullname, place, path, target)
        for package in _FILLED_IN:
            if package in parts and self._elsewhere(fullname, path, target) is None:
                return _spec(fullname, ".".join(parts[parts.index(package) :]), "filled")
        return None

    def _replaced(
        self, fullname: str, place: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """Answer a package as a whole; modules that spicegraph lacks come from the package's own folder, if any."""
        spec = _spec(fullname, place, "replaced")
        if spec is not None and spec.submodule_search_locations is not None:
            original = self._elsewhere(fullname, path, target)
            spec.submodule_search_locations = list((original and original.submodule_search_locations) or ())
        return spec

    def _copied(
        self, fullname: str, place: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """Answer the computing modules of a vendored copy; its own packages and ``eval`` modules stay."""
        # Copies differ from the original there: other arguments, other names. What the copy lacks is answered whole.
        original = self._elsewhere(fullname, path, target)
        its_own = original is not None and (
            original.submodule_search_locations is not None or fullname.rpartition(".")[2].startswith("eval")
        )
        return None if its_own else _spec(fullname, place, "replaced")

    def _elsewhere(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        """Return where a module would come from without the shim."""
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
                return spec
        return None


def _spec(fullname: str, place: str, kind: str) -> ModuleSpec | None:
    """Return the module spec for a pycocoevalcap path, or ``None`` for an unknown path."""
    from spicegraph_compat.shim.paths import module_spec  # noqa: PLC0415 (only processes that import such a module need it)

    spec = module_spec(fullname, place.removeprefix("coco_caption").removeprefix("."))
    if spec is not None:
        spec.loader = _RecordedLoader(spec.loader, kind)  # type: ignore[assignment]  # a loader by its methods
    return spec


class _RecordedLoader:
    """Loads a module as another loader does, and notes that it was."""

    def __init__(self, loader: object, kind: str) -> None:
        self._loader = loader
        self._kind = kind

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the making of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module that was just made."""
        self._loader.exec_module(module)  # type: ignore[attr-defined]
        record.note(self._kind, module.__name__)
