"""A reward: a weighted mixture of scores and of terms of the text, for training.

To add a term of the text: a function from a caption to what each of its words adds, and a line in ``TEXT_TERMS``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from spicegraph_graded.rewards import statements
from spicegraph_graded.rewards.guards import GUARD_TERMS, guarded
from spicegraph_graded.rewards.guards import signature as guards_signature
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_parser.errors import InputError, expect
from spicegraph_scorer.core.credit import Credit, CreditPart, Span, Words
from spicegraph_scorer.core.metric import Metric, Needs, Score, Weigh
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import ALIASES, METRICS, make_metrics
from spicegraph_scorer.metrics.spice.difference import difference
from spicegraph_scorer.metrics.spice.metric import Spice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.metrics import Factory

NAME: Final = "Reward"
_LARGEST_WEIGHT: Final = 1e9  # so that sums and variances of rewards are finite
_USUAL_ORDER: Final = 1.0  # nats of a pair of neighbours


def repetition(words: Words) -> Sequence[float]:
    """Return 1 for each word that ends a run of three words which the caption has had before."""
    said = [words.text[start:end].lower() for start, end in words.spans]
    seen: set[tuple[str, ...]] = set()
    repeats = []
    for end in range(1, len(said) + 1):
        run = tuple(said[max(end - 3, 0) : end])
        repeats.append(1.0 if len(run) == 3 and run in seen else 0.0)
        seen.add(run)
    return repeats


def word_order(words: Words) -> Sequence[float]:
    """Return each word's share of the ``word-order`` term of :data:`TEXT_TERMS`."""
    order = load_vectors().order
    said = [words.text[start:end].lower() for start, end in words.spans]
    junctions = list(order.junctions(said)) if order is not None else []
    missing = max(0.0, _USUAL_ORDER - math.fsum(junctions) / len(junctions)) if junctions else 0.0
    if not missing:
        return [0.0] * len(said)
    short = [max(0.0, _USUAL_ORDER - information) for information in junctions]
    short[-2:] = [sum(short[-2:])]  # the end of the caption is the last word's
    return [missing * share / math.fsum(short) for share in short]


TEXT_TERMS: Final[Mapping[str, Callable[[Words], Sequence[float]]]] = {
    "length": lambda words: [1.0] * len(words.spans),
    "repetition": repetition,
    "word-order": word_order,
}
"""Terms of a candidate's text: what each of its words adds; the term is the sum.

``length`` is the number of words, ``repetition`` the number of words with which a run of three words is said again.
``word-order`` is by how much the mean information of neighbours in SPICE-G's order table
(:meth:`~spicegraph_graded.spice_g.texts.WordOrder.junctions`) is below 1 nat, from 0. The median of
people's captions is 1.2, and a quarter are below .9.
"""

STATEMENT: Final = "statement"
"""The term of what statements without support add to the terms but guards, times their weights, from 0.

It is by how much the caption is above the least that it has without statements at its ends
(:func:`spicegraph_graded.rewards.statements.without_statements`): with the weight -1, no such statement raises a
reward.
"""

PRESETS: Final[Mapping[str, str]] = {
    "guarded": "spice-g=1,fluency=.1,word-order=-.05,generic=-.25,guard=-1,statement=-1"
}

DRAFT_TERMS: Final[Mapping[str, str]] = {
    name.replace("_", "-"): name for name in ("added_right", "added_wrong", "removed_right", "removed_wrong")
}
"""Terms of what a candidate changes in a draft: how many SPICE tuples it adds or removes that references have, or lack.

See :class:`spicegraph_scorer.metrics.spice.difference.Difference`.
"""


class Term(NamedTuple):
    """A term: its weight, its name, and for a score beside a metric's first one the name of that score."""

    weight: float
    name: str
    score: str = ""

    @property
    def key(self) -> str:
        """The term as it is written."""
        return f"{self.name}:{self.score}" if self.score else self.name

    @property
    def is_of_words(self) -> bool:
        """Whether the term values single words, unlike guards, draft terms and statements."""
        return not self.name.startswith("guard") and self.name != STATEMENT and self.name not in DRAFT_TERMS


def parse_reward(text: str, metrics: Iterable[str]) -> tuple[Term, ...]:
    """Read a reward: terms with their weights, ``spice-g=1,cider=.1,length=-.01``.

    A metric's name means its first score; ``bleu:Bleu_4`` names another. A name of :data:`PRESETS` stands for its
    terms.

    Args:
        text: the reward.
        metrics: the names of metrics that there are.

    Raises:
        InputError: there is no term, or a term is unknown, appears twice, or lacks a weight or has too large a one; all
            faults are listed.

    Example:
        >>> parse_reward("spice=1, bleu:Bleu_4=.5", ["spice", "bleu"])
        (Term(weight=1.0, name='spice', score=''), Term(weight=0.5, name='bleu', score='Bleu_4'))
    """
    expect(text, str, "reward", "a string such as 'spice-g=1'")
    known = [*metrics, *TEXT_TERMS, *GUARD_TERMS, STATEMENT, *DRAFT_TERMS]
    terms: list[Term] = []
    faults: list[str] = []
    text = PRESETS.get(text.strip(), text)
    for number, part in enumerate(text.split(",") if text.strip() else (), start=1):
        key, _, value = (piece.strip() for piece in part.partition("="))
        term = _term(key, value)
        if term.name not in known or (term.score and term.name not in metrics):
            faults.append(f"term {number}: there is no term {key[:50]!a}; there are {', '.join(known)}")
        elif not math.isfinite(term.weight):
            faults.append(f"term {number}: {key} has no weight; expected a number, as in {key}=1, got {value[:50]!a}")
        elif abs(term.weight) > _LARGEST_WEIGHT:
            said = f"{key} has the weight {term.weight:g}"
            faults.append(f"term {number}: {said}; weights are at most {_LARGEST_WEIGHT:g}")
        elif any(term.key == earlier.key for earlier in terms):
            faults.append(f"term {number}: {key} appears twice")
        else:
            terms.append(term)
    if faults or not terms:
        raise InputError("reward: " + ("; ".join(faults) or "has no term; one is spice-g=1,cider=.1"))
    return tuple(terms)


def _term(key: str, value: str) -> Term:
    """Return a term as it is written; its weight is NaN where it is no number."""
    name, _, score = key.partition(":")
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    return Term(weight, ALIASES.get(name, name), score)


class RewardStatistic(NamedTuple):
    """The value of each term of an item, ``None`` where it is undefined, and the statistics of the metrics."""

    values: tuple[float | None, ...]
    statistics: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reward(Metric[RewardStatistic]):
    """The sum of terms, each times its weight; see :func:`parse_reward`.

    A score of a category that is undefined, since the references have no such tuple, adds nothing. Where a metric's
    first score is undefined, so is the reward.
    """

    needs: ClassVar[Needs] = Needs(facts=True, loose=True)
    credits: ClassVar[bool] = True

    terms: tuple[Term, ...]
    metrics: Mapping[str, Metric[Any]]  # those that terms name
    spice: Spice | None = None  # compares a candidate with a draft, if a term does so

    name = "reward"

    def signature(self) -> Mapping[str, str]:
        """Return the terms, and each metric's signature under its name."""
        metrics = {**self.metrics, **({"draft": self.spice} if self.spice else {})}
        return {
            "reward": ",".join(f"{term.key}={term.weight:g}" for term in self.terms),
            **(guards_signature() if any(term.name in GUARD_TERMS for term in self.terms) else {}),
            **(statements.signature() if self._has_statement() else {}),
            **({"word-order": load_vectors().signature} if any(t.name == "word-order" for t in self.terms) else {}),
            **{f"{name} {key}": value for name, metric in metrics.items() for key, value in metric.signature().items()},
        }

    def collect(self, corpus: Corpus) -> list[RewardStatistic]:
        """Return the terms of each item; an InputError where one compares with drafts: use :meth:`compare`."""
        if self.spice is not None:
            comparing = ", ".join(term.key for term in self.terms if term.name in DRAFT_TERMS)
            raise InputError(f"reward: {comparing} compare a candidate with a draft, and there is none")
        return self._collected(corpus, ())

    def compare(self, corpus: Corpus, drafts: Corpus) -> list[RewardStatistic]:
        """Return each item's terms, draft terms included; ``drafts``: the items with drafts as candidates."""
        if self.spice is None:
            return self.collect(corpus)
        old, new = self.spice.collect(drafts), self.spice.collect(corpus)
        return self._collected(corpus, [difference(a.match, b.match) for a, b in zip(old, new, strict=True)])

    def _collected(self, corpus: Corpus, changes: Sequence[Any]) -> list[RewardStatistic]:
        columns, statistics = self._columns(corpus, changes)
        if self._has_statement():
            added = [value for value, _ in self._added(corpus, columns)]
            for place, term in enumerate(self.terms):
                if term.name == STATEMENT:
                    columns[place] = added
        each = zip(*statistics.values(), strict=True) if statistics else ((),) * len(corpus.items)
        return list(map(RewardStatistic, zip(*columns, strict=True), each))

    def _columns(
        self, corpus: Corpus, changes: Sequence[Any] | None
    ) -> tuple[list[Sequence[float | None]], Mapping[str, Sequence[Any]]]:
        """Return each term's values (0 for statements) and each metric's statistics."""
        statistics = {name: metric.collect(corpus) for name, metric in self.metrics.items()}
        scores = {name: metric.total(statistics[name]) for name, metric in self.metrics.items()}
        of_text = any(term.name in TEXT_TERMS for term in self.terms)
        words = [Words(item.candidate) for item in corpus.items] if of_text else []

        def column(term: Term) -> Sequence[float | None]:
            if term.name in TEXT_TERMS:
                return [math.fsum(TEXT_TERMS[term.name](text)) for text in words]
            if term.name in GUARD_TERMS:
                return guarded(term.name, corpus.items)
            if term.name in self.metrics:
                return next(score.each for score in scores[term.name] if term.score in {"", score.name})
            if term.name == STATEMENT or changes is None:
                return [0.0] * len(corpus.items)
            return [float(len(getattr(text, DRAFT_TERMS[term.name]))) for text in changes]

        return list(map(column, self.terms)), statistics

    def _has_statement(self) -> bool:
        return any(term.name == STATEMENT for term in self.terms)

    def _added(self, corpus: Corpus, columns: Sequence[Sequence[float | None]]) -> list[tuple[float, Span | None]]:
        """Return the reward that statements add to each item, and the span left without them."""
        kept = [number for number, term in enumerate(self.terms) if term.is_of_words]

        def values(of: Sequence[Sequence[float | None]]) -> list[float]:
            weighed = [[self.terms[number].weight * (value or 0.0) for value in of[number]] for number in kept]
            return list(map(math.fsum, zip(*weighed, strict=True)))

        parts = [statements.without_statements(item.candidate, item.references) for item in corpus.items]
        cut = [
            replace(item, candidate=item.candidate[start:end])
            for item, spans in zip(corpus.items, parts, strict=True)
            for start, end in spans
        ]
        if not (cut and kept):
            return [(0.0, None)] * len(corpus.items)
        # CIDEr weighs the cut captions as it does those of the corpus
        whole = self if self.weigh is None else self.weighted(self.weigh(corpus))
        remaining = iter(values(whole._columns(Corpus(tuple(cut)), None)[0]))
        added: list[tuple[float, Span | None]] = []
        for value, spans in zip(values(columns), parts, strict=True):
            least = min(((next(remaining), span) for span in spans), default=(value, None))
            added.append((value - least[0], least[1]) if least[0] < value else (0.0, None))
        return added

    def value(self, statistic: RewardStatistic) -> float | None:
        """Return an item's reward."""
        values = [
            (term.weight, 0.0 if value is None and term.score else value)
            for term, value in zip(self.terms, statistic.values, strict=True)
        ]
        products = [weight * value for weight, value in values if value is not None]
        return math.fsum(products) if len(products) == len(values) else None

    def total(self, statistics: Sequence[RewardStatistic]) -> tuple[Score, ...]:
        """Return ``Reward``, and each term without its weight, such as ``Reward_spice-g``."""
        return (
            Score.mean(NAME, [self.value(statistic) for statistic in statistics]),
            *[
                Score.mean(f"{NAME}_{term.key}", [statistic.values[index] for statistic in statistics])
                for index, term in enumerate(self.terms)
            ],
        )

    def credit(self, corpus: Corpus, statistics: Sequence[RewardStatistic]) -> list[Credit]:
        """Credit the reward to words: the weighted sum of each word's credit in the terms."""
        columns = []
        columns = [self._credit_of(term, corpus, statistics) for term in self.terms]
        weights = [term.weight for term in self.terms]
        return [Credit.mixed(list(zip(weights, row, strict=True))) for row in zip(*columns, strict=True)]

    def _credit_of(self, term: Term, corpus: Corpus, statistics: Sequence[RewardStatistic]) -> Sequence[Credit]:
        if term.name in TEXT_TERMS:
            return [_text_credit(term, item.candidate) for item in corpus.items]
        if term.name in GUARD_TERMS:
            return list(map(partial(_guard_credit, term), corpus.items, guarded(term.name, corpus.items)))
        if term.name == STATEMENT:
            of_terms = list(zip(*(each.values for each in statistics), strict=True))
            return list(map(_statement_credit, corpus.items, self._added(corpus, of_terms)))
        if term.score or term.name in DRAFT_TERMS or not self.metrics[term.name].credits:
            raise InputError(f"reward: {term.key} does not divide its score among words")
        index = list(self.metrics).index(term.name)
        return self.metrics[term.name].credit(corpus, [each.statistics[index] for each in statistics])

    def compact(self, statistic: RewardStatistic) -> RewardStatistic:
        """Return the values alone."""
        return statistic._replace(statistics=())

    @property
    def weigh(self) -> Weigh | None:
        """The function that counts a corpus's document frequencies; ``None`` where no term needs it."""
        return next((metric.weigh for metric in self.metrics.values() if metric.weigh is not None), None)

    def weighted(self, weights: Any) -> Reward:
        """Return the reward with the weights of a corpus in the metrics that need them."""
        made = {n: metric if metric.weigh is None else metric.weighted(weights) for n, metric in self.metrics.items()}
        return replace(self, metrics=made)


def _text_credit(term: Term, text: str) -> Credit:
    words = Words(text)
    parts = [
        (CreditPart(term.name, (text[start:end],), value), ((number,),))
        for number, ((start, end), value) in enumerate(zip(words.spans, TEXT_TERMS[term.name](words), strict=True))
        if value
    ]
    return words.credit(math.fsum(part.credit for part, _ in parts), parts)


def _guard_credit(term: Term, item: Item, value: float) -> Credit:
    """Divide a value of the whole caption among all its words."""
    return Words(item.candidate).credit(value, [(CreditPart(term.name, (), value), ())] if value else [])


def _statement_credit(item: Item, added: tuple[float, Span | None]) -> Credit:
    """Credit the reward of statements to their words."""
    words, (value, span) = Words(item.candidate), added
    if span is None:
        return words.credit(0.0, [])
    numbers = tuple(n for n, (start, end) in enumerate(words.spans) if start < span[0] or end > span[1])
    said = tuple(item.candidate[slice(*words.spans[number])] for number in numbers)
    return words.credit(value, [(CreditPart(STATEMENT, said, value), (numbers,))])


def reward_metric(text: str) -> Factory:
    """Return the factory of a reward, for ``more`` of :func:`spicegraph_scorer.score`.

    Raises:
        InputError: a term is unknown, appears twice, or has no weight.
    """
    parse_reward(text, METRICS)
    return partial(make_reward, text)


def _check_score(term: Term, scores: Sequence[str]) -> None:
    if term.score not in scores:
        raise InputError(f"reward: {term.name} has no score {term.score[:50]!a}; it has {', '.join(scores)}")


def make_reward(text: str, resources: Resources) -> Reward:
    """Make the reward that a text such as ``spice-g=1,cider=.1,length=-.01`` names."""
    terms = parse_reward(text, METRICS)
    names = dict.fromkeys(term.name for term in terms if term.name in METRICS)
    if not any(term.score for term in terms):  # no term is of a category
        resources = replace(resources, data=replace(resources.data, categories={}))
    metrics = make_metrics(list(names), resources) if names else {}
    for term in terms:
        if term.score:
            _check_score(term, [score.name for score in metrics[term.name].total(())])
    compares = any(term.name in DRAFT_TERMS for term in terms)
    return Reward(terms, metrics, Spice.of(replace(resources, evidence=True)) if compares else None)
