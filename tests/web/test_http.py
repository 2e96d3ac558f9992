"""The contract over HTTP: the same calls, the same numbers, errors that clients can read."""

from __future__ import annotations

import http.client
import json
import random
import socket
import struct
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from google.protobuf import field_mask_pb2, json_format, timestamp_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from spicegraph_api.challenge.v1 import challenge_pb2
from spicegraph_api.detail.v1 import detail_pb2
from spicegraph_api.rewards.v1 import rewards_pb2
from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import reference_service_pb2, scores_pb2
from spicegraph_service.client import Client, item
from spicegraph_web import codec
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    from servers import RunningServer

pytestmark = pytest.mark.model

EVALUATION = "/spicegraph.v1.EvaluationService/"
REFERENCES = "/spicegraph.v1.ReferenceService/"
FILES = (challenge_pb2, detail_pb2, rewards_pb2, reference_service_pb2, scores_pb2, pb)
DOG = {"id": "1", "candidate": "a brown dog", "references": ["a dog that is brown", "a puppy"]}
CAPTIONS = [
    "two red dogs run after a big ball",
    "a man on a horse",
    "",
    "three small birds \N{GRINNING FACE} sit on a green wire",
    "no hat on the man's head",
]


class Reply:
    """A response, read whole."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


@pytest.fixture
def ask(server: RunningServer) -> Iterator[Callable[..., Reply]]:
    """Send a request to the shared server."""
    connection = http.client.HTTPConnection(urlsplit(server.http_url).netloc, timeout=30)

    def send(path: str, body: object = None, kind: str = "application/json", method: str = "", **headers: str) -> Reply:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if data is None else "POST"), path, data, {"Content-Type": kind} | named)
        return Reply(connection.getresponse())

    yield send
    connection.close()


# --- messages as JSON -------------------------------------------------------------------------------------------


def filled(kind: Descriptor, chance: random.Random) -> Message:
    """A message with random values in a random half of its fields."""
    message = GetMessageClass(kind)()
    for field in kind.fields:
        if chance.random() < 0.5:
            continue
        if field.containing_oneof is not None:
            message.ClearField(field.name)
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            getattr(message, field.name)["key ü"] = value(inner.fields_by_name["value"], chance)
        elif field.is_repeated:
            values = [value(field, chance) for _ in range(chance.randrange(3))]
            getattr(message, field.name).extend(values)
        elif inner is not None:
            getattr(message, field.name).CopyFrom(value(field, chance))
        else:
            setattr(message, field.name, value(field, chance))
    return message


def value(field: FieldDescriptor, chance: random.Random) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return timestamp_pb2.Timestamp(seconds=chance.randrange(1 << 31), nanos=chance.randrange(1_000) * 1_000_000)
        if field.message_type.full_name == "google.protobuf.FieldMask":
            return field_mask_pb2.FieldMask(paths=chance.sample(["title", "open_time", "digits"], chance.randrange(4)))
        return filled(field.message_type, chance)
    if field.enum_type is not None:
        return chance.choice(list(field.enum_type.values_by_number))
    if field.cpp_type in {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}:
        return chance.choice([0, 7, 1 << 31])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.randbytes(chance.randrange(9))
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return chance.choice(["", "a dog", '<b>"\\\n\N{GRINNING FACE}', "\u2028"])
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        return chance.choice([0.0, 0.1, -1 / 3, 5e-324, 1e308, float("inf"), float("-inf"), float("nan")])
    return chance.choice([0, 1, -7, 2**31 - 1])


@pytest.mark.parametrize("kind", [kind for file in FILES for kind in file.DESCRIPTOR.message_types_by_name.values()])
def test_json_is_what_protocol_buffers_define(kind: Descriptor) -> None:
    chance = random.Random(kind.full_name)
    for _ in range(30):
        message = filled(kind, chance)
        plain = json.loads(codec.to_json(message))
        assert plain == json_format.MessageToDict(message)
        text = json.dumps(plain).encode()
        assert codec.from_json(text, type(message)).SerializeToString(deterministic=True) == message.SerializeToString(
            deterministic=True
        )


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        (b"{", "(message)", "is not JSON: Expecting property name"),
        (b"[]", "(message)", "expected an object"),
        (b'"\xff"', "(message)", ""),
        (b"[" * 100_000, "(message)", ""),
        (b'{"itms": []}', "itms", "no such field"),
        (b'{"items": [{"id": "1"}, {"id": 7.5}]}', "items.id", "expected string or bytes-like object, got 'float'"),
        (
            b'{"items": [{"references": ["a", 1.5]}]}',
            "items.references",
            "expected string or bytes-like object, got 'float'",
        ),
        (b'{"items": [7]}', "items", ""),
        (b'{"detail": "DETAIL_ALL"}', "detail", "DETAIL_ALL"),
        (b'{"categories": [{"name": "x", "kind": "A"}]}', "categories[0].kind", "A"),
        (b'{"referenceSet": "a", "reference_set": "b"}', "(message)", "multiple"),
    ],
)
def test_what_is_wrong_with_json_is_said_with_its_place(text: bytes, field: str, reason: str) -> None:
    with pytest.raises(codec.JsonError, match=reason or ".") as caught:
        codec.from_json(text, pb.ScoreRequest)
    assert caught.value.field == field


# --- numbers ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def names(server: RunningServer) -> list[str]:
    with Client(server.address) as client:
        return [metric.name for metric in client.server_info().metrics]


def items() -> list[scores_pb2.Item]:
    return [
        item(n, text, [CAPTIONS[n - 1] or "a cat", "a dog with a ball", text[::2] or "a"])
        for n, text in enumerate(CAPTIONS)
    ]


@pytest.mark.parametrize("detail", scores_pb2.Detail.values())
def test_scores_equal_those_over_grpc_bit_for_bit(
    ask: Callable[..., Reply], client: Client, names: list[str], detail: int
) -> None:
    request = pb.ScoreRequest(items=items(), metrics=names, detail=detail)
    expected = client.score(items(), metrics=names, detail=detail).message
    for kind, body in (
        ("application/json", codec.to_json(request)),
        ("application/proto", request.SerializeToString()),
    ):
        reply = ask(f"{EVALUATION}Score", body, kind)
        assert (reply.status, reply.headers["Content-Type"]) == (200, kind)
        read = codec.from_json(reply.body, pb.ScoreResponse) if kind.endswith("json") else None
        found = read or pb.ScoreResponse.FromString(reply.body)
        assert found.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)


def merged(responses: list[pb.ScoreStreamResponse]) -> tuple[dict[tuple[str, str], float | None], bytes]:
    """The scores of a stream by item and name, and its corpus result."""
    scores = {
        (one.id, each.name): each.value if each.HasField("value") else None
        for response in responses
        for one in response.items
        for each in one.scores
    }
    return scores, responses[-1].corpus.SerializeToString(deterministic=True)


def test_a_stream_of_lines_equals_one_over_grpc(ask: Callable[..., Reply], client: Client, names: list[str]) -> None:
    many = [item(n, f"{CAPTIONS[n % 5]} {n}", ["a man with two dogs", CAPTIONS[n % 2]]) for n in range(400)]
    expected = merged([part.message for part in client.stream(many, metrics=names)])
    requests = [pb.ScoreStreamRequest(settings=pb.ScoreStreamSettings(metrics=names))]
    requests += [pb.ScoreStreamRequest(items=pb.ItemBatch(items=many[at : at + 50])) for at in range(0, 400, 50)]
    reply = ask(f"{EVALUATION}ScoreStream", b"\n\n".join(map(codec.to_json, requests)), "application/x-ndjson")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/x-ndjson")
    lines = [codec.from_json(line, pb.ScoreStreamResponse) for line in reply.body.splitlines()]
    assert merged(lines) == expected

    enveloped = b"".join(struct.pack(">BI", 0, len(d)) + d for d in (r.SerializeToString() for r in requests))
    reply = ask(f"{EVALUATION}ScoreStream", enveloped, "application/connect+proto")
    *found, (flags, end) = envelopes(reply.body)
    assert (flags, json.loads(end)) == (2, {})
    assert merged([pb.ScoreStreamResponse.FromString(data) for _, data in found]) == expected


def envelopes(body: bytes) -> list[tuple[int, bytes]]:
    found = []
    while body:
        flags, size = struct.unpack(">BI", body[:5])
        found.append((flags, body[5 : 5 + size]))
        body = body[5 + size :]
    return found


def test_reference_sets_are_stored_and_used(ask: Callable[..., Reply]) -> None:
    lines = [
        {"settings": {"displayName": "over HTTP"}},
        {"entries": {"entries": [{"id": "7", "references": ["a dog that is brown"]}]}},
    ]
    body = "\n".join(map(json.dumps, lines)).encode()
    stored = ask(f"{REFERENCES}CreateReferenceSet", body, "application/x-ndjson").json["referenceSet"]
    assert (stored["entryCount"], stored["displayName"]) == ("1", "over HTTP")
    data = b"".join(struct.pack(">BI", 0, len(line)) + line for line in body.splitlines())
    (_, answer), (flags, _) = envelopes(ask(f"{REFERENCES}CreateReferenceSet", data, "application/connect+json").body)
    assert (json.loads(answer)["referenceSet"]["id"], flags) == (stored["id"], 2)
    request = {"items": [{"id": "7", "candidate": "a brown dog"}], "referenceSet": stored["id"]}
    scored = ask(f"{EVALUATION}Score", request)
    assert scored.json["items"][0]["scores"][0] == {"name": "SPICE", "value": 0.4}
    missing = ask(f"{REFERENCES}GetReferenceSet", {"id": "0" * 32})
    assert (missing.status, missing.json["code"]) == (404, "not_found")


# --- errors -----------------------------------------------------------------------------------------------------


def test_an_error_names_item_field_and_reason(ask: Callable[..., Reply]) -> None:
    reply = ask(f"{EVALUATION}Score", {"items": [DOG, {"id": "2", "candidate": "x"}]}, X_Request_Id="mine")
    assert (reply.status, reply.headers["X-Request-Id"]) == (400, "mine")
    assert reply.json["code"] == "invalid_argument"
    assert reply.json["message"] == "items[1].references: is empty"
    debug = {one["type"]: one["debug"] for one in reply.json["details"]}
    assert debug["google.rpc.ErrorInfo"]["metadata"] == {"request_id": "mine"}
    assert debug["google.rpc.BadRequest"]["fieldViolations"][0]["field"] == "items[1].references"
    wrong = ask(f"{EVALUATION}Score", {"items": [{**DOG, "id": 2}, {**DOG, "references": "dog"}]})
    assert (wrong.status, wrong.json["code"]) == (400, "invalid_argument")
    assert wrong.json["message"] == (
        "items[1].references: is not a message of this method: repeated field references must be in [] which is dog"
    )
    nothing = ask(f"{EVALUATION}Score", {"items": [{**DOG, "candidate": None}]})
    assert nothing.json["message"] == "candidate: is null"
    assert ask(f"{EVALUATION}Score", {"items": [{**DOG, "id": 2}]}).json["items"][0]["id"] == "2"


def test_control_tokens_are_a_field_over_http_too(ask: Callable[..., Reply]) -> None:
    marked = {"items": [{**DOG, "candidate": f"{DOG['candidate']} <eos>"}], "metrics": ["rouge"]}
    refused = ask(f"{EVALUATION}Score", marked)
    assert refused.status == 400
    assert refused.json["message"].startswith("items[0].candidate: contains what models leave behind: <eos>")
    corpus = ask(f"{EVALUATION}Score", marked | {"controlTokens": "CONTROL_TOKENS_STRIP"}).json["corpus"]
    assert corpus["controlTokens"] == {"<eos>": "1"}
    assert "was taken off: <eos>" in corpus["warnings"][0]


def test_the_first_page_lists_what_the_server_has(ask: Callable[..., Reply]) -> None:
    """JSON for programs, which take anything, a page for browsers; every link is there, and the page loads nothing."""
    told = ask("/", Accept="*/*").json
    assert (told["name"], told["version"]) == ("spicegraph", version("spicegraph"))
    assert told["calls"][f"{EVALUATION}Score"] == "score"
    assert told["calls"].keys() | {"/health"} == ask("/openapi.json").json["paths"].keys()
    assert {"/health", "/openapi.json", "/report"} <= set(told["links"])
    reply = ask("/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    page = reply.body.decode()
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'none'" in page
    assert all(f"<code>{path}</code>" in page for path in told["calls"])
    assert all(f'<a href="{link}">' in page and ask(link).status == 200 for link in told["links"])


@pytest.mark.parametrize(
    ("method", "path", "kind", "body", "status"),
    [
        ("POST", f"{EVALUATION}Score", "application/json", b"{", 400),
        ("POST", f"{EVALUATION}Score", "application/proto", b"\xff", 400),
        ("POST", f"{EVALUATION}Score", "text/plain", b"{}", 415),
        ("POST", f"{EVALUATION}Score", "application/x-www-form-urlencoded", b"{}", 415),
        ("POST", f"{EVALUATION}ScoreStream", "application/connect+xml", b"", 415),
        ("POST", f"{EVALUATION}Score", "application/json", b" " * (9 << 20), 413),
        ("POST", f"{EVALUATION}ScoreStream", "application/x-ndjson", b'{"items": 7}', 400),
        ("POST", f"{EVALUATION}NoMethod", "application/json", b"{}", 404),
        ("GET", f"{EVALUATION}Score", "application/json", None, 405),
        ("GET", "/nowhere", "application/json", None, 404),
    ],
)
def test_wrong_requests(
    ask: Callable[..., Reply], method: str, path: str, kind: str, body: bytes | None, status: int
) -> None:
    reply = ask(path, body, kind, method)
    assert reply.status == status
    if method == "POST":
        assert reply.json["message"]
    assert ask("/health").json == {"status": "SERVING"}


def test_errors_of_streams_come_in_their_own_form(ask: Callable[..., Reply]) -> None:
    bad = b'{"items": {"items": [{"id": "1"}]}}'
    reply = ask(f"{EVALUATION}ScoreStream", bad, "application/x-ndjson")
    assert (reply.status, reply.json["code"]) == (400, "invalid_argument")
    reply = ask(f"{EVALUATION}ScoreStream", struct.pack(">BI", 0, len(bad)) + bad, "application/connect+json")
    [(flags, end)] = envelopes(reply.body)
    assert (reply.status, flags, json.loads(end)["error"]["code"]) == (200, 2, "invalid_argument")
    for broken in (b"\0\0\0", struct.pack(">BI", 1, 2) + b"{}", struct.pack(">BI", 0, 1 << 30)):
        [(_, end)] = envelopes(ask(f"{EVALUATION}ScoreStream", broken, "application/connect+json").body)
        assert json.loads(end)["error"]["code"] in {"invalid_argument", "resource_exhausted"}
    good = json.dumps({"items": {"items": [DOG]}}).encode()
    many = b"\n".join(
        [good.replace(b'"1"', b'"%d"' % n) for n in range(200)] + [b'{"items": {"items": [{"id": "x"}]}}']
    )
    lines = ask(f"{EVALUATION}ScoreStream", many, "application/x-ndjson").lines
    assert lines[-1]["error"]["code"] == "invalid_argument" if len(lines) > 1 else lines[0]["code"]


def test_a_deadline_ends_a_call(ask: Callable[..., Reply], server: RunningServer) -> None:
    captions = [f"a dog with {n} balls near a tree in a park" for n in range(300)]
    reply = ask(f"{EVALUATION}ParseCaptions", {"captions": captions}, Connect_Timeout_Ms="1", X_Request_Id="too-late")
    assert (reply.status, reply.json["code"]) == (504, "deadline_exceeded")
    assert ask(f"{EVALUATION}ParseCaptions", {"captions": ["a"]}, Connect_Timeout_Ms="1h").status == 400
    assert ask(f"{EVALUATION}ParseCaptions", {"captions": ["a"]}, Connect_Timeout_Ms="20000").status == 200


def test_a_client_that_leaves_is_not_worked_for(server: RunningServer) -> None:
    captions = [f"a cat with {n} tails near a tree in a park on a sunny day" for n in range(300)]
    body = json.dumps({"captions": captions}).encode()
    with socket.create_connection(("127.0.0.1", urlsplit(server.http_url).port or 0)) as connection:
        head = f"POST {EVALUATION}ParseCaptions HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: leaver\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        wait_until(lambda: server.calls_under_way() or server.logged("leaver"))
    wait_until(lambda: server.logged("leaver"))
    found = server.logged("leaver")
    assert found[0]["code"] in {"CANCELLED", "OK"}  # OK: it had been quick


# --- browsers and machines --------------------------------------------------------------------------------------


def test_pages_of_other_origins_call_only_when_they_may(
    start_server: Callable[..., RunningServer], ask: Callable[..., Reply]
) -> None:
    page = {"Origin": "https://good.example", "Access_Control_Request_Method": "POST"}
    assert ask(f"{EVALUATION}Score", method="OPTIONS", **page).status == 403
    assert "Access-Control-Allow-Origin" not in ask("/health", **page).headers
    running = start_server("--http=127.0.0.1:0", "--http-origins=https://good.example", wait=False)
    end = time.monotonic() + 30
    while True:
        try:
            connection = http.client.HTTPConnection(urlsplit(running.http_url).netloc, timeout=30)
            break
        except LookupError:
            assert time.monotonic() < end
            time.sleep(0.1)
    for origin, allowed in (("https://good.example", "https://good.example"), ("https://bad.example", None)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        connection.request("OPTIONS", f"{EVALUATION}Score", headers=headers)
        preflight = Reply(connection.getresponse())
        assert preflight.headers["Access-Control-Allow-Origin"] == allowed
        connection.request("POST", f"{EVALUATION}Score", b"{}", headers | {"Content-Type": "application/json"})
        reply = Reply(connection.getresponse())
        assert reply.headers["Access-Control-Allow-Origin"] == allowed
        assert reply.headers["Access-Control-Allow-Credentials"] is None
    connection.close()
    running.stop()


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.org", 421), ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("[::2]", 421), ("", 421)],
)
def test_other_hosts_are_refused(server: RunningServer, host: str, status: int) -> None:
    """A page whose name was bound to this machine's address anew must not read answers (DNS rebinding)."""
    connection = http.client.HTTPConnection(server.http_url.removeprefix("http://"), timeout=30)
    connection.request("GET", "/health", headers={"Host": host})
    reply = connection.getresponse()
    assert reply.status == status
    assert (b"--hosts" in reply.read()) is (status == 421)
    connection.close()


def test_health_by_service(ask: Callable[..., Reply]) -> None:
    assert ask("/health?service=spicegraph.v1.EvaluationService").json == {"status": "SERVING"}
    assert ask("/health?service=nothing").status == 404


def test_the_openapi_document_describes_what_is_answered(ask: Callable[..., Reply]) -> None:
    document = ask("/openapi.json").json
    assert set(document["paths"]) >= {f"{EVALUATION}Score", f"{REFERENCES}ShareReferenceSet", "/health"}
    schemas = document["components"]["schemas"]
    for method, body in (
        ("Score", {"items": [DOG], "metrics": ["spice", "spice-g", "bleu"], "detail": "DETAIL_VERDICTS"}),
        ("ParseCaptions", {"captions": ["a brown dog"]}),
        ("GetServerInfo", {}),
    ):
        operation = document["paths"][EVALUATION + method]["post"]
        for plain, content in (
            (body, operation["requestBody"]["content"]),
            (ask(EVALUATION + method, body).json, operation["responses"]["200"]["content"]),
        ):
            schema = content["application/json"]["schema"] | {"components": {"schemas": schemas}}
            jsonschema.Draft202012Validator(schema).validate(plain)
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.Draft202012Validator(schema).validate({**plain, "nothing": 1})


def test_answers_tell_browsers_to_keep_to_their_kind(ask: Callable[..., Reply]) -> None:
    reply = ask(f"{EVALUATION}GetServerInfo", {})
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "Python" not in reply.headers["Server"]


def test_calls_over_http_are_in_the_log_and_the_metrics(ask: Callable[..., Reply], server: RunningServer) -> None:
    assert ask(f"{EVALUATION}Score", {"items": [DOG]}, X_Request_Id="seen-twice").status == 200
    wait_until(lambda: server.logged("seen-twice"))
    found = server.logged("seen-twice")
    assert found[0]["method"] == "EvaluationService/Score"
    assert found[0]["captions"] == 3


def test_the_server_lets_calls_finish_and_ends(start_server: Callable[..., RunningServer]) -> None:
    running = start_server("--http=127.0.0.1:0", "--grace=60", "--metrics-address=127.0.0.1:0")
    connection = http.client.HTTPConnection(urlsplit(running.http_url).netloc, timeout=30)
    captions = [f"a fox with {n} hats near a tree in a park on a sunny day" for n in range(300)]
    headers = {"Content-Type": "application/json", "X-Request-Id": "last"}
    connection.request("POST", f"{EVALUATION}ParseCaptions", json.dumps({"captions": captions}).encode(), headers)
    wait_until(lambda: running.calls_under_way() or running.logged("last"))
    assert running.process.poll() is None
    running.process.terminate()
    reply = Reply(connection.getresponse())
    assert reply.status == 200
    assert len(reply.json["captions"]) == 300
    connection.close()
    assert running.process.wait(timeout=60) == 0
