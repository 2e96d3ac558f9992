"""Facts from a pipeline, with the places of the words remembered for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spicegraph_service.report.data import Mention

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.pipelines import CaptionPipeline
    from spicegraph_parser.rules import Fact

__all__ = ["Places", "mentions"]

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Places:
    """A source of facts that keeps, for every caption it parses, where each word stands in it.

    Captions are parsed once for the score; the report's marks come from that same parse.
    """

    pipeline: CaptionPipeline
    words: dict[str, tuple[Span, ...]] = field(default_factory=dict, repr=False)

    @property
    def signature(self) -> str:
        """The pipeline's signature."""
        return self.pipeline.signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        for caption in self.pipeline.captions(texts):
            self.words[caption.text] = tuple(
                (word.start, word.end) for parse in caption.sentences for word in parse.words
            )
            yield caption.facts


def mentions(
    scene_tuple: SceneTuple, captions: Sequence[str], places: dict[str, tuple[Span, ...]]
) -> tuple[Mention, ...]:
    """Return where a tuple stands in the captions of its side; of an object only its own words."""
    found: dict[tuple[int, str, tuple[Span, ...]], Mention] = {}
    size = len(scene_tuple.concepts)
    for caption, fact in scene_tuple.evidence:
        words = places.get(captions[caption], ())
        tokens: list[int] = []
        for slot, positions in enumerate(fact.tokens):
            own = fact.words[slot] in scene_tuple.concepts[0].strings if size == 1 else True
            tokens += positions if own else ()
        spans = tuple(sorted({words[t] for t in tokens if t < len(words) and words[t][0] >= 0}))
        found.setdefault((caption, fact.rule if size > 1 else "", spans), Mention(caption, fact.rule, spans))
    return tuple(found.values())
