"""Quantifying phrases and pronouns (tests/cases/cleanup.conllu), and the index that the rules use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spicegraph_parser.fronts.conllu import read_conllu
from spicegraph_parser.spice.cleanup import clean_up
from spicegraph_parser.spice.collapse import collapse
from spicegraph_parser.spice.extraction import extract
from spicegraph_parser.spice.parse import Edge, Parse, Word

_FILE = Path(__file__).parents[1] / "cases" / "cleanup.conllu"
_BLOCKS = _FILE.read_text(encoding="utf-8").strip().split("\n\n")


@pytest.mark.parametrize("block", [pytest.param(block, id=block.splitlines()[0]) for block in _BLOCKS])
def test_case(block: str) -> None:
    """The tuples of all rules are those of the case, in order."""
    fields = dict(re.findall(r"^# (\w+) = ?(.*)$", block, re.MULTILINE))
    (caption,) = read_conllu(block.splitlines())
    facts = [tuple(fact.split(", ")) for fact in re.findall(r"\(([^()]*)\)", fields["facts"])]
    assert list(extract(caption).tuples) == facts, fields["purpose"]


def _block(text: str) -> Parse:
    (block,) = [block for block in _BLOCKS if block.startswith(f"# text = {text}\n")]
    (caption,) = read_conllu(block.splitlines())
    return collapse(caption.sentences[0])


def test_phrase_becomes_one_quantifier() -> None:
    """The phrase hangs on its noun by its first word, and its other words on that one."""
    graph = clean_up(_block("a large number of trees"))
    assert [edge for edges in graph.children.values() for edge in edges] == [
        Edge("root", 0, 5),
        Edge("mwe", 1, 2),
        Edge("mwe", 1, 3),
        Edge("mwe", 1, 4),
        Edge("det:qmod", 5, 1),
        Edge("case", 5, 4),
    ]


def test_index_is_in_word_order() -> None:
    """Families and children are ordered by head, then dependent, whatever the order of the edges."""
    words = tuple(Word(form, tag, form) for form, tag in [("cat", "NN"), ("on", "IN"), ("mat", "NN"), ("sun", "NN")])
    edges = (Edge("nmod:in", 3, 4), Edge("case", 3, 2), Edge("nmod:on", 1, 3), Edge("root", 0, 1))
    graph = clean_up(Parse(words, edges), offset=3)
    assert graph.families["nmod"] == [Edge("nmod:on", 1, 3), Edge("nmod:in", 3, 4)]
    assert graph.dependents(3, "case") == [2]
    assert graph.dependents(9, "case") == []
    assert graph.nouns == {1: ("cat", (3,)), 3: ("mat", (5,)), 4: ("sun", (6,))}
    assert graph.slot(2) == ("on", (4,))


def test_later_pronouns_see_earlier_ones_resolved() -> None:
    """Both pronouns of "a man on his bike with his dog" lead to the man, and what hung on them does too."""
    tags = ["DT", "NN", "IN", "PRP$", "NN", "IN", "PRP$", "NN"]
    forms = ["a", "man", "on", "his", "bike", "with", "his", "dog"]
    edges = (
        Edge("root", 0, 2), Edge("det", 2, 1), Edge("nmod:on", 2, 5), Edge("case", 5, 3),
        Edge("nmod:poss", 5, 4), Edge("nmod:with", 5, 8), Edge("case", 8, 6), Edge("nmod:poss", 8, 7),
    )  # fmt: skip
    graph = clean_up(Parse(tuple(Word(f, t, f) for f, t in zip(forms, tags, strict=True)), edges))
    assert [arc for arc in graph.families["nmod"] if arc[0] == "nmod:poss"] == [
        Edge("nmod:poss", 5, 2),
        Edge("nmod:poss", 8, 2),
    ]
