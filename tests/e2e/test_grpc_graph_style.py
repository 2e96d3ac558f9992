"""A request names the style of scene graphs: one server gives both, with the scores of the library and the commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer import score
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_service.cli import main
from spicegraph_service.client import Client, item
from spicegraph_service.pool.tasks import ItemsWork, ItemWork, RequestData, StyledText

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers import RunningServer

pytestmark = pytest.mark.model

ITEMS = [
    Item(f"{n}", candidate, references)
    for n, (candidate, references) in enumerate(
        [
            ("A dog is lying on a bed. It is brown.", ("a brown dog lying on a bed", "There is no cat.")),
            ("A man stands next to a fire hydrant.", ("a man in a red shirt", "a man beside a hydrant")),
        ]
        * 40  # more than one chunk
    )
]
SENT = [item(i.id, i.candidate, i.references) for i in ITEMS]
STYLES = {
    scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED: "en_caption",
    scene_graph_pb2.GRAPH_STYLE_SPICE: "en_caption",
    scene_graph_pb2.GRAPH_STYLE_SCENE: "scene",
}
METRICS = ["spice", "spice-exact", "spice-g", "spider", "rouge"]


@pytest.mark.parametrize("style", STYLES)
def test_batch_and_stream_score_the_graphs_that_the_request_names(
    client: Client, style: scene_graph_pb2.GraphStyle.ValueType
) -> None:
    expected = score(ITEMS, METRICS, pipeline=STYLES[style])
    assert expected.corpus["SPICE"] != score(ITEMS, pipeline="scene" if STYLES[style] != "scene" else "en_caption")
    reply = client.score(SENT, metrics=METRICS, graph_style=style)
    *_, last = client.stream(iter(SENT), metrics=METRICS, graph_style=style)
    wanted = {s.name: s.value for run in expected.runs for s in run.scores if s.value is not None}
    for corpus in (reply.corpus, last.corpus):
        assert {name: value for name, value in corpus.scores.items() if value is not None} == wanted
        said = {s.metric: s.fields.get("pipeline") for s in corpus.signatures}
        assert said == {run.name: run.signature.get("pipeline") for run in expected.runs}
    assert [row["SPICE"] for row in reply.items] == list(expected.runs[0].scores[0].each)


def test_the_scores_are_those_of_the_command(client: Client, tmp_path: Path) -> None:
    """To the last bit: both print the shortest decimal that is read back as the same number."""
    source, out = tmp_path / "items.jsonl", tmp_path / "out.json"
    rows = [{"id": i.id, "candidate": i.candidate, "references": i.references} for i in ITEMS]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["score", str(source), "--metrics", "spice,spice-g", "--graph-style", "scene", "-o", str(out)]) == 0
    printed = json.loads(out.read_text())
    reply = client.score(SENT, metrics=["spice", "spice-g"], graph_style=scene_graph_pb2.GRAPH_STYLE_SCENE)
    assert reply["SPICE"] == printed["corpus"]["SPICE"]
    assert [{name: row[name] for name in ("SPICE", "SPICE-G")} for row in reply.items] == [
        {name: row["scores"][name] for name in ("SPICE", "SPICE-G")} for row in printed["items"]
    ]


def test_a_parse_has_the_style_and_what_is_kept_apart(client: Client) -> None:
    text = "There are no people on the empty street."
    (plain,) = client.parse([text])
    (scene,) = client.parse([text], graph_style=scene_graph_pb2.GRAPH_STYLE_SCENE)
    assert not plain.apart
    caption = next(load_pipeline("scene").captions([text]))
    assert scene.text == text
    assert [tuple(slot.word for slot in apart.fact.slots) for apart in scene.apart] == [f.words for f in caption.apart]
    people = next(apart for apart in scene.apart if apart.fact.slots[0].word == "people")
    assert (people.fact.rule, people.certainty) == ("denied", 0.0)
    assert [(span.start, span.end) for span in people.fact.slots[0].spans] == [(13, 19)]
    assert "people" not in {node.concept.strings[0] for node in scene.graph.objects}
    assert client.server_info().scene_pipeline == load_pipeline("scene").signature


def test_a_graph_has_what_people_draw_and_a_score_all_that_is_said(client: Client) -> None:
    """Of a description: the server's graph and tuples are those of the parser, its score that of the library."""
    text = """A wooden coffee table sits in front of the sofa, holding a vase of fresh tulips and two magazines. To the
    left of the sofa, a tall floor lamp casts a warm glow. A rug lies on the floor, and a cat is sleeping there."""
    scenes = load_pipeline("scene")
    caption = next(scenes.captions([text]))
    style = scene_graph_pb2.GRAPH_STYLE_SCENE
    (scene,) = client.parse([text], graph_style=style)
    assert {apart.fact.rule for apart in scene.apart} == {"faint"}
    assert [tuple(slot.word for slot in fact.slots) for fact in scene.facts] == list(caption.tuples)
    assert len(scene.tuples) == len(caption.graph().tuples())
    references = ["A table holds a vase.", "A lamp stands left of a sofa."]
    reply = client.score([item("1", text, references)], metrics=["spice"], graph_style=style)
    items = [Item("1", text, tuple(references))]
    assert reply["SPICE"] == score(items, pipeline="scene").corpus["SPICE"]
    drawn = FunctionSource.of_table(
        "drawn", {text: caption.facts, **dict(zip(references, scenes.facts(references), strict=True))}
    )
    assert reply["SPICE"] != score(items, pipeline=drawn).corpus["SPICE"]


def test_a_reference_set_serves_both_styles(client: Client) -> None:
    entries = {i.id: i.references for i in ITEMS[:2]}
    stored = client.create_reference_set(entries, graph_style=scene_graph_pb2.GRAPH_STYLE_SCENE)
    assert client.create_reference_set(entries).id == stored.id
    candidates = [item(i.id, i.candidate) for i in ITEMS[:2]]
    for style, pipeline in STYLES.items():
        reply = client.score(candidates, reference_set=stored.id, graph_style=style)
        assert reply["SPICE"] == score(ITEMS[:2], pipeline=pipeline).corpus["SPICE"]


def test_a_value_that_the_contract_lacks_is_refused(client: Client) -> None:
    calls: list[Callable[[], object]] = [
        lambda: client.score(SENT[:1], graph_style=9),  # type: ignore[arg-type]
        lambda: client.parse(["a dog"], graph_style=9),  # type: ignore[arg-type]
        lambda: list(client.stream(SENT[:1], graph_style=9)),  # type: ignore[arg-type]
        lambda: client.create_reference_set({"1": ["a dog"]}, graph_style=9),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "graph_style: 9 is not one of its values" in caught.value.details()


@pytest.mark.slow
def test_a_server_whose_pipeline_is_of_scenes_refuses_the_other_style(
    start_server: Callable[..., RunningServer],
) -> None:
    with Client(start_server("--pipeline", "scene").address) as scenes:
        assert scenes.score(SENT[:2])["SPICE"] == score(ITEMS[:2], pipeline="scene").corpus["SPICE"]
        with pytest.raises(grpc.RpcError) as caught:
            scenes.score(SENT[:2], graph_style=scene_graph_pb2.GRAPH_STYLE_SPICE)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "gives scene graphs only" in caught.value.details()


def test_parses_of_both_styles_are_told_apart() -> None:
    items = (ItemWork("1", "A dog!", ("a cat.",)),)
    given = RequestData(spice_text="coco", graph_style="scene")
    work = ItemsWork(("spice", "spice-g"), scores_pb2.DETAIL_SCORES, items, finish=True, given=given)
    assert set(work.texts({"spice": True, "spice-g": False})) == {
        StyledText(text, "scene") for text in ("a dog", "a cat", "A dog!", "a cat.")
    }
