"""From ClearNLP dependencies (``en_core_web_*``) to basic Universal Dependencies v1.

The two schemes differ in what heads a phrase: ClearNLP lets prepositions and copulas govern
(on -pobj-> mat, is -attr-> surfer), Universal Dependencies v1 lets content words govern
(mat -case-> on, surfer -cop-> is).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_parser.parse import Arc

_RENAMED = {
    "ROOT": "root",
    "dative": "iobj",
    "intj": "discourse",
    "meta": "dep",
    "npadvmod": "nmod:npmod",
    "oprd": "xcomp",
    "acomp": "xcomp",
    "poss": "nmod:poss",
    "preconj": "cc:preconj",
    "predet": "det:predet",
    "prt": "compound:prt",
    "quantmod": "advmod",
    "relcl": "acl:relcl",
}
_ADPOSITIONS = ("prep", "agent", "dative")
_NOMINAL = ("N", "PRP", "CD", "DT", "W")


# Nouns that the reference leaves in the plural, of those that captions use.
_PLURAL_ONLY = frozenset(
    {"clothes", "electronics", "fries", "furnishings", "goggles", "jeans", "pants", "scissors", "shorts"}
)
# Stems that double their last letter: "riding" is of "ride", for "rid" has "ridding".
_DOUBLING = re.compile("^[^aeiou]*[aeiou][^aeiouwxysz]$")
_CLOSED_CLASSES = {"an": "a", "his": "he", "her": "she", "their": "they"}


def reference_lemma(form: str, tag: str, lemma: str) -> str:
    """Return the lemma that the reference gives a word which a ClearNLP pipeline lemmatized.

    Degrees of adjectives are words of their own, and a stem that lost its "e" gets it back.

    >>> [reference_lemma(*w) for w in (("riding", "VBG", "rid"), ("older", "JJR", "old"), ("an", "DT", "an"))]
    ['ride', 'older', 'a']
    """
    lower = form.lower()
    if tag.startswith("J") or lower in _PLURAL_ONLY:
        return lower
    if tag.startswith("V"):
        lost_e = _DOUBLING.search(lemma) and lower in (f"{lemma}ing", f"{lemma}ed", f"{lemma}es")
        return f"{lemma}e" if lost_e else lemma
    return _CLOSED_CLASSES.get(lower, lemma)


class _Tree:
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
    """Return basic Universal Dependencies v1 edges.

    Args:
        tags: the PTB tags of the words of a sentence.
        lemmas: their lemmas.
        heads: for every word its head's position from 1; 0 for the root.
        labels: for every word its ClearNLP label.
    """
    tree = _Tree(tags, heads, labels)
    size = len(tags)
    for position in range(1, size + 1):
        if tree.labels[position] in _ADPOSITIONS:
            _lower_preposition(tree, position)
    for position in range(1, size + 1):
        if lemmas[position - 1] == "be" and tree.labels[position] not in ("aux", "auxpass"):
            _lower_copula(tree, position)
    _flatten_coordination(tree)
    renamed = [_RENAMED.get(label, label) for label in tree.labels[1:]]
    return zip(renamed, tree.heads[1:], range(1, size + 1), strict=True)


def _lower_preposition(tree: _Tree, position: int) -> None:
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
        nominal = governor and tree.tags[governor - 1].startswith(_NOMINAL)
        tree.promote(clauses[0], "mark")
        tree.labels[clauses[0]] = "acl" if nominal else "advcl"
        return
    tree.labels[position] = "advmod"


def _lower_copula(tree: _Tree, position: int) -> None:
    """The edge is -attr-> surfer becomes surfer -cop-> is.

    "there is a man" keeps its verb and makes the man its subject.
    """
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


def _flatten_coordination(tree: _Tree) -> None:
    """Hang every conjunct and coordinating word of a chain on the first conjunct."""
    for position in range(1, len(tree.heads)):
        if tree.labels[position] in ("conj", "cc"):
            head, seen = tree.heads[position], {position}
            while tree.labels[head] == "conj" and tree.heads[head] and head not in seen:
                seen.add(head)
                head = tree.heads[head]
            tree.attach(position, head, tree.labels[position])
