"""The database's schema: made, tried out before, and what a stored challenge keeps of another version's settings."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.accounts import add_user, find_account
from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import Base, Challenge, Role

if TYPE_CHECKING:
    from pathlib import Path

NEWER = pb.ChallengeSettings(title="Old", metrics=["spice"]).SerializeToString() + b"\xa0\x1f\x07"
"""Settings of a version that knows a field 500, which holds 7, and without numbers that this one knows."""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path, tools: type) -> Database:
    """A database without a schema."""
    place = str(tmp_path / "challenges.db")
    if request.param == "postgresql":
        place = tools.create_database(request.getfixturevalue("postgres"), tmp_path.name)
    return Database(place, migrate=False)


@pytest.mark.slow
def test_the_schema_is_tried_out_and_made(empty: Database) -> None:
    with empty as database:
        planned = database.migrate(dry_run=True)
        assert planned == ["empty -> 0001"]
        assert database.migrate(dry_run=True) == planned == database.migrate()
        assert database.migrate() == []
        with database.writing() as session:
            _, secret = add_user(session, "ann", Role.PARTICIPANT, database.now(session), team="us")
        with database.reading() as session:
            account, _ = find_account(session, f"Bearer {secret}", database.now(session))
        assert (account.name, account.team) == ("ann", "us")


def test_the_first_schema_stays_as_it_is() -> None:
    """A database that exists is not changed by another table here: that needs a migration, and 0001 written out."""
    columns = [
        f"{column} {column.type} {column.nullable} {column.primary_key} {column.unique} {column.index}"
        + "".join(f" {key.target_fullname} {key.ondelete}" for key in column.foreign_keys)
        for table in Base.metadata.sorted_tables
        for column in table.columns
    ]
    indexes = [f"{index.name} {index.unique}" for table in Base.metadata.sorted_tables for index in table.indexes]
    told = "\n".join(sorted([*columns, *indexes]))
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == "7a130b1cf9a116d0"


@pytest.mark.slow
def test_a_stored_challenge_gets_new_defaults_and_keeps_what_a_newer_version_has_added(empty: Database) -> None:
    with empty as database:
        database.migrate()
        with database.writing() as session:
            insert = "INSERT INTO challenges (id, name, settings, created) VALUES (1, 'old', :settings, 5)"
            session.execute(text(insert), {"settings": NEWER})
        with database.writing() as session:
            challenge = session.scalars(select(Challenge)).one()
            settings = pb.ChallengeSettings()
            settings.CopyFrom(challenge.settings)
            assert (settings.title, settings.daily_limit, settings.category_images) == ("Old", 5, 50)
            settings.title = "New"
            challenge.set(settings)
        with database.reading() as session:
            stored: bytes = session.execute(text("SELECT settings FROM challenges")).scalar_one()
        assert b"\xa0\x1f\x07" in bytes(stored)
        assert pb.ChallengeSettings.FromString(bytes(stored)).title == "New"
