"""Claims: what a description states and what its references state, each with how it stands on the other side.

The claims of an item give back its scores: ``correctness`` is the mean ``value`` of the candidate's claims by
``weight``, ``coverage`` that of the references' claims.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_graded.spice_g.facts import NO, content_words, values_of
from spicegraph_graded.spice_g.texts import Meaning, cosines
from spicegraph_graded.spice_g.verdicts import PLACES_AND_PARTS, SUPPORTED, judge
from spicegraph_parser.spice.loose import PLURAL
from spicegraph_parser.spice.parse import normalise, tables, word_set
from spicegraph_parser.spice.rules import Fact
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scenes.passages import read_text
from spicegraph_scenes.words import PICTURES
from spicegraph_scorer.core.credit import Span, Words
from spicegraph_scorer.metrics.spice.categories import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_graded.spice_g.matching import GradedMatch, Side
    from spicegraph_graded.spice_g.vectors import Vectors
    from spicegraph_graded.spice_g.verdicts import Verdicts, WordVerdict
    from spicegraph_scorer.core.results import Json

MISSING: Final = "missing"  # the status of a claim of the references that the candidate does not make
UNCHECKED: Final = "unchecked"  # the status of a claim that nobody can check against a picture, which weighs nothing

# By the rule of ``training/detail.md``:
MEANING_SHARE: Final = 0.8  # what the meaning of the text around a claim counts in its value at most
WHOLE_SHARE: Final = 0.7  # what the meaning of the whole candidate counts in the value of a reference's claim
SUPPORT_EXPONENT: Final = 0.3  # how much the support of a claim as a whole counts beside its words
UNKNOWN_VALUE: Final = math.e  # how many times the odds are that a colour or count is wrong that no reference has

_SAID: Final = 0.55  # support from which a claim of the references counts as said
_AROUND: Final = 10  # words on either side of a claim that are read for its meaning
_HALF_AT: Final = 4  # content words among them at which their meaning has half of its share
_LEAST: Final = 0.02  # probability of being wrong that a word has at least, and 1 minus it at most
_RELATED_WRONGLY: Final = 0.1  # probability that a relation of two right things is wrong
_LEAST_SUPPORT: Final = 0.05
_SEEN_IDF: Final = 6.72  # of words that captions of one image in 830 have
_SENSES: Final = 2
_SHORTEST: Final = 1e-6
WORDS: Final = {name: word_set(text) for name, text in tables(__package__).items()}
VAGUE: Final = PICTURES | PLACES_AND_PARTS | WORDS["vague"] | {PLURAL}
"""Words of places, parts and pictures, and of nothing certain: no claim is checked by them."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact that one side states, and its status on the other side.

    Attributes:
        words: object; object and attribute; or subject, relation, object.
        spans: where its words are in the candidate, as character offsets; empty for claims of the references.
        aspect: ``object``, ``attribute``, ``colour``, ``count``, ``size``, ``action`` or ``place``.
        status: of the candidate's claims ``supported``, ``contradicted`` or ``unmentioned``; of the references'
            ``supported`` or ``missing``; ``unchecked`` of either where a word is of nothing that can be seen.
        probability: that it is wrong, or of a reference's claim 1 minus how far it is said; in [0, 1].
        weight: what it counts in its score; 0 where it is unchecked.
        value: how much of it counts as holding or as said, in [0, 1].
        fact: the number of the tuple within the graph of its side.
        nearest: the words of the most similar claim of the other side; ``None`` where nothing is like it.
        doubt: the candidate's word in it that is most likely wrong; ``None`` where no word can be checked.
        instead: what the references have in place of that word; ``None`` where they have nothing like it.
        rules: the parser's rules that its tuple was made by.
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
    doubt: str | None = None
    instead: str | None = None
    rules: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a candidate, and those of its references."""

    candidate: tuple[Claim, ...]
    references: tuple[Claim, ...]

    @property
    def correctness(self) -> float:
        """The share of the candidate's claims that hold, in [0, 1]; 0 without checkable claims."""
        return _mean(self.candidate)

    @property
    def coverage(self) -> float:
        """The share of reference claims that the candidate makes, in [0, 1]; 0 without any."""
        return _mean(self.references)

    def to_dict(self) -> Mapping[str, Json]:
        """Return JSON values, with the fields of the parts as keys."""
        return {
            name: [{**asdict(claim), "rules": sorted(claim.rules)} for claim in claims]
            for name, claims in (("candidate", self.candidate), ("references", self.references))
        }


def claims_of(match: GradedMatch, vectors: Vectors, meaning: Meaning) -> Claims:
    """Return the claims of both sides of a comparison.

    A candidate's claim is right as far as the word that is most likely wrong by its verdict, times a power of the
    claim's support; wrong where the references contradict it. Colours and counts that no reference has are likelier
    wrong. The more is said around it, the more the mean of two cosines of that counts instead: with the references as a
    whole, and with the nearest of their sentences. A claim of the references is said as far as one of the candidate's
    supports it; the rest is the mean cosine of the references' sentences with the whole candidate. Claims with words of
    nothing that can be seen ("achievement", "suggest") are unchecked. Sentences that are said again count once.
    """
    text = match.texts.candidate
    # in an order of their own, so that neither the order of references nor their splitting matters
    references = tuple(
        sorted(each[start:end] for each in match.texts.references for start, end in sentence_spans(each))
    )
    verdicts = judge(match, text, vectors)
    likeness = _Likeness(meaning, text, references, [each.spans[0][0] for each in verdicts.words if each.spans])
    said = tuple(_said(match, verdicts, likeness, vectors))
    return Claims(said, tuple(_told(match, likeness, vectors)))


def _doubts(words: Sequence[WordVerdict]) -> dict[str, float]:
    """Return how likely each word is wrong: likelier than its verdict says where no reference can support it."""
    doubts = {}
    for word in words:
        probability = min(max(word.probability, _LEAST), 1 - _LEAST)
        is_unknown = word.support < _SAID and bool(values_of((word.word,)))
        odds = probability / (1 - probability) * (UNKNOWN_VALUE if is_unknown else 1.0)
        doubts[word.word] = odds / (1 + odds)
    return doubts


def _side(side: Side) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Yield the words of each tuple of a side, and the rules that it was made by."""
    for scene_tuple in side.tuples:
        yield scene_tuple.strings, frozenset({fact.rule for _, fact in scene_tuple.evidence})


def _said(match: GradedMatch, verdicts: Verdicts, likeness: _Likeness, vectors: Vectors) -> Iterator[Claim]:
    """Yield the claims of the candidate."""
    words, doubts = {verdict.word: verdict for verdict in verdicts.words}, _doubts(verdicts.words)
    reference_tuples, side = [strings for strings, _ in _side(match.reference)], match.candidate
    columns = (each.tolist() for each in (side.weights, side.support, side.partner, side.contradicted))
    rows = enumerate(zip(verdicts.tuples, _side(side), *columns, strict=True))
    for number, (verdict, (_, rules), weight, support, partner, contradicted) in rows:
        said = _verdicts_of(verdict.words, words)
        spans = tuple(sorted(set(chain.from_iterable(word.spans[:1] for word in said))))
        right = max(support, _LEAST_SUPPORT) ** SUPPORT_EXPONENT * (1 - _RELATED_WRONGLY * (len(verdict.words) > 2))
        doubt, worst, instead = _worst(said, doubts)
        right = 0.0 if contradicted else right * (1 - doubt)
        share, alike = likeness.around(spans)
        checked = is_checkable([word.word for word in said], vectors)
        status, counted = (verdict.verdict, weight) if checked else (UNCHECKED, 0.0)
        yield Claim(
            verdict.words,
            spans,
            aspect_of(verdict.words),
            status,
            1 - right,
            counted,
            0.0 if contradicted else match.texts.order * (right + share * (alike - right)),
            number,
            reference_tuples[partner] if partner >= 0 else None,
            worst,
            instead,
            rules,
        )


def _verdicts_of(labels: Iterable[str], words: Mapping[str, WordVerdict]) -> list[WordVerdict]:
    """Return the verdicts of the words that stand in the labels of a claim."""
    strings = set(chain.from_iterable(label.split("/") for label in labels))
    return [words[word] for word in sorted(strings.union(*map(str.split, strings))) if word in words]


def _worst(said: Iterable[WordVerdict], doubts: Mapping[str, float]) -> tuple[float, str | None, str | None]:
    """Return the worst word that is not vague: its doubt, itself, the references' word instead."""
    of_words = ((doubts[word.word], word.word, word.instead) for word in said if word.word not in VAGUE)
    return max(of_words, key=itemgetter(0), default=(0.0, None, None))


def _told(match: GradedMatch, likeness: _Likeness, vectors: Vectors) -> Iterator[Claim]:
    """Yield the claims of the references."""
    candidate_tuples, side = [strings for strings, _ in _side(match.candidate)], match.reference
    columns = (each.tolist() for each in (side.support.astype(float).clip(0, 1), side.weights, side.partner))
    for number, ((names, rules), support, weight, partner) in enumerate(zip(_side(side), *columns, strict=True)):
        checked = is_checkable([name.partition("/")[0] for name in names], vectors)
        status = SUPPORTED if support >= _SAID else MISSING
        yield Claim(
            names,
            (),
            aspect_of(names),
            status if checked else UNCHECKED,
            1 - support,
            weight if checked else 0.0,
            match.texts.order * (support + WHOLE_SHARE * (likeness.whole - support)),
            number,
            candidate_tuples[partner] if partner >= 0 else None,
            rules=rules,
        )


class _Likeness:
    """How alike a candidate and its references are: as a whole, and in the ten words on either side of each word."""

    # wherever sentences end, so that to join sentences or to split them changes nothing; what is said again is left out
    def __init__(self, meaning: Meaning, text: str, references: Sequence[str], at: Sequence[int]) -> None:
        seen: set[str] = set()
        spans: list[Span] = []
        for start, end in sentence_spans(text):
            said = normalise(text[start:end], 0)
            if said not in seen:
                seen.add(said)
                spans += [(start + first, start + last) for first, last in Words(text[start:end]).spans]
        starts = np.array([start for start, _ in spans], np.int64)
        told = meaning.of_texts(references)
        middle = told.sum(axis=0)
        vectors = meaning.vectors[[meaning.place(text[start:end].lower()) for start, end in spans]]
        # sums of the words before each word: those of any run of words are the difference of two of them
        sums = np.concatenate([np.zeros((1, vectors.shape[1])), vectors.cumsum(axis=0, dtype=np.float64)])
        self.whole = float(cosines(told, np.broadcast_to(sums[-1], told.shape)).mean()) if len(starts) else 0.0
        words = np.arange(len(starts))
        first, last = np.maximum(words - _AROUND, 0), np.minimum(words + _AROUND + 1, len(starts))
        near = sums[last] - sums[first]
        units = np.column_stack([told.T, middle / max(float(np.sqrt(middle @ middle)), _SHORTEST)])
        sizes = np.maximum(np.sqrt(np.einsum("ij,ij->i", near, near)), _SHORTEST)[:, None]
        cosines_of = (near @ units / sizes).clip(0, 1)
        alike = (cosines_of[:, -1] + cosines_of[:, :-1].max(axis=1, initial=0)) / 2
        ends = np.append(starts, len(text) + 1)[last]
        content = np.sort(np.array(at, np.int64))
        counts = np.searchsorted(content, ends) - np.searchsorted(content, starts[first])
        self._starts, self._alike = starts.tolist(), alike.tolist()
        self._shares = (MEANING_SHARE * counts / (counts + _HALF_AT)).tolist()

    def around(self, spans: Sequence[Span]) -> tuple[float, float]:
        """Return the likeness around a claim: its weight in the claim's value, then itself."""
        if not self._starts:
            return 0.0, 0.0
        place = spans[-1][0] if spans else 0
        word = max(0, bisect_right(self._starts, place) - 1)
        return self._shares[word], self._alike[word]


def is_checkable(words: Iterable[str], vectors: Vectors) -> bool:
    """Return whether words can be checked in a picture: things, or words frequent in captions."""
    named = [word for said in words for word in said.removeprefix(NO).replace("-", " ").split() if word not in VAGUE]
    rows = [None if is_thing(word) else vectors.places.get(vectors.unknown.canonical(word), -1) for word in named]
    return bool(named) and all(row is None or (row >= 0 and vectors.idf[row] <= _SEEN_IDF) for row in rows)


@lru_cache(maxsize=50_000)
def is_thing(word: str) -> bool:
    """Return whether a word names a physical thing, by its two most frequent senses as a noun."""
    wordnet = load_wordnet()
    thing = wordnet.find("physical_entity.n.01")
    return any(thing in wordnet.ancestors(sense) for sense in wordnet.senses(word, "n")[:_SENSES])


def aspect_of(words: Sequence[str]) -> str:
    """Return the aspect of a claim, one of those of :class:`Claim`."""
    if len(words) == 1:
        return "text" if words[0] in WORDS["writing"] else "object"
    label = words[1].split("/")[0]
    if len(words) == 2:
        return next((family for family, _ in values_of((label,))), "size" if label in SIZES else "attribute")
    if not WORDS["written"].isdisjoint(label.split()):
        return "text"
    if content_words([Fact((label,), "", ())]):
        return "action"
    return "relation" if label in WORDS["relations"] else "place"


def _mean(claims: Sequence[Claim]) -> float:
    total = sum(claim.weight for claim in claims)
    return sum(claim.weight * claim.value for claim in claims) / total if total else 0.0


@lru_cache(maxsize=1000)
def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the sentences of a text stand, as character offsets; the whole text where none has a place.

    Raises:
        LimitError: the text is longer than ``MAX_CAPTION_LENGTH``.

    >>> sentence_spans("A dog runs. It barks.")
    ((0, 11), (12, 21))
    """
    tokens = read_text(text, 0)
    if isinstance(tokens.spans, str):
        return ((0, len(text)),)
    spans, first = [], 0
    for length in tokens.lengths:
        placed = [span for span in tokens.spans[first : first + length] if span[0] >= 0]
        first += length
        if placed:
            spans.append((placed[0][0], placed[-1][1]))
    return tuple(spans) or ((0, len(text)),)
