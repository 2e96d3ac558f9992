"""Between the messages of the contract and the tables: uploads are received and checked, replies are made."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.protobuf.timestamp_pb2 import Timestamp

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.model import catalogue
from spicegraph_challenge.model.leaderboard import scores_of, shown_domains, shown_scores, visible
from spicegraph_challenge.model.schema import MemberRole, State
from spicegraph_challenge.model.settings import NO_ERRORS
from spicegraph_challenge.queue.submissions import queue_position
from spicegraph_challenge.sandbox.validation import method_of
from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.data import MetricData, with_spice_text
from spicegraph_scorer.metrics import METRICS, lower_is_better, metric_names
from spicegraph_service.kit import Violation, graph_style, invalid, patiently, wrong

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

    from google.protobuf.descriptor import EnumDescriptor
    from sqlalchemy.orm import Session

    from spicegraph_challenge.model import schema
    from spicegraph_challenge.model.accounts import Account
    from spicegraph_challenge.model.database import Transactions
    from spicegraph_challenge.model.leaderboard import BoardRow, ScorerVersion, ShownScore, Standing
    from spicegraph_challenge.sandbox.files import FaultRow, Incoming
    from spicegraph_service.kit import WorkerInfo

_LONGEST_FILE_NAME = 255
_LONGEST_METHOD = 100
_LONGEST_KEY = 100
_LONGEST_TEAM = 200
_LONGEST_URL = 300
_URL = re.compile(r"https?://[!#-&(-.0-;=?A-\[\]-~]+(/[!#-&(-;=?-\[\]-~]*)?")  # printable ASCII but " ' < > and \
_LONGEST_DESCRIPTION = 2_000
_KEY = re.compile(r"[!-~]*")


async def first(requests: AsyncIterator[Any], expected: str) -> tuple[Any, AsyncIterator[Any]]:
    """Return the payload of an upload's first message, and the messages that follow."""
    rest = patiently(requests)
    message = await anext(rest, None)
    if message is None or message.WhichOneof("payload") != expected:
        raise wrong("payload", f"the first message holds {expected}")
    return getattr(message, expected), rest


async def receive(
    requests: AsyncIterator[Any], incoming: Incoming, transactions: Transactions, *, most_bytes: int
) -> str:
    """Write the chunks of an upload to a file; return its key. Nothing beyond the limit is read."""
    async for message in requests:
        if message.WhichOneof("payload") != "chunk":
            raise wrong("payload", "messages after the first hold chunks")
        chunk: bytes = message.chunk
        if incoming.size + len(chunk) > most_bytes:
            reason = f"the file is larger than {most_bytes:,} bytes"
            raise invalid([Violation("chunk", reason)], reason="FILE_TOO_LARGE")
        await transactions.thread(lambda data=chunk: incoming.write(data))  # type: ignore[misc]
    if not incoming.size:
        raise wrong("chunk", "the file is empty")
    return await transactions.thread(incoming.finish)


def check_settings(settings: pb.SubmissionSettings) -> None:
    """Check the settings of a submission."""
    violations = [
        *_text("settings.file_name", settings.file_name, _LONGEST_FILE_NAME, needed=True),
        *_text("settings.method", settings.method, _LONGEST_METHOD),
        *_text("settings.team", settings.team, _LONGEST_TEAM),
    ]
    violations += [
        Violation(
            f"settings.{field}", f"expected an address such as https://example.org, {_LONGEST_URL} characters at most"
        )
        for field in ("paper_url", "code_url")
        if (url := getattr(settings, field)) and (len(url) > _LONGEST_URL or not _URL.fullmatch(url))
    ]
    if PurePath(settings.file_name.replace("\\", "/")).name != settings.file_name:
        violations.append(Violation("settings.file_name", "is a path, expected a name"))
    if len(settings.description) > _LONGEST_DESCRIPTION or "\0" in settings.description:
        violations.append(Violation("settings.description", f"at most {_LONGEST_DESCRIPTION:,} characters, and no NUL"))
    if len(settings.idempotency_key) > _LONGEST_KEY or not _KEY.fullmatch(settings.idempotency_key):
        violations.append(
            Violation("settings.idempotency_key", f"at most {_LONGEST_KEY} characters, all printable ASCII")
        )
    if violations:
        raise invalid(violations)


def _text(field: str, value: str, longest: int, *, needed: bool = False) -> Iterator[Violation]:
    if len(value) > longest or not value.isprintable() or (needed and not value.strip()):
        yield Violation(field, f"{'1' if needed else '0'} to {longest} printable characters")


def method_name(settings: pb.SubmissionSettings, splits: Iterable[str]) -> str:
    """Return the method's name: the given one, or what the file's name says."""
    if settings.method.strip():
        return settings.method.strip()
    named = method_of(settings.file_name, splits)
    return named[1] if named is not None else PurePath(settings.file_name).stem[:_LONGEST_METHOD]


def check_target(session: Session, target: pb.ReferencesTarget, account: Account) -> None:
    """Check that the reference set of an upload exists, and that the caller may upload it."""
    challenge = catalogue.find_challenge(session, target.challenge)
    account.check_may(MemberRole.ORGANISER, challenge)
    for field in ("split", "reference_set"):
        if not getattr(target, field):
            raise wrong(f"target.{field}", "is empty")
    catalogue.find_reference_set(catalogue.find_split(challenge, target.split), target.reference_set)


def split_names(session: Session, settings: pb.SubmissionSettings) -> list[str]:
    """Return the names of the splits of a submission's challenge."""
    challenge = catalogue.find_challenge(session, settings.challenge)
    names = [split.name for split in challenge.splits]
    if settings.split and settings.split not in names:
        raise wrong("settings.split", f"is not a split of this challenge; there are {', '.join(names)}")
    return names


SHOWN_FAULTS = 50
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)

Word = TypeVar("Word", bound=StrEnum)


def word_of(field: str, kind: EnumDescriptor, value: int, words: type[Word]) -> Word | None:
    """Return the word for an enum's value; ``None``: the unspecified one."""
    if value not in kind.values_by_number:
        raise wrong(field, f"{value} is not one of its values")
    return next((word for word in words if value_of(kind, word) == value), None)


def value_of(kind: EnumDescriptor, word: StrEnum | None) -> int:
    """Return an enum's value for a word; the unspecified one for ``None``.

    Example:
        >>> from spicegraph_challenge.model.schema import Role
        >>> value_of(pb.UserRole.DESCRIPTOR, Role.HOST)
        3
    """
    unspecified: str = kind.values_by_number[0].name
    if word is None:
        return 0
    number: int = kind.values_by_name[unspecified.removesuffix("UNSPECIFIED") + word.name].number
    return number


def moment_of(field: str, value: Timestamp) -> datetime | None:
    """Return a moment; 1970 stands for none."""
    if not value.seconds and not value.nanos:
        return None
    try:
        moment = value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise wrong(field, "is not a point in time") from error
    if not datetime(1970, 1, 1, tzinfo=UTC) <= moment <= _LATEST:
        raise wrong(field, "is before 1970 or after 9999")
    return moment


def timestamp(moment: datetime | None) -> Timestamp | None:
    """Return a moment as a message."""
    if moment is None:
        return None
    message = Timestamp()
    message.FromDatetime(moment)
    return message


def new_settings(message: pb.ChallengeSettings, info: WorkerInfo) -> pb.ChallengeSettings:
    """Return the settings that a request describes, with groups of metrics spelled out; ``info``: what workers do."""
    settings = pb.ChallengeSettings()
    settings.CopyFrom(message)
    try:
        settings.metrics[:] = metric_names(message.metrics)
    except InputError as error:
        raise wrong("challenge.settings.metrics", str(error)) from error
    graph_style(message.graph_style, info, field="challenge.settings.graph_style")
    settings.empty = settings.empty or scores_pb2.EMPTY_CANDIDATES_REFUSE
    if not settings.spice_text:
        toolkit = with_spice_text(message.metrics, MetricData()).spice_text == "coco"
        settings.spice_text = scores_pb2.SPICE_TEXT_COCO if toolkit else scores_pb2.SPICE_TEXT_WRITTEN
    elif not any("spice_text" in METRICS[name].kind.needs.data for name in settings.metrics):
        raise wrong("challenge.settings.spice_text", "none of the chosen metrics uses it")
    return settings


def challenge_message(challenge: schema.Challenge) -> pb.Challenge:
    """Return a challenge."""
    message = pb.Challenge(
        name=challenge.name,
        settings=challenge.settings,
        create_time=timestamp(challenge.created),
        ready=challenge.ready,
    )
    for split, stored in zip(message.settings.splits, challenge.splits, strict=True):
        for reference_set, row in zip(split.reference_sets, stored.reference_sets, strict=True):
            reference_set.image_count, reference_set.caption_count = row.image_count, row.caption_count
            reference_set.domains[:] = row.domains
    return message


def user_message(user: schema.User) -> pb.User:
    """Return a user with their tokens' names."""
    return pb.User(
        name=user.name,
        team=user.team,
        role=cast("pb.UserRole.ValueType", value_of(pb.UserRole.DESCRIPTOR, user.role)),
        create_time=timestamp(user.created),
        tokens=[token_message(token) for token in user.tokens if token.session_of is None],
    )


def token_message(token: schema.UserToken) -> pb.UserToken:
    """Return a token without its secret."""
    return pb.UserToken(
        id=token.id,
        name=token.name,
        create_time=timestamp(token.created),
        expire_time=timestamp(token.expires),
        last_use_time=timestamp(token.used),
    )


def fault_message(row: FaultRow) -> pb.SubmissionFault:
    """Return a fault."""
    return pb.SubmissionFault(file=row.file, item=row.item, field=row.field, reason=row.reason)


def submission_message(
    session: Session,
    submission: schema.Submission,
    account: Account,
    now: datetime,
    *,
    scorer: ScorerVersion | None,
    faults: Sequence[FaultRow] = (),
) -> pb.Submission:
    """Return a submission as its user, or an organiser, may see it now."""
    message = pb.Submission(
        id=submission.id,
        challenge=submission.challenge.name,
        user=submission.user.name,
        entrant=submission.user.entrant,
        method=submission.method,
        description=submission.description,
        team=submission.team,
        paper_url=submission.paper_url,
        code_url=submission.code_url,
        file_name=submission.file_name,
        sha256=submission.sha256,
        file_bytes=submission.file_bytes,
        state=cast("pb.SubmissionState.ValueType", value_of(pb.SubmissionState.DESCRIPTOR, submission.state)),
        queue_position=queue_position(session, submission, now),
        create_time=timestamp(submission.created),
        start_time=timestamp(submission.started),
        end_time=timestamp(submission.ended),
        splits=[results.split.name for results in submission.files],
    )
    if submission.state is State.RUNNING:
        message.progress = submission.job.progress if submission.job is not None else 0.0
    if submission.state is State.FAILED:
        message.failure.CopyFrom(_failure(submission, faults))
    if submission.state is State.SUCCEEDED:
        run = submission.runs[-1]
        message.scores.extend(_split_scores(submission, run, account, now))
        message.origin.CopyFrom(_origin(run, scorer))
    return message


def _failure(submission: schema.Submission, faults: Sequence[FaultRow]) -> pb.SubmissionFailure:
    return pb.SubmissionFailure(
        reason=submission.failure or "",
        message=submission.failure_message,
        faults=[fault_message(row) for row in faults[:SHOWN_FAULTS]],
        fault_count=submission.fault_count,
    )


def _split_scores(
    submission: schema.Submission, run: schema.ScoringRun, account: Account, now: datetime
) -> Iterable[pb.SplitScores]:
    challenge = submission.challenge
    for results in submission.files:
        if not visible(results.split.settings.score_visibility, results.split, account, now):
            continue
        for reference_set in results.split.reference_sets:
            for domain in ("", *shown_domains(reference_set, challenge, account)):
                yield pb.SplitScores(
                    split=results.split.name,
                    reference_set=reference_set.name,
                    domain=domain,
                    image_count=reference_set.domains[domain] if domain else reference_set.image_count,
                    scores=map(_score, shown_scores(scores_of(run, reference_set.id, domain), challenge, account)),
                    empty_candidate_count=0 if domain else results.empty_captions,
                    errors=() if domain else _errors(run, reference_set.id, challenge, account),
                )


def _errors(
    run: schema.ScoringRun, set_id: int, challenge: schema.Challenge, account: Account
) -> Iterator[pb.ErrorCount]:
    """Yield the errors that a caller may see: organisers all that were kept, which are rounded down already."""
    least = challenge.settings.error_images
    if account.may(MemberRole.VIEWER, challenge):
        least = 0
    elif least == NO_ERRORS:
        return
    for row in run.errors.get(str(set_id), ()):
        if row["images"] >= least:
            yield pb.ErrorCount(
                kind=row["kind"],
                title=row["title"],
                words=row["words"],
                columns=row["columns"],
                image_count=row["images"],
            )


def _score(row: ShownScore) -> pb.CorpusScore:
    return pb.CorpusScore(name=row.name, value=row.value, low=row.low, high=row.high, digits=row.digits)


def _origin(run: schema.ScoringRun, scorer: ScorerVersion | None) -> pb.ScoreOrigin:
    return pb.ScoreOrigin(
        version=run.version,
        signatures=[scores_pb2.MetricSignature(metric=name, fields=fields) for name, fields in run.signatures.items()],
        score_time=timestamp(run.created),
        outdated=scorer is not None and not scorer.is_of(run),
    )


def leaderboard_message(
    standing: Standing, account: Account, now: datetime, *, scorer: ScorerVersion | None
) -> pb.GetLeaderboardResponse:
    """Return a leaderboard."""
    return pb.GetLeaderboardResponse(
        title=standing.challenge.settings.title,
        challenge=standing.challenge.name,
        split=standing.split.name,
        reference_set=standing.reference_set.name,
        domain=standing.domain,
        domains=shown_domains(standing.reference_set, standing.challenge, account),
        score=standing.score,
        rows=[_row(row, standing.challenge, account, scorer) for row in standing.rows],
        create_time=timestamp(now),
        lower_is_better=sorted(lower_is_better(standing.challenge.settings.metrics)),
        history=[
            pb.LeaderboardPoint(user=point.user, create_time=timestamp(point.created), value=point.value)
            for point in standing.history
        ],
    )


def _row(
    row: BoardRow, challenge: schema.Challenge, account: Account, scorer: ScorerVersion | None
) -> pb.LeaderboardRow:
    return pb.LeaderboardRow(
        rank=row.rank,
        user=row.submission.user.entrant,
        method=row.submission.method,
        create_time=timestamp(row.submission.created),
        scores=map(_score, shown_scores(row.scores, challenge, account)),
        origin=_origin(row.run, scorer),
        submission=row.submission.id if account.may(MemberRole.VIEWER, challenge) else "",
        team=row.submission.team,
        paper_url=row.submission.paper_url,
        code_url=row.submission.code_url,
    )
