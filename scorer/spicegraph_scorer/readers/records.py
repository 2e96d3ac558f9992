"""What files are made of: records, lines of text and values of JSON, and what is wrong with those that are none."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers.checks import CAPTION_FAULTS, Fault, refuse_faults, shown
from spicegraph_scorer.readers.printed import may_be_printed, parse_printed
from spicegraph_scorer.readers.shapes import captions_of
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, ReadLimits, Source, open_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId


@dataclass(frozen=True, slots=True)
class Format:
    """How the records of a file are read: its name, and the keys under which their fields may stand, best first."""

    name: str
    ids: tuple[str, ...]
    candidates: tuple[str, ...]
    references: tuple[str, ...]
    typed: bool = True  # False: every id is text, and the same image as a number and as a string
    soft: bool = False  # references of other files may replace those of this one
    aliases: tuple[str, ...] = ()  # what else the images are called by
    split: str = ""  # where the split stands
    joined: bool = False  # the captions of an image are parts of one text
    notes: list[str] = field(default_factory=list, compare=False)  # what must be said; all there after the records
    left_out: set[object] = field(default_factory=set, compare=False)  # the images of captions that were left out
    images: Iterable[tuple[str, object]] | None = None  # what the file tells of images, each with its place


FACTS = "facts"  # The field of references that are atomic facts.

JSON_LINES = Format(
    "JSON Lines", ("image_id", "id"), ("candidate", "caption", "test", "candidates"), ("references", "refs", "facts")
)
PLAIN_TEXT = Format("plain text", ("line",), ("caption",), ())

_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})(?:\.0+)?", re.ASCII)


class Record(NamedTuple):
    """An item as it stands in the file: its place (``item 3``, ``line 3``) and its fields."""

    place: str
    fields: Mapping[str, object]


class Records(NamedTuple):
    """A file's format, its records, and the faults of invalid records."""

    # Records may be read from the open file while they are asked for, once; the faults are all there only then.

    format: Format
    records: Iterable[Record]
    faults: list[Fault]


_BULLET = re.compile(r"(?:[-*\u2022]|\d+[.)])(?:\s+|$)")
_BETWEEN = "&&"  # What ms-swift writes between the references of an image.


def given_references(key: str, value: object) -> object:
    """Return the references of a field: a text may print a list of them, or, of ``facts``, have one on each line."""
    if isinstance(value, list):
        if not any(isinstance(part, str) and may_be_printed(part) for part in value):
            return value
        parts = [parse_printed(part) if isinstance(part, str) else part for part in value]
        return [text for part in parts for text in (part if isinstance(part, list) else [part])]
    if not isinstance(value, str):
        return value
    if may_be_printed(value) and (parsed := parse_printed(value)) is not value:
        return captions_of(parsed) or parsed
    if key == FACTS:
        lines = (_BULLET.sub("", line.strip(), count=1) for line in value.splitlines())
        return [line for line in lines if line]
    return [part.strip() for part in value.split(_BETWEEN)] if _BETWEEN in value else value


def untyped_id(text: str) -> ItemId:
    """Return the id that a text stands for: an integer where it is written as one, or as ``9.0``."""
    match = _INTEGER.fullmatch(text)
    return int(match[1]) if match else text


def read_all(source: Source, *, limits: ReadLimits, start: bytes = b"") -> bytes:
    """Read the rest of a file, after ``start``; refuse an empty file."""
    content = source.content(limits)
    content = start + content if start else content
    if not content or content.isspace():
        raise InputError(f"{source.name}: is empty")
    return content


def decode(content: bytes | msgspec.Raw) -> tuple[object, str]:
    """Return the JSON value of some bytes, or the reason why they have none; no object has a key twice."""
    written = bytes(content)
    try:
        value: object = msgspec.json.decode(written)
    except RecursionError:
        return None, "is JSON nested too deeply"
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None, why_not(written)
    count = written.count(_KEY)
    if (
        count != (len(value) if type(value) is dict else 0)
        and count != _keys_in(value)
        and (key := repeated_key(written)) is not None
    ):
        return None, f"has the key {shown(key)} twice"
    return value, ""


_KEY = b'":'


def _keys_in(value: object) -> int:
    if type(value) is dict:
        count = len(value)
        for below in value.values():
            if type(below) is dict or (type(below) is list and below and type(below[0]) is not str):
                count += _keys_in(below)
        return count
    return sum(map(_keys_in, value)) if type(value) is list else 0


def repeated_key(content: bytes) -> str | None:
    """Return the first key that an object of some JSON has twice."""
    found: list[str] = []

    def pairs(given: list[tuple[str, object]]) -> None:
        if len(keys := {key for key, _ in given}) != len(given) and not found:
            found.append(next(key for key, _ in given if key not in keys or keys.remove(key)))  # type: ignore[func-returns-value]

    with suppress(ValueError, RecursionError):
        json.loads(content, object_pairs_hook=pairs)
    return found[0] if found else None


_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"|-?\b(?:NaN|Infinity|None|True|False)\b', re.DOTALL)
_HALF = re.compile(r"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|[c-fC-F][0-9a-fA-F]{2})")
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def why_not(content: bytes) -> str:
    """Say why some bytes are not JSON: what is wrong, in which line, column and entry."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        return not_utf8(content, error)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        what, place = _syntax(text, error)
    except RecursionError:
        return "is JSON nested too deeply"
    except ValueError as error:  # a number with too many digits
        return f"is not JSON ({error})"
    else:
        what, place = _no_json(text)
    return f"is not JSON ({what}, {_where(text, place)})"


def _syntax(text: str, error: json.JSONDecodeError) -> tuple[str, int]:
    """Return what is wrong where Python's reader stops, and the place."""
    place = error.pos
    before = text[:place].rstrip()
    if place >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return "it ends too early: is the file cut off?", place
    if error.msg == "Extra data":
        return "several values follow one another: write one on each line, or one list", place
    character = text[place]
    if character == "'" or ((word := _TOKENS.match(text, place)) and word[0] in {"None", "True", "False"}):
        return "single quotes or words of Python, as print writes them: write the file with json.dumps", place
    if "trailing comma" in error.msg.lower() or (before.endswith(",") and character in "]}"):
        return "a comma before the end of a list or an object", before.rindex(",")
    return error.msg[:1].lower() + error.msg[1:], place


def _no_json(text: str) -> tuple[str, int]:
    """Return what is wrong with a text that Python takes for JSON, and where."""
    for token in _TOKENS.finditer(text):
        if not token[0].startswith('"'):
            return f"{token[0]} is no value of JSON: write null, or leave the entry out", token.start()
        if "\\u" in token[0] and (half := _HALF.search(_PAIR.sub(lambda pair: " " * len(pair[0]), token[0]))):
            return f"{half[0]} is half of a surrogate pair, which is not a character", token.start() + half.start()
    return "it is not valid", 0


def _where(text: str, place: int) -> str:
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    start = re.match(r"\s*\[", text)
    if not start:
        return f"line {line}, column {column}"
    number, position, reader = 1, start.end(), json.JSONDecoder()
    with suppress(ValueError, RecursionError):
        while True:
            position = re.compile(r"\s*").match(text, position).end()  # type: ignore[union-attr]
            _, position = reader.raw_decode(text, position)
            comma = re.compile(r"\s*,").match(text, position)
            if comma is None or place < position:
                break
            number, position = number + 1, comma.end()
    return f"line {line}, column {column}, item {number}"


def not_utf8(content: bytes, error: UnicodeDecodeError) -> str:
    """Return the message for invalid UTF-8: its position, and a Latin-1 guess."""
    line, column = content.count(b"\n", 0, error.start) + 1, error.start - content.rfind(b"\n", 0, error.start)
    byte = content[error.start : error.start + 1]
    guess = f", {shown(byte.decode('latin-1'))} in Latin-1: save the file as UTF-8" if byte >= b"\xa0" else ""
    place = f"line {line}, column {column}"
    return f"is not UTF-8 ({error.reason} in {place}: byte 0x{byte.hex()}{guess})"


def bounded_lines(source: Source, limits: ReadLimits, start: bytes = b"") -> Iterator[bytes]:
    """Yield the lines of a file with their ends, within the limits, one at a time; ``start`` is the first, if read."""
    total, number = len(start), int(bool(start))
    if start:
        yield start
    while line := source.stream.readline(limits.line + 1):
        number += 1
        total += len(line)
        if len(line) > limits.line:
            raise LimitError(f"{source.name}, line {number}: is longer than {limits.line:,} bytes")
        if total > limits.content:
            raise LimitError(f"{source.name}: is larger than {limits.content:,} bytes")
        yield line


_ALLOWED = frozenset({"is empty", "is a file name, not a caption"})


def read_lines(path: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> list[str]:
    """Return the lines of a text file, or of standard input for ``-``, without line ends; empty lines stay."""
    faults: list[Fault] = []
    with open_source(path, limits=limits) as source:
        lines = list(text_lines(source, faults, limits=limits))
    refuse_faults(source.name, faults)
    return lines


def text_lines(source: Source, faults: list[Fault], *, limits: ReadLimits) -> Iterator[str]:
    """Yield the lines of an open file without line ends, but those that are not UTF-8; faults go to ``faults``."""
    for number, raw in enumerate(bounded_lines(source, limits), start=1):
        location = f"line {number}"
        try:
            line = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            faults.append(Fault(location, "", not_utf8(raw, error)))
            continue
        faults += [
            Fault(location, "", reason)
            for reason, is_wrong in CAPTION_FAULTS.items()
            if reason not in _ALLOWED and is_wrong(line, ())
        ]
        yield line


_ENDS = frozenset(".!?:;\"')”")


def looks_like_one_text(lines: Sequence[str]) -> bool:
    """Say whether lines look like one text: paragraphs, or a sentence that goes on behind its line."""
    texts = [line.strip() for line in lines]
    if (
        any(not text for text in texts[1:-1])
        and sum(map(bool, texts)) > 1
        and all(text[-1] in _ENDS for text in texts if text)
    ):
        return True
    pairs = [(before, after) for before, after in pairwise(texts) if before and after]
    going_on = [before[0].isupper() and before[-1] not in _ENDS and after[0].islower() for before, after in pairs]
    return bool(going_on) and going_on[0]
