"""CAPTURE: objects, attributes and relations of long captions, matched exactly, then as synonyms, then by likeness.

Source: Dong et al., "Benchmarking and Improving Detail Image Caption" (arXiv 2405.19092, 2024), with the weights of the
published program. ``docs/numbers.md`` says what differs from it: what reads captions, and what knows words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain
from operator import eq
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from spicegraph_graded.spice_g.vectors import Vectors, vectors_of
from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.pipelines import SCENE, load_pipeline
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.loose import without_loose
from spicegraph_scenes import SCENE_WEIGHTS
from spicegraph_scenes.parser import load_network
from spicegraph_scenes.words import name_noun
from spicegraph_scorer.core.categories import ALL, CategoryScore
from spicegraph_scorer.core.facts import FactsInOrder, FactSource, captions_of
from spicegraph_scorer.core.metric import Metric, Needs, Score

if TYPE_CHECKING:
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.core.tokens import Corpus

WEIGHTS: Final = {"Object": 0.5, "Attribute": 0.5, "Relation": 0.2}  # of the F1 of each, before division by their sum

EXACT, SYNONYM, SOFT = "exact", "synonym", "soft"
NAME: Final = "CAPTURE"

Elements = Mapping[str, Sequence[tuple[str, ...]]]
"""What a caption says, by kind: the words of each element, subject, relation and object in this order."""


@dataclass(frozen=True, slots=True)
class CaptureMatch:
    """The words of an element and of its partner on the other side."""

    kind: str  # ``Object``, ``Attribute`` or ``Relation``
    words: tuple[str, ...]
    stage: str | None = None  # ``EXACT``, ``SYNONYM`` or ``SOFT``; none: the other side has nothing left of the kind
    partner: tuple[str, ...] | None = None
    similarity: float = 0.0  # what the element counts, in [0, 1]


@dataclass(frozen=True, slots=True)
class CaptureExplanation:
    """For each reference: the matches of the candidate's elements, and those of the reference's."""

    references: tuple[tuple[tuple[CaptureMatch, ...], tuple[CaptureMatch, ...]], ...]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values, with the fields of the parts as keys."""
        sides = [
            {"candidate": list(map(asdict, candidate)), "reference": list(map(asdict, reference))}
            for candidate, reference in self.references
        ]
        return {"references": sides}


@dataclass(frozen=True, slots=True)
class CaptureStatistic:
    """One item's scores by kind, ``All`` first, each the mean over its references; its matches, if they were kept."""

    scores: Mapping[str, CategoryScore]
    evidence: CaptureExplanation | None = None


@dataclass(frozen=True, slots=True)
class Capture(Metric[CaptureStatistic]):
    """CAPTURE (Dong et al. 2024), with its formula and weights, on the scene graphs of the pipeline.

    Elements of each kind are matched one to one: first equal ones, then synonyms, each with the first that is left.
    What is left counts as the similarity to the nearest of the rest, in [0, 1]. Precision is what the candidate's
    elements count over their number, recall the same of the reference's; a share of nothing is 0. ``CAPTURE`` is
    (.5 F1 of objects + .5 F1 of attributes + .2 F1 of relations) / 1.2, the mean over an item's references. Of ``All``,
    precision and recall are weighed like that, too.
    """

    english: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(facts=True, data=frozenset({"vectors"}))
    explains: ClassVar[bool] = True

    source: FactSource
    vectors: Vectors
    evidence: bool = True

    name = "capture"

    @classmethod
    def of(cls, given: Resources) -> Capture:
        """Return the metric ``capture``."""
        return cls(given.facts(), vectors_of(given.data.vectors), evidence=given.evidence)

    def signature(self) -> dict[str, str]:
        """Return the signature: pipeline, lexicon, vectors, stop words and weights."""
        return {
            "variant": "CAPTURE, published formula",
            "pipeline": self.source.signature,
            "lexicon": load_lexicon().signature,
            "vectors": self.vectors.signature,
            "stop words": load_pipeline(SCENE).signature,
            "weights": " ".join(f"{kind}={weight:g}" for kind, weight in WEIGHTS.items()),
        }

    def collect(self, corpus: Corpus) -> list[CaptureStatistic]:
        """Return the scores of each item."""
        facts = FactsInOrder(self.source, captions_of(corpus.items))
        statistics = []
        for item in corpus.items:
            references = [elements_of(facts.take(text)) for text in item.references]
            statistics.append(self.compare(elements_of(facts.take(item.candidate)), references))
        return statistics

    def compare(self, candidate: Elements, references: Sequence[Elements]) -> CaptureStatistic:
        """Return the scores of a candidate's elements against those of each reference."""
        matched: list[tuple[tuple[CaptureMatch, ...], tuple[CaptureMatch, ...]]] = []
        for reference in references:
            by_kind = [self._matched_kind(kind, candidate[kind], reference[kind]) for kind in WEIGHTS]
            left, right = (tuple(chain.from_iterable(side)) for side in zip(*by_kind, strict=True))
            matched.append((left, right))
        each = [_scores(candidate_matches, reference_matches) for candidate_matches, reference_matches in matched]
        scores = {
            kind: CategoryScore(
                *[
                    sum(values) / len(each)
                    for values in zip(*[of_reference[kind] for of_reference in each], strict=True)
                ]
            )
            for kind in (ALL, *WEIGHTS)
        }
        return CaptureStatistic(scores, CaptureExplanation(tuple(matched)) if self.evidence else None)

    def _matched_kind(
        self, kind: str, candidate: Sequence[tuple[str, ...]], reference: Sequence[tuple[str, ...]]
    ) -> tuple[list[CaptureMatch], list[CaptureMatch]]:
        left, right = ([CaptureMatch(kind, words) for words in side] for side in (candidate, reference))
        # Of an attribute, the object that has it is not compared, as in the published program.
        cut = int(kind == "Attribute")
        said, wanted = ([words[cut:] for words in side] for side in (candidate, reference))
        for stage, is_match in ((EXACT, eq), (SYNONYM, _is_synonym)):
            free = _unmatched(right)
            for i in _unmatched(left):
                partner = next((j for j in free if is_match(said[i], wanted[j])), None)
                if partner is not None:
                    free.remove(partner)
                    left[i] = replace(left[i], stage=stage, partner=reference[partner], similarity=1.0)
                    right[partner] = replace(right[partner], stage=stage, partner=candidate[i], similarity=1.0)
        self._match_rest(left, right, cut)
        return left, right

    def _match_rest(self, left: list[CaptureMatch], right: list[CaptureMatch], cut: int) -> None:
        """Match the rest of both sides by likeness, without the first ``cut`` words."""
        rest, others = _unmatched(left), _unmatched(right)
        if rest and others:
            said, wanted = [left[i].words for i in rest], [right[j].words for j in others]
            near = self._similar([words[cut:] for words in said], [words[cut:] for words in wanted])
            _match_softly(left, rest, near, wanted)
            _match_softly(right, others, near.T, said)

    def _similar(
        self, candidate: Sequence[tuple[str, ...]], reference: Sequence[tuple[str, ...]]
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Return (mine, theirs): the cosine of the vectors of both phrases, at least 0."""
        phrases = [(" ".join(words),) for words in (*candidate, *reference)]
        rows = self.vectors.rows(phrases)
        vectors = rows.vectors[[rows.places[phrase] for phrase in phrases]].astype(np.float64)
        return np.clip(vectors[: len(candidate)] @ vectors[len(candidate) :].T, 0.0, 1.0)

    def total(self, statistics: Sequence[CaptureStatistic]) -> tuple[Score, ...]:
        """Return ``CAPTURE``, and the F1 of each kind (``CAPTURE_Object`` ...)."""
        return tuple(
            Score.mean(NAME if kind == ALL else f"{NAME}_{kind}", [s.scores[kind].f for s in statistics])
            for kind in (ALL, *WEIGHTS)
        )

    def compact(self, statistic: CaptureStatistic) -> CaptureStatistic:
        """Return the scores alone."""
        return statistic if statistic.evidence is None else replace(statistic, evidence=None)

    @staticmethod
    def by_category(statistic: CaptureStatistic) -> Mapping[str, CategoryScore]:
        """Return an item's precision, recall and F1 by kind, ``All`` first."""
        return statistic.scores

    def explain(self, statistic: CaptureStatistic, *, changes: int = 3) -> CaptureExplanation | None:
        """Return the matches of both sides' elements."""
        del changes
        return statistic.evidence


def _unmatched(matches: Sequence[CaptureMatch]) -> list[int]:
    return [number for number, match in enumerate(matches) if match.stage is None]


def _match_softly(
    matches: list[CaptureMatch],
    rest: Sequence[int],
    near: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    others: Sequence[tuple[str, ...]],
) -> None:
    """Give each element that is left its nearest of the other side's; ``near`` has the similarity of each to each."""
    for row, place in enumerate(rest):
        best = int(near[row].argmax())
        matches[place] = replace(matches[place], stage=SOFT, partner=others[best], similarity=float(near[row, best]))


def elements_of(facts: Iterable[Fact]) -> dict[str, list[tuple[str, ...]]]:
    """Return the elements that a caption's facts state, each once, nouns in the singular, stop words left out."""
    by_kind: dict[str, dict[tuple[str, ...], None]] = {kind: {} for kind in WEIGHTS}
    abstract = load_network(SCENE_WEIGHTS).names.abstract
    for fact in without_loose(tuple(facts)):
        subject, *rest = fact.words
        subject = _singular(subject)
        if not rest:
            if name_noun(subject) not in abstract:
                by_kind["Object"][(subject,)] = None
        elif len(rest) == 1:
            by_kind["Attribute"][(subject, rest[0])] = None
        else:
            by_kind["Relation"][(subject, rest[1], _singular(rest[0]))] = None
    return {kind: list(elements) for kind, elements in by_kind.items()}


@lru_cache(maxsize=50_000)
def _singular(name: str) -> str:
    before, space, last = name.rpartition(" ")
    return f"{before}{space}{plural_lemma(last)}"


def _is_synonym(candidate: tuple[str, ...], reference: tuple[str, ...]) -> bool:
    concept = load_lexicon().concept
    return all(
        word in other_word or other_word in word or concept(word).shares(concept(other_word))
        for word, other_word in zip(candidate, reference, strict=True)
    )


def _scores(
    candidate: Sequence[CaptureMatch], reference: Sequence[CaptureMatch]
) -> dict[str, tuple[float, float, float]]:
    """Return F1, precision and recall by kind, ``All`` first."""
    scores: dict[str, tuple[float, float, float]] = {}
    for kind in WEIGHTS:
        counted = ([match.similarity for match in side if match.kind == kind] for side in (candidate, reference))
        precision, recall = (sum(values) / len(values) if values else 0.0 for values in counted)
        total = precision + recall
        scores[kind] = 2 * precision * recall / total if total else 0.0, precision, recall
    columns = zip(*[scores[kind] for kind in WEIGHTS], strict=True)
    whole = [sum(map(float.__mul__, WEIGHTS.values(), column)) / sum(WEIGHTS.values()) for column in columns]
    return {ALL: (whole[0], whole[1], whole[2]), **scores}
