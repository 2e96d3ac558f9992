"""From ClearNLP dependencies (``en_core_web_*``) to basic Universal Dependencies v1.

The two schemes differ in what heads a phrase: ClearNLP lets prepositions and copulas govern
(on -pobj-> mat, is -attr-> surfer), Universal Dependencies v1 lets content words govern
(mat -case-> on, surfer -cop-> is).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.parse import Edge, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["to_universal"]

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


class _Tree:
    """A dependency tree as two parallel lists, head and label by position (from 1)."""

    def __init__(self, words: Sequence[Word], heads: Sequence[int], labels: Sequence[str]) -> None:
        self.words = words
        self.heads = [0, *heads]
        # ClearNLP's nmod is a noun in front of a noun; the name is free for prepositional phrases then.
        self.labels = ["", *("compound" if label == "nmod" else label for label in labels)]

    def children(self, position: int, *labels: str) -> list[int]:
        return [
            child
            for child in range(1, len(self.heads))
            if self.heads[child] == position and (not labels or self.labels[child] in labels)
        ]

    def attach(self, position: int, head: int, label: str) -> None:
        self.heads[position], self.labels[position] = head, label

    def promote(self, position: int, label: str) -> None:
        """Let a word take its head's place; the old head and its other children hang below it."""
        old = self.heads[position]
        siblings = [child for child in self.children(old) if child != position]
        self.attach(position, self.heads[old], self.labels[old])
        for child in siblings:
            self.heads[child] = position
        self.attach(old, position, label)


def to_universal(words: Sequence[Word], heads: Sequence[int], labels: Sequence[str]) -> tuple[Edge, ...]:
    """Return basic Universal Dependencies v1 edges.

    Args:
        words: the sentence.
        heads: for every word its head's position from 1; 0 for the root.
        labels: for every word its ClearNLP label.
    """
    tree = _Tree(words, heads, labels)
    for position in range(1, len(words) + 1):
        if tree.labels[position] in _ADPOSITIONS:
            _lower_preposition(tree, position)
    for position in range(1, len(words) + 1):
        if words[position - 1].lemma == "be" and tree.labels[position] not in ("aux", "auxpass"):
            _lower_copula(tree, position)
    _flatten_coordination(tree)
    return tuple(
        Edge(_RENAMED.get(label, label), head, position)
        for position, (head, label) in enumerate(zip(tree.heads[1:], tree.labels[1:], strict=True), start=1)
    )


def _lower_preposition(tree: _Tree, position: int) -> None:
    """The edge on -pobj-> mat becomes mat -case-> on; of a chain (out -prep-> of) the last has the noun."""
    if tree.labels[position] == "dative" and tree.words[position - 1].tag not in ("IN", "TO"):
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
        nominal = governor and tree.words[governor - 1].tag.startswith(_NOMINAL)
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
            while tree.labels[head] == "conj" and head not in seen:
                seen.add(head)
                head = tree.heads[head]
            tree.heads[position] = head
