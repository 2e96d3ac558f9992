"""The bundled pipeline's spaCy parts, which spaCy finds by entry points: tokenizer, parser and lemmatizer."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec
import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from spicegraph_parser.caption_pipeline.lemmas import LEMMA_FILE, Lemmas
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES, analyse_sentences, cut_sentences, network_from
from spicegraph_parser.errors import DataError
from spicegraph_parser.ptb import Token, split_sentences, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spacy.vocab import Vocab

    from spicegraph_parser.caption_pipeline.network import Network

PARSER: Final = "spicegraph_caption_parser"
LEMMATIZER: Final = "spicegraph_caption_lemmatizer"
TOKENIZER: Final = "spicegraph.CaptionTokenizer.v1"
_TOKENS: Final = "spicegraph_ptb_tokens"
_LENGTHS: Final = "spicegraph_sentence_lengths"  # kept where a caption has several sentences
_MOST_LEMMAS: Final = 200_000  # pairs of form and tag whose lemma is kept


def ptb_tokens(doc: Doc) -> Sequence[Token]:
    """Return each token's PTB form and place in its caption; a doc of another tokenizer has its own tokens."""
    kept = doc.user_data.get(_TOKENS)
    if kept is None:
        return [Token(token.text, token.idx, token.idx + len(token)) for token in doc]
    return [Token(*token) for token in kept]


class CaptionTokenizer:
    """Splits captions as CoreNLP 3.6 does and marks where sentences start."""

    # The doc's words are the caption's own characters. White space at the ends or doubled is not kept, so offsets into
    # the caption come from ``ptb_tokens``, as do the PTB forms (``-LRB-`` for a bracket).

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab

    def __call__(self, text: str) -> Doc:
        """Tokenize one caption; one without tokens gives an empty doc."""
        tokens = tokenize(text, variant="spice")
        words = [text[start:end] for _, start, end in tokens]
        spaces = [here[2] < after[1] for here, after in itertools.pairwise(tokens)] + [False] * bool(tokens)
        doc = Doc(self.vocab, words=words, spaces=spaces)
        doc.user_data[_TOKENS] = tokens
        lengths = split_sentences(tokens)
        if len(lengths) > 1:
            doc.user_data[_LENGTHS] = lengths
            for start in itertools.accumulate(lengths[:-1], initial=0):
                doc[start].is_sent_start = True
        return doc

    def pipe(self, texts: Iterable[str], **_options: object) -> Iterator[Doc]:
        """Tokenize captions."""
        return map(self, texts)

    def to_bytes(self, **_options: object) -> bytes:
        """Return nothing: the tokenizer has only rules."""
        return b""

    def from_bytes(self, _data: bytes, **_options: object) -> Self:
        """Return itself: there is nothing to read."""
        return self

    def to_disk(self, _path: str | Path, **_options: object) -> None:
        """Write nothing."""

    def from_disk(self, _path: str | Path, **_options: object) -> Self:
        """Return itself: there is nothing to read."""
        return self


@registry.tokenizers(TOKENIZER)  # type: ignore[untyped-decorator]
def create_tokenizer() -> Callable[[Language], CaptionTokenizer]:
    """Return the factory with which spaCy makes a pipeline's tokenizer."""
    return lambda nlp: CaptionTokenizer(nlp.vocab)


class CaptionParser:
    """Sets tags, heads, labels and sentence starts; each sentence of the tokenizer becomes one tree."""

    def __init__(self, vocab: Vocab, name: str = PARSER) -> None:
        self.vocab = vocab
        self.name = name
        self._files: dict[str, bytes] = {}
        self._network: Network | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The dependency labels that it may set (``root`` is set as spaCy's ``ROOT``)."""
        return self._network.vocabulary.labels if self._network else ()

    def __call__(self, doc: Doc) -> Doc:
        """Parse one doc in place."""
        self._annotate([doc])
        return doc

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 2048) -> Iterator[Doc]:
        """Parse docs in place, a batch at a time."""
        stream = iter(docs)
        while batch := list(itertools.islice(stream, batch_size)):
            self._annotate(batch)
            yield from batch

    def _annotate(self, docs: Sequence[Doc]) -> None:
        if self._network is None:
            raise DataError(f"the component {self.name!r} has no network: load the pipeline from its folder")
        if not any(map(len, docs)):
            return
        forms = itertools.chain.from_iterable(map(_forms, docs))
        lengths = [length for doc in docs for length in _sentence_lengths(doc)]
        tags, heads, labels = analyse_sentences(self._network, forms, lengths)
        positions = np.concatenate([np.arange(1, length + 1) for length in lengths])
        offsets = np.where(heads == 0, 0, heads - positions).astype(np.int64).view(np.uint64)
        columns = np.stack([self._tag_ids[tags], offsets, self._label_ids[labels]], axis=1)
        bounds = itertools.accumulate(map(len, docs), initial=0)
        for doc, (start, end) in zip(docs, itertools.pairwise(bounds), strict=True):
            if end > start:
                doc.from_array(["TAG", "HEAD", "DEP"], columns[start:end])  # type: ignore[arg-type]  # its stub knows Ints2d only

    def _load(self, files: dict[str, bytes]) -> Self:
        """Take on the network of the given files, and give its tags and labels numbers in the vocabulary."""
        self._network = network_from(files)
        names = self._network.vocabulary
        add = self.vocab.strings.add
        self._tag_ids = np.array([add(tag) for tag in names.tags], dtype=np.uint64)
        self._label_ids = np.array([add("ROOT" if name == "root" else name) for name in names.labels], dtype=np.uint64)
        self._files = files
        return self

    def to_disk(self, path: str | Path, **_options: object) -> None:
        """Write the network's files to a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            (folder / name).write_bytes(data)

    def from_disk(self, path: str | Path, **_options: object) -> Self:
        """Read the network's files from a folder."""
        return self._load({name: (Path(path) / name).read_bytes() for name in NETWORK_FILES})

    def to_bytes(self, **_options: object) -> bytes:
        """Return the network's files as one string of bytes."""
        return msgspec.msgpack.encode(self._files)

    def from_bytes(self, data: bytes, **_options: object) -> Self:
        """Load the network from the bytes of ``to_bytes``."""
        return self._load(msgspec.msgpack.decode(data, type=dict[str, bytes]))


class CaptionLemmatizer:
    """Sets lower-cased lemmas from PTB forms and tags."""

    def __init__(self, vocab: Vocab, name: str = LEMMATIZER) -> None:
        self.vocab = vocab
        self.name = name
        self._lemmas = Lemmas({})
        self._known: dict[tuple[str, int], int] = {}

    def __call__(self, doc: Doc) -> Doc:
        """Lemmatize one tagged doc in place."""
        known = self._known
        for token, form in zip(doc, _forms(doc), strict=True):
            key = form, token.tag
            lemma = known.get(key)
            token.lemma = self._add(key) if lemma is None else lemma
        return doc

    def pipe(self, docs: Iterable[Doc], **_options: object) -> Iterator[Doc]:
        """Lemmatize docs in place."""
        return map(self, docs)

    def _add(self, key: tuple[str, int]) -> int:
        form, tag = key
        lemma: int = self.vocab.strings.add(self._lemmas.lemma(form, self.vocab.strings[tag]))
        if len(self._known) < _MOST_LEMMAS:
            self._known[key] = lemma
        return lemma

    def to_disk(self, path: str | Path, **_options: object) -> None:
        """Write the table to a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LEMMA_FILE).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path, **_options: object) -> Self:
        """Read the table from a folder."""
        return self.from_bytes((Path(path) / LEMMA_FILE).read_bytes())

    def to_bytes(self, **_options: object) -> bytes:
        """Return the table as JSON."""
        text = json.dumps(self._lemmas.exceptions, ensure_ascii=False, indent=0, sort_keys=True)
        return text.encode() + b"\n"

    def from_bytes(self, data: bytes, **_options: object) -> Self:
        """Load the lemma table from the bytes of ``to_bytes``."""
        self._lemmas = Lemmas.decode(data)
        self._known.clear()
        return self


@Language.factory(PARSER, assigns=["token.tag", "token.head", "token.dep", "doc.sents"])
def create_parser(nlp: Language, name: str) -> CaptionParser:
    """Make the parser; its network comes with ``from_disk``."""
    return CaptionParser(nlp.vocab, name)


@Language.factory(LEMMATIZER, requires=["token.tag"], assigns=["token.lemma"])
def create_lemmatizer(nlp: Language, name: str) -> CaptionLemmatizer:
    """Make the lemmatizer; its table comes with ``from_disk``."""
    return CaptionLemmatizer(nlp.vocab, name)


def _forms(doc: Doc) -> list[str]:
    """Return the PTB forms of a doc's tokens."""
    kept = doc.user_data.get(_TOKENS)
    return [token.text for token in doc] if kept is None else [token[0] for token in kept]


def _sentence_lengths(doc: Doc) -> Sequence[int]:
    """Return the lengths of a doc's sentences; a doc without sentence starts is one."""
    if not len(doc):
        return ()
    lengths = doc.user_data.get(_LENGTHS)
    if lengths is None:
        is_marked = _TOKENS not in doc.user_data
        starts = [token.i for token in doc if token.i and token.is_sent_start] if is_marked else []
        lengths = [end - start for start, end in itertools.pairwise([0, *starts, len(doc)])]
    return cut_sentences(_forms(doc), lengths)
