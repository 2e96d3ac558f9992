"""The bundled pipeline without spaCy: from texts to the columns of their parses, the same as the components' ones."""

from __future__ import annotations

from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.caption_pipeline.encoder import MakeProduct, float_product
from spicegraph_parser.caption_pipeline.lemmas import Lemmas
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES, analyse_sentences, cut_sentences, network_from
from spicegraph_parser.errors import DataError
from spicegraph_parser.ptb import plain_words, split_sentences, tokenize
from spicegraph_parser.spice.parse import Caption, Parse, Span, find_spans, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from spicegraph_parser.caption_pipeline.network import Network
    from spicegraph_parser.spice.parse import Arc


class CaptionAnalyser:
    """Tokenizer, network and lemmas of the bundled pipeline."""

    def __init__(self, network: Network, lemmas: Lemmas) -> None:
        self._network = network
        self._lemmas = _LemmaCache(lemmas)
        # Arrays of strings: one index operation names all words of a batch.
        self._tags = np.array(network.vocabulary.tags, dtype=object)
        self._labels = np.array(network.vocabulary.labels, dtype=object)

    @classmethod
    def from_disk(cls, folder: Path, product: MakeProduct = float_product) -> Self:
        """Read the pipeline's files; ``product`` makes the network's large products."""
        try:
            files = {name: (folder / "parser" / name).read_bytes() for name in NETWORK_FILES}
        except OSError as error:
            raise DataError(f"the caption pipeline is damaged ({error}); install the package again") from error
        return cls(network_from(files, product), Lemmas.read(folder))

    def captions(self, texts: Sequence[str], normal: Sequence[str]) -> list[Caption]:
        """Parse a batch of captions; ``normal``: their texts from :func:`.normalise`."""
        read = list(map(read_tokens, texts, normal))
        ptb = list(chain.from_iterable([tokens.ptb for tokens in read]))
        if not ptb:
            return [Caption(text, ()) for text in texts]
        lengths = [length for tokens in read for length in tokens.lengths]
        tags, lemmas, arcs = self._columns(ptb, lengths)
        captions = []
        end = 0
        for text, tokens in zip(texts, read, strict=True):
            sentences = []
            first = end
            for length in tokens.lengths:
                start, end = end, end + length
                inner = slice(start - first, end - first)
                spans = tokens.spans if isinstance(tokens.spans, str) else tokens.spans[inner]
                columns = tokens.forms[inner], tags[start:end], lemmas[start:end], arcs[start:end]
                sentences.append(Parse.from_columns(*columns, spans))
            captions.append(Caption(text, tuple(sentences)))
        return captions

    def parses(self, sentences: Sequence[Sequence[str]]) -> Iterator[Parse]:
        """Yield the parses of sentences that are read already, from the PTB forms of their words."""
        ptb = list(chain.from_iterable(sentences))
        tags, lemmas, arcs = self._columns(ptb, list(map(len, sentences))) if ptb else ((), (), ())
        end = 0
        for forms in sentences:
            start, end = end, end + len(forms)
            yield Parse.from_columns(forms, tags[start:end], lemmas[start:end], arcs[start:end], ())

    def _columns(
        self, ptb: Sequence[str], lengths: Sequence[int]
    ) -> tuple[Sequence[str], Sequence[str], Sequence[Arc]]:
        """Return the tags, lemmas and edges of the words of sentences."""
        tag_numbers, heads, labels = analyse_sentences(self._network, ptb, lengths)
        tags = tuple(self._tags[tag_numbers].tolist())
        positions = chain.from_iterable([range(1, length + 1) for length in lengths])
        arcs = tuple(zip(self._labels[labels].tolist(), heads.tolist(), positions, strict=True))
        return tags, self._lemmas.of(ptb, tags), arcs


@cache
def load_analyser(product: MakeProduct = float_product) -> CaptionAnalyser:
    """Return the bundled pipeline, read once for each way to make its products."""
    return CaptionAnalyser.from_disk(pipeline_path(), product)


class _LemmaCache(dict[tuple[str, str], str]):
    """The lemmas of forms and tags that were asked for, of up to some 200,000 pairs."""

    def __init__(self, lemmas: Lemmas) -> None:
        super().__init__()
        self._lemmas = lemmas

    def of(self, forms: Iterable[str], tags: Iterable[str]) -> tuple[str, ...]:
        if len(self) > 200_000:
            self.clear()
        return tuple(map(self.__getitem__, zip(forms, tags, strict=True)))

    def __missing__(self, key: tuple[str, str]) -> str:
        lemma = self[key] = self._lemmas.lemma(*key)
        return lemma


class ReadTokens(NamedTuple):
    """A caption's tokens."""

    ptb: Sequence[str]  # forms
    forms: Sequence[str]  # their characters in the caption
    lengths: Sequence[int]  # of the sentences, in words
    spans: Sequence[Span] | str  # where they stand, or the text in which they can be found


def _read_plain(words: list[str], text: str) -> ReadTokens:
    """Return the tokens of a caption that white space separates; a full stop ends a sentence."""
    ends = [number for number, word in enumerate(words, 1) if word == "."] if "." in words[:-1] else []
    bounds = dict.fromkeys([0, *ends, len(words)])
    lengths = cut_sentences(words, [end - start for start, end in pairwise(bounds)])
    return ReadTokens(words, words, lengths, text if len(lengths) < 2 else list(find_spans(words, text)))


def read_tokens(text: str, normal: str) -> ReadTokens:
    """Return the tokens of a caption; ``normal``: its text from :func:`.normalise`."""
    words = plain_words(normal)
    if words is not None:
        return _read_plain(words, text)
    tokens = tokenize(normal, variant="spice")
    forms = [normal[start:end] for _, start, end in tokens]
    spans = [(start, end) for _, start, end in tokens]
    if text != normal:
        spans = list(find_spans(forms, without_surrogates(text)))
    ptb = [token.text for token in tokens]
    return ReadTokens(ptb, forms, cut_sentences(ptb, split_sentences(tokens)), spans)
