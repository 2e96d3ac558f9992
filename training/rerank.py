"""Train what chooses among whole analyses of a sentence (``spicegraph_parser.caption_pipeline.reranker``).

A trained network analyses the captions that it was trained on, with units dropped as in training: it then is wrong
about as often as on captions that it has never seen. Where it is in doubt, the analyses next to the reference's are to
get more than the others (a softmax over a sentence's analyses). Each pattern has one weight.
"""

import argparse
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import export
import silver
from data import read, sentences
from heldout import Hashes, add_hashes
from spicegraph_parser.caption_pipeline.encoder import Vocabulary
from spicegraph_parser.caption_pipeline.layout import Floats, Integers, ranges
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES, Network, in_parts
from spicegraph_parser.caption_pipeline.reranker import TreePatterns

LOG = logging.getLogger("rerank")
LEVELS = 21  # of 127 that 8 bits hold: the wheel, which is compressed, is .3 MB smaller
ENDS = ("late_tagger", "arc_child", "arc_head", "label_child", "label_head")  # what reads the second layer's states
AT_ONCE = 1000  # sentences read with the same units dropped
LONGEST = 45  # words
GROUP = 200  # sentences a batch
LEARNT_FROM, COMPARED_FROM = 0.03, 0.1  # probability from which a tag or head is tried; fewer afterwards, for speed
BEGINNING = (0.2, 0.2, 0.8, 0.5)  # weights of the network's own scores


def thinned(weights: Mapping[str, Floats], rate: float, random: np.random.Generator) -> dict[str, Floats]:
    """Return weights as if units were dropped where training drops them; those of a layer's input or states."""
    out = dict(weights)
    both = 2 * weights["lstm.0.state"].shape[-2]

    def kept(units: int, of: int) -> Floats:
        mask = np.ones((of, 1), dtype=np.float32)
        mask[:units, 0] = (random.random(units) >= rate) / (1.0 - rate)
        return mask

    word = weights["lstm.0.input"].shape[0]
    out["lstm.0.input"] = weights["lstm.0.input"] * kept(word, word)
    out["lstm.1.input"] = weights["lstm.1.input"] * kept(both, len(weights["lstm.1.input"]))
    states = kept(both, both)
    out |= {name: weights[name] * states for name in ENDS}
    return out


@dataclass(frozen=True, slots=True)
class Doubted:
    """Analyses of sentences in doubt, and how far each is from the reference's.

    Attributes:
        patterns: (words, patterns) numbers.
        lengths: (analyses,) words.
        scores: (analyses, 4) the network's.
        wrong: (analyses,) wrong tags and wrong edges.
        several: (sentences,) analyses.
    """

    patterns: Tensor
    lengths: Integers
    scores: Tensor
    wrong: Tensor
    several: Integers

    @classmethod
    def of(cls, parts: Sequence["Doubted"]) -> "Doubted":
        """Put the sentences of several together."""
        tensors = (torch.cat([getattr(part, name) for part in parts]) for name in ("patterns", "scores", "wrong"))
        patterns, scores, wrong = tensors
        lengths, several = (np.concatenate([getattr(part, name) for part in parts]) for name in ("lengths", "several"))
        return cls(patterns, lengths, scores, wrong, several)

    def some(self, chosen: Integers) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return patterns of some sentences' words, words' analyses, and analyses' scores, errors and sentences."""
        ends = np.cumsum(self.several)
        analyses = ranges((ends - self.several)[chosen], self.several[chosen])
        lengths = self.lengths[analyses]
        words = ranges((np.cumsum(self.lengths) - self.lengths)[analyses], lengths)
        of_word = torch.from_numpy(np.repeat(np.arange(len(analyses)), lengths))
        of_analysis = torch.from_numpy(np.repeat(np.arange(len(chosen)), self.several[chosen]))
        return self.patterns[words], of_word, self.scores[analyses], self.wrong[analyses], of_analysis


def analysed(
    weights: Mapping[str, Floats], known: Vocabulary, own: Sequence[silver.Sentence], patterns: TreePatterns
) -> Iterator[Doubted]:
    """Yield the sentences that the network is in doubt about; those with unknown tags or labels are left out."""
    tags, labels = ({name: at for at, name in enumerate(names)} for names in (known.tags, known.labels))
    network = Network(weights, known)
    fit = [s for s in own if tags.keys() >= set(s.tags) and labels.keys() >= set(s.labels) and len(s.words) <= LONGEST]
    for part, _ in in_parts([len(s.words) for s in fit]):
        chosen = [fit[at] for at in part.tolist()]
        lengths = np.array([len(s.words) for s in chosen])
        found = network.doubts(network.words([word for s in chosen for word in s.words]), lengths, LEARNT_FROM)
        if found is None:
            continue
        every = [chosen[at] for at in found.sentence.tolist()]
        is_wrong = found.tags != np.array([tags[tag] for s in every for tag in s.tags])
        of_edge = (found.heads != np.array([head for s in every for head in s.heads])) | (
            found.labels != np.array([labels[label] for s in every for label in s.labels])
        )
        starts = np.cumsum(found.lengths) - found.lengths
        wrong = np.add.reduceat(is_wrong.astype(np.float32) + of_edge, starts)
        several = np.unique(found.sentence, return_counts=True)[1]
        rows = torch.from_numpy(np.ascontiguousarray(patterns.rows(found).T))
        yield Doubted(rows, found.lengths, torch.from_numpy(found.scores), torch.from_numpy(wrong), several)


class Weights(nn.Module):
    """One weight for each pattern and each of the network's scores."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(rows, 1, mode="sum", sparse=True)
        nn.init.zeros_(self.table.weight)
        self.scores = nn.Parameter(torch.tensor(BEGINNING))

    def forward(self, patterns: Tensor, of_word: Tensor, scores: Tensor, rate: float = 0.0) -> Tensor:
        """Return the sum of weights of each analysis; ``rate``: the share of patterns that is dropped."""
        kept = torch.empty(patterns.shape).bernoulli_(1.0 - rate).div_(1.0 - rate) if rate else None
        by_word = self.table(patterns.long(), per_sample_weights=kept).squeeze(1)
        return torch.zeros(len(scores)).index_add(0, of_word, by_word) + scores @ self.scores


def loss_of(totals: Tensor, wrong: Tensor, sentence: Tensor) -> Tensor:
    """Return the mean over sentences of -log of what the analyses with the fewest errors get together."""
    count = int(sentence[-1]) + 1
    most = torch.full((count,), -torch.inf).scatter_reduce(0, sentence, totals.detach(), "amax")
    odds = (totals - most[sentence]).exp()
    fewest = torch.full((count,), torch.inf).scatter_reduce(0, sentence, wrong, "amin")
    good = torch.zeros(count).index_add(0, sentence, odds * (wrong == fewest[sentence]))
    return (torch.zeros(count).index_add(0, sentence, odds).log() - good.clamp_min(1e-9).log()).mean()


def choices(weights: Weights, doubted: Doubted) -> tuple[float, float, float]:
    """Return the shares of sentences without an error: the network's own analyses, the chosen ones, the best ones."""
    ends = np.cumsum(doubted.several)
    wrong = doubted.wrong.numpy()
    right = 0.0
    for start in range(0, len(ends), GROUP):
        chosen = np.arange(start, min(start + GROUP, len(ends)))
        with torch.no_grad():
            patterns, of_word, scores, errors, sentence = doubted.some(chosen)
            totals = weights(patterns, of_word, scores)
        order = np.lexsort((-totals.numpy(), sentence.numpy()))
        best = order[np.unique(sentence.numpy()[order], return_index=True)[1]]
        right += float((errors.numpy()[best] == 0).sum())
    starts = ends - doubted.several
    by_best = np.minimum.reduceat(wrong, starts)
    return float((wrong[starts] == 0).mean()), right / len(ends), float((by_best == 0).mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How weights are trained: passes, the first learning rate, which falls to 0, the share of patterns dropped."""

    passes: int
    top: float
    rate: float


def train(doubted: Doubted, rows: int, schedule: Schedule, random: np.random.Generator) -> Weights:
    """Train on sentences in doubt."""
    passes, top = schedule.passes, schedule.top
    weights = Weights(rows)
    table = torch.optim.SparseAdam([weights.table.weight], lr=top)
    rest = torch.optim.Adam([weights.scores], lr=top)
    steps = passes * -(-len(doubted.several) // GROUP)
    step = 0
    for number in range(passes):
        losses = []
        for chosen in np.array_split(random.permutation(len(doubted.several)), steps // passes):
            for optimizer in (table, rest):
                optimizer.param_groups[0]["lr"] = top * (1.0 - step / steps)
                optimizer.zero_grad()
            patterns, of_word, scores, wrong, sentence = doubted.some(chosen)
            loss = loss_of(weights(patterns, of_word, scores, schedule.rate), wrong, sentence)
            loss.backward()  # type: ignore[no-untyped-call]  # torch lacks the type
            table.step()
            rest.step()
            losses.append(loss.item())
            step += 1
        LOG.info("pass %d, loss %.4f, the network's scores %s", number + 1, np.mean(losses), weights.scores.tolist())
    return weights


def stored(weights: Weights) -> dict[str, NDArray[Any]]:
    """Return what the package reads: the table as 8-bit integers with one scale."""
    table = weights.table.weight.detach().numpy()
    scale = np.float32(np.abs(table).max() / LEVELS)
    whole = np.rint(table / scale).astype(np.int8)
    scores, likely = weights.scores.detach().numpy(), np.full(1, COMPARED_FROM, np.float32)
    return {
        "reranker.table": whole,
        "reranker.table.scale": np.full((1, 1), scale),
        "reranker.scores": scores,
        "reranker.likely": likely,
    }


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", type=Path, help="folder of a trained network")
    parser.add_argument("parses", type=Path, nargs="+", help="the reference's parses (conllu, gzipped or not)")
    parser.add_argument("--evaluation", type=Path, nargs="*", default=[], help="golden files, which are left out")
    parser.add_argument("--out", type=Path, required=True, help="folder of the network with what was trained here")
    parser.add_argument("--units", type=float, default=0.2, help="the share of units dropped while analysing")
    parser.add_argument("--rate", type=float, default=0.1, help="the share of patterns dropped while training")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--top", type=float, default=0.004, help="the learning rate at the beginning")
    parser.add_argument("--bits", type=int, default=20, help="the table has so many rows to the power of two")
    parser.add_argument("--seed", type=int, default=1)
    add_hashes(parser)
    options = parser.parse_args()
    schedule = Schedule(passes=options.passes, top=options.top, rate=options.rate)
    random = np.random.default_rng(options.seed)
    torch.manual_seed(options.seed)
    weights, known = export.read(options.network)
    patterns = TreePatterns(known, 1 << options.bits)
    training, held = read(options.parses, options.evaluation, Hashes.read(options.held_out_hashes))
    parts: list[Doubted] = []
    for kind, captions in training.items():
        own = sentences(captions)
        for start in range(0, len(own), AT_ONCE):
            dropped = thinned(weights, options.units, random)
            parts += analysed(dropped, known, own[start : start + AT_ONCE], patterns)
        LOG.info("%s: %d sentences, %d in doubt so far", kind, len(own), sum(len(part.several) for part in parts))
    found = train(Doubted.of(parts), 1 << options.bits, schedule, random)
    unseen = [part for own in held.values() for part in analysed(weights, known, sentences(own), patterns)]
    LOG.info("held out, in doubt: right are %.3f, chosen %.3f, at best %.3f", *choices(found, Doubted.of(unseen)))
    options.out.mkdir(parents=True, exist_ok=True)
    arrays, names = ((options.network / name) for name in NETWORK_FILES)
    np.savez(options.out / arrays.name, allow_pickle=False, **{**np.load(arrays), **stored(found)})
    shutil.copyfile(names, options.out / names.name)


if __name__ == "__main__":
    main()
