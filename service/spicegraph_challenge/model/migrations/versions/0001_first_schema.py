"""The first schema.

Revision: 0001, after none.
"""

from __future__ import annotations

from alembic import op

from spicegraph_challenge.model.schema import Base

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    # As long as this is the only schema, it is what the tables say; a test holds them to it. The second one, after a
    # release, writes this one out.
    Base.metadata.create_all(op.get_bind())
