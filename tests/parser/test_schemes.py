"""Schemes of labels: how they are told apart, and that a pipeline of each gives all of a caption's tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spicegraph_parser import DataError, InputError, extract, load_pipeline
from spicegraph_parser.fronts.schemes import Scheme, scheme_of
from spicegraph_parser.fronts.spacy import _joined, caption_of, load_spacy, pipeline_scheme

if TYPE_CHECKING:
    from pathlib import Path

_CAPTION = "A man rides a brown horse on the beach"
_TUPLES = {("man", "horse", "ride"), ("man", "beach", "ride on"), ("horse", "brown"), ("man",), ("horse",), ("beach",)}
# What a parser of each scheme says of the caption: labels, and heads as words from 0.
_PARSES = {
    "ud1": ("det nsubj ROOT det amod dobj case det nmod", (1, 2, 2, 5, 5, 2, 8, 8, 2)),
    "ud2": ("det nsubj ROOT det amod obj case det obl", (1, 2, 2, 5, 5, 2, 8, 8, 2)),
    "clearnlp": ("det nsubj ROOT det amod dobj prep det pobj", (1, 2, 2, 5, 5, 2, 2, 8, 6)),
    "tiger": ("nk sb ROOT nk nk oa mo nk nk", (1, 2, 2, 5, 5, 2, 2, 8, 6)),
}
_LEMMAS = ["a", "man", "ride", "a", "brown", "horse", "on", "the", "beach"]
_TAGS = ["DT", "NN", "VBZ", "DT", "JJ", "NN", "IN", "DT", "NN"]
_POS = ["DET", "NOUN", "VERB", "DET", "ADJ", "NOUN", "ADP", "DET", "NOUN"]


class _Parser:
    """A parser that knows one caption."""

    def __init__(self, scheme: str, *, penn: bool, states: bool) -> None:
        self._scheme = scheme
        self._penn = penn
        if states:
            self.labels = tuple(sorted({*_PARSES[scheme][0].split()}))

    def __call__(self, doc: Doc) -> Doc:
        labels, heads = _PARSES[self._scheme]
        for token, label, head, lemma, tag, pos in zip(doc, labels.split(), heads, _LEMMAS, _TAGS, _POS, strict=False):
            token.head, token.dep_, token.lemma_, token.pos_ = doc[min(head, len(doc) - 1)], label, lemma, pos
            token.tag_ = tag if self._penn else pos
        return doc

    def to_disk(self, path: Path, **_: Any) -> None:
        """Nothing to be kept."""

    def from_disk(self, path: Path, **_: Any) -> _Parser:
        return self


@Language.factory("one_caption_parser", default_config={"scheme": "ud2", "penn": True, "states": True})
def _make(nlp: Language, name: str, scheme: str, penn: bool, states: bool) -> _Parser:
    return _Parser(scheme, penn=penn, states=states)


def _saved(folder: Path, *, language: str = "en", **config: object) -> str:
    nlp = spacy.blank(language)
    nlp.add_pipe("one_caption_parser", config=config)
    nlp.meta["name"] = "one"
    nlp.to_disk(folder)
    return str(folder)


@pytest.mark.parametrize("penn", [True, False], ids=["Penn's tags", "tags from parts of speech"])
@pytest.mark.parametrize("states", [True, False], ids=["labels stated", "labels in documents"])
@pytest.mark.parametrize("scheme", ["ud1", "ud2"])
def test_a_pipeline_of_any_scheme_gives_all_tuples(tmp_path: Path, scheme: str, *, penn: bool, states: bool) -> None:
    pipeline = load_pipeline(_saved(tmp_path / "one", scheme=scheme, penn=penn, states=states))
    (caption,) = pipeline.captions([_CAPTION])
    assert set(caption.tuples) == _TUPLES


def test_clearnlp_is_recognised(tmp_path: Path) -> None:
    front = load_spacy(_saved(tmp_path / "one", scheme="clearnlp"))
    assert front.scheme is Scheme.CLEARNLP
    (caption,) = front.captions([_CAPTION])
    assert set(caption.tuples) == _TUPLES


def test_a_scheme_that_is_not_known_is_refused_with_its_labels(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("one_caption_parser", config={"scheme": "tiger"})
    nlp.get_pipe_meta("one_caption_parser").assigns = ["token.dep"]
    with pytest.raises(
        DataError, match=r"^the spaCy pipeline 'x' has labels of no scheme that is known: mo, nk, oa, sb "
    ):
        pipeline_scheme(nlp, "x")
    silent = load_pipeline(_saved(tmp_path / "one", scheme="tiger", states=False))
    with pytest.raises(
        DataError, match=r"^the document 'A man rides .* has labels of no scheme that is known: mo, nk,"
    ):
        list(silent.captions([_CAPTION]))


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.meta["name"] = "bare"
    nlp.to_disk(tmp_path / "bare")
    with pytest.raises(DataError, match="has no dependency parser"):
        load_pipeline(str(tmp_path / "bare"))
    with pytest.raises(DataError, match=r"^the document 'a dog' has no dependencies: its pipeline has no parser$"):
        caption_of(nlp("a dog"))


def test_the_language_is_the_pipelines_and_must_have_a_table(tmp_path: Path) -> None:
    pytest.importorskip("spicegraph_languages")
    assert load_spacy(_saved(tmp_path / "fr", language="fr")).language.code == "fr"
    with pytest.raises(InputError, match=r"^language: 'sv' is not known; known are cs, de, "):
        load_spacy(_saved(tmp_path / "sv", language="sv"))


def test_a_ready_document_shows_its_scheme() -> None:
    for scheme in ("ud1", "ud2"):
        labels, heads = _PARSES[scheme]
        doc = Doc(
            spacy.blank("en").vocab,
            words=_CAPTION.split(),
            lemmas=_LEMMAS,
            tags=_TAGS,
            pos=_POS,
            heads=list(heads),
            deps=labels.split(),
        )
        assert set(extract(caption_of(doc)).tuples) == _TUPLES


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ("nsubj obj obl:mod aux:pass", Scheme.UD2),
        ("nsubj dobj nsubjpass", Scheme.UD1),
        ("nsubj dobj pobj prep", Scheme.CLEARNLP),
        ("nsubj amod", Scheme.UD2),
        ("", Scheme.UD2),
    ],
)
def test_labels_show_their_scheme(labels: str, scheme: Scheme) -> None:
    assert scheme_of(set(labels.split()), source="x") is scheme


def test_sentences_without_a_root_lose_no_caption() -> None:
    """A StopIteration would end the captions behind without a word."""
    heads = [1, 0, -1, -2, -3, -4]
    assert _joined([0, 3, 4, 6], ["a", "man", ".", "x", "y", "z"], heads, ["dep"] * 6) == [0, 3, 6]
