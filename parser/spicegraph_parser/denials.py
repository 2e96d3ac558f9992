"""Denials: what a caption says is not there ("no hat", "without a hat", "is not red")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_parser.parse import Parse

__all__ = ["NEGATIONS", "denied"]

NEGATIONS: Final = frozenset({"no", "not", "never", "n't"})
_WITHOUT: Final = "without"
_EITHER: Final = frozenset({"or", "nor"})
_ARTICLES: Final = frozenset({"a", "an", "the"})


def denied(parse: Parse) -> Iterator[tuple[int, int]]:
    """Yield the positions of words that a caption denies, each with that of the word that denies it.

    a man with no hat               -> (hat, no)
    a man without a hat or a tie    -> (hat, without) (tie, without)
    a man is not wearing a hat      -> (hat, not): of a verb, its direct objects
    a man is not standing           -> (standing, not): or itself, if it has none
    the bus is not red              -> (red, not)
    a no parking sign               -> nothing: what has an article is there
    """
    if _WITHOUT not in parse.lemmas and NEGATIONS.isdisjoint(parse.lemmas):
        return
    for label, head, dependent in parse.arcs:
        word = parse.lemmas[dependent - 1]
        if label == "case" and word == _WITHOUT:
            found = [head]
        elif label == "neg" and word in NEGATIONS and not (word == "no" and _has_article(parse, head)):
            found = _objects(parse, head) or [head] if parse.tags[head - 1].startswith("V") else [head]
        else:
            continue
        for position in found:
            for one in (position, *_alternatives(parse, position)):
                yield one, dependent


def _has_article(parse: Parse, noun: int) -> bool:
    return any(
        label == "det" and head == noun and parse.lemmas[word - 1] in _ARTICLES for label, head, word in parse.arcs
    )


def _objects(parse: Parse, verb: int) -> list[int]:
    return [word for label, head, word in parse.arcs if head == verb and label in {"dobj", "iobj"}]


def _alternatives(parse: Parse, first: int) -> list[int]:
    """Return what "or" and "nor" join to a word."""
    if not any(label == "cc" and head == first and parse.lemmas[w - 1] in _EITHER for label, head, w in parse.arcs):
        return []
    return [word for label, head, word in parse.arcs if head == first and label.partition(":")[0] == "conj"]
