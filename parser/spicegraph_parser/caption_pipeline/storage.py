"""The network's files: compact on disk, float32 in memory."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser.caption_pipeline.network import Floats, Network, Vocabulary
from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NETWORK_FILES", "network_from", "read_weights"]

_WEIGHTS: Final = "network.npz"
_VOCABULARY: Final = "vocabulary.json"
NETWORK_FILES: Final = (_WEIGHTS, _VOCABULARY)
_SCALE: Final = ".scale"


def network_from(files: Mapping[str, bytes]) -> Network:
    """Build a network from the contents of ``NETWORK_FILES``.

    Raises:
        DataError: a file is damaged.
    """
    try:
        lists = json.loads(files[_VOCABULARY])
        return Network(read_weights(files[_WEIGHTS]), Vocabulary.from_lists(lists))
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise DataError(f"the caption pipeline's network is damaged ({error}); install the package again") from error


def read_weights(data: bytes) -> dict[str, Floats]:
    """Read weights: half floats, or 8-bit integers with one scale a row (``<name>.scale``)."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return {
        name: values.astype(np.float32) * arrays.get(name + _SCALE, np.float32(1)).astype(np.float32)
        for name, values in arrays.items()
        if not name.endswith(_SCALE)
    }
