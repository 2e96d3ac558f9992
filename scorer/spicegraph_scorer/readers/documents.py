"""From JSON to records: a list, one object per line, or an object with the entries somewhere in it, of any shape."""

from __future__ import annotations

from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers import shapes
from spicegraph_scorer.readers.checks import Fault, input_error, shown
from spicegraph_scorer.readers.fields import SURE, Wanted, is_texts, other_task, records_of
from spicegraph_scorer.readers.records import Records, bounded_lines, decode, read_all, repeated_key, untyped_id
from spicegraph_scorer.readers.shapes import (
    SAMPLE,
    SHAPES,
    Columns,
    Shape,
    captions_of,
    find_fields,
    first_at,
    has_path,
    nested_names,
    path_parts,
    plain,
    value_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.readers.source import ReadLimits, Source

Entry: TypeAlias = "tuple[str, object]"  # its place, and what it is
_Keyed: TypeAlias = "tuple[tuple[str, ...], msgspec.Raw]"  # a value behind the keys of the objects on the way to it

_TABLES: Final = sorted(SHAPES, key=lambda shape: -len(shape.beside))  # the most particular first
_FEW: Final = 40  # An object with more keys is by id.
_WHOLE: Final = 20_000  # Bytes of what is decoded at once to be looked at.
_PIECE: Final = 1 << 20
_DEEP: Final = 2
_SHOWN: Final = 8
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_lists = msgspec.json.Decoder(list[msgspec.Raw])


class _Node:
    """A value of JSON that is decoded as far as it is looked at."""

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        self.raw = raw
        self.start = bytes(memoryview(raw)[:64]).lstrip()[:1]

    @cached_property
    def fields(self) -> dict[str, msgspec.Raw]:
        return _raw_fields.decode(self.raw) if self.start == b"{" else {}

    @cached_property
    def items(self) -> list[msgspec.Raw]:
        return _raw_lists.decode(self.raw) if self.start == b"[" else []

    @cached_property
    def below(self) -> dict[str, _Node]:
        return {key: _Node(raw) for key, raw in islice(self.fields.items(), _FEW)}

    @cached_property
    def sample(self) -> object:
        """The value, with no more than the first entries of long lists and objects."""
        if self.start == b"[" and len(memoryview(self.raw)) > _WHOLE:
            return [_Node(raw).sample for raw in self.items[:SAMPLE]]
        if self.start == b"{":
            return {key: node.sample for key, node in self.below.items()}
        return msgspec.json.decode(self.raw)

    def at(self, path: str) -> Iterable[_Keyed]:
        """Return the raw values at a path, with their keys."""
        return _at(self, path_parts(path), ())


def _at(node: _Node, parts: Sequence[str], keys: tuple[str, ...]) -> Iterable[_Keyed]:
    first, *rest = parts
    if first not in {"[]", "*"}:
        return _at(node.below[first], rest, keys) if rest and first in node.below else ()
    if first == "[]":
        found: Iterable[_Keyed] = ((keys, raw) for raw in node.items)
    else:
        found = (((*keys, key), raw) for key, raw in node.fields.items())
    return chain.from_iterable(_at(_Node(raw), rest, inner) for inner, raw in found) if rest else found


def read_json(source: Source, *, limits: ReadLimits, wanted: Wanted) -> Records:
    """Read all records of a JSON file: a list, one object per line, or one object of any known shape."""
    if wanted.columns is not None and wanted.columns.delimiter is not None:
        raise InputError(f"{source.name}: is JSON, which has no columns: --delimiter is for tables")
    line = b""
    if source.stream.peek(SAMPLE).lstrip()[:1] != b"[":
        line = next(filter(bytes.strip, iter(lambda: source.stream.readline(limits.line + 1), b"")), b"")
        if len(line) <= limits.line and _is_line(line, source.stream.peek(_WHOLE)[:_WHOLE].lstrip()):
            faults: list[Fault] = []
            entries = _line_entries(bounded_lines(source, limits, line), faults)
            described = "objects, one on each line,"
            return records_of(
                source.name,
                "JSON Lines",
                entries,
                wanted,
                faults=faults,
                unknown=lambda rows: unknown(rows, wanted, described),
            )
    content = read_all(source, limits=limits, start=line)
    node = _Node(content)
    try:
        sample = node.sample
        repeated = _key_twice(content, node)
        if not isinstance(sample, list | dict):
            raise InputError(f"{source.name}: holds {shown(sample)}, expected a list of objects or one object per line")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{source.name}: {decode(content)[1]}") from None
    if repeated is not None:
        raise InputError(f"{source.name}: has the key {shown(repeated)} twice")
    if isinstance(sample, list):
        return _list(source, content, node, sample, wanted)
    return _document(source, content, node, sample, wanted)


def _is_line(line: bytes, behind: bytes) -> bool:
    """Say whether the first line is one of JSON Lines, and not the beginning of one object, or all of it."""
    if not line.rstrip().endswith(b"}"):
        return False
    return bool(behind) if not decode(line)[1] else not behind or behind.startswith(b"{")


def _line_entries(lines: Iterable[bytes], faults: list[Fault]) -> Iterator[Entry]:
    for number, line in enumerate(lines, start=1):
        if line.isspace():
            continue
        value, reason = decode(line)
        if reason:
            faults.append(Fault(f"line {number}", "", reason.replace("line 1, ", "", 1)))
        else:
            yield f"line {number}", value


def _key_twice(content: bytes, node: _Node) -> str | None:
    """Return a key that stands twice in the object of a file; those of its entries are looked at one by one."""
    if node.start != b"{":
        return None
    inner = sum(map(_count, node.fields.values()))
    return repeated_key(content) if _count(content) - inner != len(node.fields) else None


def _count(raw: bytes | msgspec.Raw) -> int:
    view = memoryview(raw)
    return sum(bytes(view[start : start + _PIECE + 1]).count(b'":') for start in range(0, len(view), _PIECE))


def _list(source: Source, content: bytes, node: _Node, sample: list[object], wanted: Wanted) -> Records:
    if not sample:
        raise InputError(f"{source.name}: is an empty list, there is nothing to score")
    path = "[][]" if all(isinstance(part, list) and part and isinstance(part[0], dict) for part in sample) else "[]"
    entries = _entries(source, content, node, path, "item")
    return records_of(
        source.name, "JSON list", entries, wanted, unknown=lambda rows: unknown(rows, wanted, "a list of objects")
    )


def _entries(source: Source, content: bytes, node: _Node, path: str, name: str) -> Iterator[Entry]:
    """Yield the entries at a path; the key of an object of entries by id is the entry's id."""
    by_id, by_split = path.endswith("*"), path.endswith("*[]")
    for number, (keys, raw) in enumerate(node.at(path), start=1):
        value, reason = decode(raw)
        if reason and not reason.startswith("has the key"):  # of the whole, which says where
            raise InputError(f"{source.name}: {decode(content)[1]}")
        if reason:
            raise input_error(source.name, [Fault(f"{name} {number}", "", reason)])
        if by_id:
            value = _with_id(value, untyped_id(keys[-1]))
        elif by_split and isinstance(value, dict) and keys[-1].lower() in shapes.SPLIT_NAMES:
            value.setdefault("split", keys[-1])
        yield f"{name} {number}", value


def _with_id(value: object, image: object) -> dict[str, object]:
    """Return an entry, or captions alone, with its id."""
    if isinstance(value, dict):
        return {**value, "id": image}
    return {"id": image, "captions" if isinstance(value, list) else "caption": value}


def _document(source: Source, content: bytes, node: _Node, sample: dict[str, object], wanted: Wanted) -> Records:
    def rows(path: str) -> list[object]:
        return list(first_at(sample, path_parts(path))) if any(mark in path for mark in "[*") else []

    if whole := _side_by_side(sample, wanted):
        entries = _rows_of(source.name, whole, msgspec.json.decode(content))
        return records_of(
            source.name,
            whole,
            entries,
            wanted,
            shape=_table_shape(sample, whole),
            unknown=lambda r: unknown(r, wanted, "a table"),
        )
    if _is_record(sample, wanted):
        return records_of(source.name, "JSON Lines", iter([("line 1", msgspec.json.decode(content))]), wanted)
    entry_rows = _entry_rows(sample)
    shape = shapes.recognised(sample, rows) or _seeming_annotations(sample, entry_rows, wanted)
    if shape and not isinstance(sample.get(key := shape.images.partition("[")[0], []), list):
        raise input_error(source.name, [Fault("", key, "is not a list")])
    path = _found(sample, rows, wanted) if shape is None else _path_of(shape, rows)
    if path is None:
        raise InputError(f"{source.name}: {unknown(entry_rows, wanted, _described(sample))}")
    by_id = path.endswith("*")
    name = "annotation" if path == "annotations[]" else "entry" if by_id else "item"
    return records_of(
        source.name,
        "captions by id" if by_id else f"JSON ({path})",
        _entries(source, content, node, path, name),
        wanted,
        shape=shape,
        images=_entries(source, content, node, shape.images, "image") if shape and rows(shape.images) else None,
        typed=not by_id,
        unknown=lambda r: unknown(r, wanted, _described(sample)),
    )


def _table_shape(sample: Mapping[str, object], kind: str) -> Shape | None:
    """Return the shape of a table that is written as an object."""
    return next((s for s in _TABLES if s.rows == kind and all(key in sample for key in s.beside.split())), None)


def _path_of(shape: Shape, rows: Callable[[str], list[object]]) -> str:
    """Return the first of the places of a shape's entries that has some."""
    return next((path for path in shape.rows.split("|") if rows(path)), shape.rows)


def _seeming_annotations(
    sample: Mapping[str, object], entry_rows: Sequence[Mapping[str, object]], wanted: Wanted
) -> Shape | None:
    """Return the shape of COCO's annotations where a file seems to hold them: its faults are told one by one."""
    seems = isinstance(sample.get("annotations"), list) and not other_task(entry_rows)
    if not seems or wanted.side != "references":
        return None
    return next(shape for shape in SHAPES if shape.name == "COCO annotations")


def _side_by_side(sample: Mapping[str, object], wanted: Wanted) -> str:
    """Return how a table is written as an object: rows behind the names of columns, or a list for each column."""
    columns, rows = ((of if isinstance(of := sample.get(key), list) else []) for key in ("columns", "data"))
    if columns and rows and isinstance(rows[0], list):
        return "columns"
    values = list(sample.values())
    if len(values) < 2 or not all(type(value) is type(values[0]) and value for value in values):
        return ""
    if not _are_columns(find_fields(list(sample), side=wanted.side), wanted):
        return ""
    if isinstance(values[0], dict):
        same = all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values)
        return "indexed lists" if same else ""
    return "lists" if isinstance(values[0], list) else ""


def _are_columns(found: Columns, wanted: Wanted) -> bool:
    """Return whether keys have two of ids, candidates and references, and texts that are wanted among them."""
    has_texts = found.candidate or (found.references and wanted.side != "candidates")
    return bool(has_texts) and sum(map(bool, (found.id, found.candidate, found.references))) > 1


def _rows_of(source: str, kind: str, value: Any) -> Iterator[Entry]:
    if kind == "columns":
        names, rows = value["columns"], value["data"]
    else:
        names = list(value)
        lists = [list(each.values()) if isinstance(each, dict) else each for each in value.values()]
        lengths = sorted({len(each) for each in lists})
        if len(lengths) > 1:
            raise InputError(f"{source}: lists side by side are of different lengths: {', '.join(map(str, lengths))}")
        rows = zip(*lists, strict=True)
    for number, row in enumerate(rows, start=1):
        yield f"row {number}", dict(zip(names, row, strict=False))


def _fields(rows: Sequence[Mapping[str, object]], wanted: Wanted) -> Columns:
    """Return where ids and captions stand in some entries, by the names that users give where these are there."""
    given = wanted.columns or Columns()

    def there(path: str | None) -> bool:
        return path is not None and any(value_at(row, path) is not None for row in rows)

    named = Columns(
        given.id if there(given.id) else None,
        given.candidate if there(given.candidate) else None,
        tuple(filter(there, given.references)),
    )
    return find_fields(nested_names(rows), named=named, side=wanted.side, is_text=is_texts(rows))


def _is_record(sample: Mapping[str, object], wanted: Wanted) -> bool:
    found = _fields([sample], wanted)
    key = found.candidate or next(iter(found.references), None)
    if key is None:
        return False
    is_sure = plain(key) in SURE | {"text"} and captions_of(sample.get(key)) is not None
    return is_sure or isinstance(value_at(sample, found.id or ""), int | str)


def _found(sample: Mapping[str, object], rows: Callable[[str], list[object]], wanted: Wanted) -> str | None:
    """Return where the entries of an object of no shape with a name stand, if that is in one place only."""
    paths = [path for path in _paths(sample) if _is_good(path, rows(path), sample, wanted)]
    return paths[0] if len(paths) == 1 or (paths and paths[0].endswith("*[]")) else None


def _paths(sample: Mapping[str, object], before: str = "", depth: int = _DEEP) -> Iterator[str]:
    full = [value for value in sample.values() if value != []]
    if len(sample) > 1 and full and all(map(_is_list_of_objects, full)):
        yield f"{before}*[]"
    for key, value in sample.items() if len(sample) < _FEW else ():
        if set(key) & set(".[*|"):
            continue
        if _is_list_of_objects(value):
            yield f"{before}{key}[]"
        if isinstance(value, dict) and depth and plain(key) in shapes.CONTAINERS | shapes.KNOWN:
            yield from _paths(value, f"{before}{key}.", depth - 1)
    yield f"{before}*"


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _are_captions_by_id(rows: Sequence[object], ids: Sequence[str]) -> bool:
    """Return whether values behind keys are captions alone: the keys are ids, which entries in them have again."""
    lists = chain.from_iterable(row for row in rows if isinstance(row, list))
    inner = [part for part in lists if isinstance(part, dict)]
    own = shapes.FIRST_IDS.intersection(map(plain, chain.from_iterable(inner)))
    return (
        bool(rows)
        and (shapes.KNOWN | shapes.CONTAINERS).isdisjoint(map(plain, ids))
        and all(type(row) is type(rows[0]) and captions_of(row) is not None for row in rows)
        and (not own or set(map(str, chain.from_iterable(part.values() for part in inner))) >= set(ids[:SAMPLE]))
    )


def _is_good(path: str, rows: list[object], sample: object, wanted: Wanted) -> bool:
    objects = [row for row in rows if isinstance(row, dict)]
    if path.endswith("*") and len(objects) < len(rows):
        return _are_captions_by_id([row for row in rows if row is not None], _keys_at(sample, path))
    found = _fields(objects, wanted)
    if not found.candidate and not found.references:
        return False
    if path.endswith("*"):
        return bool(rows) and shapes.CONTAINERS.isdisjoint(map(plain, _keys_at(sample, path)))
    if found.id is None or plain(found.id) in shapes.FIRST_IDS or not path.endswith("*[]"):
        return found.id is not None
    return shapes.SPLIT_NAMES.issuperset(map(plain, _keys_at(sample, path[:-2])))


def _keys_at(sample: object, path: str) -> list[str]:
    """Return the keys of the object whose values a path leads to."""
    for key in path.split(".")[:-1]:
        sample = sample.get(key) if isinstance(sample, dict) else None
    return list(sample) if isinstance(sample, dict) else []


def _entry_rows(sample: Mapping[str, object]) -> list[Mapping[str, object]]:
    lists = [value if isinstance(value, list) else [value] for value in sample.values()]
    return [row for value in lists for row in value[:SAMPLE] if isinstance(row, dict)]


def _described(sample: Mapping[str, object]) -> str:
    """Describe an object for a message: its keys, and those of an entry."""
    said = f"an object with the keys {_listed(sample)}" if sample else "an object without keys"
    for key, value in sample.items():
        entry = value[0] if isinstance(value, list) and value else value
        if isinstance(entry, dict) and entry:
            kind = "an entry of " if isinstance(value, list) else ""
            return f"{said}; {kind}{shown(key)} has the keys {_listed(entry)}"
    return said


def _listed(fields: Iterable[str]) -> str:
    names = list(fields)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(map(shown, names[:_SHOWN])) or "none") + more


def unknown(rows: Sequence[Mapping[str, object]], wanted: Wanted, kind: str) -> str:
    """Return the message for an unrecognised file: keys found, keys expected, nearest shape."""
    if what := other_task(rows):
        return f"holds {what}, not captions: {kind}"
    names = set(chain.from_iterable(rows))
    said = kind if "keys" in kind or not any(rows) else f"{kind} with the keys {_listed(rows[0])}"
    looked = "an id (image_id, id, file_name ...) and " + (
        "references (references, caption, captions ...)"
        if wanted.side == "references"
        else "a caption (caption, candidate, prediction ...)"
    )
    found = f"has no captions under names that are known: {said}; looked for {looked}{_nearest(rows, names)}"
    return f"{found}. Other names are given with --columns"


def _nearest(rows: Sequence[Mapping[str, object]], names: set[str]) -> str:
    """Name the nearest shape and its missing keys; empty if none is near."""
    near = max(SHAPES, key=lambda shape: _nearness(shape, names))
    lacks = [key for key in near.keys.split() if not any(has_path(row, key) for row in rows)]
    if not lacks or not _nearness(near, names):
        return ""
    return f"; nearest is {near.name} ({near.rows}), which has {', '.join(lacks)}"


def _nearness(shape: Shape, names: set[str]) -> float:
    keys = shape.keys.split()
    return (
        sum(any(key.partition(".")[0] in names for key in part.split("|")) for part in keys) / len(keys) if keys else 0
    )
