"""The first schema.

Revision: 0001, after none.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_CHARGED = sa.text("state NOT IN ('failed', 'cancelled')")


def _of(table: str, ondelete: str | None = None) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete=ondelete)


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "users",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("name", sa.String(40), nullable=False, unique=True),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("team", sa.String(40), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger()),
    )
    op.create_table(
        "user_tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("user_id", _BIG, _of("users"), nullable=False, index=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger()),
        sa.Column("used", sa.BigInteger()),
        sa.Column("session_of", sa.String(16), _of("user_tokens", "CASCADE"), index=True),
    )
    op.create_table(
        "challenges",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("name", sa.String(40), nullable=False, unique=True),
        sa.Column("settings", sa.LargeBinary(), nullable=False),
        sa.Column("opens", sa.BigInteger()),
        sa.Column("closes", sa.BigInteger()),
        sa.Column("created", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "challenge_members",
        sa.Column("challenge_id", _BIG, _of("challenges", "CASCADE"), primary_key=True),
        sa.Column("user_id", _BIG, _of("users"), primary_key=True),
        sa.Column("role", sa.String(20), nullable=False),
    )
    op.create_table(
        "splits",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("challenge_id", _BIG, _of("challenges", "CASCADE"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.UniqueConstraint("challenge_id", "name"),
    )
    op.create_table(
        "challenge_reference_sets",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("split_id", _BIG, _of("splits", "CASCADE"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("file", sa.String(64)),
        sa.Column("source", sa.String(64)),
        sa.Column("image_count", sa.Integer(), nullable=False),
        sa.Column("caption_count", sa.Integer(), nullable=False),
        sa.Column("domains", sa.JSON(), nullable=False),
        sa.UniqueConstraint("split_id", "name"),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("challenge_id", _BIG, _of("challenges"), nullable=False),
        sa.Column("user_id", _BIG, _of("users"), nullable=False),
        sa.Column("method", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("team", sa.String(200), nullable=False),
        sa.Column("paper_url", sa.String(300), nullable=False),
        sa.Column("code_url", sa.String(300), nullable=False),
        sa.Column("file_name", sa.String(255), nullable=False),
        sa.Column("split", sa.String(40), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("file_bytes", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.String(100)),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger()),
        sa.Column("ended", sa.BigInteger()),
        sa.Column("failure", sa.String(40)),
        sa.Column("failure_message", sa.Text(), nullable=False),
        sa.Column("faults", sa.String(64)),
        sa.Column("fault_count", sa.Integer(), nullable=False),
        sa.UniqueConstraint("user_id", "challenge_id", "idempotency_key"),
    )
    op.create_index("ix_submissions_challenge_created", "submissions", ["challenge_id", "created", "id"])
    op.create_index(
        "ux_submissions_content",
        "submissions",
        ["user_id", "challenge_id", "sha256"],
        unique=True,
        sqlite_where=_CHARGED,
        postgresql_where=_CHARGED,
    )
    op.create_table(
        "submission_files",
        sa.Column("submission_id", sa.String(16), _of("submissions"), primary_key=True),
        sa.Column("split_id", _BIG, _of("splits"), primary_key=True),
        sa.Column("file", sa.String(64), nullable=False),
        sa.Column("empty_captions", sa.Integer(), nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("submission_id", sa.String(16), _of("submissions"), nullable=False, index=True),
        sa.Column("job_id", sa.BigInteger(), nullable=False, unique=True),
        sa.Column("version", sa.String(100), nullable=False),
        sa.Column("signatures", sa.JSON(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.JSON(), nullable=False),
    )
    op.create_table(
        "run_scores",
        sa.Column("run_id", _BIG, _of("runs"), primary_key=True),
        sa.Column("reference_set_id", _BIG, _of("challenge_reference_sets"), primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("low", sa.Double()),
        sa.Column("high", sa.Double()),
        sa.Column("images", sa.Integer()),
        sa.Column("domain", sa.String(40), nullable=False),
    )
    op.create_table(
        "choices",
        sa.Column("challenge_id", _BIG, _of("challenges"), primary_key=True),
        sa.Column("user_id", _BIG, _of("users"), primary_key=True),
        sa.Column("submission_id", sa.String(16), _of("submissions")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("submission_id", sa.String(16), _of("submissions"), unique=True),
        sa.Column("reference_set_id", _BIG, _of("challenge_reference_sets", "CASCADE"), unique=True),
        sa.Column("owner", sa.String(40)),
        sa.Column("lease_end", sa.BigInteger()),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_kind_id", "jobs", ["kind", "id"])
