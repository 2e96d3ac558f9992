"""The server's own data for metrics: read once, and handed to every process that computes.

A worker that starts later gets the same data, whatever has become of the files: one server never answers with two
tables.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from spicegraph_scorer.metrics import MetricData


def pack_data(*, vectors: Path | None = None) -> bytes:
    """Return the data as :func:`unpack_data` reads it; nothing where none is given.

    Args:
        vectors: a table of vectors for SPICE-G; ``None``: the bundled one.

    Raises:
        DataError: the file can't be read, or is not a table of vectors.
    """
    if vectors is None:
        return b""
    # Imported here: a server with the bundled vectors leaves them, and numpy, to its workers.
    from spicegraph_scorer.metrics import MetricData  # noqa: PLC0415
    from spicegraph_scorer.metrics.graded.vectors import Vectors, VectorTable  # noqa: PLC0415

    return pickle.dumps(MetricData(vectors=Vectors.of(VectorTable.read(vectors))))


def unpack_data(packed: bytes) -> MetricData:
    """Return the data that the server has sent."""
    from spicegraph_scorer.metrics import MetricData  # noqa: PLC0415 (only in processes that compute)

    if not packed:
        return MetricData()
    data: MetricData = pickle.loads(packed)  # noqa: S301 (our own server's)
    return data
