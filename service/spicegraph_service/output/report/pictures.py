"""Where the images themselves are: a folder, or an address with ``{id}`` in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spicegraph_scorer.core.items import ItemId

__all__ = ["image_sources"]

_PLACE = re.compile(r"\{id(?::(0?\d{1,3}))?\}")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".avif"})
_NUMBER = re.compile(r"(\d+)$")


def image_sources(pattern: str, ids: Iterable[ItemId]) -> dict[ItemId, str]:
    """Return the address of each image that has one.

    Args:
        pattern: a folder whose file names are the ids or end in them (``COCO_val2014_000000000042.jpg``), or
            an http(s) address or path with ``{id}`` or ``{id:012}`` (padded with zeros) in it.
        ids: the images.

    Raises:
        InputError: it is neither.

    Example:
        >>> image_sources("https://example.org/{id:06}.jpg", [42])
        {42: 'https://example.org/000042.jpg'}
    """
    if _PLACE.search(pattern):
        if _SCHEME.match(pattern) and not _WEB.match(pattern):
            raise InputError(f"images {pattern!a}: only http and https addresses, and paths, can be shown")
        return {image_id: _PLACE.sub(_Padded(image_id), pattern) for image_id in ids}
    if not Path(pattern).is_dir():
        raise InputError(f"images {pattern!a}: is neither a folder nor an address with {{id}} in it")
    files: dict[str, Path] = {}
    for path in sorted(Path(pattern).absolute().iterdir()):
        if path.suffix.lower() in _ENDINGS:
            number = _NUMBER.search(path.stem)
            files.setdefault(path.stem, path)
            if number:
                files.setdefault(str(int(number[1])), path)
    return {image_id: files[str(image_id)].as_uri() for image_id in ids if str(image_id) in files}


class _Padded:
    """Writes an id into the place of a pattern, quoted for an address."""

    def __init__(self, image_id: ItemId) -> None:
        self._text = str(image_id)

    def __call__(self, place: re.Match[str]) -> str:
        return quote(self._text.zfill(int(place[1] or 0)), safe="")
