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
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics.spice.categories import CategoryDefinition, make_categories
from spicegraph_service.client import category, item

if TYPE_CHECKING:
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
        assert corpus.scores == pytest.approx(wanted)
        signature = next(s for s in corpus.signatures if s.metric == metrics[0])
        assert signature.fields["categories"] == expected.runs[0].signature["categories"]
    row = {c.category: c for c in reply.items[1].breakdowns[0].categories}["Animal"]
    assert (row.matched, row.candidate, row.reference) == (1, 1, 2)


def test_requests_without_categories_are_not_touched_by_those_with(client: Client) -> None:
    sent = [item("1", "a dog", ["a dog"])]
    with_own = client.score(sent, categories=SENT)
    without = client.score(sent)
    assert "SPICE_Animal" in with_own.corpus.scores
    assert "SPICE_Animal" not in without.corpus.scores
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


def corpus_row(row: scores_pb2.CorpusCategory) -> dict[str, object]:
    """A category of a reply in the shape of the command line's JSON."""

    def known(message: scores_pb2.CorpusCategory | scores_pb2.CategorySums, field: str) -> float | None:
        return getattr(message, field) if message.HasField(field) else None

    means = {"f": known(row, "f1"), "pr": known(row, "precision"), "re": known(row, "recall"), "items": row.item_count}
    if not row.HasField("sums"):
        return means
    sums = row.sums
    tallies = {"tp": sums.matched, "fp": sums.invented, "fn": sums.missed}
    shares = {"pr": known(sums, "precision"), "re": known(sums, "recall"), "f": known(sums, "f1")}
    return {**means, "micro": {**tallies, **shares}}


@pytest.mark.parametrize("count", [3, 90])  # within a chunk, and more than one
@pytest.mark.parametrize("metrics", [["spice"], ["spice-exact", "spice-g", "bleu"]])
def test_categories_of_the_corpus_are_those_that_the_command_line_prints(
    client: Client, metrics: list[str], count: int
) -> None:
    expected = score(ITEMS[:count], metrics, categories=SAME, confidence=Resampling(200, 7))
    sent = [item(i.id, i.candidate, i.references) for i in ITEMS[:count]]
    asked = {
        "metrics": metrics,
        "categories": SENT,
        "detail": scores_pb2.DETAIL_CATEGORIES,
        "confidence": scores_pb2.Resampling(draws=200, seed=7),
    }
    *_, last = client.stream(iter(sent), **asked)
    for corpus in (client.score(sent, **asked).corpus, last.corpus):
        assert [b.metric for b in corpus.breakdowns] == [m for m in metrics if m != "bleu"]
        for breakdown, run in zip(corpus.breakdowns, expected.runs, strict=False):
            rows = {row.category: row for row in breakdown.categories}
            wanted = {name: means.to_dict() for name, means in run.categories().items()}
            assert {name: corpus_row(row) for name, row in rows.items()} == wanted
            ends = [(bound.low, bound.high) for bound in run.intervals]
            got = [(row.interval.low, row.interval.high) for row in rows.values() if row.HasField("f1")]
            assert got == [pair for pair in ends if pair != (None, None)]
            assert rows["Color"].spice_category == scores_pb2.SPICE_CATEGORY_COLOR
            assert rows["Animal"].spice_category == scores_pb2.SPICE_CATEGORY_UNSPECIFIED
        assert corpus.confidence == expected.confidence


def test_categories_of_the_corpus_are_sent_where_they_are_asked_for(client: Client) -> None:
    corpus = client.score([item("1", "a dog", ["a dog"])]).corpus
    assert not corpus.breakdowns
    assert not corpus.confidence


def test_draws_are_bounded(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        client.score([item("1", "a dog", ["a dog"])], confidence=scores_pb2.Resampling(draws=10_001))
    assert wrong_fields(raised.value) == {"confidence.draws"}
