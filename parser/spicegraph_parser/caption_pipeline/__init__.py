"""The bundled pipeline, which parses as SPICE's reference parser does: plain numpy, with ``components`` for spaCy."""

from __future__ import annotations

from pathlib import Path

__all__ = ["pipeline_path"]


def pipeline_path() -> Path:
    """Return the folder of the bundled pipeline, which plain spaCy can load.

    >>> import spacy
    >>> [token.tag_ for token in spacy.load(pipeline_path())("A dog sleeps.")]
    ['DT', 'NN', 'VBZ', '.']
    """
    return Path(__file__).parent.parent / "en_caption"
