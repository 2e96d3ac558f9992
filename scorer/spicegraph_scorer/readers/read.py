"""From files to items that can be scored, or one error that lists everything that stands against it."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from spicegraph_parser.errors import InputError, counted, expect
from spicegraph_scorer.core.items import CheckedItems, Item, ItemId
from spicegraph_scorer.readers.checks import (
    Empty,
    Fault,
    as_id,
    caption_faults,
    id_faults,
    label,
    minded_items,
    reference_faults,
    refuse_faults,
    shown,
    without_empty,
)
from spicegraph_scorer.readers.fields import Wanted
from spicegraph_scorer.readers.records import PLAIN_TEXT, Format, Record, Records, given_references, read_lines
from spicegraph_scorer.readers.references import Annotations, plain_captions, read_records, read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, ReadLimits, Source, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.readers.marks import ControlTokens
    from spicegraph_scorer.readers.shapes import Columns


_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_WHOLE: Final = re.compile(r"([0-9]{1,18})\.0+")
_ENDING: Final = re.compile(r"\.[A-Za-z]\w{1,4}$")
_PARTIAL_HINT = "To score only the images that have a result, say so: --partial."
_SEVERAL_HINT = "To score several candidates of an image, say how: --candidates best, each or set."

_WITHOUT_REFERENCES = "is missing (and no --references file is given)"
_HEAD: Final = 1_000  # Records whose ids show by what the images are called.
_LISTED: Final = 20  # Ids that are named one by one; of more, the number and some are said.
_SOME: Final = 3


class IdRule(StrEnum):
    """How ids of candidates and references are compared: as they are, by the last number, or by file names' stems."""

    GIVEN = "given"
    NUMBER = "number"
    STEM = "stem"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items to score and where they come from; as a collection, its items: ``score(read_items(path))``."""

    items: tuple[Item, ...]
    source: str
    format: str  # what the content showed, such as COCO results (zip)
    left_out: int = 0  # images of the references without a candidate, if that was allowed
    references: str = ""  # the format of the file of references, if there is one
    images: tuple[ItemId, ...] = ()  # of each item, if images may have several candidates: id#1, id#2 ...
    notes: tuple[str, ...] = ()  # what was left out or taken as equal
    tags: tuple[str, ...] = ()  # of each item, where the references have domains

    def __iter__(self) -> Iterator[Item]:
        """Yield the items."""
        return iter(self.items)

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.items)

    def __getitem__(self, place: int) -> Item:
        """Return an item by its place."""
        return self.items[place]

    def describe(self) -> Iterator[str]:
        """Yield how the file was read, its first item, and the notes."""
        items = counted(len(self.items), "item")
        images = f" of {counted(len(set(self.images)), 'image')}" if self.images else ""
        references = f"; references: {self.references}" if self.references else ""
        left_out = f"; {counted(self.left_out, 'image')} without a result left out" if self.left_out else ""
        first = self.items[0]
        against = f"{shown(first.candidate)} against {shown(first.references[0])}"
        more = f" and {len(first.references) - 1} more" if len(first.references) > 1 else ""
        shown_first = f"; first: id {first.id}, {against}{more}"
        yield f"{self.source}: {self.format}, {items}{images}{references}{left_out}{shown_first}"
        yield from self.notes


def read_items(
    path: str,
    *,
    references: str | Sequence[str] | None = None,
    partial: bool = False,
    several: bool = False,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    columns: Columns | None = None,
    ids: IdRule | str = IdRule.GIVEN,
    split: str | None = None,
    caption_language: str | None = None,
    drop_empty_references: bool = False,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Dataset:
    """Read the items of a file, whose content shows its shape: one of :data:`SHAPES`, or names that are known.

    Args:
        path: the file, a folder that ``datasets`` saved, or ``-`` for standard input.
        references: a file with the references of every image, or several, which add up; plain text belongs to plain
            text.
        partial: leave out images of ``references`` that have no candidate, instead of refusing.
        several: let an image have several candidates: a list of them, or several records of one id.
        empty: what is done with an empty candidate: ``refuse`` it, or keep it to be scored as ``zero``.
        control_tokens: what is done with captions that hold what models leave behind, such as ``<eos>``: ``refuse``
            the file, ``strip`` it off, or ``keep`` it to be scored as words.
        columns: where ids and captions are, if they do not have usual names; in JSON, paths
            such as ``doc.answer``.
        ids: ``number`` compares ids with those of the references by the last number in them, so that
            ``COCO_val2014_000000000143.jpg``, ``"143"`` and 143 are one image; ``stem`` by file names without folder
            and ending. Items have the references' ids.
        split: the split of the references whose images are scored; by default those that have the candidates' ids.
        caption_language: the language of captions that is read of files with several, such as ``zh``; by default
            English.
        drop_empty_references: drop empty references, with which lists of one length are padded.
        limits: how much is read at most.

    Raises:
        InputError: the message lists every fault with item, field and reason (the first 50 and a count).
        LimitError: a file, a line or what a zip unpacks to is too large.
        DataError: a Parquet file needs pyarrow, which is not installed.
    """
    expect(path, (str, PathLike), "path", "the path of a file")
    path, paths = fspath(path), _paths(references)
    wanted = Wanted("candidates" if paths else "both", columns, caption_language, drop_empty_references)
    with open_source(path, limits=limits) as source:
        records = _read_records(source, limits, wanted)
        name, packing = source.name, source.packing
        beside = replace(wanted, side="references")
        annotations = read_reference_files(paths, limits=limits, wanted=beside) if paths else None
        _check_pairing(name, records, annotations)
        collected = _Collected(
            records.format,
            annotations,
            several=several,
            empty=empty,
            ids=IdRule(ids),
            split=split,
            drop=drop_empty_references,
        )
        given_records = iter(records.records)
        head = list(islice(given_records, _HEAD))
        collected.find_names(head)
        wrong = list(chain.from_iterable(map(collected.add, chain(head, given_records))))
    form = records.format
    faults, hints, missing = _judged(collected, records, wrong, paths, partial=partial)
    items = CheckedItems(collected.found)
    if not faults:
        items = minded_items(items, faults, control_tokens, empty=empty)
    refuse_faults(name, faults, hint="\n".join(hints))
    beside_it = annotations or Annotations({}, {}, "")
    return Dataset(
        items,
        name,
        f"{form.name} ({packing})" if packing else form.name,
        len(missing),
        beside_it.format,
        tuple(collected.images) if several else (),
        (*(f"{name}: {note}" for note in (*form.notes, *collected.notes())), *beside_it.notes),
        tuple(beside_it.tags.get(image, "") for image in collected.images) if beside_it.tags else (),
    )


def _paths(references: str | Sequence[str] | None) -> tuple[str, ...]:
    given = (references,) if isinstance(references, str | PathLike) else references or ()
    expect(given, (list, tuple), "references", "the path of a file, or a list of paths")
    for path in given:
        expect(path, (str, PathLike), "references", "the path of a file, or a list of paths")
    return tuple(map(fspath, given))


def _missing_faults(
    missing: Sequence[ItemId], paths: Sequence[str], collected: _Collected, *, by_line: bool
) -> Iterator[Fault]:
    """Yield the images without a result; of very many, their number."""
    where = f"is in {', '.join(paths)}, but has no result"
    if len(missing) > _LISTED and (splits := collected.splits_of_ids()) and len(splits) > 1:
        counts = ", ".join(f"{split} ({count:,})" for split, count in splits.items())
        yield Fault(
            "", "", f"has ids of several splits: {counts}; which is meant? Say so: --split {next(iter(splits))}"
        )
    if len(missing) > _LISTED and (collected.unknown or len(missing) > len(collected.found)):
        some = ", ".join(map(shown, missing[:_SOME]))
        all_images = len(missing) + len(collected.found)
        yield Fault(
            "", "", f"{len(missing):,} of {all_images:,} images of {', '.join(paths)} have no result ({some} ...)"
        )
        return
    for image_id in missing:
        yield Fault(f"line {image_id}" if by_line else f"image_id {shown(image_id)}", "", where)


def items_of(
    records: Records, *, empty: Empty = "refuse", control_tokens: ControlTokens = "refuse"
) -> tuple[CheckedItems, list[Fault]]:
    """Return the items of records with references of their own, whose ids may repeat, and every fault of the others."""
    collected = _Collected(records.format, None, several=False, empty=empty, part=True)
    faults = list(records.faults)
    faults += [fault for record in records.records for fault in collected.add(record)]
    return minded_items(CheckedItems(collected.found), faults, control_tokens, empty=empty), faults


def _judged(
    collected: _Collected, records: Records, wrong: list[Fault], paths: Sequence[str], *, partial: bool
) -> tuple[list[Fault], list[str], list[ItemId]]:
    """Return all faults of a file, hints for its user, and the images of the references without a candidate."""
    form, faults = records.format, list(records.faults)
    if collected.records and not paths and not collected.has_references:  # said once, not for every item
        faults.append(_without_references(form))
        wrong = [fault for fault in wrong if fault.reason != _WITHOUT_REFERENCES]
    faults += [*wrong, *collected.unknown_faults(paths)]
    missing = collected.missing() if collected.records else []
    hints = [_SEVERAL_HINT] if collected.has_several else []
    if collected.unknown and (hint := collected.id_hint()):
        hints.append(hint)
    if missing and not partial:
        faults += _missing_faults(missing, paths, collected, by_line=form is PLAIN_TEXT)
        if not (collected.unknown and hints):
            hints.append(_PARTIAL_HINT)
    if not collected.records and not faults:
        faults.append(Fault("", "", "contains no items"))
    return faults, hints, missing


def _without_references(form: Format) -> Fault:
    beside_it = f"as {form.references[0]} of every item, or " if form.references else ""
    how = f"give them {beside_it}with --references FILE, such as COCO annotations"
    return Fault("", "", f"contains no references ({form.name}): {how}")


def read_references(path: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> Mapping[ItemId, tuple[str, ...]]:
    """Read references: each image's captions, in the file's order."""
    return read_reference_files([path], limits=limits).captions


def read_captions(
    path: str, *, is_one_text: bool = False, columns: Columns | None = None
) -> tuple[list[object], list[str]]:
    """Return the ids, if there are some, and the captions of a file of any shape; ``is_one_text``: it is a caption."""
    if is_one_text:
        return [], ["\n".join(read_lines(path)).strip()]
    with open_source(path) as source:
        wanted = Wanted("candidates", columns)
        records = read_records(source, limits=DEFAULT_LIMITS, wanted=wanted)
        if records is None:
            faults: list[Fault] = []
            texts = plain_captions(source, faults, limits=DEFAULT_LIMITS, wanted=wanted)
            refuse_faults(source.name, faults)
            return [], texts
        rows = list(records.records)
    form, faults = records.format, records.faults
    ids: list[object] = []
    captions: list[str] = []
    for place, fields in rows:
        key = _key(fields, form.candidates)
        value = fields.get(key)
        for caption in value if isinstance(value, list) else [value]:
            reasons = list(caption_faults(caption, empty="zero")) if key in fields else ["is missing"]
            faults += [Fault(place, key, reason) for reason in reasons]
            ids.append(fields.get(_key(fields, form.ids)))
            captions.append(str(caption))
    refuse_faults(source.name, faults)
    return (ids if any(image is not None for image in ids) else []), captions


class ReadOptions(TypedDict, total=False):
    """The arguments of :func:`read_items` but the file."""

    references: str | Sequence[str] | None
    partial: bool
    several: bool
    empty: Empty
    control_tokens: ControlTokens
    columns: Columns | None
    ids: IdRule | str
    split: str | None
    caption_language: str | None
    drop_empty_references: bool
    limits: ReadLimits


def read(path: str, **options: Unpack[ReadOptions]) -> Dataset:
    """Read a file as :func:`read_items` does, and issue its notes as warnings.

    What is returned is the items, for ``score`` and ``report``; ``.format`` says what the file was taken for.
    """
    dataset = read_items(path, **options)
    for note in dataset.notes:
        warnings.warn(note, stacklevel=2)
    return dataset


def _read_records(source: Source, limits: ReadLimits, wanted: Wanted) -> Records:
    """Read the records of a file in the shape that its content shows."""
    known = read_records(source, limits=limits, wanted=wanted)
    if known is not None:
        return known
    faults: list[Fault] = []
    records = [
        Record(f"line {number}", {"line": number, "caption": line})
        for number, line in enumerate(plain_captions(source, faults, limits=limits, wanted=wanted), start=1)
    ]
    if not any(str(record.fields["caption"]).strip() for record in records) and not faults:
        raise InputError(f"{source.name}: is empty")
    return Records(PLAIN_TEXT, records, faults)


def _check_pairing(name: str, records: Records, annotations: Annotations | None) -> None:
    """Refuse unknown formats, and captions and references of which only one has ids."""
    form = records.format
    if form is PLAIN_TEXT and records.faults and (annotations is None or not annotations.by_line):
        raise InputError(
            f"{name}: is not JSON, Parquet, a table with known columns or plain text ({records.faults[0]})"
        )
    if form is PLAIN_TEXT and annotations is None:
        raise InputError(
            f"{name}: is not JSON, Parquet or a table with known columns; as plain text, one caption per line, it "
            "needs --references FILE with a line for each caption (several files: several references), and a table "
            "with other names needs --columns"
        )
    if annotations is not None and (form is PLAIN_TEXT) != annotations.by_line:
        raise InputError(f"{name}: is {form.name}, which can't be paired with {annotations.format} as references")


class _Collected:
    """The items found so far, and the rules by which a record of a format becomes items."""

    def __init__(
        self,
        form: Format,
        annotations: Annotations | None,
        *,
        several: bool,
        part: bool = False,
        empty: Empty = "refuse",
        ids: IdRule = IdRule.GIVEN,
        split: str | None = None,
        drop: bool = False,
    ) -> None:
        self.unknown: list[tuple[str, ItemId]] = []  # the place, and the id
        self.found: list[Item] = []
        self.images: list[ItemId] = []
        self.records = 0
        self.has_several = False
        self.has_references = False
        self.said: Counter[str] = Counter()  # what must be said, and how often
        self._format = form
        self._annotations = annotations
        self._several = several
        self._part = part
        self._empty: Empty = empty
        self._drop = drop
        self._first: dict[ItemId, tuple[str, int]] = {}  # the place, and the number of the item
        self._candidates: dict[ItemId, int] = {}
        self._names: Mapping[object, ItemId] = {}  # of images, by what the candidates call them
        self._name_of = _RULES.get(ids)
        if annotations and self._name_of:
            self._names = _by(self._name_of, annotations.captions)
        self._split = None if split is None or annotations is None else annotations.split_named(split)

    def find_names(self, head: Sequence[Record]) -> None:
        """Detect whether the first records identify images by an alias instead of their ids."""
        if self._annotations is None or self._name_of is not None:
            return
        given = (as_id(record.fields.get(_key(record.fields, self._format.ids))) for record in head)
        ids = [image for image in given if isinstance(image, int | str)]
        known = self._annotations.captions
        if any(image in known or _other(image) in known for image in ids):
            return
        for key, names in self._annotations.aliases.items():
            if all(names.get(image) or names.get(_other(image)) for image in ids):
                self._names, self._name_of = names, _as_written
                self.said[f"the ids are what the references have as {key}"] += 1
                return

    def add(self, record: Record) -> Iterator[Fault]:
        """Keep the items of a sound record, and yield the faults of another."""
        place, fields = record
        self.records += 1
        self.has_references |= any(key in fields for key in self._format.references)
        id_key = _key(fields, self._format.ids)
        given = as_id(fields.get(id_key))
        reasons = list(id_faults(given)) if id_key in fields else ["is missing"]
        faults = [Fault(place, id_key, reason) for reason in reasons]
        name = place
        names: tuple[str, ...] = ()
        image_id: ItemId | None = None
        if not reasons and isinstance(given, int | str):
            image_id = self._known(given)
            if self._format is not PLAIN_TEXT:
                name = label(place, image_id)
                names = self._annotations.names(image_id) if self._annotations else (str(image_id),)
            faults += (Fault(name, id_key, reason) for reason in self._other_type(image_id))
        candidates = list(self._read_candidates(fields, name, names, faults))
        if image_id is not None:
            references = self._references(fields, image_id, name, names, faults)
            if self._is_repeated(image_id, place, candidates, references):
                which = f", as {shown(given)} is image {shown(image_id)}" if given != image_id else ""
                faults.append(Fault(name, id_key, f"is also the id of {self._first[image_id][0]}{which}"))
            if references is not None and not faults:
                self._keep(image_id, candidates, references)
        yield from faults

    def _other_type(self, image_id: ItemId) -> Iterator[str]:
        """Say that an id is a number here and a string in an earlier record, or the reverse, if it is."""
        other = _other(image_id)
        if other in self._first and str(other) == str(image_id) and not self._part:
            kinds = ("a number", "a string") if isinstance(image_id, int) else ("a string", "a number")
            yield f"is {kinds[0]} here, and {kinds[1]} in {self._first[other][0]}"

    def _keep(self, image_id: ItemId, candidates: Iterable[str], references: tuple[str, ...]) -> None:
        for candidate in candidates:
            number = self._candidates[image_id] = self._candidates.get(image_id, 0) + 1
            if number > 1 and not (self._several or self._part):
                return  # the same once more
            item_id = f"{image_id}#{number}" if self._several else image_id
            self.found.append(Item(item_id, candidate, references))
            self.images.append(image_id)

    def _is_repeated(
        self, image_id: ItemId, place: str, candidates: Sequence[str], references: tuple[str, ...] | None
    ) -> bool:
        """Say whether an id is that of another record, which is not the same."""
        earlier, number = self._first.setdefault(image_id, (place, len(self.found)))
        if earlier == place or self._several or self._part:
            return False
        item = self.found[number] if number < len(self.found) else None
        if (
            item is not None
            and item.id == image_id
            and [item.candidate] == candidates
            and item.references == references
        ):
            self.said["duplicate records: one of each is read"] += 1
            return False
        self.has_several = True
        return True

    def missing(self) -> list[ItemId]:
        """Return the images that have references and no candidate, of the splits that the candidates are of."""
        if self._annotations is None:
            return []
        known, splits = self._annotations.captions, self._annotations.splits
        images = [image_id for image_id, captions in known.items() if captions and image_id not in self._first]
        if not splits:
            return images
        wanted = {self._split} if self._split else {*self.splits_of_ids(), ""}
        inner = [image_id for image_id in images if splits.get(image_id, "") in wanted]
        if len(inner) < len(images):
            names = ", ".join(sorted(filter(None, wanted)))
            self.said[f"the references of the split {names} are read"] += 1
        return inner

    def splits_of_ids(self) -> Counter[str]:
        """Return the splits of the images that have candidates, and how many of each."""
        splits = self._annotations.splits if self._annotations else {}
        return Counter(splits[image] for image in self._first if image in splits)

    def notes(self) -> list[str]:
        """Return the notes on ids taken as equal and records left out."""
        return [
            text if count == 1 and text.startswith("the ") else f"{count:,} {text}" for text, count in self.said.items()
        ]

    def unknown_faults(self, paths: Sequence[str]) -> Iterator[Fault]:
        """Yield the ids that are not in the references; of very many, their number."""
        known = self._annotations.captions if self._annotations else {}
        if len(self.unknown) > _LISTED:
            some = ", ".join(shown(image_id) for _, image_id in self.unknown[:_SOME])
            of = _set_name(self._annotations, paths) if self._annotations else ""
            theirs = ", ".join(map(shown, islice(known, _SOME)))
            reason = f"{len(self.unknown):,} of {self.records:,} ids are not in the references{of}: {some} ..."
            reason += f"; these have {theirs} ..."
            yield Fault("", self._format.ids[0], reason)
            return
        for name, image_id in self.unknown:
            split = self._annotations.splits.get(image_id) if self._annotations else None
            reason = f"is of the split {split}, not {self._split}" if image_id in known else "is not in the references"
            yield Fault(name, self._format.ids[0], reason)

    def id_hint(self) -> str:
        """Return the option by which the ids that are not in the references are in them, if one does that for all."""
        known = self._annotations.captions if self._annotations else {}
        for rule, name_of in _RULES.items():
            names = _by(name_of, known)
            if all(name_of(image_id) in names for _, image_id in self.unknown):
                return _HINTS[rule]
        return ""

    def _known(self, image_id: ItemId) -> ItemId:
        """Return the id as the references write it: by its rule, by another name of the image, or in its other type."""
        if self._annotations is None or image_id in self._annotations.captions:
            return image_id
        if self._name_of is not None:
            name = self._name_of(image_id)
            if found := self._names.get(name, self._names.get(_other(image_id))):
                return found
        other = _other(image_id)
        if other is None or other not in self._annotations.captions:
            return image_id
        if self._format.typed and self._annotations.typed:
            kinds = ("numbers", "strings") if isinstance(image_id, int) else ("strings", "numbers")
            self.said[f"ids are {kinds[0]} here and {kinds[1]} in the references: taken as equal"] += 1
        return other

    def _read_candidates(
        self, fields: Mapping[str, object], name: str, names: tuple[str, ...], faults: list[Fault]
    ) -> Iterator[str]:
        """Yield the sound candidates of a record, and add what is wrong with the others."""
        key = _key(fields, self._format.candidates)
        value = fields.get(key)
        is_list = isinstance(value, list) and value and (self._several or key != _OF_SPICE)
        listed = value if is_list and isinstance(value, list) else None
        if listed is not None and len(listed) > 1 and not self._several:
            self.has_several = True
            faults.append(Fault(name, key, f"holds {len(listed)} captions, expected one"))
            return
        for index, candidate in enumerate([value] if listed is None else listed):
            wrong = list(caption_faults(candidate, names, empty=self._empty)) if key in fields else ["is missing"]
            faults += [Fault(name, key if listed is None else f"{key}[{index}]", reason) for reason in wrong]
            if isinstance(candidate, str):
                yield candidate

    def _references(
        self, fields: Mapping[str, object], image_id: ItemId, name: str, names: tuple[str, ...], faults: list[Fault]
    ) -> tuple[str, ...] | None:
        """Return the item's references, from its own record or from the annotations; ``None``: it is left out."""
        key = _key(fields, self._format.references) if self._format.references else ""
        if self._annotations is None:
            if key not in fields:
                faults.append(Fault(name, key or "references", _WITHOUT_REFERENCES))
                return ()
            value = self._own_references(key, fields[key])
            faults += [Fault(name, f"{key}{index}", reason) for index, reason in reference_faults(value, names)]
            return tuple(value) if isinstance(value, list) else ()
        known = self._annotations.captions
        if key in fields and not self._format.soft:
            faults.append(Fault(name, key, "is in the file although --references gives the references"))
        elif key in fields:
            self.said[f"records with {key} of their own: those of --references are taken"] += 1
        if image_id not in known or (self._split and self._annotations.splits.get(image_id) != self._split):
            self.unknown.append((name, image_id))
            return None
        if not known[image_id] and image_id in self._annotations.left_out:
            self.said["images left out, whose captions are all left out"] += 1
            return None
        if not known[image_id]:
            faults.append(Fault(name, self._format.ids[0], "has no reference caption"))
        return known[image_id]

    def _own_references(self, key: str, given: object) -> object:
        """Return the references of a record, a single text as a list; empty ones are dropped if that is wanted."""
        value = given_references(key, given)
        if isinstance(value, str) and key != _REFS_OF_SPICE:
            value = [value]
        value, dropped = without_empty(value, drop=self._drop)
        if dropped:
            self.said["empty references dropped"] += dropped
        return value


_OF_SPICE: Final = "test"
_REFS_OF_SPICE: Final = "refs"


_SET: Final = re.compile(r"(?:train|val|test|dev|restval)(?:idation|ing)?[_-]?(?:20\d\d)?", re.IGNORECASE)


def _set_name(annotations: Annotations, paths: Sequence[str]) -> str:
    """Return which set the references are of, as far as names say it."""
    splits = sorted(set(annotations.splits.values()))
    names = [*islice(annotations.file_names.values(), 1), *(PurePath(path).name for path in paths)]
    found = [match[0] for name in names if (match := _SET.search(name))]
    of = ", ".join(splits) if splits else found[0] if found else ""
    return f", which are of {of}" if of else ""


def _key(fields: Mapping[str, object], keys: tuple[str, ...]) -> str:
    """Return the first of the keys that the record has, or the best of them."""
    return next((key for key in keys if key in fields), keys[0])


def _other(image_id: ItemId) -> ItemId | None:
    """Return an id in its other type: a number as a string, or a string of digits as a number."""
    if isinstance(image_id, int):
        return str(image_id)
    return int(image_id) if image_id.strip().isascii() and image_id.strip().isdigit() else None


def number_in(image_id: ItemId) -> int | None:
    """Return the number that an id is, or the last one in it, before the ending of a file's name."""
    if isinstance(image_id, int):
        return image_id
    if whole := _WHOLE.fullmatch(image_id.strip()):
        return int(whole[1])
    numbers = _DIGITS.findall(_ENDING.sub("", image_id))
    return int(numbers[-1]) if numbers else None


def _stem(image_id: ItemId) -> str:
    return _ENDING.sub("", str(image_id).replace("\\", "/").rpartition("/")[2])


def _as_written(image_id: ItemId) -> ItemId:
    return image_id


_RULES: Final[Mapping[IdRule, Callable[[ItemId], ItemId | None]]] = {IdRule.STEM: _stem, IdRule.NUMBER: number_in}
_HINTS: Final = {
    IdRule.STEM: "The ids are the same as file names without folder and ending: to take a/1.jpg and 1 for one image, "
    "say so: --ids stem.",
    IdRule.NUMBER: 'The ids are the same as numbers: to take COCO_val2014_000000000143.jpg, "143" and 143 for one '
    "image, say so: --ids number.",
}


def _by(name_of: Callable[[ItemId], ItemId | None], images: Iterable[ItemId]) -> dict[object, ItemId]:
    """Index ids by the name a function gives; ambiguous and unnamed ids are dropped."""
    names: dict[object, ItemId] = {}
    twice: set[object] = {None}
    for image_id in images:
        name = name_of(image_id)
        if name in names:
            twice.add(name)
        names[name] = image_id
    return {name: image_id for name, image_id in names.items() if name not in twice}
