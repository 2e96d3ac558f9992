"""Ask a sentence encoder what it thinks of texts: a unit vector for each.

    python training/meaning_teacher.py texts.tsv.gz --model FOLDER --out minilm.npy

FOLDER is ``model`` of the wheel in ``teacher.txt`` (all-MiniLM-L6-v2), whose vector is the mean of the last layer's
states, or what ``scene_bge.py`` writes (``--first``: BGE's is the state of the first piece). One thread; deterministic.
"""

import argparse
import gzip
import json
import re
from pathlib import Path
from typing import Final

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from scene_pretrained import CONFIG, PIECES, PRETRAINED, Layer, Pieces

LONGEST: Final = 126  # pieces of a text that are read
CELLS: Final = 8_192  # pieces of a batch
_PART: Final = re.compile(r"\w+|[^\w\s]")


class Encoder(nn.Module):
    """The layers of a small BERT."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        config = json.loads((folder / CONFIG).read_bytes())
        width = config["hidden_size"]
        self.pieces = Pieces(folder / PIECES)
        shape = width, config["num_attention_heads"], config["intermediate_size"]
        self.body = nn.ModuleList([Layer(*shape) for _ in range(config["num_hidden_layers"])])
        self.norm = nn.LayerNorm(width, eps=1e-12)
        weights = {name.removeprefix("bert."): value for name, value in load_file(folder / PRETRAINED).items()}
        self.word = nn.Parameter(weights["embeddings.word_embeddings.weight"])
        self.position = nn.Parameter(
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        )
        parts = {"out": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense"}
        parts |= {"down": "output.dense", "norm2": "output.LayerNorm"}
        with torch.no_grad():
            for kind in ("weight", "bias"):
                self.norm.get_parameter(kind).copy_(weights[f"embeddings.LayerNorm.{kind}"])
                for number, layer in enumerate(self.body):
                    at = f"encoder.layer.{number}"
                    three = [weights[f"{at}.attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
                    layer.get_parameter(f"qkv.{kind}").copy_(torch.cat(three))
                    for name, part in parts.items():
                        layer.get_parameter(f"{name}.{kind}").copy_(weights[f"{at}.{part}.{kind}"])

    def numbers(self, text: str) -> list[int]:
        """Return the pieces of a text, between those of its ends."""
        rows = self.pieces.rows(_PART.findall(text.lower())).flatten().tolist()
        return [self.pieces.first, *[piece for piece in rows if piece][:LONGEST], self.pieces.last]

    def forward(self, rows: Tensor, *, first: bool) -> Tensor:
        """Return (texts, width) unit vectors of rows of pieces with 0 behind them."""
        states = self.norm(self.word[rows] + self.position[: rows.shape[1]])
        mask = torch.zeros(rows.shape).masked_fill_(rows == 0, -1e4)[:, None, None].bfloat16()
        with torch.autocast("cpu", torch.bfloat16):
            for layer in self.body:
                states = layer(states, mask, 0.0)
        read = (rows > 0).float()[..., None]
        pooled = states[:, 0].float() if first else (states.float() * read).sum(dim=1) / read.sum(dim=1)
        return nn.functional.normalize(pooled, dim=1)


@torch.no_grad()
def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--first", action="store_true", help="the first piece's state in place of the mean")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with gzip.open(options.texts, "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n").split("\t", 1)[1] for line in lines]
    encoder = Encoder(options.model).eval()
    numbers = list(map(encoder.numbers, texts))
    order = sorted(range(len(texts)), key=lambda place: (len(numbers[place]), place))
    vectors = np.zeros((len(texts), encoder.norm.normalized_shape[0]), np.float16)
    done = 0
    while done < len(order):
        own = order[done : done + max(CELLS // len(numbers[order[min(done + 255, len(order) - 1)]]), 1)]
        width = len(numbers[own[-1]])
        rows = torch.tensor([[*numbers[place], *[0] * (width - len(numbers[place]))] for place in own])
        vectors[own] = encoder(rows, first=options.first).numpy()
        done += len(own)
        print(f"\r{done} of {len(texts)}", end="", flush=True)
    print()
    np.save(options.out, vectors)


if __name__ == "__main__":
    main()
