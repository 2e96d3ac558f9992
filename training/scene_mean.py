"""The mean of the weights of scene networks, with one of the styles of labels, or between both.

Networks have one shape and come from one start. What ships knows no styles: their biases are added once and for all.
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import export
from spicegraph_parser.caption_pipeline.encoder import read_weights


def mean(networks: Sequence[Mapping[str, np.ndarray]], style: float) -> dict[str, np.ndarray]:
    """Return the mean of weights; ``style``: 0 is that of FACTUAL's captions, 1 that of the labels by hand."""
    out = {name: np.mean([weights[name] for weights in networks], axis=0) for name in networks[0]}
    for layer in (0, 1):
        out[f"lstm.{layer}.bias"] += style * out.pop(f"lstm.{layer}.shift")
    return out


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", type=Path, nargs="+", help="folders of network.npz and vocabulary.json")
    parser.add_argument("--style", type=float, default=0.5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    weights = mean([read_weights((own / "network.npz").read_bytes()) for own in options.networks], options.style)
    np.savez(options.out / "network.npz", allow_pickle=False, **export.compact(weights, matrices=True))
    shutil.copy(options.networks[0] / "vocabulary.json", options.out)


if __name__ == "__main__":
    main()
