"""The scene parser: captions and descriptions to scene graphs as people draw them.

The network does not read texts and measures, modifiers that only deny something, and the full stop of a caption.
Sentences that deny or hedge something are parsed by the bundled pipeline, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.analyser import load_analyser
from spicegraph_parser.caption_pipeline.encoder import MakeProduct, float_product
from spicegraph_parser.caption_pipeline.lemmas import bundled_lemmas
from spicegraph_parser.spice.extraction import ParsedCaption
from spicegraph_parser.spice.parse import Caption, Parse
from spicegraph_scenes import relations
from spicegraph_scenes.denial import TRIGGERS, Scope, scopes
from spicegraph_scenes.facts import facts_of, plain_facts
from spicegraph_scenes.guard import Guard
from spicegraph_scenes.network import Labels, SceneNetwork
from spicegraph_scenes.passages import Kind, kind_of, read_text
from spicegraph_scenes.passes import changes, run
from spicegraph_scenes.sentence import Sentence, sentence_graph
from spicegraph_scenes.things import plain_start
from spicegraph_scenes.values import Value, has_word, placed, unread, values_of
from spicegraph_scenes.words import MOST, PICTURES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from spicegraph_parser.caption_pipeline.analyser import ReadTokens
    from spicegraph_scenes.facts import Facts
    from spicegraph_scenes.network import Names
    from spicegraph_scenes.sentence import SentenceGraph

_BATCH: Final = 1024  # captions that are labelled together
_LONG: Final = 100  # words of a description of which people draw no more than the margins leave
_STOP: Final = "."
_UNREAD: Final = "VBN"  # the tag of a word that nobody reads, such as "labeled"
_STILL: Final = ["still", "of"]
_FOOTAGE: Final = "footage"


@dataclass(frozen=True, slots=True)
class SceneParser:
    """Parses captions to scene graphs as people draw them; reads its network with the first caption.

    ``without`` names passes that are left out, to see what each brings; a ``strict`` parser raises faults of its own,
    where another draws the text without passes and warns.
    """

    folder: Path
    product: MakeProduct = float_product
    without: frozenset[str] = frozenset()
    strict: bool = False

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """Return the words and tags of captions; there are no edges."""
        return (Caption(caption.text, caption.sentences) for caption in self.captions(texts, batch_size=batch_size))

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """Parse captions or descriptions, in order and in batches.

        Raises:
            LimitError: a text is longer than ``MAX_CAPTION_LENGTH``.
            DataError: the network can't be read.
        """
        guard = Guard(self._parse, is_strict=self.strict)
        try:
            for batch, first in _batches(texts, batch_size or _BATCH):
                yield from guard.parse(batch, first)
        finally:
            guard.warn()

    def trace(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield lines of text: each sentence, followed by the changes of each pass."""
        network = load_network(self.folder, self.product)
        for batch, first in _batches(texts, _BATCH):
            for text in read_texts(network, self.product, batch, first):
                for sentence, _ in text.sentences:
                    yield " ".join(sentence.words)
                    for change in changes(sentence):
                        yield from change.lines()

    def _parse(self, texts: Sequence[str], first: int, *, is_plain: bool = False) -> list[ParsedCaption]:
        network = load_network(self.folder, self.product)
        read = read_texts(network, self.product, texts, first, is_plain=is_plain)
        return [_plain(text) if is_plain else _parsed(text, network.names, self.without) for text in read]


def _batches(texts: Iterable[str], size: int) -> Iterator[tuple[Sequence[str], int]]:
    """Yield batches of texts, each with the number of its first one."""
    stream = iter(texts)
    first = 0
    while batch := list(islice(stream, size)):
        yield batch, first
        first += len(batch)


def _parsed(text: ReadText, names: Names, without: Collection[str]) -> ParsedCaption:
    """Return the facts of a text, by the passes over its sentences and the rules over the text."""
    decided = [run(sentence, without) for sentence, _ in text.sentences]
    graphs = [
        sentence_graph(own, rules, values) for (own, rules), (_, values) in zip(decided, text.sentences, strict=True)
    ]
    return _with_facts(text, graphs, facts_of(graphs, names, is_long=text.is_long))


def _plain(text: ReadText) -> ParsedCaption:
    """Return the facts of a text as the network has them."""
    graphs = [sentence_graph(sentence) for sentence, _ in text.sentences]
    return _with_facts(text, graphs, plain_facts(graphs))


def _with_facts(text: ReadText, graphs: Sequence[SentenceGraph], facts: Facts) -> ParsedCaption:
    parses = []
    start = 0
    for graph in graphs:
        inner = slice(start, start + len(graph.words))
        start = inner.stop
        forms, tags = text.tokens.forms[inner], graph.tags
        spans = text.tokens.spans if isinstance(text.tokens.spans, str) else text.tokens.spans[inner]
        parses.append(Parse.from_columns(forms, tags, list(map(_lemma, forms, tags)), (), spans))
    return ParsedCaption(text.text, tuple(parses), facts.seen, facts.apart, facts.entities, is_scene=True)


@lru_cache(maxsize=MOST)
def _lemma(form: str, tag: str) -> str:
    return bundled_lemmas().lemma(form, tag)


@cache
def load_network(folder: Path, product: MakeProduct = float_product) -> SceneNetwork:
    """Read a network; raises DataError where a file is missing or damaged."""
    network = SceneNetwork.read(folder, relations, product)
    network.names = replace(network.names, abstract=network.names.abstract | PICTURES)
    return network


class ReadText(NamedTuple):
    """A text that the network has read: its sentences before the passes, each with the values in it."""

    text: str
    tokens: ReadTokens
    is_long: bool
    sentences: Sequence[tuple[Sentence, Sequence[Value]]]


class _Plan(NamedTuple):
    """Plan for reading a sentence: its words, those cut for the network, and their tags."""

    forms: Sequence[str]
    words: Sequence[str]
    kind: Kind
    strictness: float
    values: Sequence[Value]
    scopes: Sequence[Scope]
    cut: frozenset[int]
    tags: Sequence[str]

    def read(self) -> list[str]:
        """Return the forms that are read: for a pronoun at the start a noun, as captions start, for a still footage."""
        start = plain_start(self.forms[0], self.words[1] if len(self.words) > 1 else "")
        stills = {at for at in range(1, len(self.forms)) if self.words[at : at + 2] == _STILL}
        forms = enumerate([start, *self.forms[1:]])
        return [_FOOTAGE if at in stills else form for at, form in forms if at not in self.cut]


def read_texts(
    network: SceneNetwork, product: MakeProduct, texts: Sequence[str], first: int, *, is_plain: bool = False
) -> Iterator[ReadText]:
    """Yield texts as the network reads them; ``first`` is the number of the first one.

    ``is_plain``: with all of their words, and without denials and values.

    Raises:
        LimitError: a text is longer than ``MAX_CAPTION_LENGTH``.
    """
    read = [read_text(text, index) for index, text in enumerate(texts, first)]
    if is_plain:
        plans = [_plain_plans(tokens) for tokens in read]
    else:
        parses = iter(_parses(read, product))
        plans = [_plans(tokens, kind_of(tokens.forms, tokens.lengths, network.names), parses) for tokens in read]
    labels = _labels(network, list(chain.from_iterable(plans)))
    for text, tokens, own in zip(texts, read, plans, strict=True):
        sentences = [(_sentence(network, plan, next(labels)), plan.values) for plan in own]
        yield ReadText(text, tokens, any(plan.kind is Kind.DESCRIPTION for plan in own), sentences)


def _labels(network: SceneNetwork, plans: Sequence[_Plan]) -> Iterator[Labels]:
    """Yield labels for sentences in order, reading equal ones once; sentences without words are unlabelled."""
    wanted = [(tuple(plan.read()), plan.strictness, plan.kind) for plan in plans]
    distinct = [own for own in dict.fromkeys(wanted) if has_word(own[0])]
    forms, strictness, styles = zip(*distinct, strict=True) if distinct else ((), (), ())
    read = network.label(list(chain.from_iterable(forms)), list(map(len, forms)), strictness, styles)
    found = dict(zip(distinct, read, strict=True))
    for own in wanted:
        yield found.get(own) or Labels.empty()._replace(tags=list(own[0]))


def _sentence(network: SceneNetwork, plan: _Plan, labels: Labels) -> Sentence:
    """Return a sentence with its labels, with positions in all of it."""
    own = placed(labels, plan.cut, plan.tags) if plan.cut else labels
    unread_words = plan.cut - {at for at, tag in enumerate(plan.tags) if tag == _STOP}
    is_alone = plan.kind is not Kind.DESCRIPTION
    return Sentence(plan.words, own, network.names, is_alone, unread_words, plan.scopes, [None] * len(plan.words))


def _sentences(tokens: ReadTokens) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield the PTB forms and the words in lower case of a text's sentences."""
    start = 0
    for length in tokens.lengths:
        inner = slice(start, start + length)
        yield tokens.ptb[inner], [form.lower() for form in tokens.forms[inner]]
        start += length


def _plans(tokens: ReadTokens, kind: Kind, parses: Iterator[Parse | None]) -> list[_Plan]:
    """Return the reading plans of a text's sentences."""
    strictness = min(1.0, len(tokens.forms) / _LONG) if kind is Kind.DESCRIPTION else 0.0
    return [_plan(forms, words, kind, strictness, next(parses)) for forms, words in _sentences(tokens)]


def _plain_plans(tokens: ReadTokens) -> list[_Plan]:
    """Return plans by which the network reads sentences as captions, with all of their words."""
    sentences = _sentences(tokens)
    return [_Plan(forms, words, Kind.PHOTOGRAPH, 0.0, (), (), frozenset(), ()) for forms, words in sentences]


def _plan(forms: Sequence[str], words: Sequence[str], kind: Kind, strictness: float, parse: Parse | None) -> _Plan:
    size = len(forms)
    end = size - (not strictness and size > 1 and forms[-1] == _STOP)  # most people write captions without one
    values = values_of(forms[:end])
    cut = {*unread(values), *range(end, size)}
    own_scopes = [scope for scope in scopes(parse) if scope.trigger - 1 not in cut] if parse else []
    silent = cut.union(word - 1 for scope in own_scopes for word in scope.modifier)
    cut = silent if has_word(forms, silent) else cut
    tags = [*(parse.tags if parse else [_UNREAD] * size)[:end], *[_STOP] * (size - end)]
    return _Plan(forms, words, kind, strictness, values, own_scopes, frozenset(cut), tags)


def _parses(read: Sequence[ReadTokens], product: MakeProduct) -> list[Parse | None]:
    """Return the dependency parses of the sentences that deny or hedge something, and of no others."""
    sentences = [forms for tokens in read for forms, _ in _sentences(tokens)]
    out: list[Parse | None] = [None] * len(sentences)
    chosen = [at for at, forms in enumerate(sentences) if not TRIGGERS.keys().isdisjoint(map(str.lower, forms))]
    if chosen:
        for at, parse in zip(chosen, load_analyser(product).parses([sentences[at] for at in chosen]), strict=True):
            out[at] = parse
    return out
