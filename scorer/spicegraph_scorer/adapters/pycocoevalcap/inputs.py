"""What the scorers of pycocoevalcap are given, and what must hold for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.tokens import TokenizedItem
from spicegraph_scorer.readers.checks import Fault, input_error, shown

if TYPE_CHECKING:
    from spicegraph_scorer.core.items import ItemId


Captions = Mapping[Any, Sequence[str]]
"""Captions by image id (integer or string): one candidate, or all references.

The key is ``Any`` because a mapping's key type is invariant: a ``dict[int, list[str]]`` must be accepted.
"""


Results = Sequence[Mapping[str, Any]]
"""pyciderevalcap's candidates: ``{"image_id": id, "caption": [candidate]}`` each; an image may occur often."""


class ShapeError(InputError, AssertionError):
    """``gts`` and ``res`` do not fit each other; the originals fail an ``assert`` here."""


def check_captions(gts: Captions, res: Captions, *, several: bool = False) -> None:
    """Refuse captions that do not pair up.

    Args:
        gts: the references by image.
        res: the candidate of each image.
        several: an image may have more than one candidate.

    Raises:
        ShapeError: the two differ in their ids, an image has no reference, or not one candidate; the message
            lists every id with its reason.
    """
    faults = list(_faults(gts, res, several=several))
    if faults:
        raise ShapeError(str(input_error("gts and res", faults)))


def _faults(gts: Captions, res: Captions, *, several: bool) -> Iterator[Fault]:
    yield from (Fault(f"id {shown(i)}", "res", "is missing") for i in gts if i not in res)
    yield from (Fault(f"id {shown(i)}", "gts", "is missing") for i in res if i not in gts)
    for image_id in (i for i in gts if i in res):
        yield from _caption_faults(image_id, "gts", gts[image_id])
        yield from _caption_faults(image_id, "res", res[image_id])
        if not several:
            yield from _several_faults(image_id, res[image_id])


def _several_faults(image_id: ItemId, captions: object) -> Iterator[Fault]:
    if not isinstance(captions, str) and isinstance(captions, Sequence) and len(captions) > 1:
        yield Fault(f"id {shown(image_id)}", "res", f"holds {len(captions)} captions, expected one")


def _caption_faults(image_id: ItemId, side: str, captions: object) -> Iterator[Fault]:
    name = f"id {shown(image_id)}"
    if isinstance(captions, str) or not isinstance(captions, Sequence):
        yield Fault(name, side, f"is {shown(captions)}, expected a list of strings")
    elif not captions:
        yield Fault(name, side, "contains no caption")
    else:
        for index, caption in enumerate(captions):
            if not isinstance(caption, str):
                yield Fault(name, f"{side}[{index}]", f"is {shown(caption)}, expected a string")


def split_items(gts: Captions, res: Captions) -> list[TokenizedItem]:
    """Return the words of tokenized captions as items, in the order of ``gts``.

    Raises:
        ShapeError: the captions do not pair up.
    """
    check_captions(gts, res)
    return [
        TokenizedItem(tuple(res[image_id][0].split()), tuple(tuple(text.split()) for text in references))
        for image_id, references in gts.items()
    ]


def paired_results(gts: Captions, res: Results) -> list[TokenizedItem]:
    """Return the words of a list of results with their images' references, in the order of ``res``.

    Raises:
        ShapeError: an entry has another shape, or its image has no reference.
    """
    faults = list(_result_faults(gts, res))
    if faults:
        raise ShapeError(str(input_error("gts and res", faults)))
    words = {image_id: tuple(tuple(text.split()) for text in texts) for image_id, texts in gts.items()}
    return [TokenizedItem(tuple(entry["caption"][0].split()), words[entry["image_id"]]) for entry in res]


def _result_faults(gts: Captions, res: Results) -> Iterator[Fault]:
    for image_id, references in gts.items():
        yield from _caption_faults(image_id, "gts", references)
    entries: Sequence[object] = res
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or not {"image_id", "caption"} <= entry.keys():
            yield Fault(f"res[{index}]", "", f'is {shown(entry)}, expected {{"image_id": ..., "caption": [candidate]}}')
        elif entry["image_id"] not in gts:
            yield Fault(f"id {shown(entry['image_id'])}", "gts", "is missing")
        else:
            yield from _caption_faults(entry["image_id"], "res", entry["caption"])
            yield from _several_faults(entry["image_id"], entry["caption"])
