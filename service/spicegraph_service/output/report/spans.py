"""Facts from a pipeline, with the places of the words remembered for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spicegraph_parser.pipelines import CaptionPipeline
from spicegraph_service.engines.local import PackedSource, unpacked
from spicegraph_service.output.report.data import Mention
from spicegraph_service.store.parses import StoredParse, stored_parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Places:
    """A source of facts that keeps, for every caption, where each word stands in it, if that is known.

    Captions are parsed once for the score, or not at all where a cache has their parses; the report's marks come
    from the same parses.
    """

    source: FactSource
    words: dict[str, tuple[Span, ...]] = field(default_factory=dict, repr=False)

    @property
    def signature(self) -> str:
        """The signature of what parses."""
        return self.source.signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        wanted = list(texts)
        for text, parse in zip(wanted, _parses(self.source, wanted), strict=True):
            self.words[text] = parse.spans
            yield parse.facts


def _parses(source: FactSource, texts: Sequence[str]) -> Iterator[StoredParse]:
    """Yield the parses of captions; of what gives facts alone, without places."""
    if isinstance(source, CaptionPipeline):
        return map(stored_parse, source.captions(texts))
    if isinstance(source, PackedSource):
        return unpacked(source.packed(texts))
    return (StoredParse(facts, ()) for facts in source.facts(texts))


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
