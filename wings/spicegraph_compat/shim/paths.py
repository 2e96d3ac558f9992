"""The import paths of other packages' call shapes; :mod:`spicegraph_scorer.adapters` holds the code."""
# Type checkers and editors read the stubs (``.pyi``) in this folder; a test compares them with ``MODULES``.

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.adapters import metric_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

__all__ = ["MODULES", "metric_path", "module_spec"]

_COCO: Final = "pycocoevalcap"
MODULES: Final[Mapping[str, tuple[str, str]]] = {
    "aac_metrics": ("aac_metrics", "cider_d, spice, spider, spider_fl, spider_max"),
    "lists": ("caption_metric", "CaptionMetric, References, flat_scores, paired_items"),
    "torch_metric": ("torch_metric", "TorchSpice"),
    "torchmetrics": ("torchmetrics", "SPICE_CATEGORIES, SpiceMetric"),
    "pycocoevalcap": (
        _COCO,
        "COCO, Bleu, Cider, CiderD, COCOEvalCap, COCOEvalCapSpice, Meteor, PTBTokenizer, Rouge, Spice, compute_scores",
    ),
    "pycocoevalcap.bleu": (_COCO, "Bleu"),
    "pycocoevalcap.bleu.bleu": (_COCO, "Bleu"),
    "pycocoevalcap.cider": (_COCO, "Cider"),
    "pycocoevalcap.cider.cider": (_COCO, "Cider"),
    "pycocoevalcap.cider.cider_scorer": (_COCO, "CiderScorer"),
    "pycocoevalcap.ciderD.ciderD": (_COCO, "CiderD"),
    "pycocoevalcap.eval": (_COCO, "Bleu, Cider, COCOEvalCap, Meteor, PTBTokenizer, Rouge, Spice"),
    "pycocoevalcap.eval_spice": (_COCO, "COCOEvalCapSpice"),
    "pycocoevalcap.meteor": (_COCO, "Meteor"),
    "pycocoevalcap.meteor.meteor": (_COCO, "Meteor"),
    "pycocoevalcap.rouge": (_COCO, "Rouge"),
    "pycocoevalcap.rouge.rouge": (_COCO, "Rouge"),
    "pycocoevalcap.spice": (_COCO, "Spice"),
    "pycocoevalcap.spice.spice": (_COCO, "Spice"),
    "pycocoevalcap.tokenizer": (_COCO, "PTBTokenizer"),
    "pycocoevalcap.tokenizer.ptbtokenizer": (_COCO, "PTBTokenizer"),
    "pyciderevalcap.cider.cider": (_COCO, "PlainCider as Cider"),
    "pyciderevalcap.ciderD.ciderD": (_COCO, "CiderD"),
    "pyciderevalcap.tokenizer.ptbtokenizer": (_COCO, "PTBTokenizer"),
    "pycocotools.coco": (_COCO, "COCO"),
}  # By path below this package: the module of ``spicegraph_scorer.adapters``, and what is imported from it.


def module_spec(fullname: str, path: str) -> ModuleSpec | None:
    """Return the specification of a module with the names of a path ("" is this package); ``None`` if unknown."""
    has_modules = not path or any(known.startswith(f"{path}.") for known in MODULES)
    if path not in MODULES and not has_modules:
        return None
    return ModuleSpec(fullname, _Loader(path), is_package=has_modules)


class _Loader(Loader):
    """Gives a module the names of a path; the classes are the adapters' own."""

    def __init__(self, path: str) -> None:
        self._path = path

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module that was just made; importing the adapter waits until here."""
        module.__doc__ = f"``{self._path}``: call shapes of another package."
        if self._path not in MODULES:
            return
        adapter, names = MODULES[self._path]
        source = import_module(f"spicegraph_scorer.adapters.{adapter}")
        for imported in names.split(", "):
            name, _, alias = imported.partition(" as ")
            setattr(module, alias or name, getattr(source, name))


class _PathFinder(MetaPathFinder):
    """Finds the paths below this package; it comes first, as the folders of stubs look like packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a path below this package."""
        del path, target
        prefix = f"{__name__}."
        return module_spec(fullname, fullname.removeprefix(prefix)) if fullname.startswith(prefix) else None


sys.meta_path.insert(0, _PathFinder())
