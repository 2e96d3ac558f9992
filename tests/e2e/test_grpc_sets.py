"""Sets of captions over the server: AllSPICE, the best and the mean are the library's, to the bit."""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from spicegraph_api.v1 import scores_pb2
from spicegraph_scorer import Resampling, score_sets
from spicegraph_service.client import AsyncClient, Client, ServiceError, item, item_set
from spicegraph_service.pool.costs import text_cost
from spicegraph_service.pool.tasks import ItemWork
from spicegraph_service.rpc.scheduler import count_captions, count_cost, item_chunks

if TYPE_CHECKING:
    from servers import RunningServer
    from spicegraph_scorer.core.results import Result

pytestmark = pytest.mark.model

COCO = Path(__file__).parents[2] / "examples" / "coco"
METRICS = ["spice", "spice-exact", "spice-g", "bleu", "rouge", "cider", "cider-r", "spider", "chair"]
COUNT = 90  # more than one chunk of the server
DOG = item_set("1", ["a dog", "a brown dog"], ["a brown dog runs"])


@pytest.fixture(scope="module")
def references() -> dict[int, list[str]]:
    captions: dict[int, list[str]] = {}
    for row in json.loads((COCO / "captions.json").read_text("utf-8"))["annotations"]:
        captions.setdefault(row["image_id"], []).append(row["caption"])
    return dict(list(captions.items())[:COUNT])


@pytest.fixture(scope="module")
def sets(references: dict[int, list[str]]) -> dict[int, list[str]]:
    """Sets of one to four captions: what two systems say, and references of the next image."""
    systems = [json.loads((COCO / f"{name}.json").read_text("utf-8")) for name in ("human", "retrieval")]
    said = [{row["image_id"]: row["caption"] for row in rows} for rows in systems]
    following = dict(zip(references, (*list(references.values())[1:], ["a dog"]), strict=True))
    return {
        image: [*(captions[image] for captions in said), *following[image][:2]][: number % 4 + 1]
        for number, image in enumerate(references)
    }


@pytest.fixture(scope="module")
def truth(sets: dict[int, list[str]], references: dict[int, list[str]]) -> Result:
    return score_sets(sets, references, METRICS)


def sent(sets: dict[int, list[str]], references: dict[int, list[str]]) -> list[scores_pb2.Item]:
    return [item_set(image, texts, references[image]) for image, texts in sets.items()]


def of_items(result: Result) -> dict[str, dict[str, float | None]]:
    return {str(each.id): dict(each.scores) for each in result}


def test_a_call_has_what_the_library_has(client: Client, sets, references, truth: Result) -> None:
    reply = client.score(sent(sets, references), metrics=METRICS, detail=scores_pb2.DETAIL_CATEGORIES)
    assert {each.id: each.scores for each in reply} == of_items(truth)
    assert reply.corpus.scores == truth.scores
    assert {"SPICE_average", "SPICE_oracle", "AllSPICE", "AllSPICE_Color", "CIDEr_oracle"} <= set(truth.scores)
    assert reply.corpus.signature == {run.name: dict(run.signature) for run in truth.runs}
    of_all_spice = next(each for each in reply.corpus.breakdowns if each.metric == "all-spice")
    means = truth.categories["AllSPICE"]
    assert [(each.category, each.f1) for each in of_all_spice.categories] == [(n, m.f) for n, m in means.items()]


def test_a_small_call_a_stream_and_http_have_it_too(server: RunningServer, client: Client, sets, references) -> None:
    few = dict(list(sets.items())[:9])
    truth = score_sets(few, references, METRICS)
    messages = sent(few, references)
    assert client.score(messages, metrics=METRICS).corpus.scores == truth.scores
    intervals = score_sets(few, references, "spice,cider", confidence=Resampling(20, 3)).confidence
    drawn = client.score(messages, metrics="spice,cider", confidence=scores_pb2.Resampling(draws=20, seed=3))
    assert drawn.corpus.confidence == intervals
    body = {
        "items": [{"id": i, "candidates": texts, "references": references[i]} for i, texts in few.items()],
        "metrics": METRICS,
    }
    connection = http.client.HTTPConnection(urlsplit(server.http_url).netloc, timeout=60)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/spicegraph.v1.EvaluationService/Score", json.dumps(body), headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert {score["name"]: score.get("value") for score in answer["corpus"]["scores"]} == truth.scores


def test_a_stream_has_what_the_library_has(client: Client, sets, references, truth: Result) -> None:
    found: dict[str, dict[str, float | None]] = {}
    for part in client.stream(sent(sets, references), metrics=METRICS):
        for each in part:
            found.setdefault(each.id, {}).update(each.scores)
    assert found == of_items(truth)
    assert part.corpus.scores == truth.scores


def test_the_other_client_and_reference_sets(server: RunningServer, client: Client, sets, references, truth) -> None:
    made = client.create_reference_set({str(image): texts for image, texts in references.items()})
    named = [{"id": image, "candidates": texts} for image, texts in sets.items()]

    async def ask() -> dict[str, float | None]:
        async with AsyncClient(server.address) as other:
            return (await other.score(named, metrics=METRICS, reference_set=made.id)).corpus.scores

    assert asyncio.run(ask()) == truth.scores


def test_sets_of_one_are_sets_and_a_candidate_alone_is_none(client: Client) -> None:
    one = client.score([item_set("1", ["a brown dog"], ["a brown dog runs"])])
    alone = client.score([item("1", "a brown dog", ["a brown dog runs"])])
    assert one["AllSPICE"] == one["SPICE_oracle"] == one["SPICE_average"] == alone["SPICE"]
    assert "AllSPICE" not in alone.corpus.scores


def test_empty_captions_count_as_in_the_library(client: Client) -> None:
    sets, references = {1: ["", "a dog"], 2: [" "]}, {1: ["a brown dog"], 2: ["a cat"]}
    reply = client.score(sent(sets, references))
    truth = score_sets(sets, references, empty="zero")
    assert reply.corpus.scores == truth.scores
    assert reply.corpus.empty_candidate_count == truth.empty_candidates == 1
    assert reply.corpus.empty_graph_count == 0
    with pytest.raises(ServiceError, match=r"items\[0\].candidates\[0\].*is empty"):
        client.score(sent(sets, references), empty=scores_pb2.EMPTY_CANDIDATES_REFUSE)


def test_marks_are_taken_off_each_caption(client: Client) -> None:
    marked = item_set("1", ["a dog <eos>", "a brown dog"], ["a brown dog runs"])
    with pytest.raises(ServiceError, match=r"items\[0\].candidates\[0\].*<eos>"):
        client.score([marked])
    stripped = client.score([marked], control_tokens=scores_pb2.CONTROL_TOKENS_STRIP)
    assert stripped.corpus.scores == client.score([DOG]).corpus.scores


BOTH = scores_pb2.Item(id="1", candidate="a dog", candidates=["a dog"], references=["a dog"])


@pytest.mark.parametrize(
    ("items", "options", "faults"),
    [
        ([BOTH], {}, {"items[0].candidate": "stands beside candidates: a set has candidates alone"}),
        (
            [DOG, item("2", "a cat", ["a cat"])],
            {},
            {"items[1].candidate": "a set has candidates alone", "items[1].candidates": "is empty"},
        ),
        ([DOG], {"detail": scores_pb2.DETAIL_TUPLES}, {"detail": "of sets of captions there are DETAIL_SCORES"}),
        ([item_set("1", ["a dog"] * 101, ["a dog"])], {}, {"items[0].candidates": "has 101 entries, the limit is 100"}),
        (
            [item_set("1", ["dog " * 450] * 12, ["a dog"])],
            {},
            {"items[0].candidates": "has 21,600 characters", "items[0].references": "the limit is 20,000"},
        ),
        (
            [item_set("1", ["dog\0", "a" * 2001], ["a dog"])],
            {},
            {"items[0].candidates[0]": "holds a NUL", "items[0].candidates[1]": "has 2001 characters"},
        ),
    ],
)
def test_faults_have_field_and_reason(
    client: Client, items: list[scores_pb2.Item], options: dict, faults: dict[str, str]
) -> None:
    for call in (client.score, lambda *args, **named: list(client.stream(*args, **named))):
        with pytest.raises(ServiceError) as refused:
            call(items, **options)
        found = {field.removeprefix("settings."): reason for field, reason in refused.value.fields}
        assert found.keys() == faults.keys()
        assert all(reason in found[field] for field, reason in faults.items())


def test_the_items_of_a_stream_are_all_sets_or_none(client: Client) -> None:
    plain = [item(str(number), "a dog", ["a dog"]) for number in range(70)]
    with pytest.raises(ServiceError, match=r"items\[70\].candidates: Score and ScoreStream take sets"):
        list(client.stream([*plain, item_set("set", ["a dog"], ["a dog"])]))


def test_every_caption_of_a_set_counts() -> None:
    work = ItemWork("1", "a dog", ("a cat",), more=("dog " * 50, "a cow"))
    assert count_captions([work]) == 4
    assert count_cost([work]) == 3 + text_cost("dog " * 50) > 4
    assert [len(chunk) for chunk in item_chunks([work._replace(more=("a dog",) * 98)] * 10)] == [3, 3, 3, 1]


def test_what_is_no_set_is_told_before_anything_is_sent() -> None:
    with pytest.raises(TypeError, match="candidates: expected at least one string"):
        item_set("1", [], ["a dog"])
    with pytest.raises(TypeError, match="candidates: expected a list of strings, got the string 'a dog'"):
        item_set("1", "a dog", ["a dog"])
    with Client("localhost:1") as client, pytest.raises(TypeError, match="has 'candidate' and 'candidates'"):
        client.score([{"candidate": "a dog", "candidates": ["a dog"], "references": ["a dog"]}])
