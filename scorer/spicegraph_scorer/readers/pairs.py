"""Captions that a program holds in two collections, candidates and references, as items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from spicegraph_parser.errors import counted, kind_of
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.readers.checks import Fault, check_items, input_error, shown

if TYPE_CHECKING:
    from spicegraph_scorer.core.items import CheckedItems
    from spicegraph_scorer.readers.checks import Empty

References: TypeAlias = Sequence[str | Sequence[str]]
"""For every candidate one reference or a list of them; their numbers may differ."""
Candidates: TypeAlias = Mapping[Any, str | Sequence[str]] | Iterable[str] | str
"""Candidates by id (each a caption, or a list of one as in pycocoevalcap), in a list, or a single one."""


def paired_items(
    candidates: Candidates,
    references: Mapping[Any, str | Sequence[str]] | Iterable[str | Sequence[str]],
    *,
    empty: Empty = "refuse",
) -> CheckedItems:
    """Return the items of two parallel lists, numbered from 0, or of two mappings by id.

    Args:
        candidates: one of each item. A single string is one candidate, and ``references`` are all its own.
        references: of each item one, or a list of them.
        empty: what is done with an empty candidate.

    Raises:
        InputError: the two differ in length or ids, or a caption is faulty; the message lists every fault.

    Example:
        >>> paired_items(["a dog"], ["the dog"])
        (Item(id=0, candidate='a dog', references=('the dog',)),)
        >>> paired_items({7: "a dog"}, {7: ["the dog", "a puppy"]})[0].id
        7
    """
    if isinstance(candidates, str):
        return check_items([Item(0, candidates, _texts(references))], empty=empty)
    if isinstance(candidates, Mapping) and isinstance(references, Mapping):
        faults = [Fault(f"id {shown(i)}", "references", "is missing") for i in candidates if i not in references]
        faults += [Fault(f"id {shown(i)}", "candidates", "is missing") for i in references if i not in candidates]
        pairs = [(i, _only(text), references[i]) for i, text in candidates.items() if i in references]
    else:
        faults = [
            Fault("", name, f"is {kind_of(value)}, expected {expected}")
            for name, value, other in (("candidates", candidates, references), ("references", references, candidates))
            if (expected := _expected(value, other))
        ]
        if faults:
            raise input_error("captions", faults)
        texts, groups = list(candidates), list(references)
        if len(texts) != len(groups):
            lists = counted(len(groups), "list of references", "lists of references")
            faults = [Fault("", "", f"{counted(len(texts), 'candidate')} and {lists} don't pair up")]
        pairs = [(number, *pair) for number, pair in enumerate(zip(texts, groups, strict=False))]
    if faults:
        raise input_error("captions", faults)
    return check_items((Item(image, text, _texts(group)) for image, text, group in pairs), empty=empty)


def _expected(value: object, other: object) -> str:
    """Return what a collection should have been; nothing where it can be read."""
    if isinstance(other, Mapping) and not isinstance(value, Mapping) and isinstance(value, Iterable):
        return "an object, as the other is"
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return "a list"
    return ""


def _texts(group: Any) -> Any:
    return (group,) if isinstance(group, str) else group


def _only(value: Any) -> Any:
    """Return the caption of a list of one."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
