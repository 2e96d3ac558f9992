"""Every metric in a real challenge: scored in parts by workers, finished in a process of its own."""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.sandbox.tasks import Finish, error_rows, finish
from spicegraph_parser import load_pipeline
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import SPICE_TEXTS, tokenize_texts
from spicegraph_scorer.metrics import METRICS
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import score
from spicegraph_service.pool.evaluate import Evaluator
from spicegraph_service.pool.processes import frame
from spicegraph_service.pool.tasks import ItemsWork, ItemWork, Work, WorkReply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from arenas import Arena
    from servers import RunningServer
    from spicegraph_scorer.core.tokens import SpiceText

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer], tools: type
) -> Iterator[tuple[Arena, ChallengeClient]]:
    """A server for the challenges of these tests, and its organiser."""
    folder = tmp_path_factory.mktemp("metrics")
    arena = tools.arena(str(folder / "challenges.db"), folder, start_server)
    with ChallengeClient(arena.start().address, arena.organiser()) as client:
        yield arena, client


def test_every_metric_is_scored_as_by_the_library(served: tuple[Arena, ChallengeClient], tools: type) -> None:
    """A challenge with every metric prints the corpus scores of `spicegraph score --metrics all`, to the bit."""
    (arena, client), names = served, list(METRICS)
    references = arena.write("references.json", tools.annotations(tools.small))
    results = arena.write("captions_val_mine_results.json", tools.results("x"))
    client.create_challenge(tools.challenge("all", metrics=names))
    client.upload_references("all", "val", "c5", references)
    *_, last = client.watch(client.submit("all", results)[0].id)
    assert last.state == pb.SubmissionState.SUBMISSION_STATE_SUCCEEDED, last
    found = {row.name: row.value if row.HasField("value") else None for row in last.scores[0].scores}
    items = read_items(str(results), references=[str(references)]).items
    result = score(items, names)
    assert found == {each.name: each.value for run in result.runs for each in run.scores}
    assert found["SPIDEr"] is not None


PUNCTUATED = {
    0: ["A man, riding a horse; on the beach.", "Man on a brown Horse."],
    1: ["Two Dogs: one red, one white!", "A dog's ball - blue."],
    2: ["A T-shirt (white) on a chair."],
    3: ["The U.S. flag."],
}
CANDIDATES = ("A Brown Horse; a man.", "Dogs: red, white.", "A white T-shirt!", "A flag, red.")


@pytest.mark.parametrize("text", ["written", "coco"])
def test_spice_parses_the_text_that_the_challenge_chooses(
    text: SpiceText, served: tuple[Arena, ChallengeClient], tools: type
) -> None:
    (arena, client), name, metrics = served, f"text-{text}", ["rouge", "spice", "spice-g", "spider"]
    references = arena.write("punctuated.json", tools.annotations(PUNCTUATED))
    captions = [{"image_id": key, "caption": caption} for key, caption in enumerate(CANDIDATES)]
    results = arena.write("captions_val_mine_results.json", captions)
    value = scores_pb2.SPICE_TEXT_COCO if text == "coco" else scores_pb2.SPICE_TEXT_UNSPECIFIED
    client.create_challenge(tools.challenge(name, metrics=metrics, spice_text=value))
    stored = client.get_challenge(name).challenge.settings.spice_text
    assert stored == (scores_pb2.SPICE_TEXT_COCO if text == "coco" else scores_pb2.SPICE_TEXT_WRITTEN)
    client.upload_references(name, "val", "c5", references)
    *_, last = client.watch(client.submit(name, results)[0].id)
    found = {row.name: row.value if row.HasField("value") else None for row in last.scores[0].scores}

    items = read_items(str(results), references=[str(references)]).items
    result = score(items, metrics, spice_text=text)
    other = score(items, metrics, spice_text="written" if text == "coco" else "coco")
    assert found == {each.name: each.value for run in result.runs for each in run.scores}
    assert result.corpus["SPICE"] != other.corpus["SPICE"]
    said = {signature.metric: signature.fields.get("text") for signature in last.origin.signatures}
    assert said["spice"] == said["spider"] == SPICE_TEXTS[text]
    assert "text" not in {signature.metric: signature.fields for signature in last.origin.signatures}["rouge"]
    assert not last.origin.outdated
    assert client.rescore(name) == 0
    assert SPICE_TEXTS[text] in b"".join(client.report(last.id)).decode()


def test_spice_compares_graphs_of_the_style_that_the_challenge_chooses(
    served: tuple[Arena, ChallengeClient], tools: type
) -> None:
    (arena, client), metrics = served, ["rouge", "spice", "spice-g", "spider", "capture"]
    references = arena.write("punctuated.json", tools.annotations(PUNCTUATED))
    captions = [{"image_id": key, "caption": caption} for key, caption in enumerate(CANDIDATES)]
    results = arena.write("captions_val_mine_results.json", captions)
    style = scene_graph_pb2.GRAPH_STYLE_SCENE
    client.create_challenge(tools.challenge("scenes", metrics=metrics, graph_style=style))
    assert client.get_challenge("scenes").challenge.settings.graph_style == style
    client.upload_references("scenes", "val", "c5", references)
    *_, last = client.watch(client.submit("scenes", results)[0].id)
    found = {row.name: row.value if row.HasField("value") else None for row in last.scores[0].scores}

    items = read_items(str(results), references=[str(references)]).items
    result = score(items, metrics, pipeline="scene")
    assert found == {each.name: each.value for run in result.runs for each in run.scores}
    assert result.corpus["SPICE"] != score(items, metrics).corpus["SPICE"]
    said = {signature.metric: signature.fields.get("pipeline") for signature in last.origin.signatures}
    assert said == {run.name: run.signature.get("pipeline") for run in result.runs}
    assert not last.origin.outdated
    assert client.rescore("scenes") == 0
    assert load_pipeline("scene").signature in b"".join(client.report(last.id)).decode()
    with pytest.raises(grpc.RpcError, match=r"challenge\.settings\.graph_style: 9 is not one of its values"):
        client.create_challenge(tools.challenge("odd", graph_style=9))


def test_a_challenge_may_take_empty_captions(served: tuple[Arena, ChallengeClient], tools: type) -> None:
    arena, client = served
    references = arena.write("references.json", tools.annotations(PUNCTUATED))
    texts = ("", " ", "A white T-shirt!", "A flag.")
    results = arena.write(
        "captions_val_mine_results.json", [{"image_id": key, "caption": text} for key, text in enumerate(texts)]
    )
    ended = {}
    for name, empty in (("strict", scores_pb2.EMPTY_CANDIDATES_UNSPECIFIED), ("lax", scores_pb2.EMPTY_CANDIDATES_ZERO)):
        client.create_challenge(tools.challenge(name, metrics=["rouge", "spice"], empty=empty))
        client.upload_references(name, "val", "c5", references)
        *_, ended[name] = client.watch(client.submit(name, results)[0].id)
    assert client.get_challenge("strict").challenge.settings.empty == scores_pb2.EMPTY_CANDIDATES_REFUSE
    assert client.get_challenge("lax").challenge.settings.empty == scores_pb2.EMPTY_CANDIDATES_ZERO
    faults = [(fault.item, fault.reason) for fault in ended["strict"].failure.faults]
    assert faults == [("item 1 (image_id 0)", "is empty"), ("item 2 (image_id 1)", "is empty")]
    (scores,) = ended["lax"].scores
    assert (scores.image_count, scores.empty_candidate_count) == (4, 2)
    items = read_items(str(results), references=[str(references)], empty="zero").items
    result = score(items, ["rouge", "spice"], empty="zero")
    found = {row.name: row.value if row.HasField("value") else None for row in scores.scores}
    assert found == {each.name: each.value for run in result.runs for each in run.scores}
    page = re.sub(r"<[^>]*>", " ", b"".join(client.report(ended["lax"].id)).decode())
    assert "empty candidates 2 scored zero" in " ".join(page.split())


def test_what_models_leave_behind_is_refused_at_intake_or_taken_off(
    served: tuple[Arena, ChallengeClient], tools: type
) -> None:
    arena, client = served
    references = arena.write("references.json", tools.annotations(PUNCTUATED))
    texts = ("a man <eos> <pad>", "A sign.", "A white T-shirt!</s>", "A flag.")
    entries = [{"image_id": key, "caption": text} for key, text in enumerate(texts)]
    results = arena.write("captions_val_mine_results.json", entries)
    ended = {}
    for name, rule in (
        ("refusing", scores_pb2.CONTROL_TOKENS_UNSPECIFIED),
        ("stripping", scores_pb2.CONTROL_TOKENS_STRIP),
        ("keeping", scores_pb2.CONTROL_TOKENS_KEEP),
    ):
        client.create_challenge(tools.challenge(name, metrics=["rouge", "spice"], control_tokens=rule))
        client.upload_references(name, "val", "c5", references)
        *_, ended[name] = client.watch(client.submit(name, results)[0].id)
    assert client.get_challenge("refusing").challenge.settings.control_tokens == scores_pb2.CONTROL_TOKENS_REFUSE
    assert [(fault.field, fault.reason) for fault in ended["refusing"].failure.faults] == [
        (
            "caption",
            "2 of 4 candidates contain what models leave behind, such as 'a man <eos> <pad>' (image_id 0); "
            "'A white T-shirt!</s>' (image_id 2); take them off, and submit again",
        )
    ]
    items = {
        rule: read_items(str(results), references=[str(references)], control_tokens=rule).items
        for rule in ("strip", "keep")
    }
    for name, of_rule in (("stripping", items["strip"]), ("keeping", items["keep"])):
        found = {row.name: row.value if row.HasField("value") else None for row in ended[name].scores[0].scores}
        result = score(of_rule, ["rouge", "spice"])
        assert found == {each.name: each.value for run in result.runs for each in run.scores}
    assert b"a man" in b"".join(client.report(ended["keeping"].id))
    entries[0]["caption"] = "<pad>"
    results = arena.write("captions_val_mine_results.json", entries)
    *_, last = client.watch(client.submit("stripping", results)[0].id)
    faults = [(fault.item, fault.reason) for fault in last.failure.faults]
    assert faults == [("without control tokens (image_id 0)", "is empty")]


def test_errors_are_counted_and_told_rounded_down(tmp_path: Path) -> None:
    """Of 40 images 35 have a blue cup called red: 30 are told, and of the three others nothing."""
    worker = Evaluator(load_pipeline())
    statistics = tmp_path / "statistics"
    with statistics.open("wb") as stream:
        for start in range(0, 40, 10):
            items = tuple(
                ItemWork(
                    str(number),
                    f"a {'red' if number < 38 else 'green'} cup",
                    (f"a {'blue' if number < 35 else 'green'} cup on a table",),
                )
                for number in range(start, start + 10)
            )
            reply = worker.run(Work((ItemsWork(("rouge", "spice"), 0, items, finish=False, errors=True),), {}))
            assert isinstance(reply, WorkReply)
            stream.write(frame(reply.groups[0].statistics))
    done = finish(Finish(("rouge", "spice"), str(statistics)))
    errors = {(row.kind, *row.words): row for row in done.errors}
    confused = errors["color_confused", "blue", "red"]
    assert confused.images == 30
    assert (confused.title, confused.columns) == ("Color confused", ("References say", "Candidate says"))
    assert ("color_confused", "green", "red") not in errors
    assert errors["object_missed", "table"].images == 40
    assert errors["object_missed",].images == 40
    assert not any(row.kind.startswith("attribute_of_missed") for row in done.errors)
    assert [row.name for row in done.scores][:2] == ["ROUGE_L", "SPICE"]


def test_few_words_are_told() -> None:
    """Each of 30 images has 40 errors of words of its own kind: eight of what is said, four of what is missed."""
    of_image = [("object_invented", (f"a{n}",)) for n in range(40)] + [("object_missed", (f"b{n}",)) for n in range(40)]
    rows = error_rows([of_image] * 30)
    assert [row.kind for row in rows if not row.words] == ["object_invented", "object_missed"]
    assert [row.kind for row in rows if row.words] == ["object_invented"] * 8 + ["object_missed"] * 4
    assert not error_rows([of_image] * 9)


def test_every_metric_is_finished_with_frozen_document_frequencies(tools: type, tmp_path: Path) -> None:
    """Workers with data of the server's own collect, and another process with the same data finishes."""
    items = [Item(str(key), f"a {word} on a mat", tuple(tools.small[key])) for key, word in enumerate(("dog", "cat"))]
    frozen = DocumentFrequencies.from_references([tokenize_texts(texts) for texts in tools.small.values()])
    data = MetricData(frequencies=frozen)
    worker = Evaluator(load_pipeline(), data)
    statistics = tmp_path / "statistics"
    with statistics.open("wb") as stream:
        for one in items:
            chunk = ItemsWork(tuple(METRICS), 0, (ItemWork(one.id, one.candidate, one.references),), finish=False)
            reply = worker.run(Work((chunk,), {}))
            assert isinstance(reply, WorkReply)
            stream.write(frame(reply.groups[0].statistics))
    done = finish(Finish(tuple(METRICS), str(statistics), pickle.dumps(data)))
    truth = score(items, tuple(METRICS), data=data)
    assert {row.name: row.value for row in done.scores} == {s.name: s.value for run in truth.runs for s in run.scores}
