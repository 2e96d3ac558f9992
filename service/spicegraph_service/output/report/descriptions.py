"""Long captions in a report: by sentence, and by object with all that is said of it."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from spicegraph_parser.caption_pipeline.analyser import read_tokens
from spicegraph_parser.parse import find_spans, normalise
from spicegraph_service.output.report.data import DescriptionView, ObjectView, SentenceView, SideView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.metrics.spice.match import Match
    from spicegraph_service.output.report.data import TupleView


def description_view(
    item: Item, match: Match, candidate: Sequence[TupleView], reference: Sequence[TupleView]
) -> DescriptionView | None:
    """Return both sides by sentence and by object; ``None`` where no caption of the item has several sentences.

    Args:
        item: the caption and its references.
        match: of their graphs.
        candidate: the views of the match's candidate tuples, in its order.
        reference: those of its reference tuples.
    """
    sides = ((item.candidate,), match.candidate, candidate), (item.references, match.reference, reference)
    if all(len(sentence_spans(text)) < 2 for texts, _, _ in sides for text in texts):
        return None
    return DescriptionView(*[SideView(_sentences(texts, views), _objects(graph)) for texts, graph, views in sides])


@lru_cache(maxsize=1024)  # of the references, which all systems share
def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the sentences of a caption stand in it, in code points.

    Example:
        >>> sentence_spans("A dog barks. It is brown.")
        ((0, 12), (13, 25))
    """
    read = read_tokens(text, normalise(text))
    spans = list(find_spans(read.forms, text)) if isinstance(read.spans, str) else list(read.spans)
    found = []
    for first, behind in pairwise(accumulate(read.lengths, initial=0)):
        known = [span for span in spans[first:behind] if span[0] >= 0]
        if known:
            found.append((known[0][0], known[-1][1]))
    return tuple(found)


def _sentences(texts: Sequence[str], views: Sequence[TupleView]) -> tuple[tuple[SentenceView, ...], ...]:
    """Return the sentences of each text with the tuples that have a word there."""
    said: defaultdict[tuple[int, int], dict[int, None]] = defaultdict(dict)
    for index, view in enumerate(views):
        for mention in view.mentions:
            for start, _ in mention.spans:
                for place, (first, end) in enumerate(sentence_spans(texts[mention.caption])):
                    if first <= start < end:
                        said[mention.caption, place][index] = None
    return tuple(
        tuple(
            SentenceView(
                start, end, tuple(found := said[caption, place]), sum(bool(views[index].partners) for index in found)
            )
            for place, (start, end) in enumerate(sentence_spans(text))
        )
        for caption, text in enumerate(texts)
    )


def _objects(graph: Sequence[SceneTuple]) -> tuple[ObjectView, ...]:
    """Return every object with the tuples about it, those of which most is said first."""
    about: dict[int, defaultdict[Concept, list[int]]] = {2: defaultdict(list), 3: defaultdict(list)}
    for index, each in enumerate(graph):
        if len(each.concepts) > 1:
            for concept in dict.fromkeys((each.concepts[0], *each.concepts[2:])):
                about[len(each.concepts)][concept].append(index)
    views = [
        ObjectView(index, *(tuple(about[length][each.concepts[0]]) for length in (2, 3)))
        for index, each in enumerate(graph)
        if len(each.concepts) == 1
    ]
    return tuple(sorted(views, key=_size, reverse=True))


def _size(view: ObjectView) -> int:
    return len(view.attributes) + len(view.relations)
