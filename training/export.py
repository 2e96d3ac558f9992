"""Write a trained network as the package reads it.

Tables of embeddings become 8-bit integers with one scale per row; all else is stored as 16-bit floats (``notes.md``
says what that loses). As a program it writes the mean of networks: OUT NETWORK...
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from network import Network
from spicegraph_parser.caption_pipeline.encoder import KINDS, Vocabulary, read_weights
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES

LEVELS = 63  # of 127 that 8 bits hold: the wheel, which is compressed, is .7 MB smaller

# Names in the package, and the network's, of the matrices that are stored input before output.
MATRICES = {
    "words.mix": "words.mix.weight",
    "tagger": "tagger.weight",
    "tag_vectors": "tag_vectors.weight",
    "late_tagger": "late_tagger.weight",
    "arc_child": "arc_child.weight",
    "arc_head": "arc_head.weight",
    "arc_scores": "arc_scores.weight",
    "label_child": "label_child.weight",
    "label_head": "label_head.weight",
    "labeller": "labeller.weight",
}
VECTORS = {
    "words.mix.bias": "words.mix.bias",
    "words.norm": "words.norm.weight",
    "words.norm.bias": "words.norm.bias",
    "tagger.bias": "tagger.bias",
    "late_tagger.bias": "late_tagger.bias",
    "arc_child.bias": "arc_child.bias",
    "arc_head.bias": "arc_head.bias",
    "arc_scores.bias": "arc_scores.bias",
    "label_child.bias": "label_child.bias",
    "labeller.bias": "labeller.bias",
    "root_arc": "root_arc",
    "root_label": "root_label",
}


def arrays(network: Network) -> dict[str, NDArray[np.float32]]:
    """Return the network's weights under the package's names."""
    state = {name: tensor.detach().float().numpy() for name, tensor in network.state_dict().items()}
    out = {name: state[own].T for name, own in MATRICES.items()} | {name: state[own] for name, own in VECTORS.items()}
    out["label_head.bias"] = np.zeros_like(out["label_child.bias"])  # all ends are one product in the package
    for kind in range(len(network.words.tables)):
        out[f"words.tables.{kind}"] = network.words.tables[kind].numpy()
    for layer in range(len(network.layers)):
        out[f"lstm.{layer}.input"] = np.concatenate(list(state[f"layers.{layer}.weight"]), axis=1)
        out[f"lstm.{layer}.state"] = state[f"layers.{layer}.state"]
        out[f"lstm.{layer}.bias"] = state[f"layers.{layer}.bias"].reshape(-1)
    return out


def compact(weights: Mapping[str, NDArray[np.float32]], *, matrices: bool = False) -> dict[str, NDArray[np.generic]]:
    """Return what is stored: tables (and ``matrices``) as integers and ``<name>.scale``, else half floats."""
    out: dict[str, NDArray[np.generic]] = {}
    for name, values in weights.items():
        if name.startswith("words.tables.") or (matrices and values.ndim > 1):
            scale = np.maximum(np.abs(values).max(axis=-1, keepdims=True) / LEVELS, 1e-6).astype(np.float16)
            out[name] = np.rint(values / scale.astype(np.float32)).clip(-LEVELS, LEVELS).astype(np.int8)
            out[f"{name}.scale"] = scale
        else:
            out[name] = values.astype(np.float16)
    return out


def write_arrays(weights: Mapping[str, NDArray[np.float32]], vocabulary: Vocabulary, folder: Path) -> None:
    """Write ``network.npz`` and ``vocabulary.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "network.npz", allow_pickle=False, **compact(weights))
    text = json.dumps(vocabulary.to_lists(), ensure_ascii=False, separators=(",", ":"))
    (folder / "vocabulary.json").write_text(text + "\n", encoding="utf-8")


def write(network: Network, vocabulary: Vocabulary, folder: Path) -> None:
    """Write a trained network."""
    write_arrays(arrays(network), vocabulary, folder)


def read(folder: Path) -> tuple[dict[str, NDArray[np.float32]], Vocabulary]:
    """Read what ``write`` wrote: weights by the package's names, and the vocabulary."""
    weights, vocabulary = ((folder / name).read_bytes() for name in NETWORK_FILES)
    return read_weights(weights), Vocabulary.from_lists(json.loads(vocabulary))


def joined(known: Vocabulary, before: Vocabulary) -> Vocabulary:
    """Return a vocabulary with the names of both, those of ``before`` first; its tags and labels must hold all.

    Raises:
        ValueError: ``known`` has a tag or a label that ``before`` lacks.
    """
    if missing := {*known.tags, *known.labels} - {*before.tags, *before.labels}:
        raise ValueError(f"the network to start from lacks {', '.join(sorted(missing))}")
    lists, more = before.to_lists(), known.to_lists()
    return Vocabulary.from_lists(lists | {kind: list(dict.fromkeys([*lists[kind], *more[kind]])) for kind in KINDS})


@torch.no_grad()
def take_over(network: Network, weights: dict[str, NDArray[np.float32]]) -> None:
    """Put stored weights into a network whose vocabulary begins with that of the weights (see ``joined``)."""
    state = {own: torch.from_numpy(weights[name].T.copy()) for name, own in MATRICES.items()}
    state |= {own: torch.from_numpy(weights[name]) for name, own in VECTORS.items()}
    for layer in range(len(network.layers)):
        state[f"layers.{layer}.weight"] = torch.stack(torch.from_numpy(weights[f"lstm.{layer}.input"]).chunk(2, dim=1))
        state[f"layers.{layer}.state"] = torch.from_numpy(weights[f"lstm.{layer}.state"])
        state[f"layers.{layer}.bias"] = torch.from_numpy(weights[f"lstm.{layer}.bias"]).view(2, -1)
    network.load_state_dict(state)
    for kind, table in enumerate(network.words.tables):
        stored = torch.from_numpy(weights[f"words.tables.{kind}"])
        table[: len(stored)] = stored
        table[len(stored) :] = stored[0]  # a new name begins as an unknown one


def mean(networks: Sequence[Mapping[str, NDArray[np.float32]]]) -> dict[str, NDArray[np.float32]]:
    """Return the mean of the weights of networks whose vocabularies begin alike (see ``joined``).

    A row that only some of them have, that of a name that others do not know, is the mean over those.
    """
    out = {}
    for name in networks[0]:
        own = [network[name] for network in networks]
        rows = max(map(len, own))
        total = np.zeros((rows, *own[0].shape[1:]), dtype=np.float32)
        count = np.zeros((rows, *[1] * (own[0].ndim - 1)), dtype=np.float32)
        for values in own:
            total[: len(values)] += values
            count[: len(values)] += 1
        out[name] = total / count
    return out


def main() -> None:
    """Run the command line: the mean of networks."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("out", type=Path, help="folder of the mean's network.npz and vocabulary.json")
    parser.add_argument("networks", type=Path, nargs="+", help="folders; that with the largest vocabulary first")
    options = parser.parse_args()
    read_in = [read(folder) for folder in options.networks]
    write_arrays(mean([weights for weights, _ in read_in]), read_in[0][1], options.out)


if __name__ == "__main__":
    main()
