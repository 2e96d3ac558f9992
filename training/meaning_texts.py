"""Choose the texts from which the table of meanings learns, and write them, one a line behind its kind and a tab.

    python training/meaning_texts.py --silver FOLDER --captions FOLDER --held-out-hashes SHA1 --rated RATED... --out OUT

COCO's captions come out of the parses, all other kinds out of ``KIND.txt.gz``; descriptions are cut into sentences.
What is held out is left out: by its hash, or as any string of a rated set or golden file (``.jsonl.gz``). Letters' case
and punctuation do not count.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from heldout import Hashes, add_hashes, text_hash

MOST: Final[Mapping[str, int]] = {
    "coco": 60_000,
    "audiocaps": 50_000,
    "vg": 20_000,
    "conceptual": 15_000,
    "machine": 7_000,
    "long": 30_000,
}
"""How many texts of each kind are taken."""
PARSES: Final = ("coco_train_silver", "coco_train_silver_lower")
DESCRIPTIONS: Final = ("long_human", "long_mllm", "narratives")
LONGEST: Final = 64  # words
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


def strings_of(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings_of(part)


def rated(paths: Iterable[Path]) -> set[str]:
    """Return the hashes of the strings of rated sets; of a description its sentences, too."""
    hashes: set[str] = set()
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for text in (text for line in lines for text in strings_of(json.loads(line))):
                hashes.update(map(text_hash, (text, *_SENTENCE_END.split(text))))
    return hashes


def read_kind(kind: str, silver: Path, captions: Path) -> list[str]:
    """Return the texts of a kind, in the order of their files."""
    if kind == "coco":
        texts = []
        for name in PARSES:
            with gzip.open(silver / f"{name}.conllu.gz", "rt", encoding="utf-8") as lines:
                texts += [line[len("# text = ") :].strip() for line in lines if line.startswith("# text = ")]
        return texts
    texts = []
    for name in DESCRIPTIONS if kind == "long" else (kind,):
        with gzip.open(captions / f"{name}.txt.gz", "rt", encoding="utf-8") as lines:
            for line in map(str.strip, lines):
                texts += _SENTENCE_END.split(line) if kind == "long" else [line]
    return texts


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--silver", type=Path, required=True, help="folder of the parses of COCO's captions")
    parser.add_argument("--captions", type=Path, required=True, help="folder of the other kinds")
    parser.add_argument("--rated", type=Path, nargs="+", required=True, help="sets of which nothing is taken")
    add_hashes(parser)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    hidden, held = rated(options.rated), Hashes.read(options.held_out_hashes)
    dice, seen, chosen = random.Random(0), set(hidden), []
    for kind, most in MOST.items():
        texts, left_out = [], 0
        for text in read_kind(kind, options.silver, options.captions):
            own = text_hash(text)
            is_held = own in hidden or held.covers(text)
            left_out += is_held
            if own not in seen and not is_held and 1 < len(text.split()) <= LONGEST:
                seen.add(own)
                texts.append(text)
        print(f"{kind}: {min(most, len(texts))} of {len(texts)} different texts; {left_out} are held out")
        chosen += [(kind, text) for text in dice.sample(texts, min(most, len(texts)))]
    dice.shuffle(chosen)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:
        out.write("".join(f"{kind}\t{text}\n" for kind, text in chosen).encode())


if __name__ == "__main__":
    main()
