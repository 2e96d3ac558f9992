"""The text that SPICE parses.

Challenges that exist go on as they were: SPICE parses their captions as written.

Revision: 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("challenges", sa.Column("spice_text", sa.String(20), nullable=False, server_default="written"))


def downgrade() -> None:
    """Drop the column. Every caption is then parsed as written."""
    op.drop_column("challenges", "spice_text")
