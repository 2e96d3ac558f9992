"""How the scores of all rounds are collected: by a fast path where a metric has one, else by calling the metric.

A fast path gives what the metric itself gives for each round's corpus, and computes only once what rounds share.
To add one: a function here, a line in ``PATHS``, and the test that compares it with :data:`CALL_THE_METRIC`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.ngrams import CorpusCounts, NgramCounts, count_ngrams, split_at_spaces
from spicegraph_scorer.core.tokens import Corpus, tokenize_texts
from spicegraph_scorer.metrics.bleu import ORDERS, Bleu, BleuStatistic, SentenceBleu
from spicegraph_scorer.metrics.cider import Cider, Spider, statistics_of_counts
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.meteor import Meteor, Meteor2005, coco_texts, load_data, score_texts
from spicegraph_scorer.metrics.meteor.text import SEPARATOR
from spicegraph_scorer.metrics.rouge import Overlap, Rouge155, Rouge155Statistic, RougeL, RougeLStatistic, common_length
from spicegraph_scorer.metrics.spice.match import count_match, match_tuples
from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic
from spicegraph_studies.bounds.study import Batch, PartScores, Table, batches, part, table_of_parts, table_of_rounds

if TYPE_CHECKING:
    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.core.tokens import Tokens
    from spicegraph_scorer.metrics.cider import CiderStatistic
    from spicegraph_scorer.metrics.meteor import MeteorStatistic
    from spicegraph_scorer.metrics.rouge import Profile
    from spicegraph_service.kit import Spread
    from spicegraph_studies.bounds.study import BoundsStudy, Candidates


def item_statistics(metric: Metric[Any], batch: Batch) -> list[list[Any]]:
    """Return the statistics of each trial's candidates, each against its image's other captions.

    For metrics whose statistic depends on the item alone. What is scored against the same captions follows each
    other, so that a metric that prepares a set of references once for neighbouring items does so.
    """
    statistics = metric.collect(Corpus(tuple(_items(batch))))
    return [statistics[place :: len(batch.trials)] for place in range(len(batch.trials))]


def _items(batch: Batch) -> Iterator[Item]:
    """Yield the items caption by caption, and for each caption trial by trial."""
    number = 0
    for captions, *trials in zip(batch.captions, *batch.trials, strict=True):
        for place in range(len(captions)):
            others = captions[:place] + captions[place + 1 :]
            for candidates in trials:
                yield Item(number, candidates[place], others)
                number += 1


Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class _Captions:
    """The captions of a batch, counted image by image: the row of each one's text, its length and image."""

    rows: Integers
    lengths: Integers
    image: Integers
    pairs: tuple[Integers, Integers]
    """Every caption with every other one of its image."""


@dataclass(frozen=True, slots=True)
class _Most:
    """For each n-gram of an image (sorted): its highest count in a caption, which one, and the highest elsewhere."""

    keys: Integers
    count: Integers
    caption: Integers
    elsewhere: Integers


def bleu_statistics(_metric: Bleu | SentenceBleu, batch: Batch) -> list[list[BleuStatistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    row = {text: place for place, text in enumerate(texts)}
    tokens = [split_at_spaces(statistics) for statistics in tokenize_texts(texts)]
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    _, orders = count_ngrams(tokens, orders=ORDERS)
    captions = _captions([[row[text] for text in image] for image in batch.captions], lengths)
    most = [_most(ngrams, captions) for ngrams in orders]
    statistics = []
    for trial in batch.trials:
        rows = np.array([row[text] for image in trial for text in image], np.int64)
        columns = [_matched(ngrams, highest, captions, rows) for ngrams, highest in zip(orders, most, strict=True)]
        closest = _closest(captions, lengths[rows])
        table = zip(lengths[rows].tolist(), closest.tolist(), *(column.tolist() for column in columns), strict=True)
        statistics.append([BleuStatistic(length, near, (a, b, c, d)) for length, near, a, b, c, d in table])
    return statistics


def _captions(rows: list[list[int]], lengths: Integers) -> _Captions:
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = np.array([row for image in rows for row in image], np.int64)
    starts, repeats = np.repeat(np.cumsum(sizes) - sizes, sizes), np.repeat(sizes, sizes)
    caption = np.repeat(np.arange(len(flat)), repeats)
    first = np.cumsum(repeats) - repeats
    other = np.arange(len(caption)) - np.repeat(first, repeats) + np.repeat(starts, repeats)
    differ = caption != other
    return _Captions(flat, lengths[flat], np.repeat(np.arange(len(rows)), sizes), (caption[differ], other[differ]))


def _most(ngrams: NgramCounts, captions: _Captions) -> _Most:
    cells = ngrams.matrix[captions.rows].tocoo()
    keys = captions.image[cells.row] * ngrams.matrix.shape[1] + cells.col
    order = np.lexsort((-cells.data, keys))
    keys, count, caption = keys[order], cells.data[order].astype(np.int64), cells.row[order].astype(np.int64)
    first = np.diff(keys, prepend=-1) != 0
    next_count = np.append(count[1:], 0)
    shared = np.append(~first[1:], False)
    return _Most(keys[first], count[first], caption[first], np.where(shared, next_count, 0)[first])


def _matched(ngrams: NgramCounts, most: _Most, captions: _Captions, rows: Integers) -> Integers:
    """Return for each candidate its n-grams that another caption has, each clipped to the most in one of them."""
    cells = ngrams.matrix[rows].tocoo()
    keys = captions.image[cells.row] * ngrams.matrix.shape[1] + cells.col
    place = np.minimum(np.searchsorted(most.keys, keys), max(0, len(most.keys) - 1))
    known = most.keys[place] == keys if len(most.keys) else np.zeros(len(keys), np.bool_)
    row, place = cells.row[known], place[known]
    limit = np.where(most.caption[place] == row, most.elsewhere[place], most.count[place])
    clipped = np.minimum(cells.data[known], limit)
    sums: Integers = np.bincount(row, clipped, minlength=len(rows)).astype(np.int64)
    return sums


def _closest(captions: _Captions, lengths: Integers) -> Integers:
    """Return for each candidate the length closest to its own among the other captions; of two, the shorter."""
    captions_of_pairs, other = captions.pairs
    other_lengths = captions.lengths[other]
    best = np.lexsort((other_lengths, np.abs(other_lengths - lengths[captions_of_pairs]), captions_of_pairs))
    _, first = np.unique(captions_of_pairs[best], return_index=True)
    closest: Integers = other_lengths[best[first]]
    return closest


_ORDERS = 4


def cider_rounds(metric: Cider, study: BoundsStudy, candidates: Candidates) -> Iterator[list[CiderStatistic]]:
    """Yield the statistics of each round; its document frequencies come from the captions that are not held out."""
    flat = [text for texts in (*study.captions, *candidates) for text in texts]
    row = {text: place for place, text in enumerate(dict.fromkeys(flat))}
    tokens = [split_at_spaces(words) for words in tokenize_texts(list(row))]
    vocabulary, orders = count_ngrams(tokens, orders=_ORDERS)
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    rows = np.array([row[text] for text in flat], np.int64)
    captions, candidate_rows = np.split(rows, 2)
    image = np.repeat(np.arange(len(study.ids)), study.sizes)
    for held in study.held:
        left = np.ones(len(captions), np.bool_)
        left[held] = False
        chosen = np.concatenate([candidate_rows[held], captions[left]])
        counts = CorpusCounts(
            vocabulary,
            tuple(replace(ngrams, matrix=ngrams.matrix[chosen]) for ngrams in orders),
            lengths[chosen],
            image[left],
        )
        yield statistics_of_counts(counts, variant=metric.variant, frequencies=metric.frequencies)


_Task: TypeAlias = tuple[str, tuple[str, ...]]
"""A candidate and the captions that it is scored against."""


def portable_meteor(metric: Meteor, _batch: Batch) -> Meteor:
    """Return the metric without its open files; every process opens its own."""
    return replace(metric, data=None)


def meteor_statistics(metric: Meteor, batch: Batch) -> list[list[MeteorStatistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions.

    METEOR is that of the best reference. So what a text has against all captions of its image, it also has
    without caption k, unless k is the best one; only then it is scored again.
    """
    texts = batch.texts()
    tokens = dict(zip(texts, tokenize_texts(texts), strict=True))
    rows = [row for trial in batch.trials for row in zip(batch.captions, trial, strict=True)]
    wholes = [_whole(captions, trial_texts, tokens) for captions, trial_texts in rows]
    known = _scored(metric, filter(None, wholes), tokens)
    tasks = [list(_tasks(*row, whole, known)) for row, whole in zip(rows, wholes, strict=True)]
    known |= _scored(metric, (task for tasks_of_image in tasks for task in tasks_of_image if task not in known), tokens)
    images = len(batch.captions)
    return [
        [known[task] for task in chain.from_iterable(tasks[start : start + images])]
        for start in range(0, len(tasks), images)
    ]


def _whole(captions: tuple[str, ...], candidates: tuple[str, ...], tokens: Mapping[str, Tokens]) -> _Task | None:
    """Return one text against all captions, if the same text stands in for each of them."""
    if len(set(candidates)) > 1 or any(SEPARATOR in " ".join(tokens[text]) for text in captions):
        return None  # a caption with a separator counts as two: the best one's place says nothing then
    return candidates[0], captions


def _tasks(
    captions: tuple[str, ...], candidates: tuple[str, ...], whole: _Task | None, known: Mapping[_Task, MeteorStatistic]
) -> Iterator[_Task]:
    for place, text in enumerate(candidates):
        best = known[whole].reference if whole else place
        yield whole if whole and best != place else (text, captions[:place] + captions[place + 1 :])


def _scored(metric: Meteor, tasks: Iterable[_Task], tokens: Mapping[str, Tokens]) -> dict[_Task, MeteorStatistic]:
    distinct = list(dict.fromkeys(tasks))
    items = [coco_texts(tokens[text], [tokens[other] for other in others]) for text, others in distinct]
    return dict(zip(distinct, score_texts(items, data=metric.data or load_data()), strict=True))


def meteor_2005_rounds(metric: Meteor2005, study: BoundsStudy, candidates: Candidates) -> Iterator[Sequence[float]]:
    """Yield the scores of each round: the best of the references, each of which is scored once for a text."""
    texts = list(dict.fromkeys(text for texts in (*study.captions, *candidates) for text in texts))
    tokens = dict(zip(texts, tokenize_texts(texts), strict=True))
    pairs = list(
        dict.fromkeys(
            (text, other)
            for captions, image_candidates in zip(study.captions, candidates, strict=True)
            for place, text in enumerate(image_candidates)
            for other in captions[:place] + captions[place + 1 :]
        )
    )
    scores = metric.score_tokens((tokens[text], [tokens[other]]) for text, other in pairs)
    score = dict(zip(pairs, scores, strict=True))
    for number in range(study.rounds):
        items = study.corpus(candidates, number).items
        yield [max(score[item.candidate, other] for other in item.references) for item in items]


def rouge_l_statistics(_metric: RougeL, batch: Batch) -> list[list[RougeLStatistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    # Splitting an empty text at spaces leaves one empty word, which the COCO toolkit counts.
    words = {text: tokens or ("",) for text, tokens in zip(texts, tokenize_texts(texts), strict=True)}
    common = _Common(words)
    return [
        [
            _rouge_l(text, captions[:place] + captions[place + 1 :], words, common)
            for captions, candidates in zip(batch.captions, trial, strict=True)
            for place, text in enumerate(candidates)
        ]
        for trial in batch.trials
    ]


class _Common(dict[tuple[str, str], int]):
    """Lengths of the longest common subsequences of two texts, in either order."""

    def __init__(self, words: Mapping[str, Tokens]) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, pair: tuple[str, str]) -> int:
        first, second = pair
        length = common_length(self._words[first], self._words[second])
        self[pair] = self[second, first] = length
        return length


def _rouge_l(
    candidate: str, references: Sequence[str], words: Mapping[str, Tokens], common: _Common
) -> RougeLStatistic:
    lengths = [common[candidate, reference] for reference in references]
    recalls = [length / len(words[reference]) for length, reference in zip(lengths, references, strict=True)]
    return RougeLStatistic(max(lengths) / len(words[candidate]), max(recalls))


def rouge_155_statistics(metric: Rouge155, batch: Batch) -> list[list[Rouge155Statistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    overlaps = _Overlaps(metric, dict(zip(texts, metric.profiles(texts), strict=True)))
    return [
        [
            metric.statistic([overlaps[text, other] for other in captions[:place] + captions[place + 1 :]])
            for captions, candidates in zip(batch.captions, trial, strict=True)
            for place, text in enumerate(candidates)
        ]
        for trial in batch.trials
    ]


class _Overlaps(dict[tuple[str, str], tuple[Overlap, ...]]):
    """The overlaps of a candidate and a reference, one of each kind."""

    def __init__(self, metric: Rouge155, profiles: Mapping[str, tuple[Profile, ...]]) -> None:
        super().__init__()
        self._metric = metric
        self._profiles = profiles

    def __missing__(self, pair: tuple[str, str]) -> tuple[Overlap, ...]:
        candidate, reference = (self._profiles[text] for text in pair)
        turned = self.get((pair[1], pair[0]))
        self[pair] = overlaps = self._metric.overlaps(candidate, reference, turned=turned)
        return overlaps


def portable_spice(metric: Spice, batch: Batch) -> Spice:
    """Return the metric with the facts of a batch in the place of what parses, which are those of its text."""
    return replace(metric, source=_table(metric.facts, batch), text="written")


def portable_graded(metric: SpiceG, batch: Batch) -> SpiceG:
    """Return the metric with the facts of a batch in the place of what parses."""
    return replace(metric, source=_table(metric.source, batch))


def _table(source: FactSource, batch: Batch) -> FunctionSource:
    texts = batch.texts()
    return FunctionSource.of_table(source.signature, dict(zip(texts, source.facts(texts), strict=True)))


def spice_statistics(metric: Spice, batch: Batch) -> list[list[SpiceStatistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    facts = dict(zip(texts, metric.facts.facts(texts), strict=True))
    by_trial: list[list[SpiceStatistic]] = [[] for _ in batch.trials]
    for captions, *trials in zip(batch.captions, *batch.trials, strict=True):
        tuples = _Tuples(metric, facts)
        for place in range(len(captions)):
            others = captions[:place] + captions[place + 1 :]
            reference = metric.graph([facts[text] for text in others]).tuples()
            for statistics, candidates in zip(by_trial, trials, strict=True):
                statistics.append(_statistic(metric, tuples[candidates[place]], reference))
    return by_trial


class _Tuples(dict[str, "tuple[SceneTuple, ...]"]):
    """The tuples of single captions' graphs."""

    def __init__(self, metric: Spice, facts: Mapping[str, tuple[Fact, ...]]) -> None:
        super().__init__()
        self._metric = metric
        self._facts = facts

    def __missing__(self, text: str) -> tuple[SceneTuple, ...]:
        self[text] = tuples = self._metric.graph([self._facts[text]]).tuples()
        return tuples


def _statistic(metric: Spice, candidate: Sequence[SceneTuple], reference: Sequence[SceneTuple]) -> SpiceStatistic:
    match = match_tuples(candidate, reference)
    return SpiceStatistic(count_match(match, categories=metric.categories), match)


Advance: TypeAlias = Callable[[int, int], None]
"""Is called with how much of a metric's work is done, and of how much."""


class Path(Protocol):
    """A way to collect a metric's scores."""

    def tables(
        self, metric: Any, study: BoundsStudy, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        """Return the scores of each trial; the metric is of the class that the path is for."""
        ...


def _as_it_is(metric: Any, _batch: Batch) -> Any:
    return metric


@dataclass(frozen=True, slots=True)
class ByCaption:
    """For metrics whose statistic depends on the item alone: one statistic for every held-out caption.

    ``statistics`` gives, for each trial of a batch, one statistic for every caption, image by image.
    ``portable`` gives the metric as another process can use it for the batch.
    """

    statistics: Callable[[Any, Batch], list[list[Any]]]
    portable: Callable[[Any, Batch], Any] = _as_it_is

    def tables(
        self, metric: Metric[Any], study: BoundsStudy, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        """Return the scores of each trial, computed batch by batch."""
        work = ((self.statistics, self.portable(metric, batch), batch) for batch in batches(study, trials))
        by_trial: list[list[PartScores]] = [[] for _ in trials]
        done = 0
        for parts in spread(_parts, work):
            for parts_of_trial, scores in zip(by_trial, parts, strict=True):
                parts_of_trial.append(scores)
            done += len(parts[0].each)
            advance(done, int(study.sizes.sum()))
        return [table_of_parts(study, parts_of_trial) for parts_of_trial in by_trial]


def _parts(work: tuple[Callable[[Any, Batch], list[list[Any]]], Metric[Any], Batch]) -> list[PartScores]:
    statistics, metric, batch = work
    return [part(metric, of_trial) for of_trial in statistics(metric, batch)]


@dataclass(frozen=True, slots=True)
class ByRound:
    """For metrics whose statistic depends on the whole corpus: round by round."""

    rounds: Callable[[Any, BoundsStudy, Candidates], Iterator[Sequence[Any]]]

    def tables(
        self, metric: Metric[Any], study: BoundsStudy, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        """Return the scores of each trial; this process does the work."""
        del spread
        tables = []
        for place, candidates in enumerate(trials):
            tables.append(table_of_rounds(metric, self.rounds(metric, study, candidates)))
            advance(place + 1, len(trials))
        return tables


def _call(metric: Metric[Any], study: BoundsStudy, candidates: Candidates) -> Iterator[Sequence[Any]]:
    for number in range(study.rounds):
        yield metric.collect(study.corpus(candidates, number))


CALL_THE_METRIC: Final = ByRound(_call)
"""The path for every metric without one of its own; the definition of what the others give."""


@dataclass(frozen=True, slots=True)
class _MeanOfTwo:
    """SPIDEr: the mean of two metrics' scores, each collected on its own path."""

    def tables(
        self, metric: Spider, study: BoundsStudy, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        names = tuple(score.name for score in metric.total(()))
        cider, spice = (
            path_of(part).tables(part, study, trials, spread=spread, advance=advance)
            for part in (metric.cider, metric.spice)
        )
        return [
            Table(names, (of_cider.each[:, :, :1] + of_spice.each[:, :, :1]) / 2, None)
            for of_cider, of_spice in zip(cider, spice, strict=True)
        ]


PATHS: Mapping[type[Any], Path] = {
    Bleu: ByCaption(bleu_statistics),
    SentenceBleu: ByCaption(bleu_statistics),
    RougeL: ByCaption(rouge_l_statistics),
    Rouge155: ByCaption(rouge_155_statistics),
    Meteor: ByCaption(meteor_statistics, portable_meteor),
    Meteor2005: ByRound(meteor_2005_rounds),
    Spice: ByCaption(spice_statistics, portable_spice),
    SpiceG: ByCaption(item_statistics, portable_graded),
    Cider: ByRound(cider_rounds),
    Spider: _MeanOfTwo(),
}
"""The fast paths, by the exact class of the metric."""


def path_of(metric: Metric[Any]) -> Path:
    """Return how a metric's scores are collected."""
    return PATHS.get(type(metric), CALL_THE_METRIC)
