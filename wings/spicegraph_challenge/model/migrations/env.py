"""Runs migrations on the connection that the server gives, inside of its transaction."""

from __future__ import annotations

from alembic import context

from spicegraph_challenge.model.schema import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    transactional_ddl=True,  # SQLite's is, whatever its driver used to do: half a migration never stays
    on_version_apply=context.config.attributes["applied"],
)
context.run_migrations()
