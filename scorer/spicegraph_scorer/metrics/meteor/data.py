"""METEOR's English data as the matcher uses it; its index lies in the user's cache directory."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from spicegraph_parser.errors import DataError
from spicegraph_parser.lexicon import Lexicon, load_lexicon
from spicegraph_scorer.metrics.meteor.arrays import read_arrays, write_arrays
from spicegraph_scorer.metrics.meteor.index import Paraphrases, Progress, build_index
from spicegraph_scorer.metrics.meteor.sources import INSTALL, Sources, find_sources

__all__ = ["MeteorData", "cache_directory", "load_data"]

_FORMAT = 1
_FILE = "meteor-1.5.index"
_MAX_WAIT = 300.0  # seconds; a build takes some ten


@dataclass(frozen=True, slots=True, eq=False)
class MeteorData:
    """The word lists, synonyms and paraphrases of METEOR 1.5 for English, made by :func:`load_data`.

    ``lexicon`` gives the synonyms: SPICE's lexicon and METEOR's are the same. ``cache`` is the folder of
    the index: another process that is handed this object opens the index there.
    """

    sources: Sources
    cache: Path
    paraphrases: Paraphrases
    lexicon: Lexicon

    def __reduce__(self) -> tuple[object, tuple[Sources, Path]]:
        return _reopen, (self.sources, self.cache)


def _reopen(sources: Sources, cache: Path) -> MeteorData:
    return load_data(cache=cache, sources=sources)


def cache_directory() -> Path:
    """Return the folder for files that can be made anew.

    It is ``spicegraph`` in the folder that ``XDG_CACHE_HOME`` names, or in ``~/.cache``.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # XDG's specification says to ignore a relative path.
    return (root if root.is_absolute() else Path.home() / ".cache") / "spicegraph"


def _open(path: Path, label: str) -> Paraphrases | None:
    arrays = read_arrays(path, label=label)
    if arrays is None:
        return None
    return Paraphrases(
        phrases=np.asarray(arrays["phrases"], dtype=np.uint64),
        sources=np.asarray(arrays["sources"], dtype=np.uint32),
        target_starts=np.asarray(arrays["target_starts"], dtype=np.uint32),
        targets=np.asarray(arrays["targets"], dtype=np.uint32),
    )


def _build(path: Path, label: str, sources: Sources, progress: Progress | None) -> Paraphrases | None:
    """Build the index, unless another process has done so while this one waited for its turn."""
    try:
        import portalocker  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise DataError(INSTALL) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with portalocker.Lock(path.with_suffix(".lock"), timeout=_MAX_WAIT):
            paraphrases = _open(path, label)
            if paraphrases is None:
                built = build_index(sources.paraphrases, progress=progress)
                arrays = {field.name: getattr(built, field.name) for field in fields(built)}
                write_arrays(path, arrays, label=label)
                paraphrases = _open(path, label)
    except portalocker.LockException as error:
        msg = f"{path.with_suffix('.lock')} could not be locked within {_MAX_WAIT:.0f} seconds: {error}"
        raise DataError(msg) from error
    return paraphrases


def load_data(
    *, cache: Path | None = None, sources: Sources | None = None, progress: Progress | None = None
) -> MeteorData:
    """Return METEOR's data; the first call on a machine builds the index (some ten seconds, 50 MB on disk).

    ``cache``: the folder that keeps the index (default :func:`cache_directory`); ``sources``: the data
    files (default: those of the installed ``pycocoevalcap``); ``progress`` is called while the index is
    built, with the share done from 0 to 1. An index that is damaged, or was made from other files, is built
    again. Several processes may call this at once: one builds, the others wait for it.

    Raises:
        DataError: the data files are missing or damaged, or the folder cannot be written to.
    """
    sources = sources or find_sources()
    cache = cache or cache_directory()
    path = cache / _FILE
    label = f"{_FORMAT} {sources.fingerprint}"
    try:
        paraphrases = _open(path, label) or _build(path, label, sources, progress)
    except OSError as error:
        msg = f"METEOR's index cannot be kept in {cache}: {error}. Set XDG_CACHE_HOME to another folder"
        raise DataError(msg) from error
    if paraphrases is None:
        msg = f"METEOR's index in {cache} was changed or removed right after it had been written"
        raise DataError(msg)
    return MeteorData(sources, cache, paraphrases, load_lexicon())
