"""The tables of languages that this wing registers in ``spicegraph.languages``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CODES: Final = {"fr": "fra", "es": "spa", "de": "deu", "it": "ita", "pt": "por", "cs": "ces"}
"""ISO 639-1, which names the file of a table, and ISO 639-3, as wordnets have it."""

TABLES: Final[Mapping[str, Path]] = {
    code: Path(__file__).with_name(f"{short}.toml") for short, long in _CODES.items() for code in (short, long)
}
"""The file of each table, by the codes of its language."""
