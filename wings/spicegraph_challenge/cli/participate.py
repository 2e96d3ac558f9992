"""What participants do, and organisers too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, cast

import grpc
import msgspec
import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from spicegraph_challenge.cli.connection import ChallengeArgument, connected
from spicegraph_challenge.pages import tables
from spicegraph_challenge.pages.tables import BOARD_FORMATS, board_tables, state_name
from spicegraph_service.kit import (
    check_output,
    format_by_ending,
    note,
    progress_bar,
    rendered,
    write_stdout,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_api.challenge.v1 import challenge_pb2 as pb
    from spicegraph_challenge.client import ChallengeClient

FAILED = 1  # exit code of a command that waited for a submission which did not succeed
SubmissionArgument = Annotated[str, typer.Argument(metavar="SUBMISSION", help="Its id.")]


class ShownAs(StrEnum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"


class BoardShownAs(StrEnum):
    """Output formats of a leaderboard."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    HTML = "html"


FormatOption = Annotated[ShownAs, typer.Option("--format", help="The output format.")]
_BY_ENDING = {
    ".json": BoardShownAs.JSON,
    ".csv": BoardShownAs.CSV,
    ".html": BoardShownAs.HTML,
    ".htm": BoardShownAs.HTML,
    ".txt": BoardShownAs.TABLE,
}


def show(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[CHALLENGE]", help="Default: all.")] = None,
    *,
    form: FormatOption = ShownAs.TABLE,
) -> None:
    """Show the challenges, or one with what you may still submit."""
    with connected(context) as client:
        if name is None:
            _write(list(client.list_challenges()), form, "challenge_table")
        else:
            _write(client.get_challenge(name), form, "challenge_view")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodOptions:
    """Options: what is told of a method with its results.

    Options:
        method: The method's name on the leaderboard; default: taken from the file's name.
        description: A note that is stored with the submission.
        split: The split of a JSON file whose name does not contain it.
        key: A key that makes retries safe: the same key means the same submission.
        team: Who made the method, for the leaderboard.
        paper: Where its paper is; the leaderboard links to it.
        code: Where its code is.
    """

    method: Annotated[str, typer.Option(metavar="NAME")] = ""
    description: Annotated[str, typer.Option()] = ""
    split: Annotated[str, typer.Option(metavar="NAME")] = ""
    key: Annotated[str, typer.Option(metavar="KEY")] = ""
    team: Annotated[str, typer.Option(metavar="NAME")] = ""
    paper: Annotated[str, typer.Option(metavar="URL")] = ""
    code: Annotated[str, typer.Option(metavar="URL")] = ""


def submit(
    context: typer.Context,
    challenge: ChallengeArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="captions_SPLIT_METHOD_results.json, or a zip of such files.")
    ],
    *,
    told: MethodOptions,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the scores.")] = True,
    form: FormatOption = ShownAs.TABLE,
) -> None:
    """Submit results and wait for their scores. The exit code is 1 where the submission fails."""
    with connected(context, file=file) as client:
        submission, existed = client.submit(
            challenge,
            file,
            method=told.method,
            description=told.description,
            split=told.split,
            key=told.key,
            team=told.team,
            paper_url=told.paper,
            code_url=told.code,
        )
        note(f"{submission.id}: {'was submitted before' if existed else 'is stored'}")
        _show(_watched(client, submission.id) if wait else submission, form, wait=wait)


def status(
    context: typer.Context,
    submission: SubmissionArgument,
    *,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is finished.")] = False,
    form: FormatOption = ShownAs.TABLE,
) -> None:
    """Show a submission: its state, its faults or its scores."""
    with connected(context) as client:
        _show(_watched(client, submission) if wait else client.get_submission(submission), form, wait=wait)


def submissions(
    context: typer.Context,
    challenge: ChallengeArgument,
    *,
    of: Annotated[
        str, typer.Option("--user", metavar="NAME", help="For organisers: only the submissions of this user.")
    ] = "",
    form: FormatOption = ShownAs.TABLE,
) -> None:
    """List your submissions, the newest first; organisers see all."""
    with connected(context) as client:
        _write(list(client.list_submissions(challenge, user=of)), form, "submission_table")


def faults(context: typer.Context, submission: SubmissionArgument) -> None:
    """List all faults of a refused file, as JSON."""
    with connected(context) as client:
        _write(list(client.faults(submission)), ShownAs.JSON)


def images(
    context: typer.Context,
    challenge: ChallengeArgument,
    *,
    split: Annotated[str, typer.Option(metavar="NAME", help="The split; default: the first.")] = "",
) -> None:
    """Write the images that results must describe, as COCO's image info file (JSON)."""
    with connected(context) as client:
        write_stdout(b"".join(client.image_info(challenge, split=split)).decode() + "\n")


def cancel(context: typer.Context, submission: SubmissionArgument) -> None:
    """Cancel a submission that has not ended. It does not count."""
    with connected(context) as client:
        client.cancel(submission)


def choose(
    context: typer.Context,
    challenge: ChallengeArgument,
    submission: Annotated[str | None, typer.Argument(metavar="[SUBMISSION]", help="Default: none.")] = None,
) -> None:
    """Choose which of your submissions is on the leaderboard; by default, the latest with results for a split."""
    with connected(context) as client:
        client.choose(challenge, submission)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardOptions:
    """Options: which leaderboards are shown.

    Options:
        split: Splits; default: all.
        reference_set: The reference set; default: all of the split.
        domain: The domain; default: all images, and each domain.
        by: The score that determines the ranking, e.g. SPICE_Color.
    """

    split: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    reference_set: Annotated[str, typer.Option("--set", metavar="NAME")] = ""
    domain: Annotated[str, typer.Option(metavar="NAME")] = ""
    by: Annotated[str, typer.Option(metavar="SCORE")] = ""

    def boards(self, client: ChallengeClient, challenge: str) -> Iterator[pb.GetLeaderboardResponse]:
        """Yield them; of splits that were not asked for, one may be hidden, but not all."""
        hidden: grpc.RpcError | None = None
        seen = 0
        for split, reference_set, domain in self._wanted(client.get_challenge(challenge).challenge):
            try:
                board = client.leaderboard(
                    challenge, split=split, reference_set=reference_set, score=self.by, domain=domain
                )
            except grpc.RpcError as error:
                call = cast("grpc.Call", error)  # what gRPC raises is both
                if self.split or call.code() is not grpc.StatusCode.PERMISSION_DENIED:
                    raise
                note(call.details() or "")
                hidden = hidden or error
            else:
                seen += 1
                yield board
        if hidden is not None and not seen:
            raise hidden

    def _wanted(self, challenge: pb.Challenge) -> Iterator[tuple[str, str, str]]:
        """Yield the splits of a challenge that are wanted with their reference sets and the domains of these."""
        for split in challenge.settings.splits:
            for reference_set in split.reference_sets if not self.split or split.name in self.split else ():
                if self.reference_set in {"", reference_set.name}:
                    for domain in [self.domain] if self.domain else ["", *reference_set.domains]:
                        yield split.name, reference_set.name, domain


def leaderboard(
    context: typer.Context,
    challenge: ChallengeArgument,
    *,
    wanted: BoardOptions,
    form: Annotated[
        BoardShownAs | None,
        typer.Option("--format", help="The format; default: the one of -o's file ending, else a table."),
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")] = None,
) -> None:
    """Show the leaderboards of a challenge: a table, JSON, CSV, or a self-contained HTML page."""
    if output is not None:
        check_output(output)
    chosen = form or format_by_ending(output, _BY_ENDING, BoardShownAs.TABLE)
    with connected(context) as client:
        boards = list(wanted.boards(client, challenge))
    text = rendered(board_tables(boards)) if chosen is BoardShownAs.TABLE else BOARD_FORMATS[chosen.value](boards)
    write_text(text, output)


def _watched(client: ChallengeClient, submission_id: str) -> pb.Submission:
    """Return a submission that has ended; on a terminal, show how it gets there."""
    submission = client.get_submission(submission_id)
    with progress_bar() as progress:
        for submission in client.watch(submission_id):
            if progress is not None:
                position = f" (number {submission.queue_position})" if submission.HasField("queue_position") else ""
                progress(f"{state_name(submission)}{position}", round(100 * submission.progress), 100)
    return submission


def _show(submission: pb.Submission, form: ShownAs, *, wait: bool) -> None:
    """Write a submission; leave with an error where it was waited for and has no scores."""
    _write(submission, form, "submission_view")
    if wait and state_name(submission) != "SUCCEEDED":
        raise typer.Exit(FAILED)


def _write(messages: Message | Sequence[Message], form: ShownAs, view: str = "") -> None:
    """Write messages as JSON with the contract's field names, or as a view of ``pages.tables`` shows them."""
    if form is ShownAs.TABLE:
        write_stdout(rendered(getattr(tables, view)(messages)))
        return
    plain = partial(MessageToDict, preserving_proto_field_name=True)
    value = plain(messages) if isinstance(messages, Message) else [plain(message) for message in messages]
    write_stdout(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


# In the order of --help.
PARTICIPANTS_COMMANDS = (show, submit, status, submissions, faults, images, cancel, choose, leaderboard)
