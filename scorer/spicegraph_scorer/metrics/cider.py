"""CIDEr, CIDEr-D and CIDEr-R: consensus with the references, rare n-grams weighing more; and SPIDEr, with SPICE."""
# Vedantam, Zitnick and Parikh 2015, "CIDEr: Consensus-based Image Description Evaluation"; Chen et al. 2015, "Microsoft
# COCO Captions", section 3.3.4. CIDEr-R: Santos, Colombini and Avila 2021, "CIDEr-R: Robust Consensus-based Image
# Description Evaluation", with the functions of its authors' script. SPIDEr, the mean of CIDEr-D and SPICE: Liu et al.,
# ICCV 2017.

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from spicegraph_parser.errors import InputError
from spicegraph_parser.ptb import tokenize
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.credit import Credit, CreditPart, Slots, Words
from spicegraph_scorer.core.metric import Matrix, Metric, Needs, Score, Summed, Vector, Weigh, Working
from spicegraph_scorer.core.ngrams import (
    CorpusCounts,
    CountMatrix,
    DocumentFrequencies,
    Floats,
    Integers,
    count_slices,
    frequencies_of,
    images_with,
    split_at_spaces,
)
from spicegraph_scorer.core.tokens import PUNCTUATION, TOKENIZER, Corpus, TokenizedItem, TokenizedItems, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic

Variant = Literal["CIDEr", "CIDEr-D", "CIDEr-R"]

ORDERS: Final = 4
SIGMA: Final = 6.0  # Standard deviation, in words, of CIDEr-D's penalty on a difference in length.
SCALE: Final = 10.0  # Scores are in [0, 10].
REPETITION: Final = 0.8  # The exponents of CIDEr-R's two penalties.
LENGTH: Final = 0.2


class CiderWarning(UserWarning):
    """CIDEr is undefined for this input."""


CiderStatistic: TypeAlias = float | None  # In [0, 10]; ``None`` where the references weigh every n-gram with 0.


@dataclass(frozen=True, slots=True)
class Cider(Metric[CiderStatistic]):
    """CIDEr with n-grams up to four words, in [0, 10], of a variant; the corpus value is the mean over the items.

    ``CIDEr-D`` clips counts and penalises a difference in length; its score is ``CIDEr``, as in the COCO toolkit.
    ``CIDEr`` is the plain cosine of the paper, without stemming; its score is ``CIDEr-plain``. ``CIDEr-R`` clips, and
    penalises repeated words and a difference in length by the share of the reference's, for references of any length.
    Without ``frequencies`` the images are those of the corpus, as in the toolkit: a corpus of one image then has no
    score (a ``CiderWarning`` and ``None``).
    """

    needs: ClassVar[Needs] = Needs(data=frozenset({"frequencies", "cider_scale"}))
    highest: ClassVar[float] = SCALE
    credits: ClassVar[bool] = True

    variant: Variant = "CIDEr-D"
    frequencies: DocumentFrequencies | None = None
    scale: float = SCALE

    @classmethod
    def of(cls, given: Resources) -> Cider:
        """Return the metric ``cider``."""
        return cls(frequencies=given.data.frequencies, scale=given.data.cider_scale or SCALE)

    @classmethod
    def of_plain(cls, given: Resources) -> Cider:
        """Return the metric ``cider-plain``."""
        return replace(cls.of(given), variant="CIDEr")

    @classmethod
    def of_robust(cls, given: Resources) -> Cider:
        """Return the metric ``cider-r``."""
        return replace(cls.of(given), variant="CIDEr-R")

    @property
    def name(self) -> str:
        """The key of the metric: ``cider``, ``cider-plain`` or ``cider-r``."""
        return _FORMS[self.variant].name.lower()

    def signature(self) -> Mapping[str, str]:
        """Return the settings that must match for two values to be comparable."""
        frequencies = self.frequencies
        source = f"{frequencies.digest} ({frequencies.images} images)" if frequencies else "the corpus's references"
        return {
            "variant": self.variant,
            "tokenizer": TOKENIZER,
            "document frequencies": source,
            "n": f"1-{ORDERS}",
            **_FORMS[self.variant].signature,
            "scale": f"{self.scale:g}",
        }

    def collect(self, corpus: Corpus) -> list[CiderStatistic]:
        """Return the score of each item; a ``CiderWarning`` if document frequencies come from a single image."""
        scores = cider_statistics(corpus.tokens, variant=self.variant, frequencies=self.frequencies)
        return scores if self.scale == SCALE else [self.scaled(score) for score in scores]

    def scaled(self, score: CiderStatistic) -> CiderStatistic:
        """Return a score in [0, 10] at this metric's scale."""
        return None if score is None else score * self.scale / SCALE

    @property
    def weigh(self) -> Weigh | None:
        """What counts the document frequencies of a corpus, unless they are given."""
        return frequencies_of if self.frequencies is None else None

    def weighted(self, weights: DocumentFrequencies) -> Cider:
        """Return the metric with these document frequencies."""
        return replace(self, frequencies=weights)

    def credit(self, corpus: Corpus, statistics: Sequence[CiderStatistic]) -> list[Credit]:
        """Divide the score among the words; see :func:`cider_credits`."""
        scores = [score for score in statistics if score is not None]
        if len(scores) < len(statistics):
            raise InputError(f"{self.name}: undefined with the references of a single image; give document frequencies")
        return cider_credits(corpus, self, scores)

    def total(self, statistics: Sequence[CiderStatistic]) -> tuple[Score, ...]:
        """Return the score, under the one name that the variant has."""
        return (Score.mean(_FORMS[self.variant].name, statistics),)

    def workings(self, corpus: Corpus, statistics: Sequence[CiderStatistic]) -> list[tuple[Working, ...]]:
        """Return the mean cosines with the references by the length of the n-grams."""
        frequencies = self.frequencies or DocumentFrequencies.of_items(corpus.tokens)
        if frequencies.images <= 1 or not statistics:
            return [()] * len(statistics)
        workings: list[tuple[Working, ...]] = []
        for counts in count_slices(corpus.tokens, orders=ORDERS):
            # The mean cosines of each item with its references by order, and its mean penalty on the length.
            cosines = _cosines(counts, frequencies.images, frequencies.lookup(counts), self.variant)
            penalty = _FORMS[self.variant].penalty(counts)
            references = np.bincount(counts.item, minlength=counts.items)
            means = [np.bincount(counts.item, p, minlength=counts.items) / references for p in (*cosines, penalty)]
            values = zip(*(mean.tolist() for mean in means), strict=True)
            text = f"{self.scale:g} {_FORMS[self.variant].text}"
            workings += [(Working(_FORMS[self.variant].name, text, row),) for row in values]
        return workings


COCO_CIDER: Final = Cider()  # what the COCO toolkit calls CIDEr


def cider_statistics(
    items: Sequence[TokenizedItem], *, variant: Variant = "CIDEr-D", frequencies: DocumentFrequencies | None = None
) -> list[CiderStatistic]:
    """Return the score of each item; a ``CiderWarning`` if document frequencies come from a single image."""
    table = items if isinstance(items, TokenizedItems) else TokenizedItems.of(items)
    if frequencies is None:
        frequencies = DocumentFrequencies.of_items(table)
    if table and frequencies.images <= 1:
        return _undefined(len(table))
    slices = count_slices(table, orders=ORDERS)
    by_slice = (statistics_of_counts(counts, variant=variant, frequencies=frequencies) for counts in slices)
    return list(chain.from_iterable(by_slice))


def statistics_of_counts(
    counts: CorpusCounts, *, variant: Variant, frequencies: DocumentFrequencies | None = None, images: int | None = None
) -> list[CiderStatistic]:
    """Return the score of each item of a corpus whose n-grams are counted; warns as :func:`cider_statistics`.

    ``images``: how many images weigh an n-gram, without ``frequencies``; ``None``: all items.
    """
    images = frequencies.images if frequencies else counts.items if images is None else images
    if images <= 1:
        return _undefined(counts.items)
    if frequencies is None:
        references_of = slice(counts.items, None)
        images_with_ngrams = tuple(images_with(ngrams.matrix[references_of], counts.item) for ngrams in counts.orders)
    else:
        images_with_ngrams = frequencies.lookup(counts)
    similarity = np.zeros(len(counts.item))
    for cosine in _cosines(counts, images, images_with_ngrams, variant):
        similarity += cosine
    similarity *= _FORMS[variant].penalty(counts)
    sums = np.bincount(counts.item, similarity, minlength=counts.items)
    references = np.bincount(counts.item, minlength=counts.items)
    scores: list[CiderStatistic] = (SCALE / ORDERS * sums / references).tolist()
    return scores


def _cosines(
    counts: CorpusCounts, images: int, images_with_ngrams: Sequence[Integers], variant: Variant
) -> Iterator[Floats]:
    """Yield the cosines of each reference with its candidate, by the order of the n-grams."""
    for ngrams, images_of in zip(counts.orders, images_with_ngrams, strict=True):
        weights = math.log(images) - np.log(np.maximum(1, images_of))
        weighted = sparse.csr_array(ngrams.matrix * weights)
        norms: Floats = np.sqrt(weighted.power(2).sum(axis=1))
        candidates, references = weighted[: counts.items][counts.item], weighted[counts.items :]
        common = candidates.minimum(references) if _FORMS[variant].clips else candidates
        products = common.multiply(references).sum(axis=1)
        norm = norms[: counts.items][counts.item] * norms[counts.items :]
        yield np.divide(products, norm, out=np.zeros(len(norm)), where=norm > 0)


def _undefined(items: int) -> list[CiderStatistic]:
    warnings.warn(
        "CIDEr is undefined: with the references of a single image every n-gram weighs 0; "
        "score more images at once, or give document frequencies",
        CiderWarning,
        stacklevel=3,
    )
    return [None] * items


def _length_penalty(counts: CorpusCounts) -> Floats:
    """Return the penalty of each reference's difference in length, counted in bigrams as the toolkit does."""
    bigrams = np.maximum(counts.lengths - 1, 0)
    difference = bigrams[: counts.items][counts.item] - bigrams[counts.items :]
    penalty: Floats = np.exp(-(difference**2) / (2 * SIGMA**2))
    return penalty


def _relative_penalty(counts: CorpusCounts) -> Floats:
    """Return CIDEr-R's penalty of each reference: on words repeated more or less than in it, and on another length."""
    # Repetition: the geometric mean, over the candidate's words, of 1 / (1 + d), where d is how much more or less often
    # than the reference it has a word, and of one that the reference lacks, how often it says it again. Words are runs
    # of letters and digits. Length: exp(-d^2), where d is the difference in words as a share of the reference's words.
    ngrams = counts.orders[0]
    runs = [re.findall(r"\w+", counts.vocabulary[word]) for word in ngrams.last.tolist()]
    number = {run: place for place, run in enumerate(dict.fromkeys(chain.from_iterable(runs)))}
    rows = np.repeat(np.arange(len(runs)), [len(each) for each in runs])
    columns = np.fromiter((number[run] for run in chain.from_iterable(runs)), np.int64, len(rows))
    split = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(runs), len(number))).tocsr()
    words = sparse.csr_array(ngrams.matrix @ split)
    candidates, references = words[: counts.items][counts.item], words[counts.items :]
    there = candidates.sign()
    difference = abs(candidates - there.multiply(references).maximum(there))
    repetition = difference.log1p().sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    lengths = np.maximum(counts.lengths, 1)
    length = (lengths[: counts.items][counts.item] / lengths[counts.items :] - 1) ** 2
    penalty: Floats = np.exp(-REPETITION * repetition - LENGTH * length)
    return penalty


class _Form(NamedTuple):
    """A variant: its score's name, what it does beside the cosines, what its signature says of that, its working."""

    name: str
    clips: bool
    penalty: Callable[[CorpusCounts], Floats]
    signature: Mapping[str, str]
    text: str


_COSINES: Final = (
    "times the mean likeness to the references in words ({}), pairs ({}), triples ({}) and quadruples ({}) of "
    "words, rare ones weighing more"
)
_FORMS: Final[Mapping[Variant, _Form]] = {
    "CIDEr": _Form(
        "CIDEr-plain",
        clips=False,
        penalty=lambda counts: np.ones(len(counts.item)),
        signature={"sigma": "none"},
        text=f"{_COSINES} (without a penalty: {{}})",
    ),
    "CIDEr-D": _Form(
        "CIDEr",
        clips=True,
        penalty=_length_penalty,
        signature={"sigma": f"{SIGMA:g}"},
        text=f"{_COSINES}, each reference times its penalty on another length ({{}} in the mean)",
    ),
    "CIDEr-R": _Form(
        "CIDEr-R",
        clips=True,
        penalty=_relative_penalty,
        signature={"sigma": "none", "penalties": f"repetition^{REPETITION:g} length^{LENGTH:g}"},
        text=f"{_COSINES}, each reference times its penalties on repeated words and another length ({{}} in the mean)",
    ),
}


class SpiderStatistic(NamedTuple):
    """One item's statistics of both metrics."""

    cider: CiderStatistic
    spice: SpiceStatistic


@dataclass(frozen=True, slots=True)
class Spider(Metric[SpiderStatistic]):
    """SPIDEr as ``(CIDEr-D + SPICE) / 2``, of a corpus and of every item.

    CIDEr-D runs from 0 to 10 and SPICE from 0 to 1, so that CIDEr-D weighs far more in it.
    """

    english: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(facts=True, data=frozenset({"frequencies", "spice_text"}))
    credits: ClassVar[bool] = True
    highest: ClassVar[float] = (Cider.highest + Metric.highest) / 2

    spice: Spice
    cider: Cider = field(default_factory=Cider)

    name = "spider"

    @classmethod
    def of(cls, given: Resources) -> Spider:
        """Return the metric ``spider``."""
        from spicegraph_scorer.metrics.spice.metric import Spice  # noqa: PLC0415 (CIDEr alone does not need it)

        spice = Spice(given.facts(), evidence=given.evidence, text=given.data.spice_text or "written")
        return cls(spice, Cider(frequencies=given.data.frequencies))

    def signature(self) -> Mapping[str, str]:
        """Return what both metrics say, SPICE's pipeline and lexicon first."""
        return {**self.spice.signature(), **self.cider.signature(), "metric": self.name}

    def collect(self, corpus: Corpus) -> list[SpiderStatistic]:
        """Return both statistics of every item; warns as :meth:`Cider.collect`."""
        pairs = zip(self.cider.collect(corpus), self.spice.collect(corpus), strict=True)
        return [SpiderStatistic(*pair) for pair in pairs]

    def total(self, statistics: Sequence[SpiderStatistic]) -> tuple[Score, ...]:
        """Return the score ``SPIDEr``, in [0, 5.5]; ``None`` where CIDEr-D is undefined."""
        cider = self.cider.total([statistic.cider for statistic in statistics])[0]
        spice = self.spice.total([statistic.spice for statistic in statistics])[0]
        each = tuple(mean_of(*pair) for pair in zip(cider.each, spice.each, strict=True))
        return (Score("SPIDEr", mean_of(cider.value, spice.value), each),)

    def working(self, statistic: SpiderStatistic) -> tuple[Working, ...]:
        """Return the two scores whose mean it is."""
        text = "the mean of CIDEr ({}) and SPICE ({})"
        return (Working("SPIDEr", text, (statistic.cider, statistic.spice.f1(ALL))),)

    def credit(self, corpus: Corpus, statistics: Sequence[SpiderStatistic]) -> list[Credit]:
        """Divide the score among the words: half of what each earned of either metric."""
        cider = self.cider.credit(corpus, [statistic.cider for statistic in statistics])
        spice = self.spice.credit(corpus, [statistic.spice for statistic in statistics])
        return [
            Credit.mixed([(0.5, of_cider), (0.5, of_spice)]) for of_cider, of_spice in zip(cider, spice, strict=True)
        ]

    def summed(self) -> Summed[SpiderStatistic]:
        """Return the sums of both metrics: the corpus value is the mean of two values, each rounded by itself."""
        return _Means(self.cider.summed(), self.spice.summed())

    def compact(self, statistic: SpiderStatistic) -> SpiderStatistic:
        """Return the statistic without SPICE's match."""
        return statistic._replace(spice=self.spice.compact(statistic.spice))

    @property
    def weigh(self) -> Weigh | None:
        """CIDEr-D's function for counting document frequencies, if any."""
        return self.cider.weigh

    def weighted(self, weights: Any) -> Spider:
        """Return the metric with the document frequencies of a corpus."""
        return replace(self, cider=self.cider.weighted(weights))

    def defer(self, corpus: Corpus, *, evidence: bool = False) -> list[tuple[Any, SpiceStatistic]]:
        """Return CIDEr-D's deferred data and SPICE's statistic of each item."""
        spice = self.spice.collect(corpus) if evidence else self.spice.defer(corpus)
        return list(zip(self.cider.defer(corpus), spice, strict=True))

    def finish(self, kept: Sequence[tuple[Any, SpiceStatistic]], *, weights: Any = None) -> list[SpiderStatistic]:
        """Return both statistics of every item."""
        cider = self.cider.finish([of_cider for of_cider, _ in kept], weights=weights)
        return [SpiderStatistic(of_cider, spice) for of_cider, (_, spice) in zip(cider, kept, strict=True)]


class _Means:
    def __init__(self, cider: Summed[CiderStatistic], spice: Summed[SpiceStatistic]) -> None:
        self._cider, self._spice = cider, spice

    def columns(self, statistics: Sequence[SpiderStatistic]) -> Matrix:
        cider = self._cider.columns([statistic.cider for statistic in statistics])
        return np.hstack([cider, self._spice.columns([statistic.spice for statistic in statistics])])

    def from_sums(self, sums: Matrix) -> Mapping[str, Vector]:
        cider, spice = np.hsplit(sums, [2])  # CIDEr-D is one score: its sum, and the number of items
        [first] = self._cider.from_sums(cider).values()
        second, *_ = self._spice.from_sums(spice).values()
        return {"SPIDEr": np.array([mean_of(*pair) for pair in zip(first.tolist(), second.tolist(), strict=True)])}


def mean_of(cider: float | None, spice: float | None) -> float | None:
    """Return the mean of a CIDEr-D and a SPICE score, ``None`` if one of them is undefined."""
    return None if cider is None or spice is None else (cider + spice) / 2


_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)


def cider_credits(corpus: Corpus, cider: Cider, scores: Sequence[float]) -> list[Credit]:
    """Return which words earned or cost each item's score."""
    # The players are the candidate's n-grams and, for the penalty on a difference in length, its words alike. Divided
    # is by the Aumann-Shapley value: all grow together from nothing to their size, and each gets what its growth adds.
    # With one reference, let an n-gram add x to the product with it, and y to the candidate's squared norm Y; let X be
    # the sum of x, g(t) the penalty at a share t of the length, and G the integral of g(t) / sqrt(t) from 0 to 1. Then
    # an n-gram gets G (x - X y / 2 Y) / sqrt(Y), and the words have (g(1) - G / 2) X / sqrt(Y) in equal parts.
    frequencies = cider.frequencies or frequencies_of(corpus)
    credits_: list[Credit] = []
    for counts in count_slices(corpus.tokens, orders=ORDERS):
        values, lengths = _credits_of_counts(counts, cider.variant, frequencies, cider.scale)
        for number in range(counts.items):
            item, score = corpus.items[len(credits_)], scores[len(credits_)]
            credit_of_ngram = {ngram: value for matrix, texts in values for ngram, value in _row(matrix, texts, number)}
            credits_.append(_credit_of(item.candidate, score, credit_of_ngram, lengths[number]))
    return credits_


def _credits_of_counts(
    counts: CorpusCounts, variant: Variant, frequencies: DocumentFrequencies, scale: float
) -> tuple[list[tuple[CountMatrix, list[Tokens]]], Sequence[float]]:
    """Return for each order what its n-grams earned (items, n-grams) and these, and what each item's length did."""
    references = np.bincount(counts.item, minlength=counts.items)
    share = scale / ORDERS / references[counts.item]
    growth, penalty = _growth(counts, variant)
    items = sparse.csr_array((share, (counts.item, np.arange(len(counts.item)))), (counts.items, len(counts.item)))
    of_length = np.zeros(len(counts.item))
    texts: list[Tokens] = [()]
    earned: list[tuple[CountMatrix, list[Tokens]]] = []
    for ngrams, images_of in zip(counts.orders, frequencies.lookup(counts), strict=True):
        weights = math.log(frequencies.images) - np.log(np.maximum(1, images_of))
        weighted = sparse.csr_array(ngrams.matrix * weights)
        squares = weighted.power(2)
        norms: Floats = np.sqrt(squares.sum(axis=1))
        candidates, reference_rows = weighted[: counts.items][counts.item], weighted[counts.items :]
        common = candidates.minimum(reference_rows) if _FORMS[variant].clips else candidates
        products = common.multiply(reference_rows)
        candidate_norms = norms[: counts.items][counts.item]
        both = candidate_norms * norms[counts.items :]
        per_product: Floats = np.divide(growth, both, out=np.zeros(len(both)), where=both > 0)
        cosine = products.sum(axis=1) * np.divide(1, both, out=np.zeros(len(both)), where=both > 0)
        per_square: Floats = np.divide(cosine * growth / 2, candidate_norms**2, out=np.zeros(len(both)), where=both > 0)
        of_length += cosine * (penalty - growth / 2)
        values = items @ (_scaled(products, per_product) - _scaled(squares[: counts.items][counts.item], per_square))
        texts = [
            (*texts[prefix], counts.vocabulary[last])
            for prefix, last in zip(ngrams.prefix.tolist(), ngrams.last.tolist(), strict=True)
        ]
        earned.append((sparse.csr_array(values), texts))
    return earned, np.bincount(counts.item, share * of_length, counts.items).tolist()


def _row(matrix: CountMatrix, texts: Sequence[Tokens], item: int) -> Iterator[tuple[Tokens, float]]:
    """Return the n-grams that an item's row of a matrix has values of, with these."""
    start, end = matrix.indptr[item : item + 2]
    columns, values = matrix.indices[start:end].tolist(), matrix.data[start:end].tolist()
    return ((texts[column], value) for column, value in zip(columns, values, strict=True))


def _scaled(matrix: CountMatrix, rows: Floats) -> CountMatrix:
    return sparse.csr_array(matrix.multiply(rows[:, None]))


def _growth(counts: CorpusCounts, variant: Variant) -> tuple[Floats, Floats]:
    """Return G and g(1) of :func:`cider_credits` for each reference."""
    if variant != "CIDEr-D":  # nothing grows but the n-grams: another penalty is that of the whole caption
        penalty = _FORMS[variant].penalty(counts)
        return 2 * penalty, penalty
    bigrams = np.maximum(counts.lengths - 1, 0)
    candidates, references = bigrams[: counts.items][counts.item], bigrams[counts.items :]
    at = (1 + _NODES) / 2  # the square root of the share of the length
    penalties = np.exp(-((candidates[:, None] * at**2 - references[:, None]) ** 2) / (2 * SIGMA**2))
    return penalties @ _NODE_WEIGHTS, _length_penalty(counts)


def _credit_of(text: str, score: float, earned: Mapping[Tokens, float], of_length: float) -> Credit:
    words = Words(text)
    tokens: list[str] = []
    words_of_token: list[tuple[int, ...]] = []
    for token in tokenize(text):
        if token.text.lower() not in PUNCTUATION:
            pieces = split_at_spaces((token.text.lower(),))
            tokens += pieces
            words_of_token += [words.overlapping(token.start, token.end)] * len(pieces)
    parts: list[tuple[CreditPart, Slots]] = []
    for order in range(1, ORDERS + 1):
        ngrams = [tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1)]
        times = Counter(ngrams)
        parts += [
            (
                CreditPart(f"{order}-gram", ngram, earned[ngram] / times[ngram]),
                tuple(words_of_token[start : start + order]),
            )
            for start, ngram in enumerate(ngrams)
            if ngram in earned
        ]
    if of_length:
        parts.append((CreditPart("length", (), of_length), tuple(words_of_token)))
    return words.credit(score, parts)
