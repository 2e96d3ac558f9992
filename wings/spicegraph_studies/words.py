"""How far people agree on nouns, adjectives and verbs, and how precise a system is at people's recall.

An object is in an image with probability q. A person uses its word with probability p if it is there, and never
otherwise; people do so independently. Human recall is p, and human precision with k references is
pk / (pk + (1 - p)^k). Source: Chen et al. 2015, "Microsoft COCO Captions: Data Collection and Evaluation Server", 4.2.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import InputError, counted

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId

CLASSES: Final = {"NN": "noun", "JJ": "adjective", "VB": "verb"}
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
    """Return people's recall and precision, over every caption and choice of its references."""
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


@dataclass(frozen=True, slots=True)
class WordAgreement:
    """A word's class, fitted p and q, and people's figures by number of references."""

    word: str
    kind: str  # noun, adjective or verb
    uses: int  # captions that have it
    p: float
    q: float
    recall: float | None  # of people; it is the same for each number of references
    precision: tuple[float | None, ...]  # of people, with 1, 2 ... references
    model: tuple[float | None, ...]  # the model's precision, with 1, 2 ... references
    system: float | None = None  # a system's precision at people's recall, with all references


@dataclass(frozen=True, slots=True)
class WordStudy:
    """The most frequent words, and of each class their means."""

    images: int
    people: int  # captions of an image
    words: tuple[WordAgreement, ...]
    pipeline: str

    @property
    def curve(self) -> tuple[tuple[int, float | None, float | None, float | None], ...]:
        """For each number of references, the means over all words: recall, precision, and the model's precision."""
        return tuple(
            (
                k,
                _mean([word.recall for word in self.words]),
                _mean([word.precision[k - 1] for word in self.words]),
                _mean([word.model[k - 1] for word in self.words]),
            )
            for k in range(1, self.people)
        )

    def means(self) -> dict[str, tuple[int, tuple[float | None, ...]]]:
        """Return how many words each class has, and the means of p, q, recall, precision, model's and system's."""
        found = {}
        for kind in CLASSES.values():
            words = [word for word in self.words if word.kind == kind]
            rows = [(w.p, w.q, w.recall, w.precision[-1], w.model[-1], w.system) for w in words]
            found[kind] = len(words), tuple(map(_mean, zip(*rows, strict=True)))
        return found

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        names = "references", "recall", "precision", "model_precision"
        curve = [dict(zip(names, point, strict=True)) for point in self.curve]
        words = [asdict(word) for word in self.words]
        return {"images": self.images, "captions": self.people, "curve": curve, "words": words}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _check_captions(
    captions: Mapping[ItemId, Sequence[str]], system: Mapping[ItemId, Sequence[str]] | None, wanted: int
) -> None:
    few = [image for image, texts in captions.items() if len(texts) < wanted]
    missing = [] if system is None else [image for image in captions if not system.get(image)]
    for images, what in ((few, f"with fewer than {wanted} captions"), (missing, "without a caption of the system")):
        if images or not captions:
            shown = ", ".join(f"{image!a}" for image in images[:5])
            raise InputError(f"{counted(len(images), 'image')} {what}: {shown}" if images else "there are no captions")


def _agreement(
    word: str, kinds: Counter[str], uses: Sequence[int], people: int, shares: Sequence[float]
) -> WordAgreement:
    """Return how people agree on a word, given its uses by image, and the shares of a system's captions with it."""
    histogram = [uses.count(times) for times in range(people + 1)]
    p, q = fit(histogram) or (0.0, 0.0)
    points = [human_point(histogram, k) for k in range(1, people)]
    recall = points[-1][0]
    at_recall = precision_at_recall(shares, uses, people, recall or 0.0) if shares else None
    models = tuple(model_point(p, k)[1] for k in range(1, people))
    precisions = tuple(precision for _, precision in points)
    return WordAgreement(word, kinds.most_common(1)[0][0], kinds.total(), p, q, recall, precisions, models, at_recall)


def _kinds(tagged: Iterable[Mapping[str, str]]) -> Mapping[str, Counter[str]]:
    """Return how often each word is of each kind."""
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for words in tagged:
        for word, kind in words.items():
            kinds[word][kind] += 1
    return kinds


def _share(word: str, captions: Sequence[str], tagged: Mapping[str, Container[str]]) -> float:
    return sum(word in tagged[text] for text in captions) / len(captions)


def find_word_agreement(
    captions: Mapping[ItemId, Sequence[str]],
    system: Mapping[ItemId, Sequence[str]] | None = None,
    *,
    first: int | None = None,
    words: int = 1000,
) -> WordStudy:
    """Measure how people agree on the most frequent words; words are those of the bundled pipeline's tags.

    Args:
        captions: people's captions of each image.
        system: a system's captions of the same images, one or several of each.
        first: only the first so many captions of an image; by default as many as every image has.
        words: how many words.

    Raises:
        InputError: an image has fewer than two captions, or fewer than ``first``, or none of the system.
    """
    _check_captions(captions, system, max(2, first or 0))
    people = first or min(map(len, captions.values()))
    by_image = {image: texts[:people] for image, texts in captions.items()}
    own: Mapping[ItemId, Sequence[str]] = system or {}
    tagged = words_of(chain.from_iterable(chain(by_image.values(), own.values())))
    kinds = _kinds(tagged[text] for text in chain.from_iterable(by_image.values()))
    ordered = sorted(kinds, key=lambda word: (-kinds[word].total(), word))[:words]
    found = []
    for word in ordered:
        uses = [sum(word in tagged[text] for text in texts) for texts in by_image.values()]
        shares = [_share(word, own[name], tagged) for name in by_image] if own else []
        found.append(_agreement(word, kinds[word], uses, people, shares))
    return WordStudy(len(by_image), people, tuple(found), load_pipeline().signature)
