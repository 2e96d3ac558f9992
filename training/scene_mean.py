"""The mean of the weights of scene networks, and by what mixture of the styles of labels each kind of text is read.

Networks have one shape and come from one start. FACTUAL's captions are the style of which the others' are added.
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import export
from spicegraph_parser.caption_pipeline.encoder import read_weights
from spicegraph_scenes.passages import Kind


def mean(networks: Sequence[Mapping[str, np.ndarray]], mixtures: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Return the mean of weights.

    Args:
        networks: weights of each.
        mixtures: (kinds, 2) shares of the two styles by hand, for each kind of text; without them the styles stay as
            they are, to train on.
    """
    out = {name: np.mean([weights[name] for weights in networks], axis=0) for name in networks[0]}
    if mixtures is None:
        return out
    for layer in (0, 1):
        shift = out.pop(f"lstm.{layer}.shift")
        out[f"lstm.{layer}.bias"] += mixtures[0] @ shift
        out[f"lstm.{layer}.styles"] = (mixtures - mixtures[0]) @ shift
    return out


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", type=Path, nargs="+", help="folders of network.npz and vocabulary.json")
    shares_of = "shares of the styles of captions and of sentences by hand, in what reads texts of this kind"
    parser.add_argument("--photograph", type=float, nargs=2, help=shares_of)
    parser.add_argument("--other", type=float, nargs=2, help=shares_of)
    parser.add_argument("--description", type=float, nargs=2, help=shares_of)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    shares = [getattr(options, kind.name.lower()) for kind in Kind]
    mixtures = np.array(shares, dtype=np.float32) if all(shares) else None
    if mixtures is None and any(shares):
        parser.error("give the shares of every kind, or of none")
    weights = mean([read_weights((own / "network.npz").read_bytes()) for own in options.networks], mixtures)
    np.savez(options.out / "network.npz", allow_pickle=False, **export.compact(weights, matrices=True))
    shutil.copy(options.networks[0] / "vocabulary.json", options.out)


if __name__ == "__main__":
    main()
