"""Rewards over gRPC are the library's."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.rewards.v1 import rewards_pb2 as pb
from spicegraph_graded import AsyncRewardClient, RewardClient, RewardModel
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_service.client import item
from spicegraph_service.store import parse_signature
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers import RunningServer

pytestmark = pytest.mark.model

REFERENCES = {
    "horse": ("a man riding a horse", "a man on a brown horse"),
    "cat": ("a cat on a bed", "a cat sleeps on a bed"),
}
IMAGES = ["horse", "horse", "horse", "cat", "cat"] * 14  # more than one chunk
CAPTIONS = ["a man rides a horse", "a horse", "", "a dog on a bed", "a cat on a red bed"] * 14
REWARD = "spice-g=1,spice=.5,length=-.01"


@pytest.fixture(scope="module")
def stored(server: RunningServer) -> str:
    with RewardClient(server.address) as client:
        return client.create_reference_set(REFERENCES).id


@pytest.fixture(scope="module")
def model() -> RewardModel:
    return RewardModel(REWARD, REFERENCES)


def sent() -> list[object]:
    return [item(n, text, reference_id=image) for n, (image, text) in enumerate(zip(IMAGES, CAPTIONS, strict=True))]


def test_rewards_and_advantages_are_the_library_s(client: RewardClient, stored: str, model: RewardModel) -> None:
    reply = client.reward(sent(), REWARD, reference_set=stored, advantage=pb.ADVANTAGE_SCALED)  # type: ignore[arg-type]
    assert [one.id for one in reply.items] == [str(n) for n in range(len(IMAGES))]
    assert [one.reward for one in reply.items] == model.rewards(IMAGES, CAPTIONS)
    assert [one.advantage for one in reply.items] == model.advantages(IMAGES, CAPTIONS)
    assert [term.name for term in reply.items[0].terms] == ["spice-g", "spice", "length"]
    assert reply.items[0].terms[2].value == 5
    assert dict(reply.signature.fields) == model.signature()
    assert not reply.items[0].HasField("credit")
    (plain, *_) = client.reward(sent()[:1], REWARD, reference_set=stored).items  # type: ignore[arg-type]
    assert not plain.HasField("advantage")


def test_groups_of_one_s_own_and_references_in_the_request(server: RunningServer, model: RewardModel) -> None:
    items = [item(n, text, REFERENCES["horse"]) for n, text in enumerate(CAPTIONS[:3])]

    async def asked() -> pb.RewardResponse:
        async with AsyncRewardClient(server.address) as other:
            return await other.reward(items, REWARD, advantage=pb.ADVANTAGE_OTHERS, groups=["g", "g", "h"])

    found = asyncio.run(asked()).items
    one, two, _ = model.rewards(["horse"] * 3, CAPTIONS[:3])
    assert [each.advantage for each in found] == pytest.approx([one - two, two - one, 0])


def test_workers_parse_captions_without_their_statements(client: RewardClient, stored: str) -> None:
    captions = ["a man rides a horse on top of it", "a close up of a man on a horse, which looks beautiful", "a horse"]
    items = [item(n, text, reference_id="horse") for n, text in enumerate(captions)]
    reply = client.reward(items, "guarded", reference_set=stored)
    assert [each.reward for each in reply.items] == RewardModel("guarded", REFERENCES).rewards(["horse"] * 3, captions)
    assert reply.items[0].terms[-1].name == "statement"


def test_credits_of_rewards(client: RewardClient, stored: str, model: RewardModel) -> None:
    reply = client.reward(sent()[:5], REWARD, reference_set=stored, credit=True)  # type: ignore[arg-type]
    for each, truth in zip(reply.items, model.credit(IMAGES[:5], CAPTIONS[:5]), strict=True):
        assert each.credit.metric == "reward"
        assert [word.credit for word in each.credit.words] == pytest.approx([word.credit for word in truth.words])
        assert sum(word.credit for word in each.credit.words) == pytest.approx(each.reward)


def test_rewards_of_drafts(client: RewardClient, stored: str) -> None:
    reward = "added-right=1,removed-wrong=1,added-wrong=-1,removed-right=-1"
    drafts = ["a horse", "a man rides a horse", "", "a cat", "a dog on a bed"]
    reply = client.reward(sent()[:5], reward, reference_set=stored, drafts=drafts)  # type: ignore[arg-type]
    truth = RewardModel(reward, REFERENCES).rewards(IMAGES[:5], CAPTIONS[:5], drafts=drafts)
    assert [one.reward for one in reply.items] == truth
    assert max(truth) > 0 > min(truth)


@pytest.mark.parametrize(
    ("reward", "options", "fault"),
    [
        ("", {}, "reward: has no term"),
        ("spice=x,what=1", {}, "term 2: there is no term 'what'"),
        ("cider=1", {}, "cider depends on the other items of a request here"),
        ("added-right=1", {}, "drafts: has 0 entries for 2 items"),
        ("spice=1", {"drafts": ["", ""]}, "drafts: no term of the reward compares with drafts"),
        ("spice=1", {"groups": ["x"]}, "groups: has 1 entries for 2 items"),
        ("spice=1", {"advantage": 9}, "advantage: 9 is not one of its values"),
        ("bleu:Bleu_9=1", {}, "bleu has no score 'Bleu_9'"),
        ("rouge=1", {"credit": True}, "rouge does not divide its score among words"),
        ("spice=1," * 200, {}, "the limit is 1000"),
    ],
)
def test_faults_are_named(
    client: RewardClient, stored: str, reward: str, options: dict[str, object], fault: str
) -> None:
    with pytest.raises(grpc.RpcError) as error:
        client.reward(sent()[:2], reward, reference_set=stored, **options)  # type: ignore[arg-type]
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]
    assert fault in error.value.details()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_candidates_of_rewards_stay_out_of_the_store(
    start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    path = tmp_path / "parses.db"
    running = start_server(f"--store={path}")
    items = [item(1, "a man rides a horse", REFERENCES["horse"]), item(2, REFERENCES["cat"][0], REFERENCES["cat"])]
    texts = {"a man rides a horse", "a horse runs", *REFERENCES["horse"], *REFERENCES["cat"]}
    store, signature = open_store(str(path)), parse_signature(load_pipeline().signature)

    def stored(least: int) -> set[str]:
        end = time.monotonic() + 60
        while len(found := set(store.get_parses(signature, list(texts)))) < least:
            assert time.monotonic() < end, found
            time.sleep(0.02)
        return found

    with RewardClient(running.address) as client:
        client.reward(items, REWARD)
        assert stored(4) == texts - {"a man rides a horse", "a horse runs"}
        client.score([item(1, "a horse runs", REFERENCES["horse"])])
        assert stored(5) == texts - {"a man rides a horse"}
    store.close()


@pytest.mark.slow
def test_document_frequencies_of_the_server_make_cider_a_reward(
    start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    table = tmp_path / "idf.npz"
    DocumentFrequencies.from_references([tokenize_texts(texts) for texts in REFERENCES.values()]).write(table)
    with RewardClient(start_server(f"--idf={table}").address) as client:
        items = [item(1, "a man rides a horse", REFERENCES["horse"])]
        (found,) = client.reward(items, "cider=1").items
    assert [found.reward] == RewardModel("cider=1", REFERENCES).rewards(["horse"], ["a man rides a horse"])
