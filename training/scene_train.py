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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import export
import scene_data
import scene_texts
from heldout import Hashes, add_hashes
from scene_batches import IGNORED, Batch, Codes, Taught, batches
from scene_data import Caption, Labelled
from scene_network import SceneHeads, SceneNetwork, Shape, reshaped, resume, shape_of, start_from
from scene_teach import read_phrases, teach
from spicegraph_parser.caption_pipeline.encoder import KINDS, Vocabulary, read_weights
from spicegraph_scenes.network import OBJECT, PAIR_LABELS

LOG = logging.getLogger("scene_train")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the network is trained; rates are those of Adam's steps."""

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
    phrases: int = 30_000  # phrases with a teacher's probabilities that a pass has, where there are any
    also_times: int = 4  # how often a pass has each sentence of --also
    seed: int = 1
    first: int = 160  # units of a direction of the first recurrent layer, and of the second
    second: int = 160
    narrow: int = 0  # how many numbers of the first layer's states the second one reads; 0: all states
    top: float = 1.0  # share of the rates that the first batch has; they fall to 0 by batches


def losses(network: SceneHeads, codes: Tensor, batch: Batch, words: Tensor, tag_weight: float) -> Tensor:
    """Return the summed loss of a batch."""
    pairs, objects, relations, tags = network(codes, words, batch.chosen, batch.stated, batch.style)
    count = batch.words.numel()
    others = ~torch.eye(batch.words.shape[1], dtype=torch.bool)
    loss = -(pairs.log_softmax(dim=-1) * batch.pairs)[:, others].sum() / count
    loss = loss + functional.binary_cross_entropy_with_logits(objects, batch.objects)
    loss = loss - (relations.log_softmax(dim=-1) * batch.relations).sum() / count
    if (batch.tags != IGNORED).any():
        loss = loss + tag_weight * functional.cross_entropy(
            tags.flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORED
        )
    return loss


@torch.no_grad()
def agreement(network: SceneHeads, codes: Codes, data: Sequence[Labelled]) -> dict[str, float]:
    """Return F1 of the labels of pairs and objects, accuracy of given relations, share of sentences all right."""
    network.eval()
    counts: Counter[str] = Counter()
    order = np.random.default_rng(0)
    made = list(batches(codes, data, 2000, order))
    rows = codes.rows()
    for batch in made:
        pairs, objects, relations, _ = network(rows, batch.words, batch.chosen, batch.stated, batch.style)
        best = pairs.argmax(dim=-1)
        wanted = batch.pairs.argmax(dim=-1)
        for labels, own in ((best, objects > 0), (wanted, batch.objects > 0)):
            labels.diagonal(dim1=1, dim2=2).copy_(own.long() * OBJECT)
        right = (best == wanted) & (best > 0)
        good = relations.argmax(dim=-1) == batch.relations.argmax(dim=-1)
        whole = (best == wanted).flatten(1).all(dim=1)
        whole[batch.chosen[~good, 0]] = False
        counts.update(
            right=int(right.sum()), found=int((best > 0).sum()), wanted=int((wanted > 0).sum()),
            good=int(good.sum()), relations=len(good), whole=int(whole.sum()), sentences=len(whole),
        )  # fmt: skip
    network.train()
    return {
        "pairs": round(2 * counts["right"] / (counts["found"] + counts["wanted"]), 4),
        "relations": round(counts["good"] / counts["relations"], 4),
        "whole": round(counts["whole"] / counts["sentences"], 4),
    }


def read_people(
    paths: Sequence[Path], *, everything: bool = False, by_hand: bool = False
) -> tuple[list[tuple[Labelled, Caption]], list[Labelled], dict[tuple[str, ...], list[int]]]:
    """Read captions with people's labels: those to train on, those held back, and the tags of words by caption."""
    labelled = [row for path in paths for row in scene_data.read_labelled(path, by_hand=by_hand)]
    held = [own for own, caption, _ in labelled if scene_data.is_held_back(caption.text)]
    kept = [(own, caption) for own, caption, _ in labelled if everything or not scene_data.is_held_back(caption.text)]
    return kept, held, {tuple(map(str.lower, own.words)): numbers for own, _, numbers in labelled}


def read_by_hand(
    arguments: argparse.Namespace,
) -> tuple[list[tuple[Labelled, Caption]], list[Labelled], dict[tuple[str, ...], list[int]]]:
    """Read what was labelled by hand, in styles of its own and in FACTUAL's, as ``read_people`` does."""
    kept, held, tags = read_people(arguments.also, by_hand=True)
    photographs, photographs_held, photograph_tags = read_people(arguments.photographs)
    return kept + photographs, held + photographs_held, tags | photograph_tags


def word_counts(paths: Sequence[Path], hashes: Hashes) -> Counter[str]:
    """Count the lower-cased words of files of captions, without those held out."""
    counts: Counter[str] = Counter()
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in hashes.kept(lines):
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
    torch.backends.mkldnn.fp32_precision = "bf16"
    kept, held, tags = read_people(arguments.labelled, everything=arguments.everything)
    data = [own for own, _ in kept]
    weights = read_weights((arguments.start / "network.npz").read_bytes())
    pipeline = Vocabulary.from_lists(json.loads((arguments.start / "vocabulary.json").read_bytes()))
    also, also_held, also_tags = read_by_hand(arguments)
    LOG.info(
        "%s captions, %s held back; also %s sentences, %s held back", len(data), len(held), len(also), len(also_held)
    )

    used = Counter(word.lower() for own in data for word in own.words)
    if arguments.resume:
        weights = read_weights((arguments.resume / "network.npz").read_bytes())
        lists = json.loads((arguments.resume / "vocabulary.json").read_bytes())
        rows = [list(range(len(weights[f"words.tables.{kind}"]))) for kind in range(len(KINDS))]
    else:
        lists, rows = narrowed(pipeline, used, word_counts(arguments.texts, Hashes.read(arguments.held_out_hashes)))
        counted = Counter(name for own in data for name in own.relations.values())
        lists["relations"] = [name for name, count in counted.most_common() if count >= settings.least_relations]
        lists["labels"] = list(PAIR_LABELS)
    objects, attributes = scene_data.rewrites(kept, least=5)
    names: dict[str, Any] = {"objects": objects, "attributes": attributes}
    names |= scene_data.nouns((caption for _, caption in kept), pipeline.rows[0])
    names["known"] = sorted(word for word, count in used.items() if count > 1)
    never = set(names["abstract"]).difference(names.pop("seldom"), names["sounds"])
    names["undrawn"] = sorted(never.intersection(names["known"]))
    vocabulary = Vocabulary.from_lists(lists)
    codes = Codes(vocabulary, lists["relations"], tags | also_tags)
    widths = [weights[f"words.tables.{kind}"].shape[1] for kind in range(len(KINDS))]
    sizes = len(pipeline.tags), len(lists["relations"])
    shape = Shape(first=settings.first, second=settings.second, narrow=settings.narrow, dropout=settings.dropout)
    if shape != shape_of(weights, settings.dropout):
        weights = reshaped(weights, shape, np.random.default_rng(settings.seed))
    network = SceneNetwork([len(own) for own in rows], widths, sizes, shape)
    start_from(network, weights, rows)
    if arguments.resume:
        resume(network, weights)
    LOG.info("%s parameters without tables, %s relations", sum(p.numel() for p in network.parameters()), sizes[1])

    phrases = list(teach(arguments.teachers, codes, read_phrases(arguments.phrases_of, vocabulary)))
    phrases += teach(arguments.also_teachers, codes, read_phrases(arguments.also_phrases_of, vocabulary), by_hand=True)
    more = [own for own, _ in also]
    for passed, line in enumerate(fit(network, codes, data, phrases, settings, also=more), start=1):
        LOG.info("pass %s, %s, held back %s", passed, line, agreement(network, codes, held))
        if also_held:
            LOG.info("of --also %s", agreement(network, codes, also_held))
        arguments.out.mkdir(parents=True, exist_ok=True)
        np.savez(
            arguments.out / "network.npz", allow_pickle=False, **export.compact(export.arrays(network), matrices=True)
        )
        text = json.dumps(lists | names, ensure_ascii=False, separators=(",", ":"))
        (arguments.out / "vocabulary.json").write_text(text + "\n", encoding="utf-8")


def fit(
    network: SceneNetwork,
    codes: Codes,
    data: Sequence[Labelled],
    phrases: Sequence[Taught],
    settings: Settings,
    *,
    also: Sequence[Labelled] = (),
) -> Iterator[str]:
    """Train a network, and yield after each pass what is to be reported.

    Args:
        network: what is trained.
        codes: numbers of words and relations.
        data: sentences with people's labels: each pass has all of them.
        phrases: sentences with probabilities: each pass has ``settings.phrases`` of them.
        settings: how it is trained.
        also: sentences with people's labels that each pass has ``settings.also_times`` times.
    """
    random = np.random.default_rng(settings.seed)
    sides: dict[bool, list[Tensor]] = {False: [], True: []}
    for name, own in network.named_parameters():
        sides[name.startswith("encoder.") and not name.startswith("encoder.shifts.")].append(own)
    new, old = sides[False], sides[True]
    optimizer = torch.optim.Adam(
        [{"params": new, "top": settings.rate}, {"params": old, "top": settings.start_rate}],
        betas=(0.9, settings.decay),
        fused=True,
    )
    used = Counter(word.lower() for own in (*data, *phrases, *also) for word in own.words)
    step, seen = 0, 0
    for passed in range(settings.passes):
        lately = []
        shown: list[Labelled | Taught] = [
            scene_texts.recased(own, random)
            for own in (*data, *settings.also_times * list(also), *scene_texts.made(data, settings.made, random))
        ]
        shown += [phrases[place] for place in random.permutation(len(phrases))[: settings.phrases]]
        parts = list(batches(codes, shown, settings.batch, random))
        table = codes.rows()
        rows = torch.cat([table, table.clone().index_fill_(1, torch.tensor([0]), 0)])
        often = torch.tensor([used[word.lower()] for word in codes.numbers])
        hidden = settings.unknown / (settings.unknown + often)
        for place, batch in enumerate(parts):
            done = (passed + place / len(parts)) / settings.passes
            scale = settings.top * min(1.0, (step + 1) / 200) * max(0.02, 1 - done)
            for group in optimizer.param_groups:
                group["lr"] = group["top"] * scale
            words = batch.words + len(hidden) * (torch.rand(batch.words.shape) < hidden[batch.words])
            optimizer.zero_grad()
            loss = losses(network, rows, batch, words, settings.tag_weight)
            torch.autograd.backward(loss)
            dense = [own.grad for own in (*old, *new) if own.grad is not None] + network.encoder.words.slopes()
            norm = torch.nn.utils.get_total_norm(dense).item()
            if norm > settings.clip:
                torch._foreach_mul_(dense, settings.clip / norm)
            optimizer.step()
            network.encoder.words.update(step, settings.table_rate * scale, settings.decay)
            lately.append(loss.item())
            seen += batch.words.numel()
            step += 1
        yield f"{time.process_time():.0f} s of CPU, {seen / 1e6:.2f} M words, loss {np.mean(lately):.4f}"


def add_settings(parser: argparse.ArgumentParser, kind: type[Any]) -> None:
    """Let a command line set every field of a class of settings."""
    for field in fields(kind):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)


def settings_of(arguments: argparse.Namespace, kind: type[Any]) -> dict[str, Any]:
    """Return the fields that a command line gave."""
    return {field.name: getattr(arguments, field.name) for field in fields(kind)}


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", type=Path, nargs="+", help="what scene_data.py wrote")
    parser.add_argument(
        "--also",
        type=Path,
        nargs="*",
        default=[],
        help="captions and sentences labelled by hand (styles of their own), of which no list is made",
    )
    parser.add_argument(
        "--photographs", type=Path, nargs="*", default=[], help="the same in FACTUAL's style, as often in a pass"
    )
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="captions whose words the vocabulary keeps")
    parser.add_argument("--start", type=Path, required=True, help="folder of the caption pipeline's network")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--everything", action="store_true", help="train on the held-back captions, too")
    parser.add_argument("--teachers", type=Path, nargs="*", default=[], help="folders of networks that teach")
    parser.add_argument("--phrases-of", type=Path, nargs="*", default=[], help="what scene_phrases.py wrote")
    parser.add_argument(
        "--also-teachers", type=Path, nargs="*", default=[], help="teachers by the conventions of --also"
    )
    parser.add_argument("--also-phrases-of", type=Path, nargs="*", default=[], help="what they label")
    parser.add_argument("--resume", type=Path, help="folder of a network that is trained on; the rates start at --top")
    add_hashes(parser)
    add_settings(parser, Settings)
    arguments = parser.parse_args()
    train(arguments, Settings(**settings_of(arguments, Settings)))


if __name__ == "__main__":
    main()
