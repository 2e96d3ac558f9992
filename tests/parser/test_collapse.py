"""Collapsing, construction by construction (tests/cases/collapse.conllu)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.fronts.conllu import read_conllu
from spicegraph_parser.spice.cleanup import clean_up
from spicegraph_parser.spice.collapse import collapse
from spicegraph_parser.spice.parse import Edge, Parse, Word

_FILE = Path(__file__).parents[1] / "cases" / "collapse.conllu"
_BLOCKS = _FILE.read_text(encoding="utf-8").strip().split("\n\n")


def _edges(text: str) -> set[Edge]:
    """Read ``nmod:on(2, 5) case(5, 3)``."""
    return {Edge(label, int(head), int(at)) for label, head, at in re.findall(r"(\S+)\((\d+), (\d+)\)", text)}


@pytest.mark.parametrize("block", [pytest.param(block, id=block.splitlines()[0]) for block in _BLOCKS])
def test_case(block: str) -> None:
    """Exactly the named edges come and go."""
    fields = dict(re.findall(r"^# (\w+) = ?(.*)$", block, re.MULTILINE))
    (caption,) = read_conllu(block.splitlines())
    (parse,) = caption.sentences
    before, after = set(parse.edges), set(collapse(parse).edges)
    assert after - before == _edges(fields["gains"]), fields["purpose"]
    assert before - after == _edges(fields["loses"]), fields["purpose"]


def test_collapsed_parse_comes_back_unchanged() -> None:
    """One collapsed label shows that the graph has been collapsed: nothing is named twice."""
    words = tuple(Word(form, "NN", form) for form in ("cat", "on", "mat", "by", "door"))
    edges = (Edge("root", 0, 1), Edge("nmod:on", 1, 3), Edge("case", 3, 2), Edge("nmod", 3, 5), Edge("case", 5, 4))
    parse = Parse(words, edges)
    assert collapse(parse) is parse


_WORDS = st.sampled_from(["on", "top", "of", "in", "front", "next", "to", "out", "by", "and", "as", "cat", "dog"])
_LABELS = st.sampled_from(["nmod", "case", "conj", "cc", "nsubj", "auxpass", "advmod", "acl", "mwe", "root", "dep"])


@given(st.data())
def test_no_graph_makes_it_raise_and_twice_is_once(data: st.DataObject) -> None:
    """Any labels on any edges, trees or not: words are kept, and a collapsed graph with named relations stays."""
    forms = data.draw(st.lists(_WORDS, min_size=1, max_size=12))
    size = len(forms)
    heads = data.draw(st.lists(st.tuples(_LABELS, st.integers(0, size), st.integers(1, size)), max_size=16))
    parse = Parse(tuple(Word(form, "NN", form) for form in forms), tuple(Edge(*head) for head in heads))
    once = collapse(parse)
    assert once.words == parse.words
    clean_up(once)
    if any(edge.label.startswith(("nmod:", "conj:")) for edge in once.edges):
        assert collapse(once) is once
