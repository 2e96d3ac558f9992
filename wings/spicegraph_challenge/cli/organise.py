"""What organisers do."""

from __future__ import annotations

import inspect
from collections.abc import Mapping  # noqa: TC003 (read from the annotations when a command is made)
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.cli.connection import ChallengeArgument, connected
from spicegraph_challenge.model.settings import (
    SETTINGS,
    SPLIT_SETTINGS,
    SettingsError,
    expected,
    flag,
    help_text,
    read_settings,
    timestamp,
)
from spicegraph_challenge.pages.tables import user_table
from spicegraph_parser.errors import InputError, counted
from spicegraph_service.kit import (
    CallError,
    ExpiresOption,
    check_output,
    note,
    rendered,
    token_end,
    whole_path,
    write_stdout,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from google.protobuf.message import Message

ReferencesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--references", metavar="SPLIT/SET=FILE", help="COCO annotations or the like, e.g. test2014/c40=private.json."
    ),
]
ChallengesOption = Annotated[
    str,
    typer.Option(
        metavar="FILE|URL",
        help="The server's database, as given to serve --challenges.",
        envvar="SPICEGRAPH_CHALLENGES",
    ),
]
SplitOption = Annotated[str, typer.Option(metavar="NAME", help="The split; default: the first.")]
SetOption = Annotated[
    str, typer.Option("--set", metavar="NAME", help="The reference set; default: the first of the split.")
]


class MembershipChange(StrEnum):
    """What a member of a challenge may do."""

    VIEWER = "viewer"
    ORGANISER = "organiser"
    OWNER = "owner"
    NONE = "none"


_Command = TypeVar("_Command", bound="Callable[..., None]")


def _with_settings(*, new: bool) -> Callable[[_Command], _Command]:
    """Give a command an option for each setting, made from the contract; its ``settings`` are those that are given."""

    def give(command: _Command) -> _Command:
        options = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[
                    str | None, typer.Option(flag(name), metavar=expected(name), help=help_text(name))
                ],
            )
            for name, setting in {**SETTINGS, **SPLIT_SETTINGS}.items()
            if new or not setting.fixed
        ]
        signature = inspect.signature(command, eval_str=True)
        given = [parameter for name, parameter in signature.parameters.items() if name != "settings"]

        @wraps(command)
        def run(**values: Any) -> None:
            settings = {option.name: text for option in options if (text := values.pop(option.name)) is not None}
            command(**values, settings=settings)

        run.__signature__ = signature.replace(parameters=[*given, *options])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*given, *options)}
        return cast("_Command", run)

    return give


def _read(message: Message, settings: Mapping[str, str], names: Container[str]) -> None:
    """Set those settings of a message that are among the names."""
    try:
        read_settings(message, {name: text for name, text in settings.items() if name in names})
    except SettingsError as error:
        raise InputError("\n".join(f"{flag(name)}: {reason}" for name, reason in error.violations)) from error


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Your name on the server.")],
    *,
    challenges: ChallengesOption,
) -> None:
    """Make an organiser and print their token, on the server's own machine: somebody must be the first."""
    from spicegraph_challenge.model import accounts, database, schema  # noqa: PLC0415 (only here is there a database)

    try:
        with database.Database(challenges) as opened, opened.writing() as session:
            _, secret = accounts.add_user(session, name, schema.Role.ORGANISER, opened.now(session))
    except CallError as error:
        raise InputError(error.message) from error
    write_stdout(f"{secret}\n")


def migrate(
    *,
    challenges: ChallengesOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Try it out, and take everything back.")] = False,
) -> None:
    """Bring the database's schema up to date, as a server does when it starts."""
    from spicegraph_challenge.model.database import Database  # noqa: PLC0415 (as above)

    with Database(challenges, migrate=False) as database:
        steps = database.migrate(dry_run=dry_run)
    write_stdout("".join(f"{step}\n" for step in steps))
    note(f"{counted(len(steps), 'step')} {'tried and taken back' if dry_run else 'done'}")


@_with_settings(new=True)
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The challenge's name in requests and commands.")],
    *,
    references: ReferencesOption = None,
    settings: Mapping[str, str],
) -> None:
    """Create a challenge from annotation files: every --references names a split and a reference set of it."""
    files = _reference_files(references or [])
    if not files:
        raise InputError("a challenge needs references: give --references SPLIT/SET=FILE once for each set")
    sets: dict[str, list[str]] = {}
    for split, reference_set, _ in files:
        sets.setdefault(split, []).append(reference_set)
    challenge = pb.Challenge(name=name)
    _read(challenge.settings, {"metrics": str(SETTINGS["metrics"].default), **settings}, SETTINGS)
    for split, names in sets.items():
        part = challenge.settings.splits.add(name=split)
        part.reference_sets.extend(pb.ChallengeReferenceSet(name=reference_set) for reference_set in names)
        _read(part, settings, SPLIT_SETTINGS)
    with connected(context) as client:
        client.create_challenge(challenge)
        try:
            _upload(context, name, files)
        except BaseException:
            client.delete_challenge(name)  # all of it, or nothing
            raise
    note(f"created the challenge {name}")


def references(context: typer.Context, name: ChallengeArgument, *, files: ReferencesOption = None) -> None:
    """Replace references of a challenge that has no submissions yet."""
    _upload(context, name, _reference_files(files or []))


@_with_settings(new=False)
def update(
    context: typer.Context,
    name: ChallengeArgument,
    *,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Splits that --scores, --leaderboard and --phase-... are for."),
    ] = None,
    settings: Mapping[str, str],
) -> None:
    """Change what may change of a challenge; what no option names stays as it is."""
    change = pb.ChallengeSettings()
    _read(change, settings, SETTINGS)
    with connected(context) as client:
        if not SPLIT_SETTINGS.keys().isdisjoint(settings):
            for split_name in split or [part.name for part in client.get_challenge(name).challenge.settings.splits]:
                _read(change.splits.add(name=split_name), settings, SPLIT_SETTINGS)
        client.update_challenge(name, change)


def delete(context: typer.Context, name: ChallengeArgument) -> None:
    """Delete a challenge that has no submissions."""
    with connected(context) as client:
        client.delete_challenge(name)


def member(
    context: typer.Context,
    name: ChallengeArgument,
    user_name: Annotated[str, typer.Argument(metavar="USER")],
    role: Annotated[
        MembershipChange,
        typer.Argument(
            help="viewer: sees all submissions, scores and reports; organiser: changes the challenge, too; owner: says "
            "who is a member, and deletes it; none: no longer a member."
        ),
    ],
) -> None:
    """Let another user see or manage a challenge, or no longer."""
    chosen = "UNSPECIFIED" if role is MembershipChange.NONE else role.name
    with connected(context) as client:
        client.set_member(name, user_name, pb.ChallengeRole.Value(f"CHALLENGE_ROLE_{chosen}"))


def members(context: typer.Context, name: ChallengeArgument) -> None:
    """List who sees or manages a challenge, beside the server's organisers: user and role."""
    with connected(context) as client:
        listed = client.list_members(name)
    for entry in listed:
        write_stdout(f"{entry.user}\t{pb.ChallengeRole.Name(entry.role).removeprefix('CHALLENGE_ROLE_').lower()}\n")


def rescore(
    context: typer.Context,
    name: ChallengeArgument,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also score again what the current version has already scored.")
    ] = False,
) -> None:
    """Score submissions again that another version of the scorer has scored. Old scores stand until then."""
    with connected(context) as client:
        write_stdout(f"{client.rescore(name, everything=everything)}\n")


def report(
    context: typer.Context,
    submission: Annotated[str, typer.Argument(metavar="SUBMISSION")],
    *,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The page.")],
    split: SplitOption = "",
    reference_set: SetOption = "",
    images: Annotated[
        int, typer.Option(min=1, max=5000, help="Maximum number of images, spread evenly over the split.")
    ] = 500,
) -> None:
    """Write the error report of a submission. It shows references: for organisers alone."""
    check_output(output)
    with connected(context) as client, whole_path(output) as path, path.open("wb") as stream:
        stream.writelines(client.report(submission, split=split, reference_set=reference_set, image_limit=images))


user = typer.Typer(help="Add, list and remove users, and make and revoke their tokens.", no_args_is_help=True)


@user.command("add")
def add_user(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that leaderboards show.")],
    *,
    organiser: Annotated[
        bool, typer.Option("--organiser", help="The user manages all challenges and users of the server.")
    ] = False,
    host: Annotated[bool, typer.Option("--host", help="The user creates challenges, and owns those.")] = False,
    team: Annotated[
        str, typer.Option(metavar="NAME", help="Their team: members share limits and a row on leaderboards.")
    ] = "",
    expires: ExpiresOption = None,
) -> None:
    """Add a user and print their token. It is shown only once: the server keeps only its hash."""
    if organiser and host:
        raise InputError("--organiser and --host: an organiser may do all that a host may; give one of them")
    role = pb.USER_ROLE_ORGANISER if organiser else pb.USER_ROLE_HOST if host else pb.USER_ROLE_PARTICIPANT
    end = timestamp(token_end(expires))
    with connected(context) as client:
        write_stdout(f"{client.create_user(name, role, expires=end, team=team)}\n")


@user.command("team")
def put_into_team(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    team: Annotated[str, typer.Argument(metavar="[TEAM]", help="Default: none.")] = "",
) -> None:
    """Put a user into a team, whose members share limits and a row on leaderboards, or out of it."""
    with connected(context) as client:
        client.set_team(name, team)


@user.command("list")
def list_users(context: typer.Context) -> None:
    """List users and their tokens."""
    with connected(context) as client:
        write_stdout(rendered(user_table(client.list_users())))


@user.command("remove")
def remove_user(context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Remove a user's access. Their submissions stay."""
    with connected(context) as client:
        client.delete_user(name)


@user.command("token")
def make_token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PURPOSE", help="What the token is for.")],
    *,
    of: Annotated[str, typer.Option("--user", metavar="NAME", help="Whose token; default: your own.")] = "",
    expires: ExpiresOption = None,
) -> None:
    """Make another token and print it."""
    end = timestamp(token_end(expires))
    with connected(context) as client:
        write_stdout(f"{client.create_token(name, user=of, expires=end)}\n")


@user.command("revoke")
def revoke_token(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="The token's id, as list shows it.")],
) -> None:
    """Revoke a token."""
    with connected(context) as client:
        client.revoke_token(token_id)


def _reference_files(given: Sequence[str]) -> list[tuple[str, str, Path]]:
    """Return split, reference set and file of each option."""
    files = []
    for text in given:
        target, equals, path = text.partition("=")
        split, slash, reference_set = target.partition("/")
        if not (equals and slash and split and reference_set and path):
            raise InputError(f"--references: expected SPLIT/SET=FILE, got {text!a}")
        if not Path(path).is_file():
            raise InputError(f"{path}: there is no such file")
        files.append((split, reference_set, Path(path)))
    return files


def _upload(context: typer.Context, challenge: str, files: Sequence[tuple[str, str, Path]]) -> None:
    for split, reference_set, path in files:
        note(f"{path}: references {reference_set} of {split}")
        with connected(context, file=str(path)) as client:
            client.upload_references(challenge, split, reference_set, path)


# In the order of --help.
ORGANISERS_COMMANDS = (init, migrate, create, references, update, delete, member, members, rescore, report)
