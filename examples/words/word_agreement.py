"""How far people agree on nouns, adjectives and verbs, and how precise a system is at people's recall.

    python examples/words/word_agreement.py captions.json [--system results.json] [--words 1000] [--show 25]

``captions.json`` are COCO annotations, ``results.json`` COCO results (several captions of an image are fine). Words are
those of the bundled pipeline's tags.

The model: an object is in an image with probability q. A person uses its word with probability p if it is there, and
never otherwise; people do so independently. Human recall is p, and human precision with k references is
pk / (pk + (1 - p)^k). Source: Chen et al. 2015, "Microsoft COCO Captions: Data Collection and Evaluation Server", 4.2.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from spicegraph_parser import load_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CLASSES = {"NN": "noun", "JJ": "adjective", "VB": "verb"}
"""The word classes, by how their Penn Treebank tags begin."""

Point = tuple[float | None, float | None]
"""Recall and precision; ``None`` where nobody could be right."""


def words_of(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the nouns, adjectives and verbs of each text, in lower case, with their classes."""
    distinct = list(dict.fromkeys(texts))
    return {
        text: {
            form.lower(): CLASSES[tag[:2]]
            for sentence in caption.sentences
            for form, tag in zip(sentence.forms, sentence.tags, strict=True)
            if tag[:2] in CLASSES and form.isalpha()
        }
        for text, caption in zip(distinct, load_pipeline().parse(distinct), strict=True)
    }


def fit(counts: Sequence[int]) -> tuple[float, float] | None:
    """Return the p and q under which the counts are most likely; ``None`` if nobody uses the word.

    Args:
        counts: how many images have the word in 0, 1 ... n of their n captions.

    Given that somebody uses the word, the count is a binomial without its zero: p is where its mean is the observed
    one, and q makes up for images in which nobody used the word. Where that would take q above 1, or where no word
    stands twice for an image, the maximum lies at q = 1.
    """
    people, images, seen = len(counts) - 1, sum(counts), sum(counts[1:])
    if not seen:
        return None
    uses = sum(times * count for times, count in enumerate(counts))
    if uses >= people * seen:
        return 1.0, seen / images
    low, high = 0.0, 1.0
    while high - low > 1e-14 and uses > seen:  # the mean people * p / (1 - (1 - p)^people) grows with p
        middle = (low + high) / 2
        mean = people * middle / -math.expm1(people * math.log1p(-middle)) if 0 < middle < 1 else 1.0
        low, high = (middle, high) if mean < uses / seen else (low, middle)
    if high < 1:
        q = seen / images / -math.expm1(people * math.log1p(-high))
        if q <= 1:
            return high, q
    return uses / (people * images), 1.0


def model_point(p: float, references: int) -> Point:
    """Return the model's recall and precision with so many references."""
    return p, p * references / (p * references + (1 - p) ** references) if p else None


def human_point(counts: Sequence[int], references: int) -> Point:
    """Return what people showed: the mean over every caption of an image against every choice of others."""
    people, rows = len(counts) - 1, list(enumerate(counts))
    right = sum(n * references * t * (t - 1) / (people * (people - 1)) for t, n in rows)
    used = sum(n * references * t / people for t, n in rows)
    wrong = sum(n * t / people * math.comb(people - t, references) / math.comb(people - 1, references) for t, n in rows)
    return right / used if used else None, right / (right + wrong) if right + wrong else None


def precision_at_recall(shares: Sequence[float], counts: Sequence[int], people: int, recall: float) -> float | None:
    """Return a system's precision for a word where it has found as much of it as the recall says.

    Args:
        shares: for each image, the share of the system's captions with the word.
        counts: for each image, how many people's captions have it.
        people: how many captions an image has; n - 1 of them are the references.
        recall: in [0, 1].

    Of images with equal shares, as large a random part is taken as the recall needs.
    """
    references = people - 1
    gains = [references * count / people for count in counts]
    costs = [math.comb(people - count, references) / math.comb(people, references) for count in counts]
    wanted, gained, paid = recall * sum(gains), 0.0, 0.0
    groups: dict[float, tuple[float, float]] = {}
    for share, gain, cost in zip(shares, gains, costs, strict=True):
        before = groups.get(share, (0.0, 0.0))
        groups[share] = before[0] + gain, before[1] + cost
    for share in sorted(groups, reverse=True):
        gain, cost = groups[share]
        if gained + gain >= wanted * (1 - 1e-12) and gain > 0:
            paid += cost * (wanted - gained) / gain
            break
        gained, paid = gained + gain, paid + cost
    return wanted / (wanted + paid) if wanted > 0 else None


def grouped(rows: Iterable[Mapping[str, str | int]]) -> dict[str | int, list[str]]:
    """Return the captions of each image."""
    captions: dict[str | int, list[str]] = {}
    for row in rows:
        captions.setdefault(row["image_id"], []).append(str(row["caption"]))
    return captions


def written(*values: float | str | None) -> str:
    """Return a line of a table."""
    cells = ["-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value) for value in values]
    return f"{cells[0]:<16}{cells[1]:<12}" + "".join(f"{cell:>12}" for cell in cells[2:])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--system", type=Path)
    parser.add_argument("--words", type=int, default=1000, help="how many of the most frequent words are counted")
    parser.add_argument("--show", type=int, default=25, help="how many words are printed")
    options = parser.parse_args(arguments)
    images = grouped(json.loads(options.captions.read_text())["annotations"])
    system = grouped(json.loads(options.system.read_text())) if options.system else {}
    people = min(map(len, images.values()))  # of images with more captions, the first are used
    tagged = words_of(text for side in (images, system) for texts in side.values() for text in texts)
    kinds: dict[str, Counter[str]] = {}
    for texts in images.values():
        for text in texts[:people]:
            for word, kind in tagged[text].items():
                kinds.setdefault(word, Counter())[kind] += 1
    print(written("word", "class", "p", "q", "recall", "precision", "model", *(["at recall"] if system else [])))
    ordered = sorted(kinds, key=lambda word: (-kinds[word].total(), word))[: options.words]
    totals: dict[str, list[tuple[float | None, ...]]] = {}
    for place, word in enumerate(ordered):
        kind = kinds[word].most_common(1)[0][0]
        uses = [sum(word in tagged[text] for text in texts[:people]) for texts in images.values()]
        histogram = [uses.count(times) for times in range(people + 1)]
        p, q = fit(histogram) or (0.0, 0.0)
        recall, precision = human_point(histogram, people - 1)
        values: tuple[float | None, ...] = p, q, recall, precision, model_point(p, people - 1)[1]
        if system:
            shares = [sum(word in tagged[text] for text in system[name]) / len(system[name]) for name in images]
            values = *values, precision_at_recall(shares, uses, people, recall or 0.0)
        totals.setdefault(kind, []).append(values)
        if place < options.show:
            print(written(word, kind, *values))
    for kind, rows in totals.items():
        known = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
        print(written(f"mean of {len(rows)}", kind, *(sum(c) / len(c) if c else None for c in known)))


if __name__ == "__main__":
    main()
