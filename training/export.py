"""Write a trained network as the package reads it.

Tables of embeddings become 8-bit integers with one scale a row; all else is stored as 16-bit floats. What
that loses is in README.md.
"""

import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from network import Network
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES, Vocabulary, read_weights

# Names in the package, and the network's, of the matrices that are stored input before output.
MATRICES = {
    "words.mix": "words.mix.weight",
    "tagger": "tagger.weight",
    "tag_vectors": "tag_vectors.weight",
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
    state = {name: tensor.detach().to(torch.float32).numpy() for name, tensor in network.state_dict().items()}
    out = {name: state[own].T for name, own in MATRICES.items()} | {name: state[own] for name, own in VECTORS.items()}
    out["label_head.bias"] = np.zeros_like(out["label_child.bias"])  # all ends are one product in the package
    for kind in range(len(network.words.tables)):
        out[f"words.tables.{kind}"] = state[f"words.tables.{kind}.weight"]
    for layer in range(len(network.layers)):
        own = f"layers.{layer}."
        sides = ("", "_reverse")
        out[f"lstm.{layer}.input"] = np.concatenate([state[f"{own}weight_ih_l0{side}"].T for side in sides], axis=1)
        out[f"lstm.{layer}.state"] = np.stack([state[f"{own}weight_hh_l0{side}"].T for side in sides])
        out[f"lstm.{layer}.bias"] = np.concatenate(
            [state[f"{own}bias_ih_l0{side}"] + state[f"{own}bias_hh_l0{side}"] for side in sides]
        )
    return out


def restore(network: Network, folder: Path) -> None:
    """Set a network's weights to those written to a folder."""
    files = {name: (folder / name).read_bytes() for name in NETWORK_FILES}
    weights = read_weights(files["network.npz"])
    state = {own: weights[name].T for name, own in MATRICES.items()} | {
        own: weights[name] for name, own in VECTORS.items()
    }
    for kind in range(len(network.words.tables)):
        state[f"words.tables.{kind}.weight"] = weights[f"words.tables.{kind}"]
    for layer in range(len(network.layers)):
        inputs = np.split(weights[f"lstm.{layer}.input"], 2, axis=1)
        biases = np.split(weights[f"lstm.{layer}.bias"], 2)
        for at, side in enumerate(("", "_reverse")):
            state[f"layers.{layer}.weight_ih_l0{side}"] = inputs[at].T
            state[f"layers.{layer}.weight_hh_l0{side}"] = weights[f"lstm.{layer}.state"][at].T
            # Torch keeps two biases that are only ever added up.
            state[f"layers.{layer}.bias_ih_l0{side}"] = biases[at]
            state[f"layers.{layer}.bias_hh_l0{side}"] = np.zeros_like(biases[at])
    network.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in state.items()})


def compact(weights: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.generic]]:
    """Return what is stored: tables as integers and ``<name>.scale``, the rest as half floats."""
    out: dict[str, NDArray[np.generic]] = {}
    for name, values in weights.items():
        if name.startswith("words.tables."):
            scale = np.maximum(np.abs(values).max(axis=1, keepdims=True) / 127, 1e-6).astype(np.float16)
            out[name] = np.rint(values / scale.astype(np.float32)).clip(-127, 127).astype(np.int8)
            out[f"{name}.scale"] = scale
        else:
            out[name] = values.astype(np.float16)
    return out


def write_arrays(weights: dict[str, NDArray[np.float32]], vocabulary: Vocabulary, folder: Path) -> None:
    """Write ``network.npz`` and ``vocabulary.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "network.npz", allow_pickle=False, **compact(weights))
    text = json.dumps(vocabulary.to_lists(), ensure_ascii=False, separators=(",", ":"))
    (folder / "vocabulary.json").write_text(text + "\n", encoding="utf-8")


def write(network: Network, vocabulary: Vocabulary, folder: Path) -> None:
    """Write a trained network."""
    write_arrays(arrays(network), vocabulary, folder)
