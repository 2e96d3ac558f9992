"""Train the caption pipeline's network on the reference parser's parses, and write it for the package.

One thread and a fixed seed: two runs on one machine from the same files give the same weights. The silver
files may grow while training goes on; with ``--growing`` they are read again before every pass over the data.
"""

import argparse
import json
import logging
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import export
import silver
from captions import plain
from network import Network, Shape
from spicegraph_parser.caption_pipeline.features import KINDS, features
from spicegraph_parser.caption_pipeline.network import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOG = logging.getLogger("train")


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """How silver parses become training data."""

    held_out: int
    longest: int
    least: Sequence[int]


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


@dataclass(frozen=True, slots=True)
class Encoded:
    """Sentences of one length as numbers: features (b, n, kinds), tags, heads and labels (b, n)."""

    features: Tensor
    tags: Tensor
    heads: Tensor
    labels: Tensor

    def take(self, rows: Tensor) -> "Encoded":
        """Return some of the sentences."""
        return Encoded(self.features[rows], self.tags[rows], self.heads[rows], self.labels[rows])


def sentences(captions: Sequence[silver.Caption]) -> list[silver.Sentence]:
    """Return the captions' sentences."""
    return [sentence for caption in captions for sentence in caption.sentences]


@lru_cache(maxsize=8)
def usable(path: Path, evaluation: tuple[Path, ...], _changed: int) -> list[silver.Caption]:
    """Return a file's captions that may be trained on; read anew only when the file has changed."""
    return silver.without_evaluation(silver.read(path), evaluation)


def read(
    paths: Sequence[Path], evaluation: Sequence[Path], data: Data, seed: int
) -> tuple[list[silver.Sentence], list[list[silver.Caption]]]:
    """Return the sentences to train on, and the held-out captions of the first two files.

    A held-out caption's text, case and end punctuation aside, is nowhere in the training data.
    """
    files = [usable(path, tuple(evaluation), path.stat().st_mtime_ns) for path in paths]
    held = [silver.hold_out(captions, data.held_out, seed=seed)[1] for captions in files[:2]]
    texts = {plain(caption.text) for part in held for caption in part}
    training = [caption for captions in files for caption in captions if plain(caption.text) not in texts]
    return [s for s in sentences(training) if len(s.words) <= data.longest], held


def counts(training: Sequence[silver.Sentence]) -> list[Counter[str]]:
    """Count the features of all words, one counter for each kind."""
    words = Counter(word for sentence in training for word in sentence.words)
    counters: list[Counter[str]] = [Counter() for _ in KINDS]
    for word, count in words.items():
        for counter, feature in zip(counters, features(word), strict=True):
            counter[feature] += count
    return counters


def vocabulary(
    training: Sequence[silver.Sentence], counters: Sequence[Counter[str]], least: Sequence[int]
) -> Vocabulary:
    """Number the tags, labels and features that training data hold."""
    lists = {
        "tags": sorted({tag for sentence in training for tag in sentence.tags}),
        "labels": sorted({label for sentence in training for label in sentence.labels}),
    }
    for kind, counter, fewest in zip(KINDS, counters, least, strict=True):
        lists[kind] = sorted(name for name, count in counter.items() if count >= fewest)
    return Vocabulary.from_lists(lists)


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read the vocabulary of a network that was trained before."""
    return Vocabulary.from_lists(json.loads((folder / "vocabulary.json").read_text(encoding="utf-8")))


def encode(training: Sequence[silver.Sentence], known: Vocabulary) -> dict[int, Encoded]:
    """Turn sentences into numbers, by length; a sentence with a tag or label unknown is left out."""
    tags = {name: number for number, name in enumerate(known.tags)}
    labels = {name: number for number, name in enumerate(known.labels)}
    rows = {word: known.feature_rows(word) for word in {word for sentence in training for word in sentence.words}}
    by_length: dict[int, list[silver.Sentence]] = {}
    for sentence in training:
        if tags.keys() >= set(sentence.tags) and labels.keys() >= set(sentence.labels):
            by_length.setdefault(len(sentence.words), []).append(sentence)
    return {
        length: Encoded(
            torch.tensor([[rows[word] for word in sentence.words] for sentence in group]),
            torch.tensor([[tags[tag] for tag in sentence.tags] for sentence in group]),
            torch.tensor([sentence.heads for sentence in group]),
            torch.tensor([[labels[label] for label in sentence.labels] for sentence in group]),
        )
        for length, group in sorted(by_length.items())
    }


def batches(data: dict[int, Encoded], words: int, random: np.random.Generator) -> Iterator[Encoded]:
    """Yield one pass over the data in random order, each batch of sentences of one length."""
    parts: list[tuple[int, NDArray[np.intp]]] = []
    for length, group in data.items():
        order = random.permutation(len(group.heads))
        size = max(1, words // length)
        parts += [(length, order[start : start + size]) for start in range(0, len(order), size)]
    for part in random.permutation(len(parts)):
        length, rows = parts[part]
        yield data[length].take(torch.from_numpy(rows))


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


def train(arguments: argparse.Namespace) -> None:
    """Train as the configuration says and write the network after every pass."""
    config = tomllib.loads(arguments.config.read_text(encoding="utf-8"))
    data, schedule, shape = Data(**config["data"]), Schedule(**config["training"]), Shape(**config["shape"])
    torch.set_num_threads(1)
    torch.manual_seed(schedule.seed)
    torch.use_deterministic_algorithms(mode=True)
    random = np.random.default_rng(schedule.seed)
    total = arguments.words or schedule.words
    highest = arguments.rate or schedule.rate
    training, held = read(arguments.silver, arguments.evaluation, data, schedule.seed)
    training = training[: arguments.sentences]
    counters = counts(training)
    known = read_vocabulary(arguments.start) if arguments.start else vocabulary(training, counters, data.least)
    development = [encode(sentences(part), known) for part in held]
    network = Network([1 + len(rows) for rows in known.rows], len(known.tags), len(known.labels), shape)
    rare = torch.tensor([0.0] + [schedule.unknown / (schedule.unknown + counters[0][form]) for form in known.rows[0]])
    if arguments.start:
        export.restore(network, arguments.start)
    optimizer = torch.optim.Adam(network.parameters(), lr=schedule.rate, betas=(0.9, schedule.decay), fused=True)
    encoded = encode(training, known)
    LOG.info("%s parameters, %s sentences", sum(p.numel() for p in network.parameters()), len(training))
    began, seen, step, lately = time.monotonic(), 0, 0, []
    while seen < total:
        for batch in batches(encoded, schedule.batch, random):
            rate = highest * min(1.0, (step + 1) / schedule.warm_up) * max(0.0, 1.0 - seen / total)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            loss = loss_of(network, batch, rare)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(network.parameters(), schedule.clip)
            optimizer.step()
            lately.append(loss.item())
            seen += batch.heads.numel()
            step += 1
            if step % 500 == 0 or seen >= total:
                spent = time.monotonic() - began
                LOG.info("%.0f s, %.2f M words, loss %.4f", spent, seen / 1e6, np.mean(lately))
                lately = []
            if seen >= total:
                break
        LOG.info("%s", json.dumps([agreement(network, part) for part in development]))
        export.write(network, known, arguments.out)
        if arguments.growing and seen < total:
            training = read(arguments.silver, arguments.evaluation, data, schedule.seed)[0]
            encoded = encode(training, known)
            LOG.info("%s sentences", len(training))


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
    parser.add_argument("--sentences", type=int, help="train on so many sentences only")
    parser.add_argument("--growing", action="store_true", help="read the silver files again before every pass")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
