"""The scene parser: captions and descriptions to scene graphs as people draw them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.encoder import MakeProduct, float_product
from spicegraph_parser.caption_pipeline.lemmas import bundled_lemmas
from spicegraph_parser.scenes.facts import facts_of
from spicegraph_parser.scenes.network import Names, load_network
from spicegraph_parser.scenes.passes import Change, changes, run
from spicegraph_parser.scenes.reading import ReadText, read_texts
from spicegraph_parser.scenes.sentences import sentence_graph
from spicegraph_parser.spice.extraction import ParsedCaption
from spicegraph_parser.spice.parse import Caption, Parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

_MOST_LEMMAS: Final = 100_000
_BATCH: Final = 1024  # captions that are labelled together


@dataclass(frozen=True, slots=True)
class SceneParser:
    """Parses captions to scene graphs as people draw them; reads its network with the first caption.

    ``without`` names passes that are left out, to see what each brings.
    """

    folder: Path
    product: MakeProduct = float_product
    without: frozenset[str] = frozenset()

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """Return the words and tags of captions; there are no edges."""
        return (Caption(caption.text, caption.sentences) for caption in self.captions(texts, batch_size=batch_size))

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """Parse captions or descriptions, in order and in batches.

        Raises:
            LimitError: a text is longer than ``MAX_CAPTION_LENGTH``.
            DataError: the network can't be read.
        """
        for names, text in self._read(texts, batch_size or _BATCH):
            yield _parsed(text, names, self.without)

    def trace(self, texts: Iterable[str]) -> Iterator[tuple[str, tuple[Change, ...]]]:
        """Yield each sentence of texts with what the passes change of it, in order."""
        for _, text in self._read(texts, _BATCH):
            for sentence, _ in text.sentences:
                yield " ".join(sentence.words), tuple(changes(sentence))

    def _read(self, texts: Iterable[str], batch_size: int) -> Iterator[tuple[Names, ReadText]]:
        network = load_network(self.folder, self.product)
        stream = iter(texts)
        done = 0
        while batch := list(islice(stream, batch_size)):
            yield from ((network.names, text) for text in read_texts(network, self.product, batch, done))
            done += len(batch)


def _parsed(text: ReadText, names: Names, without: Collection[str]) -> ParsedCaption:
    """Return the facts of a text, by the passes over its sentences and the rules over the text."""
    graphs, parses = [], []
    start = 0
    for sentence, values in text.sentences:
        decided, rules = run(sentence, without)
        graphs.append(sentence_graph(decided, rules, values))
        inner = slice(start, start + len(sentence.words))
        start = inner.stop
        forms, tags = text.tokens.forms[inner], decided.labels.tags
        spans = text.tokens.spans if isinstance(text.tokens.spans, str) else text.tokens.spans[inner]
        parses.append(Parse.from_columns(forms, tags, list(map(_lemma, forms, tags)), (), spans))
    facts = facts_of(graphs, names, is_long=text.is_long)
    return ParsedCaption(text.text, tuple(parses), facts.seen, facts.apart, facts.entities, is_scene=True)


@lru_cache(maxsize=_MOST_LEMMAS)
def _lemma(form: str, tag: str) -> str:
    return bundled_lemmas().lemma(form, tag)
