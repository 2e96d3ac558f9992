"""The mean of the weights of a scene network and of one with fewer units, from which it came.

Units of the smaller network are the first ones of each layer. What the second layer reads of the first is narrowed
anew.
"""

import argparse
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import export
from scene_network import MATRICES, narrowed, shape_of
from spicegraph_parser.caption_pipeline.encoder import read_weights

LOG = logging.getLogger("scene_mean")


def places(groups: int, old: int, new: int, width: int) -> np.ndarray:
    """Return where units stand that are the first ``old`` of each of ``groups`` groups of ``new``, and all behind."""
    units = [group * new + np.arange(old) for group in range(groups)]
    return np.concatenate([*units, np.arange(groups * new, width)])


def mixed(wide: np.ndarray, other: np.ndarray, share: float, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the mean of matrices, of which the other has some rows and columns; columns that it lacks stay.

    Args:
        wide: (rows, columns).
        other: the smaller one.
        share: of the smaller one.
        rows: where its rows stand; in its columns, it has 0 in other rows.
        columns: where its columns stand.
    """
    grown = np.zeros((len(wide), other.shape[1]), dtype=np.float32)
    grown[rows] = other
    out = wide.copy()
    out[:, columns] = (1 - share) * wide[:, columns] + share * grown
    return out


def mean(wide: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], share: float) -> dict[str, np.ndarray]:
    """Return the mean of the weights of two networks.

    Args:
        wide: weights of a network that came from the other and has more units.
        other: weights of the other, which is not narrowed.
        share: of the other.
    """
    shape, before = shape_of(wide), shape_of(other)
    sizes = (before.first, shape.first), (before.second, shape.second)
    whole = dict(wide)
    if shape.narrow:
        states, hints = np.split(wide["lstm.1.input"], [shape.narrow])
        whole["lstm.1.input"] = np.concatenate([whole.pop("narrow") @ states, hints])
    of_words = {"tagger": 0, "lstm.1.input": 0} | dict.fromkeys(("pair_first", "pair_second", "object"), 1)
    of_words |= {name: 1 for name in MATRICES if name.startswith("relation_")}
    out = {}
    for name, values in whole.items():
        gates = sizes[int(name.split(".")[1])] if name.startswith("lstm.") else None
        if name.endswith(".state"):
            rows, columns = places(1, *gates, gates[1]), places(4, *gates, 4 * gates[1])
            pairs = zip(values, other[name], strict=True)
            out[name] = np.stack([mixed(*pair, share, rows, columns) for pair in pairs])
        else:
            shown, old = (own.reshape(1 if own.ndim == 1 else len(own), -1) for own in (values, other[name]))
            rows = places(2, *sizes[of_words[name]], len(shown)) if name in of_words else np.arange(len(shown))
            columns = places(8, *gates, shown.shape[1]) if gates else np.arange(shown.shape[1])
            out[name] = mixed(shown, old, share, rows, columns).reshape(values.shape)
    return narrowed(out, shape) if shape.narrow else out


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wide", type=Path, help="folder of network.npz and vocabulary.json")
    parser.add_argument("other", type=Path, help="folder of a network with the same vocabulary and fewer units")
    parser.add_argument("--share", type=float, default=0.5, help="of the other")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    wide, other = (read_weights((own / "network.npz").read_bytes()) for own in (options.wide, options.other))
    options.out.mkdir(parents=True, exist_ok=True)
    weights = mean(wide, other, options.share)
    np.savez(options.out / "network.npz", allow_pickle=False, **export.compact(weights, matrices=True))
    shutil.copy(options.wide / "vocabulary.json", options.out)


if __name__ == "__main__":
    main()
