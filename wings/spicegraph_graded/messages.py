"""Explanations of the wing's metrics as messages of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_graded.spice_g.verdicts import CONTRADICTED, SUPPORTED, UNMENTIONED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spicegraph_graded.chair import ChairExplanation
    from spicegraph_graded.spice_g.explain import GradedExplanation, GradedTuple
    from spicegraph_graded.spice_g.verdicts import Verdicts


def add_chair(result: scores_pb2.ItemResult, metric: str, explanation: ChairExplanation) -> None:
    """Add the objects that a candidate mentions, and those that it misses."""
    chair = result.chair_matches.add(metric=metric, missing=explanation.missing)
    for mention in explanation.mentions:
        (span,) = _spans([mention.span])
        about = chair.mentions.add(object=mention.object, words=mention.words, span=span)
        about.hallucinated = mention.hallucinated


def graded_message(metric: str, explanation: GradedExplanation, *, verdicts: bool = True) -> scores_pb2.GradedMatch:
    """Return what supports the tuples of SPICE-G, what would raise its score and, where asked, what is wrong."""
    graded = scores_pb2.GradedMatch(
        metric=metric,
        candidate=map(_graded_tuple, explanation.candidate),
        reference=map(_graded_tuple, explanation.reference),
        order=explanation.order,
    )
    for change in explanation.changes:
        by = None if change.by is None else scene_graph_pb2.SceneTuple(words=change.by)
        changed = scene_graph_pb2.SceneTuple(words=change.words)
        graded.changes.add(action=change.action, tuple=changed, by=by, score=change.score, gain=change.gain)
    if verdicts:
        graded.verdicts.CopyFrom(_verdicts(explanation.verdicts))
    return graded


def _graded_tuple(graded: GradedTuple) -> scores_pb2.GradedTuple:
    return scores_pb2.GradedTuple(
        tuple=scene_graph_pb2.SceneTuple(words=graded.words),
        share=graded.share,
        support=graded.support,
        partner=graded.partner,
        slots=[scores_pb2.SlotSimilarity(value=value) for value in graded.slots],
        denied_by=graded.denied_by,
    )


_VERDICTS: Final[Mapping[str, scores_pb2.Verdict.ValueType]] = {
    SUPPORTED: scores_pb2.VERDICT_SUPPORTED,
    CONTRADICTED: scores_pb2.VERDICT_CONTRADICTED,
    UNMENTIONED: scores_pb2.VERDICT_UNMENTIONED,
}


def _verdicts(verdicts: Verdicts) -> scores_pb2.Verdicts:
    return scores_pb2.Verdicts(
        words=[
            scores_pb2.WordVerdict(
                word=word.word,
                spans=_spans(word.spans),
                verdict=_VERDICTS[word.verdict],
                probability=word.probability,
                support=word.support,
                partner=word.partner,
                instead=word.instead,
            )
            for word in verdicts.words
        ],
        tuples=[
            scores_pb2.TupleVerdict(
                tuple=scene_graph_pb2.SceneTuple(words=verdict.words),
                verdict=_VERDICTS[verdict.verdict],
                probability=verdict.probability,
            )
            for verdict in verdicts.tuples
        ],
        threshold=verdicts.threshold,
    )


def _spans(spans: Iterable[tuple[int, int]]) -> list[scene_graph_pb2.TextSpan]:
    return [scene_graph_pb2.TextSpan(start=start, end=end) for start, end in spans]
