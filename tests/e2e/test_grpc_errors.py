"""Bad requests: each gets one clear status that names every wrong field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import reference_service_pb2 as rpb
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceStub
from spicegraph_service.client import item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers import RunningServer

pytestmark = pytest.mark.model
CODES = grpc.StatusCode
GOOD = item("1", "a dog", ["a dog"])


@pytest.fixture(scope="module")
def channel(server: RunningServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as opened:
        yield opened


def details(error: grpc.RpcError) -> tuple[dict[str, str], error_details_pb2.ErrorInfo]:
    """The wrong fields with their reasons, and the error info, which every error has."""
    status = rpc_status.from_call(error)
    assert status is not None
    fields = {}
    info = None
    for packed in status.details:
        for kind in (error_details_pb2.BadRequest, error_details_pb2.ErrorInfo):
            if packed.Is(kind.DESCRIPTOR):
                message = kind()
                packed.Unpack(message)
                if isinstance(message, error_details_pb2.BadRequest):
                    fields = {v.field: v.description for v in message.field_violations}
                else:
                    info = message
    assert info is not None
    assert info.domain == "spicegraph"
    assert info.metadata["request_id"]
    return fields, info


def set_item(**fields: object) -> pb.ScoreRequest:
    return pb.ScoreRequest(items=[item("1", "a dog")], **fields)


@pytest.mark.parametrize(
    ("request_message", "wrong"),
    [
        pytest.param(pb.ScoreRequest(), {"items": "is empty"}, id="no items"),
        pytest.param(
            pb.ScoreRequest(items=[GOOD, item("2", " \t", ["a"])], empty=2),
            {"items[1].candidate": "is empty"},
            id="an empty candidate",
        ),
        pytest.param(pb.ScoreRequest(items=[GOOD], empty=9), {"empty": "9 is not one of its values"}, id="empty"),
        pytest.param(
            pb.ScoreRequest(items=[item(n, "a", ["b"]) for n in range(301)]),
            {"items": "has 301 entries, the limit is 300"},
            id="too many items",
        ),
        pytest.param(
            pb.ScoreRequest(items=[GOOD, item("2", "a dog")]), {"items[1].references": "is empty"}, id="no references"
        ),
        pytest.param(
            pb.ScoreRequest(items=[item("", "a dog", ["a", " "]), GOOD, GOOD]),
            {
                "items[0].id": "is empty",
                "items[0].references[1]": "is empty",
                "items[2].id": "'1' is the id of another item",
            },
            id="several faults, all named",
        ),
        pytest.param(
            pb.ScoreRequest(items=[item("1", "a\0b", ["b"]), item("2", "x" * 2001, ["y" * 3000])]),
            {
                "items[0].candidate": "holds a NUL character",
                "items[1].candidate": "has 2001 characters, the limit is 2000",
                "items[1].references[0]": "has 3000 characters, the limit is 2000",
            },
            id="NUL and long captions",
        ),
        pytest.param(
            pb.ScoreRequest(items=[item("1", "a", ["b"] * 101)]),
            {"items[0].references": "has 101 entries, the limit is 100"},
            id="too many references",
        ),
        pytest.param(
            pb.ScoreRequest(items=[GOOD, item("2", "a", ["b" * 2_000] * 10)]),
            {"items[1].references": "with the candidate, the references have 20,001 characters, the limit is 20,000"},
            id="long items",
        ),
        pytest.param(
            pb.ScoreRequest(items=[item("1", "a", ["b"], reference_id="2")]),
            {"items[0].reference_id": "needs a reference set"},
            id="entry without a set",
        ),
        pytest.param(
            pb.ScoreRequest(items=[GOOD], reference_set="x"),
            {"items[0].references": "the request names a reference set: items carry none"},
            id="references and a set",
        ),
    ],
)
def test_wrong_fields_are_named(channel: grpc.Channel, request_message: pb.ScoreRequest, wrong: dict[str, str]) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        EvaluationServiceStub(channel).Score(request_message, timeout=20)
    assert caught.value.code() is CODES.INVALID_ARGUMENT
    fields, info = details(caught.value)
    assert fields == wrong
    assert info.reason == "INVALID_FIELDS"
    path, reason = next(iter(wrong.items()))
    assert caught.value.details().startswith(f"{path}: {reason}")


def test_an_unknown_metric_is_named_with_those_there_are(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        EvaluationServiceStub(channel).Score(pb.ScoreRequest(items=[GOOD], metrics=["spice", "clip"]), timeout=20)
    fields, _ = details(caught.value)
    assert list(fields) == ["metrics[1]"]
    assert "'clip'" in fields["metrics[1]"]
    assert "spice-exact" in fields["metrics[1]"]


def test_many_faults_are_counted_and_fifty_named(channel: grpc.Channel) -> None:
    request = pb.ScoreRequest(items=[item(n, "a") for n in range(200)])
    with pytest.raises(grpc.RpcError) as caught:
        EvaluationServiceStub(channel).Score(request, timeout=20)
    assert len(details(caught.value)[0]) == 50
    assert "(and 199 more)" in caught.value.details()


def test_an_unknown_reference_set_is_not_found(channel: grpc.Channel) -> None:
    for call in (
        lambda: EvaluationServiceStub(channel).Score(set_item(reference_set="nothing"), timeout=20),
        lambda: ReferenceServiceStub(channel).GetReferenceSet(rpb.GetReferenceSetRequest(id="nothing"), timeout=20),
        lambda: ReferenceServiceStub(channel).DeleteReferenceSet(
            rpb.DeleteReferenceSetRequest(id="nothing"), timeout=20
        ),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() is CODES.NOT_FOUND
        assert "'nothing'" in caught.value.details()


def test_items_without_an_entry_are_named(channel: grpc.Channel) -> None:
    entries = rpb.ReferenceEntryBatch(entries=[rpb.ReferenceEntry(id="1", references=["a dog"])])
    created = ReferenceServiceStub(channel).CreateReferenceSet(
        iter([rpb.CreateReferenceSetRequest(entries=entries)]), timeout=20
    )
    request = pb.ScoreRequest(
        items=[item("1", "a"), item("2", "b"), item("3", "c", reference_id="9")], reference_set=created.reference_set.id
    )
    with pytest.raises(grpc.RpcError) as caught:
        EvaluationServiceStub(channel).Score(request, timeout=20)
    assert set(details(caught.value)[0]) == {"items[1].id", "items[2].reference_id"}


def settings(**fields: object) -> pb.ScoreStreamRequest:
    return pb.ScoreStreamRequest(settings=pb.ScoreStreamSettings(**fields))


def items(*some: object) -> pb.ScoreStreamRequest:
    return pb.ScoreStreamRequest(items=pb.ItemBatch(items=some))


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        pytest.param([], "items", id="nothing"),
        pytest.param([settings()], "items", id="settings alone"),
        pytest.param([settings(), settings()], "settings", id="settings twice"),
        pytest.param([items(GOOD), settings()], "settings", id="settings late"),
        pytest.param([pb.ScoreStreamRequest()], "payload", id="an empty message"),
        pytest.param([items()], "items", id="an empty batch"),
        pytest.param([settings(empty=2), items(item("2", "", ["a"]))], "items[0].candidate", id="an empty candidate"),
        pytest.param([settings(empty=9)], "settings.empty", id="empty"),
        pytest.param([items(GOOD), items(GOOD)], "items[1].id", id="an id twice in the stream"),
        pytest.param([items(GOOD, item("2", "a"))], "items[1].references", id="an item of a batch"),
    ],
)
def test_wrong_streams_end_with_the_field(
    channel: grpc.Channel, messages: list[pb.ScoreStreamRequest], field: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        list(EvaluationServiceStub(channel).ScoreStream(iter(messages), timeout=20))
    assert caught.value.code() is CODES.INVALID_ARGUMENT
    assert list(details(caught.value)[0]) == [field]


def entry(name: str, *captions: str) -> rpb.ReferenceEntry:
    return rpb.ReferenceEntry(id=name, references=captions)


def entries(*some: rpb.ReferenceEntry) -> rpb.CreateReferenceSetRequest:
    return rpb.CreateReferenceSetRequest(entries=rpb.ReferenceEntryBatch(entries=some))


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        pytest.param([], "entries", id="nothing"),
        pytest.param([entries()], "entries", id="an empty batch"),
        pytest.param([entries(entry("1", "a"), entry("1", "b"))], "entries[1].id", id="an id twice"),
        pytest.param([entries(entry("1", "a")), entries(entry("1", "b"))], "entries[1].id", id="twice, apart"),
        pytest.param([entries(entry("1"))], "entries[0].references", id="no captions"),
        pytest.param([entries(entry("1", "a", ""))], "entries[0].references[1]", id="an empty caption"),
        pytest.param([entries(entry("1", *["a" * 2_000] * 11))], "entries[0].references", id="a long entry"),
        pytest.param([rpb.CreateReferenceSetRequest()], "payload", id="an empty message"),
        pytest.param(
            [rpb.CreateReferenceSetRequest(settings=rpb.ReferenceSetSettings(display_name="x" * 201))],
            "settings.display_name",
            id="a long name",
        ),
    ],
)
def test_wrong_uploads_store_nothing(
    channel: grpc.Channel, messages: list[rpb.CreateReferenceSetRequest], field: str
) -> None:
    stub = ReferenceServiceStub(channel)
    before = stub.ListReferenceSets(rpb.ListReferenceSetsRequest(page_size=1000), timeout=20)
    with pytest.raises(grpc.RpcError) as caught:
        stub.CreateReferenceSet(iter(messages), timeout=20)
    assert caught.value.code() is CODES.INVALID_ARGUMENT
    assert list(details(caught.value)[0]) == [field]
    assert stub.ListReferenceSets(rpb.ListReferenceSetsRequest(page_size=1000), timeout=20) == before


@pytest.mark.parametrize("size", [-1, 1001])
def test_page_sizes_have_a_range(channel: grpc.Channel, size: int) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        ReferenceServiceStub(channel).ListReferenceSets(rpb.ListReferenceSetsRequest(page_size=size), timeout=20)
    assert list(details(caught.value)[0]) == ["page_size"]


def test_a_message_that_is_none_is_an_invalid_argument(channel: grpc.Channel) -> None:
    call = channel.unary_unary("/spicegraph.v1.EvaluationService/Score")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"\xff\xff\xff", timeout=20)
    assert caught.value.code() is CODES.INVALID_ARGUMENT
    assert details(caught.value)[1].reason == "MALFORMED"


def test_an_unknown_method_is_unimplemented(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/spicegraph.v1.EvaluationService/Nothing")(b"", timeout=20)
    assert caught.value.code() is CODES.UNIMPLEMENTED


def test_a_message_over_the_limit_is_refused(channel: grpc.Channel) -> None:
    call = channel.unary_unary("/spicegraph.v1.EvaluationService/Score")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"\0" * (9 << 20), timeout=20)
    assert caught.value.code() is CODES.RESOURCE_EXHAUSTED


def test_a_deadline_that_has_passed_is_told(channel: grpc.Channel) -> None:
    request = pb.ScoreRequest(items=[item(n, f"a dog number {n}", ["a cat"]) for n in range(300)])
    with pytest.raises(grpc.RpcError) as caught:
        EvaluationServiceStub(channel).Score(request, timeout=0.005)
    assert caught.value.code() is CODES.DEADLINE_EXCEEDED


def test_a_message_over_the_limit_has_a_reason_and_a_request_id(channel: grpc.Channel, server: RunningServer) -> None:
    long = pb.ScoreRequest(items=[item("1", "a" * (9 << 20), ["a dog"])])
    calls = (
        lambda: EvaluationServiceStub(channel).Score(long),
        lambda: list(EvaluationServiceStub(channel).ScoreStream(iter([pb.ScoreStreamRequest(items=pb.ItemBatch(items=long.items))]))),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(grpc.RpcError) as raised:
            call()
        assert raised.value.code() is CODES.RESOURCE_EXHAUSTED
        assert details(raised.value)[1].reason == "MESSAGE_TOO_LONG"
    with pytest.raises(grpc.RpcError) as raised:  # what would take far more memory is refused by gRPC itself
        EvaluationServiceStub(channel).Score(pb.ScoreRequest(items=[item("1", "a" * (33 << 20))]))
    assert raised.value.code() is CODES.RESOURCE_EXHAUSTED
