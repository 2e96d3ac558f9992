"""How the scores of all rounds are collected: at once where a metric allows it, else by calling it for each round.

A path gives what the metric itself gives for each round's corpus, and computes only once what rounds share.
To add one: a line in ``PATHS``, and the test that compares it with :data:`CALL_THE_METRIC`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from spicegraph_scorer.core.facts import FactSource, FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.ngrams import CorpusCounts, count_ngrams, split_at_spaces
from spicegraph_scorer.core.tokens import Corpus, tokenize_texts
from spicegraph_scorer.metrics.cider import Cider, CiderStatistic, Spider, statistics_of_counts
from spicegraph_scorer.metrics.meteor import Meteor
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_studies.bounds.study import BoundsStudy, Candidates, Cube, Matrix, Table, batches, joined, part

if TYPE_CHECKING:
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_service.kit import Spread

Advance: TypeAlias = Callable[[int, int], None]  # is called with how much of a metric's work is done, and of how much

Path: TypeAlias = Callable[..., list[Table["Cube"]]]
"""A way to collect a metric's scores: those of each trial, given the metric, the study, the trials' candidates, and as
keywords ``spread`` and ``advance``."""


def item_scores(work: tuple[Metric[Any], tuple[Candidates, ...]]) -> list[Table[Matrix]]:
    """Return the scores of each trial's candidates, each against its image's other captions."""
    metric, batch = work
    items: list[Item] = []
    for captions, *trials in zip(*batch, strict=True):
        for place in range(len(captions)):
            others = captions[:place] + captions[place + 1 :]
            items += [Item(len(items) + number, texts[place], others) for number, texts in enumerate(trials)]
    statistics = metric.collect(Corpus(tuple(items)))
    return [part(metric, statistics[place :: len(batch) - 1]) for place in range(len(batch) - 1)]


def cider_rounds(metric: Cider, study: BoundsStudy, candidates: Candidates) -> Iterator[list[CiderStatistic]]:
    """Yield the statistics of each round; its document frequencies come from the captions that are not held out."""
    flat = [text for texts in (*study.captions, *candidates) for text in texts]
    row = {text: place for place, text in enumerate(dict.fromkeys(flat))}
    tokens = [split_at_spaces(words) for words in tokenize_texts(list(row))]
    vocabulary, orders = count_ngrams(tokens, orders=4)
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
        scores = statistics_of_counts(counts, variant=metric.variant, frequencies=metric.frequencies)
        yield list(map(metric.scaled, scores))


def _table(source: FactSource, texts: list[str]) -> FunctionSource:
    """Return a table of the texts' facts, in place of the parser."""
    return FunctionSource.of_table(source.signature, dict(zip(texts, source.facts(texts), strict=True)))


def by_caption(portable: Callable[[Any, list[str]], Any] = lambda metric, _texts: metric) -> Path:
    """Return the path of metrics whose statistic depends on the item alone; ``portable``: for another process."""

    def tables(
        metric: Metric[Any], study: BoundsStudy, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table[Cube]]:
        texts = (list(dict.fromkeys(chain.from_iterable(chain(*batch)))) for batch in batches(study, trials))
        work = ((portable(metric, each), batch) for each, batch in zip(texts, batches(study, trials), strict=True))
        by_trial: list[list[Table[Matrix]]] = [[] for _ in trials]
        done = 0
        for parts in spread(item_scores, work):
            for parts_of_trial, scores in zip(by_trial, parts, strict=True):
                parts_of_trial.append(scores)
            done += len(parts[0].each)
            advance(done, int(study.sizes.sum()))
        return [joined(parts, lambda each: np.concatenate(each)[study.held]) for parts in by_trial]

    return tables


def by_round(rounds: Callable[[Any, BoundsStudy, Candidates], Iterator[Sequence[Any]]]) -> Path:
    """Return the path of metrics whose statistic depends on the whole corpus: round by round, in this process."""

    def tables(
        metric: Metric[Any], study: BoundsStudy, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table[Cube]]:
        del spread
        of_trials = []
        for place, candidates in enumerate(trials, start=1):
            of_trials.append(joined([part(metric, each) for each in rounds(metric, study, candidates)], np.stack))
            advance(place, len(trials))
        return of_trials

    return tables


CALL_THE_METRIC: Final = by_round(
    lambda metric, study, candidates: (
        metric.collect(study.corpus(candidates, number)) for number in range(study.rounds)
    )
)
"""The path for every metric without one of its own; the definition of what the others give."""


def spider_tables(
    metric: Spider, study: BoundsStudy, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
) -> list[Table[Cube]]:
    """Return the mean of SPIDEr's two metrics' scores, each collected on its own path."""
    names = tuple(score.name for score in metric.total(()))
    parts = [path_of(of)(of, study, trials, spread=spread, advance=advance) for of in (metric.cider, metric.spice)]
    return [
        Table(names, (of_cider.each[:, :, :1] + of_spice.each[:, :, :1]) / 2, None)
        for of_cider, of_spice in zip(*parts, strict=True)
    ]


PATHS: Mapping[type[Any] | str, Path] = {
    Meteor: by_caption(lambda metric, _batch: replace(metric, data=None)),  # each process opens its files
    # the facts of a batch are those of the text that SPICE scores; scores need no evidence
    Spice: by_caption(
        lambda metric, texts: replace(metric, source=_table(metric.facts, texts), text="written", evidence=False)
    ),
    "spice-g": by_caption(lambda metric, texts: replace(metric, source=_table(metric.source, texts), evidence=False)),
    Cider: by_round(cider_rounds),
    Spider: spider_tables,
}
"""The paths of metrics that read facts or files, or share work between rounds, by their exact class or their name."""


def path_of(metric: Metric[Any]) -> Path:
    """Return how a metric's scores are collected: where a statistic depends on the item's words alone, by caption."""
    of_words_alone = metric.weigh is None and not metric.needs.facts and not metric.needs.data
    path = PATHS.get(type(metric)) or PATHS.get(metric.name)
    return path or (by_caption() if of_words_alone else CALL_THE_METRIC)
