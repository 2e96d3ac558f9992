"""CoNLL-U in and out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import InputError
from spicegraph_parser.fronts.conllu import read_conllu, write_conllu
from spicegraph_parser.spice.parse import Caption, Edge, Parse, Word, find_spans

_FORMS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=6)
_LABELS = st.sampled_from(["nsubj", "nmod", "nmod:on", "acl:relcl", "conj:and", "root"])


@st.composite
def _parses(draw: st.DrawFn) -> tuple[list[str], list[str], list[Edge]]:
    """Draw forms, tags and any edges (none, one or several into each word) in the order of their dependents."""
    forms = draw(st.lists(_FORMS, min_size=1, max_size=6))
    tags = draw(st.lists(st.sampled_from(["NN", "VBZ", "PRP$", "."]), min_size=len(forms), max_size=len(forms)))
    heads = st.lists(st.tuples(_LABELS, st.integers(0, len(forms))), max_size=3)
    edges = [Edge(label, head, at) for at in range(1, len(forms) + 1) for label, head in draw(heads)]
    return forms, tags, edges


@st.composite
def _captions(draw: st.DrawFn) -> Caption:
    sentences, text = [], ""
    for forms, tags, edges in draw(st.lists(_parses(), max_size=3)):
        words = []
        for form, tag in zip(forms, tags, strict=True):
            text += f" {form}" if text else form
            words.append(Word(form, tag, form.lower(), len(text) - len(form), len(text)))
        sentences.append(Parse(tuple(words), tuple(edges)))
    return Caption(text, tuple(sentences))


@given(st.lists(_captions(), max_size=4))
def test_what_is_written_is_read_back(captions: list[Caption]) -> None:
    """Basic trees, collapsed graphs, words outside of the graph, empty captions: all come back, spans too."""
    assert list(read_conllu(write_conllu(captions))) == captions


def _line(**changes: str) -> str:
    cells = dict(
        zip(
            ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"],
            ["1", "dog", "dog", "_", "NN", "_", "0", "root", "_", "_"],
            strict=True,
        )
    )
    return "\t".join((cells | changes).values())


def test_without_newdoc_a_block_is_a_caption() -> None:
    """A plain CoNLL-U file has one caption a sentence; its text is the comment, else the words."""
    lines = ["# text = Dog!", _line(), "", _line(FORM="Cats", LEMMA="_"), ""]
    first, second = read_conllu(lines)
    assert (first.text, first.sentences[0].words[0]) == ("Dog!", Word("dog", "NN", "dog", -1, -1))
    assert (second.text, second.sentences[0].words[0]) == ("Cats", Word("Cats", "NN", "cats", 0, 4))


def test_newdoc_holds_sentences_together() -> None:
    """The longest text of the document is the caption's; words are found in it from left to right."""
    lines = ["# newdoc id = 7", "# text = dog", _line(), "", "# text = dog dog", _line(), "", "# newdoc", _line()]
    first, second = read_conllu(lines)
    assert first.text == "dog dog"
    assert [parse.words[0][3:] for parse in first.sentences] == [(0, 3), (4, 7)]
    assert second.text == "dog"


def test_deps_replace_head_and_deprel() -> None:
    """An enhanced graph is read from DEPS, with subtypes in its labels."""
    (caption,) = read_conllu([_line(), _line(ID="2", DEPS="1:conj:and|0:root")])
    assert caption.sentences[0].edges == (Edge("root", 0, 1), Edge("conj:and", 1, 2), Edge("root", 0, 2))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 dog", "a CoNLL-U line has 10 tab-separated columns, this one has 1"),
        (_line(ID="2"), r"column ID is '2', expected 1 \(plain words only\)"),
        (_line(ID="1-2"), "column ID is '1-2'"),
        (_line(ID="1.1"), "column ID is '1.1'"),
        (_line(HEAD="two"), "column HEAD is 'two', expected a word number from 0 to 1"),
        (_line(HEAD="2"), "column HEAD is '2'"),
        (_line(HEAD="-1"), "column HEAD is '-1'"),
        (_line(HEAD="²"), "column HEAD is '²'"),
        (_line(DEPREL="_"), "column DEPREL is empty"),
        (_line(DEPS="0"), "column DEPREL is empty"),
        (_line(DEPS="x:nmod"), "column HEAD is 'x'"),
    ],
)
def test_faults_name_source_line_and_reason(line: str, reason: str) -> None:
    """A reader of the message finds the place at once."""
    with pytest.raises(InputError, match=f"^parses.conllu, line 3: {reason}"):
        list(read_conllu(["# text = dog", "", line], source="parses.conllu"))


@given(st.lists(_FORMS, max_size=8), st.text(max_size=40))
def test_spans_hold_the_word(forms: list[str], text: str) -> None:
    """A span is (-1, -1) or the word's own place, and spans never go back."""
    end = 0
    for form, span in zip(forms, find_spans(forms, text), strict=True):
        if span != (-1, -1):
            assert text[slice(*span)] == form
            assert span[0] >= end
            end = span[1]
