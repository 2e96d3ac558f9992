"""Claims: what a description states and what its references state, each with how it stands on the other side.

The claims of an item give back its scores: ``correctness`` is the mean ``value`` of the candidate's claims by
``weight``, ``coverage`` that of the references' claims.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.parse import normalise
from spicegraph_parser.rules import Fact
from spicegraph_parser.scenes.passages import sentence_spans
from spicegraph_scorer.metrics.graded.facts import content_words, values_of
from spicegraph_scorer.metrics.graded.verdicts import SUPPORTED, judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from spicegraph_scorer.core.credit import Span
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.metrics.graded.matching import GradedMatch
    from spicegraph_scorer.metrics.graded.meaning import Meaning
    from spicegraph_scorer.metrics.graded.vectors import Vectors

MISSING: Final = "missing"
"""The status of a claim of the references that the candidate does not make; others are those of verdicts."""
MEANING_SHARE: Final = 0.5
"""The share of a claim's value that the meaning of its sentence has; chosen by the rule of ``training/detail.md``."""
_SAID: Final = 0.55  # support from which a claim of the references counts as said


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact that one side states, and how it stands on the other side.

    Attributes:
        words: object; object and attribute; or subject, relation, object.
        spans: where its words stand in the candidate, as character offsets; empty for claims of the references.
        aspect: ``object``, ``attribute``, ``colour``, ``count``, ``action`` or ``place``.
        status: of the candidate's claims ``supported``, ``contradicted`` or ``unmentioned``; of the references'
            ``supported`` or ``missing``.
        probability: that it is wrong, or of a reference's claim 1 minus how far it is said; in [0, 1].
        weight: what it counts in its score, above 0.
        value: how much of it counts as holding or as said, in [0, 1].
        fact: the number of the tuple within the graph of its side.
        nearest: the words of the most similar claim of the other side; ``None`` where nothing is like it.
    """

    words: tuple[str, ...]
    spans: tuple[Span, ...]
    aspect: str
    status: str
    probability: float
    weight: float
    value: float
    fact: int
    nearest: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a candidate, and those of its references."""

    candidate: tuple[Claim, ...]
    references: tuple[Claim, ...]

    @property
    def correctness(self) -> float:
        """How much of what the candidate says holds, in [0, 1]; 0 where it says nothing."""
        return _mean(self.candidate)

    @property
    def coverage(self) -> float:
        """How much of what the references say the candidate says, in [0, 1]; 0 where they say nothing."""
        return _mean(self.references)

    def to_dict(self) -> Mapping[str, Json]:
        """Return JSON values, with the fields of the parts as keys."""
        return {
            "candidate": [asdict(claim) for claim in self.candidate],
            "references": [asdict(claim) for claim in self.references],
        }


def sentences_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences of texts in an order of their own, so that neither order nor splitting matters.

    Example:
        >>> sentences_of(["A dog runs. A cat sleeps."]) == sentences_of(["A cat sleeps.", "A dog runs."])
        True
    """
    return tuple(sorted(text[start:end] for text in texts for start, end in sentence_spans(text)))


def claims_of(match: GradedMatch, vectors: Vectors, meaning: Meaning) -> Claims:
    """Return the claims of both sides of a comparison.

    A candidate's claim holds as far as its worst word is right by its verdict, not at all where the references
    contradict it; the other half of its value is the cosine of its sentence with the references. A claim of the
    references is said as far as one of the candidate's supports it; the other half is the cosine of the whole
    candidate with the references. Sentences that are said again count once.

    Args:
        match: of a metric with evidence.
        vectors: those that the match was made with.
        meaning: the table of meanings.
    """
    text, references = match.texts.candidate, sentences_of(match.texts.references)
    verdicts = judge(match, text, vectors)
    spans_of = {verdict.word: verdict.spans[:1] for verdict in verdicts.words}
    candidate_tuples, reference_tuples = (
        [scene_tuple.strings for scene_tuple in side.tuples] for side in (match.candidate, match.reference)
    )
    bounds = sentence_spans(text)
    spoken = [text[start:end] for start, end in bounds]
    units = meaning.of_texts([*references, *spoken, " ".join(sorted({normalise(said, 0) for said in spoken}))])
    middle = _unit(units[: len(references)].sum(axis=0))
    likeness = (units[len(references) :] @ middle).clip(0, 1).tolist()
    whole = likeness.pop()
    order = match.texts.order
    candidate = []
    for number, (verdict, weight, partner, contradicted) in enumerate(
        zip(
            verdicts.tuples,
            match.candidate.weights.tolist(),
            match.precision.partner.tolist(),
            match.precision.contradicted.tolist(),
            strict=True,
        )
    ):
        spans = tuple(sorted({span for word in _words(verdict.words) for span in spans_of.get(word, ())}))
        sentence = next((n for n, (_, end) in enumerate(bounds) if spans and spans[-1][0] < end), 0)
        holds = (1 - MEANING_SHARE) * (1 - verdict.probability) + MEANING_SHARE * likeness[sentence]
        candidate.append(
            Claim(
                verdict.words,
                spans,
                aspect_of(verdict.words),
                verdict.verdict,
                verdict.probability,
                weight,
                0.0 if contradicted else order * holds,
                number,
                reference_tuples[partner] if partner >= 0 else None,
            )
        )
    said = [
        Claim(
            words,
            (),
            aspect_of(words),
            SUPPORTED if support >= _SAID else MISSING,
            1 - support,
            weight,
            order * ((1 - MEANING_SHARE) * support + MEANING_SHARE * whole),
            number,
            candidate_tuples[partner] if partner >= 0 else None,
        )
        for number, (words, support, weight, partner) in enumerate(
            zip(
                reference_tuples,
                match.recall.support.astype(float).clip(0, 1).tolist(),
                match.reference.weights.tolist(),
                match.recall.partner.tolist(),
                strict=True,
            )
        )
    ]
    return Claims(tuple(candidate), tuple(said))


def aspect_of(words: Sequence[str]) -> str:
    """Return what a claim is about.

    Example:
        >>> aspect_of(["dog"]), aspect_of(["dog", "red"]), aspect_of(["dog", "on", "bed"])
        ('object', 'colour', 'place')
    """
    if len(words) == 1:
        return "object"
    label = words[1].split("/")[0]
    if len(words) == 2:
        return next((family for family, _ in values_of((label,))), "attribute")
    return "action" if content_words([Fact((label,), "", ())]) else "place"


def _words(labels: Sequence[str]) -> set[str]:
    return {word for label in labels for string in label.split("/") for word in (string, *string.split())}


def _unit(vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
    size = float((vector @ vector) ** 0.5)
    return vector / size if size else vector


def _mean(claims: Sequence[Claim]) -> float:
    total = sum(claim.weight for claim in claims)
    return sum(claim.weight * claim.value for claim in claims) / total if total else 0.0
