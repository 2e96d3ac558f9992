"""Choose the captions that are worth parsing: those on which networks trained apart doubt most.

Four in five captions of COCO are parsed wholly right by now, so most parses made at random teach nothing. The networks'
probabilities are averaged; the doubt about a sentence is one minus the probability that every tag and head is right,
were they independent. A caption is written with a chance that is its doubt ("uncertainty sampling": Lewis and Gale, "A
Sequential Algorithm for Training Text Classifiers", 1994), so that no kind of sentence is left out for good. The others
are written into the folder ``rest``: networks can be taught what their teachers think of these (``teach.py``).
"""

import argparse
import math
import random
from collections.abc import Sequence
from pathlib import Path

import torch

import export
from captions import conllu_captions, text_lines
from heldout import Hashes, Held, add_hashes, is_held_out, kind_of
from teach import Teacher, asked, sentences_of

LONGEST = 40  # words of a sentence


@torch.no_grad()
def doubts_of(sentences: Sequence[tuple[str, ...]], teachers: Sequence[Teacher]) -> dict[tuple[str, ...], float]:
    """Return the doubt about each sentence, from 0 to 1."""
    found: dict[tuple[str, ...], float] = {}
    for own, parts in asked(sentences, teachers):
        sure = [(part.tags.amax(-1).log() + part.heads.amax(-1).log()).sum(-1).exp() for part in parts]
        found |= dict(zip(own, (1 - torch.cat(sure)).tolist(), strict=True))
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, nargs="+", help="files of captions, one per line")
    parser.add_argument("--networks", type=Path, nargs="+", required=True, help="folders of networks")
    parser.add_argument("--parses", type=Path, nargs="+", required=True, help="parses that say what is held out")
    parser.add_argument("--out", type=Path, required=True, help="folder of the chosen captions")
    parser.add_argument("--seed", type=int, default=1)
    add_hashes(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = export.read(options.networks[0])[1]
    teachers = [Teacher.read(folder, known) for folder in options.networks]
    pairs = ((text, kind_of(path)) for path in options.parses for text in conllu_captions(path))
    held = Held([text for text, kind in pairs if is_held_out(text, kind)])
    dice = random.Random(options.seed)
    hashes = Hashes.read(options.held_out_hashes)
    (options.out / "rest").mkdir(parents=True, exist_ok=True)
    for path in options.texts:
        read = {text: list(sentences_of(text)) for text in text_lines(path, hashes) if not held.covers(text)}
        texts = {text: parts for text, parts in read.items() if parts and max(map(len, parts)) <= LONGEST}
        of_sentences = doubts_of([words for parts in texts.values() for words in parts], teachers)
        doubts = {text: 1 - math.prod(1 - of_sentences[words] for words in parts) for text, parts in texts.items()}
        chosen = {text for text, own in doubts.items() if dice.random() < own}
        mean = sum(doubts.values()) / max(1, len(doubts))
        print(f"{path.stem}: {len(texts)} captions, mean doubt {mean:.3f}, {len(chosen)} chosen")
        for folder, taken in ((options.out, True), (options.out / "rest", False)):
            own = [f"{text}\n" for text in doubts if (text in chosen) == taken]
            dice.shuffle(own)
            (folder / path.name).write_text("".join(own), encoding="utf-8")


if __name__ == "__main__":
    main()
