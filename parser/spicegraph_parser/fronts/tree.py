"""A dependency tree that is being changed: what turns one scheme of labels into another works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class Columns(NamedTuple):
    """A sentence as a parser gives it, by column; heads count from 1, and 0 is the root."""

    forms: Sequence[str]
    lemmas: Sequence[str]
    universal: Sequence[str]  # parts of speech of Universal Dependencies, "_" or "" where there are none
    tags: Sequence[str]
    features: Sequence[str]
    heads: Sequence[int]
    labels: Sequence[str]


class Tree:
    """Head, label and children of every word by position, which counts from 1."""

    def __init__(self, heads: Sequence[int], labels: Sequence[str]) -> None:
        self.heads = [0, *heads]
        self.labels = ["", *labels]
        self._below: dict[int, set[int]] = {}
        for position, head in enumerate(heads, start=1):
            self._below.setdefault(head, set()).add(position)

    def children(self, position: int, *labels: str) -> list[int]:
        """Return the words below one, in order; with the given labels alone, if any are given."""
        below = sorted(self._below.get(position, ()))
        return [child for child in below if self.labels[child] in labels] if labels else below

    def attach(self, position: int, head: int, label: str) -> None:
        """Hang a word, with all that is below it, on another one."""
        self._below[self.heads[position]].remove(position)
        self._below.setdefault(head, set()).add(position)
        self.heads[position], self.labels[position] = head, label

    def promote(self, position: int, label: str, *, keep: Collection[int] = ()) -> None:
        """Let a word take its head's place; the old head and its children, but for some, hang below it."""
        old = self.heads[position]
        siblings = [child for child in self.children(old) if child != position and child not in keep]
        self.attach(position, self.heads[old], self.labels[old])
        for child in siblings:
            self.attach(child, position, self.labels[child])
        self.attach(old, position, label)
