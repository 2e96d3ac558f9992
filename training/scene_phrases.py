"""Cut phrases out of parsed captions: text like region captions, on which networks teach one another.

A phrase is a noun with all that hangs on it; short captions stand for themselves. As JSON lines: words and their tags.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import scene_data
import silver
from heldout import Hashes, add_hashes
from styles import plain

FEWEST = 3  # words of a phrase
EDGES = frozenset({"case", "cc", "mark", "punct"})  # of a noun, not of its phrase
NOUNS = frozenset({"NN", "NNS"})
ARTICLES = frozenset({"a", "an", "the"})


def phrases(sentence: silver.Sentence, longest: int) -> Iterator[tuple[int, int]]:
    """Yield where phrases stand in a sentence: first word, and the one behind the last."""
    size = len(sentence.words)
    below: list[list[int]] = [[] for _ in range(size + 1)]
    for word, head in enumerate(sentence.heads, 1):
        below[head].append(word)

    def reach(word: int) -> list[int]:
        return [word, *(own for child in below[word] for own in reach(child))]

    for word, tag in enumerate(sentence.tags, 1):
        if tag in NOUNS:
            inside = [child for child in below[word] if sentence.labels[child - 1] not in EDGES]
            own = [word, *(one for child in inside for one in reach(child))]
            if FEWEST <= len(own) <= longest and max(own) - min(own) + 1 == len(own):
                yield min(own) - 1, max(own)
    end = size - 1 if sentence.words[-1] == "." else size
    if FEWEST <= end <= longest:
        yield 0, end


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parses", type=Path, nargs="+", help="captions' parses (CoNLL-U)")
    parser.add_argument("--without", type=Path, nargs="*", default=[], help="captions with graphs that are left out")
    parser.add_argument("--bare", type=float, default=0.0, help="share of phrases that lose the article in front")
    parser.add_argument("--longest", type=int, default=12, help="words of the longest phrase")
    parser.add_argument("--most", type=int, default=70_000, help="phrases that are written")
    parser.add_argument("--out", type=Path, required=True)
    add_hashes(parser)
    arguments = parser.parse_args()
    left_out = {plain(caption.text) for path in arguments.without for caption in scene_data.read(path)}
    hashes = Hashes.read(arguments.held_out_hashes)
    random = np.random.default_rng(1)
    found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for path in arguments.parses:
        for caption in silver.read(path, hashes):
            for sentence in caption.sentences:
                for start, end in phrases(sentence, arguments.longest):
                    has_article = sentence.words[start].lower() in ARTICLES and end - start > FEWEST
                    own = slice(start + (has_article and random.random() < arguments.bare), end)
                    words = tuple(word.lower() for word in sentence.words[own])
                    found.setdefault(plain(" ".join(words)), (words, sentence.tags[own]))
    kept = [own for text, own in found.items() if text not in left_out and not hashes.covers(text)]
    with gzip.open(arguments.out, "wt", encoding="utf-8") as lines:
        for place in random.permutation(len(kept))[: arguments.most]:
            lines.write(json.dumps(kept[place]) + "\n")


if __name__ == "__main__":
    main()
