"""A submitted file, untrusted: sound results by split, or every fault of the file.

It is read in a process of its own, whose memory and time are bounded; even so nothing is decoded before its size and
its number of values are known to be those of results for the challenge's images.
"""

from __future__ import annotations

import json
import re
import stat
import zipfile
import zlib
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.sandbox.files import FaultRow, Image
from spicegraph_scorer.core.items import CheckedItems, Item
from spicegraph_scorer.readers.checks import Empty, caption_faults, id_faults, label, shown
from spicegraph_scorer.readers.marks import ControlTokens, mind_marks

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from spicegraph_api.challenge.v1 import challenge_pb2 as pb

_ZIP_MAGIC = b"PK"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstandard"}
_MEMBERS = 100
_RATIO = 200
_SMALL = 1 << 20  # bytes; less is never called a bomb
_BYTES_PER_IMAGE = 1_024
_VALUES_PER_IMAGE = 60
_SPARE_VALUES = 10_000
_MOST_FAULTS = 200_000
_ENCRYPTED = 1
_LONGEST_METHOD = 100
_FEW_IMAGES = 10  # of which most may well have the same caption
_NO_LETTERS = re.compile(r"[\W\d_]+")
_IGNORED_ROOTS = frozenset({"__MACOSX"})

Id: TypeAlias = int | str
Images: TypeAlias = "Mapping[Id, Image]"


class _RefusedError(Exception):
    """A file, or a file in a zip, is refused whole."""


def split_images(reference_sets: Iterable[Iterable[Image]]) -> dict[Id, Image]:
    """Put the images of all reference sets of a split together; those with references need a result."""
    together: dict[Id, Image] = {}
    for images in reference_sets:
        for image in images:
            known = together.get(image.id, image)
            references = image.references if known is image else known.references + image.references
            together[image.id] = known._replace(references=references)
    return together


def method_of(file_name: str, splits: Iterable[str]) -> tuple[str, str] | None:
    """Return split and method of a name in COCO's form, ``captions_SPLIT_METHOD_results.json``; else ``None``."""
    base = PurePosixPath(file_name.replace("\\", "/")).name
    for split in sorted(splits, key=len, reverse=True):
        start, end = f"captions_{split}_", "_results.json"
        if base.startswith(start) and base.endswith(end) and len(base) > len(start) + len(end):
            return split, base[len(start) : -len(end)][:_LONGEST_METHOD]
    return None


def read_submission(
    path: str,
    file_name: str,
    split: str,
    splits: Mapping[str, Images],
    settings: pb.ChallengeSettings,
    *,
    caption_characters: int = 2_000,
) -> tuple[dict[str, dict[Id, str]], list[FaultRow]]:
    """Return a submitted file's captions by split and image, and its faults: with a fault, no caption counts."""
    empty: Empty = "zero" if settings.empty == scores_pb2.EMPTY_CANDIDATES_ZERO else "refuse"
    results: dict[str, dict[Id, str]] = {}
    faults: list[FaultRow] = []
    try:
        images = max(map(len, splits.values()), default=0)
        contents = _contents(path, file_name, _SMALL + _BYTES_PER_IMAGE * images)
        for file, data in contents:
            name = _split_of(file, split, splits, results)
            captions = results[name] = {}
            of_file = list(_read(file, data, splits[name], captions, longest=caption_characters, empty=empty))
            rule = _RULES.get(settings.control_tokens, "refuse")
            of_file = of_file or list(_mind_marks(file, captions, rule, splits[name], empty=empty))
            faults += of_file or _equal_faults(file, captions, settings)
    except _RefusedError as refused:
        faults.append(FaultRow(file_name, "", "", str(refused)))
    return results, faults[:_MOST_FAULTS]


_RULES: Final[Mapping[int, ControlTokens]] = {
    scores_pb2.CONTROL_TOKENS_STRIP: "strip",
    scores_pb2.CONTROL_TOKENS_KEEP: "keep",
}


def _mind_marks(
    file: str, captions: dict[Id, str], rule: ControlTokens, names: Mapping[Id, Image], *, empty: Empty
) -> Iterator[FaultRow]:
    """Strip model markers from sound captions, as the rule says, and yield the faults."""
    items = CheckedItems(Item(image_id, text, ()) for image_id, text in captions.items())
    minded, reason = mind_marks(items, rule, remedy="take them off, and submit again")
    if reason:
        yield FaultRow(file, "", "caption", reason)
    for item, before in zip(minded, items, strict=True):
        if item is not before:
            captions[item.id] = item.candidate
            for fault in caption_faults(item.candidate, (str(item.id), names[item.id].file_name), empty=empty):
                yield FaultRow(file, label("without control tokens", item.id), "caption", fault)


def _split_of(name: str, given: str, splits: Mapping[str, Images], taken: Container[str]) -> str:
    """Return the split of a file: the given one, or by its name, or the only one that the challenge has."""
    named = method_of(name, splits)
    if given:
        split = given
    elif named is not None:
        split = named[0]
    elif len(splits) == 1 and PurePosixPath(name).suffix == ".json":
        split = next(iter(splits))
    else:
        wanted = " or ".join(f"captions_{split}_METHOD_results.json" for split in splits)
        raise _RefusedError(f"the name {shown(name)} names no split of this challenge: choose one, or call it {wanted}")
    if split in taken:
        raise _RefusedError(f"holds several files of the split {split!a}")
    return split


def _contents(path: str, file_name: str, largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of the JSON files of a submission; a sound one is not larger than so many bytes."""
    with open(path, "rb") as stream:  # noqa: PTH123 (zipfile wants the stream)
        start = stream.read(8)
        stream.seek(0)
        if start.startswith(_ZIP_MAGIC):
            try:
                archive = zipfile.ZipFile(stream)
            except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, OSError, ValueError) as error:
                raise _RefusedError("is a damaged zip") from error
            yield from _members(archive, largest)
            return
        for magic, kind in _OTHER_MAGIC.items():
            if start.startswith(magic):
                raise _RefusedError(f"is compressed with {kind}; send JSON or a zip")
        data = stream.read(largest + 1)
    if len(data) > largest:
        raise _RefusedError(f"is larger than {largest:,} bytes, which no results for this challenge need")
    yield file_name, data


def _members(archive: zipfile.ZipFile, largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a zip, after a look at the names and sizes of all."""
    with archive:
        members = archive.infolist()
        if len(members) > _MEMBERS:
            raise _RefusedError(f"holds {len(members):,} files, the limit is {_MEMBERS}")
        for member in members:
            _check_member(member, largest)
        paths = [(member, PurePosixPath(member.filename)) for member in members if not member.is_dir()]
        wanted = [
            member for member, path in paths if path.parts[0] not in _IGNORED_ROOTS and not path.name.startswith(".")
        ]
        if not wanted:
            raise _RefusedError("is a zip without a file in it")
        for member in wanted:
            yield member.filename, _unpacked(archive, member)


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member, and not one more than the table of contents says."""
    try:
        with archive.open(member) as stream:
            data = stream.read(member.file_size + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise _RefusedError(f"its member {shown(member.filename)} is damaged") from error
    if len(data) != member.file_size:
        raise _RefusedError(f"its member {shown(member.filename)} is not as large as the zip says")
    return data


def _check_member(member: zipfile.ZipInfo, largest: int) -> None:
    name = member.filename
    where = f"its member {shown(name)}"
    if not name.strip("/"):
        raise _RefusedError("has a member without a name")
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":":
        raise _RefusedError(f"{where} has a path that leads out of the zip")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise _RefusedError(f"{where} is a link, not a file")
    if member.flag_bits & _ENCRYPTED:
        raise _RefusedError(f"{where} is encrypted")
    if member.file_size > largest:
        raise _RefusedError(
            f"{where} unpacks to {member.file_size:,} bytes; no results for this challenge need more than {largest:,}"
        )
    if member.file_size > max(_SMALL, _RATIO * member.compress_size):
        raise _RefusedError(f"{where} unpacks to more than {_RATIO} times its size")


class _RepeatedKeyObject(dict[str, object]):
    """An object of JSON in which a key stands twice; ``key`` is the first such key."""

    key = ""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    repeated = _RepeatedKeyObject(value)
    repeated.key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return repeated


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _decoded(data: bytes, images: Images) -> list[object]:
    """Return the list that a results file is, if it has no more values than results may have."""
    most = _SPARE_VALUES + _VALUES_PER_IMAGE * len(images)
    # Every value of JSON follows one of these; in captions they only make the count larger.
    values = sum(map(data.count, (b",", b":", b"[", b"{")))
    if values > most:
        raise _RefusedError(f"holds about {values:,} values; no results for this challenge need more than {most:,}")
    try:
        text = data.removeprefix(_BYTE_ORDER_MARK).decode()
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise _RefusedError(f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except RecursionError as error:
        raise _RefusedError("is JSON nested too deeply") from error
    except json.JSONDecodeError as error:
        raise _RefusedError(f"is not JSON ({error.msg}, line {error.lineno}, column {error.colno})") from error
    except ValueError as error:
        raise _RefusedError(f"is not JSON ({error})") from error
    if not isinstance(value, list):
        raise _RefusedError('is not a list; expected [{"image_id": ..., "caption": ...}, ...]')
    return value


def _read(
    file: str, data: bytes, images: Images, captions: dict[Id, str], *, longest: int, empty: Empty
) -> Iterator[FaultRow]:
    """Put the sound captions of a file among ``captions``, and yield every fault."""
    try:
        records = _decoded(data, images)
    except _RefusedError as refused:
        yield FaultRow(file, "", "", str(refused))
        return
    first: dict[Id, int] = {}
    for index, record in enumerate(records, start=1):
        for item, field, reason in _record_faults(index, record, images, first, captions, longest=longest, empty=empty):
            yield FaultRow(file, item, field, reason)
    for image_id, image in images.items():
        if image.references and image_id not in first:
            yield FaultRow(file, f"image_id {shown(image_id)}", "", "has no result")


def _equal_faults(name: str, results: Mapping[Id, str], settings: pb.ChallengeSettings) -> Iterator[FaultRow]:
    """Yield faults where captions are too much alike: scores of such files are sums over chosen images."""
    if len(results) <= _FEW_IMAGES:
        return
    letters = Counter(_NO_LETTERS.sub(" ", caption).strip().casefold() for caption in results.values())
    ((caption, count),) = letters.most_common(1)
    if 100 * len(letters) < settings.different_percent * len(results):
        reason = f"{len(letters):,} captions for {len(results):,} images are different; at least "
        yield FaultRow(name, "", "caption", f"{reason}{settings.different_percent} % of the images must have one")
    if 100 * count > settings.equal_percent * len(results):
        kind = f"the caption {shown(caption)}" if caption else "captions without letters"
        reason = (
            f"{count:,} of {len(results):,} images have {kind}; at most {settings.equal_percent} % may have the same"
        )
        yield FaultRow(name, "", "caption", reason)


def _record_faults(
    index: int,
    record: object,
    images: Images,
    first: dict[Id, int],
    captions: dict[Id, str],
    *,
    longest: int,
    empty: Empty,
) -> Iterator[tuple[str, str, str]]:
    """Yield the faults of a record as (item, field, reason); keep its caption if it has none."""
    item = f"item {index}"
    if not isinstance(record, dict):
        yield item, "", f"is {shown(record)}, expected an object"
        return
    if isinstance(record, _RepeatedKeyObject):
        yield item, shown(record.key).strip("'"), "appears twice in the object"
        return
    image: Image | None = None
    image_id = record.get("image_id")
    problems = list(id_faults(image_id)) if "image_id" in record else ["is missing"]
    if not problems and isinstance(image_id, int | str):
        item = label(item, image_id)
        image = images.get(image_id)
        problems = list(_known_faults(image_id, index, images, first))
    caption = record.get("caption")
    wrong = ["is missing"]
    if "caption" in record:
        wrong = list(_caption_faults(caption, image, longest=longest, empty=empty))
    yield from ((item, "image_id", reason) for reason in problems)
    yield from ((item, "caption", reason) for reason in wrong)
    if not problems and not wrong and isinstance(image_id, int | str) and isinstance(caption, str):
        captions[image_id] = caption


def _caption_faults(caption: object, image: Image | None, *, longest: int, empty: Empty) -> Iterator[str]:
    """Yield what is wrong with a caption: that it is too long, only where nothing else is."""
    names = () if image is None else (str(image.id), *([image.file_name] if image.file_name else []))
    faults = list(caption_faults(caption, names, empty=empty))
    if not faults and isinstance(caption, str) and len(caption) > longest:
        faults = [f"has {len(caption):,} characters, the limit is {longest:,}"]
    yield from faults


def _known_faults(image_id: Id, index: int, images: Images, first: dict[Id, int]) -> Iterator[str]:
    if image_id not in images:
        other: Id | None = str(image_id)
        if isinstance(image_id, str):
            other = int(image_id) if image_id.isascii() and image_id.isdigit() and len(image_id) < 19 else None
        hint = f"; it has {shown(other)}" if other in images else ""
        yield f"is not an image of this split{hint}"
    earlier = first.setdefault(image_id, index)
    if earlier != index:
        yield f"is also the id of item {earlier}"
