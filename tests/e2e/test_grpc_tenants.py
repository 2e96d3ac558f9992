"""Tenants: every call that one tries on what is another's is refused as if it were not there, or is allowed by a share."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import grpc
import pytest

from spicegraph_api.v1 import evaluation_service_pb2 as evaluation
from spicegraph_api.v1 import reference_service_pb2 as pb
from spicegraph_api.v1 import scores_pb2
from spicegraph_service.cli import main
from spicegraph_service.client import Client, category, item
from spicegraph_service.rpc.auth import create_token, rotate_token
from spicegraph_service.store import parse_signature
from spicegraph_service.store.places import open_store
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers import RunningServer

pytestmark = pytest.mark.model
ENTRIES = {"1": ["a secret purple elephant rides a bicycle"], "2": ["two walruses polish a trombone"]}
CANDIDATES = [item("1", "an elephant on a bicycle"), item("2", "a walrus with a trombone")]
NOBODY = "0" * 32
Attempt: TypeAlias = Callable[[Client, str], object]


@dataclass
class Tenants:
    server: RunningServer
    store: Path
    ann: Client
    bob: Client
    token: Callable[..., Client]


@pytest.fixture(scope="module")
def tenants(start_server: Callable[..., RunningServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    store = tmp_path_factory.mktemp("tenants") / "server.db"
    server = start_server(f"--store={store}", "--tokens=always")
    with ExitStack() as stack:

        def client(name: str, **options: object) -> Client:
            with closing(open_store(str(store))) as opened:
                secret, _ = create_token(opened, name, ("score", "references"), **options)  # type: ignore[arg-type]
            return stack.enter_context(Client(server.address, token=secret, timeout_s=20))

        yield Tenants(server, store, client("ann"), client("bob"), client)


def scored(client: Client, set_id: str, detail: scores_pb2.Detail.ValueType = scores_pb2.DETAIL_SCORES) -> object:
    return client.score(CANDIDATES, reference_set=set_id, detail=detail)


def streamed(client: Client, set_id: str) -> object:
    return list(client.stream(CANDIDATES, reference_set=set_id))


ATTEMPTS: dict[str, Attempt] = {
    "get": lambda client, set_id: client._call(
        client._references.GetReferenceSet, pb.GetReferenceSetRequest(id=set_id)
    ),
    "delete": Client.delete_reference_set,
    "share with oneself": lambda client, set_id: client.share_reference_set(
        set_id, "bob", [pb.REFERENCE_RIGHT_EVIDENCE]
    ),
    "share with the owner": lambda client, set_id: client.share_reference_set(set_id, "ann", []),
    "score": scored,
    "counts": lambda client, set_id: scored(client, set_id, scores_pb2.DETAIL_CATEGORIES),
    "counts of one's own": lambda client, set_id: client.score(
        CANDIDATES, reference_set=set_id, categories=[category("Elephants", words=["elephant"])]
    ),
    "tuples": lambda client, set_id: scored(client, set_id, scores_pb2.DETAIL_TUPLES),
    "verdicts": lambda client, set_id: scored(client, set_id, scores_pb2.DETAIL_VERDICTS),
    "stream": streamed,
    "an entry that is not there": lambda client, set_id: client.score([item("3", "a dog")], reference_set=set_id),
}


def refusal(attempt: Attempt, client: Client, set_id: str) -> tuple[object, ...]:
    """All that a caller sees of a refusal, but for the ids that the caller gave and the call's own."""
    with pytest.raises(grpc.RpcError) as caught:
        attempt(client, set_id)
    keys = sorted(key for key, _ in caught.value.trailing_metadata())
    return caught.value.code().name, caught.value.details().replace(set_id, "ID"), keys


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_is_another_s_is_as_if_it_were_not_there(tenants: Tenants, name: str) -> None:
    """Also when it was asked for before: nothing is remembered of it."""
    secret = tenants.ann.create_reference_set(ENTRIES)
    for _ in range(2):
        seen = refusal(ATTEMPTS[name], tenants.bob, secret.id)
        assert seen == refusal(ATTEMPTS[name], tenants.bob, NOBODY)
        assert seen[0] == "NOT_FOUND"
    assert scored(tenants.ann, secret.id)


def test_the_same_upload_tells_nothing_of_another_s(tenants: Tenants) -> None:
    secret = tenants.ann.create_reference_set(ENTRIES, display_name="elephants")
    time.sleep(0.01)
    same = tenants.bob.create_reference_set(ENTRIES, display_name="elephants")
    assert same.id != secret.id
    assert same.owner == "bob"
    assert same.create_time.ToMicroseconds() > secret.create_time.ToMicroseconds()
    assert [one.id for one in tenants.bob.list_reference_sets()] == [same.id]
    tenants.bob.delete_reference_set(same.id)
    assert secret.id in [one.id for one in tenants.ann.list_reference_sets()]
    again = tenants.token("ann").create_reference_set(ENTRIES, display_name="elephants")
    assert (again.id, again.create_time) == (secret.id, secret.create_time)  # another token of the same tenant


def test_parses_are_kept_apart(tenants: Tenants) -> None:
    """How long a call takes would tell whether another tenant has parsed a caption: each has a cache of its own."""
    captions = ["a purple walrus plays a hidden trombone"]
    parsed = list(tenants.ann.parse(captions))
    assert list(tenants.bob.parse(captions)) == parsed
    third = tenants.token("carol")
    pipeline = third.server_info().pipeline

    def kept(tenant: str) -> bool:
        with closing(open_store(str(tenants.store))) as opened:
            return bool(opened.get_parses(f"{parse_signature(pipeline)}{tenant}", captions))

    end = time.monotonic() + 20
    while not (kept(" tenant ann") and kept(" tenant bob")):
        assert time.monotonic() < end, "parses are not stored"
        time.sleep(0.1)
    assert not kept(" tenant carol")
    assert not kept("")


def test_parses_of_a_shared_set_are_not_the_caller_s(tenants: Tenants) -> None:
    """Or the time of ``ParseCaptions`` would confirm references word for word."""
    entries = {"1": ["a secret green giraffe juggles oranges"]}
    shared = tenants.ann.create_reference_set(entries)
    tenants.ann.share_reference_set(shared.id, "bob", [SCORE])
    tenants.bob.score([item("1", "a green giraffe")], reference_set=shared.id)
    pipeline = tenants.bob.server_info().pipeline

    def kept(tenant: str) -> bool:
        with closing(open_store(str(tenants.store))) as opened:
            return bool(opened.get_parses(f"{parse_signature(pipeline)} tenant {tenant}", entries["1"]))

    wait_until(lambda: kept("bob\tann"))
    assert not kept("bob")


READ, SCORE, EVIDENCE = pb.REFERENCE_RIGHT_READ, pb.REFERENCE_RIGHT_SCORE, pb.REFERENCE_RIGHT_EVIDENCE


@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        ([READ], {"get"}),
        ([SCORE], {"score", "stream"}),
        ([EVIDENCE], set()),
        ([READ, SCORE, EVIDENCE], {"get", "score", "stream", "counts", "counts of one's own", "tuples", "verdicts"}),
    ],
)
def test_a_share_allows_what_it_names_and_nothing_else(
    tenants: Tenants, rights: list[pb.ReferenceRight.ValueType], allowed: set[str]
) -> None:
    shared = tenants.ann.create_reference_set(ENTRIES)
    tenants.ann.share_reference_set(shared.id, "bob", [])
    assert refusal(scored, tenants.bob, shared.id)[0] == "NOT_FOUND"
    found = tenants.ann.share_reference_set(shared.id, "bob", rights)
    assert [(share.tenant, list(share.rights)) for share in found.shares] == [("bob", rights)]
    listed = [one for one in tenants.bob.list_reference_sets() if one.id == shared.id]
    assert [(one.owner, len(one.shares)) for one in listed] == ([("ann", 0)] if READ in rights else [])
    for name, attempt in ATTEMPTS.items():
        if name in allowed:
            attempt(tenants.bob, shared.id)
        elif name != "an entry that is not there":
            code, message, _ = refusal(attempt, tenants.bob, shared.id)
            assert code == "PERMISSION_DENIED", name
            assert "is shared with you without the right" in message
    tenants.ann.share_reference_set(shared.id, "bob", [])
    assert refusal(scored, tenants.bob, shared.id)[0] == "NOT_FOUND"


def test_wrong_shares_are_faults(tenants: Tenants) -> None:
    own = tenants.ann.create_reference_set(ENTRIES)
    for tenant, rights, reason in (
        ("ann", [READ], "tenant: owns the set"),
        ("", [READ], "tenant: 1 to 100 printable characters"),
        ("bob", [READ, READ], r"rights\[1\]: stands twice"),
        ("bob", [0], r"rights\[0\]: 0 is not a right"),
        ("bob", [9], r"rights\[0\]: 9 is not a right"),
    ):
        with pytest.raises(grpc.RpcError, match=reason):
            tenants.ann.share_reference_set(own.id, tenant, rights)  # type: ignore[arg-type]


def test_silent_acceptance_is_over(tenants: Tenants) -> None:
    """Numbers that no enumeration has and page tokens that no list gave are faults."""
    one = [item("1", "a dog", ["a dog"])]
    for call, reason in (
        (lambda: tenants.ann.score(one, detail=99), "detail: 99 is not one of its values"),  # type: ignore[arg-type]
        (lambda: tenants.ann.score(one, detail=-5), "detail: -5 is not one of its values"),  # type: ignore[arg-type]
        (
            lambda: list(tenants.ann.stream(one, detail=99)),  # type: ignore[arg-type]
            "settings.detail: 99 is not one of its values",
        ),
        (
            lambda: tenants.ann._call(
                tenants.ann._references.ListReferenceSets, pb.ListReferenceSetsRequest(page_token="junk")
            ),
            "page_token: is not a page token of this list",
        ),
    ):
        with pytest.raises(grpc.RpcError, match=reason) as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert evaluation.ScoreRequest(detail=99).detail == 99


def test_an_expired_token_is_refused_at_once(tenants: Tenants) -> None:
    end = time.time() + 2
    client = tenants.token("brief", expires=end)
    assert client.server_info().version
    wait_until(lambda: time.time() > end)
    with pytest.raises(grpc.RpcError, match="the token has expired") as caught:
        client.server_info()
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_token_is_replaced_without_a_gap(tenants: Tenants, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(open_store(str(tenants.store))) as opened:
        old, record = create_token(opened, "rotating", ("score", "references"), rate=7.0, tenant="ann")
        new = rotate_token(opened, record.id, overlap_s=3.0)
        assert rotate_token(opened, "nothing", overlap_s=3.0) is None
    assert new is not None
    with Client(tenants.server.address, token=old) as before, Client(tenants.server.address, token=new) as after:
        own = tenants.ann.create_reference_set(ENTRIES)
        assert own.id in [one.id for one in before.list_reference_sets()]
        assert own.id in [one.id for one in after.list_reference_sets()]
        end = time.monotonic() + 10
        while True:
            try:
                before.server_info()
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.UNAUTHENTICATED  # noqa: PT017
                break
            assert time.monotonic() < end
            time.sleep(0.2)
        assert after.server_info().version
    assert main(["token", "list", f"--store={tenants.store}"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if "rotating" in line]
    assert [row[5] for row in rows] == ["ann", "ann"]
    assert [row[6] == "-" for row in rows] == [False, True]
    assert all(row[7] != "-" for row in rows)  # both were used


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--expires", "soon"], "--expires: expected days such as 90d"),
        (["--expires", "2001-01-01"], "--expires: 2001-01-01 is over already"),
        (["--tenant", ""], "a token's tenant has 1 to 100 printable characters"),
    ],
)
def test_wrong_options_of_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    assert main(["token", "create", "x", f"--store={tmp_path / 's.db'}", *options]) == 2
    assert reason in capsys.readouterr().err
