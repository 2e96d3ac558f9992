"""Pronouns that stand for something in an earlier sentence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser import CaptionPipeline, load_pipeline
from spicegraph_scenes.discourse import resolve_across
from spicegraph_service.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def pipeline() -> CaptionPipeline:
    return load_pipeline()


LONG: dict[str, tuple[str, set[tuple[str, ...]], set[tuple[str, ...]]]] = {
    "it is the subject before": ("A brown dog lies on a couch. It looks at the camera.", {("dog", "camera", "look at")}, set()),
    "its": ("A dog lies on a couch. Its ears are long.", {("dog", "ear", "have")}, set()),
    "it is no person": ("A dog sleeps. A woman stands behind it.", {("woman", "dog", "stand behind")}, {("woman", "woman", "stand behind")}),
    "she is a person": ("A woman sits beside a dog. She holds a cup.", {("woman", "cup", "hold")}, {("dog", "cup", "hold")}),
    "they are several": ("Two dogs run on a beach. They chase a ball.", {("dog", "ball", "chase")}, {("beach", "ball", "chase")}),
    "a chain": ("A man rides a horse. He wears a hat. He holds a rope.", {("man", "hat", "wear"), ("man", "rope", "hold")}, set()),
    "I is nobody": ("A dog sleeps. I like the couch.", set(), {("dog", "couch", "like")}),
}  # fmt: skip


@pytest.mark.model
@pytest.mark.parametrize(("text", "there", "not_there"), LONG.values(), ids=LONG.keys())
def test_pronouns_across_sentences(text: str, there: set[tuple[str, ...]], not_there: set[tuple[str, ...]]) -> None:
    found = set(next(load_pipeline("en_caption+long").captions([text])).tuples)
    assert there <= found
    assert not found & not_there


@pytest.mark.model
def test_one_sentence_is_left_alone(pipeline: CaptionPipeline) -> None:
    long = load_pipeline("en_caption+long")
    texts = ["A man on his bike.", "It is raining.", ""]
    assert [c.facts for c in long.captions(texts)] == [c.facts for c in pipeline.captions(texts)]
    assert long.signature == f"{pipeline.signature}+long"
    (caption,) = pipeline.parse(["A dog runs. A cat sleeps."])
    assert resolve_across(caption) == caption


@pytest.mark.model
def test_the_pronoun_keeps_its_place(pipeline: CaptionPipeline) -> None:
    text = "A dog lies there. It is brown."
    (caption,) = load_pipeline("en_caption+long").captions([text])
    fact = next(fact for fact in caption.facts if fact.words == ("dog", "brown"))
    words = [word for parse in caption.sentences for word in parse.words]
    assert [words[token].form for slot in fact.tokens for token in slot] == ["It", "brown"]


@pytest.mark.model
def test_long_captions_are_not_cut(pipeline: CaptionPipeline) -> None:
    sentences = [f"A {color} car stands beside house {number}." for number, color in enumerate(["red", "blue"] * 60)]
    (caption,) = load_pipeline("en_caption+long").captions([" ".join(sentences)])
    assert len(caption.sentences) == len(sentences)
    assert sum(words == ("car", "red") for words in caption.tuples) == 60


@pytest.mark.model
def test_ready_graphs_are_compared_with_long_captions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    graph = {"id": 1, "candidate": "( dog , is , brown )", "references": ["A dog lies there. It is brown."]}
    (tmp_path / "g.jsonl").write_text(json.dumps(graph))
    assert (
        main(["score", str(tmp_path / "g.jsonl"), "--graphs", "--format", "json", "--pipeline", "en_caption+long"]) == 0
    )
    long = json.loads(capsys.readouterr().out)
    assert long["items"][0]["scores"]["SPICE_categories"]["Attribute"]["tp"] == 1
    assert long["signature"]["metrics"]["spice"]["pipeline"].endswith("+long+graphs")
