"""Teach a network what several others think of captions that nobody has parsed.

The teachers' probabilities of tags, heads and labels are averaged, and the averages are what the network learns
(Hinton, Vinyals and Dean, "Distilling the Knowledge in a Neural Network", 2015). Networks that were trained apart agree
better with the reference parser together than each does alone, but take several times as long.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import export
from captions import text_lines
from data import Codes, Taught
from heldout import Hashes, Held
from network import Network, Shape
from spicegraph_parser.caption_pipeline.encoder import Vocabulary
from spicegraph_parser.ptb import split_sentences, tokenize

AT_ONCE = 4000  # words


def sentences(paths: Sequence[Path], held: Held, longest: int, hashes: Hashes) -> list[tuple[str, ...]]:
    """Return the distinct sentences of files of captions, one per line, without captions that hold a held-out one."""
    found: dict[tuple[str, ...], None] = {}
    for path in paths:
        for text in text_lines(path, hashes):
            if held.covers(text):
                continue
            found.update({words: None for words in sentences_of(text) if len(words) <= longest})
    return list(found)


def sentences_of(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a caption's sentences."""
    tokens = tokenize(text, variant="spice")
    words = [token[0] for token in tokens]
    end = 0
    for length in split_sentences(tokens) if tokens else ():
        start, end = end, end + length
        yield tuple(words[start:end])


@dataclass(frozen=True, slots=True)
class Teacher:
    """A trained network; ``tags`` and ``labels``: where the pupil's are in its own lists."""

    network: Network
    known: Vocabulary
    tags: Tensor
    labels: Tensor

    @classmethod
    def read(cls, folder: Path, pupil: Vocabulary) -> "Teacher":
        """Read a network that knows every tag and label of the pupil.

        Raises:
            ValueError: it lacks one.
        """
        weights, known = export.read(folder)
        network = network_of(weights, known)
        return cls(network, known, places(known.tags, pupil.tags), places(known.labels, pupil.labels))

    def answers(self, encoded: tuple[Tensor, Tensor], heads: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return probabilities of tags, heads and labels, from the network's code of sentences."""
        _, tags, arcs, labels = self.network.scores(*encoded, heads)
        return tags.softmax(-1)[..., self.tags], arcs.softmax(-1), labels.softmax(-1)[..., self.labels]


def places(theirs: Sequence[str], wanted: Sequence[str]) -> Tensor:
    """Return where names are in a list.

    Raises:
        ValueError: the list lacks one.
    """
    if missing := set(wanted) - set(theirs):
        raise ValueError(f"a teacher lacks {', '.join(sorted(missing))}")
    return torch.tensor([theirs.index(name) for name in wanted])


def network_of(weights: Mapping[str, np.ndarray], known: Vocabulary) -> Network:
    """Return the trainable form of stored weights, ready to answer; tags are corrected where the weights hold that."""
    own = dict(weights)
    hidden = own["lstm.0.state"].shape[-2]
    own.setdefault("late_tagger", np.zeros((2 * hidden, len(known.tags)), np.float32))
    own.setdefault("late_tagger.bias", np.zeros(len(known.tags), np.float32))
    tables = [own[f"words.tables.{kind}"] for kind in range(len(known.rows))]
    shape = replace(
        Shape(),
        first=hidden,
        second=hidden,
        word=own["words.mix"].shape[1],
        form=tables[0].shape[1],
        suffix=tables[1].shape[1],
        prefix=tables[4].shape[1],
        case=tables[5].shape[1],
        arc=own["arc_child"].shape[1],
        label=own["label_child"].shape[1],
        tag=own["tag_vectors"].shape[1],
    )
    network = Network([len(table) for table in tables], len(known.tags), len(known.labels), shape)
    export.go_on_from(network, own)
    return network.eval()


@torch.no_grad()
def taught(found: Sequence[tuple[str, ...]], teachers: Sequence[Teacher], numbers: Codes) -> dict[int, Taught]:
    """Return sentences with the teachers' averaged answers, by length; ``numbers`` gets their words."""
    out: dict[int, Taught] = {}
    for own, parts in asked(found, teachers):
        answers = [answer(part) for part in parts]
        mine = torch.tensor([[numbers.number(word) for word in words] for words in own])
        tags, chosen, heads, labels = (torch.cat(column) for column in zip(*answers, strict=True))
        out[len(own[0])] = Taught(mine, tags, chosen, heads, labels)
    return out


class Read:
    """What teachers make of sentences of one length, without labels: mean probabilities of tags and heads."""

    def __init__(self, words: Tensor, codes: Sequence[Tensor], teachers: Sequence[Teacher]) -> None:
        pairs = zip(teachers, codes, strict=True)
        self.encoded = [(teacher, teacher.network.encoder(own, words)) for teacher, own in pairs]
        first = [teacher.answers(own, None) for teacher, own in self.encoded]
        self.tags, self.heads = (torch.stack([answers[column] for answers in first]).mean(0) for column in (0, 1))


def asked(
    found: Sequence[tuple[str, ...]], teachers: Sequence[Teacher]
) -> Iterator[tuple[list[tuple[str, ...]], Iterator[Read]]]:
    """Yield sentences, all of one length at once, with what teachers make of parts of these, one after another."""
    by_length: dict[int, list[tuple[str, ...]]] = {}
    for words in found:
        by_length.setdefault(len(words), []).append(words)
    distinct = {word: place for place, word in enumerate(dict.fromkeys(word for words in found for word in words))}
    codes = [torch.tensor([teacher.known.feature_rows(word) for word in distinct]) for teacher in teachers]
    for length, own in sorted(by_length.items()):
        rows = torch.tensor([[distinct[word] for word in words] for words in own])
        yield own, (Read(part, codes, teachers) for part in rows.split(max(1, AT_ONCE // length)))


def answer(read: Read) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return mean probabilities of tags, the best heads, and probabilities of heads and of these heads' labels."""
    chosen = read.heads.argmax(-1)
    labels = [teacher.answers(own, chosen)[2] for teacher, own in read.encoded]
    return read.tags.half(), chosen, read.heads.half(), torch.stack(labels).mean(0).half()
