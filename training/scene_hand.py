"""Read what was labelled by hand for this project: captions of many kinds, and sentences of descriptions.

``by_hand/kinds.jsonl.gz`` has captions with their graphs, by conventions of their own; ``by_hand/photographs.jsonl.gz``
has captions of ordinary photographs by those of FACTUAL, in which one verb has several objects and places.
``by_hand/sentences.jsonl.gz`` has labels alone, beside the hashes of sentences that are others'
(``scene_sentences.py`` cuts them out of the descriptions, ``--sentences``).
"""

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import scene_data
from heldout import Hashes, add_hashes, text_hash
from scene_data import Caption, Labelled
from spicegraph_scenes.values import unread, values_of

FOLDER = Path(__file__).parent / "by_hand"


def stands(words: Sequence[str], name: str) -> bool:
    """Say whether a caption has all words of a name, one after the other."""
    plain = name.removesuffix(" of")
    return any(
        len(span) == len(plain.split()) or "".join(words[at] for at in span).lower() == plain.replace(" ", "")
        for span in scene_data.spans(words, plain)
    )


def without_values(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a sentence that the network reads."""
    cut = set(unread(values_of(words)))
    return tuple([word for at, word in enumerate(words) if at not in cut])


def captions(path: Path, hashes: Hashes) -> Iterator[Caption]:
    """Yield captions as the network reads them: without values ("3 cm", quoted text), and with the facts that stay."""
    for caption in scene_data.read(path):
        if hashes.covers(caption.text):
            continue
        words = tuple(caption.words[:-1] if caption.words[-1] == "." else caption.words)
        words = without_values(words)
        kept = [fact for fact in caption.tuples if all(stands(words, name) for name in fact[:2])]
        yield Caption(caption.text, words, tuple(kept))


def sentences(path: Path, words_of: Iterable[Sequence[str]]) -> Iterator[tuple[Caption, Labelled]]:
    """Yield the sentences that have labels, with these; those of which other words are values by now are left out."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = {row["sha1"]: row for row in map(json.loads, lines)}
    for whole in words_of:
        row = rows.pop(text_hash(" ".join(whole)), None)
        words = without_values(whole)
        if row is not None and max(chain.from_iterable(pair[:2] for pair in row["pairs"]), default=-1) < len(words):
            pairs = {(head, other): kind for head, other, kind in row["pairs"]}
            relations = {(subject, target): name for subject, target, name in row["relations"]}
            yield Caption(" ".join(whole), tuple(words), ()), Labelled(tuple(words), pairs, relations)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captions", default="kinds", choices=["kinds", "photographs"])
    parser.add_argument("--sentences", type=Path, help="sentences of descriptions, as scene_sentences.py writes them")
    parser.add_argument("--out", type=Path, required=True)
    add_hashes(parser)
    options = parser.parse_args()
    hashes = Hashes.read(options.held_out_hashes)
    path = FOLDER / f"{options.captions}.jsonl.gz"
    rows = [(caption, scene_data.label(caption)) for caption in captions(path, hashes)]
    if options.sentences:
        with gzip.open(options.sentences, "rt", encoding="utf-8") as lines:
            rows += sentences(FOLDER / "sentences.jsonl.gz", [json.loads(line)[0] for line in lines])
    scene_data.write(rows, options.out)


if __name__ == "__main__":
    main()
