"""From ClearNLP's labels (``en_core_web_*``) to Universal Dependencies v1, which the rules read.

ClearNLP lets prepositions and copulas govern (on -pobj-> mat), Universal Dependencies content words (mat -case-> on).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spicegraph_parser.fronts.tree import Tree
from spicegraph_parser.spice.parse import word_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_parser.spice.parse import Arc

_RENAMED = dict(
    word_pairs(
        """ROOT root, dative iobj, intj discourse, meta dep, npadvmod nmod:npmod, oprd xcomp, acomp xcomp,
        poss nmod:poss, preconj cc:preconj, predet det:predet, prt compound:prt, quantmod advmod, relcl acl:relcl"""
    )
)
# Nouns that the reference leaves in the plural, of those that captions use.
_PLURAL_ONLY = frozenset(
    {"clothes", "electronics", "fries", "furnishings", "goggles", "jeans", "pants", "scissors", "shorts"}
)
# Stems that double their last letter: "riding" is of "ride", for "rid" has "ridding".
_DOUBLING = re.compile("^[^aeiou]*[aeiou][^aeiouwxysz]$")


_CLOSED_CLASSES = {"an": "a", "his": "he", "her": "she", "their": "they"}


def reference_lemma(form: str, tag: str, lemma: str) -> str:
    """Return the reference's lemma of a word that a ClearNLP pipeline lemmatized: older stays, rid becomes ride."""
    lower = form.lower()
    if tag.startswith("J") or lower in _PLURAL_ONLY:
        return lower
    if tag.startswith("V"):
        lost_e = _DOUBLING.search(lemma) and lower in (f"{lemma}ing", f"{lemma}ed", f"{lemma}es")
        return f"{lemma}e" if lost_e else lemma
    return _CLOSED_CLASSES.get(lower, lemma)


def _first_conjunct(tree: Tree, position: int) -> int:
    head, seen = tree.heads[position], {position}
    while tree.labels[head] == "conj" and tree.heads[head] and head not in seen:
        seen.add(head)
        head = tree.heads[head]
    return head


def to_universal(
    tags: Sequence[str], lemmas: Sequence[str], heads: Sequence[int], labels: Sequence[str]
) -> Iterable[Arc]:
    """Return basic Universal Dependencies v1 edges from ClearNLP's labels; heads count from 1, and 0 is the root."""
    # ClearNLP's nmod is a noun in front of a noun; the name is free for prepositional phrases then.
    tree = Tree(heads, ["compound" if label == "nmod" else label for label in labels])
    size = len(tags)
    for position in range(1, size + 1):
        if tree.labels[position] in ("prep", "agent", "dative"):
            _lower_preposition(tree, position, tags)
    for position in range(1, size + 1):
        if lemmas[position - 1] == "be" and tree.labels[position] not in ("aux", "auxpass"):
            _lower_copula(tree, position)
    for position in range(1, size + 1):  # every conjunct and coordinating word of a chain hangs on the first conjunct
        if tree.labels[position] in ("conj", "cc"):
            tree.attach(position, _first_conjunct(tree, position), tree.labels[position])
    renamed = [_RENAMED.get(label, label) for label in tree.labels[1:]]
    return zip(renamed, tree.heads[1:], range(1, size + 1), strict=True)


def _lower_preposition(tree: Tree, position: int, tags: Sequence[str]) -> None:
    """The edge on -pobj-> mat becomes mat -case-> on; of a chain (out -prep-> of) the last has the noun."""
    if tree.labels[position] == "dative" and tags[position - 1] not in ("IN", "TO"):
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
        nominal = governor and tags[governor - 1].startswith(("N", "PRP", "CD", "DT", "W"))
        tree.promote(clauses[0], "mark")
        tree.labels[clauses[0]] = "acl" if nominal else "advcl"
        return
    tree.labels[position] = "advmod"


def _lower_copula(tree: Tree, position: int) -> None:
    """The edge is -attr-> surfer becomes surfer -cop-> is; `there is a man` makes the man the verb's subject."""
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
