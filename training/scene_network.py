"""The trainable form of the scene parser's network (torch); the package holds its numpy form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lstm import Lstm
from network import WordVectors, drop
from spicegraph_parser.networks.scenes import PAIR_LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of layers, and the share of units that are dropped."""

    first: int = 160  # units of a direction of the first recurrent layer
    second: int = 160
    narrow: int = 0  # numbers that the second layer reads of the first one's states; 0: all states
    pair: int = 96
    relation: int = 128
    dropout: float = 0.15


class SceneHeads(nn.Module):
    """What an encoder's states of words (b, n, width) are to scores of pairs, objects, relations and tags."""

    def __init__(self, width: int, sizes: tuple[int, int], shape: Shape) -> None:
        super().__init__()
        tags, relations = sizes
        pair, wide = shape.pair, shape.relation
        self.rate = shape.dropout
        self.tagger = nn.Linear(width, tags)
        self.pair_first = nn.Linear(width, pair)
        self.pair_second = nn.Linear(width, pair)
        self.pairs = nn.Parameter(torch.zeros(len(PAIR_LABELS) - 1, pair + 1, pair + 1))
        self.object = nn.Linear(width, 1)
        self.relation_first = nn.Linear(width, wide)
        self.relation_second = nn.Linear(width, wide)
        self.relation_key = nn.Linear(width, wide)
        self.relation_value = nn.Linear(width, wide)
        self.relations = nn.Linear(3 * wide, relations)
        self.stated = nn.Parameter(torch.zeros(3, relations))

    def forward(
        self, features: Tensor, words: Tensor, chosen: Tensor, stated: Tensor, style: int = 0
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return scores of pairs (b, n, n, labels), objects (b, n), relations (p, classes) and tags (b, n, tags).

        ``chosen``: (p, 3) sentence, subject and object of the pairs whose relation is scored; ``stated``: (3, p,
        classes), as ``Codes.state`` gives it; ``style``: by whose conventions, as in ``Labelled``.
        """
        states, tags = self.read(features, words, style)
        return self.pair_scores(states), self.object(states).squeeze(-1), self.name(states, chosen, stated), tags

    def read(self, features: Tensor, words: Tensor, style: int = 0) -> tuple[Tensor, Tensor]:
        """Return what the encoder makes of words (b, n, width), and scores of tags (b, n, tags)."""
        raise NotImplementedError

    def pair_scores(self, states: Tensor) -> Tensor:
        """Return scores of pairs (b, n, n, labels)."""
        ones = states.new_ones(*states.shape[:2], 1)
        first = torch.cat([functional.relu(self.pair_first(states)), ones], dim=-1)
        second = torch.cat([functional.relu(self.pair_second(states)), ones], dim=-1)
        scores = torch.einsum("bip,lpq,bjq->bijl", first, self.pairs, second)
        return torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)

    def name(self, states: Tensor, chosen: Tensor, stated: Tensor) -> Tensor:
        """Return scores of relations (p, classes) of chosen pairs."""
        sentence, subject, target = chosen.unbind(dim=1)
        one, other = self.relation_first(states)[sentence, subject], self.relation_second(states)[sentence, target]
        query = functional.relu(one + other)
        keys, values = self.relation_key(states), self.relation_value(states)
        weights = torch.einsum("pr,pnr->pn", query, keys[sentence]).mul(query.shape[1] ** -0.5).softmax(dim=-1)
        context = torch.einsum("pn,pnr->pr", weights, values[sentence])
        hidden = torch.cat([query, one * other, functional.relu(context)], dim=-1)
        hidden = functional.dropout(hidden, self.rate, training=self.training)
        relations: Tensor = self.relations(hidden) + (stated * self.stated.unsqueeze(1)).sum(dim=0)
        return relations


class SceneNetwork(SceneHeads):
    """Words of sentences of one length to scores of pairs, objects, relations and tags, by recurrent layers."""

    def __init__(self, rows: list[int], widths: list[int], sizes: tuple[int, int], shape: Shape) -> None:
        super().__init__(2 * shape.second, sizes, shape)
        states = 2 * shape.first
        self.tagger = nn.Linear(states, sizes[0])
        self.words = WordVectors(rows, widths, 128)
        self.narrow = nn.Linear(states, shape.narrow, bias=False) if shape.narrow else None
        self.layers = nn.ModuleList([Lstm(128, shape.first), Lstm((shape.narrow or states) + 32, shape.second)])
        self.tag_vectors = nn.Linear(sizes[0], 32, bias=False)
        self.shifts = nn.ParameterList([nn.Parameter(torch.zeros(2, *layer.bias.shape)) for layer in self.layers])

    def read(self, features: Tensor, words: Tensor, style: int = 0) -> tuple[Tensor, Tensor]:
        """Return what the encoder makes of words (b, n, 2 * units), and scores of tags (b, n, tags).

        Styles but the first one shift the layers' biases.
        """
        shifts = [own[style - 1] for own in self.shifts] if style else (None, None)
        distinct, where = torch.unique(words.T, return_inverse=True)
        vectors = drop(self.words(features[distinct])[where], self.rate, training=self.training)
        states = self.layers[0](vectors, shifts[0])
        tags = self.tagger(states)
        hints = self.tag_vectors(tags.softmax(dim=-1))
        states = drop(states, self.rate, training=self.training)
        states = states if self.narrow is None else self.narrow(states)
        states = self.layers[1](torch.cat([states, hints], dim=-1), shifts[1])
        return drop(states, self.rate, training=self.training).transpose(0, 1), tags.transpose(0, 1)


MATRICES = {
    name: f"{name}.weight"
    for name in (
        "words.mix", "tagger", "tag_vectors", "pair_first", "pair_second", "object", "relation_first",
        "relation_second", "relation_key", "relation_value", "relations",
    )
}  # fmt: skip


def arrays(network: SceneNetwork) -> dict[str, np.ndarray]:
    """Return the network's weights under the package's names."""
    state = {name: tensor.detach().float().numpy() for name, tensor in network.state_dict().items()}
    out = {name: state[own].T for name, own in MATRICES.items()}
    out |= {f"{name}.bias": state[f"{name}.bias"] for name in MATRICES if f"{name}.bias" in state}
    out |= {
        "words.norm": state["words.norm.weight"],
        "words.norm.bias": state["words.norm.bias"],
        "pairs": state["pairs"],
        "stated": state["stated"],
    }
    if network.narrow is not None:
        out["narrow"] = state["narrow.weight"].T
    for kind, table in enumerate(network.words.tables):
        out[f"words.tables.{kind}"] = table.numpy()
    for layer in range(len(network.layers)):
        out[f"lstm.{layer}.input"] = np.concatenate(list(state[f"layers.{layer}.weight"]), axis=1)
        out[f"lstm.{layer}.state"] = state[f"layers.{layer}.state"]
        out[f"lstm.{layer}.bias"] = state[f"layers.{layer}.bias"].reshape(-1)
        out[f"lstm.{layer}.shift"] = state[f"shifts.{layer}"].reshape(2, -1)
    return out


@torch.no_grad()
def start_from(network: SceneNetwork, weights: Mapping[str, np.ndarray], kept: Sequence[Sequence[int]]) -> None:
    """Give the network's encoder the pipeline's weights; ``kept``: the rows of each table that it has."""
    for kind, rows in enumerate(kept):
        network.words.tables[kind] = torch.from_numpy(weights[f"words.tables.{kind}"][list(rows)].copy())
    for name in ("words.mix", "tagger", "tag_vectors"):
        part = network.get_submodule(name)
        part.weight.copy_(torch.from_numpy(weights[name].T.copy()))
        if part.bias is not None:
            part.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]))
    if network.narrow is not None:
        network.narrow.weight.copy_(torch.from_numpy(weights["narrow"].T.copy()))
    network.words.norm.weight.copy_(torch.from_numpy(weights["words.norm"]))
    network.words.norm.bias.copy_(torch.from_numpy(weights["words.norm.bias"]))
    for layer, lstm in enumerate(network.layers):
        lstm.weight.copy_(torch.from_numpy(np.stack(np.split(weights[f"lstm.{layer}.input"], 2, axis=1))))
        lstm.state.copy_(torch.from_numpy(weights[f"lstm.{layer}.state"]))
        lstm.bias.copy_(torch.from_numpy(weights[f"lstm.{layer}.bias"].reshape(2, -1)))


@torch.no_grad()
def resume(network: SceneNetwork, weights: Mapping[str, np.ndarray]) -> None:
    """Give the network the weights that an earlier run wrote, from the same captions."""
    start_from(network, weights, [range(len(table)) for table in network.words.tables])
    for name in MATRICES:
        part = network.get_submodule(name)
        part.weight.copy_(torch.from_numpy(weights[name].T.copy()))
        if part.bias is not None:
            part.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]))
    network.pairs.copy_(torch.from_numpy(weights["pairs"]))
    network.stated[: len(weights["stated"])] = torch.from_numpy(weights["stated"])
    for layer, shift in enumerate(network.shifts):
        if f"lstm.{layer}.shift" in weights:
            shift.copy_(torch.from_numpy(weights[f"lstm.{layer}.shift"]).reshape(-1, *shift.shape[1:]))


def shape_of(weights: Mapping[str, np.ndarray], dropout: float = 0.0) -> Shape:
    """Return the shape of a network with such weights."""
    first, second = (weights[f"lstm.{layer}.state"].shape[1] for layer in (0, 1))
    narrow = weights["narrow"].shape[1] if "narrow" in weights else 0
    return Shape(first=first, second=second, narrow=narrow, dropout=dropout)


def reshaped(weights: Mapping[str, np.ndarray], shape: Shape, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return weights of a network with other numbers of units that says nearly the same.

    New units have random weights, and nothing reads them yet; what the second layer reads of the first is narrowed to
    the directions that its inputs depend on most.

    Args:
        weights: under the package's names, not narrowed.
        shape: of the network.
        random: where the new units' weights come from.
    """
    old = shape_of(weights)

    def gates(values: np.ndarray, before: int, after: int) -> np.ndarray:
        """Give each of the gates, which lie one behind the other, other numbers of units."""
        parts = values.reshape(*values.shape[:-1], -1, before)
        made = random.uniform(-(after**-0.5), after**-0.5, (*parts.shape[:-1], after)).astype(np.float32)
        made[..., : min(before, after)] = parts[..., :after]
        return made.reshape(*values.shape[:-1], -1)

    def read(values: np.ndarray, before: int, after: int, directions: int = 2) -> np.ndarray:
        """Let weights (directions * units, ...) read other numbers of units, the new ones with 0."""
        parts = values[: directions * before].reshape(directions, before, *values.shape[1:])
        made = np.zeros((directions, after, *values.shape[1:]), dtype=np.float32)
        made[:, : min(before, after)] = parts[:, :after]
        return np.concatenate([made.reshape(-1, *values.shape[1:]), values[directions * before :]])

    out = dict(weights)
    sizes = (old.first, shape.first), (old.second, shape.second)
    for layer, (before, after) in enumerate(sizes):
        for name in (f"lstm.{layer}.input", f"lstm.{layer}.bias"):
            out[name] = gates(weights[name], before, after)
        state = gates(weights[f"lstm.{layer}.state"], before, after)
        out[f"lstm.{layer}.state"] = np.stack([read(own, before, after, 1) for own in state])
    out["tagger"] = read(weights["tagger"], *sizes[0])
    out["lstm.1.input"] = read(out["lstm.1.input"], *sizes[0])
    for name in ("pair_first", "pair_second", "object", *(n for n in MATRICES if n.startswith("relation_"))):
        if name in weights:
            out[name] = read(weights[name], *sizes[1])
    return narrowed(out, shape) if shape.narrow else out


def narrowed(weights: Mapping[str, np.ndarray], shape: Shape) -> dict[str, np.ndarray]:
    """Return weights with which the second layer reads ``shape.narrow`` numbers of the first one's states."""
    states, hints = np.split(weights["lstm.1.input"], [2 * shape.first])
    left, strengths, right = np.linalg.svd(states, full_matrices=False)
    roots = np.sqrt(strengths[: shape.narrow])
    return dict(weights) | {
        "narrow": left[:, : shape.narrow] * roots,
        "lstm.1.input": np.concatenate([roots[:, None] * right[: shape.narrow], hints]),
    }
