"""Build the part of WordNet 3.0 that ships beside the word index: broader synsets, senses and definitions.

The files come from Debian's package wordnet-base (1:3.0-37), whose data are WordNet 3.0's but for one corrected
definition, behind which every number is a little larger; each synset is traced to its number in the word index by
its words.

    apt-get download wordnet-base && dpkg -x wordnet-base_*.deb unpacked
    python tools/build_wordnet.py unpacked/usr/share/wordnet parser/spicegraph_parser/data
"""

from __future__ import annotations

import argparse
import gzip
from array import array
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.wordnet import FORMAT, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_parser.spice.index import Lexicon

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
BROADER = {"@", "@i", "&"}  # hypernym, instance hypernym; of adjectives, the head that a satellite is similar to
MOST_MOVED = 64


@dataclass
class Synset:
    """A line of the files."""

    part: str
    number: int  # in these files
    satellite: bool
    words: list[str]
    broader: list[tuple[str, int]]
    instance: bool
    gloss: str


def synsets(folder: Path) -> Iterator[Synset]:
    for part in PARTS:
        for line in (folder / f"data.{FILES[part]}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue
            facts, _, gloss = line.partition(" | ")
            fields = facts.split()
            count = int(fields[3], 16)
            words = [word.partition("(")[0].lower() for word in fields[4 : 4 + 2 * count : 2]]
            start = 4 + 2 * count
            pointers = [fields[start + 1 + 4 * i :][:4] for i in range(int(fields[start]))]
            broader = [(kind, p.replace("s", "a"), int(to)) for kind, to, p, _ in pointers if kind in BROADER]
            satellite = fields[2] == "s"
            yield Synset(
                part,
                int(fields[0]),
                satellite,
                words,
                [(p, to) for kind, p, to in broader if kind != "&" or satellite],
                any(kind == "@i" for kind, _, _ in broader),
                definition(gloss),
            )


def definition(gloss: str) -> str:
    """Return a gloss without its examples, which stand in quotes at its end."""
    return " ".join(gloss.partition('; "')[0].split()).rstrip(";")


def senses(folder: Path) -> dict[tuple[str, str], list[int]]:
    """Read, by part of speech and word, the numbers of the word's synsets, the most frequent sense first."""
    found = {}
    for part in PARTS:
        for line in (folder / f"index.{FILES[part]}").read_text(encoding="latin-1").splitlines():
            if not line.startswith("  "):
                fields = line.split()
                found[part, fields[0]] = [int(number) for number in fields[-int(fields[2]) :]]
    return found


def numbers_of(lexicon: Lexicon, word: str) -> list[int]:
    return [lexicon.synset_at(entry) for entry in lexicon.entries(word)]


def original(synset: Synset, lexicon: Lexicon) -> int:
    """Return a synset's number in the word index: the one near its own that all its words have."""
    shared = frozenset.intersection(*(frozenset(numbers_of(lexicon, word)) for word in synset.words))
    nearest = min(shared, key=lambda number: abs(number - synset.number))
    if abs(nearest - synset.number) > MOST_MOVED:
        raise SystemExit(f"{synset.part} {synset.number} {synset.words}: is not in the word index")
    return nearest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wordnet", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()

    lexicon = load_lexicon()
    table = list(synsets(arguments.wordnet))
    places = {(synset.part, synset.number): place for place, synset in enumerate(table)}
    numbers = [original(synset, lexicon) for synset in table]
    for one, two in pairwise(range(len(table))):
        if table[one].part == table[two].part and numbers[one] >= numbers[two]:
            raise SystemExit(f"two synsets have one number: {table[one]} {table[two]}")

    ranks: dict[tuple[str, int], int] = {}
    for (part, word), found in senses(arguments.wordnet).items():
        for rank, number in enumerate(found, start=1):
            ranks[word, numbers[places[part, number]]] = rank * len(PARTS) + PARTS.index(part)
    words = lexicon.words()
    position = {word: place for place, word in enumerate(words)}
    index = {
        "format": FORMAT,
        "source": "WordNet 3.0, Debian wordnet-base 1:3.0-37",
        "lexicon": lexicon.signature,
        "parts": [sum(synset.part == part for synset in table) for part in PARTS],
        "numbers": array("I", numbers).tobytes(),
        "heads": array("I", (position[synset.words[0]] for synset in table)).tobytes(),
        "broader_counts": bytes(len(synset.broader) for synset in table),
        "broader": array("I", (places[to] for synset in table for to in synset.broader)).tobytes(),
        "instances": bytes(synset.instance for synset in table),
        "senses": bytes(ranks[word, number] for word in words for number in numbers_of(lexicon, word)),
    }
    for name, data in (
        ("wordnet-relations.msgpack.gz", msgspec.msgpack.encode(index)),
        ("wordnet-glosses.txt.gz", "\n".join(synset.gloss for synset in table).encode()),
    ):
        path = arguments.output / name
        path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    print(f"{len(table)} synsets, {sum(len(s.broader) for s in table)} broader ones")


if __name__ == "__main__":
    main()
