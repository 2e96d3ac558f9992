"""Train the caption pipeline's network on the reference parser's parses, and write it for the package.

One thread and a fixed seed: two runs on one machine from the same files give the same weights.
"""

import argparse
import json
import logging
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import export
from data import Data, Encoded, batches, counts, encode, read, read_vocabulary, sentences, vocabulary
from network import Network, Shape

LOG = logging.getLogger("train")
REPORT_EVERY = 500  # batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How the network is trained; see ``config.toml``."""

    seed: int
    words: int
    batch: int
    rate: float
    warm_up: int
    decay: float
    clip: float
    unknown: float

    def rate_at(self, step: int, share: float) -> float:
        """Return the learning rate at a batch, when a share of all words has been seen."""
        return self.rate * min(1.0, (step + 1) / self.warm_up) * (1.0 - share)


def loss_of(network: Network, batch: Encoded, hidden: Tensor) -> Tensor:
    """Return the summed losses of tags, heads and labels; ``hidden``: how often a form is not shown."""
    shown = batch.features.clone()
    shown[..., 0].masked_fill_(torch.rand(batch.heads.shape) < hidden[shown[..., 0]], 0)
    scores = network(shown, batch.heads)
    wanted = (batch.tags, batch.heads, batch.labels)
    losses = [functional.cross_entropy(s.flatten(0, 1), w.flatten()) for s, w in zip(scores, wanted, strict=True)]
    return torch.stack(losses).sum()


@torch.no_grad()
def agreement(network: Network, data: dict[int, Encoded]) -> dict[str, float]:
    """Return percentages of words with the right tag, head, head and label, and of wholly right sentences."""
    network.eval()
    right: Counter[str] = Counter()
    for group in data.values():
        for start in range(0, len(group.heads), 256):
            part = group.take(torch.arange(start, min(start + 256, len(group.heads))))
            tags, heads, labels = (scores.argmax(dim=-1) for scores in network(part.features))
            attached = heads == part.heads
            whole = attached & (labels == part.labels)
            found = {"tag": tags == part.tags, "uas": attached, "las": whole, "exact": whole.all(dim=1)}
            right.update({name: int(hits.sum()) for name, hits in found.items()})
            right.update({"words": part.heads.numel(), "sentences": len(part.heads)})
    network.train()
    return {
        name: round(100 * right[name] / right["sentences" if name == "exact" else "words"], 2)
        for name in ("tag", "uas", "las", "exact")
    }


def fit(network: Network, data: dict[int, Encoded], hidden: Tensor, schedule: Schedule) -> None:
    """Train a network as the schedule says; ``hidden`` is how often each row's form is not shown."""
    random = np.random.default_rng(schedule.seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=schedule.rate, betas=(0.9, schedule.decay), fused=True)
    began, seen, step = time.monotonic(), 0, 0
    lately: list[float] = []
    while seen < schedule.words:
        for batch in batches(data, schedule.batch, random):
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate_at(step, seen / schedule.words)
            optimizer.zero_grad()
            loss = loss_of(network, batch, hidden)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(network.parameters(), schedule.clip)
            optimizer.step()
            lately.append(loss.item())
            seen += batch.heads.numel()
            step += 1
            if step % REPORT_EVERY == 0:
                spent = time.monotonic() - began
                LOG.info("%.0f s, %.2f M words, loss %.4f", spent, seen / 1e6, np.mean(lately))
                lately = []
            if seen >= schedule.words:
                return


def train(arguments: argparse.Namespace) -> None:
    """Train as the configuration and the arguments say, and write the network."""
    config = tomllib.loads(arguments.config.read_text(encoding="utf-8"))
    changed = {name: getattr(arguments, name) for name in ("words", "rate") if getattr(arguments, name) is not None}
    data, schedule = Data(**config["data"]), Schedule(**{**config["training"], **changed})
    torch.set_num_threads(1)
    torch.manual_seed(schedule.seed)
    torch.use_deterministic_algorithms(mode=True)
    training, held = read(arguments.silver, arguments.evaluation, data, schedule.seed)
    counters = counts(training)
    known = read_vocabulary(arguments.start) if arguments.start else vocabulary(training, counters, data.least)
    rows = [1 + len(names) for names in known.rows]
    network = Network(rows, len(known.tags), len(known.labels), Shape(**config["shape"]))
    if arguments.start:
        export.restore(network, arguments.start)
    LOG.info("%s parameters, %s sentences", sum(p.numel() for p in network.parameters()), len(training))
    rare = [schedule.unknown / (schedule.unknown + counters[0][form]) for form in known.rows[0]]
    fit(network, encode(training, known), torch.tensor([0.0, *rare]), schedule)
    for part in held:
        LOG.info("held out: %s", json.dumps(agreement(network, encode(sentences(part), known))))
    export.write(network, known, arguments.out)


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "silver",
        type=Path,
        nargs="+",
        help="parses (conllu, gzipped or not); of the first two some are held out",
    )
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("config.toml"))
    parser.add_argument(
        "--evaluation", type=Path, nargs="*", default=[], help="evaluation files (jsonl.gz) never trained on"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of network.npz and vocabulary.json")
    parser.add_argument("--start", type=Path, help="go on from the network in this folder")
    parser.add_argument("--rate", type=float, help="learning rate, instead of the configuration's")
    parser.add_argument("--words", type=int, help="words to see in all, instead of the configuration's")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
