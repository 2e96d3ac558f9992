"""Which words of a candidate earned or cost its SPICE-G.

The players are the candidate's tuples and its content words, each with the support that it has in the whole caption.

Recall is divided first. What of a reference tuple is found is the best that any of the candidate's tuples offers: the
maximum over players, whose Shapley value has a closed form (Littlechild and Owen 1973): the step from one offer to the
next better one is divided equally among those who offer at least that. So player i has the share R_i of recall R.

F1 = 2 P R / (P + R) is divided by the Aumann-Shapley value: the players grow together from nothing to their size, and
each gets what its growth adds. Precision P is an average: on the way it is constant, and what a player's growth does to
it, Q_i (below 0 where the player is less supported than the average), adds up to 0. Integrated, player i gets

    F1 R_i / R + 2 (ln(1 + R/P) - R / (P + R)) Q_i.

The alignment of the text is such a ratio too, of its own words, with the best reference held fixed. What the order of
the words costs is divided among the neighbours that seldom follow each other, by how seldom.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from spicegraph_graded.spice_g import matching, texts
from spicegraph_scorer.core.credit import Credit, CreditPart, Slots, Words
from spicegraph_scorer.metrics.spice.match import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from spicegraph_scorer.core.items import Item

    Vector = npt.NDArray[np.float64]
    Matrix = npt.NDArray[np.float64]


class Shares(NamedTuple):
    """Shares of a candidate's tuples, or words, in precision and recall; ``None``: no weight there."""

    precision: float | None
    recall: float | None
    growth: Vector  # what each one's growth does to precision; the sum is 0
    found: Vector  # each one's share of recall; the sum is recall


def shares_of(cells: matching.Cells, sides: matching.Sides, *, plain: bool = False) -> Iterator[Shares]:
    """Yield the shares of each comparison; ``plain``: where neither places nor contradictions and denials count."""
    precision, recall = cells.plain_supports() if plain else cells.supports(partners=False)
    offered = cells.plain if plain else cells.backward
    weights, reference = matching.precision_weights(sides, precision), sides.weights[recall.tuples]
    supported = weights * precision.support.astype(np.float64) ** matching.PRECISION_EXPONENT
    row = column = 0
    for height, width, base in zip(
        precision.counts.tolist(), recall.counts.tolist(), cells.bases.tolist(), strict=False
    ):
        candidate_weights, powers = weights[row : row + height], supported[row : row + height]
        reference_weights = reference[column : column + width]
        offers = offered[base : base + height * width].reshape(height, width).astype(np.float64)
        row, column = row + height, column + width
        total, sought = candidate_weights.sum(), reference_weights.sum()
        mean = powers.sum() / total if total else 0.0
        exponent = 1 / matching.PRECISION_EXPONENT
        growth = (
            exponent * mean ** (exponent - 1) * (powers - mean * candidate_weights) / total
            if total
            else np.zeros(height)
        )
        recalled = of_maximum(offers) @ reference_weights / sought if sought else np.zeros(height)
        yield Shares(mean**exponent if total else None, recalled.sum() if sought else None, growth, recalled)


def of_maximum(offers: Matrix) -> Matrix:
    """Return the Shapley value of each row in the maximum of each column, of values from 0."""
    order = offers.argsort(axis=0, kind="stable")
    steps = np.diff(np.take_along_axis(offers, order, axis=0), axis=0, prepend=0)
    steps /= np.arange(len(offers), 0, -1)[:, None]
    shares = np.empty_like(offers)
    np.put_along_axis(shares, order, steps.cumsum(axis=0), axis=0)
    return shares


def _of_meaning(item: Item, words: Words, meaning: texts.Meaning, value: float) -> Iterator[tuple[CreditPart, Slots]]:
    """Yield each word's credit for the meaning of the whole."""
    whole, shares, _ = texts.likeness(meaning, item.candidate, item.references)
    for number, (word, share) in enumerate(shares):
        earned = matching.MEANING_SHARE * share * value / whole if whole else 0.0
        slot = (number,) if len(shares) == len(words.spans) else words.find((word,))
        yield CreditPart("meaning", (word,), earned), (slot,)


def _disorder(
    words: Words, text_words: Sequence[str], order: texts.WordOrder, lost: float
) -> Iterator[tuple[CreditPart, Slots]]:
    """Yield the credit lost to neighbours in unusual order."""
    costs = [max(0.0, -information) for information in order.junctions(text_words)]
    placed = len(text_words) == len(words.spans)
    for second, cost in enumerate(costs):
        if cost:
            pair = range(max(second - 1, 0), min(second + 1, len(text_words)))
            slots = tuple([(number,) if placed else words.find((text_words[number],)) for number in pair])
            yield (
                CreditPart("order", tuple([text_words[number] for number in pair]), -lost * (cost / sum(costs))),
                slots,
            )


def graded_credit(
    item: Item,
    match: matching.GradedMatch,
    tuples: Shares,
    words_said: tuple[Sequence[str], Shares],
    plain: tuple[Shares, Shares] | None,
    *,
    score: float,
    order: texts.WordOrder | None,
    meaning: texts.Meaning | None = None,
) -> Credit:
    """Return the credit of an item; ``plain`` are the shares by which the meaning of the whole counts, if it does."""
    words, (names, of_words) = Words(item.candidate), words_said
    earned = earned_by(tuples, of_words)
    aligned_share = matching.ALIGNED_SHARE
    if plain is not None:
        earned -= matching.MEANING_SHARE * earned_by(*plain)
        aligned_share *= 1 - matching.MEANING_SHARE
    is_read = match.texts.aligned is not None
    earned *= 1 - matching.ALIGNED_SHARE if is_read else 1
    parts = list(_stated(match, words, names, earned.tolist()))
    if is_read:
        parts += _scaled(_aligned(item, words), aligned_share)
    if plain is not None:
        if meaning is not None:  # the cosine is a sum over words
            parts += _of_meaning(item, words, meaning, match.texts.meaning or 0.0)
        total = _sum(parts)
        if not 0 <= total <= 1:  # the score is held between 0 and 1
            parts = list(_scaled(parts, min(max(total, 0.0), 1.0) / total))
    if order is not None and match.texts.order < 1:
        lost = (1 - match.texts.order) * _sum(parts)
        parts += _disorder(words, texts.words_of_text(item.candidate), order, lost)
    return words.credit(score, parts)


_Part: TypeAlias = "tuple[CreditPart, Slots]"


def _stated(
    match: matching.GradedMatch, words: Words, names: Sequence[str], earned: Sequence[float]
) -> Iterator[_Part]:
    """Yield the credit of each tuple, then of each word; ``earned`` is in their order."""
    tuples = match.candidate.tuples
    for scene_tuple, value in zip(tuples, earned, strict=False):
        kind = KINDS[len(scene_tuple.concepts) - 1]
        slots = tuple([words.find(concept.strings) for concept in scene_tuple.concepts])
        yield CreditPart(kind, scene_tuple.strings, value), slots
    for name, value in zip(names, earned[len(tuples) :], strict=True):
        yield CreditPart("word", (name,), value), (words.find((name,)),)


def _scaled(parts: Iterable[_Part], factor: float) -> Iterator[_Part]:
    return ((part._replace(credit=part.credit * factor), slots) for part, slots in parts)


def _sum(parts: Iterable[_Part]) -> float:
    return math.fsum(part.credit for part, _ in parts)


def earned_by(tuples: Shares, words: Shares) -> Vector:
    """Return the tuples' credit in F1, then the words', without alignment and order."""
    of_precision, of_recall = _half(tuples.precision, words.precision), _half(tuples.recall, words.recall)
    precision = of_precision[0] * (tuples.precision or 0.0) + of_precision[1] * (words.precision or 0.0)
    recall = of_recall[0] * (tuples.recall or 0.0) + of_recall[1] * (words.recall or 0.0)
    if not precision or not recall:
        return np.zeros(len(tuples.growth) + len(words.growth))
    growth = np.concatenate([of_precision[0] * tuples.growth, of_precision[1] * words.growth])
    recalled = np.concatenate([of_recall[0] * tuples.found, of_recall[1] * words.found])
    slope = 2 * (math.log1p(recall / precision) - recall / (precision + recall))
    earned: Vector = 2 * precision / (precision + recall) * recalled + slope * growth
    return earned


def _half(tuples: float | None, words: float | None) -> tuple[float, float]:
    """Return the shares of tuples and of words: words have theirs where they weigh anything, and nothing alone."""
    share = 0.0 if words is None else matching.WORDS_SHARE
    return (0.0, 0.0) if tuples is None else (1 - share, share)


_Stems: TypeAlias = "Counter[tuple[str, float]]"  # with their weights


def _best_aligned(said: _Stems, length: float, references: Sequence[str]) -> tuple[float, float, _Stems]:
    """Return the matched weight, the length and the matched stems of the reference that aligns best."""
    best = 0.0, 0.0, Counter[tuple[str, float]]()
    for reference in references:
        reference_stems = Counter(map(texts.weighted_stem, texts.words_of_text(reference)))
        matched = said & reference_stems
        weight = sum(stem[1] * count for stem, count in matched.items())
        other = (1 - texts.PRECISION_SHARE) * sum(stem[1] * count for stem, count in reference_stems.items())
        if weight and (not best[1] or weight / (length + other) > best[0] / (length + best[1])):
            best = weight, other, matched
    return best


def _aligned(item: Item, words: Words) -> Iterator[tuple[CreditPart, Slots]]:
    """Yield each word's credit in the alignment with the best reference."""
    # With M the matched weight, a the reference's share of the length and b the candidate's, M / (a + b) is divided by
    # the Aumann-Shapley value: m ln(1 + b/a) / b - M b_i (ln(1 + b/a) - b / (a + b)) / b^2 for a word of weight m that
    # matches and length b_i.
    candidate_words = texts.words_of_text(item.candidate)
    stems = list(map(texts.weighted_stem, candidate_words))
    said = Counter(stems)
    length = texts.PRECISION_SHARE * sum(weight for _, weight in stems)
    total, other, matched = _best_aligned(said, length, item.references)
    if not total:
        return
    grown = math.log1p(length / other)
    cost = total * (grown - length / (length + other)) / length**2
    placed = len(candidate_words) == len(words.spans)
    for number, (word, stem) in enumerate(zip(candidate_words, stems, strict=True)):
        earned = stem[1] * matched[stem] / said[stem] * grown / length - cost * texts.PRECISION_SHARE * stem[1]
        yield CreditPart("alignment", (word,), earned), ((number,) if placed else words.find((word,)),)
