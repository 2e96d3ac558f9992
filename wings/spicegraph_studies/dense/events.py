"""Captions of parts of videos, as ActivityNet Captions and the evaluations of dense captioning write them in JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from spicegraph_parser.errors import InputError, kind_of
from spicegraph_scorer.readers.checks import Fault, caption_faults, input_error, shown
from spicegraph_scorer.readers.records import decode, read_all
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.readers.checks import Empty

_TIMES: Final = re.compile(r"(?:\s*<time_token_\d+>\s*)+")
_STOPS: Final = re.compile(r"(?<=[.!?])\s+")

Segment: TypeAlias = tuple[float, float]  # Where a part of a video begins and ends, in seconds.


@dataclass(frozen=True, slots=True)
class Events:
    """Segments of a video and their captions; they may overlap, in any order."""

    segments: tuple[Segment, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DenseCorpus:
    """Videos, their captions, and for each file of references theirs; ``None`` where a file lacks a video."""

    videos: tuple[str, ...]
    captions: tuple[Events, ...]
    references: tuple[tuple[Events | None, ...], ...]  # by video, then by file
    is_absent: tuple[bool, ...]  # by video: the results lack it
    left_out: int = 0  # videos of either side that are not scored


class Missing(StrEnum):
    """Treatment of videos that have references but no captions, or the reverse."""

    REFUSE = "refuse"
    ZERO = "zero"
    SKIP = "skip"


def read_dense(
    results: str,
    references: Sequence[str],
    *,
    missing: Missing = Missing.REFUSE,
    most: int = 1000,
    empty: Empty = "refuse",
    inverted: Missing = Missing.REFUSE,
) -> DenseCorpus:
    """Read a system's captions and files of references.

    Args:
        results: a file with ``{"results": {video: [{"sentence", "timestamp": [start, end]}]}}``.
        references: files with ``{video: {"timestamps": [[start, end]], "sentences": [...]}}``.
        missing: whether a video of one side alone is a fault, scores ``zero`` if it has references (and is left out of
            SODA), or is left out.
        most: no more than the first so many captions of a video are scored, as in the public evaluation.
        empty: an empty caption is a fault, or scores ``zero``; an empty reference is a fault.
        inverted: whether a caption whose part ends before it starts is a fault, matches nothing (``zero``), or is left
            out; of a reference it is a fault.

    Raises:
        InputError: the message lists every fault of all files.
    """
    faults: dict[str, list[Fault]] = {path: [] for path in (results, *references)}
    given = _read(results, faults[results], _captions, empty, inverted)
    known = [_read(path, faults[path], _references, "refuse") for path in references]
    videos = list(dict.fromkeys(chain.from_iterable(known)))
    one_sided = _one_sided(given, videos) if missing is Missing.REFUSE else []
    faults[results] += one_sided
    if any(faults.values()):
        told = [str(input_error(path, found)) for path, found in faults.items() if found]
        hint = "--missing zero scores a missing video 0, and leaves it out of SODA, as the scripts do; skip: out of all"
        raise InputError("\n".join([*told, hint] if one_sided else told))
    return _paired(results, given, known, [v for v in videos if missing is not Missing.SKIP or v in given], most)


def _one_sided(given: Mapping[str, Events], videos: Sequence[str]) -> list[Fault]:
    known = set(videos)
    return [
        *(_fault(video, "", "has references, but no captions") for video in videos if video not in given),
        *(_fault(video, "", "has captions, but no references") for video in given if video not in known),
    ]


def _paired(
    name: str, given: Mapping[str, Events], known: Sequence[Mapping[str, Events]], videos: Sequence[str], most: int
) -> DenseCorpus:
    if not any(video in given for video in videos):
        raise InputError(f"{name}: has no video of the references")
    captions = (given.get(video, Events()) for video in videos)
    return DenseCorpus(
        tuple(videos),
        tuple(Events(of.segments[:most], of.sentences[:most]) for of in captions),
        tuple(tuple(of_file.get(video) for of_file in known) for video in videos),
        tuple(video not in given for video in videos),
        len(set(given).union(*known).difference(videos)),
    )


_Row: TypeAlias = tuple[str, object, str, object]  # a segment and a sentence, each behind where it stands
_Rows: TypeAlias = Callable[[Any], "list[_Row] | str"]  # the rows of a video's value, or what is wrong with it


def _fault(video: str, field: str, reason: str) -> Fault:
    return Fault(f"video {shown(video)}", field, reason)


def _read(
    path: str, faults: list[Fault], rows_of: _Rows, empty: Empty, inverted: Missing = Missing.REFUSE
) -> dict[str, Events]:
    """Return the events of a file by video, and add its faults."""
    with open_source(path) as source:
        content, reason = decode(read_all(source, limits=DEFAULT_LIMITS))
    if reason:
        faults.append(Fault("", "", reason))
        return {}
    by_video = content.get("results", content) if isinstance(content, dict) else content
    if isinstance(by_video, dict) and isinstance(listed := by_video.get("annotations"), list):
        by_video = {str(each.get("image_id")): each for each in listed if isinstance(each, dict)}
    if not isinstance(by_video, dict):
        faults.append(Fault("", "", f"holds {kind_of(by_video)}, expected an object with the captions of each video"))
        return {}
    read: dict[str, Events] = {}
    for video, value in by_video.items():
        rows = rows_of(value)
        if isinstance(rows, str):
            faults.append(_fault(video, "", rows))
            rows = []
        if inverted is not Missing.REFUSE:
            rows = [_turned(row) for row in rows if inverted is Missing.ZERO or not _is_inverted(row[1])]
        for at_segment, segment, at_sentence, sentence in rows:
            faults += map(partial(_fault, video, at_segment), _segment_faults(segment))
            faults += map(partial(_fault, video, at_sentence), caption_faults(sentence, (video,), empty=empty))
        read[video] = Events(tuple(row[1] for row in rows), tuple(row[3] for row in rows))  # type: ignore[misc]
    return read


def _captions(value: Any) -> list[_Row] | str:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return 'expected a list of {"sentence", "timestamp": [start, end]}'
    keys = [next((key for key in ("sentence", "caption") if key in each), "sentence") for each in value]
    return [
        (f"[{n}].timestamp", each.get("timestamp"), f"[{n}].{key}", each.get(key))
        for n, (each, key) in enumerate(zip(value, keys, strict=True))
    ]


def _is_inverted(segment: object) -> bool:
    return not _form_faults(segment) and segment[1] < segment[0]  # type: ignore[index]


def _turned(row: _Row) -> _Row:
    """Return a row whose part is empty, and overlaps nothing, where it ends before it starts."""
    at_segment, segment, *sentence = row
    return (at_segment, [segment[0], segment[0]], *sentence) if _is_inverted(segment) else row  # type: ignore[index,return-value]


def _parts_of(value: Mapping[str, Any]) -> list[str] | None:
    """Return the sentences of a video that stand in one text, behind time tokens or with full stops."""
    count = len(value["segments"]) if isinstance(value.get("segments"), list) else 0
    texts = [_TIMES.split(str(value.get("caption", ""))), _STOPS.split(str(value.get("pure_cap", "")))]
    found = ([part.strip() for part in parts if part.strip()] for parts in texts)
    return next((parts for parts in found if len(parts) == count), None)


def _references(value: Any) -> list[_Row] | str:
    segments, sentences = map(value.get, ("timestamps", "sentences")) if isinstance(value, dict) else (None, None)
    if isinstance(value, dict) and "segments" in value and segments is None:
        segments, sentences = value["segments"], _parts_of(value)
    if not isinstance(segments, list) or not isinstance(sentences, list):
        return 'expected {"timestamps": [[start, end]], "sentences": [...]}'
    if len(segments) != len(sentences) or not segments:
        return f"has {len(segments)} timestamps and {len(sentences)} sentences, expected as many of both, at least one"
    pairs = enumerate(zip(segments, sentences, strict=True))
    return [(f"timestamps[{n}]", segment, f"sentences[{n}]", sentence) for n, (segment, sentence) in pairs]


def _form_faults(value: object) -> list[str]:
    if not isinstance(value, list) or len(value) != 2:
        return [f"is {shown(value)}, expected [start, end] in seconds"]
    for each in value:
        if isinstance(each, bool) or not isinstance(each, int | float) or not math.isfinite(each):
            return [f"holds {shown(each)}, expected a number of seconds"]
    return []


def _segment_faults(value: Any) -> list[str]:
    if wrong := _form_faults(value):
        return wrong
    start, end = value
    if start < 0:
        return [f"starts at {start:g}, before the video"]
    return [f"ends at {end:g}, before it starts at {start:g}"] if end < start else []
