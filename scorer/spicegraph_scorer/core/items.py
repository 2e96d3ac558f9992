"""The unit of scoring, a candidate caption with its references, and whether two systems have the same items."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, SupportsIndex

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.marks import NO_MARKS, FoundMarks

ItemId = int | str  # An image's identifier, as its file gives it: COCO uses integers, other sets use strings.
_NO_LISTS: Final = (str, bytes, Mapping, Set)  # a set has no order, and a string or a mapping is no list of captions


@dataclass(frozen=True, slots=True)
class Item:
    """One candidate caption with the references of its image, at least one, in the order in which SPICE merges them.

    Any ordered collection of references becomes a tuple, and numpy's integers and strings become Python's.

    >>> Item(1, "a dog", ["a dog runs"])
    Item(id=1, candidate='a dog', references=('a dog runs',))
    """

    id: ItemId
    candidate: str
    references: tuple[str, ...]

    if TYPE_CHECKING:  # what may be given; what it becomes is the field's type

        def __init__(self, id: ItemId, candidate: str, references: Sequence[str]) -> None: ...  # noqa: A002

    def __post_init__(self) -> None:
        """Take the values in the types that are hashed and written; what fits none of them is refused later."""
        # Millions of items are made, so the usual types cost one comparison each.
        references: object = self.references
        if type(references) is not tuple and isinstance(references, Iterable) and not isinstance(references, _NO_LISTS):
            object.__setattr__(self, "references", tuple(map(_plain_text, references)))
        if type(self.id) is not int and type(self.id) is not str:
            value: object = _plain_text(self.id)
            if isinstance(self.id, SupportsIndex) and not isinstance(self.id, bool):
                with suppress(TypeError):  # numpy's booleans, and arrays of several numbers
                    value = index(self.id)
            object.__setattr__(self, "id", value)
        if type(self.candidate) is not str:
            object.__setattr__(self, "candidate", _plain_text(self.candidate))


def _plain_text(value: object) -> object:
    return str(value) if isinstance(value, str) else value


_ID_NAMES: Final = ("image_id", "id")
_CANDIDATE_NAMES: Final = ("candidate", "caption", "test", "prediction")
_REFERENCES_NAMES: Final = ("references", "refs", "captions")
_REFERENCE_NAMES: Final = ("reference", "ref")


def _first_of(names: Iterable[str], fields: Mapping[Any, Any]) -> str | None:
    return next((name for name in names if name in fields), None)


def _of_fields(fields: Mapping[Any, Any], number: int) -> Item:
    candidate, references, reference, image = (
        _first_of(names, fields) for names in (_CANDIDATE_NAMES, _REFERENCES_NAMES, _REFERENCE_NAMES, _ID_NAMES)
    )
    if candidate is None or (references is None and reference is None):
        wanted = "candidate" if candidate is None else "references"
        raise ValueError(f"has no {wanted!r} among its fields: {', '.join(map(str, fields)) or 'it has none'}")
    texts = (fields[reference],) if references is None else fields[references]
    return Item(number if image is None else fields[image], fields[candidate], texts)


def _plain(value: object) -> object:
    """Return a named tuple or a row of pandas, which may stand behind its label, as a mapping."""
    if isinstance(value, list | tuple) and len(value) == 2 and hasattr(value[1], "to_dict"):
        value = value[1]  # of iterrows
    for method in ("_asdict", "to_dict"):
        if callable(to_mapping := getattr(value, method, None)):
            value = to_mapping()
    return value


def to_item(value: object, number: int) -> Item:
    """Convert a value to an item; ``number`` is the id where the value has none."""
    # It is an item; a mapping, a named tuple or a row of a pandas table with the names of a file's fields; or a tuple
    # (id, candidate, references) or (candidate, references). A ``ValueError``'s message is the reason.
    if isinstance(value, Item):
        return value
    value = _plain(value)
    if isinstance(value, Mapping):
        return _of_fields(value, number)
    if isinstance(value, list | tuple) and len(value) in {2, 3}:
        return Item(*value) if len(value) == 3 else Item(number, *value)
    if isinstance(value, str):
        raise ValueError("is a caption, not an item: captions and their references go to score_captions")  # noqa: TRY004
    raise ValueError("is not an item: expected an Item, (id, candidate, references), or an object with these")


class CheckedItems(tuple[Item, ...]):  # noqa: SLOT001 (a tuple's subclass can have no slots but a dictionary)
    """Items that can be scored together: there are some, their ids differ, and their captions are sound."""

    marks: FoundMarks = NO_MARKS

    @classmethod
    def with_marks(cls, items: Iterable[Item], marks: FoundMarks) -> Self:
        """Return checked items with the marks found in their captions."""
        checked = cls(items)
        checked.marks = marks
        return checked


_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Number of items, fewest and most references of one, a hash of all ids and references, empty candidates, marks."""

    # Fingerprints of parts of a corpus add up to that of the whole: the hash is the sum of the items' hashes modulo
    # 2^64.

    items: int
    fewest: int
    most: int
    hash: int
    empty: int = 0
    marks: FoundMarks = NO_MARKS

    @classmethod
    def of(cls, items: Sequence[Item]) -> Fingerprint:
        """Take the fingerprint of at least one item."""
        counts = [len(item.references) for item in items]
        rows = (msgspec.json.encode((str(item.id), item.references)) for item in items)
        hashes = (int.from_bytes(hashlib.blake2b(row, digest_size=_BYTES).digest(), "big") for row in rows)
        total = _modulo(sum(hashes))
        return cls(len(items), min(counts), max(counts), total, empty_candidates(items), marks_of(items))

    def __add__(self, other: Fingerprint) -> Fingerprint:
        """Return the fingerprint of both corpora together."""
        return Fingerprint(
            self.items + other.items,
            min(self.fewest, other.fewest),
            max(self.most, other.most),
            _modulo(self.hash + other.hash),
            self.empty + other.empty,
            self.marks + other.marks,
        )

    @property
    def digest(self) -> str:
        """The hash in hexadecimal."""
        return f"{self.hash:0{2 * _BYTES}x}"


def marks_of(items: Iterable[Item]) -> FoundMarks:
    """Return the marks found in the items' captions, or none if unchecked."""
    return items.marks if isinstance(items, CheckedItems) else NO_MARKS


class _HasCandidate(Protocol):
    @property
    def candidate(self) -> str: ...


def empty_candidates(items: Iterable[_HasCandidate]) -> int:
    """Return how many candidates are empty: they score as in the original programs, which is zero."""
    return sum(not item.candidate.strip() for item in items)


def _modulo(value: int) -> int:
    return value % (1 << 8 * _BYTES)


_SHOWN = 5


def _unlike(first: Mapping[ItemId, Item], second: Mapping[ItemId, Item], names: tuple[str, str]) -> list[str]:
    """Return the mismatches in ids and references."""
    faults = [f"item {item_id!r} is only in {names[0]}" for item_id in first if item_id not in second]
    faults += [f"item {item_id!r} is only in {names[1]}" for item_id in second if item_id not in first]
    both = [item for item_id, item in first.items() if item_id in second]
    return faults + [
        f"item {item.id!r} has other references in {names[1]}"
        for item in both
        if second[item.id].references != item.references
    ]


def in_order_of(
    first: Sequence[Item], second: Sequence[Item], *, names: tuple[str, str] = ("the first", "the second")
) -> CheckedItems:
    """Return the second system's items in the order of the first's; an error lists ids and references that differ."""
    first_name, second_name = names
    by_id = {item.id: item for item in second}
    if faults := _unlike({item.id: item for item in first}, by_id, names):
        more = f"\n... and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise InputError(f"{first_name} and {second_name} can't be compared:\n" + "\n".join(faults[:_SHOWN]) + more)
    return CheckedItems.with_marks([by_id[item.id] for item in first], marks_of(second))
