"""A folder of nltk's data: tables of other languages, and beside them a WordNet without words, which nltk's reader wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_HEADER = "  1 WordNet 3.0 Copyright 2006 by Princeton University. This file is for tests; it has no words.\n"


def write_nltk_data(
    folder: Path, tables: Mapping[str, Mapping[str, Iterable[str]]], *, package: str = "omw-2.0"
) -> None:
    """Write ``corpora`` in a folder: for each language (``fra``) its words with the names of their synsets (dog.n.01)."""
    for language, words in tables.items():
        rows = [f"# a table for tests\t{language}\t\t\n"]
        for word, names in words.items():
            synsets = (load_wordnet().find(name, "n") for name in names)
            rows += (f"{synset.number:08d}-{synset.part}\t{language}:lemma\t{word}\n" for synset in synsets)
        place = folder / "corpora" / package / language
        place.mkdir(parents=True)
        (place / f"wn-data-{language}.tab").write_text("".join(rows), encoding="utf-8")
    place = folder / "corpora" / "wordnet"
    place.mkdir(parents=True, exist_ok=True)
    (place / "lexnames").write_text("00\tadj.all\t3\n", encoding="ascii")
    for part in ("adj", "adv", "noun", "verb"):
        (place / f"{part}.exc").write_text("", encoding="ascii")
        for file in ("data", "index"):
            (place / f"{file}.{part}").write_text(_HEADER, encoding="ascii")
