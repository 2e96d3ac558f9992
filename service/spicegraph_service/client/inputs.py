"""What programs hold for captions and items, as messages: what the library reads is read, and nothing is guessed."""
# A string is a sequence of its letters for Python and for Protocol Buffers, and None is an empty string for the latter:
# both would be scored without a word.

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from itertools import islice
from operator import index
from typing import Any, Final, SupportsIndex, TypeVar

from spicegraph_api.v1 import scores_pb2

_IDS: Final = ("image_id", "id")
_CANDIDATES: Final = ("candidate", "caption", "test", "prediction")
_SET: Final = "candidates"
_REFERENCES: Final = ("references", "refs", "captions")
_REFERENCE: Final = ("reference", "ref")
_SHOWN: Final = 60

T = TypeVar("T")


def caption(value: object, name: str) -> str:
    """Return a caption as a string; a TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {_shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise TypeError(f"{name}: holds half of a surrogate pair, which is not a character") from error
    return str(value)


def captions(value: object, name: str) -> list[str]:
    """Return captions in a list, whatever ordered collection they are in; a TypeError for anything else."""
    if isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable):
        raise TypeError(f"{name}: expected a list of strings, got {_shown(value)}")
    return [caption(each, f"{name}[{number}]") for number, each in enumerate(value)]


def item_id(value: object, name: str) -> str:
    """Return an id as a string: of a string or an integer, also numpy's; a TypeError for anything else."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return str(index(value))
    raise TypeError(f"{name}: expected a string or an integer, got {_shown(value)}")


def item(
    item_id_: object, candidate: object, references: object = (), *, reference_id: object = None, name: str = ""
) -> scores_pb2.Item:
    """Return an item: with its references, or for a reference set without any; ``name`` is the path before fields."""
    return scores_pb2.Item(
        id=item_id(item_id_, f"{name}id"),
        candidate=caption(candidate, f"{name}candidate"),
        references=captions(references, f"{name}references"),
        reference_id=None if reference_id is None else item_id(reference_id, f"{name}reference_id"),
    )


def item_set(
    item_id_: object, candidates: object, references: object = (), *, reference_id: object = None, name: str = ""
) -> scores_pb2.Item:
    """Return an item whose candidates are scored together; there is at least one."""
    texts = captions(candidates, f"{name}candidates")
    if not texts:
        raise TypeError(f"{name}candidates: expected at least one string")
    made = item(item_id_, "", references, reference_id=reference_id, name=name)
    made.candidates.extend(texts)
    return made


def items(values: object) -> Iterable[scores_pb2.Item]:
    """Yield the items of messages, items of the library, (id, candidate, references), mappings, or a table."""
    to_records = getattr(values, "to_dict", None)
    if hasattr(values, "columns") and callable(to_records):  # a table of pandas
        values = to_records("records")
    if isinstance(values, str | bytes | Mapping | scores_pb2.Item) or not isinstance(values, Iterable):
        raise TypeError(f"items: expected a list of items, got {_shown(values)}")
    for number, value in enumerate(values):
        yield as_item(value, number)


def as_item(value: Any, number: int) -> scores_pb2.Item:
    """Return what a program holds for an item as a message; ``number`` is its place, and its id where it has none."""
    if isinstance(value, scores_pb2.Item):
        return value
    name = f"items[{number}]."
    for method in ("_asdict", "to_dict"):  # a named tuple; a row of pandas
        if callable(to_mapping := getattr(value, method, None)):
            value = to_mapping()
    if isinstance(value, Mapping):
        return _of_mapping(value, number, name)
    if isinstance(value, list | tuple) and len(value) in {2, 3}:
        return item(*((number, *value) if len(value) == 2 else value), name=name)
    if all(hasattr(value, field) for field in ("id", "candidate", "references")):
        return item(value.id, value.candidate, value.references, name=name)
    raise TypeError(f"items[{number}]: expected an item, or (id, candidate, references), got {_shown(value)}")


def _of_mapping(value: Mapping[Any, Any], number: int, name: str) -> scores_pb2.Item:
    def first(keys: Sequence[str]) -> str | None:
        return next((key for key in keys if key in value), None)

    candidate, references, reference = first(_CANDIDATES), first(_REFERENCES), first(_REFERENCE)
    if candidate is None and _SET not in value:
        raise TypeError(f"items[{number}]: has no 'candidate' among its keys: {', '.join(map(str, value)) or 'none'}")
    several = value[references] if references is not None else () if reference is None else (value[reference],)
    image = first(_IDS)
    given = number if image is None else value[image]
    entry = value.get("reference_id")
    if candidate is None:
        return item_set(given, value[_SET], several, reference_id=entry, name=name)
    if _SET in value:
        raise TypeError(f"items[{number}]: has {candidate!a} and {_SET!a}: a set has {_SET} alone")
    return item(given, value[candidate], several, reference_id=entry, name=name)


def names(value: object, field: str) -> list[str]:
    """Return names in a list; a string holds them with commas between, as on the command line."""
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else captions(value, field)


def check_options(given: Iterable[str], known: Collection[str]) -> None:
    """Refuse options that a call does not have, with the one that is meant; a TypeError, as of any function."""
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise TypeError(f"unexpected keyword argument {name!r}{meant}")


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Return values in lists of a size."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def values_of(scores: Iterable[scores_pb2.Score]) -> dict[str, float | None]:
    """Return the scores of an item or of the corpus by name; what is undefined is ``None``.

    >>> values_of([scores_pb2.Score(name="SPICE", value=0.5), scores_pb2.Score(name="SPICE_Color")])
    {'SPICE': 0.5, 'SPICE_Color': None}
    """
    return {score.name: score.value if score.HasField("value") else None for score in scores}


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f"the string {value[:_SHOWN]!a}"
    return "None" if value is None else f"the {type(value).__name__} {ascii(value)[:_SHOWN]}"
