"""A sentence as the passes see it: its words, what the network says of them, and what was decided so far."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.scenes.network import Labels, Names
    from spicegraph_parser.scenes.visible import ApartReason
    from spicegraph_parser.spice.denial import Scope

_MOST_WORDS: Final = 100_000


class Phrase(NamedTuple):
    """A noun phrase: its first word, its noun, which is its last word."""

    start: int
    head: int


class Sentence(NamedTuple):
    """A sentence: its words in lower case, and all that was decided so far.

    Attributes:
        words: in lower case.
        labels: tags, objects, parts of names, attributes and relations; what margins leave out is faint.
        names: what is known of words.
        is_alone: whether it is of a caption, and not of a description.
        unread: the words that the network does not read: of texts, measures, and modifiers that only deny.
        scopes: what its denials and hedges cover.
        why: of each word, why it does not say what can be seen; ``None`` where it does.
        phrases: its noun phrases.
        inner: the nouns that are part of a preposition.
        foreign: how many of its phrases have a noun that photographs lack.
        is_foreign: whether the first phrase has such a noun, or several have.
    """

    words: Sequence[str]
    labels: Labels
    names: Names
    is_alone: bool = True
    unread: frozenset[int] = frozenset()
    scopes: Sequence[Scope] = ()
    why: Sequence[ApartReason | None] = ()
    phrases: Sequence[Phrase] = ()
    inner: frozenset[int] = frozenset()
    foreign: int = 0
    is_foreign: bool = False

    def said(self) -> set[int]:
        """Return the words of which something is said."""
        return said_of(self.labels)

    def linked(self) -> set[int]:
        """Return both ends of all relations."""
        return {end for relation in self.labels.relations for end in relation[:2]}

    def starts(self) -> dict[int, int]:
        """Return where the phrases of nouns start."""
        return {phrase.head: phrase.start for phrase in self.phrases}

    def behind(self, at: int) -> Phrase:
        """Return the first phrase behind a word, or one of -1."""
        return next((phrase for phrase in self.phrases if phrase.start > at), Phrase(-1, -1))

    def deciding(self, **rows: Any) -> Sentence:
        """Return this sentence with other labels, by their fields; itself where they are the same."""
        is_same = all(getattr(self.labels, name) == own for name, own in rows.items())
        return self if is_same else self._replace(labels=self.labels._replace(**rows))

    def adding(self, **rows: Iterable[Any]) -> Sentence:
        """Return this sentence with more labels, each once; itself where it has them all."""
        labels = self.labels
        for name, own in rows.items():
            given: list[Any] = getattr(labels, name)
            if new := [row for row in dict.fromkeys(own) if row not in given]:
                more: dict[str, Any] = {name: [*given, *new]}
                labels = labels._replace(**more)
        return self if labels is self.labels else self._replace(labels=labels)


@lru_cache(maxsize=_MOST_WORDS)
def lives(noun: str) -> bool:
    """Say whether a noun in the singular names a person or an animal."""
    wordnet = load_wordnet()
    kinds = (wordnet.find("person.n.01"), wordnet.find("animal.n.01"))
    return noun == "people" or any(wordnet.is_kind_of(noun, kind) for kind in kinds)


def said_of(labels: Labels) -> set[int]:
    """Return the words of which labels say something."""
    out = {*labels.objects, *(end for pair in (*labels.parts, *labels.attributes) for end in pair)}
    return out | {end for relation in labels.relations for end in relation[:2]}


def moved_ends(sentence: Sentence, moved: Mapping[int, int]) -> Sentence:
    """Return a sentence in which nouns are part of the name of others, which have all that was said of them."""
    labels = sentence.labels

    def new(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
        """Return pairs and relations with their new ends, each once, without those of a word with itself."""
        own = dict.fromkeys((moved.get(row[0], row[0]), moved.get(row[1], row[1]), *row[2:]) for row in rows)
        return [row for row in own if row[0] != row[1]]

    parts = dict.fromkeys((moved.get(head, head), part) for head, part in labels.parts)
    return sentence.deciding(
        objects=list(dict.fromkeys(moved.get(at, at) for at in labels.objects)),
        parts=list(
            dict.fromkeys([*(pair for pair in parts if pair[0] != pair[1]), *((b, a) for a, b in moved.items())])
        ),
        attributes=new(pair for pair in labels.attributes if pair[1] not in moved),
        relations=new(labels.relations),
    )


def shown(sentence: Sentence) -> Iterator[str]:
    """Yield what was decided of a sentence, a line each, as traces and cases of passes have it."""
    words, labels = sentence.words, sentence.labels
    for form, tag, why in zip(words, labels.tags, sentence.why or [None] * len(words), strict=True):
        yield f"tag {form} {tag}"
        if why is not None:
            yield f"{why.value} {form}"
    yield from (f"object {words[at]}" for at in labels.objects)
    yield from (f"name {words[part]} {words[head]}" for head, part in labels.parts)
    yield from (f"attribute {words[head]}: {words[word]}" for head, word in labels.attributes)
    yield from (f"relation {words[subject]} - {name} - {words[target]}" for subject, target, name in labels.relations)
    yield from (f"phrase {' '.join(words[phrase.start : phrase.head + 1])}" for phrase in sentence.phrases)
