"""A request says which text SPICE parses: the scores are the library's, batch or stream, and the signature names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.v1 import scores_pb2
from spicegraph_scorer import score
from spicegraph_scorer.core.items import Item
from spicegraph_service.client import item
from spicegraph_service.pool.tasks import ItemsWork, ItemWork, RequestData

if TYPE_CHECKING:
    from spicegraph_service.client import Client

ITEMS = [
    Item(str(n), candidate, references)
    for n, (candidate, references) in enumerate(
        [
            ("A Dog, running!", ("A dog -- it runs.", "Dogs (brown) run on grass.")),
            ("Two CATS on a sofa...", ("Two cats: asleep.", "Cats, on a couch")),
        ]
        * 30  # more than one chunk
    )
]
TEXTS = {
    scores_pb2.SPICE_TEXT_UNSPECIFIED: "written",
    scores_pb2.SPICE_TEXT_WRITTEN: "written",
    scores_pb2.SPICE_TEXT_COCO: "coco",
}


@pytest.mark.model
@pytest.mark.parametrize("text", TEXTS)
def test_batch_and_stream_score_the_text_that_the_request_names(
    client: Client, text: scores_pb2.SpiceText.ValueType
) -> None:
    metrics = ["spice", "spice-exact", "rouge", "spice-g"]
    expected = score(ITEMS, metrics, spice_text=TEXTS[text])  # type: ignore[arg-type]
    assert (
        expected.corpus["SPICE"]
        != score(ITEMS, spice_text="coco" if TEXTS[text] == "written" else "written").corpus["SPICE"]
    )
    sent = [item(i.id, i.candidate, i.references) for i in ITEMS]
    reply = client.score(sent, metrics=metrics, spice_text=text)
    *_, last = client.stream(iter(sent), metrics=metrics, spice_text=text)
    for corpus in (reply.corpus, last.corpus):
        values = {name: value for name, value in corpus.scores.items() if value is not None}
        wanted = {s.name: s.value for run in expected.runs for s in run.scores if s.value is not None}
        assert values == pytest.approx(wanted)
        said = {s.metric: s.fields.get("text") for s in corpus.signatures}
        assert said == {run.name: run.signature.get("text") for run in expected.runs}


@pytest.mark.model
def test_a_value_that_the_contract_lacks_is_refused(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.score([item("1", "a dog", ["a dog"])], spice_text=9)  # type: ignore[arg-type]
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "spice_text: 9 is not one of its values" in caught.value.details()


@pytest.mark.parametrize(
    ("metrics", "text", "expected"),
    [
        (("rouge",), "coco", set()),
        (("spice",), "written", {"A dog!", "a cat."}),
        (("spice",), "coco", {"a dog", "a cat"}),
        (("spice", "spice-g"), "coco", {"a dog", "a cat", "A dog!", "a cat."}),
    ],
)
def test_only_what_the_metrics_read_is_parsed(metrics: tuple[str, ...], text: str, expected: set[str]) -> None:
    items = (ItemWork("1", "A dog!", ("a cat.",)),)
    work = ItemsWork(metrics, 0, items, finish=True, given=RequestData(spice_text=text))  # type: ignore[arg-type]
    assert {text.text for text in work.texts({"spice": True, "spice-g": False})} == expected
