"""What --cache keeps: through kills, several writers, a full disk, another pipeline; and its command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser import load_pipeline
from spicegraph_service.cli import main
from spicegraph_service.engines.local import local_facts
from spicegraph_service.store import StoreFullError
from spicegraph_service.store.places import open_store
from spicegraph_service.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

_WRITER = """
import sys
from spicegraph_service.store.places import open_store
store = open_store(sys.argv[1])
for number in range(int(sys.argv[2])):
    store.put_parses("signature", {f"{sys.argv[3]} {number} {i}": b"value" * 20 for i in range(50)})
    print(number, flush=True)
"""


def _writer(path: Path, batches: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(path), str(batches), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_writer_leaves_whole_batches(tmp_path):
    path = tmp_path / "parses.db"
    with _writer(path, 10_000, "killed") as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(20)]
        os.kill(process.pid, signal.SIGKILL)
    with closing(open_store(str(path))) as store:
        count = store.count_parses()
        assert count >= 50 * len(seen)
        assert count % 50 == 0
        assert store.get_parses("signature", ["killed 19 49"]) == {"killed 19 49": b"value" * 20}
        store.put_parses("signature", {"after": b"value"})


def test_several_writers_at_a_time_lose_nothing(tmp_path):
    path = tmp_path / "parses.db"
    processes = [_writer(path, 20, name) for name in ("one", "two", "three")]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with closing(open_store(str(path))) as store:
        assert store.count_parses() == 3 * 20 * 50


@pytest.mark.model
def test_a_full_disk_costs_the_cache_not_the_scores(tmp_path, monkeypatch):
    captions = [f"A dog and {number} cats sit on a mat." for number in range(60)]
    expected = list(load_pipeline().facts(captions))

    def full(_self, _signature, _parses):
        raise StoreFullError("parses.db: no room left on the disk")

    monkeypatch.setattr(SqliteStore, "put_parses", full)
    with (
        local_facts("en_caption", cache=str(tmp_path / "parses.db")) as source,
        pytest.warns(UserWarning, match="no longer kept.*no room left"),
    ):
        assert list(source.facts(captions)) == expected


def test_no_room_in_the_file_is_a_full_store(tmp_path):
    """SQLite's own limit stands in for the disk's: what was stored before stays."""
    with closing(SqliteStore(str(tmp_path / "parses.db"))) as store:
        store.put_parses("signature", {"first": b"value"})
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreFullError, match="no room left"):
            store.put_parses("signature", {str(number): bytes(4000) for number in range(100)})
        assert store.get_parses("signature", ["first"]) == {"first": b"value"}


def test_a_disk_with_little_room_keeps_what_it_has_and_no_log(tmp_path, monkeypatch):
    """Parses stop before the disk is full: the write-ahead log can still be folded in when the file is closed."""
    path = tmp_path / "parses.db"
    with closing(SqliteStore(str(path))) as store:
        store.put_parses("signature", {"first": b"value"})
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=3 << 20))
        store.put_parses("signature", {"second": b"value"})
        with pytest.raises(StoreFullError, match="no room left"):
            store.put_parses("signature", {"third": bytes(1 << 20)})
        assert set(store.get_parses("signature", ["first", "second", "third"])) == {"first", "second"}
    assert [file.name for file in tmp_path.iterdir()] == ["parses.db"]


@pytest.mark.model
def test_another_pipeline_has_its_own_parses(tmp_path):
    place = str(tmp_path / "parses.db")
    for pipeline in ("en_caption", "en_core_web_sm"):
        with local_facts(pipeline, cache=place) as source:
            list(source.facts(["a dog"]))
    with closing(open_store(place)) as store:
        assert store.count_parses() == 2


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "parses.db"
    with closing(open_store(str(path))) as store:
        for number in range(4):
            store.put_parses("signature", {f"{number} {i}": bytes(2000) for i in range(100)})
    return path


def test_show_tells_count_and_size(filled, capsys):
    assert main(["cache", "show", str(filled)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["parses", "400"]
    assert main(["cache", "show", str(filled), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["parses"] == 400
    assert shown["bytes"] >= 400 * 2000


def test_trim_keeps_the_newest_and_gives_room_back(filled, capsys):
    before = filled.stat().st_size
    assert main(["cache", "trim", str(filled), "--keep", "150"]) == 0
    assert capsys.readouterr().out == "deleted 250 parses\n"
    assert filled.stat().st_size < before / 2
    with closing(open_store(str(filled))) as store:
        assert set(store.get_parses("signature", ["3 0", "2 60", "2 10", "0 0"])) == {"3 0", "2 60"}


def test_clear_spares_tokens(filled, capsys):
    with sqlite3.connect(filled) as connection:
        connection.execute(
            "INSERT INTO tokens (id, name, hash, scopes, rate, create_time) VALUES ('id', 'name', 'hash', 'score', 0, 0)"
        )
    connection.close()
    assert main(["cache", "clear", str(filled)]) == 0
    with closing(open_store(str(filled))) as store:
        assert store.count_parses() == 0
        assert [record.id for record in store.list_tokens()] == ["id"]


def test_a_cache_that_is_not_there_is_not_made(tmp_path, capsys):
    path = tmp_path / "typo.db"
    assert main(["cache", "clear", str(path)]) == 2
    assert "there is no such cache" in capsys.readouterr().err
    assert not path.exists()
