"""PASCAL-50S as CIDEr's authors publish it: MATLAB files with triplets and the kind of each pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import io

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.studies.agreement.judgements import CaptionPair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_scorer.readers.source import Limits

__all__ = ["is_pascal50s", "read_pascal50s"]

_TRIPLETS = "consensus_pascal.mat"
_PAIRS = "pair_pascal.mat"
_CATEGORIES = {1: "HC", 2: "HI", 3: "HM", 4: "MM"}
_FIRST_WINS = 1


def is_pascal50s(path: str) -> bool:
    """Say whether a path is the folder with both files, or the first of them."""
    return Path(path).is_dir() or path.lower().endswith(".mat")


def read_pascal50s(path: str, *, limits: Limits) -> tuple[CaptionPair, ...]:
    """Read ``consensus_pascal.mat`` and ``pair_pascal.mat``, which stand side by side.

    The first holds triplets (reference A, candidates B and C, 1 where B is more similar to A and -1 where C is);
    those of one pair follow each other. The caption that most triplets prefer is the preferred one; a pair with
    as many votes for both has no preference. The second file gives each pair's image and kind: HC, HI, HM, MM.

    Raises:
        InputError: a file is missing or has another shape.
        LimitError: a file is larger than the limits.
    """
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    triplets = _load(folder / _TRIPLETS, limits, "triplets")
    kinds, images = (_load(folder / _PAIRS, limits, name) for name in ("category", "new_input"))
    try:
        rows = [_triplet(row) for row in np.ravel(triplets)]
        categories = [_CATEGORIES[int(kind)] for kind in np.ravel(kinds)]
        names = [_text(row[0]) for row in np.ravel(images)]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: is not PASCAL-50S as published ({type(error).__name__}: {error})") from error
    grouped = [tuple(group) for group in _by_pair(rows, len(categories))]
    if len(names) != len(categories):
        raise InputError(f"{folder / _PAIRS}: has {len(names)} pairs and {len(categories)} categories")
    return tuple(
        _pair(f"pair {number}", image, category, group)
        for number, (image, category, group) in enumerate(zip(names, categories, grouped, strict=True), start=1)
    )


class _Triplet(NamedTuple):
    reference: str
    first: str
    second: str
    first_wins: bool


def _load(path: Path, limits: Limits, name: str) -> Any:
    try:
        if path.stat().st_size > limits.content:
            raise LimitError(f"{path}: is larger than {limits.content:,} bytes")
        content = io.loadmat(str(path))
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, ValueError, TypeError, NotImplementedError, io.matlab.MatReadError) as error:
        raise InputError(f"{path}: is not a MATLAB file that can be read ({error})") from error
    if name not in content:
        raise InputError(f"{path}: holds no variable {name!r}")
    return content[name]


def _triplet(row: Any) -> _Triplet:
    reference, first, second, winner = row
    return _Triplet(_text(reference), _text(first), _text(second), int(np.ravel(winner)[0]) == _FIRST_WINS)


def _text(value: Any) -> str:
    """Return the one string in nested cells."""
    while isinstance(value, np.ndarray):
        value = value.flat[0]
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a caption is no text")
    return value.strip()


def _by_pair(rows: list[_Triplet], pairs: int) -> Iterator[list[_Triplet]]:
    """Yield the triplets of each pair: as many for each, one after the other."""
    size, rest = divmod(len(rows), pairs) if pairs else (0, 1)
    if rest or not size:
        raise InputError(f"{len(rows)} triplets don't belong to {pairs} pairs in equal numbers")
    for start in range(0, len(rows), size):
        group = rows[start : start + size]
        if len({(row.first, row.second) for row in group}) > 1:
            raise InputError(f"the triplets of pair {start // size + 1} hold different candidates")
        yield group


def _pair(place: str, image: str, category: str, group: tuple[_Triplet, ...]) -> CaptionPair:
    votes = sum(1 if row.first_wins else -1 for row in group)
    preferred = None if votes == 0 else int(votes < 0)
    references = tuple(row.reference for row in group)
    return CaptionPair(place, image, category, (group[0].first, group[0].second), preferred, references)
