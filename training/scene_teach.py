"""Phrases with the means of networks' probabilities: what a network is taught beside people's graphs."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

import scene_pretrained
from scene_batches import IGNORED, Codes, Taught
from scene_data import style_of
from scene_network import SceneHeads, SceneNetwork, resume, shape_of
from spicegraph_parser.caption_pipeline.encoder import KINDS, Vocabulary, read_weights
from spicegraph_scenes.network import RELATION


def read_phrases(paths: Sequence[Path], vocabulary: Vocabulary) -> dict[tuple[str, ...], list[int]]:
    """Read phrases: words, and the numbers of their tags."""
    numbers = {tag: number for number, tag in enumerate(vocabulary.tags)}
    out = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for words, tags in map(json.loads, lines):
                out[tuple(words)] = [numbers.get(tag, IGNORED) for tag in tags]
    return out


LIKELY = 0.2  # least probability of a pair that it is a relation, for its relation to be taught


@torch.no_grad()
def teach(
    folders: Sequence[Path], codes: Codes, phrases: Mapping[tuple[str, ...], list[int]], *, by_hand: bool = False
) -> Iterator[Taught]:
    """Yield phrases with the means of networks' probabilities, as labels by hand or in FACTUAL's style."""
    if not folders:
        return
    numbered = {words: [codes.number(word) for word in words] for words in phrases}
    networks = [read_teacher(folder, codes) for folder in folders]
    by_length: dict[tuple[int, int], list[tuple[str, ...]]] = {}
    for words in phrases:
        by_length.setdefault((len(words), style_of(words) if by_hand else 0), []).append(words)
    for (length, style), own in sorted(by_length.items()):
        step = max(1, 2000 // length)
        for group in (own[start : start + step] for start in range(0, len(own), step)):
            numbers = torch.tensor([numbered[words] for words in group])
            several = [(own, own.read(rows, numbers, style)[0]) for own, rows in networks]
            pairs = torch.stack([own.pair_scores(read).softmax(dim=-1) for own, read in several]).mean(dim=0)
            objects = torch.stack([own.object(read).sigmoid() for own, read in several]).mean(dim=0).squeeze(-1)
            pairs.diagonal(dim1=1, dim2=2).zero_()
            chosen = (pairs[..., RELATION] > LIKELY).nonzero()
            ends = [(group[at], min(pair), max(pair)) for at, *pair in chosen.tolist()]
            named = torch.stack([own.name(read, chosen, codes.state(ends)).softmax(dim=-1) for own, read in several])
            relations = (named.mean(dim=0) * pairs[tuple(chosen.T)][:, RELATION, None]).half().numpy()
            for place, words in enumerate(group):
                is_own = (chosen[:, 0] == place).numpy()
                own_ends = [(one, other) for at, one, other in chosen.tolist() if at == place]
                own_pairs = pairs[place].half().numpy()
                rest = relations[is_own], phrases[words], style
                yield Taught(words, own_pairs, objects[place].numpy(), own_ends, *rest)


def read_teacher(folder: Path, codes: Codes) -> tuple[SceneHeads, Tensor]:
    """Read a network that an earlier run wrote, from the same captions, and what it reads of every word so far.

    Raises:
        ValueError: its relations are others.
    """
    if (folder / scene_pretrained.NETWORK).exists():
        teacher = scene_pretrained.read_pretrained(folder, codes)
        return teacher, teacher.pieces.rows(codes.numbers)
    weights = read_weights((folder / "network.npz").read_bytes())
    lists = json.loads((folder / "vocabulary.json").read_bytes())
    if lists["relations"] != list(codes.relations):
        raise ValueError(f"{folder} was trained on other captions")
    tables = [weights[f"words.tables.{kind}"] for kind in range(len(KINDS))]
    sizes = len(lists["tags"]), len(lists["relations"])
    network = SceneNetwork([len(own) for own in tables], [own.shape[1] for own in tables], sizes, shape_of(weights))
    resume(network, weights)
    return network.eval(), codes.rows(Vocabulary.from_lists(lists))
