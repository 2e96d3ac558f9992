"""Sentences for the passes of the scene parser, from words with tags and labels written as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.caption_pipeline.encoder import Vocabulary
from spicegraph_scenes.network import Labels, Names
from spicegraph_scenes.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


def names(known: Collection[str] = ()) -> Names:
    """Return what is known of words: some that captions of photographs have."""
    nothing: frozenset[str] = frozenset()
    return Names(Vocabulary((), (), ()), (), nothing, {}, {}, nothing, nothing, frozenset(known))


def sentence(
    words: str | Sequence[str],
    tags: str | Sequence[str],
    labels: Labels | None = None,
    *,
    known: Collection[str] = (),
    is_alone: bool = True,
) -> Sentence:
    """Return a sentence of words and tags, with labels of which the tags do not count."""
    own = words.split() if isinstance(words, str) else list(words)
    own_tags = tags.split() if isinstance(tags, str) else list(tags)
    own_labels = (labels or Labels.empty())._replace(tags=own_tags)
    why = [None] * len(own)
    return Sentence(own, own_labels, names(known), is_alone, why=why)


def labels_of(words: str, rows: Iterable[str]) -> Labels:
    """Return labels from lines as ``sentence.shown`` writes them; each word stands once."""
    own = words.split()
    labels = Labels.empty()
    for row in rows:
        kind, _, rest = row.partition(" ")
        if kind == "object":
            labels.objects.append(own.index(rest))
        elif kind == "name":
            *parts, head = map(own.index, rest.split())
            labels.parts.extend((head, part) for part in parts)
        elif kind == "attribute":
            head_word, word = rest.split(": ")
            labels.attributes.append((own.index(head_word), own.index(word)))
        else:
            subject, name, target = rest.split(" - ")
            labels.relations.append((own.index(subject), own.index(target), name))
    return labels
