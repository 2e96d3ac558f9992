"""The import paths of the packages that the shim stands in for, and the names at each."""

from __future__ import annotations

from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

__all__ = ["MODULES", "module_spec"]

MODULES: Final[Mapping[str, str]] = {
    "pycocoevalcap": (
        "COCO, Bleu, Cider, CiderD, COCOEvalCap, COCOEvalCapSpice, Meteor, PTBTokenizer, Rouge, Spice, compute_scores"
    ),
    "pycocoevalcap.bleu": "Bleu",
    "pycocoevalcap.bleu.bleu": "Bleu",
    "pycocoevalcap.cider": "Cider",
    "pycocoevalcap.cider.cider": "Cider",
    "pycocoevalcap.cider.cider_scorer": "CiderScorer",
    "pycocoevalcap.ciderD.ciderD": "CiderD",
    "pycocoevalcap.eval": "Bleu, Cider, COCOEvalCap, Meteor, PTBTokenizer, Rouge, Spice",
    "pycocoevalcap.eval_spice": "COCOEvalCapSpice",
    "pycocoevalcap.meteor": "Meteor",
    "pycocoevalcap.meteor.meteor": "Meteor",
    "pycocoevalcap.rouge": "Rouge",
    "pycocoevalcap.rouge.rouge": "Rouge",
    "pycocoevalcap.spice": "Spice",
    "pycocoevalcap.spice.spice": "Spice",
    "pycocoevalcap.tokenizer": "PTBTokenizer",
    "pycocoevalcap.tokenizer.ptbtokenizer": "PTBTokenizer",
    "pyciderevalcap.cider.cider": "PlainCider as Cider",
    "pyciderevalcap.ciderD.ciderD": "CiderD",
    "pyciderevalcap.tokenizer.ptbtokenizer": "PTBTokenizer",
    "pycocotools.coco": "COCO",
}
"""By path: the names of ``spicegraph_compat.pycocoevalcap`` that are imported from it."""


def module_spec(fullname: str, path: str) -> ModuleSpec | None:
    """Return the specification of a module with the names of a path ("" holds them all); ``None`` if unknown."""
    has_modules = not path or any(known.startswith(f"{path}.") for known in MODULES)
    if path not in MODULES and not has_modules:
        return None
    return ModuleSpec(fullname, _Loader(path), is_package=has_modules)


class _Loader(Loader):
    """Gives a module the names of a path; the classes are this package's own."""

    def __init__(self, path: str) -> None:
        self._path = path

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module that was just made; importing the classes waits until here."""
        module.__doc__ = f"``{self._path}``: call shapes of another package."
        if self._path not in MODULES:
            return
        source = import_module("spicegraph_compat.pycocoevalcap")
        for imported in MODULES[self._path].split(", "):
            name, _, alias = imported.partition(" as ")
            setattr(module, alias or name, getattr(source, name))
