"""From texts to sentences that the network has read: what it reads of each, and by which conventions.

It does not read texts and measures, modifiers that only deny something, and the full stop of a caption. Sentences that
deny or hedge something are parsed by the bundled pipeline, and no others.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.analyser import load_analyser
from spicegraph_parser.scenes.kinds import Kind, kind_of
from spicegraph_parser.scenes.passages import read_text
from spicegraph_parser.scenes.sentence import Sentence
from spicegraph_parser.scenes.things import plain_start
from spicegraph_parser.scenes.values import Value, has_word, placed, unread, values_of
from spicegraph_parser.spice.denial import TRIGGERS, Scope, scopes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.caption_pipeline.analyser import ReadTokens
    from spicegraph_parser.caption_pipeline.encoder import MakeProduct
    from spicegraph_parser.scenes.network import Labels, SceneNetwork
    from spicegraph_parser.spice.parse import Parse

_LONG: Final = 100  # words of a description of which people draw no more than the margins leave
_STOP: Final = "."
_UNREAD: Final = "VBN"  # the tag of a word that nobody reads, such as "labeled"
_LACKS: Final = "with"
_STILL: Final = ["still", "of"]
_FOOTAGE: Final = "footage"


class ReadText(NamedTuple):
    """A text that the network has read: its sentences before the passes, each with the values in it."""

    text: str
    tokens: ReadTokens
    is_long: bool
    sentences: Sequence[tuple[Sentence, Sequence[Value]]]


class _Plan(NamedTuple):
    """What the network is to read of a sentence: all but the words that are cut, which have tags of their own."""

    forms: Sequence[str]
    words: Sequence[str]
    kind: Kind
    strictness: float
    values: Sequence[Value]
    scopes: Sequence[Scope]
    cut: frozenset[int]
    tags: Sequence[str]

    def read(self) -> list[str]:
        """Return the forms that are read; for a pronoun at the start a noun, as captions start."""
        start = plain_start(self.forms[0], self.words[1] if len(self.words) > 1 else "")
        forms = [start, *self.forms[1:]]
        for at in range(1, len(forms) - 1):
            if self.words[at : at + 2] == _STILL:
                forms[at] = _FOOTAGE
        return [form for at, form in enumerate(forms) if at not in self.cut]


def read_texts(network: SceneNetwork, product: MakeProduct, texts: Sequence[str], first: int) -> Iterator[ReadText]:
    """Yield texts as the network reads them; ``first`` is the number of the first one.

    Raises:
        LimitError: a text is longer than ``MAX_CAPTION_LENGTH``.
    """
    read = [read_text(text, index) for index, text in enumerate(texts, first)]
    parses = iter(_parses(read, product))
    plans = [_plans(tokens, kind_of(tokens.forms, tokens.lengths, network.names), parses) for tokens in read]
    labels = _labels(network, list(chain.from_iterable(plans)))
    for text, tokens, own in zip(texts, read, plans, strict=True):
        sentences = [(_sentence(network, plan, next(labels)), plan.values) for plan in own]
        yield ReadText(text, tokens, any(plan.kind is Kind.DESCRIPTION for plan in own), sentences)


def _labels(network: SceneNetwork, plans: Sequence[_Plan]) -> Iterator[Labels]:
    """Return what the network says of sentences, in order."""
    forms = [plan.read() for plan in plans]
    styles, strictness = [plan.kind for plan in plans], [plan.strictness for plan in plans]
    return iter(network.label(list(chain.from_iterable(forms)), list(map(len, forms)), strictness, styles))


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
    """Return what the network is to read of the sentences of a text."""
    strictness = min(1.0, len(tokens.forms) / _LONG) if kind is Kind.DESCRIPTION else 0.0
    return [_plan(forms, words, kind, strictness, next(parses)) for forms, words in _sentences(tokens)]


def _plan(forms: Sequence[str], words: Sequence[str], kind: Kind, strictness: float, parse: Parse | None) -> _Plan:
    size = len(forms)
    end = size - (not strictness and size > 1 and forms[-1] == _STOP)  # most people write captions without one
    values = values_of(forms[:end])
    cut = {*unread(values), *range(end, size)}
    own_scopes = [scope for scope in scopes(parse) if scope.trigger - 1 not in cut] if parse else []
    silent = cut.union(word - 1 for scope in own_scopes for word in scope.modifier)
    cut = silent if has_word(forms, silent) else cut
    tags = [*_tags(parse, own_scopes, size)[:end], *[_STOP] * (size - end)]
    return _Plan(forms, words, kind, strictness, values, own_scopes, frozenset(cut), tags)


def _tags(parse: Parse | None, own_scopes: Iterable[Scope], size: int) -> list[str]:
    """Return the tags of a parse, in which what a modifier denies ends with a noun ("without a helmet rides")."""
    tags = list(parse.tags) if parse else [_UNREAD] * size
    for scope in own_scopes:
        if scope.modifier and scope.name == _LACKS and tags[max(scope.words) - 1].startswith("JJ"):
            tags[max(scope.words) - 1] = "NN"
    return tags


def _parses(read: Sequence[ReadTokens], product: MakeProduct) -> list[Parse | None]:
    """Return the dependency parses of the sentences that deny or hedge something, and of no others."""
    sentences = [forms for tokens in read for forms, _ in _sentences(tokens)]
    out: list[Parse | None] = [None] * len(sentences)
    chosen = [at for at, forms in enumerate(sentences) if not TRIGGERS.keys().isdisjoint(map(str.lower, forms))]
    if chosen:
        for at, parse in zip(chosen, load_analyser(product).parses([sentences[at] for at in chosen]), strict=True):
            out[at] = parse
    return out
