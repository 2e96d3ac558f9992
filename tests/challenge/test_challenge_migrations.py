"""The database's schema: made, tried out before, and what a stored challenge keeps of another version's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.accounts import add_user, find_account
from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import Base, Challenge, Role

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

SQLITE = "SELECT tbl_name, name, sql FROM sqlite_master"
POSTGRESQL = """
SELECT concat_ws(' ', table_name, column_name, data_type, character_maximum_length, is_nullable, column_default)
FROM information_schema.columns WHERE table_schema = 'public'
UNION SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION SELECT concat_ws(' ', tablename, indexdef) FROM pg_indexes WHERE schemaname = 'public'
"""
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


@pytest.mark.slow
def test_migrations_make_the_schema_that_the_tables_say(empty: Database) -> None:
    """A table, column, constraint or index that changes in ``schema.py`` needs a migration."""
    with empty as database:
        database.migrate()
        with database.writing() as session:
            connection = session.connection()
            migrated = definitions(connection, database)
            assert len(migrated) > len(Base.metadata.tables)
            Base.metadata.drop_all(connection)
            Base.metadata.create_all(connection)
            assert migrated == definitions(connection, database)


def definitions(connection: Connection, database: Database) -> list[str]:
    """Return how the database itself writes down its tables, constraints and indexes."""
    rows = connection.execute(text(SQLITE if database.is_sqlite else POSTGRESQL))
    return sorted(line for line in (" ".join(map(str, row)) for row in rows) if not line.startswith("alembic"))


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
