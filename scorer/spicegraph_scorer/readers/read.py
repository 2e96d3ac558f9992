"""From files to items that can be scored, or one error that lists everything that stands against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_scorer.items import Item, ItemId
from spicegraph_scorer.readers.annotations import Annotations, read_annotations
from spicegraph_scorer.readers.checks import caption_faults, id_faults, label, reference_faults
from spicegraph_scorer.readers.faults import Fault, input_error, shown
from spicegraph_scorer.readers.records import Format, Record, read_records
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, Limits, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Dataset", "read_items", "read_references"]

_PARTIAL_HINT = "To score only the images that have a result, say so: --partial."


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items to score and where they come from.

    ``format`` names what the content showed, such as ``COCO results (zip)``; ``left_out`` counts the images
    of the references that have no candidate (only when that was asked for).
    """

    items: tuple[Item, ...]
    source: str
    format: str
    left_out: int = 0


def read_items(
    path: str, *, references: str | None = None, partial: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Dataset:
    """Read the items of a file; what the format is, its content says.

    Formats: the SPICE jar's ``[{"image_id", "test", "refs"}]``; COCO results ``[{"image_id", "caption"}]``
    with an annotations file; JSON Lines with ``image_id`` or ``id``, ``candidate``, ``caption`` or ``test``,
    and ``references`` or ``refs``; a zip that holds one such file.

    Args:
        path: the file, or ``-`` for standard input.
        references: COCO annotations that hold the references of every image.
        partial: leave out images of ``references`` that have no candidate, instead of refusing.
        limits: how much is read at most.

    Raises:
        InputError: the message lists every fault with item, field and reason (the first 50 and a count).
        LimitError: a file, a line or what a zip unpacks to is too large.

    Example:
        >>> read_items("results.json", references="captions_val2014.json", partial=True).format
        'COCO results'
    """
    with open_source(path, limits=limits) as source:
        found = read_records(source, limits=limits)
        name, zipped = source.name, source.zipped
    annotations = None
    if references is not None:
        with open_source(references, limits=limits) as source:
            annotations = read_annotations(source, limits=limits)
    collected = _Collected(found.format, annotations)
    items: list[Item] = []
    faults = [*found.faults, *collected.items(found.records, items)]
    missing = collected.missing()
    hint = ""
    if missing and not partial:
        faults += [
            Fault(f"image_id {shown(image_id)}", "", f"is in {references}, but has no result") for image_id in missing
        ]
        hint = _PARTIAL_HINT
    if not found.records and not faults:
        faults.append(Fault("", "", "holds no items"))
    if faults:
        raise input_error(name, faults, hint=hint)
    form = f"{found.format.name} (zip)" if zipped else found.format.name
    return Dataset(tuple(items), name, form, len(missing))


def read_references(path: str, *, limits: Limits = DEFAULT_LIMITS) -> Mapping[ItemId, tuple[str, ...]]:
    """Read COCO annotations: each image's captions, in the file's order.

    Raises:
        InputError: the file is something else, or captions are faulty; the message lists every fault.
        LimitError: it is larger than the limits.
    """
    with open_source(path, limits=limits) as source:
        return read_annotations(source, limits=limits).captions


class _Collected:
    """The ids seen so far and the rules by which a record of a format becomes an item."""

    def __init__(self, form: Format, annotations: Annotations | None) -> None:
        self._format = form
        self._annotations = annotations
        self._first: dict[ItemId, str] = {}

    def items(self, records: list[Record], items: list[Item]) -> Iterator[Fault]:
        """Append every sound record to ``items``, and yield the faults of the others."""
        for record in records:
            faults = list(self._read(record, items))
            yield from faults

    def missing(self) -> list[ItemId]:
        """Return the images that have references and no candidate, in the order of the references."""
        known = self._annotations.captions if self._annotations else {}
        return [image_id for image_id, captions in known.items() if captions and image_id not in self._first]

    def _read(self, record: Record, items: list[Item]) -> Iterator[Fault]:
        fields = record.fields
        key = _key(fields, self._format.ids)
        image_id = fields.get(key)
        reasons = list(id_faults(image_id)) if key in fields else ["is missing"]
        names: tuple[str, ...] = ()
        if reasons or not isinstance(image_id, int | str):
            yield from (Fault(record.place, key, reason) for reason in reasons)
            name = record.place
        else:
            name = label(record.place, image_id)
            names = self._names(image_id)
            earlier = self._first.setdefault(image_id, record.place)
            if earlier != record.place:
                yield Fault(name, key, f"is also the id of {earlier}")
        candidate_key = _key(fields, self._format.candidates)
        candidate = fields.get(candidate_key)
        wrong = list(caption_faults(candidate, names)) if candidate_key in fields else ["is missing"]
        yield from (Fault(name, candidate_key, reason) for reason in wrong)
        references: list[str] = []
        if not reasons and isinstance(image_id, int | str):
            reference_problems = list(self._references(fields, image_id, name, names, references))
            yield from reference_problems
            if not wrong and not reference_problems and isinstance(candidate, str):
                items.append(Item(image_id, candidate, tuple(references)))

    def _names(self, image_id: ItemId) -> tuple[str, ...]:
        return self._annotations.names(image_id) if self._annotations else (str(image_id),)

    def _references(
        self,
        fields: Mapping[str, object],
        image_id: ItemId,
        name: str,
        names: tuple[str, ...],
        found: list[str],
    ) -> Iterator[Fault]:
        """Add the item's references to ``found``, from its own record or from the annotations."""
        key = _key(fields, self._format.references) if self._format.references else ""
        if self._annotations is None:
            if key not in fields:
                yield Fault(name, key or "references", _no_references(self._format))
                return
            faults = [Fault(name, f"{key}{index}", reason) for index, reason in reference_faults(fields[key], names)]
            yield from faults
            value = fields[key]
            if not faults and isinstance(value, list):
                found.extend(value)
        elif key in fields:
            yield Fault(name, key, "stands in the file although --references gives the references")
        elif image_id not in self._annotations.captions:
            yield Fault(name, "image_id", _unknown(image_id, self._annotations))
        elif not self._annotations.captions[image_id]:
            yield Fault(name, "image_id", "has no reference caption")
        else:
            found.extend(self._annotations.captions[image_id])


def _key(fields: Mapping[str, object], keys: tuple[str, ...]) -> str:
    """Return the first of the keys that the record has, or the best of them."""
    return next((key for key in keys if key in fields), keys[0])


def _no_references(form: Format) -> str:
    if form.references:
        return "is missing (and no --references file is given)"
    return f"are missing: {form.name} need a COCO annotations file with --references"


def _unknown(image_id: ItemId, annotations: Annotations) -> str:
    """Say that an id is unknown, and whether only its type is wrong."""
    other: ItemId = str(image_id) if isinstance(image_id, int) else image_id
    if isinstance(image_id, str) and image_id.strip().isascii() and image_id.strip().isdigit():
        other = int(image_id)
    if other != image_id and other in annotations.captions:
        kinds = ("a number", "a string") if isinstance(other, int) else ("a string", "a number")
        return f"is not in the references, which have {shown(other)}: {kinds[0]}, not {kinds[1]}"
    return "is not in the references"
