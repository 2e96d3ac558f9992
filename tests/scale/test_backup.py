"""Backups of a store, made while it is open and put back: damage is seen, and nothing is replaced."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from spicegraph_scale.backup import make_backup, restore_backup
from spicegraph_service.cli import main
from spicegraph_service.registry import StatePart
from spicegraph_service.store import ReferenceSet, StoreError
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup of a small store."""
    place = tmp_path / "server.db"
    with closing(open_store(str(place))) as store:
        store.create_set(ReferenceSet("a", "a", 1, 1, 1.0), {"x": b"1"})
        make_backup([StatePart("server.db", place)], tmp_path / "backup")  # while it is open
    return tmp_path / "backup"


def test_a_store_alone(backup: Path, tmp_path: Path) -> None:
    assert sorted(path.name for path in backup.iterdir()) == ["backup.json", "server.db"]
    restore_backup(backup, [StatePart("server.db", tmp_path / "new" / "server.db")])
    with closing(open_store(str(tmp_path / "new" / "server.db"))) as store:
        assert store.get_entries("a", ["x"]) == {"x": b"1"}


def test_damage_is_seen(backup: Path, tmp_path: Path) -> None:
    data = bytearray((backup / "server.db").read_bytes())
    data[-1] ^= 1
    (backup / "server.db").write_bytes(data)
    with pytest.raises(StoreError, match=r"server\.db: is not what was backed up"):
        restore_backup(backup, [StatePart("server.db", tmp_path / "new.db")])
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--store=redis://h:6379/0"], "--store: redis is backed up with redis-cli --rdb"),
        (["--store=nothing.db"], "nothing.db: there is no such file or folder"),
        (["--store=none"], "there is nothing to back up"),
    ],
)
def test_what_cannot_be_backed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    assert main(["backup", str(tmp_path / "b"), *options]) == 2
    assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_put_back(tmp_path: Path, backup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, reason in (
        ([str(tmp_path)], "is not a backup"),
        ([str(backup), f"--store={tmp_path / 'server.db'}"], "server.db: exists already; move it away first"),
    ):
        assert main(["restore", *arguments]) == 2
        assert reason in capsys.readouterr().err
    assert main(["backup", str(backup), f"--store={tmp_path / 'server.db'}"]) == 2
    assert "exists already; a backup goes into a new folder" in capsys.readouterr().err
