"""What participants may see of their errors, and the errors of a run.

Challenges that exist show none: their organisers have not agreed. Runs that exist have none until they are made again.

Revision: 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("challenges", sa.Column("error_images", sa.Integer(), nullable=False, server_default="-1"))
    op.add_column("runs", sa.Column("errors", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("runs", "errors")
    op.drop_column("challenges", "error_images")
