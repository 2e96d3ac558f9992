"""The scene parser behind the core's doors: ``load_pipeline``, scores and the spaCy component."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest
import spacy

from spicegraph_parser import load_pipeline, parse_captions
from spicegraph_parser.errors import DataError
from spicegraph_scorer import Item, score

GOLDEN = Path(__file__).parents[1] / "golden" / "spice" / "spice_parses.jsonl.gz"
TEXT = "A man in a red shirt rides two brown horses. The man looks up at the sky."


@pytest.mark.model
def test_scene_graphs_and_long_captions_take_it_too() -> None:
    pytest.importorskip("onnxruntime")
    text = "A man is riding a brown horse. It is near a fence."
    for name in ("scene", "en_caption"):
        (fast,), (floats,) = (list(load_pipeline(name + end).captions([text])) for end in ("+fast", ""))
        assert fast.facts == floats.facts
    fast_long = load_pipeline("en_caption+fast+long")
    assert fast_long.signature == f"{load_pipeline().signature}+fast+long"
    assert ("horse", "fence", "near") in next(fast_long.captions([text])).tuples


def test_an_unknown_runtime_is_named() -> None:
    with pytest.raises(DataError, match=r"unknown runtime '' \(known: .*fast"):
        load_pipeline("scene+")


@pytest.mark.model
def test_style_scene_draws_what_the_scene_parser_draws() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("scene_graph", config={"style": "scene"})
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        known = [json.loads(line)["text"] for line in islice(lines, 40)]
    texts = [*known, "", "  Two  dogs (asleep) 🐶 lie on a mat "]
    docs = list(nlp.pipe(texts, batch_size=7))
    assert [doc._.scene_graph.tuples for doc in docs] == [caption.tuples for caption in parse_captions(texts, "scene")]
    graph = nlp(TEXT)._.scene_graph
    said = [(part.subject.spans[0].text, part.name, part.object.spans[0].text) for part in graph.relations]
    assert ("man", "ride", "horses") in said
    again = spacy.load("en_caption")
    again.add_pipe("scene_graph", config={"style": "scene"})
    assert again.from_bytes(again.to_bytes())(TEXT)._.scene_graph.tuples


@pytest.mark.model
def test_scene_graphs_have_another_count_and_no_remedy() -> None:
    found = score(
        [Item(1, "Some dogs.", ("Some dogs.",)), Item(2, "a brown dog", ("a dog",))], pipeline="scene"
    ).empty_graphs
    assert not found
    nothing = score([Item(1, "Of the.", ("a dog",))], pipeline="scene").empty_graphs
    assert list(nothing.notes()) == [
        "1 of 1 candidate has an empty graph, which SPICE scores 0, such as 'Of the.' (image_id 1)"
    ]
