"""Verdicts: which words and tuples of a candidate its references support, contradict, or do not mention."""
# A word is flagged where the probability that it is wrong (a logistic model of :func:`_features`) is above a threshold
# of split-conformal calibration (Vovk, Gammerman and Shafer 2005; Papadopoulos et al. 2002).

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter, mul
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spicegraph_graded.spice_g.facts import NO, Values, content_words, deny, values_of
from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.spice.loose import SCENE_RULES
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.wordnet import Synset, load_wordnet
from spicegraph_scorer.core.credit import Span, Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_graded.spice_g.matching import GradedMatch
    from spicegraph_graded.spice_g.vectors import Vectors
    from spicegraph_parser.spice.graph import SceneGraph
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.results import Json

SUPPORTED: Final = "supported"
CONTRADICTED: Final = "contradicted"
UNMENTIONED: Final = "unmentioned"

DEFAULT_RATE: Final = 0.1  # Share of right words that may be flagged.

Vector = npt.NDArray[np.float64]

_COVERED: Final = 0.55  # likeness from which a word of the references counts as said
_SENSES: Final = 2
_STEPS: Final = 6  # from a word up to a broader one that it is a kind of
_LARGEST_IDF: Final = 7.0
_UNKNOWN_IDF: Final = 5.0

_PERSONS: Final = {"people": "person"}  # a word whose frequent noun senses are groups
_PRONOUNS: Final = word_set(
    """
    i you he she it we they me him her us them this that these those who which what each itself himself herself
    themselves its myself yourself
    """
)
_OBJECT_SLOTS: Final = (0, 1, 1, 2)  # by the length of a fact
PLACES_AND_PARTS: Final = word_set(
    """
    front back side top bottom part end edge corner middle center centre background foreground area surface scene
    picture image photo view way group kind type piece other something someone one thing couple lot number bunch color
    colour pair
    """
)  # Words of places in a picture, of parts, and of things that they do not name.

_WEIGHTS: Final = {
    "best": (-2.301, -2.281),  # likeness of the most similar word of the references
    "mean": (0.646, 0.644),  # mean over the references of the likeness of their most similar word
    "exact": (-2.262, -2.246),  # share of the references that have the word itself, or a form of it
    "rarity": (0.757, 0.752),  # idf / 7
    "scene": (-0.700, -0.793),  # cosine of the word and the sum of all words of the references
    "object": (0.998, 1.230),
    "relation": (0.389, 0.594),
    "number": (1.667, 1.806),
    "broader": (-2.400, -2.438),  # share of the references that have a kind of it, where it is an object
    "place": (-1.643, -1.697),  # a word of places and parts ("front", "side", "group")
    "first": (0.889, 0.896),  # the first object of the caption
    "missed": (-0.251, -0.230),  # share of the references that have an object of which the caption says nothing
    "rival": (9.571, 9.460),  # the same, over 1 + the number of steps in WordNet from the word to that object
    "others": (1.496, 1.556),  # mean of "best" of the caption's other words
    "denied": (-0.026, 0.142),  # the references have another colour or count
    "unknown": (-2.026, -1.964),  # neither the table nor WordNet has the word
    "modifier": (0.766, -0.238),  # in front of the last word of an object ("tower branch")
}  # The features of a word, with their coefficients for both graph styles: what ``training/verdicts.py`` printed.
FEATURES: Final = tuple(_WEIGHTS)
_OF_SPICE, _OF_SCENES = zip(*_WEIGHTS.values(), strict=True)


@dataclass(frozen=True, slots=True)
class WordVerdict:
    """The verdict on a content word of a candidate."""

    word: str  # as the facts have it (its lemma), "no hat" where it is denied
    spans: tuple[Span, ...]  # character offsets in the candidate; empty: the text has no form of it
    verdict: str  # supported, contradicted (the references have something else in its place) or unmentioned
    probability: float  # that it is wrong, in [0, 1]
    support: float  # likeness of the most similar word of the references, in [0, 1]
    partner: str | None  # that word; None where nothing is like it
    instead: str | None  # of a contradicted word, what the references have


@dataclass(frozen=True, slots=True)
class TupleVerdict:
    """The verdict on a tuple: its worst word's, or contradicted by its object's other value."""

    words: tuple[str, ...]
    verdict: str
    probability: float


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of a candidate's words, in the order of the text, and tuples; flagged above ``threshold``."""

    words: tuple[WordVerdict, ...]
    tuples: tuple[TupleVerdict, ...]
    threshold: float
    thresholds: Mapping[float, float]  # by the share of right words that are above them, for its graph style

    @property
    def probability(self) -> float:
        """Probability of the word that is most likely wrong: a score for whole captions; 0 without any word."""
        return max((verdict.probability for verdict in self.words), default=0.0)

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values, with the fields of the parts as keys."""
        return {
            "words": [asdict(verdict) for verdict in self.words],
            "tuples": [asdict(verdict) for verdict in self.tuples],
            "threshold": self.threshold,
            "thresholds": {f"{rate:g}": limit for rate, limit in self.thresholds.items()},
        }


def judge(match: GradedMatch, text: str, vectors: Vectors, *, threshold: float | None = None) -> Verdicts:
    """Return the verdicts of a candidate; without ``threshold`` the calibration flags a tenth of right words."""
    seen = observe(match, text, vectors)
    thresholds = CALIBRATIONS[seen[0].style if seen else "spice"].thresholds
    limit = thresholds[DEFAULT_RATE] if threshold is None else threshold
    words = [_word_verdict(observed, limit) for observed in seen]
    by_word = {verdict.word: verdict for verdict in words}
    tuples = []
    for scene_tuple, denied in zip(match.candidate.tuples, match.candidate.contradicted.tolist(), strict=True):
        strings = chain.from_iterable(label.split("/") for label in scene_tuple.strings)
        parts = chain.from_iterable((string, *string.split()) for string in strings)
        known = [by_word[word] for word in parts if word in by_word]
        worst = max(known, key=attrgetter("probability"), default=_NOTHING_SAID)
        probability, verdict = worst.probability, worst.verdict
        if denied:
            probability, verdict = max(probability, limit), CONTRADICTED
        tuples.append(TupleVerdict(scene_tuple.strings, verdict, probability))
    return Verdicts(tuple(words), tuple(tuples), limit, thresholds)


_NOTHING_SAID: Final = WordVerdict("", (), SUPPORTED, 0.0, 0.0, None, None)


def _word_verdict(observed: Observed, limit: float) -> WordVerdict:
    instead = observed.instead if observed.probability > limit else None
    failed = UNMENTIONED if instead is None else CONTRADICTED
    return WordVerdict(
        observed.word,
        observed.spans,
        SUPPORTED if observed.probability <= limit else failed,
        observed.probability,
        observed.features[0],
        observed.partner,
        instead,
    )


class Observed(NamedTuple):
    """A content word of a candidate, and how the references stand to it."""

    word: str
    spans: tuple[Span, ...]
    features: tuple[float, ...]  # in the order of FEATURES
    partner: str | None
    instead: str | None
    style: str = "spice"  # of the candidate's graph: spice or scene

    @property
    def probability(self) -> float:
        """The probability that the word is wrong."""
        fitted = CALIBRATIONS[self.style]
        weighed = sum(map(mul, fitted.weights, self.features))
        return 1 / (1 + math.exp(-(fitted.intercept + weighed)))


class _ReferenceWords(NamedTuple):
    """The words of the references, which are of objects, in how many each stands (rows: words), and their vectors."""

    words: list[str]
    objects: frozenset[str]
    standing: npt.NDArray[np.bool_]
    vectors: Vector
    idf: Vector


def observe(match: GradedMatch, text: str, vectors: Vectors) -> list[Observed]:
    """Return the content words of a candidate, in the order of the text, and how the references stand to them."""
    told, referred = told_by_captions(match.candidate.graph), told_by_captions(match.reference.graph)
    candidate_words = sorted(content_words(list(chain.from_iterable(told))) - _PRONOUNS)
    if not candidate_words:
        return []
    references = [content_words(facts) - _PRONOUNS for facts in referred]
    reference_words = sorted(frozenset[str]().union(*references))
    rows = vectors.rows([(word,) for word in (*candidate_words, *reference_words)])
    at = [[rows.places[word,] for word in words] for words in (candidate_words, reference_words)]
    standing = np.array([[word in words for words in references] for word in reference_words], np.bool_)
    said = _ReferenceWords(
        reference_words,
        _objects(referred),
        standing.reshape(len(reference_words), len(references)),
        rows.vectors[at[1]].astype(np.float64),
        np.array(rows.idf)[at[1]],
    )
    alike = np.clip(rows.vectors[at[0]].astype(np.float64) @ said.vectors.T, 0, 1)
    alike[np.array(at[0])[:, None] == np.array(at[1], np.intp)[None, :]] = 1
    _equate_forms(alike, candidate_words, reference_words)
    candidate = candidate_words, rows.vectors[at[0]].astype(np.float64), [rows.idf[row] for row in at[0]]
    return _observed(text, told, candidate, said, alike)


@lru_cache(maxsize=50_000)
def _bases(word: str) -> frozenset[str]:
    """Return a word and its base forms as a noun and as a verb."""
    return frozenset({word} if word.startswith(NO) else {word, plural_lemma(word), verb_lemma(word)})


def _equate_forms(alike: Vector, words: Sequence[str], reference_words: Sequence[str]) -> None:
    """Make forms of one word ("stand", "standing") alike."""
    places: defaultdict[str, list[int]] = defaultdict(list)  # of the references' words, by base form
    for index, word in enumerate(reference_words):
        for base in _bases(word):
            places[base].append(index)
    for index, word in enumerate(words):
        alike[index, [place for base in _bases(word) for place in places.get(base, ())]] = 1


def _things(words: Iterable[str], kinds: Mapping[str, str]) -> list[str]:
    return [word for word in words if kinds[word] == "object"]


def _main(things: Iterable[str]) -> str | None:
    return next((word for word in things if word not in PLACES_AND_PARTS), None)


def _style(told: Iterable[Sequence[Fact]]) -> str:
    return "scene" if any(fact.rule in SCENE_RULES for fact in chain.from_iterable(told)) else "spice"


def _observed(
    text: str,
    told: list[list[Fact]],
    candidate: tuple[list[str], Vector, list[float]],
    said: _ReferenceWords,
    alike: Vector,
) -> list[Observed]:
    """Observe the words of a candidate, which has their vectors and idf beside them."""
    words, word_vectors, idf = candidate
    places, order = _places(text, words)
    kinds, modifiers = _kinds(told), _modifiers(told)
    things = _things([words[index] for index in order], kinds)
    main, style = _main(things), _style(told)
    denied = _denied(words, said, alike)
    best = alike.max(axis=1, initial=0)
    uncovered = _uncovered(said, alike, things)
    scene = _scene(said)
    kinds_within = _kinds_within(things, said)
    missed = max(map(itemgetter(1), uncovered), default=0.0)
    exact = alike >= 1
    mean, whole = _over_references(said, alike) if said.words else (best, best)
    total = float(best.sum())
    observed = []
    for index in order:
        word, known = words[index], bool(word_vectors[index].any())
        rival, instead = _rival(word, uncovered)
        near = said.words[int(alike[index].argmax())] if best[index] > 0 else None
        other = denied[index] or instead
        weight = idf[index] if known else _UNKNOWN_IDF
        features = (
            float(best[index]),
            float(mean[index]),
            float(whole[index]),
            weight / _LARGEST_IDF,
            float(word_vectors[index] @ scene),
            float(kinds[word] == "object"),
            float(kinds[word] == "relation"),
            float("count" in dict(values_of((word,)))),
            _share_with(said, [place for place in kinds_within.get(word, ()) if not exact[index, place]]),
            float(word in PLACES_AND_PARTS),
            float(word == main),
            missed,
            rival,
            float((total - best[index]) / max(1, len(words) - 1)),
            float(denied[index] is not None),
            float(not known),
            float(word in modifiers),
        )
        observed.append(Observed(word, places[word], features, near, None if best[index] >= 1 else other, style))
    return observed


def _scene(said: _ReferenceWords) -> Vector:
    """Return the direction of all words of the references, the rarer and the more often said the stronger."""
    scene: Vector = (said.idf * said.standing.sum(axis=1)) @ said.vectors
    return scene / max(float(np.linalg.norm(scene)), 1e-9)


def _rival(word: str, uncovered: Sequence[tuple[str, float]]) -> tuple[float, str | None]:
    """Return how strongly a missed object of the references stands against the word, and which one."""
    return max(((share * _nearness(word, name), name) for name, share in uncovered), default=(0.0, None))


def _share_with(said: _ReferenceWords, places: list[int]) -> float:
    """Return the share of the references that have any of these words."""
    return float(said.standing[places].any(axis=0).mean()) if places else 0.0


def _places(text: str, words: Sequence[str]) -> tuple[dict[str, tuple[Span, ...]], list[int]]:
    """Return where words stand in a text, and their numbers in its order; words that it lacks come last."""
    text_words = Words(text)
    places = {
        word: tuple([text_words.spans[number] for number in text_words.of_form(word.removeprefix(NO))])
        for word in words
    }
    return places, sorted(
        range(len(words)), key=lambda index: (places[words[index]][:1] or ((len(text), 0),), words[index])
    )


def _over_references(said: _ReferenceWords, alike: Vector) -> tuple[Vector, Vector]:
    """Return how alike each word is to the nearest of each reference, and how many references have it, as means."""
    nearest = [alike[:, stands].max(axis=1, initial=0) for stands in said.standing.T]
    return np.column_stack(nearest).mean(axis=1), ((alike >= 1) @ said.standing).mean(axis=1)


def _denied(words: Sequence[str], said: _ReferenceWords, alike: Vector) -> list[str | None]:
    """Return the reference word that contradicts each word; set contradicting values' likeness to 0."""
    rivals = [(place, name, values_of((name,))) for place, name in enumerate(said.words) if values_of((name,))]
    return [_judge_values(word, words, rivals, alike[index]) for index, word in enumerate(words)]


def _kinds_within(things: Sequence[str], said: _ReferenceWords) -> dict[str, set[int]]:
    """Return, by the objects of a candidate, the places of the references' words that are kinds of them."""
    kinds_of: defaultdict[Synset, list[int]] = defaultdict(list)
    senses = frozenset(sense for word in things for sense in _senses(word))
    for place, name in enumerate(said.words):
        for sense in senses & _broader(name):
            kinds_of[sense].append(place)
    return {word: {place for sense in _senses(word) for place in kinds_of.get(sense, ())} for word in things}


def object_words(match: GradedMatch) -> frozenset[str]:
    """Return the words of a candidate's objects, those in front of them included: "golf" and "ball" of a golf ball."""
    return _objects(told_by_captions(match.candidate.graph))


def _objects(told: Sequence[Iterable[Fact]]) -> frozenset[str]:
    kinds = _kinds(told)
    return frozenset(word for word, kind in kinds.items() if kind == "object").union(_modifiers(told))


def told_by_captions(graph: SceneGraph | None) -> list[list[Fact]]:
    """Return the facts of each caption of a graph; a ValueError if it was merged without its evidence."""
    if graph is None:
        raise ValueError("the graph was merged without its evidence")
    told: defaultdict[int, dict[Fact, None]] = defaultdict(dict)
    for part in (graph.objects, graph.attributes, graph.relations):
        for node in part:
            for caption, fact in node.evidence:
                told[caption][fact] = None
    return [list(told[caption]) for caption in sorted(told)]


def _kinds(told: Iterable[Iterable[Fact]]) -> dict[str, str]:
    """Return whether each content word is an object, an attribute or a relation; an object where it is several."""
    kinds: defaultdict[str, str] = defaultdict(lambda: "attribute")
    for facts in told:
        for fact in facts:
            slots = ("object", "attribute") if len(fact.words) < 3 else ("object", "object", "relation")
            for string, kind in zip(fact.words, slots, strict=False):
                for word in string.split() if not string.startswith(NO) else (string,):
                    if kinds[word] != "object":
                        kinds[word] = kind
    return kinds


def _modifiers(told: Iterable[Iterable[Fact]]) -> set[str]:
    """Return the words that stand in front of the last word of an object."""
    modifiers = set()
    for facts in told:
        for words, rule, _ in facts:
            if rule == "compound" and len(words) == 2:
                modifiers.add(words[1])
            for string in words[: _OBJECT_SLOTS[len(words)]]:
                if not string.startswith(NO):
                    modifiers.update(string.split()[:-1])
    return modifiers


def _judge_values(
    word: str, candidate_words: Sequence[str], rivals: Sequence[tuple[int, str, Values]], likeness: Vector
) -> str | None:
    """Set contradicting values' likeness to 0; return the reference word that contradicts ``word``, if any."""
    values = values_of((word,))
    if not values:
        return None
    families = {family for family, _ in values}
    candidate_values = frozenset(value for value in values_of(candidate_words) if value[0] in families)
    denying = None
    for index, other, others in rivals:
        if deny(values, others):
            likeness[index] = 0
            denying = denying or other
        elif not values.isdisjoint(others):
            likeness[index] = 1
    return denying if deny(candidate_values, Values().union(*[others for *_, others in rivals])) else None


def _uncovered(said: _ReferenceWords, alike: Vector, objects: Sequence[str]) -> list[tuple[str, float]]:
    """Return the objects of several references of which the caption says nothing, with the share that is missed."""
    # An object of the caption covers broader words (who says "cake" says "food"), but "person" is not "people".
    persons = [_PERSONS.get(person, person) for person in objects]
    counts = said.standing.sum(axis=1)
    covered = alike.max(axis=0, initial=0)
    return [
        (word, float(counts[index] / said.standing.shape[1] * (1 - covered[index])))
        for index, word in enumerate(said.words)
        if counts[index] > 1 and covered[index] < _COVERED and word in said.objects
        if word not in PLACES_AND_PARTS and _above(word) and not _is_kind_of_any(word, persons)
    ]


def _is_kind_of_any(word: str, things: Sequence[str]) -> bool:
    other = _PERSONS.get(word, word)
    return any(thing != other and not _broader(thing).isdisjoint(_senses(word)) for thing in things)


@lru_cache(maxsize=20_000)
def _senses(word: str) -> tuple[Synset, ...]:
    """Return the two most frequent senses of a noun."""
    return load_wordnet().senses(_PERSONS.get(word, word), "n")[:_SENSES]


@lru_cache(maxsize=20_000)
def _above(word: str) -> Mapping[Synset, int]:
    steps: dict[Synset, int] = {}
    for sense in _senses(word):
        for above, count in load_wordnet().ancestors(sense).items():
            steps[above] = min(count, steps.get(above, count))
    return steps


@lru_cache(maxsize=20_000)
def _broader(word: str) -> frozenset[Synset]:
    """Return a noun's hypernyms within a few steps, itself included."""
    return frozenset(above for above, steps in _above(word).items() if steps <= _STEPS)


@lru_cache(maxsize=200_000)
def _nearness(word: str, other: str) -> float:
    """Return 1 / (1 + steps) of the shortest path between two nouns, 0 without one."""
    word_steps, other_steps = _above(word), _above(other)
    steps = min(
        (word_steps[above] + other_steps[above] for above in word_steps.keys() & other_steps.keys()), default=None
    )
    return 0.0 if not steps else 1 / (1 + steps)


class Calibration(NamedTuple):
    """A fitted model of verdicts."""

    intercept: float  # of the coefficients
    weights: tuple[float, ...]  # the coefficients of FEATURES
    thresholds: Mapping[float, float]  # by share of the calibration's right words, the probability that these are above


CALIBRATIONS: Final[Mapping[str, Calibration]] = {
    "spice": Calibration(-3.201, _OF_SPICE, {0.05: 0.3087, 0.1: 0.2147, 0.2: 0.122}),
    "scene": Calibration(-3.416, _OF_SCENES, {0.05: 0.3134, 0.1: 0.2106, 0.2: 0.1133}),
}  # By graph style.
