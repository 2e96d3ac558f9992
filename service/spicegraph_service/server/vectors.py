"""The server's own vectors for SPICE-G: read once, and handed to every process that computes.

A worker that starts later gets the same vectors, whatever has become of the file: one server never answers with two
tables.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from spicegraph_scorer.metrics.graded.vectors import Vectors

__all__ = ["pack_vectors", "unpack_vectors"]


def pack_vectors(path: Path | None) -> bytes:
    """Return a table of vectors as :func:`unpack_vectors` reads it; nothing where none is given.

    Raises:
        DataError: the file can't be read, or is no table of vectors.
    """
    if path is None:
        return b""
    # Imported here: a server with the bundled vectors leaves them, and numpy, to its workers.
    from spicegraph_scorer.metrics.graded.vectors import Vectors, VectorTable  # noqa: PLC0415

    return pickle.dumps(Vectors.of(VectorTable.read(path)))


def unpack_vectors(data: bytes) -> Vectors | None:
    """Return the vectors that the server has sent; ``None``: the bundled ones."""
    if not data:
        return None
    vectors: Vectors = pickle.loads(data)  # noqa: S301 (our own server's)
    return vectors
