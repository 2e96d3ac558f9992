"""The bundled pipeline: what spaCy sees of it, and that it parses as the reference did."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spicegraph_parser.caption_pipeline import components, pipeline_path
from spicegraph_parser.errors import DataError
from spicegraph_parser.pipelines import load_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spacy.language import Language

pytestmark = pytest.mark.model

_GOLDEN = Path(__file__).parents[1] / "golden" / "spice"
_MOST_BYTES = 12 * 1024 * 1024


class _Sentence(TypedDict):
    words: list[str]
    tags: list[str]
    lemmas: list[str]
    offsets: list[list[int]]
    basic: list[tuple[str, int, int]]


class _Golden(TypedDict):
    text: str
    sentences: list[_Sentence]
    tuples: list[list[str]]


def _golden(name: str) -> list[_Golden]:
    with gzip.open(_GOLDEN / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def nlp() -> Language:
    return spacy.load(pipeline_path())


Row = tuple[str, str, str, str, int, bool]


def _rows(doc: Doc) -> list[Row]:
    return [(t.text, t.tag_, t.lemma_, t.dep_, t.head.i, bool(t.is_sent_start)) for t in doc]


# -- what spaCy sees


def test_a_caption_is_parsed(nlp: Language) -> None:
    doc = nlp("A man riding a brown horse.")
    assert _rows(doc) == [
        ("A", "DT", "a", "det", 1, True),
        ("man", "NN", "man", "ROOT", 1, False),
        ("riding", "VBG", "ride", "acl", 1, False),
        ("a", "DT", "a", "det", 5, False),
        ("brown", "JJ", "brown", "amod", 5, False),
        ("horse", "NN", "horse", "dobj", 2, False),
        (".", ".", ".", "punct", 1, False),
    ]


def test_sentences_are_those_of_the_tokenizer(nlp: Language) -> None:
    doc = nlp("Two dogs play. A cat watches! One sleeps")
    assert [sentence.text for sentence in doc.sents] == ["Two dogs play.", "A cat watches!", "One sleeps"]
    for sentence in doc.sents:
        assert [token.i for token in sentence if token.dep_ == "ROOT"] == [sentence.root.i]


def test_tokens_keep_the_captions_characters_and_their_ptb_form(nlp: Language) -> None:
    text = '  A "red"  bus (old)  can\'t 🐶 stop'
    doc = nlp(text)
    tokens = components.ptb_tokens(doc)
    assert [token.text for token in doc] == [text[start:end] for _, start, end in tokens]
    assert [token.text for token in tokens] == [
        *("A", "``", "red", "''", "bus", "-LRB-", "old", "-RRB-", "ca", "n't", "stop")
    ]
    assert [token.lemma_ for token in doc][5:10] == ["-lrb-", "old", "-rrb-", "can", "not"]


@pytest.mark.parametrize("text", ["", "   ", "🐶"])
def test_a_caption_without_words_is_an_empty_doc(nlp: Language, text: str) -> None:
    docs = list(nlp.pipe([text, "a dog", text]))
    assert [len(doc) for doc in docs] == [0, 2, 0]


def test_company_does_not_change_a_parse(nlp: Language) -> None:
    texts = [golden["text"] for golden in _golden("spice_parses.jsonl.gz")[:300]]
    together = [_rows(doc) for doc in nlp.pipe(texts)]
    assert [_rows(doc) for doc in nlp.pipe(texts, batch_size=7)] == together
    assert [_rows(nlp(text)) for text in texts[:50]] == together[:50]
    assert [_rows(doc) for doc in nlp.pipe([*texts[9::-1], *texts[:9]])] == [*together[9::-1], *together[:9]]


def test_a_very_long_text_is_parsed_in_parts(nlp: Language) -> None:
    doc = nlp("a dog and a cat " * 200)
    assert len(doc) == 1000
    assert [len(sentence) for sentence in doc.sents] == [62, *[60] * 15, 38]


def test_ready_tokens_can_be_parsed(nlp: Language) -> None:
    doc = Doc(nlp.vocab, words=["a", "dog", "sleeps", ".", "it", "snores"], sent_starts=[1, 0, 0, 0, 1, 0])
    for _, component in nlp.pipeline:
        doc = component(doc)
    assert [len(sentence) for sentence in doc.sents] == [4, 2]
    assert components.ptb_tokens(doc)[1] == ("dog", 2, 5)


@given(text=st.text(max_size=80))
def test_no_text_makes_it_fail(nlp: Language, text: str) -> None:
    doc = nlp(text)
    assert all(token.tag_ and token.dep_ and token.lemma_ for token in doc)


# -- saving and loading


def test_plain_spacy_loads_it() -> None:
    """In a process that has not imported this package: by its entry points."""
    code = f"import spacy; print([t.tag_ for t in spacy.load({str(pipeline_path())!r})('a dog')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['DT', 'NN']"


def test_plain_spacy_finds_it_by_name() -> None:
    """Without a path, as any installed pipeline; what the installer says of it is what its own metadata say."""
    code = "import spacy; nlp = spacy.load('en_caption', exclude=['lemmatizer']); print(nlp.pipe_names, nlp.meta['version'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"['parser'] {importlib.metadata.version('en_caption')}"
    assert "en_caption" in spacy.util.get_installed_models()


def test_it_survives_saving(nlp: Language, tmp_path: Path) -> None:
    text = "Three children flying kites on a windy beach."
    nlp.to_disk(tmp_path)
    assert _rows(spacy.load(tmp_path)(text)) == _rows(nlp(text))
    empty = spacy.blank("en", config={"nlp": {"tokenizer": {"@tokenizers": components.TOKENIZER}}})
    empty.add_pipe(components.PARSER, name="parser")
    empty.add_pipe(components.LEMMATIZER, name="lemmatizer")
    assert _rows(empty.from_bytes(nlp.to_bytes())(text)) == _rows(nlp(text))


def test_docs_survive_saving(nlp: Language) -> None:
    doc = nlp("A dog (brown) runs. It barks.")
    bytes_ = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (again,) = DocBin().from_bytes(bytes_).get_docs(nlp.vocab)
    assert _rows(again) == _rows(doc)
    assert components.ptb_tokens(again) == components.ptb_tokens(doc)


def test_worker_processes_give_the_same(nlp: Language) -> None:
    texts = ["A dog runs.", "Two cats (asleep) on a bed", ""]
    assert [_rows(doc) for doc in nlp.pipe(texts, n_process=2)] == [_rows(doc) for doc in nlp.pipe(texts)]


def test_a_parser_without_network_says_so() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe(components.PARSER)
    with pytest.raises(DataError, match="has no network"):
        nlp("a dog")


@pytest.mark.parametrize(("name", "data"), [("network.npz", b""), ("network.npz", b"PK"), ("vocabulary.json", b"{")])
def test_a_damaged_network_says_so(tmp_path: Path, name: str, data: bytes) -> None:
    for file in (pipeline_path() / "parser").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        components.CaptionParser(spacy.blank("en").vocab).from_disk(tmp_path)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"V": {"ate": 1}}'])
def test_a_damaged_table_of_lemmas_says_so(data: bytes) -> None:
    with pytest.raises(DataError, match="damaged"):
        components.CaptionLemmatizer(spacy.blank("en").vocab).from_bytes(data)


def test_it_is_small() -> None:
    files = [path for path in pipeline_path().rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= _MOST_BYTES


# -- agreement with the reference


def _f1(found: Sequence[Sequence[Sequence[str]]], golden: Sequence[_Golden], length: int | None = None) -> float:
    both = mine = theirs = 0
    for tuples, gold in zip(found, golden, strict=True):
        bags = [
            Counter(tuple(words) for words in side if length in (None, len(words))) for side in (tuples, gold["tuples"])
        ]
        both += (bags[0] & bags[1]).total()
        mine += bags[0].total()
        theirs += bags[1].total()
    return 2 * both / (mine + theirs)


@pytest.mark.parametrize(
    ("name", "everything", "relations"),
    [("spice_parses.jsonl.gz", 0.94, 0.90), ("spice_parses_lower.jsonl.gz", 0.94, 0.90)],
)
def test_tuples_agree_with_the_reference(name: str, everything: float, relations: float) -> None:
    golden = _golden(name)
    pipeline = load_pipeline(str(pipeline_path()))
    found = [caption.tuples for caption in pipeline.captions(gold["text"] for gold in golden)]
    assert _f1(found, golden) >= everything
    assert _f1(found, golden, 3) >= relations


def test_tokens_and_lemmas_agree_with_the_reference(nlp: Language) -> None:
    golden = _golden("spice_parses.jsonl.gz")
    lemmas: Counter[bool] = Counter()
    for doc, gold in zip(nlp.pipe(gold["text"] for gold in golden), golden, strict=True):
        tokens = components.ptb_tokens(doc)
        assert [token.text for token in tokens] == [w for s in gold["sentences"] for w in s["words"]]
        assert [[t.start, t.end] for t in tokens] == [o for s in gold["sentences"] for o in s["offsets"]]
        assert [len(sentence) for sentence in doc.sents] == [len(s["words"]) for s in gold["sentences"]]
        wanted = [(tag, lemma) for s in gold["sentences"] for tag, lemma in zip(s["tags"], s["lemmas"], strict=True)]
        # Where the tag is the reference's, so must be the lemma.
        lemmas.update(
            token.lemma_ == lemma.lower() for token, (tag, lemma) in zip(doc, wanted, strict=True) if token.tag_ == tag
        )
    assert lemmas[True] / lemmas.total() >= 0.999
