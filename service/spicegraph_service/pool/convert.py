"""From the library's values to the messages of the contract. Runs in workers; computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import msgspec

from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_parser.spice.extraction import CERTAINTY, ApartReason
from spicegraph_scorer.core.categories import CategoryScore, Counts, micro_shares
from spicegraph_scorer.errors import KINDS, ErrorSide, explain
from spicegraph_scorer.metrics.spice.match import Match

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.graph import Evidence, SceneGraph, SceneTuple
    from spicegraph_parser.spice.index import Concept
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.categories import CategoryMeans
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Run
    from spicegraph_scorer.errors import Finding
    from spicegraph_service.store import StoredParse


def caption_message(text: str, parse: StoredParse, graph: SceneGraph) -> scene_graph_pb2.ParsedCaption:
    """Return a parsed caption with its facts and its graph."""
    places = {id(fact): index for index, fact in enumerate(parse.facts)}

    def facts(evidence: Iterable[Evidence]) -> list[int]:
        return list(dict.fromkeys(places[id(item.fact)] for item in evidence))

    drawn = scene_graph_pb2.SceneGraph()
    for node in graph.objects:
        drawn.objects.add(concept=_concept(node.concept), facts=facts(node.evidence))
    for a in graph.attributes:
        drawn.attributes.add(object=a.object, concept=_concept(a.concept), facts=facts(a.evidence))
    for r in graph.relations:
        concept = _concept(r.concept)
        drawn.relations.add(subject=r.subject, object=r.object, concept=concept, facts=facts(r.evidence))
    return scene_graph_pb2.ParsedCaption(
        text=text,
        facts=[_fact(fact, parse.spans) for fact in parse.drawn],
        graph=drawn,
        tuples=[_tuple(scene_tuple) for scene_tuple in graph.tuples()],
        apart=[
            scene_graph_pb2.ApartFact(fact=_fact(fact, parse.spans), certainty=CERTAINTY[ApartReason(fact.rule)])
            for fact in parse.apart
        ],
    )


SPICE_CATEGORIES: Final[Mapping[str, scores_pb2.SpiceCategory.ValueType]] = {
    name.removeprefix("SPICE_CATEGORY_").capitalize(): number for name, number in scores_pb2.SpiceCategory.items()
}


def breakdown_message(metric: str, categories: Mapping[str, CategoryScore]) -> scores_pb2.CategoryBreakdown:
    """Return precision, recall and F1 of every category of an item, with counts where the metric counts."""
    breakdown = scores_pb2.CategoryBreakdown(metric=metric)
    for name, score in categories.items():
        counts = score.counts or Counts()
        breakdown.categories.add(
            category=name,
            spice_category=SPICE_CATEGORIES.get(name, scores_pb2.SPICE_CATEGORY_UNSPECIFIED),
            precision=score.pr,
            recall=score.re,
            f1=score.f,
            matched=counts.matched,
            candidate=counts.candidate,
            reference=counts.reference,
        )
    return breakdown


@runtime_checkable
class WithMessage(Protocol):
    """An explanation that the contract has a message for."""

    def add_to(self, result: scores_pb2.ItemResult, metric: str, *, verdicts: bool) -> None:
        """Add the explanation to an item's result, with its verdicts where asked."""


def add_explanation(result: scores_pb2.ItemResult, metric: str, explanation: object, *, verdicts: bool) -> None:
    """Add a metric's explanation, as its own message or JSON; ``verdicts``: with verdicts."""
    if isinstance(explanation, Match):
        result.matches.add(
            metric=metric,
            candidate=_matched(explanation.candidate, explanation.candidate_partners),
            reference=_matched(explanation.reference, explanation.reference_partners),
        )
    elif isinstance(explanation, WithMessage):
        explanation.add_to(result, metric, verdicts=verdicts)
    elif callable(to_dict := getattr(explanation, "to_dict", None)):
        result.explanations.add(metric=metric, json=msgspec.json.encode(to_dict()).decode())


def errors_message(
    metric: str, item: Item, match: Match, spans: Mapping[str, tuple[tuple[int, int], ...]]
) -> scores_pb2.ItemErrors:
    """Return the error of each unmatched tuple; ``item`` as parsed, ``spans`` of texts' words."""
    # Imported here: a worker starts without what draws reports.
    from spicegraph_service.report.images import mentions  # noqa: PLC0415

    errors = scores_pb2.ItemErrors(metric=metric)
    for finding in explain(match):
        kind = KINDS[finding.kind]
        said, known = _pair(match, finding)
        partner = known if kind.side is ErrorSide.INVENTED else said
        message = errors.findings.add(
            kind=_KINDS[finding.kind],
            side=_SIDES[kind.side],
            category=SPICE_CATEGORIES[kind.category],
            words=finding.words,
            tuple=finding.tuple,
            partner=finding.counterpart,
            partner_words=() if partner is None else partner.strings,
            near=str(finding.near or ""),
            agreeing=finding.agreeing,
            primary=kind.primary,
        )
        for mention in () if said is None else mentions(said, (item.candidate,), spans):
            message.spans.extend(_spans(mention.spans))
        for mention in () if known is None else mentions(known, item.references, spans):
            for span in _spans(mention.spans):
                message.reference_spans.add(reference=mention.caption, span=span)
    return errors


def _pair(match: Match, finding: Finding) -> tuple[SceneTuple | None, SceneTuple | None]:
    """Return an error's candidate and reference tuples; None where there is no counterpart."""
    counterpart = finding.counterpart
    if KINDS[finding.kind].side is ErrorSide.INVENTED:
        return match.candidate[finding.tuple], None if counterpart is None else match.reference[counterpart]
    return None if counterpart is None else match.candidate[counterpart], match.reference[finding.tuple]


def _spans(spans: Iterable[tuple[int, int]]) -> list[scene_graph_pb2.TextSpan]:
    return [scene_graph_pb2.TextSpan(start=start, end=end) for start, end in spans]


_KINDS: Final = {name: scores_pb2.ErrorKind.Value(f"ERROR_KIND_{name.upper()}") for name in KINDS}
_SIDES: Final = {side: scores_pb2.ErrorSide.Value(f"ERROR_SIDE_{side.name}") for side in ErrorSide}


def credit_message(metric: str, credit: Credit) -> scores_pb2.Credit:
    """Return which words earned a score."""
    return scores_pb2.Credit(
        metric=metric,
        words=[
            scores_pb2.WordCredit(span=scene_graph_pb2.TextSpan(start=start, end=end), credit=value)
            for _, start, end, value in credit.words
        ],
        parts=[scores_pb2.CreditPart(kind=kind, words=words, credit=value) for kind, words, value in credit.parts],
    )


def corpus_message(item_count: int, runs: Sequence[Run], *, categories: bool = False) -> scores_pb2.CorpusResult:
    """Return the corpus scores, by category if asked; an undefined score has no value."""
    corpus = scores_pb2.CorpusResult(
        item_count=item_count,
        empty_graph_count=next(filter(None, map(_empty_graphs, runs)), 0),
        scores=[scores_pb2.Score(name=score.name, value=score.value) for run in runs for score in run.scores],
        signatures=[scores_pb2.MetricSignature(metric=run.name, fields=run.signature) for run in runs],
    )
    ends = {bound.name: scores_pb2.Interval(low=bound.low, high=bound.high) for run in runs for bound in run.intervals}
    for score in corpus.scores if ends else ():
        score.interval.CopyFrom(ends[score.name])
    for run in runs if categories else ():
        if means := run.categories():
            # The scores of a run are those of its categories, in their order.
            bounds = [ends.get(score.name) for score in run.scores]
            corpus.breakdowns.add(metric=run.name, categories=map(_corpus_category, means.items(), bounds))
    return corpus


def _empty_graphs(run: Run) -> int:
    """Return how many candidates, empty ones among them, have no graph."""
    return sum(candidate for candidate, _ in map(run.is_empty, run.statistics))


def _corpus_category(
    named: tuple[str, CategoryMeans], interval: scores_pb2.Interval | None
) -> scores_pb2.CorpusCategory:
    name, means = named
    category = scores_pb2.CorpusCategory(
        category=name,
        spice_category=SPICE_CATEGORIES.get(name, scores_pb2.SPICE_CATEGORY_UNSPECIFIED),
        f1=means.f,
        precision=means.pr,
        recall=means.re,
        item_count=means.items,
        interval=interval,
    )
    if (sums := means.micro) is not None:
        shares = micro_shares(sums)
        category.sums.CopyFrom(
            scores_pb2.CategorySums(
                matched=sums.matched,
                invented=sums.false_positives,
                missed=sums.false_negatives,
                precision=shares["pr"],
                recall=shares["re"],
                f1=shares["f"],
            )
        )
    return category


def _fact(fact: Fact, spans: Sequence[tuple[int, int]]) -> scene_graph_pb2.Fact:
    message = scene_graph_pb2.Fact(rule=fact.rule)
    for word, tokens in zip(fact.words, fact.tokens, strict=True):
        slot = message.slots.add(word=word, tokens=tokens)
        for start, end in (spans[token] for token in tokens):
            if start >= 0:
                slot.spans.add(start=start, end=end)
    return message


def _concept(concept: Concept) -> scene_graph_pb2.Concept:
    return scene_graph_pb2.Concept(strings=concept.printed)


def _tuple(scene_tuple: SceneTuple) -> scene_graph_pb2.SceneTuple:
    return scene_graph_pb2.SceneTuple(words=scene_tuple.strings)


def _matched(tuples: Sequence[SceneTuple], partners: Sequence[Sequence[int]]) -> Iterator[scores_pb2.MatchedTuple]:
    for scene_tuple, indices in zip(tuples, partners, strict=True):
        yield scores_pb2.MatchedTuple(tuple=_tuple(scene_tuple), partners=indices)
