"""Teach narrower second layers what a pipeline's own second layer says, on captions without parses.

The first layer, its words and its tags stay as they are. A pupil's second layer reads fewer numbers of the first one's
states, and may have fewer units. It learns the answers of the second layer from which it comes: probabilities of tags,
heads and labels (Hinton, Vinyals and Dean 2015), and its states (Romero et al. 2015, "FitNets"). In some sentences a
likely tag of one word is given to both, as the comparison of whole analyses asks the second layer.
"""

import argparse
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import export
import silver
import teach
from captions import json_captions
from heldout import Hashes, Held, add_hashes, is_held_out, kind_of
from lstm import Lstm
from network import Network
from spicegraph_parser.caption_pipeline.encoder import Vocabulary
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES
from styles import plain

LOG = logging.getLogger("narrower")
ENDS = ("late_tagger", "arc_child", "arc_head", "label_child", "label_head")  # what reads the second layer's states
LATER = (*ENDS, "arc_scores", "labeller")  # what is trained behind the second layer
ROOTS = ("root_arc", "root_label")
BATCH = 2500  # words
LONGEST = 100  # words
BEGINNING = 100_000  # words whose states say which units matter
REPORT_EVERY = 100  # batches
WARM_UP = 50  # batches
GIVEN = 0.5  # the share of sentences in which a tag is given
LIKELIEST = 3  # tags among which that tag is
OF_STATES = 0.5  # the weight of the states' loss beside those of tags, heads and labels
DECAY, CLIP = 0.99, 5.0  # Adam's second moment; gradient norm


@dataclass(frozen=True, slots=True)
class FirstLayer:
    """What the first layer says of sentences of one length: states and probabilities of tags (n, sentences, ...)."""

    states: Tensor
    scores: Tensor
    odds: Tensor


@torch.no_grad()
def read_first(teacher: Network, codes: Tensor, words: Tensor, *, given: bool) -> FirstLayer:
    """Return what the first layer says; ``given``: in some sentences one doubtful word's tag is taken for sure."""
    distinct, where = torch.unique(words.T, return_inverse=True)
    states = teacher.layers[0](teacher.words(codes[distinct])[where])
    scores = teacher.tagger(states)
    odds = scores.softmax(dim=-1)
    if given:
        likeliest = odds.topk(LIKELIEST, dim=-1)
        chosen = torch.multinomial(1.0 - likeliest.values[..., 0].T + 1e-3, 1).squeeze(1)  # (sentences,)
        sentence = (torch.rand(len(chosen)) < GIVEN).nonzero().squeeze(1)
        word = chosen[sentence]
        tag = likeliest.indices[word, sentence, torch.randint(1, LIKELIEST, (len(sentence),))]
        odds[word, sentence] = functional.one_hot(tag, odds.shape[-1]).float()
    return FirstLayer(states, scores, odds)


class Pupil(nn.Module):
    """A second layer and what reads its states; ``units`` (2, units) are those that it has of the teacher's."""

    def __init__(self, teacher: Network, sampled: tuple[Tensor, Tensor], rank: int, hidden: int) -> None:
        """Begin with the best product of a rank and the units that matter most, for sampled states (words, width)."""
        super().__init__()
        first, second = sampled
        layer = teacher.layers[1]
        both = first.shape[1]
        self.hints = nn.Linear(teacher.tag_vectors.in_features, teacher.tag_vectors.out_features, bias=False)
        self.hints.load_state_dict(teacher.tag_vectors.state_dict())
        outs = torch.cat([getattr(teacher, name).weight.detach() for name in ENDS])
        width = second.shape[1] // 2
        states = layer.state.detach()
        matters = second.var(dim=0).view(2, -1) * ((outs**2).sum(dim=0).view(2, -1) + (states**2).sum(dim=2))
        self.units = matters.topk(hidden, dim=1).indices.sort(dim=1).values
        gates = torch.cat([self.units + gate * width for gate in range(4)], dim=1)  # (2, 4 * hidden)
        read = torch.stack([own[:, kept] for own, kept in zip(layer.weight.detach(), gates, strict=True)])
        of_states = torch.cat(list(read[:, :both]), dim=1)
        covariance = first.T.double() @ first.double() / len(first) + 1e-6 * torch.eye(both, dtype=torch.double)
        root = torch.linalg.cholesky(covariance)
        left, strengths, right = torch.linalg.svd(root.T @ of_states.double(), full_matrices=False)
        roots = strengths[:rank].sqrt()
        self.narrow = nn.Linear(both, rank, bias=False)
        self.layer = Lstm(rank + self.hints.out_features, hidden)
        self.later = nn.ModuleDict()
        with torch.no_grad():
            self.narrow.weight.copy_(torch.linalg.solve_triangular(root.T, left[:, :rank] * roots, upper=True).T)
            inner = (roots[:, None] * right[:rank]).float().chunk(2, dim=1)
            self.layer.weight.copy_(torch.stack([torch.cat(p) for p in zip(inner, read[:, both:], strict=True)]))
            for direction, (kept, own) in enumerate(zip(self.units, gates, strict=True)):
                part = second.view(len(second), 2, -1)[:, direction]
                state, shift = without(states[direction][:, own], part, kept)
                self.layer.state[direction] = state
                self.layer.bias[direction] = layer.bias[direction][own] + shift
            self.columns = torch.cat([self.units[0], width + self.units[1]])
            for name in LATER:
                old = getattr(teacher, name)
                weight, bias = old.weight.T, old.bias
                if name in ENDS:
                    weight, shift = without(weight, second, self.columns)
                    bias = shift if bias is None else bias + shift
                self.later[name] = nn.Linear(*weight.shape)
                self.later[name].weight.copy_(weight.T)
                self.later[name].bias.copy_(bias)
        self.roots = nn.ParameterDict({name: getattr(teacher, name).detach().clone() for name in ROOTS})

    def forward(self, read: FirstLayer, heads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return states (n, sentences, width) and scores of tags, heads and labels of given heads (b, n, ...)."""
        states = self.layer(torch.cat([self.narrow(read.states), self.hints(read.odds)], dim=-1))
        tags = read.scores + self.later["late_tagger"](states)
        return states, tags.transpose(0, 1), *self.edges(states.transpose(0, 1), heads)

    def edges(self, states: Tensor, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of heads and labels, as ``Network.scores`` does."""
        sentences = len(states)
        children = self.later["arc_scores"](functional.relu(self.later["arc_child"](states)))
        parents = functional.relu(self.later["arc_head"](states))
        parents = torch.cat([self.roots["root_arc"].expand(sentences, 1, -1), parents], dim=1)
        below, above = self.later["label_child"](states), self.later["label_head"](states)
        above = torch.cat([self.roots["root_label"].expand(sentences, 1, -1), above], dim=1)
        above = above.gather(1, heads.unsqueeze(-1).expand(-1, -1, above.shape[-1]))
        edges = torch.cat([functional.relu(below + above), below * above], dim=-1)
        return children @ parents.transpose(1, 2), self.later["labeller"](edges)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights that are the pupil's own, under the package's names."""
        own = {name: tensor.detach().float().numpy() for name, tensor in self.state_dict().items()}
        out = {name: own[f"later.{name}.weight"].T for name in LATER}
        out |= {f"{name}.bias": own[f"later.{name}.bias"] for name in LATER}
        out |= {name: own[f"roots.{name}"] for name in ROOTS}
        return out | {
            "narrow": own["narrow.weight"].T,
            "tag_vectors": own["hints.weight"].T,
            "lstm.1.input": np.concatenate(list(own["layer.weight"]), axis=1),
            "lstm.1.state": own["layer.state"],
            "lstm.1.bias": own["layer.bias"].reshape(-1),
        }


def without(weight: Tensor, states: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights (kept, columns) and a bias that do with some units what weights (units, columns) do with all.

    The other units are taken for what they are on average, given those that stay (least squares over ``states``).
    """
    gone = torch.ones(states.shape[1], dtype=torch.bool).index_fill(0, kept, value=False)
    if not gone.any():
        return weight[kept], weight.new_zeros(weight.shape[1])
    known = torch.cat([states[:, kept], states.new_ones(len(states), 1)], dim=1).double()
    inner = known.T @ known + 1e-3 * len(states) * torch.eye(known.shape[1], dtype=torch.double) / known.shape[1]
    told = torch.linalg.solve(inner, known.T @ states[:, gone].double()).float() @ weight[gone]
    return weight[kept] + told[:-1], told[-1]


def losses(teacher: Network, pupils: Sequence[Pupil], codes: Tensor, words: Tensor) -> list[Tensor]:
    """Return each pupil's losses (4): tags, heads, labels (above what the teacher's own doubt leaves), and states."""
    read = read_first(teacher, codes, words, given=True)
    with torch.no_grad():
        hints = teacher.tag_vectors(read.odds)
        states = teacher.layers[1](torch.cat([read.states, hints], dim=-1))
        _, tags, arcs, _ = teacher.scores(states, read.scores, heads=torch.zeros_like(words))
        heads = arcs.argmax(dim=-1)
        labels = teacher.scores(states, read.scores, heads)[3]
    out = []
    for pupil in pupils:
        own, *scores = pupil(read, heads)
        wanted = states[..., pupil.columns]
        parts = [
            functional.kl_div(
                mine.flatten(0, 1).log_softmax(-1),
                theirs.flatten(0, 1).log_softmax(-1),
                log_target=True,
                reduction="batchmean",
            )
            for mine, theirs in zip(scores, (tags, arcs, labels), strict=True)
        ]
        apart = ((own - wanted) ** 2).mean() / wanted.var(dim=(0, 1)).mean().clamp_min(1e-3)
        out.append(torch.stack([*parts, apart]))
    return out


@torch.no_grad()
def sample(teacher: Network, codes: Tensor, parts: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the states of both layers for some words (words, width each)."""
    first: list[Tensor] = []
    second: list[Tensor] = []
    while sum(map(len, first)) < BEGINNING:
        read = read_first(teacher, codes, next(parts), given=False)
        states = teacher.layers[1](torch.cat([read.states, teacher.tag_vectors(read.odds)], dim=-1))
        first.append(read.states.flatten(0, 1))
        second.append(states.flatten(0, 1))
    return torch.cat(first), torch.cat(second)


def batches(by_length: Mapping[int, Tensor], random: np.random.Generator) -> Iterator[Tensor]:
    """Yield sentences (b, n) of one length in random order, again and again."""
    while True:
        parts: list[Tensor] = []
        for length, group in by_length.items():
            order = torch.from_numpy(random.permutation(len(group)))
            parts += [group[rows] for rows in order.split(max(1, BATCH // length))]
        for part in random.permutation(len(parts)):
            yield parts[part]


def texts(options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return the distinct sentences to learn from, none of which holds a held-out caption."""
    hashes = Hashes.read(options.held_out_hashes)
    evaluation = {plain(text) for path in options.evaluation for text in json_captions(path)}
    held = [
        own.text for path in options.parses for own in silver.read(path, hashes) if is_held_out(own.text, kind_of(path))
    ]
    out = teach.sentences(options.texts, Held([*held, *evaluation]), LONGEST, hashes)
    LOG.info("%d held-out captions; %d sentences, %d words", len(held), len(out), sum(map(len, out)))
    return out


def numbered(sentences: Sequence[tuple[str, ...]], known: Vocabulary) -> tuple[dict[int, Tensor], Tensor]:
    """Return sentences as numbers of words (b, n), by length, and the rows (words, kinds) of these words' features."""
    numbers = {word: at for at, word in enumerate(dict.fromkeys(word for own in sentences for word in own))}
    groups: dict[int, list[list[int]]] = {}
    for own in sentences:
        groups.setdefault(len(own), []).append([numbers[word] for word in own])
    codes = torch.tensor([known.feature_rows(word) for word in numbers])
    return {length: torch.tensor(rows) for length, rows in sorted(groups.items())}, codes


def write(pupil: Pupil, start: Path, out: Path) -> None:
    """Write the network from which the pupil comes, with the pupil's weights in place of its own."""
    arrays, names = NETWORK_FILES
    out.mkdir(parents=True, exist_ok=True)
    np.savez(out / arrays, allow_pickle=False, **{**np.load(start / arrays), **export.compact(pupil.arrays())})
    (out / names).write_bytes((start / names).read_bytes())


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", type=Path, help="folder of the network that teaches (network.npz, vocabulary.json)")
    parser.add_argument("texts", type=Path, nargs="+", help="captions without parses, one per line")
    parser.add_argument("--parses", type=Path, nargs="+", required=True, help="parses, whose held-out captions are out")
    parser.add_argument("--evaluation", type=Path, nargs="*", default=[], help="golden files, which are left out")
    parser.add_argument("--rank", type=int, default=96, help="numbers that the second layer reads of the first one's")
    parser.add_argument("--units", type=int, nargs="+", default=[160], help="units of the second layer, one a pupil")
    parser.add_argument("--words", type=int, default=8_000_000, help="words to see")
    parser.add_argument("--minutes", type=float, default=1e9, help="the rate falls to 0 by then at the latest")
    parser.add_argument("--top", type=float, default=6e-4, help="the learning rate at the beginning")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="folder of the pupils' folders")
    add_hashes(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    weights, known = export.read(options.network)
    teacher = teach.network_of(weights, known).requires_grad_(requires_grad=False)
    by_length, codes = numbered(texts(options), known)
    parts = batches(by_length, np.random.default_rng(options.seed))
    sampled = sample(teacher, codes, parts)
    pupils = [Pupil(teacher, sampled, options.rank, units) for units in options.units]
    dense = [list(pupil.parameters()) for pupil in pupils]
    optimizers = [torch.optim.Adam(own, betas=(0.9, DECAY), fused=True) for own in dense]
    began, seen, step, left = time.monotonic(), 0, 0, 1.0
    lately: list[np.ndarray] = []
    for pupil, units in zip(pupils, options.units, strict=True):
        write(pupil, options.network, options.out / f"{units}.untrained")
    while left > 0.0:
        words = next(parts)
        passed = (time.monotonic() - began) / 60 / options.minutes
        left = 1.0 - max(seen / options.words, passed)
        found = losses(teacher, pupils, codes, words)
        for own, optimizer, loss in zip(dense, optimizers, found, strict=True):
            optimizer.param_groups[0]["lr"] = options.top * max(0.0, left) * min(1.0, (step + 1) / WARM_UP)
            optimizer.zero_grad()
            torch.autograd.backward(loss[:3].sum() + OF_STATES * loss[3])
            torch.nn.utils.clip_grad_norm_(own, CLIP)
            optimizer.step()
        lately.append(torch.stack(found).detach().numpy())
        seen += words.numel()
        step += 1
        if step % REPORT_EVERY == 0:
            spent = time.monotonic() - began
            shown = json.dumps(np.mean(lately, axis=0).round(4).tolist())
            LOG.info("%.0f s, %.2f M words, tags, heads, labels, states %s", spent, seen / 1e6, shown)
            lately = []
    for pupil, units in zip(pupils, options.units, strict=True):
        write(pupil, options.network, options.out / str(units))


if __name__ == "__main__":
    main()
