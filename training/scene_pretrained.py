"""A small transformer that was pretrained on plain text (BERT), with the heads of the scene parser.

It is too large to ship: it teaches.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from network import drop
from scene_batches import Codes
from scene_network import SceneHeads, Shape
from spicegraph_parser.caption_pipeline.encoder import Vocabulary

NETWORK, CONFIG, PIECES, PRETRAINED = "network.pt", "config.json", "vocab.txt", "model.safetensors"
MOST = 6  # pieces of a word that are read
SHAPE = Shape(pair=128, dropout=0.2)


class Pieces:
    """Cuts words into pieces of a list, the longest first; ``##`` begins those inside of a word."""

    def __init__(self, path: Path) -> None:
        self._numbers = {piece: number for number, piece in enumerate(path.read_text(encoding="utf-8").splitlines())}
        self.first, self.last, self._unknown = (self._numbers[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        self._of = cache(self._cut)

    def _cut(self, word: str) -> tuple[int, ...]:
        out: list[int] = []
        for part in re.findall(r"\w+|[^\w\s]", word.lower()):
            start = 0
            while start < len(part):
                ends = range(len(part), start, -1)
                found = (self._numbers.get("##" * (start > 0) + part[start:end]) for end in ends)
                end, number = next(((e, n) for e, n in zip(ends, found, strict=True) if n is not None), (0, 0))
                if not end:
                    return (self._unknown,)
                out.append(number)
                start = end
        return tuple(out[:MOST]) or (self._unknown,)

    def rows(self, words: Iterable[str]) -> Tensor:
        """Return (words, MOST) the pieces of words, and 0 behind them."""
        return torch.tensor([[*own, *[0] * (MOST - len(own))] for own in map(self._of, words)])


class Layer(nn.Module):
    """A layer of BERT. Written out: torch's fused attention takes half of the time of sentences so short."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, states: Tensor, mask: Tensor, rate: float) -> Tensor:
        """States (b, n, width) to states; ``mask`` (b, 1, 1, n) is added to attention."""
        count, size, width = states.shape
        each = width // self.heads
        query, key, value = self.qkv(states).view(count, size, 3, self.heads, each).permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(2, 3) * each**-0.5 + mask).softmax(dim=-1).to(value.dtype)
        seen = self.out((weights @ value).transpose(1, 2).reshape(count, size, width))
        states = self.norm1(states + drop_units(seen, rate, training=self.training))
        inner = self.down(functional.gelu(self.up(states)))
        out: Tensor = self.norm2(states + drop_units(inner, rate, training=self.training))
        return out


def drop_units(states: Tensor, rate: float, *, training: bool) -> Tensor:
    """Drop the same units of all words of a sentence (b, n, width)."""
    return drop(states.transpose(0, 1), rate, training=training).transpose(0, 1)


class PretrainedScene(SceneHeads):
    """Words to scores, as ``SceneNetwork`` has them, by pretrained layers; ``features`` are ``Pieces.rows``.

    A word's state is the mean of those of its first and last piece.
    """

    def __init__(self, folder: Path, sizes: tuple[int, int], body_rate: float = 0.1) -> None:
        config = json.loads((folder / CONFIG).read_bytes())
        width = config["hidden_size"]
        tags, relations = sizes
        super().__init__(width, relations, SHAPE)
        self.tagger = nn.Linear(width, tags)
        self.body_rate = body_rate
        self.pieces = Pieces(folder / PIECES)
        self.word = nn.Embedding(config["vocab_size"], width)
        self.word.weight.requires_grad_(False)
        self.position = nn.Parameter(torch.zeros(config["max_position_embeddings"], width))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        shape = width, config["num_attention_heads"], config["intermediate_size"]
        self.body = nn.ModuleList([Layer(*shape) for _ in range(config["num_hidden_layers"])])

    @torch.no_grad()
    def start(self, path: Path) -> None:
        """Take the pretrained weights of a file."""
        own = {name.removeprefix("bert."): value for name, value in load_file(path).items()}
        self.word.weight.copy_(own["embeddings.word_embeddings.weight"])
        self.position.copy_(
            own["embeddings.position_embeddings.weight"] + own["embeddings.token_type_embeddings.weight"][0]
        )
        places = {"out": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense"}
        places |= {"down": "output.dense", "norm2": "output.LayerNorm"}
        for kind in ("weight", "bias"):
            self.norm.get_parameter(kind).copy_(own[f"embeddings.LayerNorm.{kind}"])
            for number, layer in enumerate(self.body):
                at = f"encoder.layer.{number}"
                three = [own[f"{at}.attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
                layer.get_parameter(f"qkv.{kind}").copy_(torch.cat(three))
                for name, place in places.items():
                    layer.get_parameter(f"{name}.{kind}").copy_(own[f"{at}.{place}.{kind}"])

    def read(self, features: Tensor, words: Tensor, style: int = 0) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return what the layers make of words (b, n, width), and scores of tags (b, n, tags); it has one style."""
        pieces = features[words]
        edge = pieces.new_ones(len(words), 1)
        row = torch.cat([edge * self.pieces.first, pieces.flatten(1), edge * self.pieces.last], dim=1)
        order = (row == 0).to(torch.int8).argsort(dim=1, stable=True)[:, : int((row > 0).sum(dim=1).max())]
        row = row.gather(1, order)
        last = (pieces > 0).sum(dim=2).cumsum(dim=1)
        first = torch.cat([torch.zeros_like(edge), last[:, :-1]], dim=1) + 1
        states = self.norm(self.word(row) + self.position[: row.shape[1]])
        states = drop_units(states, self.body_rate, training=self.training)
        mask = torch.zeros(row.shape).masked_fill_(row == 0, -1e4)[:, None, None].bfloat16()
        with torch.autocast("cpu", torch.bfloat16):
            for layer in self.body:
                states = layer(states, mask, self.body_rate)
        ends = [states.float().gather(1, at[..., None].expand(-1, -1, states.shape[2])) for at in (first, last)]
        states = functional.dropout((ends[0] + ends[1]) / 2, self.rate, training=self.training)
        return states, self.tagger(states)


class PieceCodes(Codes):
    """Numbers of words, with pieces in place of table rows."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        relations: Sequence[str],
        tags: Mapping[tuple[str, ...], list[int]],
        pieces: Pieces,
    ) -> None:
        super().__init__(vocabulary, relations, tags)
        self.pieces = pieces

    def rows(self, vocabulary: Vocabulary | None = None) -> Tensor:  # noqa: ARG002
        """Return (words, MOST) the pieces of every word so far."""
        return self.pieces.rows(self.numbers)


def read_pretrained(folder: Path, codes: Codes) -> PretrainedScene:
    """Read a teacher that an earlier run wrote."""
    network = PretrainedScene(folder, (len(codes.vocabulary.tags), len(codes.relations)))
    network.load_state_dict(torch.load(folder / NETWORK, weights_only=True))
    return network.eval()
