"""Categories of a request's own come back like SPICE's, the same as the library counts them, batch or stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from spicegraph_api.v1 import scores_pb2
from spicegraph_scorer import score
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.metrics.spice.categories import CategoryDefinition, make_categories
from spicegraph_service.client import category, item

if TYPE_CHECKING:
    from spicegraph_api.v1.scores_pb2 import CorpusResult
    from spicegraph_service.client import Client

pytestmark = pytest.mark.model

ITEMS = [
    Item(str(n), candidate, references)
    for n, (candidate, references) in enumerate(
        [
            ("a brown dog runs", ("a puppy is running", "the brown dog")),
            ("two cats on a sofa", ("two cats lie on a couch", "cats and a dog on a couch")),
            ("a wooden bench", ("a zebra beside a bench", "an old bench")),
        ]
        * 30  # more than one chunk
    )
]
SENT = [
    category("Animal", subtrees=["animal"]),
    category("Seat", words=["couch", "Bench"], synonyms=True),
    category("Material", kind=scores_pb2.CATEGORY_KIND_ATTRIBUTE, words=["wooden"]),
]
SAME = make_categories(
    [
        CategoryDefinition("Animal", subtree=("animal",)),
        CategoryDefinition("Seat", words=("couch", "bench"), synonyms=True),
        CategoryDefinition("Material", kind="attribute", words=("wooden",)),
    ]
)


def values(corpus: CorpusResult) -> dict[str, float | None]:
    return {s.name: s.value if s.HasField("value") else None for s in corpus.scores}


@pytest.mark.parametrize("metrics", [["spice"], ["spice-exact", "bleu"]])
def test_own_categories_are_the_library_s_in_batch_and_stream(client: Client, metrics: list[str]) -> None:
    expected = score(ITEMS, metrics, data=MetricData(categories=SAME))
    sent = [item(i.id, i.candidate, i.references) for i in ITEMS]
    reply = client.score(sent, metrics=metrics, categories=SENT, detail=scores_pb2.DETAIL_CATEGORIES)
    *_, last = client.stream(iter(sent), metrics=metrics, categories=SENT)
    wanted = {s.name: s.value for run in expected.runs for s in run.scores}
    name = "SPICE" if metrics == ["spice"] else "SPICE-exact"
    assert {f"{name}_Animal", f"{name}_Seat", f"{name}_Material"} <= set(wanted)
    for corpus in (reply.corpus, last.corpus):
        assert values(corpus) == pytest.approx(wanted)
        signature = next(s for s in corpus.signatures if s.metric == metrics[0])
        assert signature.fields["categories"] == expected.runs[0].signature["categories"]
    row = {c.category: c for c in reply.items[1].breakdowns[0].categories}["Animal"]
    assert (row.matched, row.candidate, row.reference) == (1, 1, 2)


def test_requests_without_categories_are_not_touched_by_those_with(client: Client) -> None:
    sent = [item("1", "a dog", ["a dog"])]
    with_own = client.score(sent, categories=SENT)
    without = client.score(sent)
    assert "SPICE_Animal" in values(with_own.corpus)
    assert "SPICE_Animal" not in values(without.corpus)
    assert "categories" not in without.corpus.signatures[0].fields


WRONG = [
    category("", words=["a"]),
    category("Color", words=["a"]),
    category("A", words=[]),
    category("A", words=["a", " "]),
    category("B", subtrees=["no such thing"]),
    category("C", subtrees=["dog.n.99"]),
    category("D", words=["x" * 300]),
    scores_pb2.CategoryDefinition(name="E", kind=17, words=["a"]),  # type: ignore[arg-type]
]
FIELDS = {
    "categories[0].name",
    "categories[1].name",
    "categories[2].words",
    "categories[3].name",
    "categories[3].words[1]",
    "categories[4].subtrees[0]",
    "categories[5].subtrees[0]",
    "categories[6].words[0]",
    "categories[7].kind",
}


def wrong_fields(error: grpc.RpcError) -> set[str]:
    status = rpc_status.from_call(error)
    assert status is not None
    found = error_details_pb2.BadRequest()
    for packed in status.details:
        if packed.Is(found.DESCRIPTOR):
            packed.Unpack(found)
    return {violation.field for violation in found.field_violations}


def test_every_wrong_definition_is_named(client: Client) -> None:
    sent = [item("1", "a dog", ["a dog"])]
    with pytest.raises(grpc.RpcError) as raised:
        client.score(sent, categories=WRONG)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert wrong_fields(raised.value) == FIELDS
    with pytest.raises(grpc.RpcError) as raised:
        list(client.stream(iter(sent), categories=WRONG))
    assert wrong_fields(raised.value) == {f"settings.{field}" for field in FIELDS}


def test_too_many_definitions_are_refused(client: Client) -> None:
    many = [category(f"c{n}", words=["a"]) for n in range(51)]
    with pytest.raises(grpc.RpcError) as raised:
        client.score([item("1", "a dog", ["a dog"])], categories=many)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert wrong_fields(raised.value) == {"categories[50].name"}
