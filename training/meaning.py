"""Train the table of meanings: word vectors whose sum points where a sentence encoder's vector of the caption does.

    python training/meaning.py texts.tsv.gz --teacher minilm.npy [bge.npy ...] --seed 1 --out meaning.npz

The teacher's vectors (of several: side by side, each with an equal share of the squared length) are projected on their
first principal directions. The loss of a caption is 1 minus the cosine of its words' sum and that, and how far cosines
of pairs are from the teacher's; words are left out by chance, so that each learns what it says alone. One thread; the
same seed gives the same file.
"""

import argparse
import gzip
import time
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from spicegraph_graded.spice_g.texts import MeaningTable, words_of_text

BATCH: Final = 512
HELD_BACK: Final = 50  # every so many texts: for the printed cosine
Array = np.ndarray[Any, np.dtype[Any]]


def targets_of(teachers: Sequence[Array], dimensions: int) -> Array:
    """Return (texts, dimensions) what the table learns: the teachers' vectors in their first principal directions."""
    parts = [
        part.astype(np.float32) / np.linalg.norm(part.astype(np.float32), axis=1, keepdims=True) for part in teachers
    ]
    joined = np.concatenate(parts, axis=1) / np.sqrt(len(parts))
    _, vectors = np.linalg.eigh((joined.T @ joined).astype(np.float64))
    directions = vectors[:, ::-1][:, :dimensions]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(dimensions)])
    found: Array = (joined @ (directions * signs)).astype(np.float32)
    return found


class Bags:
    """Texts as the numbers of their words."""

    def __init__(self, texts: Sequence[str], fewest: int, most: int) -> None:
        words = list(map(words_of_text, texts))
        counts = Counter(chain.from_iterable(map(set, words)))
        ranked = sorted((word for word, count in counts.items() if count >= fewest), key=lambda w: (-counts[w], w))
        self.words = ranked[:most]
        self.counts = [counts[word] for word in self.words]
        number = {word: place for place, word in enumerate(self.words)}
        self.rows = [[number[word] for word in own if word in number] for own in words]

    def of(self, numbers: Sequence[int], keep: float, dice: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return the words of some texts, one behind the other, and where each text begins."""
        bags = [self.rows[number] for number in numbers]
        flat = np.fromiter(chain.from_iterable(bags), np.int64)
        lengths = np.array(list(map(len, bags)))
        if keep < 1:
            kept = dice.random(len(flat)) < keep
            starts = lengths.cumsum() - lengths
            kept[starts[lengths > 0]] = True
            lengths = np.bincount(np.repeat(np.arange(len(bags)), lengths)[kept], minlength=len(bags))
            flat = flat[kept]
        return torch.from_numpy(flat), torch.from_numpy(lengths.cumsum() - lengths)


def train(bags: Bags, targets: Array, *, seed: int, passes: int, rate: float, keep: float, pairs: float) -> Array:
    """Return (words, dimensions) the vectors."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    dice = np.random.default_rng(seed)
    bag = nn.EmbeddingBag(len(bags.words), targets.shape[1], mode="sum")
    nn.init.normal_(bag.weight, std=0.02)
    goals = functional.normalize(torch.from_numpy(targets), dim=1)
    usable = np.array([number for number, row in enumerate(bags.rows) if row])
    held, used = usable[usable % HELD_BACK == 0], usable[usable % HELD_BACK != 0]
    optimiser = torch.optim.Adam(bag.parameters(), lr=rate)
    steps = passes * (len(used) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(1 - step / steps, 0.0))
    for done in range(passes):
        start, total = time.process_time(), 0.0
        order = dice.permutation(used)
        for first in range(0, len(order) - BATCH + 1, BATCH):
            own = order[first : first + BATCH]
            said = functional.normalize(bag(*bags.of(own.tolist(), keep, dice)), dim=1)
            goal = goals[own]
            loss = (1 - (said * goal).sum(dim=1)).mean()
            if pairs:
                loss = loss + pairs * (said @ said.T - goal @ goal.T).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss)
        with torch.no_grad():
            said = functional.normalize(bag(*bags.of(held.tolist(), 1.0, dice)), dim=1)
            cosine = float((said * goals[held]).sum(dim=1).mean())
        print(f"pass {done + 1}: held-back cosine {cosine:.4f}, {time.process_time() - start:.0f} s", flush=True)
    found: Array = bag.weight.detach().numpy()
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--teacher", type=Path, nargs="+", required=True)
    parser.add_argument("--name", default="meaning-en")
    parser.add_argument("--dimensions", type=int, default=96)
    parser.add_argument("--fewest", type=int, default=3, help="texts that have a word of the table")
    parser.add_argument("--most", type=int, default=16_000, help="words of the table")
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--keep", type=float, default=0.85, help="share of a text's words that a pass reads")
    parser.add_argument("--pairs", type=float, default=2.0, help="weight of the loss of pairs' cosines")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with gzip.open(options.texts, "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n").split("\t", 1)[1] for line in lines]
    bags = Bags(texts, options.fewest, options.most)
    targets = targets_of([np.load(path) for path in options.teacher], options.dimensions)
    vectors = train(
        bags,
        targets,
        seed=options.seed,
        passes=options.passes,
        rate=options.rate,
        keep=options.keep,
        pairs=options.pairs,
    )
    table = MeaningTable.of(options.name, bags.words, vectors)
    table.write(options.out)
    print(f"{table.signature}: {len(bags.words)} words, {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
