"""Average networks of one training run: what a short second stage gains without what it forgets."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import export
from data import read_vocabulary
from spicegraph_parser.caption_pipeline.network import read_weights

if TYPE_CHECKING:
    from spicegraph_parser.caption_pipeline.network import Floats


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", type=Path, nargs="+", help="folders of network.npz and vocabulary.json")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    vocabularies = [read_vocabulary(folder) for folder in options.networks]
    if any(vocabulary != vocabularies[0] for vocabulary in vocabularies):
        parser.error("the networks have different vocabularies: only networks of one run can be averaged")
    weights = [read_weights((folder / "network.npz").read_bytes()) for folder in options.networks]
    mean: dict[str, Floats] = {
        name: np.asarray(np.mean([own[name] for own in weights], axis=0), dtype=np.float32) for name in weights[0]
    }
    export.write_arrays(mean, vocabularies[0], options.out)


if __name__ == "__main__":
    main()
