"""What organisers do."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_challenge.cli.connection import connected
from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer.core.tokens import SpiceText
from spicegraph_scorer.readers.checks import Empty
from spicegraph_service.cli.options import GraphStyle, GraphStyleOption, MetricOptions, MetricsOption
from spicegraph_service.cli.stores import ExpiresOption, server_extra, token_end
from spicegraph_service.output.terminal import check_output, note, whole_path, write_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.timestamp_pb2 import Timestamp

    from spicegraph_api.v1 import challenge_pb2 as pb

ReferencesOption = Annotated[
    list[str] | None,
    typer.Option("--references", metavar="SPLIT/SET=FILE", help="COCO annotations, e.g. test2014/c40=private.json."),
]
ChallengesOption = Annotated[
    str,
    typer.Option(
        metavar="FILE|URL",
        help="The server's database, as given to serve --challenges.",
        envvar="SPICEGRAPH_CHALLENGES",
    ),
]
OpensOption = Annotated[str | None, typer.Option(metavar="TIME", help="ISO 8601; without a zone, UTC. never: at once.")]
ClosesOption = Annotated[str | None, typer.Option(metavar="TIME", help="ISO 8601; without a zone, UTC; or never.")]
DigitsOption = Annotated[
    str | None,
    typer.Option(
        metavar="1-9|auto|all",
        help="Decimal places of the scores that participants see. Default: auto, so many that no score shows what a "
        "single image adds to it.",
    ),
]
CategoryImagesOption = Annotated[
    int | None,
    typer.Option(
        "--category-images",
        min=1,
        help="Participants see a category where at least this number of images have it in their references. "
        "Default: 50.",
    ),
]
EqualOption = Annotated[
    int | None,
    typer.Option(
        "--equal", metavar="PERCENT", min=1, max=100, help="How many captions of a file may be equal. Default: 50."
    ),
]
ErrorImagesOption = Annotated[
    str | None,
    typer.Option(
        "--error-images",
        metavar="NUMBER|never",
        help="Participants see the kinds of errors that at least this number of images have. Default: 10.",
    ),
]
SplitOption = Annotated[str, typer.Option(help="The split; default: the first.")]
SetOption = Annotated[str, typer.Option("--set", help="The reference set; default: the first of the split.")]


class MemberRole(StrEnum):
    """What a member of a challenge may do."""

    VIEWER = "viewer"
    ORGANISER = "organiser"
    OWNER = "owner"
    NONE = "none"


class Shown(StrEnum):
    """When participants see something."""

    ALWAYS = "always"
    AFTER_CLOSE = "after-close"
    ORGANISERS = "organisers"


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Your name on the server.")],
    *,
    challenges: ChallengesOption,
) -> None:
    """Make an organiser and print their token, on the server's own machine: somebody must be the first."""
    with server_extra():
        from spicegraph_challenge.model.accounts import add_user  # noqa: PLC0415
        from spicegraph_challenge.model.database import Database  # noqa: PLC0415
        from spicegraph_challenge.model.schema import Role  # noqa: PLC0415
        from spicegraph_service.rpc.status import CallError  # noqa: PLC0415
    try:
        with Database(challenges) as database, database.writing() as session:
            _, secret = add_user(session, name, Role.ORGANISER, database.now(session))
    except CallError as error:
        raise InputError(error.message) from error
    write_stdout(f"{secret}\n")


def migrate(
    *,
    challenges: ChallengesOption,
    to: Annotated[str, typer.Option(metavar="SCHEMA", help="The schema, e.g. 0001. Default: the newest.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Try it out, and take everything back.")] = False,
) -> None:
    """Bring the database's schema up to date, as a server does when it starts, or back for an earlier version."""
    with server_extra():
        from spicegraph_challenge.model.database import Database  # noqa: PLC0415
    with Database(challenges, migrate=False) as database:
        steps = database.migrate(to, dry_run=dry_run)
    write_stdout("".join(f"{step}\n" for step in steps))
    note(f"{counted(len(steps), 'step')} {'tried and taken back' if dry_run else 'done'}")


def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The challenge's name in requests and commands.")],
    *,
    references: ReferencesOption = None,
    metrics: MetricsOption = "coco",
    spice_text: Annotated[
        SpiceText | None,
        typer.Option(
            help="What SPICE parses: captions as written, or the tokens that the COCO toolkit gives it. Default: coco "
            "with --metrics coco, else written."
        ),
    ] = None,
    graph_style: GraphStyleOption = GraphStyle.SPICE,
    empty: Annotated[
        Empty,
        typer.Option(
            help="What to do with an empty caption: refuse the file, or score it as the original programs do: zero."
        ),
    ] = "refuse",
    title: Annotated[str, typer.Option(help="Its title on pages and in tables.")] = "",
    description: Annotated[str, typer.Option(help="What it is about, in plain text.")] = "",
    rank_by: Annotated[
        str, typer.Option(metavar="SCORE", help="The score that determines the ranking, e.g. CIDEr or SPICE.")
    ] = "",
    opens: OpensOption = None,
    closes: ClosesOption = None,
    daily: Annotated[
        int | None, typer.Option(min=0, help="Submissions per user and day (UTC); 0: any number. Default: 5.")
    ] = None,
    total: Annotated[
        int | None, typer.Option(min=0, help="Submissions per user in total; 0: any number. Default: 20.")
    ] = None,
    digits: DigitsOption = None,
    category_images: CategoryImagesOption = None,
    equal: EqualOption = None,
    error_images: ErrorImagesOption = None,
    scores: Annotated[Shown, typer.Option(help="When participants see their scores.")] = Shown.ALWAYS,
    leaderboard: Annotated[Shown, typer.Option(help="When participants see the leaderboard.")] = Shown.ALWAYS,
) -> None:
    """Create a challenge from annotation files: every --references names a split and a reference set of it."""
    from spicegraph_api.v1 import challenge_pb2 as pb  # noqa: PLC0415
    from spicegraph_api.v1 import scene_graph_pb2, scores_pb2  # noqa: PLC0415

    scoring = MetricOptions(metrics=metrics, spice_text=spice_text)
    text = scoring.data().spice_text
    places = _places(references or [])
    if not places:
        raise InputError("a challenge needs references: give --references SPLIT/SET=FILE once for each set")
    splits: dict[str, list[str]] = {}
    for split, reference_set, _ in places:
        splits.setdefault(split, []).append(reference_set)
    challenge = pb.Challenge(
        name=name,
        title=title,
        description=description,
        metrics=scoring.names,
        graph_style=scene_graph_pb2.GRAPH_STYLE_SCENE
        if graph_style is GraphStyle.SCENE
        else scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED,
        spice_text=scores_pb2.SPICE_TEXT_COCO if text == "coco" else scores_pb2.SPICE_TEXT_WRITTEN,
        empty=scores_pb2.EMPTY_CANDIDATES_ZERO if empty == "zero" else scores_pb2.EMPTY_CANDIDATES_REFUSE,
        primary_score=rank_by,
        splits=[
            pb.ChallengeSplit(
                name=split,
                reference_sets=[pb.ChallengeReferenceSet(name=reference_set) for reference_set in sets],
                score_visibility=_visibility(scores),
                leaderboard_visibility=_visibility(leaderboard),
            )
            for split, sets in splits.items()
        ],
        open_time=_moment("--opens", opens),
        close_time=_moment("--closes", closes),
        daily_limit=daily,
        total_limit=total,
        disclosure=_disclosure(pb.Disclosure(), digits, category_images, equal, error_images),
    )
    with connected(context) as client:
        client.create_challenge(challenge)
        try:
            _upload(context, name, places)
        except BaseException:
            client.delete_challenge(name)  # all of it, or nothing
            raise
    note(f"created the challenge {name}")


def references(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHALLENGE")],
    *,
    files: ReferencesOption = None,
) -> None:
    """Replace references of a challenge that has no submissions yet."""
    _upload(context, name, _places(files or []))


def update(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHALLENGE")],
    *,
    title: Annotated[str | None, typer.Option(help="New title.")] = None,
    description: Annotated[str | None, typer.Option(help="New description.")] = None,
    rank_by: Annotated[str | None, typer.Option(metavar="SCORE", help="New score that determines the ranking.")] = None,
    opens: OpensOption = None,
    closes: ClosesOption = None,
    daily: Annotated[int | None, typer.Option(min=0, help="New daily limit; 0: none.")] = None,
    total: Annotated[int | None, typer.Option(min=0, help="New total limit; 0: none.")] = None,
    digits: DigitsOption = None,
    category_images: CategoryImagesOption = None,
    equal: EqualOption = None,
    error_images: ErrorImagesOption = None,
    split: Annotated[list[str] | None, typer.Option(help="Splits that --scores and --leaderboard are for.")] = None,
    scores: Annotated[Shown | None, typer.Option(help="When participants see their scores.")] = None,
    leaderboard: Annotated[Shown | None, typer.Option(help="When participants see the leaderboard.")] = None,
) -> None:
    """Change what may change of a challenge; what no option names stays as it is."""
    from spicegraph_api.v1 import challenge_pb2 as pb  # noqa: PLC0415

    request = pb.UpdateChallengeRequest(
        name=name,
        title=title,
        description=description,
        primary_score=rank_by,
        open_time=_moment("--opens", opens),
        close_time=_moment("--closes", closes),
        daily_limit=daily,
        total_limit=total,
    )
    with connected(context) as client:
        if scores is not None or leaderboard is not None:
            names = split or [found.name for found in client.get_challenge(name).challenge.splits]
            request.visibilities.extend(
                pb.SplitVisibility(
                    split=found, score_visibility=_visibility(scores), leaderboard_visibility=_visibility(leaderboard)
                )
                for found in names
            )
        if any(option is not None for option in (digits, category_images, equal, error_images)):
            now = client.get_challenge(name).challenge.disclosure
            request.disclosure.CopyFrom(_disclosure(now, digits, category_images, equal, error_images))
        client.update_challenge(request)


def delete(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHALLENGE")],
) -> None:
    """Delete a challenge that has no submissions."""
    with connected(context) as client:
        client.delete_challenge(name)


def member(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHALLENGE")],
    user_name: Annotated[str, typer.Argument(metavar="USER")],
    role: Annotated[
        MemberRole,
        typer.Argument(
            help="viewer: sees all submissions, scores and reports; organiser: changes the challenge, too; owner: says "
            "who is a member, and deletes it; none: no longer a member."
        ),
    ],
) -> None:
    """Let another user see or manage a challenge, or no longer."""
    from spicegraph_api.v1 import challenge_pb2 as pb  # noqa: PLC0415

    chosen = "UNSPECIFIED" if role is MemberRole.NONE else role.name
    with connected(context) as client:
        client.set_member(name, user_name, pb.ChallengeRole.Value(f"CHALLENGE_ROLE_{chosen}"))


def members(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHALLENGE")],
) -> None:
    """List who sees or manages a challenge, beside the server's organisers: user and role."""
    from spicegraph_api.v1 import challenge_pb2 as pb  # noqa: PLC0415

    with connected(context) as client:
        found = client.list_members(name)
    for one in found:
        write_stdout(f"{one.user}\t{pb.ChallengeRole.Name(one.role).removeprefix('CHALLENGE_ROLE_').lower()}\n")


def rescore(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHALLENGE")],
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
    with (
        connected(context) as client,
        whole_path(output) as path,
        path.open("wb") as stream,
    ):
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
    expires: ExpiresOption = None,
) -> None:
    """Add a user and print their token. It is shown only once: the server keeps only its hash."""
    from spicegraph_api.v1 import challenge_pb2 as pb  # noqa: PLC0415

    if organiser and host:
        raise InputError("--organiser and --host: an organiser may do all that a host may; give one of them")
    role = pb.USER_ROLE_ORGANISER if organiser else pb.USER_ROLE_HOST if host else pb.USER_ROLE_PARTICIPANT
    end = _end(expires)
    with connected(context) as client:
        write_stdout(f"{client.create_user(name, role, expires=end)}\n")


@user.command("list")
def list_users(
    context: typer.Context,
) -> None:
    """List users and their tokens."""
    from spicegraph_challenge.pages.tables import user_table  # noqa: PLC0415
    from spicegraph_service.output.tables import rendered  # noqa: PLC0415

    with connected(context) as client:
        write_stdout(rendered([user_table(client.list_users())]))


@user.command("remove")
def remove_user(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
) -> None:
    """Remove a user's access. Their submissions stay."""
    with connected(context) as client:
        client.delete_user(name)


@user.command("token")
def make_token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PURPOSE", help="What the token is for.")],
    *,
    of: Annotated[str, typer.Option("--user", help="Whose token; default: your own.")] = "",
    expires: ExpiresOption = None,
) -> None:
    """Make another token and print it."""
    end = _end(expires)
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


def _end(text: str | None) -> Timestamp | None:
    """Return when a token ends; ``None``: never."""
    end = token_end(text)
    return _moment("--expires", end.isoformat()) if end is not None else None


def _places(given: Sequence[str]) -> list[tuple[str, str, Path]]:
    """Return split, reference set and file of each option."""
    found = []
    for text in given:
        place, equals, path = text.partition("=")
        split, slash, reference_set = place.partition("/")
        if not (equals and slash and split and reference_set and path):
            raise InputError(f"--references: expected SPLIT/SET=FILE, got {text!a}")
        if not Path(path).is_file():
            raise InputError(f"{path}: there is no such file")
        found.append((split, reference_set, Path(path)))
    return found


def _upload(context: typer.Context, challenge: str, places: Sequence[tuple[str, str, Path]]) -> None:
    for split, reference_set, path in places:
        note(f"{path}: references {reference_set} of {split}")
        with connected(context, file=str(path)) as client:
            client.upload_references(challenge, split, reference_set, path)


def _visibility(shown: Shown | None) -> pb.Visibility.ValueType:
    from spicegraph_api.v1 import challenge_pb2 as pb  # noqa: PLC0415

    table = {
        None: pb.VISIBILITY_UNSPECIFIED,
        Shown.ALWAYS: pb.VISIBILITY_ALWAYS,
        Shown.AFTER_CLOSE: pb.VISIBILITY_AFTER_CLOSE,
        Shown.ORGANISERS: pb.VISIBILITY_ORGANISERS,
    }
    return table[shown]


def _disclosure(
    disclosure: pb.Disclosure,
    digits: str | None,
    category_images: int | None,
    equal: int | None,
    error_images: str | None,
) -> pb.Disclosure:
    """Return what scores may tell participants, changed by what the options name."""
    if digits is not None:
        named = {"auto": 0, "all": -1}
        if digits not in named and not (digits.isascii() and digits.isdigit() and 1 <= int(digits) <= 9):
            raise InputError(f"--digits: expected 1 to 9, auto or all, got {digits!a}")
        disclosure.digits = named[digits] if digits in named else int(digits)
    if category_images is not None:
        disclosure.category_images = category_images
    if equal is not None:
        disclosure.equal_percent = equal
    if error_images is not None:
        if error_images != "never" and not (error_images.isascii() and error_images.isdigit()):
            raise InputError(f"--error-images: expected a number or never, got {error_images!a}")
        disclosure.error_images = -1 if error_images == "never" else int(error_images)
    return disclosure


def _moment(option: str, text: str | None) -> Timestamp | None:
    """Return a moment; ``never`` is 1970, as the contract has it."""
    from google.protobuf.timestamp_pb2 import Timestamp  # noqa: PLC0415

    if text is None:
        return None
    made = Timestamp()
    if text == "never":
        return made
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{option}: expected a time such as 2030-06-01T12:00, got {text!a}") from error
    made.FromDatetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return made


ORGANISERS_COMMANDS: tuple[Callable[..., None], ...] = (
    init,
    migrate,
    create,
    references,
    update,
    delete,
    member,
    members,
    rescore,
    report,
)
"""In the order of ``--help``."""
