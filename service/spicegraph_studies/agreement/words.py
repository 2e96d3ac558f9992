"""Human agreement on words: who else uses the word that one person uses, word by word and by class, and systems beside.

Source: Chen et al. 2015, "Microsoft COCO Captions: Data Collection and Evaluation Server", section 4.2.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.readers.checks import shown
from spicegraph_studies.agreement.coefficients import resamples
from spicegraph_studies.agreement.word_model import (
    GridPoint,
    expected_point,
    fit,
    observed_point,
    operating_point,
    precision_at_recall,
    truncated_probability,
    weights_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.parse import Caption
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.agreement.coefficients import Vector

WORD_CLASSES: Mapping[str, tuple[str, ...]] = {
    "noun": ("NN", "NNS", "NNP", "NNPS"),
    "adjective": ("JJ", "JJR", "JJS"),
    "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"),
}
"""The word classes and their Penn Treebank tags."""

_CLASS_OF = {tag: name for name, tags in WORD_CLASSES.items() for tag in tags}
_FEWEST = 2

Counts = np.ndarray[tuple[int, int], np.dtype[np.int16]]


class Tagged(NamedTuple):
    """A word in lower case, and its class."""

    word: str
    kind: str


def tagged_words(captions: Iterable[Caption], *, lemmas: bool = False) -> Iterator[frozenset[Tagged]]:
    """Yield the nouns, adjectives and verbs of each parsed caption, once each."""
    for caption in captions:
        yield frozenset(
            Tagged(word, _CLASS_OF[tag])
            for sentence in caption.sentences
            for form, tag, lemma in zip(sentence.forms, sentence.tags, sentence.lemmas, strict=True)
            if tag in _CLASS_OF and (word := lemma if lemmas else form.lower()).isalpha()
        )


@dataclass(frozen=True, slots=True)
class StudiedWords:
    """The words that are looked at, each with the class that it has most often, most frequent words first."""

    classes: Mapping[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """The words."""
        return tuple(self.classes)


@dataclass(frozen=True, slots=True)
class WordTable:
    """Images by words: how many of the image's ``people`` captions hold the word.

    ``left_out`` counts images that have fewer captions; of those with more, the first are used.
    """

    vocabulary: StudiedWords
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
    place = {word: index for index, word in enumerate(vocabulary.words)}
    counts: Counts = np.zeros((len(kept), len(place)), dtype=np.int16)
    for row, captions in enumerate(kept.values()):
        for caption in captions:
            for word in held_words(caption):
                if word in place:
                    counts[row, place[word]] += 1
    return WordTable(vocabulary, tuple(kept), used, counts, len(images) - len(kept))


def held_words(caption: frozenset[Tagged]) -> frozenset[str]:
    """Return the words of a caption, whatever their class there."""
    return frozenset(word for word, _ in caption)


def _vocabulary(captions: Iterable[frozenset[Tagged]], size: int) -> StudiedWords:
    if size < 1:
        raise InputError(f"words: at least 1 is needed, got {size}")
    kinds: dict[str, Counter[str]] = {}
    for caption in captions:
        for word, kind in caption:
            kinds.setdefault(word, Counter())[kind] += 1
    if not kinds:
        raise InputError("the captions contain no noun, adjective or verb")
    ordered = sorted(kinds, key=lambda word: (-kinds[word].total(), word))
    return StudiedWords({word: _most_common(kinds[word]) for word in islice(ordered, size)})


def _most_common(counts: Counter[str]) -> str:
    return max(WORD_CLASSES, key=lambda kind: counts[kind])


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
            "words": {word.word: _word_dict(word) for word in self.words},
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


def _word_dict(word: WordAgreement) -> dict[str, Json]:
    return {**asdict(word), "human": word.human._asdict(), "model": word.model._asdict()}


def study_words(
    table: WordTable,
    *,
    systems: Mapping[str, Mapping[ItemId, Mapping[str, float]]] | None = None,
    signature: Mapping[str, Json] | None = None,
    resampling: Resampling | None = None,
) -> WordStudy:
    """Fit the model to every word and class, and hold systems against people."""
    resampling = resampling or Resampling()
    words = tuple(_word(table, index) for index in range(len(table.vocabulary.words)))
    kinds = [kind for kind in WORD_CLASSES if kind in table.vocabulary.classes.values()]
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


def _word(table: WordTable, index: int) -> WordAgreement:
    counts = table.histogram(index)
    fitted = fit(counts)
    assert fitted is not None  # noqa: S101 (a word of the vocabulary stands in some caption)
    word = table.vocabulary.words[index]
    references = table.people - 1
    return WordAgreement(
        word,
        table.vocabulary.classes[word],
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
    said = _said(scores, table)
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


def _said(
    scores: Mapping[ItemId, Mapping[str, float]], table: WordTable
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    place = {word: index for index, word in enumerate(table.vocabulary.words)}
    said = np.zeros((len(table.images), len(place)))
    for row, image in enumerate(table.images):
        for word, score in scores[image].items():
            if word in place:
                said[row, place[word]] = score
    return said
