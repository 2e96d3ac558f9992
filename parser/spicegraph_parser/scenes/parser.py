"""The scene parser: from texts to facts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.analyser import read_tokens
from spicegraph_parser.caption_pipeline.lemmas import kind_of, rule_lemma
from spicegraph_parser.extract import ParsedCaption
from spicegraph_parser.parse import Caption, Parse, normalise
from spicegraph_parser.scenes.discourse import facts_of
from spicegraph_parser.scenes.network import SceneNetwork, load_network, stems
from spicegraph_parser.scenes.sentence import sentence_graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from spicegraph_parser.caption_pipeline.analyser import ReadTokens
    from spicegraph_parser.scenes.network import Labels

_PLAIN: Final = {"he": "man", "him": "man", "she": "woman", "they": "people", "them": "people", "it": "object"}
"""What the network reads for a pronoun that a sentence starts with, which short captions seldom do."""

_MOST_LEMMAS: Final = 100_000
_BATCH: Final = 1024  # captions that are labelled together


@dataclass(frozen=True, slots=True)
class SceneParser:
    """Parses captions to scene graphs as people draw them.

    The network of ``folder`` is read when the first caption comes.
    """

    folder: Path

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """Return the words and tags of captions; there are no edges."""
        return (Caption(found.text, found.sentences) for found in self.captions(texts, batch_size=batch_size))

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """Parse captions or descriptions, in order and in batches.

        Raises:
            LimitError: a text is longer than ``MAX_CAPTION_LENGTH``.
            DataError: the network can't be read.
        """
        network = load_network(self.folder)
        stream = iter(texts)
        done = 0
        while batch := list(islice(stream, batch_size or _BATCH)):
            normal = [normalise(text, index) for index, text in enumerate(batch, done)]
            yield from _parsed(network, batch, normal)
            done += len(batch)


def _parsed(network: SceneNetwork, texts: Sequence[str], normal: Sequence[str]) -> Iterator[ParsedCaption]:
    read = list(map(read_tokens, texts, normal))
    lengths = [length for tokens in read for length in tokens.lengths]
    forms = [form for tokens in read for form in tokens.ptb]
    for start in itertools.accumulate(lengths[:-1], initial=0) if lengths else ():
        forms[start] = _PLAIN.get(forms[start].lower(), forms[start])
    labels = iter(network.label(forms, lengths))
    for text, tokens in zip(texts, read, strict=True):
        yield _caption(network, text, tokens, [next(labels) for _ in tokens.lengths])


def _caption(network: SceneNetwork, text: str, tokens: ReadTokens, labels: Sequence[Labels]) -> ParsedCaption:
    graphs = []
    parses = []
    start = 0
    for own, length in zip(labels, tokens.lengths, strict=True):
        inner = slice(start, start + length)
        start += length
        forms = tokens.forms[inner]
        graphs.append(sentence_graph(own, forms, network.names, list(map(stems, forms))))
        spans = tokens.spans if isinstance(tokens.spans, str) else tokens.spans[inner]
        lemmas = list(map(_lemma, forms, own.tags))
        parses.append(Parse.from_columns(forms, own.tags, lemmas, (), spans))
    found = facts_of(graphs, network.names)
    return ParsedCaption(text, tuple(parses), found.seen, found.apart)


@lru_cache(maxsize=_MOST_LEMMAS)
def _lemma(form: str, tag: str) -> str:
    return rule_lemma(form.lower(), kind_of(tag))
