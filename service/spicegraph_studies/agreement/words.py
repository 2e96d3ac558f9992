"""Human agreement on words: who else uses the word that one person uses, word by word and by class, and systems beside.

The model: an object is in an image with probability q. A person uses its word with probability p if it is in the
image, and never otherwise; people do so independently. Then the number of people out of n who use the word is 0
with probability 1 - q, and binomial with p otherwise.

Source: Chen et al. 2015, "Microsoft COCO Captions: Data Collection and Evaluation Server", section 4.2.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.readers.checks import shown
from spicegraph_studies.agreement.coefficients import resamples
from spicegraph_studies.agreement.tagging import WORD_CLASSES, Tagged, held_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.agreement.coefficients import Vector

_FEWEST = 2
_GRID = 8193

Counts = np.ndarray[tuple[int, int], np.dtype[np.int16]]


class GridPoint(NamedTuple):
    """Human recall and precision, in [0, 1]; ``None`` where nobody could be right."""

    recall: float | None
    precision: float | None


class Fit(NamedTuple):
    """The most likely p and q, both in [0, 1]."""

    p: float
    q: float


def expected_point(p: float, references: int) -> GridPoint:
    """Return the model's human recall and precision for so many reference captions.

    Recall is p; precision is pk / (pk + (1 - p)^k). Images where the word is right weigh as much as reference
    captions that hold it, others 1. For p = 0 precision is undefined.

    Example:
        >>> expected_point(0.5, 4).precision  # 2 / (2 + 1/16)
        0.9696969696969697
    """
    right = p * references
    wrong = (1 - p) ** references
    return GridPoint(p, right / (right + wrong) if p else None)


def observed_point(counts: Sequence[float], references: int) -> GridPoint:
    """Return the human recall and precision that people showed.

    Each caption of an image in turn is the prediction, held against every choice of ``references`` others; what
    comes out is the exact mean of all of these.

    Example:
        >>> observed_point([90, 5, 5], 1)  # 5 images with one of two captions, 5 with both
        GridPoint(recall=0.6666666666666666, precision=0.6666666666666666)
    """
    people = len(counts) - 1
    used = range(people + 1)
    right = sum(h * references * t * (t - 1) / (people * (people - 1)) for t, h in zip(used, counts, strict=True))
    said = sum(h * references * t / people for t, h in zip(used, counts, strict=True))
    wrong = sum(
        h * t / people * math.comb(people - t, references) / math.comb(people - 1, references)
        for t, h in zip(used, counts, strict=True)
    )
    return GridPoint(right / said if said else None, right / (right + wrong) if right + wrong else None)


def fit(counts: Sequence[float]) -> Fit | None:
    """Return the p and q under which the counts are most likely; ``None`` if the word is never used.

    Given that somebody uses the word, the count is a binomial without its zero; p is where that distribution's
    mean is the observed one, and q makes up for images in which nobody used it. Where that would take q above 1,
    or where nobody ever repeats a word, the maximum lies at q = 1.

    Example:
        >>> fit([0, 0, 10])
        Fit(p=1.0, q=1.0)
    """
    people = len(counts) - 1
    images, seen = float(sum(counts)), float(sum(counts[1:]))
    if not seen:
        return None
    uses = float(sum(t * h for t, h in enumerate(counts)))
    mean = uses / seen
    if mean >= people:
        return Fit(1.0, seen / images)
    if mean > 1:
        p = optimize.brentq(lambda p: people * p / _seen_share(p, people) - mean, 1e-12, 1.0, xtol=1e-14)
        q = seen / images / _seen_share(p, people)
        if q <= 1:
            return Fit(float(p), float(q))
    return Fit(uses / (people * images), 1.0)


def _seen_share(p: float, people: int) -> float:
    """Return the probability that at least one person names an object that is there."""
    return -math.expm1(people * math.log1p(-p)) if p < 1 else 1.0


def truncated_probability(means: Vector, people: int) -> Vector:
    """Return p for many means of counts without zeros, to four digits: for resamples."""
    grid = np.linspace(0.0, 1.0, _GRID)[1:]
    of_grid = people * grid / (1 - (1 - grid) ** people)
    probabilities: Vector = np.interp(means, of_grid, grid)
    return probabilities


Integers = np.ndarray[tuple[int], np.dtype[np.int16]]


def weights_of(counts: Integers, people: int, references: int) -> tuple[Vector, Vector]:
    """Return what saying the word gains and costs for each image, over every choice of reference captions.

    A right word gains the number of reference captions that hold it; a wrong one costs 1.
    """
    gains = np.array([references * t / people for t in range(people + 1)])
    costs = np.array([math.comb(people - t, references) / math.comb(people, references) for t in range(people + 1)])
    return gains[counts], costs[counts]


def operating_point(said: Vector, gains: Vector, costs: Vector) -> GridPoint:
    """Return recall and precision of a system that says the word for an image, or does not."""
    right, wrong, there = float(said @ gains), float(said @ costs), float(gains.sum())
    return GridPoint(right / there if there else None, right / (right + wrong) if right + wrong else None)


def precision_at_recall(scores: Vector, gains: Vector, costs: Vector, recall: float) -> float | None:
    """Return the precision where a system that ranks images by a word's score reaches a recall.

    Images with equal scores are taken in random order: of a group, as large a part as the recall needs, and its
    expected gains and costs. So a system that says a word or does not has a value, too: if its own recall is
    higher, a random part of what it says; if it is lower, all of it and a random part of all other images.
    """
    wanted = recall * float(gains.sum())
    if wanted <= 0:
        return None
    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.inf))
    gained = np.cumsum(np.add.reduceat(gains[order], starts))
    paid = np.cumsum(np.add.reduceat(costs[order], starts))
    group = min(int(np.searchsorted(gained, wanted * (1 - 1e-12))), len(gained) - 1)
    before = (float(gained[group - 1]), float(paid[group - 1])) if group else (0.0, 0.0)
    part = (wanted - before[0]) / (float(gained[group]) - before[0])
    cost = before[1] + part * (float(paid[group]) - before[1])
    return wanted / (wanted + cost)


@dataclass(frozen=True, slots=True)
class WordTable:
    """Images by words: how many of the image's ``people`` captions hold the word.

    ``classes`` has the words, the most frequent first, each with the class that it has most often. ``left_out`` counts
    images that have fewer captions; of those with more, the first are used.
    """

    classes: Mapping[str, str]
    images: tuple[ItemId, ...]
    people: int
    counts: Counts
    left_out: int

    def histogram(self, word: int) -> list[int]:
        """Return how many images have the word at a place of the vocabulary in 0, 1 ... captions."""
        return [int(count) for count in np.bincount(self.counts[:, word], minlength=self.people + 1)]


def count_words(
    images: Mapping[ItemId, Sequence[frozenset[Tagged]]], *, people: int | None = None, words: int = 1000
) -> WordTable:
    """Count the most frequent words of a set of captioned images."""
    fewest = min((len(captions) for captions in images.values()), default=0)
    used = fewest if people is None else people
    if used < _FEWEST:
        raise InputError(
            f"agreement needs at least {_FEWEST} captions an image: "
            + (f"got {used}" if people is not None else f"some image has {used}; say how many with --people")
        )
    kept = {image: captions[:used] for image, captions in images.items() if len(captions) >= used}
    if not kept:
        raise InputError(f"no image has {counted(used, 'caption')}")
    vocabulary = _vocabulary((caption for captions in kept.values() for caption in captions), words)
    place = {word: index for index, word in enumerate(vocabulary)}
    counts: Counts = np.zeros((len(kept), len(place)), dtype=np.int16)
    for row, captions in enumerate(kept.values()):
        for caption in captions:
            for word in held_words(caption):
                if word in place:
                    counts[row, place[word]] += 1
    return WordTable(vocabulary, tuple(kept), used, counts, len(images) - len(kept))


def _vocabulary(captions: Iterable[frozenset[Tagged]], size: int) -> dict[str, str]:
    """Return the most frequent words, each with the class that it has most often."""
    if size < 1:
        raise InputError(f"words: at least 1 is needed, got {size}")
    kinds: dict[str, Counter[str]] = {}
    for caption in captions:
        for word, kind in caption:
            kinds.setdefault(word, Counter())[kind] += 1
    if not kinds:
        raise InputError("the captions contain no noun, adjective or verb")
    ordered = sorted(kinds, key=lambda word: (-kinds[word].total(), word))
    return {word: max(WORD_CLASSES, key=kinds[word].__getitem__) for word in ordered[:size]}


ALL = "all"
"""The class that holds every word."""


@dataclass(frozen=True, slots=True)
class WordAgreement:
    """One word: how often t of n people use it, the model's p and q, and human recall and precision.

    ``counts[t]`` images have it in t captions. ``human`` and ``model`` are points with n - 1 references.
    """

    word: str
    kind: str
    counts: tuple[int, ...]
    p: float
    q: float
    human: GridPoint
    model: GridPoint


@dataclass(frozen=True, slots=True)
class ClassAgreement:
    """The words of a class together.

    ``p`` and ``q`` are fitted to the counts of all its words as one, with 95 % bootstrap intervals over images.
    ``human`` and ``model`` hold, for 1, 2 ... n - 1 references, the mean recall and precision over the words, and
    the model's with each word's own p.
    """

    kind: str
    words: int
    counts: tuple[int, ...]
    p: float
    p_interval: tuple[float | None, float | None]
    q: float
    q_interval: tuple[float | None, float | None]
    human: tuple[GridPoint, ...]
    model: tuple[GridPoint, ...]


@dataclass(frozen=True, slots=True)
class SystemWords:
    """A system's use of words.

    By word: its own recall and precision, and its precision at human recall (``None``: no two people ever agree).
    By class, the means over those words for which both the system and people have a precision: ``at_human_recall``
    against ``human_precision``.
    """

    system: str
    words: Mapping[str, tuple[GridPoint, float | None]]
    at_human_recall: Mapping[str, float | None]
    human_precision: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class WordStudy:
    """What :func:`study_words` finds."""

    people: int
    images: int
    left_out: int
    words: tuple[WordAgreement, ...]
    classes: tuple[ClassAgreement, ...]
    systems: tuple[SystemWords, ...]
    signature: Mapping[str, Json]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values."""
        return {
            "signature": self.signature,
            "people": self.people,
            "images": self.images,
            "left_out": self.left_out,
            "classes": {
                word_class.kind: {
                    "words": word_class.words,
                    "counts": word_class.counts,
                    "p": word_class.p,
                    "p_interval": word_class.p_interval,
                    "q": word_class.q,
                    "q_interval": word_class.q_interval,
                    "by_references": [
                        {"references": k, "human": human._asdict(), "model": model._asdict()}
                        for k, (human, model) in enumerate(
                            zip(word_class.human, word_class.model, strict=True), start=1
                        )
                    ],
                }
                for word_class in self.classes
            },
            "words": {
                word.word: {**asdict(word), "human": word.human._asdict(), "model": word.model._asdict()}
                for word in self.words
            },
            "systems": {
                system.system: {
                    "precision_at_human_recall": system.at_human_recall,
                    "human_precision": system.human_precision,
                    "words": {
                        word: {**point._asdict(), "precision_at_human_recall": precision}
                        for word, (point, precision) in system.words.items()
                    },
                }
                for system in self.systems
            },
        }


def study_words(
    table: WordTable,
    *,
    systems: Mapping[str, Mapping[ItemId, Mapping[str, float]]] | None = None,
    signature: Mapping[str, Json] | None = None,
    resampling: Resampling | None = None,
) -> WordStudy:
    """Fit the model to every word and class, and hold systems against people."""
    resampling = resampling or Resampling()
    words = tuple(_word(table, index, word) for index, word in enumerate(table.classes))
    kinds = [kind for kind in WORD_CLASSES if kind in table.classes.values()]
    members = {kind: [i for i, word in enumerate(words) if word.kind == kind] for kind in kinds}
    members[ALL] = list(range(len(words)))
    return WordStudy(
        table.people,
        len(table.images),
        table.left_out,
        words,
        tuple(_class(table, words, kind, places, resampling) for kind, places in members.items()),
        tuple(_system(name, scores, table, words, members) for name, scores in (systems or {}).items()),
        {
            **(signature or {}),
            "images": len(table.images),
            "people": table.people,
            "words": len(words),
            "resampling": resampling.signature(),
        },
    )


def _word(table: WordTable, index: int, word: str) -> WordAgreement:
    counts = table.histogram(index)
    fitted = fit(counts)
    assert fitted is not None  # noqa: S101 (a word of the vocabulary stands in some caption)
    references = table.people - 1
    return WordAgreement(
        word,
        table.classes[word],
        tuple(counts),
        fitted.p,
        fitted.q,
        observed_point(counts, references),
        expected_point(fitted.p, references),
    )


def _class(
    table: WordTable, words: Sequence[WordAgreement], kind: str, places: Sequence[int], resampling: Resampling
) -> ClassAgreement:
    members = [words[place] for place in places]
    counts = np.sum([word.counts for word in members], axis=0)
    fitted = fit(counts.tolist())
    assert fitted is not None  # noqa: S101 (as above)
    p_draws, q_draws = _draws(table, places, resampling)
    references = range(1, table.people)
    return ClassAgreement(
        kind,
        len(members),
        tuple(counts.tolist()),
        fitted.p,
        percentile_bounds(p_draws),
        fitted.q,
        percentile_bounds(q_draws),
        tuple(_mean_point([observed_point(word.counts, k) for word in members]) for k in references),
        tuple(_mean_point([expected_point(word.p, k) for word in members]) for k in references),
    )


def _mean_point(points: Sequence[GridPoint]) -> GridPoint:
    return GridPoint(_mean([point.recall for point in points]), _mean([point.precision for point in points]))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _draws(table: WordTable, places: Sequence[int], resampling: Resampling) -> tuple[Vector, Vector]:
    """Return p and q of a class for resamples of the images."""
    counts = table.counts[:, places]
    seen, uses = (counts > 0).sum(axis=1).astype(np.float64), counts.sum(axis=1).astype(np.float64)
    images, columns = len(table.images), np.stack([seen, uses], axis=1)
    sums = np.concatenate([drawn @ columns for drawn in resamples(resampling, images)])
    used = sums[sums[:, 0] > 0]
    p = truncated_probability(used[:, 1] / used[:, 0], table.people)
    pairs = images * len(places)
    q = used[:, 0] / pairs / (1 - (1 - p) ** table.people)
    everywhere = q > 1
    p = np.where(everywhere, used[:, 1] / (table.people * pairs), p)
    return p, np.minimum(q, 1.0)


def _system(
    name: str,
    scores: Mapping[ItemId, Mapping[str, float]],
    table: WordTable,
    words: Sequence[WordAgreement],
    members: Mapping[str, Sequence[int]],
) -> SystemWords:
    missing = [image for image in table.images if image not in scores]
    if missing:
        raise InputError(f"{name} says nothing about {len(missing)} of the images, such as {shown(missing[0])}")
    place = {word: index for index, word in enumerate(table.classes)}
    said = np.zeros((len(table.images), len(place)))
    for row, image in enumerate(table.images):
        for text, score in scores[image].items():
            if text in place:
                said[row, place[text]] = score
    rows: dict[str, tuple[GridPoint, float | None]] = {}
    for index, word in enumerate(words):
        column = said[:, index]
        gains, costs = weights_of(table.counts[:, index], table.people, table.people - 1)
        recall = word.human.recall
        precision = precision_at_recall(column, gains, costs, recall) if recall is not None else None
        rows[word.word] = (operating_point((column > 0).astype(np.float64), gains, costs), precision)
    known = {kind: [words[i] for i in places if rows[words[i].word][1] is not None] for kind, places in members.items()}
    return SystemWords(
        name,
        rows,
        {kind: _mean([rows[word.word][1] for word in known_words]) for kind, known_words in known.items()},
        {kind: _mean([word.human.precision for word in known_words]) for kind, known_words in known.items()},
    )
