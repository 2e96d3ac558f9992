"""Members of challenges, and the end and the last use of users' tokens.

Challenges that exist have no members: the server's organisers manage them. Tokens that exist never end.

Revision: 0005, after 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MOMENTS = ("expires", "used")


def upgrade() -> None:
    """Add the table and the columns."""
    op.create_table(
        "challenge_members",
        sa.Column("challenge_id", _BIG, nullable=False),
        sa.Column("user_id", _BIG, nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.ForeignKeyConstraint(
            ["challenge_id"],
            ["challenges.id"],
            name="fk_challenge_members_challenge_id_challenges",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_challenge_members_user_id_users"),
        sa.PrimaryKeyConstraint("challenge_id", "user_id", name="pk_challenge_members"),
    )
    for name in _MOMENTS:
        op.add_column("user_tokens", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Drop the table and the columns.

    Hosts, whom earlier versions do not know, are participants then; tokens with an end are deleted, since they would
    never end.
    """
    op.execute("UPDATE users SET role = 'participant' WHERE role = 'host'")
    op.execute("DELETE FROM user_tokens WHERE expires IS NOT NULL")
    for name in _MOMENTS:
        op.drop_column("user_tokens", name)
    op.drop_table("challenge_members")
