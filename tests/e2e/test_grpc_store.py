"""The stores: each keeps the same promises."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest
from fakeredis import TcpFakeServer

from spicegraph_challenge.model.database import Database
from spicegraph_service.store import ReferenceSet, Store, StoreError, StoreFullError, TokenRecord, parse_key
from spicegraph_service.store.places import open_store
from spicegraph_service.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

REDIS_SERVER = shutil.which("redis-server")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis: the real one where it is installed, else one that speaks its protocol."""
    port = free_port()
    if REDIS_SERVER:
        folder = tmp_path_factory.mktemp("redis")
        command = [REDIS_SERVER, "--port", str(port), "--save", "", "--dir", str(folder)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            wait_for(port)
            yield f"redis://127.0.0.1:{port}/0"
            process.terminate()
    else:
        server = TcpFakeServer(("127.0.0.1", port), server_type="redis")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"redis://127.0.0.1:{port}/0"
        server.shutdown()
        server.server_close()


def wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("Redis does not listen")


@pytest.fixture(params=["memory", "file", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    places = {"memory": lambda: "memory", "file": lambda: str(tmp_path / "a" / "store.db")}
    place = places[request.param]() if request.param in places else request.getfixturevalue("redis_url")
    opened = open_store(place)
    yield opened
    for tenant in ("default", "ann", "bob"):
        for one in opened.list_sets(tenant, "", 100):
            opened.delete_set(tenant, one.id)
    for record in opened.list_tokens():
        opened.revoke_token(record.id)
    opened.close()


def a_set(name: str, count: int = 2) -> ReferenceSet:
    return ReferenceSet(name, f"set {name}", count, 2 * count, 1234.5)


def test_parses_come_back_for_their_pipeline_alone(store: Store) -> None:
    texts = {f"caption {n} \N{DOG FACE}": bytes([n % 256]) * 10 for n in range(1200)}
    store.put_parses("one-1.0", texts)
    assert store.get_parses("one-1.0", [*texts, "unknown"]) == texts
    assert store.get_parses("one-1.1", list(texts)) == {}
    store.put_parses("one-1.0", {"caption 1 \N{DOG FACE}": b"\x01" * 10})


def test_the_address_of_a_parse_is_its_content() -> None:
    assert parse_key("a", "b") == parse_key("a", "b")
    assert len({parse_key("a", "b"), parse_key("b", "a"), parse_key("ab", "")}) == 3


def test_sets_are_created_once_and_listed_in_order(store: Store) -> None:
    entries = {"x": b"1", "y": b"2"}
    first = store.create_set(a_set("b"), entries)
    assert first == a_set("b")
    assert store.create_set(ReferenceSet("b", "other", 9, 9, 99.0), {"z": b"3"}) == first
    assert store.get_entries("b", ["x", "z", "y"]) == entries
    store.create_set(a_set("c"), entries)
    store.create_set(a_set("a"), entries)
    assert [one.id for one in store.list_sets("default", "", 10)] == ["a", "b", "c"]
    assert [one.id for one in store.list_sets("default", "a", 1)] == ["b"]
    assert store.list_sets("default", "c", 10) == []
    assert store.get_set("default", "nothing") is None
    assert store.delete_set("default", "b")
    assert not store.delete_set("default", "b")
    assert store.get_entries("b", ["x"]) == {}


def test_sets_exist_for_their_tenant_and_for_whom_he_shares_them_with(store: Store) -> None:
    own = ReferenceSet("a", "secret", 1, 1, 1.0, "ann")
    assert store.create_set(own, {"x": b"1"}) == own
    assert store.get_set("ann", "a") == own
    assert store.get_set("bob", "a") is None
    assert store.list_sets("bob", "", 10) == []
    assert not store.delete_set("bob", "a")
    store.share_set("a", "bob", ("score",))
    shared = store.get_set("bob", "a")
    assert shared is not None
    assert (shared.tenant, shared.allows("score"), shared.allows("read")) == ("ann", True, False)
    assert store.list_sets("bob", "", 10) == []
    store.share_set("a", "bob", ("read", "evidence"))
    assert [one.rights for one in store.list_sets("bob", "", 10)] == [("read", "evidence")]
    assert (store.count_sets("ann"), store.count_sets("bob")) == (1, 0)  # a shared one is the owner's
    assert store.list_shares("a") == {"bob": ("read", "evidence")}
    assert not store.delete_set("bob", "a")
    store.share_set("a", "bob", ())
    assert store.get_set("bob", "a") is None
    assert store.list_shares("a") == {}
    store.share_set("a", "bob", ("read",))
    assert store.delete_set("ann", "a")
    assert store.get_set("bob", "a") is None
    assert store.list_sets("bob", "", 10) == []
    store.share_set("a", "bob", ("read",))  # it was deleted meanwhile
    assert store.get_set("bob", "a") is None


def test_tokens_remember_their_use_and_their_end(store: Store) -> None:
    store.add_token(TokenRecord("id1", "trainer", "aa", ("score",), 5.0, 1.0, "ann", 90.0))
    store.touch_token("aa", 2.5)
    store.expire_token("id1", 50.0)
    wanted = TokenRecord("id1", "trainer", "aa", ("score",), 5.0, 1.0, "ann", 50.0, 2.5)
    assert store.find_token("aa") == wanted
    assert store.list_tokens() == [wanted]
    assert store.revoke_token("id1")
    store.touch_token("aa", 3.5)
    store.expire_token("id1", 60.0)
    assert store.find_token("aa") is None


def test_a_private_file_is_its_user_s_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s.db"
    store = open_store(str(path), private=True)
    store.create_set(a_set("a"), {"x": b"1"})
    assert {file.name: file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == dict.fromkeys(
        ("s.db", "s.db-wal", "s.db-shm"), 0
    )
    store.close()
    assert not caplog.records
    path.chmod(0o644)
    for _ in range(3):  # a server opens its store several times
        open_store(str(path), private=True).close()
    assert caplog.text.count(f"{path} can be read by other users of this machine") == 1


@pytest.mark.parametrize("opened", [open_store, Database])
def test_why_a_file_cannot_be_opened_is_told(
    opened: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match=r"unable to open database file \(it is a folder\)$"):
        opened(str(tmp_path))
    if os.name == "posix" and os.getuid() == 0:
        place = tmp_path / "disk"
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False).returncode:
            return
        try:
            opened(str(place / "x.db")).close()  # type: ignore[attr-defined]
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
            with pytest.raises(StoreError, match=r"x.db: .*\(its disk is read-only\)$"):
                opened(str(place / "x.db"))
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
    else:
        tmp_path.chmod(0o500)
        with pytest.raises(StoreError, match=r"\(this user may not write to "):
            opened(str(tmp_path / "x.db"))
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("damage", ["half", "zeros"])
def test_a_damaged_challenge_database_is_told(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    Database(str(path)).close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage == "half" else whole[:100] + bytes(len(whole) - 100))
    with pytest.raises(StoreError, match=r"the challenge database is damaged: .*; restore a backup$"):
        Database(str(path))


def test_tokens_are_found_by_hash_until_revoked(store: Store) -> None:
    record = TokenRecord("id1", "trainer", "aa", ("score",), 5.0, 1.0)
    store.add_token(record)
    store.add_token(TokenRecord("id2", "other", "bb", ("score", "references"), 0.0, 2.0))
    assert store.find_token("aa") == record
    assert store.find_token("cc") is None
    assert [one.id for one in store.list_tokens()] == ["id1", "id2"]
    assert store.revoke_token("id1")
    assert store.find_token("aa") is None
    assert not store.revoke_token("id1")


def test_old_parses_make_room(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"), max_parses=10)
    for number in range(25):
        store.put_parses("p", {f"t{number}": b"x"})
    kept = store.get_parses("p", [f"t{number}" for number in range(25)])
    assert sorted(kept, key=lambda text: int(text[1:])) == [f"t{number}" for number in range(15, 25)]
    store.close()


def test_a_file_survives_and_may_be_shared(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    one, two = open_store(place), open_store(place)
    one.create_set(a_set("a"), {"x": b"1"})
    assert two.get_entries("a", ["x"]) == {"x": b"1"}
    one.close()
    two.close()
    again = open_store(place)
    assert again.get_set("default", "a") == a_set("a")
    again.close()


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    store._connection.execute("PRAGMA max_page_count = 40")
    with pytest.raises(StoreFullError, match="no room left"):
        store.create_set(a_set("big"), {f"{n}": b"x" * 1000 for n in range(1000)})
    assert store.get_set("default", "big") is None
    assert store.get_entries("big", ["1"]) == {}
    store.create_set(a_set("small"), {"1": b"x"})
    assert store.get_set("default", "small") == a_set("small")
    store.close()


@pytest.mark.parametrize("content", [b"not a database at all, whatever its name says" * 100])
def test_a_damaged_file_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a database"):
        open_store(str(path))


def test_another_schema_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="schema 99"):
        open_store(str(path))


def test_a_redis_that_is_not_there_is_told() -> None:
    with pytest.raises(StoreError, match="Redis fails"):
        open_store(f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(StoreError, match="URL is wrong"):
        open_store("redis://127.0.0.1:notaport/0")
