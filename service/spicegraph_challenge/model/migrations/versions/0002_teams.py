"""Users may be in a team.

Revision: 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Put everybody into no team."""
    op.add_column("users", sa.Column("team", sa.String(length=40), nullable=False, server_default=""))


def downgrade() -> None:
    """Forget the teams."""
    op.drop_column("users", "team")
