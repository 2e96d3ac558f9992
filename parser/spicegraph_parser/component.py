"""The spaCy component ``scene_graph``: the scene graph of a document, and of each span in it, as ``._.scene_graph``.

It reads what a pipeline before it has parsed. Facts are kept in the document's user data as plain lists, so that they
go through ``DocBin``, processes and pickle. A parsed document that no component has seen, or whose words were
joined since, is read when it is asked.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from spicegraph_parser.errors import InputError
from spicegraph_parser.fronts.documents import COMPONENT, KEPT, Kept, checked, kept_of, read_doc
from spicegraph_parser.fronts.schemes import Scheme
from spicegraph_parser.fronts.spacy import caption_of, pipeline_scheme
from spicegraph_parser.languages import find_language
from spicegraph_parser.pipelines import SCENE, load_pipeline, spacy_signature
from spicegraph_parser.spice.extraction import ParsedCaption, extract
from spicegraph_parser.spice.graph import SceneGraph, merge
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import networkx as nx

    from spicegraph_parser.spice.graph import Attribute, Relation, SceneObject


class SpanObject(NamedTuple):
    """An object of a graph: its name, where it is named, and the rules of the facts that name it."""

    name: str
    spans: tuple[Span, ...]
    rules: tuple[str, ...]


class SpanAttribute(NamedTuple):
    """An attribute of an object."""

    object: SpanObject
    name: str
    spans: tuple[Span, ...]
    rules: tuple[str, ...]


class SpanRelation(NamedTuple):
    """A relation between two objects."""

    subject: SpanObject
    object: SpanObject
    name: str
    spans: tuple[Span, ...]
    rules: tuple[str, ...]


class SpanGraph:
    """The scene graph of a document or a span. Synonyms are one object, as everywhere; ``facts`` tell them apart."""

    def __init__(self, source: Doc | Span, facts: Sequence[Fact]) -> None:
        self.source = source
        self.facts = tuple(facts)  # as SPICE's rules found them; their tokens are the document's

    @property
    def tuples(self) -> tuple[tuple[str, ...], ...]:
        """The facts as plain tuples: (object), (object, attribute) or (subject, object, relation)."""
        return tuple([fact.words for fact in self.facts])

    @cached_property
    def graph(self) -> SceneGraph:
        """The facts, merged; in languages other than English equal words alone are one object."""
        graph = merge([self.facts], load_lexicon(), exact=self.source.doc.lang_ != "en")
        places = tuple([(token.idx, token.idx + len(token)) for token in self.source.doc])
        return SceneGraph(graph.objects, graph.attributes, graph.relations, (places,))

    @cached_property
    def objects(self) -> tuple[SpanObject, ...]:
        """Everything that is named, in the order of the facts."""
        return tuple([SpanObject(*self._said(part)) for part in self.graph.objects])

    @property
    def attributes(self) -> tuple[SpanAttribute, ...]:
        """The attributes, each with its object."""
        return tuple([SpanAttribute(self.objects[part.object], *self._said(part)) for part in self.graph.attributes])

    @property
    def relations(self) -> tuple[SpanRelation, ...]:
        """The relations, each with its subject and object."""
        named, relations = self.objects, self.graph.relations
        return tuple([SpanRelation(named[part.subject], named[part.object], *self._said(part)) for part in relations])

    def _said(self, part: SceneObject | Attribute | Relation) -> tuple[str, tuple[Span, ...], tuple[str, ...]]:
        spans = chain.from_iterable(_runs(self.source.doc, tokens) for _, tokens in part.mentions)
        return part.concept.label, tuple(spans), tuple(dict.fromkeys(seen.fact.rule for seen in part.evidence))

    def __repr__(self) -> str:
        return f"<scene graph of {self.source.text[:60]!r}: {', '.join(map(str, self.tuples))}>"

    def to_networkx(self) -> nx.MultiDiGraph[int]:
        """See :meth:`spicegraph_parser.SceneGraph.to_networkx`; ``spans`` are characters of the document."""
        return self.graph.to_networkx()

    def to_displacy(self) -> dict[str, Any]:
        """Return the input of ``displacy.render(..., manual=True)`` for style ``dep`` or ``span``.

        Arrows lead from subjects to objects and from objects to their attributes; below each word is its role.
        """
        first = self.source.start if isinstance(self.source, Span) else 0
        kinds: dict[int, str] = {}
        arcs: dict[tuple[int, int, str], None] = {}
        spans: dict[tuple[int, int, str], None] = {}
        for fact in self.facts:
            slots = ("object", "object", "relation") if len(fact.words) == 3 else ("object", "attribute")
            for kind, tokens in zip(slots, fact.tokens, strict=False):
                kinds |= {token - first: kind for token in tokens}
                spans |= {(run.start - first, run.end - first, kind): None for run in _runs(self.source.doc, tokens)}
            if len(fact.words) > 1 and fact.tokens[0] and fact.tokens[1]:
                label = fact.words[2] if len(fact.words) == 3 else "attribute"
                arcs[fact.tokens[0][0] - first, fact.tokens[1][0] - first, label] = None
        return {
            "text": self.source.text,
            "tokens": [token.text for token in self.source],
            "words": [{"text": token.text, "tag": kinds.get(at, "")} for at, token in enumerate(self.source)],
            "arcs": [
                {"start": min(ends), "end": max(ends), "label": label, "dir": "right" if ends[0] < ends[1] else "left"}
                for *ends, label in arcs
                if ends[0] != ends[1]
            ],
            "spans": [{"start_token": start, "end_token": end, "label": kind} for start, end, kind in spans],
        }


def _runs(doc: Doc, tokens: Sequence[int]) -> Iterator[Span]:
    """Yield the spans of tokens, each of words that stand side by side."""
    ordered = sorted(set(tokens))
    starts = [token for token in ordered if token - 1 not in tokens]
    ends = [token + 1 for token in ordered if token + 1 not in tokens]
    return (doc[start:end] for start, end in zip(starts, ends, strict=True))


class SceneGraphs:
    """Finds the scene graph of each document; its place is behind tagger, lemmatizer and parser."""

    def __init__(self, nlp: Language, name: str, style: str) -> None:
        if style == SCENE and nlp.lang != "en":
            raise InputError(f"{name}: style {style!r} reads English, and the pipeline's language is {nlp.lang!r}")
        find_language(nlp.lang or "")
        self._nlp = nlp
        self._style = style

    def __call__(self, doc: Doc) -> Doc:
        """Find the graph of one document."""
        return next(self.pipe([doc]))

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Find the graphs of documents, in batches.

        Raises:
            DataError: as of :func:`read_doc`.
        """
        stream = iter(docs)
        while batch := list(islice(stream, batch_size)):
            for doc, facts in zip(batch, self._facts(batch), strict=True):
                kept = Kept(len(doc), [list(fact) for fact in facts], self._scheme.value, self._signature)
                doc.user_data[KEPT] = list(kept)
                yield doc

    def _facts(self, docs: Sequence[Doc]) -> Iterator[Sequence[Fact]]:
        if self._style == SCENE:
            return map(_placed, docs, load_pipeline(SCENE).captions([doc.text for doc in docs]))
        return (extract(caption_of(checked(doc), scheme=self._scheme)).facts for doc in docs)

    @cached_property
    def _signature(self) -> str:
        return spacy_signature(self._nlp)

    @cached_property
    def _scheme(self) -> Scheme:
        if self._style == SCENE:
            return Scheme.AUTO
        return pipeline_scheme(self._nlp, str(self._nlp.meta["name"]), behind=self)


def _placed(doc: Doc, caption: ParsedCaption) -> list[Fact]:
    """Return the facts of a document's text with the document's own tokens."""
    at: list[Sequence[int]] = []
    for start, end in (span for parse in caption.sentences for span in parse.spans):
        span = doc.char_span(start, end, alignment_mode="expand") if start >= 0 else None
        at.append(range(span.start, span.end) if span else ())

    def placed(slot: Sequence[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(chain.from_iterable(at[token] for token in slot)))

    return [fact._replace(tokens=tuple(map(placed, fact.tokens))) for fact in caption.facts]


@Language.factory(
    COMPONENT,
    default_config={"style": "spice"},
    requires=["token.tag", "token.lemma", "token.dep"],
    assigns=[f"doc._.{COMPONENT}"],
)
def create_scene_graph(nlp: Language, name: str, style: Literal["spice", "scene"]) -> SceneGraphs:
    """Make the component; style ``spice`` reads the document's parse, ``scene`` its text, with the scene parser."""
    return SceneGraphs(nlp, name, style)


def _graph(source: Doc | Span) -> SpanGraph:
    """Return the ``._.scene_graph`` of a document or span; a span's has only facts inside it."""
    doc = source.doc
    kept = kept_of(doc)
    if kept and kept.tokens == len(doc):
        facts = [Fact(tuple(words), rule, tuple(map(tuple, tokens))) for words, rule, tokens in kept.facts]
    else:
        facts = [*extract(read_doc(doc)).facts]
    if isinstance(source, Span):
        inside = range(source.start, source.end)
        facts = [fact for fact in facts if all(token in inside for slot in fact.tokens for token in slot)]
    return SpanGraph(source, facts)


Doc.set_extension(COMPONENT, getter=_graph)
Span.set_extension(COMPONENT, getter=_graph)
