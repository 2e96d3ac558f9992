"""Backups of a running server, put back elsewhere: what was acknowledged before is there, and damage is seen."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.registration import ChallengeFolder
from spicegraph_service.cli import main
from spicegraph_service.client import Client
from spicegraph_service.store import StoreError
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from arenas import Arena

backups = pytest.importorskip("spicegraph_scale.backup", reason="the wing is left out")


@pytest.mark.model
@pytest.mark.slow
def test_a_backup_of_a_running_server_is_put_back_elsewhere(
    sqlite_arena: Arena, tools: type, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arena = sqlite_arena
    store = tmp_path / "server.db"
    server = arena.start(f"--store={store}")
    with ChallengeClient(server.address, arena.organiser()) as organiser, Client(server.address) as client:
        organiser.create_challenge(tools.challenge())
        references = arena.write("references.json", tools.annotations(tools.small))
        organiser.upload_references("small", "val", "c5", references)
        sent, _ = organiser.submit("small", arena.write("captions_val_x_results.json", tools.results("x")))
        *_, before = organiser.watch(sent.id)
        own = client.create_reference_set({"1": ["a dog"]})
        going = threading.Event()
        going.set()

        def write() -> None:
            number = 0
            while going.is_set():
                number += 1
                client.create_reference_set({"1": [f"a dog, number {number}"]})
                organiser.submit("small", arena.write("y.json", tools.results(number)), split="val")

        writing = threading.Thread(target=write)
        writing.start()
        try:
            options = [f"--challenges={arena.place}", f"--challenge-files={arena.folder / 'files'}"]
            assert main(["backup", str(tmp_path / "backup"), f"--store={store}", *options]) == 0
        finally:
            going.clear()
            writing.join()
    server.stop()
    assert {path.name for path in (tmp_path / "backup").iterdir()} == {
        "backup.json",
        "challenges.db",
        "files",
        "server.db",
    }
    assert main(["restore", str(tmp_path / "backup"), "--check"]) == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "backup").rglob("*"))
    other = tools.arena(str(tmp_path / "b" / "challenges.db"), tmp_path / "b", arena.start_server)
    put_back = [f"--store={tmp_path / 'b' / 'server.db'}", f"--challenges={other.place}"]
    put_back.append(f"--challenge-files={other.folder / 'files'}")
    assert main(["restore", str(tmp_path / "backup"), *put_back]) == 0
    assert main(["restore", str(tmp_path / "backup"), *put_back]) == 2
    assert "exists already" in capsys.readouterr().err
    again = other.start(f"--store={tmp_path / 'b' / 'server.db'}")
    with ChallengeClient(again.address, arena.tokens["organiser"]) as organiser, Client(again.address) as client:
        assert organiser.get_submission(sent.id) == before
        assert own.id in [one.id for one in client.list_reference_sets()]
        for found in organiser.list_submissions("small"):  # those that were under way go on
            *_, last = organiser.watch(found.id)
            assert last.state == pb.SUBMISSION_STATE_SUCCEEDED
    assert again.stop() == 0


def test_a_file_that_the_database_needs_must_be_there(tmp_path: Path) -> None:
    from spicegraph_challenge.model.database import Database
    from spicegraph_challenge.model.schema import Challenge, Split, SplitReferences
    from spicegraph_challenge.sandbox.files import FileStore

    files = FileStore(tmp_path / "files")
    with files.incoming() as incoming:
        incoming.write(b"references")
        key = incoming.finish()
        files.keep(incoming, key)
    with Database(str(tmp_path / "c.db")) as database, database.writing() as session:
        split = Split(position=0, name="val")
        split.reference_sets = [
            SplitReferences(position=0, name="c5", file=key, source=key, image_count=1, caption_count=1)
        ]
        settings = pb.ChallengeSettings(splits=[pb.ChallengeSplit(name="val")])
        session.add(Challenge(name="c", settings=settings, created=database.now(session), splits=[split]))
    parts = [ChallengeFolder(str(tmp_path / "c.db"), tmp_path / "files").part()]
    assert backups.make_backup(parts, tmp_path / "whole").files == (key,)
    assert backups.check_backup(tmp_path / "whole").files == (key,)
    (tmp_path / "whole" / "files" / key[:2] / key).write_bytes(b"other")
    with pytest.raises(StoreError, match="is not what was backed up"):
        backups.check_backup(tmp_path / "whole")
    files.path(key).write_bytes(b"damaged")
    with pytest.raises(StoreError, match="its content is not what its name says"):
        backups.make_backup(parts, tmp_path / "damaged")
    files.path(key).unlink()
    with pytest.raises(StoreError, match=f"1 uploaded files are missing, the first is {key}"):
        backups.make_backup(parts, tmp_path / "missing")
    assert not [path for path in tmp_path.iterdir() if "damaged" in path.name or "missing" in path.name]


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--store=none", "--challenges=postgresql://h/d"], "--challenges: postgresql is backed up with pg_dump")],
)
def test_what_cannot_be_backed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    assert main(["backup", str(tmp_path / "b"), *options]) == 2
    assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_backup_without_challenges_has_none_to_put_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(open_store(str(tmp_path / "server.db"))):
        assert main(["backup", str(tmp_path / "backup"), f"--store={tmp_path / 'server.db'}"]) == 0
    assert main(["restore", str(tmp_path / "backup"), "--store=none", f"--challenges={tmp_path / 'c.db'}"]) == 2
    assert "holds no challenges.db" in capsys.readouterr().err


def test_a_schema_is_tried_out_and_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"--challenges={tmp_path / 'c.db'}"
    assert main(["challenge", "migrate", place, "--dry-run"]) == 0
    tried = capsys.readouterr()
    assert tried.out == "empty -> 0001\n"
    assert main(["challenge", "migrate", place]) == 0
    assert capsys.readouterr().out == tried.out
    assert main(["backup", str(tmp_path / "backup"), "--store=none", place]) == 0  # without a file so far
    assert main(["challenge", "migrate", place]) == 0
    assert capsys.readouterr().out == ""  # it is there already
