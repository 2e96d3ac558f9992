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
        "challenges",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("name", sa.String(length=40), nullable=False, unique=True),
        sa.Column("settings", sa.LargeBinary(), nullable=False),
        sa.Column("opens", sa.BigInteger(), nullable=True),
        sa.Column("closes", sa.BigInteger(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "users",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("name", sa.String(length=40), nullable=False, unique=True),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("team", sa.String(length=40), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger(), nullable=True),
    )
    op.create_table(
        "splits",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("challenge_id", _BIG, _of("challenges", ondelete="CASCADE"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.UniqueConstraint("challenge_id", "name"),
    )
    op.create_table(
        "challenge_members",
        sa.Column("challenge_id", _BIG, _of("challenges", ondelete="CASCADE"), primary_key=True),
        sa.Column("user_id", _BIG, _of("users"), primary_key=True),
        sa.Column("role", sa.String(length=20), nullable=False),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.String(length=16), primary_key=True),
        sa.Column("challenge_id", _BIG, _of("challenges"), nullable=False),
        sa.Column("user_id", _BIG, _of("users"), nullable=False),
        sa.Column("method", sa.String(length=100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("team", sa.String(length=200), nullable=False),
        sa.Column("paper_url", sa.String(length=300), nullable=False),
        sa.Column("code_url", sa.String(length=300), nullable=False),
        sa.Column("file_name", sa.String(length=255), nullable=False),
        sa.Column("split", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("file_bytes", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=100), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=True),
        sa.Column("ended", sa.BigInteger(), nullable=True),
        sa.Column("failure", sa.String(length=40), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=False),
        sa.Column("faults", sa.String(length=64), nullable=True),
        sa.Column("fault_count", sa.Integer(), nullable=False),
        sa.UniqueConstraint("user_id", "challenge_id", "idempotency_key"),
    )
    op.create_index("ix_submissions_challenge_created", "submissions", ["challenge_id", "created", "id"], unique=False)
    op.create_index(
        "ux_submissions_content",
        "submissions",
        ["user_id", "challenge_id", "sha256"],
        unique=True,
        sqlite_where=_CHARGED,
        postgresql_where=_CHARGED,
    )
    op.create_table(
        "user_tokens",
        sa.Column("id", sa.String(length=16), primary_key=True),
        sa.Column("user_id", _BIG, _of("users"), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False, unique=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=True),
        sa.Column("used", sa.BigInteger(), nullable=True),
        sa.Column("session_of", sa.String(length=16), _of("user_tokens", ondelete="CASCADE"), nullable=True),
    )
    op.create_index("ix_user_tokens_user_id", "user_tokens", ["user_id"], unique=False)
    op.create_index("ix_user_tokens_session_of", "user_tokens", ["session_of"], unique=False)
    op.create_table(
        "challenge_reference_sets",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("split_id", _BIG, _of("splits", ondelete="CASCADE"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("file", sa.String(length=64), nullable=True),
        sa.Column("source", sa.String(length=64), nullable=True),
        sa.Column("image_count", sa.Integer(), nullable=False),
        sa.Column("caption_count", sa.Integer(), nullable=False),
        sa.Column("domains", sa.JSON(), nullable=False),
        sa.UniqueConstraint("split_id", "name"),
    )
    op.create_table(
        "choices",
        sa.Column("challenge_id", _BIG, _of("challenges"), primary_key=True),
        sa.Column("user_id", _BIG, _of("users"), primary_key=True),
        sa.Column("submission_id", sa.String(length=16), _of("submissions"), nullable=True),
    )
    op.create_table(
        "runs",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("submission_id", sa.String(length=16), _of("submissions"), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False, unique=True),
        sa.Column("version", sa.String(length=100), nullable=False),
        sa.Column("signatures", sa.JSON(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.JSON(), nullable=False),
    )
    op.create_index("ix_runs_submission_id", "runs", ["submission_id"], unique=False)
    op.create_table(
        "submission_files",
        sa.Column("submission_id", sa.String(length=16), _of("submissions"), primary_key=True),
        sa.Column("split_id", _BIG, _of("splits"), primary_key=True),
        sa.Column("file", sa.String(length=64), nullable=False),
        sa.Column("empty_captions", sa.Integer(), nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("submission_id", sa.String(length=16), _of("submissions"), nullable=True, unique=True),
        sa.Column(
            "reference_set_id",
            _BIG,
            _of("challenge_reference_sets", ondelete="CASCADE"),
            nullable=True,
            unique=True,
        ),
        sa.Column("owner", sa.String(length=40), nullable=True),
        sa.Column("lease_end", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_kind_id", "jobs", ["kind", "id"], unique=False)
    op.create_table(
        "run_scores",
        sa.Column("run_id", _BIG, _of("runs"), primary_key=True),
        sa.Column("reference_set_id", _BIG, _of("challenge_reference_sets"), primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("images", sa.Integer(), nullable=True),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("domain", sa.String(length=40), nullable=False),
    )
