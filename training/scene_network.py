"""The trainable form of the scene parser's network (torch); the package holds its numpy form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from export import take_over
from network import Encoder, Layers
from spicegraph_scenes.network import PAIR_LABELS

RELATION_PARTS = ("relation_first", "relation_second", "relation_key", "relation_value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Layers):
    """Sizes of the scene parser's network."""

    styles: int = 3
    pair: int = 96
    relation: int = 128


class SceneHeads(nn.Module):
    """What an encoder's states of words (b, n, width) are to scores of pairs, objects, relations and tags."""

    def __init__(self, width: int, relations: int, shape: Shape) -> None:
        super().__init__()
        pair, wide = shape.pair, shape.relation
        self.rate = shape.dropout
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
        """Make a network of ``sizes``: how many tags, how many relations."""
        tags, relations = sizes
        super().__init__(2 * shape.second, relations, shape)
        self.encoder = Encoder(rows, widths, tags, shape)

    def read(self, features: Tensor, words: Tensor, style: int = 0) -> tuple[Tensor, Tensor]:
        """Return what the encoder makes of words (b, n, 2 * units), and scores of tags (b, n, tags)."""
        states, tags = self.encoder(features, words, style)
        return states.transpose(0, 1), tags.transpose(0, 1)


def start_from(network: SceneNetwork, weights: Mapping[str, np.ndarray], kept: Sequence[Sequence[int]]) -> None:
    """Give the network's encoder the pipeline's weights; ``kept``: the rows of each table that it has."""
    encoder = network.encoder
    for kind, rows in enumerate(kept):
        encoder.words.tables[kind] = torch.from_numpy(weights[f"words.tables.{kind}"][list(rows)])
    take_over(encoder, with_shifts(network, weights))


def resume(network: SceneNetwork, weights: Mapping[str, np.ndarray]) -> None:
    """Give the network the weights that an earlier run wrote, from the same captions."""
    start_from(network, weights, [range(len(table)) for table in network.encoder.words.tables])
    stated = np.zeros(network.stated.shape, dtype=np.float32)
    stated[: len(weights["stated"])] = weights["stated"]
    take_over(network, with_shifts(network, weights) | {"stated": stated})


def with_shifts(network: SceneNetwork, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights with shifts for all of the network's styles: those of the only one that they have, or none."""
    out = dict(weights)
    for layer, own in enumerate(network.encoder.shifts):
        shifts = weights.get(f"lstm.{layer}.shift", np.zeros((1, own[0].numel()), dtype=np.float32))
        out[f"lstm.{layer}.shift"] = np.broadcast_to(shifts, (len(own), own[0].numel()))
    return out


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
    for name in ("pair_first", "pair_second", "object", *RELATION_PARTS):
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
