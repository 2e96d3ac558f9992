"""Print what is left of SPICE-G's scores of 200 people's captions when their words change places or images.

    python training/graded_degenerates.py examples/coco

Two columns, in per cent of the captions' own score: by the tuples alone, and with the order of words.
"""

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.readers import read_items

CONTENT = ("NN", "VB", "JJ")
Tagged = list[tuple[str, str]]


def _shuffled(words: Tagged, rng: random.Random) -> str:
    return " ".join(word for word, _ in rng.sample(words, len(words)))


def _content_shuffled(words: Tagged, rng: random.Random) -> str:
    places = [place for place, (_, tag) in enumerate(words) if tag[:2] in CONTENT]
    moved = dict(zip(places, rng.sample(places, len(places)), strict=True))
    return " ".join(words[moved.get(place, place)][0] for place in range(len(words)))


def _halves(words: Tagged, _rng: random.Random) -> str:
    middle = len(words) // 2
    return " ".join(word for word, _ in words[middle:] + words[:middle])


CHANGES: Mapping[str, Callable[[Tagged, random.Random], str]] = {
    "as they are": lambda words, _: " ".join(word for word, _ in words),
    "lower-cased": lambda words, _: " ".join(word.lower() for word, _ in words),
    "without articles": lambda words, _: " ".join(w for w, _ in words if w.lower() not in {"a", "an", "the"}),
    "random order": _shuffled,
    "backwards": lambda words, _: " ".join(word for word, _ in reversed(words)),
    "alphabet": lambda words, _: " ".join(sorted(word.lower() for word, _ in words)),
    "nouns, verbs, adjectives in random order": _content_shuffled,
    "halves exchanged": _halves,
    "man woman people table street dog": lambda *_: "man woman people table street dog",
}


def main() -> None:
    """Print the table."""
    folder = Path(sys.argv[1])
    items = read_items(str(folder / "human.json"), references=[str(folder / "captions_without_first.json")]).items
    pipeline = load_pipeline()
    tagged = {
        caption.text: [
            (form, tag) for parse in caption.sentences for form, tag in zip(parse.forms, parse.tags, strict=True)
        ]
        for caption in pipeline.captions([item.candidate for item in items])
    }
    words = {text: [pair for pair in pairs if pair[1] != "."] for text, pairs in tagged.items()}
    ordered = SpiceG(pipeline)
    ways = replace(ordered, vectors=replace(ordered.vectors, order=None)), ordered

    def means(changed: list[str]) -> list[float]:
        corpus = Corpus(tuple(Item(i.id, text, i.references) for i, text in zip(items, changed, strict=True)))
        return [fmean(one.weights[ALL].f1 for one in way.collect(corpus)) for way in ways]

    texts = [item.candidate for item in items]
    whole = means(texts)
    print("mean", *(f"{value:.3f}" for value in whole), sep="\t")
    rng = random.Random(1)
    rows = {name: [change(words[text], rng) for text in texts] for name, change in CHANGES.items()}
    rows["the caption of another image"] = [*texts[1:], texts[0]]
    for name, changed in rows.items():
        print(
            name,
            *(f"{100 * left / all_of_it:.1f} %" for left, all_of_it in zip(means(changed), whole, strict=True)),
            sep="\t",
        )


if __name__ == "__main__":
    main()
