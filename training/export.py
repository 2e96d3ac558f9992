"""Write a trained network as the package reads it.

Tables of embeddings become 8-bit integers with one scale per row; all else is stored as 16-bit floats (``notes.md``
says what that loses). As a program it writes the mean of networks: OUT NETWORK...
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from network import Network
from spicegraph_parser.caption_pipeline.encoder import KINDS, Vocabulary, read_weights
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES

LEVELS = 63  # of 127 that 8 bits hold: the wheel, which is compressed, is .7 MB smaller


def places(network: nn.Module) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield the package's names of weights and the tensors that hold these, input before output.

    Those of a recurrent layer are one for each direction: ``split`` and ``joined`` know how they stand in an array.
    """
    for path, part in network.named_modules():
        name = path.removeprefix("encoder.")
        if isinstance(part, nn.LSTM):
            name = name.replace("layers", "lstm")
            for kind, own in (("input", "weight_ih"), ("state", "weight_hh"), ("bias", "bias_ih")):
                yield f"{name}.{kind}", [part.get_parameter(f"{own}_l0{side}").t() for side in ("", "_reverse")]
        elif isinstance(part, nn.ParameterList):
            yield from ((f"lstm.{layer}.shift", [own.flatten(1)]) for layer, own in enumerate(part) if len(own))
        elif isinstance(part, nn.Linear | nn.LayerNorm):
            yield from (
                (f"{name}.{own}".removesuffix(".weight"), [tensor.t()]) for own, tensor in part.named_parameters()
            )
        else:
            yield from ((own, [tensor]) for own, tensor in part.named_parameters(recurse=False))


def joined(name: str, parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the array of a name: states' weights (directions, ...), all else with directions side by side."""
    return np.stack(parts) if name.endswith(".state") else np.concatenate(parts, axis=-1)


def split(name: str, values: NDArray[np.float32], count: int) -> Sequence[NDArray[np.float32]]:
    """Return the parts that ``joined`` put together."""
    return values if name.endswith(".state") else np.split(values, count, axis=-1)


def arrays(network: nn.Module) -> dict[str, NDArray[np.float32]]:
    """Return the network's weights under the package's names."""
    out = {name: joined(name, [own.detach().numpy() for own in tensors]) for name, tensors in places(network)}
    if "label_child.bias" in out:
        out["label_head.bias"] = np.zeros_like(out["label_child.bias"])  # all ends are one product in the package
    tables = network.get_submodule("encoder.words").tables
    return out | {f"words.tables.{kind}": table.numpy() for kind, table in enumerate(tables)}


@torch.no_grad()
def take_over(network: nn.Module, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Put stored weights into a network or its encoder; tables aside."""
    for name, tensors in places(network):
        for own, values in zip(tensors, split(name, weights[name], len(tensors)), strict=True):
            own.copy_(torch.from_numpy(values.copy()))


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


def extended(known: Vocabulary, before: Vocabulary) -> Vocabulary:
    """Return a vocabulary with the names of both, those of ``before`` first; its tags and labels must hold all.

    Raises:
        ValueError: ``known`` has a tag or a label that ``before`` lacks.
    """
    if missing := {*known.tags, *known.labels} - {*before.tags, *before.labels}:
        raise ValueError(f"the network to start from lacks {', '.join(sorted(missing))}")
    lists, more = before.to_lists(), known.to_lists()
    return Vocabulary.from_lists(lists | {kind: list(dict.fromkeys([*lists[kind], *more[kind]])) for kind in KINDS})


def go_on_from(network: Network, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Put stored weights into a network whose vocabulary begins with that of the weights (see ``extended``)."""
    take_over(network, weights)
    for kind, table in enumerate(network.encoder.words.tables):
        stored = torch.from_numpy(weights[f"words.tables.{kind}"])
        table[: len(stored)] = stored
        table[len(stored) :] = stored[0]  # a new name begins as an unknown one


def mean(networks: Sequence[Mapping[str, NDArray[np.float32]]]) -> dict[str, NDArray[np.float32]]:
    """Return the mean of the weights of networks whose vocabularies begin alike (see ``extended``).

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
