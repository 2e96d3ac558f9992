"""A sentence as the passes see it: its words, what the network says of them, and what was decided so far."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_parser.scenes.network import Labels, Names
    from spicegraph_parser.scenes.visible import ApartReason
    from spicegraph_parser.spice.denial import Scope

NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
PLURAL: Final = frozenset({"NNS", "NNPS"})
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

    def having(self, labels: Labels) -> Sentence:
        """Return this sentence with other labels."""
        return self._replace(labels=labels)


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
    relations = [(moved.get(a, a), moved.get(b, b), name) for a, b, name in labels.relations]
    parts = [(moved.get(head, head), part) for head, part in labels.parts]
    return sentence.having(
        sentence.labels._replace(
            objects=list(dict.fromkeys(moved.get(at, at) for at in labels.objects)),
            parts=list(
                dict.fromkeys([*(pair for pair in parts if pair[0] != pair[1]), *((b, a) for a, b in moved.items())])
            ),
            attributes=[(moved.get(a, a), b) for a, b in labels.attributes if b not in moved and moved.get(a, a) != b],
            relations=[row for row in dict.fromkeys(relations) if row[0] != row[1]],
        )
    )


def shown(sentence: Sentence) -> Iterator[str]:
    """Yield what was decided of a sentence, a line each, as traces and cases of passes have it."""
    words, labels = sentence.words, sentence.labels
    for form, tag, why in zip(words, labels.tags, sentence.why or [None] * len(words), strict=True):
        yield f"tag {form} {tag}"
        if why is not None:
            yield f"{why.value} {form}"
    for at in labels.objects:
        yield f"object {words[at]}"
    for head, part in labels.parts:
        yield f"name {words[part]} {words[head]}"
    for head, word in labels.attributes:
        yield f"attribute {words[head]}: {words[word]}"
    for subject, target, name in labels.relations:
        yield f"relation {words[subject]} - {name} - {words[target]}"
    for phrase in sentence.phrases:
        yield f"phrase {' '.join(words[phrase.start : phrase.head + 1])}"
