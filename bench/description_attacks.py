"""Do padding, repeating, splitting, restating, hedging and lists of objects raise the scores of descriptions?

Reads descriptions with their references in any form that ``score`` reads, and prints for each attack and score of
``detail`` the mean gain, and the share of descriptions whose score rises by more than a thousandth.

    python bench/description_attacks.py items.jsonl
    python bench/description_attacks.py captions.jsonl --sentences 1
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from spicegraph_graded.detail.claims import sentence_spans
from spicegraph_graded.detail.metric import Detail
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer import Item, read_items
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FREQUENT = "a man, a woman, a table, a dog, a car, a tree, a street and a building"
CLASSES = "a person, a chair, a bottle, a cup, a bowl, a handbag, a backpack, a book, a clock and a vase"


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _halves(sentences: Sequence[str], cut: str) -> list[str]:
    """Return a text as two sentences, the second from a word on, or from the middle where it lacks that."""
    words = re.sub(r"[.!?\s]+$", "", " ".join(sentences)).split()
    place = next((n for n, word in enumerate(words) if n and re.fullmatch(cut, word)), max(1, len(words) // 2))
    return [f"{' '.join(part).capitalize()}." for part in (words[:place], words[place:]) if part]


def _ends(said: str) -> Callable[[Sequence[str]], Sequence[str]]:
    return lambda sentences: [*sentences[:-1], re.sub(r"[.!?\s]*$", f" {said}.", sentences[-1], count=1)]


def _behind(said: str) -> Callable[[Sequence[str]], Sequence[str]]:
    return lambda sentences: [*sentences[:-1], re.sub(r"(?<![.!?])$", ".", sentences[-1]), said]


ATTACKS: Mapping[str, Callable[[Sequence[str]], Sequence[str]]] = {
    "repeat: all twice": lambda sentences: [*sentences, *sentences],
    "repeat: the first sentence": lambda sentences: [*sentences, sentences[0]],
    "repeat: each sentence at once": lambda sentences: [each for one in sentences for each in (one, one)],
    "restate: in other words": lambda sentences: [*sentences, f"In other words, {_lower(sentences[0])}"],
    "restate: as said before": lambda sentences: [*sentences, *(f"Again, {_lower(one)}" for one in sentences)],
    "split: at commas": lambda sentences: [
        f"{part.strip().rstrip('.')}." for one in sentences for part in one.split(",") if part.strip()
    ],
    "join: with and": lambda sentences: [" and ".join(re.sub(r"[.!?]+$", "", _lower(one)) for one in sentences) + "."],
    "reverse: sentences": lambda sentences: sentences[::-1],
    "hedge: it looks like": lambda sentences: [f"It looks like {_lower(one)}" for one in sentences],
    "hedge: possibly a list": _behind(f"There is possibly {FREQUENT}."),
    "hedge: or": _behind("It could be a dog or a cat or a man or a car."),
    "list: frequent things": _behind(f"There is {FREQUENT}."),
    "list: frequent things of rooms": _behind(f"There is {CLASSES}."),
    "list: colours": _behind("Red, blue, green, yellow, black, white, brown and orange."),
    "pad: background": _behind("In the background there is something on top of it."),
    "pad: atmosphere": _behind("The overall atmosphere of the scene is calm and inviting, adding depth to the image."),
    "pad: composition": _behind("The image is well composed, and the details are clearly visible."),
    "pad: nothing else": _behind("There are no other objects or people visible in the image."),
    "pad: a busy scene": _behind("Several people and trees can be seen in the background of the scene."),
    "second: a photo": _behind("It is a photo."),
    "second: a man": _behind("There is a man."),
    "second: it is there": _behind("It is there."),
    "second: a beautiful day": _behind("It is a beautiful day."),
    "second: a red shirt": _behind("He is wearing a red shirt."),
    "second: trees": _behind("There are trees in the background."),
    "second: a table": _behind("On the table is a cup."),
    "second: one word": _behind("Yes."),
    "second: a full stop": _behind("."),
    "second: the first words again": lambda sentences: [*sentences, f"{' '.join(sentences[0].split()[:3])}."],
    "halves: at the middle": lambda sentences: _halves(sentences, "$^"),
    "halves: at a preposition": lambda sentences: _halves(sentences, "with|on|in|at|near|next|of|holding|sitting"),
    "ending: on top of it": _ends("on top of it"),
    "ending: in the background": _ends("in the background"),
    "ending: a man and a table": _ends("with a man and a table"),
}
"""How each attack makes a description of its sentences."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items")
    parser.add_argument("--most", type=int, default=200, help="descriptions")
    parser.add_argument("--sentences", type=int, default=2, help="sentences that they have at least")
    options = parser.parse_args()
    given = read_items(options.items).items
    items = [item for item in given if len(_sentences(item.candidate)) >= options.sentences][: options.most]
    facts = FactCache(load_pipeline())
    metric = Detail.of(Resources(lambda: facts, evidence=False))

    def scores(texts: Sequence[str]) -> dict[str, Sequence[float | None]]:
        corpus: Sequence[Item] = [replace(item, candidate=text) for item, text in zip(items, texts, strict=True)]
        return {score.name: score.each for score in metric.total(metric.collect(Corpus(tuple(corpus))))}

    honest = scores([item.candidate for item in items])
    print(f"attack, {len(items)} descriptions", *(f"{name}: mean gain\trises" for name in honest), sep="\t")
    for name, attack in ATTACKS.items():
        after = scores([" ".join(attack(_sentences(item.candidate))) for item in items])
        cells = []
        for score, before in honest.items():
            gains = [(new or 0.0) - (old or 0.0) for new, old in zip(after[score], before, strict=True)]
            cells.append(f"{fmean(gains):+.4f}\t{100 * fmean(gain > 0.001 for gain in gains):.1f} %")
        print(name, *cells, sep="\t", flush=True)


if __name__ == "__main__":
    main()
