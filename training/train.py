"""Train the caption pipeline's network on the reference parser's parses, and write it for the package.

One thread and a fixed seed: two runs on one machine from the same files give the same weights.
"""

import argparse
import json
import logging
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import export
import teach
from data import Batch, Codes, Data, Encoded, batches, counts, read, sentences, take, vocabulary
from heldout import Hashes, Held, add_hashes
from network import Network, Shape

LOG = logging.getLogger("train")
REPORT_EVERY = 500  # batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How the network is trained; see ``config.toml``."""

    seed: int
    batch: int
    rates: list[tuple[float, float]]
    warm_up: int
    decay: float
    clip: float
    save: int
    unknown: float

    @property
    def words(self) -> float:
        """How many words are seen in all."""
        return self.rates[-1][0]

    def rate_at(self, step: int, seen: int) -> float:
        """Return the learning rate at a batch, after so many words."""
        words, rates = zip(*self.rates, strict=True)
        return float(np.interp(seen, words, rates)) * min(1.0, (step + 1) / self.warm_up)


def loss_of(network: Network, codes: Tensor, batch: Batch, hidden: Tensor) -> Tensor:
    """Return the summed losses of tags (those of the first layer by half), heads and labels.

    ``codes`` (2 * words, kinds): rows of words, then the same without their forms; ``hidden`` (words,): how often a
    word is shown so.
    """
    shown = batch.words + len(hidden) * (torch.rand(batch.words.shape) < hidden[batch.words])
    scores = network(codes, shown, batch.heads)
    tags, heads, labels = batch.wanted
    pairs = zip(scores, (tags, tags, heads, labels), strict=True)
    losses = [functional.cross_entropy(own.flatten(0, 1), wanted) for own, wanted in pairs]
    return torch.stack([0.5 * losses[0], *losses[1:]]).sum()


@torch.no_grad()
def agreement(network: Network, codes: Tensor, data: dict[int, Encoded]) -> dict[str, float]:
    """Return percentages of words with the right tag, head, head and label, and of wholly right sentences."""
    network.eval()
    right: Counter[str] = Counter()
    for group in data.values():
        for start in range(0, len(group.heads), 256):
            part = take(group, torch.arange(start, min(start + 256, len(group.heads))))
            _, tags, heads, labels = (scores.argmax(dim=-1) for scores in network(codes, part.words))
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


def fit(
    network: Network,
    codes: Tensor,
    data: Sequence[tuple[float, Mapping[int, Batch]]],
    hidden: Tensor,
    schedule: Schedule,
) -> Iterator[None]:
    """Train a network as the schedule says, and yield after each part of it (``schedule.save``).

    ``hidden`` (words,): how often each word's form is not shown.
    """
    random = np.random.default_rng(schedule.seed)
    dense = list(network.parameters())
    optimizer = torch.optim.Adam(dense, betas=(0.9, schedule.decay), fused=True)
    began, seen, step, saved = time.monotonic(), 0, 0, 0
    lately: list[float] = []
    while seen < schedule.words:
        for batch in batches(data, schedule.batch, random):
            rate = schedule.rate_at(step, seen)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            loss = loss_of(network, codes, batch, hidden)
            torch.autograd.backward(loss)
            slopes = [own.grad for own in dense if own.grad is not None] + network.encoder.words.slopes()
            norm = torch.nn.utils.get_total_norm(slopes)
            scale = min(1.0, schedule.clip / (norm.item() + 1e-6))
            if scale < 1.0:
                torch._foreach_mul_(slopes, scale)
            optimizer.step()
            network.encoder.words.update(step, rate, schedule.decay)
            lately.append(loss.item())
            seen += batch.heads.numel()
            step += 1
            if step % REPORT_EVERY == 0:
                spent = time.monotonic() - began
                LOG.info("%.0f s, %.2f M words, loss %.4f", spent, seen / 1e6, np.mean(lately))
                lately = []
            if seen - saved >= schedule.save:
                saved = seen
                yield
            if seen >= schedule.words:
                return


def train(arguments: argparse.Namespace) -> None:
    """Train as the configuration and the arguments say, and write the network."""
    config = tomllib.loads(arguments.config.read_text(encoding="utf-8"))
    data, schedule = Data(**config["data"]), Schedule(**config["training"])
    if arguments.words is not None:
        scale = arguments.words / schedule.words
        schedule = replace(schedule, rates=[(scale * words, rate) for words, rate in schedule.rates])
    if arguments.seed is not None:
        schedule = replace(schedule, seed=arguments.seed)
    torch.set_num_threads(1)
    torch.manual_seed(schedule.seed)
    torch.use_deterministic_algorithms(mode=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a tenth of the time
    torch.backends.mkldnn.fp32_precision = "bf16"
    hashes = Hashes.read(arguments.held_out_hashes)
    training, held = read(arguments.silver, arguments.evaluation, hashes)
    LOG.info(
        "captions: %s; held out: %s", {k: len(v) for k, v in training.items()}, {k: len(v) for k, v in held.items()}
    )
    everything = [s for captions in training.values() for s in sentences(captions)]
    counters = counts(everything)
    known = vocabulary(everything, counters, data.least)
    if arguments.start:
        weights, before = export.read(arguments.start)
        known = export.extended(known, before)
    rows = [1 + len(names) for names in known.rows]
    network = Network(rows, len(known.tags), len(known.labels), Shape(**config["shape"]))
    if arguments.start:
        export.go_on_from(network, weights)
    LOG.info(
        "%s rows, %s parameters, %s sentences", rows, sum(p.numel() for p in network.parameters()), len(everything)
    )
    numbers = Codes(known)
    encoded: list[tuple[float, Mapping[int, Batch]]] = [
        (data.times.get(kind, 1.0), numbers.encode([s for s in sentences(captions) if len(s.words) <= data.longest]))
        for kind, captions in training.items()
    ]
    if arguments.teachers:
        out = Held([caption.text for captions in held.values() for caption in captions])
        fresh = teach.sentences(arguments.texts, out, data.longest, hashes)
        teachers = [teach.Teacher.read(folder, known) for folder in arguments.teachers]
        LOG.info("taught by %s networks: %s sentences", len(teachers), len(fresh))
        encoded.append((1.0, teach.taught(fresh, teachers, numbers)))
    shown = numbers.rows()
    codes = torch.cat([shown, shown.clone().index_fill_(1, torch.tensor([0]), 0)])
    often = torch.tensor([0, *(counters[0][form] for form in known.rows[0])])[shown[:, 0]]
    rare = torch.where(shown[:, 0] == 0, 0.0, schedule.unknown / (schedule.unknown + often))
    for _ in fit(network, codes, encoded, rare, schedule):
        export.write(network, known, arguments.out)
    export.write(network, known, arguments.out)
    for kind, captions in held.items():
        numbers = Codes(known)
        part = numbers.encode(sentences(captions))
        LOG.info("held out %s: %s", kind, json.dumps(agreement(network, numbers.rows(), part)))


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "silver",
        type=Path,
        nargs="+",
        help="parses (conllu, gzipped or not); the part of a name before the first dot is the kind",
    )
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("config.toml"))
    parser.add_argument(
        "--evaluation", type=Path, nargs="*", default=[], help="evaluation files (jsonl.gz) never trained on"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of network.npz and vocabulary.json")
    parser.add_argument("--start", type=Path, help="folder of a trained network to go on from; its words are kept")
    parser.add_argument(
        "--teachers", type=Path, nargs="*", default=[], help="folders of networks that say how captions of --texts read"
    )
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="captions without parses, one per line")
    add_hashes(parser)
    parser.add_argument("--seed", type=int, help="in place of the configuration's")
    parser.add_argument("--words", type=int, help="words to see in all; the schedule is stretched to them")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
