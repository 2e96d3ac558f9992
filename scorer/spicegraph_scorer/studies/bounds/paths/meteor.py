"""METEOR of every held-out caption; a text that stands in for several of them is aligned with each caption once."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics.meteor import Meteor, coco_texts, load_data, score_texts
from spicegraph_scorer.metrics.meteor.text import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.tokens import Tokens
    from spicegraph_scorer.metrics.meteor import Meteor2005, MeteorStatistic
    from spicegraph_scorer.studies.bounds.study import Candidates, Study
    from spicegraph_scorer.studies.bounds.tables import Batch

__all__ = ["meteor_2005_rounds", "meteor_statistics", "portable_meteor"]

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
    wholes = [_whole(captions, mine, tokens) for captions, mine in rows]
    known = _scored(metric, filter(None, wholes), tokens)
    tasks = [list(_tasks(*row, whole, known)) for row, whole in zip(rows, wholes, strict=True)]
    known |= _scored(metric, (task for found in tasks for task in found if task not in known), tokens)
    images = len(batch.captions)
    return [
        [known[task] for task in chain.from_iterable(tasks[start : start + images])]
        for start in range(0, len(tasks), images)
    ]


def _whole(captions: tuple[str, ...], mine: tuple[str, ...], tokens: Mapping[str, Tokens]) -> _Task | None:
    """Return one text against all captions, if the same text stands in for each of them."""
    if len(set(mine)) > 1 or any(SEPARATOR in " ".join(tokens[text]) for text in captions):
        return None  # a caption with a separator counts as two: the best one's place says nothing then
    return mine[0], captions


def _tasks(
    captions: tuple[str, ...], mine: tuple[str, ...], whole: _Task | None, known: Mapping[_Task, MeteorStatistic]
) -> Iterator[_Task]:
    for place, text in enumerate(mine):
        best = known[whole].reference if whole else place
        yield whole if whole and best != place else (text, captions[:place] + captions[place + 1 :])


def _scored(metric: Meteor, tasks: Iterable[_Task], tokens: Mapping[str, Tokens]) -> dict[_Task, MeteorStatistic]:
    distinct = list(dict.fromkeys(tasks))
    items = [coco_texts(tokens[text], [tokens[other] for other in others]) for text, others in distinct]
    return dict(zip(distinct, score_texts(items, data=metric.data or load_data()), strict=True))


def meteor_2005_rounds(metric: Meteor2005, study: Study, candidates: Candidates) -> Iterator[Sequence[float]]:
    """Yield the scores of each round: the best of the references, each of which is scored once for a text."""
    texts = list(dict.fromkeys(text for texts in (*study.captions, *candidates) for text in texts))
    tokens = dict(zip(texts, tokenize_texts(texts), strict=True))
    pairs = list(
        dict.fromkeys(
            (text, other)
            for captions, mine in zip(study.captions, candidates, strict=True)
            for place, text in enumerate(mine)
            for other in captions[:place] + captions[place + 1 :]
        )
    )
    scores = metric.score_tokens((tokens[text], [tokens[other]]) for text, other in pairs)
    score = dict(zip(pairs, scores, strict=True))
    for number in range(study.rounds):
        items = study.corpus(candidates, number).items
        yield [max(score[item.candidate, other] for other in item.references) for item in items]
