"""What the evaluation server adds to the program: its command, its service, and their options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from spicegraph_service.kit import Command, ServiceEntry, StatePart

COMMANDS: Final = (
    Command(
        "challenge",
        "spicegraph_challenge.cli:challenge",
        "Take part in a challenge with private references, or run one.",
        "Server",
    ),
)


@dataclass(frozen=True, slots=True)
class ChallengeOptions:
    """Options of ``spicegraph serve``.

    Challenges:
        challenges: Also run as an evaluation server with this database: an SQLite file, or postgresql://USER@HOST/NAME,
            which several servers may share.
        challenge_files: Folder for the files of challenges; servers that share the database share this folder too.
            Default: next to the SQLite file.
        challenge_lease: Seconds after which another server takes over the work of a server that has died.
        https_proxy: A proxy that ends TLS stands before the pages of challenges: cookies and pages are for HTTPS alone.
        max_submission: Maximum size of a submitted file, in MiB.
    """

    challenges: Annotated[str | None, typer.Option(metavar="FILE|URL")] = None
    challenge_files: Annotated[Path | None, typer.Option(metavar="FOLDER")] = None
    challenge_lease: Annotated[float, typer.Option(metavar="SECONDS", min=1)] = 30.0
    https_proxy: Annotated[bool, typer.Option("--https-proxy")] = False
    max_submission: Annotated[int, typer.Option(metavar="MIB", min=1, max=1024)] = 64


@dataclass(frozen=True, slots=True)
class ChallengeFolder:
    """Options of ``spicegraph backup`` and ``restore``.

    Options:
        challenges: As given to serve --challenges; none: there are none.
        challenge_files: As given to serve --challenge-files. Default: beside the database.
    """

    challenges: Annotated[str, typer.Option(metavar="PLACE", envvar="SPICEGRAPH_CHALLENGES")] = "none"
    challenge_files: Annotated[Path | None, typer.Option(metavar="FOLDER", envvar="SPICEGRAPH_CHALLENGE_FILES")] = None

    def part(self) -> StatePart:
        """Return the database and its files; not of a database server, which has a tool of its own."""
        from spicegraph_service.kit import file_of  # noqa: PLC0415 (only this needs it)

        database = file_of("--challenges", self.challenges, by="pg_dump")
        beside = Path(f"{database}.files") if database is not None else None
        return StatePart(
            "challenges.db", database, self.challenge_files or beside, "spicegraph_challenge.service:files_of"
        )


# Without challenges the server does not load SQLAlchemy and Alembic, which take as long as all the rest of it.
SERVICE: Final = ServiceEntry(
    "spicegraph_challenge.service:open_service", ChallengeOptions, ChallengeFolder, needs="challenges"
)
