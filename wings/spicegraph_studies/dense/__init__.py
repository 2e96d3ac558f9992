"""Dense video captions: what is said of each part of a video, scored by time and by words.

By threshold, as the public evaluation of ActivityNet Captions does (Krishna et al., ICCV 2017): a caption is scored
against every reference whose segment overlaps its own by the threshold or more, and one without any against a word that
no caption has; a metric's value of a video is that of its pairs together, that of the corpus the mean over the videos.
SODA (Fujita et al., ECCV 2020): captions and references are matched one to one in the order of time, so that the sum of
overlap times score is highest. Paragraphs: all captions of a video as one text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from scipy import sparse

from spicegraph_scorer import Corpus, Item
from spicegraph_scorer.core.ngrams import CorpusCounts, NgramCounts, count_ngrams, split_at_spaces
from spicegraph_scorer.core.results import signature_of
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics.cider import ORDERS, Cider, statistics_of_counts
from spicegraph_scorer.readers.fields import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer import Metric
    from spicegraph_scorer.core.facts import Progress
    from spicegraph_scorer.core.metric import Weigh
    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.dense.events import DenseCorpus, Events, Segment

Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Pairs: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]

THRESHOLDS: Final = (0.3, 0.5, 0.7, 0.9)
_NO_REFERENCE: Final = "xqzjvkwqxzjvkq"  # a word that no caption has: the public evaluation draws letters
_EPSILON: Final = 1e-8  # of the public evaluations, which add it to unions: an overlap of exactly .5 is less than .5
_BATCH: Final = 4096


class SodaOrder(StrEnum):
    """Which text of a pair SODA scores against the other."""

    SCRIPT = "script"  # the reference against the caption, as its authors' script does; published values are its
    PAPER = "paper"  # the caption against the reference, as everywhere else


@dataclass(frozen=True, slots=True)
class Soda:
    """SODA of one score: of each video's best file of references, and the mean over the files of F by file."""

    precision: float
    recall: float
    f1: float
    mean_f1: float


@dataclass(frozen=True, slots=True)
class Dense:
    """The scores of a system's dense captions; ``None`` is undefined."""

    thresholds: tuple[float, ...]
    captions: Mapping[str, tuple[float | None, ...]]  # each score, ``Precision`` and ``Recall``, by threshold
    soda: Mapping[str, Soda]
    paragraphs: Mapping[str, float | None]
    videos: tuple[tuple[str, int, Mapping[str, float | None]], ...]  # id, captions, means over thresholds and SODA
    signature: Mapping[str, Json]

    def means(self) -> dict[str, float | None]:
        """Return the mean of each score over the thresholds, which the public evaluation ends with."""
        return {name: _mean(np.array(values, np.float64)) for name, values in self.captions.items()}

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values."""
        means = self.means()
        at = [f"{threshold:g}" for threshold in self.thresholds]
        captions = {n: {**dict(zip(at, v, strict=True)), "mean": means[n]} for n, v in self.captions.items()}
        soda = {n: {"precision": s.precision, "recall": s.recall, "f1": s.f1} for n, s in self.soda.items()}
        return {
            "signature": dict(self.signature),
            "captions": captions,
            "soda": {name: {**values, "mean_f1": self.soda[name].mean_f1} for name, values in soda.items()},
            "paragraphs": dict(self.paragraphs),
            "videos": [{"video": name, "captions": count, **values} for name, count, values in self.videos],
        }


def overlaps(captions: Sequence[Segment], references: Sequence[Segment]) -> Matrix:
    """Return the intersection over the union of each caption's segment (rows) with each reference's (columns).

    >>> overlaps([(0, 10)], [(0, 20), (5, 15), (30, 40)]).round(3).tolist()
    [[0.5, 0.333, 0.0]]
    """
    first, second = np.reshape(captions, (-1, 1, 2)), np.reshape(references, (1, -1, 2))
    common = np.minimum(first[..., 1], second[..., 1]) - np.maximum(first[..., 0], second[..., 0])
    common = np.maximum(common, 0.0)
    both: Matrix = common / (first[..., 1] - first[..., 0] + second[..., 1] - second[..., 0] - common + _EPSILON)
    return both


def best_in_order(values: Matrix) -> float:
    """Return the highest sum of cells, no two of one row or column, of which each is right of and below the one before.

    >>> best_in_order(np.array([[0.0, 0.9], [0.8, 0.5]]))
    0.9
    """
    best = np.zeros(values.shape[1] + 1)
    for row in values:
        best[1:] = np.maximum.accumulate(np.maximum(best[1:], best[:-1] + row))
    return float(best[-1])


class _Texts:
    """Pairs of a text and the one that it is scored against, each once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self.items: list[Item] = []

    def number(self, text: str, against: str) -> int:
        number = self._numbers.setdefault((text, against), len(self.items))
        if number == len(self.items):
            self.items.append(Item(number, text, (against,)))
        return number


@dataclass(frozen=True, slots=True)
class _Found:
    """A metric with its pair statistics, score names, and first score of every pair."""

    metric: Metric[Any]
    statistics: list[Any]
    names: tuple[str, ...]
    each: Vector

    @classmethod
    def of(cls, metric: Metric[Any], texts: _Texts, progress: Progress | None) -> _Found:
        """Score every pair once."""
        statistics: list[Any] = []
        for start in range(0, len(texts.items), _BATCH):
            if progress:
                progress(f"scoring captions: {metric.name}", start, len(texts.items))
            statistics += metric.collect(Corpus(tuple(texts.items[start : start + _BATCH])))
        scores = metric.total(statistics)
        names = [score.name for score in scores]
        if statistics and metric.by_category(statistics[0]):
            names = names[:1]
        return cls(metric, statistics, tuple(names), np.array(scores[0].each, np.float64))


def find_dense(
    corpus: DenseCorpus,
    metrics: Mapping[str, Metric[Any]],
    soda: Mapping[str, Metric[Any]],
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    order: SodaOrder = SodaOrder.SCRIPT,
    paragraphs: bool = True,
    progress: Progress | None = None,
) -> Dense:
    """Score dense captions.

    Args:
        corpus: what :func:`spicegraph_studies.dense.events.read_dense` gives.
        metrics: what captions are scored with at each threshold, and paragraphs.
        soda: what SODA scores pairs with; their scores depend on the pair alone.
        thresholds: the least overlaps.
        order: which text of a pair SODA scores against the other.
        paragraphs: also score all captions of a video as one text.
        progress: is called while it takes long.
    """
    seen, items = _overlaps_of(corpus), _whole_texts(corpus)
    by_video: dict[str, Matrix] = _by_threshold(corpus, seen, metrics, thresholds, progress)
    by_video |= _detection(seen, thresholds)
    of_soda: dict[str, tuple[Soda, Vector]] = {}
    for metric in soda.values():
        of_soda |= _soda(corpus, seen, metric, order, progress)
    signature = signature_of(items, {name: metric.signature() for name, metric in {**metrics, **soda}.items()})
    signature |= {"thresholds": list(thresholds), "soda": f"c, {order}"}
    if any(corpus.is_absent):
        signature["missing videos"] = "0 by overlap and as paragraphs, left out of SODA, as in the scripts"
    each = {name: _means(values) for name, values in by_video.items()}
    each |= {f"SODA_{name}": values for name, (_, values) in of_soda.items()}
    return Dense(
        tuple(thresholds),
        {name: tuple(map(_mean, values)) for name, values in by_video.items()},
        {name: found for name, (found, _) in of_soda.items()},
        _paragraphs(items, metrics, progress) if paragraphs else {},
        tuple(
            (name, len(given.segments), {key: _defined(values[n]) for key, values in each.items()})
            for n, (name, given) in enumerate(zip(corpus.videos, corpus.captions, strict=True))
        ),
        signature,
    )


_Overlaps: TypeAlias = "Sequence[Sequence[Matrix | None]]"  # by video and file of references


def _overlaps_of(corpus: DenseCorpus) -> _Overlaps:
    return [
        [None if of is None else overlaps(given.segments, of.segments) for of in files]
        for given, files in zip(corpus.captions, corpus.references, strict=True)
    ]


def _whole_texts(corpus: DenseCorpus) -> list[Item]:
    """Return the captions of each video as one text, with the texts of its references."""
    return [
        Item(name, joined(given.sentences), tuple(joined(of.sentences) for of in files if of))
        for name, given, files in zip(corpus.videos, corpus.captions, corpus.references, strict=True)
    ]


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: Vector) -> float | None:
    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else None


def _means(values: Matrix) -> Vector:
    """Return the column means, ignoring NaN; NaN for columns without values."""
    defined = ~np.isnan(values)
    sums: Vector = np.nan_to_num(values).sum(axis=0)
    means: Vector = np.divide(sums, defined.sum(axis=0), out=np.full(sums.shape, np.nan), where=defined.any(axis=0))
    return means


def _pairs_at(
    given: Events, files: Sequence[Events | None], seen: Sequence[Matrix | None], threshold: float, texts: _Texts
) -> list[int]:
    """Return the pairs of a video at a threshold: each caption with all references that it overlaps, or with none."""
    pairs = []
    alone = np.ones(len(given.segments), np.bool_)
    for of, both in zip(files, seen, strict=True):
        if of is not None and both is not None:
            for row, column in np.argwhere(both >= threshold).tolist():
                pairs.append(texts.number(given.sentences[row], of.sentences[column]))
                alone[row] = False
    return pairs + [texts.number(given.sentences[row], _NO_REFERENCE) for row in np.flatnonzero(alone).tolist()]


def _by_threshold(
    corpus: DenseCorpus,
    seen: _Overlaps,
    metrics: Mapping[str, Metric[Any]],
    thresholds: Sequence[float],
    progress: Progress | None,
) -> dict[str, Matrix]:
    """Return each score by threshold and video; 0 where a video has no captions, NaN where a score is undefined."""
    texts = _Texts()
    videos = list(zip(corpus.captions, corpus.references, seen, strict=True))
    pairs = [[_pairs_at(*video, threshold, texts) for video in videos] for threshold in thresholds]
    found: dict[str, Matrix] = {}
    for metric in metrics.values() if texts.items else ():
        weigh = metric.weigh
        if weigh is None:
            scored = _Found.of(metric, texts, progress)
            columns = metric.columns(scored.statistics)
            tables = [_sums(metric, columns, of_threshold) for of_threshold in pairs]
            names = scored.names
        else:
            tables = list(_weighed(metric, weigh, texts, pairs, progress))
            names = tuple(tables[0])
        found |= {name: np.stack([table[name] for table in tables]) for name in names}
    return found


def _sums(metric: Metric[Any], columns: Matrix, pairs: Sequence[Sequence[int]]) -> dict[str, Vector]:
    """Return the scores of each video from the sums over its pairs."""
    counts = np.array([len(each) for each in pairs])
    sums = np.zeros((len(pairs), columns.shape[1]))
    np.add.at(sums, np.repeat(np.arange(len(pairs)), counts), columns[[n for each in pairs for n in each]])
    return {name: np.where(counts > 0, values, 0.0) for name, values in metric.from_sums(sums).items()}


def _weighed(
    metric: Metric[Any],
    weigh: Weigh,
    texts: _Texts,
    pairs: Sequence[Sequence[Sequence[int]]],
    progress: Progress | None,
) -> Iterator[dict[str, Vector]]:
    """Yield at each threshold the scores of a metric with weights, which each video's pairs give, as in its scripts."""
    names = [score.name for score in metric.total(())]
    work = list(dict.fromkeys(map(tuple, chain.from_iterable(pairs))))
    many = [each for each in work if len(each) > 1]  # with one pair the scripts' weights, and so their scores, are 0
    known = {each: [0.0] * len(names) for each in work}
    if isinstance(metric, Cider):
        known |= _cider(metric, texts.items, many)
    else:
        known |= _one_by_one(metric, weigh, texts.items, many, progress)
    for of_threshold in pairs:
        table = np.array([known[tuple(each)] for each in of_threshold])
        yield {name: table[:, n] for n, name in enumerate(names)}


_Work: TypeAlias = "Sequence[tuple[int, ...]]"  # groups of pairs, by their numbers


def _one_by_one(
    metric: Metric[Any], weigh: Weigh, items: Sequence[Item], work: _Work, progress: Progress | None
) -> dict[tuple[int, ...], list[float]]:
    """Return the scores of each group of pairs by itself, with its own weights."""
    found = {}
    for done, each in enumerate(work):
        if progress and not done % 100:
            progress(f"scoring captions: {metric.name}", done, len(work))
        corpus = Corpus(tuple(items[n] for n in each))
        scores = metric.total(metric.weighted(weigh(corpus)).collect(corpus))
        found[each] = [np.nan if score.value is None else score.value for score in scores]
    return found


def _cider(metric: Cider, items: Sequence[Item], work: _Work) -> dict[tuple[int, ...], list[float]]:
    """Return CIDEr of each group of pairs, as calling the metric would, batched by size."""
    texts = dict.fromkeys(chain.from_iterable((item.candidate, *item.references) for item in items))
    row = {text: n for n, text in enumerate(texts)}
    tokens = [split_at_spaces(words) for words in tokenize_texts(list(row))]
    vocabulary, orders = count_ngrams(tokens, orders=ORDERS)
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    sides = np.array([(row[item.candidate], row[item.references[0]]) for item in items], np.int64).reshape(-1, 2)
    found: dict[tuple[int, ...], list[float]] = {}
    for size in sorted({len(each) for each in work}):
        groups = [each for each in work if len(each) == size]
        chosen = sides[np.array(groups).ravel()].T.ravel()  # the candidates, then the references
        group = np.tile(np.repeat(np.arange(len(groups)), size), 2)
        counts = CorpusCounts(
            vocabulary,
            tuple(_apart(ngrams, chosen, group) for ngrams in orders),
            lengths[chosen],
            np.arange(len(chosen) // 2),
        )
        values = np.array(statistics_of_counts(counts, variant=metric.variant, images=size), np.float64)
        found |= dict(zip(groups, values.reshape(-1, size).mean(axis=1, keepdims=True).tolist(), strict=True))
    return found


def _apart(ngrams: NgramCounts, chosen: Integers, group: Integers) -> NgramCounts:
    """Return the counts of some captions, in which an n-gram is another one in each group."""
    cells = ngrams.matrix[chosen].tocoo()
    width = ngrams.matrix.shape[1]
    codes, column = np.unique(group[cells.row] * width + cells.col, return_inverse=True)
    matrix = sparse.coo_array((cells.data, (cells.row, column)), shape=(len(chosen), len(codes))).tocsr()
    return replace(ngrams, matrix=matrix, prefix=ngrams.prefix[codes % width], last=ngrams.last[codes % width])


def _detection(seen: _Overlaps, thresholds: Sequence[float]) -> dict[str, Matrix]:
    """Return the shares of captions and of references that have one of the other side, from the best file of each."""
    precision, recall = np.zeros((2, len(thresholds), len(seen)))
    for video, files in enumerate(seen):
        for both in files:
            if both is not None and len(both):
                for n, threshold in enumerate(thresholds):
                    near = both > threshold
                    precision[n, video] = max(precision[n, video], near.any(axis=1).mean())
                    recall[n, video] = max(recall[n, video], near.any(axis=0).mean())
    return {"Precision": precision, "Recall": recall}


def _by_time(of: Events) -> list[int]:
    return sorted(range(len(of.segments)), key=lambda n: of.segments[n][0])


def _matchings(
    corpus: DenseCorpus, seen: _Overlaps, order: SodaOrder, texts: _Texts
) -> Iterator[tuple[int, int, Matrix, Pairs]]:
    """Yield of each answered video and file of references, in order, overlaps and the numbers of pairs of texts."""
    for video, (given, files) in enumerate(zip(corpus.captions, corpus.references, strict=True)):
        for number, (of, both) in enumerate(zip(files, seen[video], strict=True)):
            if of is None or both is None or corpus.is_absent[video]:
                continue
            # SODA's script sorts the references of one file, and takes those of several (-mr) in the files' order.
            is_sorted = order is SodaOrder.PAPER or len(files) == 1
            rows, columns = _by_time(given), _by_time(of) if is_sorted else list(range(len(of.segments)))
            timed: Matrix = both[rows][:, columns]
            pairs: Pairs = np.zeros(timed.shape, np.int64)
            for row, column in np.argwhere(timed).tolist():
                two = given.sentences[rows[row]], of.sentences[columns[column]]
                pairs[row, column] = texts.number(*(two if order is SodaOrder.PAPER else two[::-1]))
            yield video, number, timed, pairs


def _soda(
    corpus: DenseCorpus, seen: _Overlaps, metric: Metric[Any], order: SodaOrder, progress: Progress | None
) -> dict[str, tuple[Soda, Vector]]:
    """Return SODA of a metric's first score, and each video's F."""
    texts = _Texts()
    matchings = list(_matchings(corpus, seen, order, texts))
    found = _Found.of(metric, texts, progress)
    each = np.append(np.nan_to_num(found.each), 0.0)  # no pair at all: nothing overlaps
    values = np.full((3, len(corpus.videos), len(corpus.references[0])), np.nan)
    for video, number, timed, pairs in matchings:
        best = best_in_order(timed * each[pairs])
        precision, recall = (best / max(count, 1) for count in timed.shape)
        f1 = 2 * precision * recall / (precision + recall) if best else 0.0
        values[:, video, number] = precision, recall, f1
    answered = np.flatnonzero(~np.array(corpus.is_absent))
    chosen = np.nanargmax(values[2][answered], axis=1)
    of_best = np.full((3, len(corpus.videos)), np.nan)
    of_best[:, answered] = values[:, answered, chosen]
    by_file = [_mean(of_file) for of_file in values[2].T]
    means = (*np.nanmean(of_best, axis=1), np.mean([value for value in by_file if value is not None]))
    return {found.names[0]: (Soda(*map(float, means)), of_best[2])}


def _paragraphs(
    items: Sequence[Item], metrics: Mapping[str, Metric[Any]], progress: Progress | None
) -> dict[str, float | None]:
    """Return the scores of each video's captions as one text, against the texts of its references."""
    found: dict[str, float | None] = {}
    corpus = Corpus(tuple(items))
    for done, metric in enumerate(metrics.values()):
        if progress:
            progress("scoring paragraphs", done, len(metrics))
        statistics = metric.collect(corpus)
        scores = metric.total(statistics)
        found |= {s.name: s.value for s in (scores[:1] if metric.by_category(statistics[0]) else scores)}
    return found
