"""The trainable form of the caption pipeline's network (torch), and the layers with which both networks begin.

Word features are embedded and mixed to one vector per word; a bidirectional LSTM reads the sentence; tags are
read off the first layer, fed to the second and corrected by it; heads come from biaffine scores (Dozat and Manning
2017), labels from the sum and the product of both ends of an edge.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Sizes of the layers that read a sentence, and the share of units that are dropped."""

    word: int = 128
    first: int = 160  # units of a direction of the first recurrent layer
    second: int = 160
    narrow: int = 0  # numbers that the second layer reads of the first one's states; 0: all states
    tag: int = 32
    styles: int = 1  # conventions by which a sentence is read
    dropout: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Layers):
    """Sizes of the caption pipeline's network."""

    form: int = 128
    suffix: int = 48
    prefix: int = 24
    case: int = 8
    arc: int = 128
    label: int = 128


def drop(values: Tensor, rate: float, *, training: bool) -> Tensor:
    """Drop the same units at every word of a sentence (Gal and Ghahramani 2016).

    Values are (n, sentences, units).
    """
    if not training or rate == 0.0:
        return values
    kept = torch.empty(1, *values.shape[1:]).bernoulli_(1.0 - rate)
    return values * kept.div_(1.0 - rate)


class WordVectors(nn.Module):
    """One vector per word from the rows of its features in one table each.

    The tables are not parameters: only the rows of a batch's words have slopes, and ``update`` changes only these.
    """

    def __init__(self, rows: list[int], widths: list[int], out: int) -> None:
        super().__init__()
        self.tables = [torch.randn(count, width) * 0.3 for count, width in zip(rows, widths, strict=True)]
        self.squares = [torch.zeros_like(table) for table in self.tables]
        self.latest = [torch.zeros(count) for count in rows]
        self.used: list[tuple[Tensor, Tensor]] = []
        self.mix = nn.Linear(sum(widths), out)
        self.norm = nn.LayerNorm(out)

    def forward(self, features: Tensor) -> Tensor:
        """Features (words, kinds) of distinct words to vectors (words, out)."""
        parts = []
        self.used = []
        for table, own in zip(self.tables, features.unbind(dim=1), strict=True):
            rows, where = torch.unique(own, return_inverse=True)
            values = table[rows].requires_grad_(self.training)
            self.used.append((rows, values))
            parts.append(values[where])
        vectors: Tensor = self.norm(self.mix(torch.cat(parts, dim=-1)))
        return vectors

    def slopes(self) -> list[Tensor]:
        """Return the slopes of the last batch's rows."""
        return [values.grad for _, values in self.used if values.grad is not None]

    @torch.no_grad()
    def update(self, step: int, rate: float, decay: float) -> None:
        """Change the last batch's rows (Adam without momentum: a rare row would else lose most of its step).

        The mean squares of slopes decay as if the batches without the row had had slopes of 0.
        """
        for kind, (rows, values) in enumerate(self.used):
            slope = values.grad
            if slope is None:
                continue
            passed = (decay ** (step - self.latest[kind][rows])).unsqueeze(1)
            squares = self.squares[kind][rows] * passed + (1.0 - decay) * slope**2
            correction = (1.0 - decay ** (step + 1)) ** 0.5
            self.squares[kind][rows] = squares
            self.latest[kind][rows] = float(step)
            self.tables[kind][rows] = values - rate * correction * slope / (squares.sqrt() + 1e-8)


def recurrent(width: int, hidden: int) -> nn.LSTM:
    """Return a bidirectional layer; of the two biases that torch gives a gate, the states' stays 0."""
    layer = nn.LSTM(width, hidden, bidirectional=True)
    for bias in (layer.bias_hh_l0, layer.bias_hh_l0_reverse):
        nn.init.zeros_(bias.requires_grad_(requires_grad=False))
    return layer


class Encoder(nn.Module):
    """Words of sentences of one length to their states and scores of tags; styles but the first shift the biases."""

    def __init__(self, rows: list[int], widths: list[int], tags: int, shape: Layers) -> None:
        super().__init__()
        states = 2 * shape.first
        self.rate = shape.dropout
        self.words = WordVectors(rows, widths, shape.word)
        self.narrow = nn.Linear(states, shape.narrow, bias=False) if shape.narrow else nn.Identity()
        read = (shape.narrow or states) + shape.tag
        self.layers = nn.ModuleList([recurrent(shape.word, shape.first), recurrent(read, shape.second)])
        shifts = (torch.zeros(shape.styles - 1, 2, 4 * units) for units in (shape.first, shape.second))
        self.shifts = nn.ParameterList(shifts)
        self.tagger = nn.Linear(states, tags)
        self.tag_vectors = nn.Linear(tags, shape.tag, bias=False)

    def drop(self, values: Tensor) -> Tensor:
        """Drop units as the network's shape says, while training."""
        return drop(values, self.rate, training=self.training)

    def forward(self, features: Tensor, words: Tensor, style: int = 0) -> tuple[Tensor, Tensor]:
        """Words (sentences, n), rows of features (words, kinds), to states and tag scores (n, sentences, ...)."""
        distinct, where = torch.unique(words.T, return_inverse=True)
        states = self.layer(0, self.drop(self.words(features[distinct])[where]), style)
        tags = self.tagger(states)
        hints = self.tag_vectors(tags.softmax(dim=-1))
        states = self.layer(1, torch.cat([self.narrow(self.drop(states)), hints], dim=-1), style)
        return self.drop(states), tags

    def layer(self, number: int, inputs: Tensor, style: int) -> Tensor:
        """Return a recurrent layer's states (n, sentences, both directions)."""
        layer = self.layers[number]
        if not style:
            states: Tensor = layer(inputs)[0]
            return states
        biases = dict(zip(("bias_hh_l0", "bias_hh_l0_reverse"), self.shifts[number][style - 1], strict=True))
        shifted: Tensor = torch.func.functional_call(layer, biases, (inputs,))[0]
        return shifted


class Network(nn.Module):
    """Words of sentences of one length to scores of tags, heads and labels."""

    def __init__(self, rows: list[int], tags: int, labels: int, shape: Shape) -> None:
        super().__init__()
        widths = [shape.form, shape.suffix, shape.suffix, shape.suffix, shape.prefix, shape.case]
        both = 2 * shape.second
        self.encoder = Encoder(rows, widths, tags, shape)
        self.late_tagger = nn.Linear(both, tags)
        self.arc_child = nn.Linear(both, shape.arc)
        self.arc_head = nn.Linear(both, shape.arc)
        self.root_arc = nn.Parameter(torch.zeros(shape.arc))
        self.arc_scores = nn.Linear(shape.arc, shape.arc)
        self.label_child = nn.Linear(both, shape.label)
        self.label_head = nn.Linear(both, shape.label, bias=False)
        self.root_label = nn.Parameter(torch.zeros(shape.label))
        self.labeller = nn.Linear(2 * shape.label, labels)

    def forward(
        self, features: Tensor, words: Tensor, heads: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return scores of tags by the first layer, tags (b, n, tags), heads (b, n, 1 + n; 0 is the root) and labels.

        Labels (b, n, labels) are scored for the given heads (b, n), or for each word's best one.
        """
        return self.scores(*self.encoder(features, words), heads)

    def scores(self, states: Tensor, early: Tensor, heads: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return what ``forward`` does, from what the encoder returned."""
        tags = early + self.late_tagger(states)
        states = states.transpose(0, 1)
        sentences = states.shape[0]
        children = self.arc_scores(functional.relu(self.arc_child(states)))
        parents = functional.relu(self.arc_head(states))
        parents = torch.cat([self.root_arc.expand(sentences, 1, -1), parents], dim=1)
        arcs = children @ parents.transpose(1, 2)
        chosen = arcs.argmax(dim=-1) if heads is None else heads
        below = self.label_child(states)
        above = torch.cat([self.root_label.expand(sentences, 1, -1), self.label_head(states)], dim=1)
        above = above.gather(1, chosen.unsqueeze(-1).expand(-1, -1, above.shape[-1]))
        edges = torch.cat([functional.relu(below + above), below * above], dim=-1)
        return early.transpose(0, 1), tags.transpose(0, 1), arcs, self.labeller(edges)
