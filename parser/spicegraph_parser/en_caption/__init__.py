"""The files of the bundled pipeline, and what spaCy calls to load them by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.language import Language


def load(**options: Any) -> Language:
    """Load the pipeline into spaCy; the options are those of ``spacy.load``."""
    from spacy.util import load_model_from_path  # noqa: PLC0415 (parsing without spaCy needs this folder, too)

    return load_model_from_path(Path(__file__).parent, **options)
