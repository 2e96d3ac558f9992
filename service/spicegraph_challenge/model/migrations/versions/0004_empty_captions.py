"""Empty captions: whether a challenge takes them, and how many a submission has.

Challenges that exist go on as they were: they refuse empty captions, and their submissions have none.

Revision: 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("challenges", sa.Column("empty", sa.String(20), nullable=False, server_default="refuse"))
    op.add_column("submission_files", sa.Column("empty_captions", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the columns. Every challenge then refuses empty captions in new submissions."""
    op.drop_column("submission_files", "empty_captions")
    op.drop_column("challenges", "empty")
