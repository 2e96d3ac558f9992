"""What scores may tell participants: decimal places, categories of few images, equal captions.

Challenges that exist go on as they were: every score in full, every category, any captions.

Revision: 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_AS_BEFORE = {"score_digits": "-1", "category_images": "1", "equal_percent": "100"}
_OF_SCORES = ("images", "places")


def upgrade() -> None:
    """Add the columns."""
    for name, value in _AS_BEFORE.items():
        op.add_column("challenges", sa.Column(name, sa.Integer(), nullable=False, server_default=value))
    for name in _OF_SCORES:
        op.add_column("run_scores", sa.Column(name, sa.Integer(), nullable=True))


def downgrade() -> None:
    """Drop the columns. Every score is then shown in full."""
    for name in _OF_SCORES:
        op.drop_column("run_scores", name)
    for name in _AS_BEFORE:
        op.drop_column("challenges", name)
