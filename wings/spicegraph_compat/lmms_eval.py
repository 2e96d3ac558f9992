"""SPICE for the caption tasks of lmms-eval, which leaves it out because of Java (docs/how-to/harnesses.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spicegraph_compat.pycocoevalcap import PTBTokenizer, Spice
from spicegraph_parser.pipelines import DEFAULT_PIPELINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from spicegraph_scorer.core.facts import FactSource

SPICE = "SPICE"
_OTHER = "CIDEr"


def with_spice(process_result: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a task's function that also hands captions on for SPICE: ``coco_SPICE`` beside ``coco_CIDEr``.

    >>> with_spice(lambda doc, result: {"coco_CIDEr": {"answer": doc, "pred": result[0]}})(["a dog"], ["a cat"])
    {'coco_CIDEr': {'answer': ['a dog'], 'pred': 'a cat'}, 'coco_SPICE': {'answer': ['a dog'], 'pred': 'a cat'}}
    """

    def process(*arguments: object, **options: object) -> dict[str, Any]:
        processed = process_result(*arguments, **options)
        added = {name.removesuffix(_OTHER) + SPICE: row for name, row in processed.items() if name.endswith(_OTHER)}
        return processed | added

    return process


def spice(
    results: Sequence[Mapping[str, Any]], args: object = None, *, pipeline: str | FactSource = DEFAULT_PIPELINE
) -> float:
    """Aggregate a task's results, with ``pred`` and ``answer``, a list or a string, to the mean SPICE, in [0, 1].

    As for the other metrics of these tasks, and as in ``COCOEvalCap``, the captions are tokenized first, which
    lower-cases them and leaves punctuation out. lmms-eval's own ``args`` are not used.

    >>> spice([{"answer": ["a dog", "a brown dog"], "pred": "A dog."}])
    0.6666666666666666
    """
    del args
    references = [[row["answer"]] if isinstance(row["answer"], str) else list(row["answer"]) for row in results]
    gts = PTBTokenizer.tokenize(dict(enumerate(references)))
    res = PTBTokenizer.tokenize({number: [row["pred"]] for number, row in enumerate(results)})
    return Spice(pipeline=pipeline).compute_score(gts, res)[0]
