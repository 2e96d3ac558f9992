"""The style of scene graphs.

Challenges that exist go on as they were: with the graphs of the server's pipeline.

Revision: 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("challenges", sa.Column("graph_style", sa.String(20), nullable=False, server_default="spice"))


def downgrade() -> None:
    """Drop the column. Every challenge then compares the graphs of the server's pipeline."""
    op.drop_column("challenges", "graph_style")
