"""Train the scene parser's network on graphs drawn by people, and write it for the package.

Its encoder starts as the caption pipeline's, which has read parses of many captions; all of it is trained on. One
thread and a fixed seed.
"""

import argparse
import gzip
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import export
import scene_data
import scene_texts
from lstm import Lstm
from network import WordVectors, drop
from scene_data import Labelled
from spicegraph_parser.caption_pipeline.network import KINDS, Vocabulary, read_weights
from spicegraph_parser.scenes.network import OBJECT, PAIR_LABELS, Stated

LOG = logging.getLogger("scene_train")
WHOLE = 0.999  # of a share that was rounded
IGNORED = -100  # a class that is not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the network is made and trained; rates are those of Adam's steps."""

    pair: int = 96
    relation: int = 128
    dropout: float = 0.15
    passes: int = 12
    batch: int = 700  # words
    rate: float = 2e-3
    start_rate: float = 1e-3  # of layers that start as the pipeline's
    table_rate: float = 1e-3
    decay: float = 0.99
    clip: float = 5.0
    tag_weight: float = 0.2
    unknown: float = 0.5
    made: float = 0.4
    least_relations: int = 2
    seed: int = 1
    top: float = 1.0  # share of the rates that the first batch has
    minutes: float = 0.0  # if given, the rates fall to 0 in this time, whatever the number of passes


class SceneNetwork(nn.Module):
    """Words of sentences of one length to scores of pairs, objects, relations and tags."""

    def __init__(self, rows: list[int], widths: list[int], sizes: tuple[int, int, int], settings: Settings) -> None:
        super().__init__()
        tags, hidden, relations = sizes
        both, pair, wide = 2 * hidden, settings.pair, settings.relation
        self.rate = settings.dropout
        self.words = WordVectors(rows, widths, 128)
        self.layers = nn.ModuleList([Lstm(128, hidden), Lstm(both + 32, hidden)])
        self.tagger = nn.Linear(both, tags)
        self.tag_vectors = nn.Linear(tags, 32, bias=False)
        self.pair_first = nn.Linear(both, pair)
        self.pair_second = nn.Linear(both, pair)
        self.pairs = nn.Parameter(torch.zeros(len(PAIR_LABELS) - 1, pair + 1, pair + 1))
        self.object = nn.Linear(both, 1)
        self.relation_first = nn.Linear(both, wide)
        self.relation_second = nn.Linear(both, wide)
        self.relation_key = nn.Linear(both, wide)
        self.relation_value = nn.Linear(both, wide)
        self.relations = nn.Linear(3 * wide, relations)
        self.stated = nn.Parameter(torch.zeros(3, relations))

    def forward(
        self, features: Tensor, words: Tensor, chosen: Tensor, stated: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return scores of pairs (b, n, n, labels), objects (b, n), relations (p, classes) and tags (b, n, tags).

        ``chosen``: (p, 3) sentence, subject and object of the pairs whose relation is scored; ``stated``: (3, p,
        classes), as ``Codes.state`` gives it.
        """
        distinct, where = torch.unique(words.T, return_inverse=True)
        vectors = drop(self.words(features[distinct])[where], self.rate, training=self.training)
        states = self.layers[0](vectors)
        tags = self.tagger(states)
        hints = self.tag_vectors(tags.softmax(dim=-1))
        states = self.layers[1](torch.cat([drop(states, self.rate, training=self.training), hints], dim=-1))
        states = drop(states, self.rate, training=self.training).transpose(0, 1)
        ones = states.new_ones(*states.shape[:2], 1)
        first = torch.cat([functional.relu(self.pair_first(states)), ones], dim=-1)
        second = torch.cat([functional.relu(self.pair_second(states)), ones], dim=-1)
        scores = torch.einsum("bip,lpq,bjq->bijl", first, self.pairs, second)
        scores = torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)
        sentence, subject, target = chosen.unbind(dim=1)
        one, other = self.relation_first(states)[sentence, subject], self.relation_second(states)[sentence, target]
        query = functional.relu(one + other)
        keys, values = self.relation_key(states), self.relation_value(states)
        weights = torch.einsum("pr,pnr->pn", query, keys[sentence]).mul(query.shape[1] ** -0.5).softmax(dim=-1)
        context = torch.einsum("pn,pnr->pr", weights, values[sentence])
        hidden = torch.cat([query, one * other, functional.relu(context)], dim=-1)
        hidden = functional.dropout(hidden, self.rate, training=self.training)
        relations = self.relations(hidden) + (stated * self.stated.unsqueeze(1)).sum(dim=0)
        return scores, self.object(states).squeeze(-1), relations, tags.transpose(0, 1)


MATRICES = {
    name: f"{name}.weight"
    for name in (
        "words.mix", "tagger", "tag_vectors", "pair_first", "pair_second", "object", "relation_first",
        "relation_second", "relation_key", "relation_value", "relations",
    )
}  # fmt: skip


def arrays(network: SceneNetwork) -> dict[str, np.ndarray]:
    """Return the network's weights under the package's names."""
    state = {name: tensor.detach().float().numpy() for name, tensor in network.state_dict().items()}
    out = {name: state[own].T for name, own in MATRICES.items()}
    out |= {f"{name}.bias": state[f"{name}.bias"] for name in MATRICES if f"{name}.bias" in state}
    out |= {
        "words.norm": state["words.norm.weight"],
        "words.norm.bias": state["words.norm.bias"],
        "pairs": state["pairs"],
        "stated": state["stated"],
    }
    for kind, table in enumerate(network.words.tables):
        out[f"words.tables.{kind}"] = table.numpy()
    for layer in range(len(network.layers)):
        out[f"lstm.{layer}.input"] = np.concatenate(list(state[f"layers.{layer}.weight"]), axis=1)
        out[f"lstm.{layer}.state"] = state[f"layers.{layer}.state"]
        out[f"lstm.{layer}.bias"] = state[f"layers.{layer}.bias"].reshape(-1)
    return out


@torch.no_grad()
def start_from(network: SceneNetwork, weights: Mapping[str, np.ndarray], kept: Sequence[Sequence[int]]) -> None:
    """Give the network's encoder the pipeline's weights; ``kept``: the rows of each table that it has."""
    for kind, rows in enumerate(kept):
        network.words.tables[kind] = torch.from_numpy(weights[f"words.tables.{kind}"][list(rows)].copy())
    for name in ("words.mix", "tagger", "tag_vectors"):
        part = network.get_submodule(name)
        part.weight.copy_(torch.from_numpy(weights[name].T.copy()))
        if part.bias is not None:
            part.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]))
    network.words.norm.weight.copy_(torch.from_numpy(weights["words.norm"]))
    network.words.norm.bias.copy_(torch.from_numpy(weights["words.norm.bias"]))
    for layer, lstm in enumerate(network.layers):
        lstm.weight.copy_(torch.from_numpy(np.stack(np.split(weights[f"lstm.{layer}.input"], 2, axis=1))))
        lstm.state.copy_(torch.from_numpy(weights[f"lstm.{layer}.state"]))
        lstm.bias.copy_(torch.from_numpy(weights[f"lstm.{layer}.bias"].reshape(2, -1)))


@torch.no_grad()
def resume(network: SceneNetwork, weights: Mapping[str, np.ndarray]) -> None:
    """Give the network the weights that an earlier run wrote, from the same captions."""
    start_from(network, weights, [range(len(table)) for table in network.words.tables])
    for name in MATRICES:
        part = network.get_submodule(name)
        part.weight.copy_(torch.from_numpy(weights[name].T.copy()))
        if part.bias is not None:
            part.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]))
    network.pairs.copy_(torch.from_numpy(weights["pairs"]))
    network.stated[: len(weights["stated"])] = torch.from_numpy(weights["stated"])


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences of one length as numbers."""

    words: Tensor  # (b, n)
    pairs: Tensor  # (b, n, n)
    chosen: Tensor  # (p, 3)
    stated: Tensor  # (3, p, relations), as Codes.state gives it
    relations: Tensor  # (p,)
    tags: Tensor  # (b, n); IGNORED where they are not known


class Codes:
    """Distinct words, numbered as they come, with the table rows of their features; relations; and tags by sentence."""

    def __init__(
        self, vocabulary: Vocabulary, relations: Sequence[str], tags: Mapping[tuple[str, ...], list[int]]
    ) -> None:
        self.vocabulary = vocabulary
        self.relations = {name: number for number, name in enumerate(relations)}
        self.stated = Stated(relations)
        self.numbers: dict[str, int] = {}
        self.tags = tags

    def number(self, word: str) -> int:
        """Return a word's number."""
        return self.numbers.setdefault(word, len(self.numbers))

    def rows(self) -> Tensor:
        """Return (words, kinds) the table rows of every word so far."""
        return torch.tensor([self.vocabulary.feature_rows(word) for word in self.numbers])

    def state(self, pairs: Sequence[tuple[Sequence[str], int, int]]) -> Tensor:
        """Return (3, pairs, relations): stated by the sentence, by the words between both ends, share of the latter."""
        sides = [words for words, _, _ in pairs], [words[low + 1 : high] for words, low, high in pairs]
        inside, between = (self.stated(side) for side in sides)
        return torch.from_numpy(np.stack([inside > WHOLE, between > WHOLE, between]).astype(np.float32))

    def batch(self, group: Sequence[Labelled]) -> Batch:
        """Turn sentences of one length into numbers."""
        size = len(group[0].words)
        pairs = torch.zeros(len(group), size, size, dtype=torch.long)
        chosen, relations = [], []
        for sentence, own in enumerate(group):
            for (one, other), label in own.pairs.items():
                pairs[sentence, one, other] = label
            for (one, other), name in own.relations.items():
                if name in self.relations:
                    chosen.append((sentence, one, other))
                    relations.append(self.relations[name])
        return Batch(
            torch.tensor([[self.number(word) for word in own.words] for own in group]),
            pairs,
            torch.tensor(chosen, dtype=torch.long).reshape(-1, 3),
            self.state([(group[at].words, *sorted(ends)) for at, *ends in chosen]),
            torch.tensor(relations, dtype=torch.long),
            torch.tensor([self.tags.get(tuple(map(str.lower, own.words))) or [IGNORED] * size for own in group]),
        )


def losses(network: SceneNetwork, codes: Tensor, batch: Batch, words: Tensor, tag_weight: float) -> Tensor:
    """Return the summed loss of a batch."""
    pairs, objects, relations, tags = network(codes, words, batch.chosen, batch.stated)
    size = batch.words.shape[1]
    own = batch.pairs.diagonal(dim1=1, dim2=2)
    others = batch.pairs.masked_fill(torch.eye(size, dtype=torch.bool), IGNORED)
    count = batch.words.numel()
    loss = (
        functional.cross_entropy(pairs.flatten(0, 2), others.flatten(), ignore_index=IGNORED, reduction="sum") / count
    )
    loss = loss + functional.binary_cross_entropy_with_logits(objects, (own == OBJECT).float())
    if len(batch.relations):
        loss = loss + functional.cross_entropy(relations, batch.relations, reduction="sum") / count
    if (batch.tags != IGNORED).any():
        loss = loss + tag_weight * functional.cross_entropy(
            tags.flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORED
        )
    return loss


def batches(codes: Codes, data: Sequence[Labelled], words: int, random: np.random.Generator) -> Iterator[Batch]:
    """Yield one pass over sentences in random order, each batch of sentences of one length."""
    by_length: dict[int, list[Labelled]] = {}
    for position in random.permutation(len(data)):
        by_length.setdefault(len(data[position].words), []).append(data[position])
    parts = [
        own[start : start + step]
        for length, own in by_length.items()
        for step in [max(1, words // length)]
        for start in range(0, len(own), step)
    ]
    for part in random.permutation(len(parts)):
        yield codes.batch(parts[part])


@torch.no_grad()
def agreement(network: SceneNetwork, codes: Codes, data: Sequence[Labelled]) -> dict[str, float]:
    """Return F1 of the labels of pairs and objects, accuracy of given relations, share of sentences all right."""
    network.eval()
    counts: Counter[str] = Counter()
    order = np.random.default_rng(0)
    made = list(batches(codes, data, 2000, order))
    rows = codes.rows()
    for batch in made:
        pairs, objects, relations, _ = network(rows, batch.words, batch.chosen, batch.stated)
        best = pairs.argmax(dim=-1)
        best.diagonal(dim1=1, dim2=2).copy_((objects > 0).long() * OBJECT)
        right = (best == batch.pairs) & (best > 0)
        good = relations.argmax(dim=-1) == batch.relations
        whole = (best == batch.pairs).flatten(1).all(dim=1)
        whole[batch.chosen[~good, 0]] = False
        counts.update(
            right=int(right.sum()), found=int((best > 0).sum()), wanted=int((batch.pairs > 0).sum()),
            good=int(good.sum()), relations=len(good), whole=int(whole.sum()), sentences=len(whole),
        )  # fmt: skip
    network.train()
    return {
        "pairs": round(2 * counts["right"] / (counts["found"] + counts["wanted"]), 4),
        "relations": round(counts["good"] / counts["relations"], 4),
        "whole": round(counts["whole"] / counts["sentences"], 4),
    }


def word_counts(paths: Sequence[Path]) -> Counter[str]:
    """Count the lower-cased words of files of captions."""
    counts: Counter[str] = Counter()
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                counts.update(line.lower().replace(",", " ").replace(".", " ").split())
    return counts


def narrowed(
    vocabulary: Vocabulary, used: Counter[str], texts: Counter[str]
) -> tuple[dict[str, list[str]], list[list[int]]]:
    """Return the pipeline's vocabulary with the forms that are used or common, and the rows that are kept."""
    lists = vocabulary.to_lists()
    lists["form"] = [form for form in lists["form"] if used[form] or texts[form] > 4]
    kept = [[0, *(rows[name] for name in lists[kind])] for kind, rows in zip(KINDS, vocabulary.rows, strict=True)]
    return lists, kept


def train(arguments: argparse.Namespace, settings: Settings) -> None:
    """Train as the settings say, and write the network."""
    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    labelled = [
        (own, caption, tags) for path in arguments.labelled for own, caption, tags in scene_data.read_labelled(path)
    ]
    held = [own for own, caption, _ in labelled if scene_data.is_held_back(caption.text)]
    kept = [
        (own, caption)
        for own, caption, _ in labelled
        if arguments.everything or not scene_data.is_held_back(caption.text)
    ]
    data = [own for own, _ in kept]
    tags = {tuple(map(str.lower, own.words)): numbers for own, _, numbers in labelled}
    weights = read_weights((arguments.start / "network.npz").read_bytes())
    pipeline = Vocabulary.from_lists(json.loads((arguments.start / "vocabulary.json").read_bytes()))
    LOG.info("%s captions, %s held back", len(data), len(held))

    used = Counter(word.lower() for own in data for word in own.words)
    if arguments.resume:
        weights = read_weights((arguments.resume / "network.npz").read_bytes())
        lists = json.loads((arguments.resume / "vocabulary.json").read_bytes())
        rows = [list(range(len(weights[f"words.tables.{kind}"]))) for kind in range(len(KINDS))]
    else:
        lists, rows = narrowed(pipeline, used, word_counts(arguments.texts))
        counted = Counter(name for own in data for name in own.relations.values())
        lists["relations"] = [name for name, count in counted.most_common() if count >= settings.least_relations]
        lists["labels"] = list(PAIR_LABELS)
    objects, attributes = scene_data.rewrites(kept, least=5)
    names = {"objects": objects, "attributes": attributes}
    names |= scene_data.nouns((caption for _, caption in kept), pipeline.rows[0])
    vocabulary = Vocabulary.from_lists(lists)
    codes = Codes(vocabulary, lists["relations"], tags)
    widths = [weights[f"words.tables.{kind}"].shape[1] for kind in range(len(KINDS))]
    sizes = len(pipeline.tags), weights["lstm.0.state"].shape[1], len(lists["relations"])
    network = SceneNetwork([len(own) for own in rows], widths, sizes, settings)
    start_from(network, weights, rows)
    if arguments.resume:
        resume(network, weights)
    LOG.info("%s parameters without tables, %s relations", sum(p.numel() for p in network.parameters()), sizes[2])

    for passed, line in enumerate(fit(network, codes, data, used, settings), start=1):
        LOG.info("pass %s, %s, held back %s", passed, line, agreement(network, codes, held))
        arguments.out.mkdir(parents=True, exist_ok=True)
        np.savez(arguments.out / "network.npz", allow_pickle=False, **export.compact(arrays(network)))
        text = json.dumps(lists | names, ensure_ascii=False, separators=(",", ":"))
        (arguments.out / "vocabulary.json").write_text(text + "\n", encoding="utf-8")


def fit(
    network: SceneNetwork, codes: Codes, data: Sequence[Labelled], used: Counter[str], settings: Settings
) -> Iterator[str]:
    """Train a network, and yield after each pass what is to be reported; ``used`` counts the words of the data."""
    random = np.random.default_rng(settings.seed)
    started = ("words.", "layers.", "tagger", "tag_vectors")
    old = [own for name, own in network.named_parameters() if name.startswith(started)]
    new = [own for name, own in network.named_parameters() if not name.startswith(started)]
    optimizer = torch.optim.Adam(
        [{"params": new, "top": settings.rate}, {"params": old, "top": settings.start_rate}],
        betas=(0.9, settings.decay),
        fused=True,
    )
    began, step, seen = time.monotonic(), 0, 0
    total = settings.passes * sum(len(own.words) for own in data) * (1 + 1.5 * settings.made)
    for _ in range(settings.passes):
        lately = []
        shown = [scene_texts.recased(own, random) for own in (*data, *scene_texts.made(data, settings.made, random))]
        parts = list(batches(codes, shown, settings.batch, random))
        table = codes.rows()
        rows = torch.cat([table, table.clone().index_fill_(1, torch.tensor([0]), 0)])
        often = torch.tensor([used[word.lower()] for word in codes.numbers])
        hidden = settings.unknown / (settings.unknown + often)
        for batch in parts:
            done = (time.monotonic() - began) / (60 * settings.minutes) if settings.minutes else seen / total
            if done > 1:
                break
            scale = settings.top * min(1.0, (step + 1) / 200) * max(0.02, 1 - done)
            for group in optimizer.param_groups:
                group["lr"] = group["top"] * scale
            words = batch.words + len(hidden) * (torch.rand(batch.words.shape) < hidden[batch.words])
            optimizer.zero_grad()
            loss = losses(network, rows, batch, words, settings.tag_weight)
            torch.autograd.backward(loss)
            dense = [own.grad for own in (*old, *new) if own.grad is not None] + network.words.slopes()
            norm = torch.nn.utils.get_total_norm(dense).item()
            if norm > settings.clip:
                torch._foreach_mul_(dense, settings.clip / norm)
            optimizer.step()
            network.words.update(step, settings.table_rate * scale, settings.decay)
            lately.append(loss.item())
            seen += batch.words.numel()
            step += 1
        yield f"{time.process_time():.0f} s of CPU, {seen / 1e6:.2f} M words, loss {np.mean(lately):.4f}"
        if settings.minutes and time.monotonic() - began > 60 * settings.minutes:
            return


SETTINGS = (
    ("passes", 12), ("made", 0.4), ("seed", 1), ("top", 1.0), ("minutes", 0.0), ("dropout", 0.15), ("batch", 700)
)  # fmt: skip


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", type=Path, nargs="+", help="what scene_data.py wrote")
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="captions whose words the vocabulary keeps")
    parser.add_argument("--start", type=Path, required=True, help="folder of the caption pipeline's network")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--everything", action="store_true", help="train on the held-back captions, too")
    parser.add_argument("--resume", type=Path, help="folder of a network that is trained on; the rates start at --top")
    for name, value in SETTINGS:
        parser.add_argument(f"--{name}", type=type(value), default=value)
    arguments = parser.parse_args()
    train(arguments, Settings(**{name: getattr(arguments, name) for name, _ in SETTINGS}))


if __name__ == "__main__":
    main()
