"""Databases of earlier versions: brought up to date with their rows, tried out before, and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import Challenge, RunScore, User
from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

FIRST = """
INSERT INTO challenges VALUES (1, 'old', 'Old', '', '["spice"]', '', NULL, NULL, 3, 9, 5);
INSERT INTO users VALUES (1, 'me', 'organiser', 5, NULL), (2, 'ann', 'participant', 5, NULL);
INSERT INTO splits VALUES (1, 1, 0, 'val', 'always', 'always');
INSERT INTO challenge_reference_sets VALUES (1, 1, 0, 'c5', 'f', 's', 7, 9);
INSERT INTO submissions VALUES ('s1', 1, 2, 'm', '', 'f', '', 'h', 1, NULL, 'succeeded', 5, 5, 5, NULL, '', NULL, 0);
INSERT INTO runs VALUES (1, 's1', 1, '0.1', '{}', 5);
INSERT INTO run_scores VALUES (1, 1, 0, 'SPICE', 0.123456789, NULL, NULL);
"""
"""Rows of schema 0001, the first version's."""


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path, tools: type) -> Database:
    """A database with schema 0001 and rows."""
    place = str(tmp_path / "challenges.db")
    if request.param == "postgresql":
        place = tools.create_database(request.getfixturevalue("postgres"), tmp_path.name)
    database = Database(place, migrate=False)
    assert database.migrate("0001") == ["empty -> 0001"]
    with database.writing() as session:
        for statement in FIRST.strip().split(";\n"):
            session.execute(text(statement.replace(":", "\\:").rstrip(";")))
    return database


def test_an_old_database_goes_on_as_it_was(old: Database) -> None:
    with old:
        planned = old.migrate(dry_run=True)
        assert planned[0] == "0001 -> 0002"
        assert old.migrate(dry_run=True) == planned == old.migrate()
        assert old.migrate() == []
        with old.reading() as session:
            challenge = session.scalars(select(Challenge)).one()
            assert (challenge.daily_limit, challenge.total_limit) == (3, 9)
            # What participants saw, they still see.
            assert (challenge.score_digits, challenge.category_images, challenge.equal_percent) == (-1, 1, 100)
            assert (challenge.spice_text, challenge.graph_style, challenge.empty) == ("written", "spice", "refuse")
            assert challenge.error_images == -1
            score = session.scalars(select(RunScore)).one()
            assert (score.value, score.images, score.places) == (0.123456789, None, None)


def test_the_schema_goes_back_and_forth(old: Database) -> None:
    with old:
        steps = old.migrate()
        with old.writing() as session:
            session.execute(text("UPDATE users SET role = 'host' WHERE id = 2"))
            session.execute(text("INSERT INTO challenge_members VALUES (1, 2, 'owner')"))
            session.execute(text("INSERT INTO user_tokens VALUES ('a', 2, 'n', 'h1', 5, NULL, 7)"))
            session.execute(text("INSERT INTO user_tokens VALUES ('b', 2, 'n', 'h2', 5, 6, 7)"))
        back = old.migrate("0001")
        assert back == [" -> ".join(reversed(step.split(" -> "))) for step in reversed(steps)]
        with old.reading() as session:
            assert session.execute(text("SELECT value FROM run_scores")).scalar_one() == 0.123456789
            assert session.execute(text("SELECT role FROM users WHERE id = 2")).scalar_one() == "participant"
            assert session.execute(text("SELECT id FROM user_tokens")).scalars().all() == ["a"]
        assert old.migrate() == steps
        with old.reading() as session:
            assert [user.name for user in session.scalars(select(User).order_by(User.id))] == ["me", "ann"]
        with pytest.raises(
            InputError, match="there is no schema '9999'; there are 0001, 0002, 0003, 0004, 0005, 0006, 0007"
        ):
            old.migrate("9999")
