"""Between the messages of the contract and the tables: uploads are received and checked, replies are made."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.model import catalogue
from spicegraph_challenge.model.leaderboard import Standing, is_current, scores_of, shown_domains, shown_scores, visible
from spicegraph_challenge.model.schema import MemberRole, State
from spicegraph_challenge.model.settings import NO_ERRORS, moment, timestamp
from spicegraph_challenge.queue.submissions import queue_position
from spicegraph_challenge.sandbox.validation import method_of
from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.data import MetricData, with_spice_text
from spicegraph_scorer.metrics import METRICS, lower_is_better, metric_names
from spicegraph_service.kit import Violation, graph_style, invalid, patiently, wrong

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from google.protobuf.descriptor import EnumDescriptor
    from google.protobuf.timestamp_pb2 import Timestamp
    from sqlalchemy.orm import Session

    from spicegraph_challenge.model import schema
    from spicegraph_challenge.model.accounts import Account
    from spicegraph_challenge.model.database import Transactions
    from spicegraph_challenge.sandbox.files import FaultRow, Incoming
    from spicegraph_service.kit import WorkerInfo

_LONGEST_METHOD = 100
_URL = re.compile(r"(https?://[!#-&(-.0-;=?A-\[\]-~]+(/[!#-&(-;=?-\[\]-~]*)?)?")  # printable ASCII but " ' < > and \
_KEY = re.compile(r"[!-~]*")
_ADDRESS = (300, _URL.fullmatch, "expected an address such as https://example.org, 300 characters at most")
_TEXTS: Mapping[str, tuple[int, Callable[[str], object], str]] = {
    "file_name": (255, str.isprintable, "1 to 255 printable characters"),
    "method": (_LONGEST_METHOD, str.isprintable, f"0 to {_LONGEST_METHOD} printable characters"),
    "team": (200, str.isprintable, "0 to 200 printable characters"),
    "paper_url": _ADDRESS,
    "code_url": _ADDRESS,
    "description": (2_000, lambda text: "\0" not in text, "at most 2,000 characters, and no NUL"),
    "idempotency_key": (100, _KEY.fullmatch, "at most 100 characters, all printable ASCII"),
}
"""The texts of a submission: the most characters, what a sound one is, and that in words."""


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
        Violation(f"settings.{field}", reason)
        for field, (longest, is_sound, reason) in _TEXTS.items()
        if len(text := getattr(settings, field)) > longest or not is_sound(text)
    ]
    if not settings.file_name.strip():
        violations.append(Violation("settings.file_name", _TEXTS["file_name"][-1]))
    elif PurePath(settings.file_name.replace("\\", "/")).name != settings.file_name:
        violations.append(Violation("settings.file_name", "is a path, expected a name"))
    if violations:
        raise invalid(violations)


def method_name(settings: pb.SubmissionSettings, splits: Iterable[str]) -> str:
    """Return the given method name, or the one in the file name."""
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
Word = TypeVar("Word", bound=StrEnum)


def word_of(field: str, kind: EnumDescriptor, value: int, words: type[Word]) -> Word | None:
    """Return the word for an enum's value; ``None``: the unspecified one."""
    if value not in kind.values_by_number:
        raise wrong(field, f"{value} is not one of its values")
    return next((word for word in words if value_of(kind, word) == value), None)


def value_of(kind: EnumDescriptor, word: StrEnum | None) -> int:
    """Return an enum's value for a word; the unspecified one for ``None``."""
    if word is None:
        return 0
    unspecified: str = kind.values_by_number[0].name
    number: int = kind.values_by_name[unspecified.removesuffix("UNSPECIFIED") + word.name].number
    return number


def moment_of(field: str, value: Timestamp) -> datetime | None:
    """Return a moment; 1970 stands for none."""
    read = moment(value)
    if read is None and (value.seconds or value.nanos):
        raise wrong(field, "is before 1970 or after 9999")
    return read


def new_settings(message: pb.ChallengeSettings, info: WorkerInfo) -> pb.ChallengeSettings:
    """Return a request's settings, with metric groups spelled out and checked against the workers' ``info``."""
    settings = pb.ChallengeSettings()
    settings.CopyFrom(message)
    try:
        settings.metrics[:] = metric_names(message.metrics)
    except InputError as error:
        raise wrong("challenge.settings.metrics", str(error)) from error
    graph_style(message.graph_style, info, field="challenge.settings.graph_style")
    settings.empty = settings.empty or scores_pb2.EMPTY_CANDIDATES_REFUSE
    settings.control_tokens = settings.control_tokens or scores_pb2.CONTROL_TOKENS_REFUSE
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


def submission_message(
    session: Session,
    submission: schema.Submission,
    account: Account,
    now: datetime,
    *,
    workers: WorkerInfo | None,
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
        message.failure.reason = submission.failure or ""
        message.failure.message = submission.failure_message
        message.failure.faults.extend(pb.SubmissionFault(**row._asdict()) for row in faults[:SHOWN_FAULTS])
        message.failure.fault_count = submission.fault_count
    if submission.state is State.SUCCEEDED:
        message.scores.extend(split_scores(submission, account, now))
        message.origin.CopyFrom(_origin(submission.runs[-1], workers))
    return message


def split_scores(submission: schema.Submission, account: Account, now: datetime) -> Iterator[pb.SplitScores]:
    """Yield the scores and errors that a caller may see: organisers all errors, which were rounded down at once."""
    challenge, run = submission.challenge, submission.runs[-1]
    least = _least_images(challenge, account)
    for results, split in ((results, results.split) for results in submission.files):
        if not visible(split.settings.score_visibility, split, account, now):
            continue
        for reference_set in split.reference_sets:
            for domain in ("", *shown_domains(reference_set, challenge, account)):
                scores = shown_scores(scores_of(run, reference_set.id, domain), challenge, account)
                part = pb.SplitScores(
                    split=split.name,
                    reference_set=reference_set.name,
                    domain=domain,
                    image_count=reference_set.domains[domain] if domain else reference_set.image_count,
                    scores=scores,
                )
                if not domain:
                    part.empty_candidate_count = results.empty_captions
                    rows = [row for row in run.errors.get(str(reference_set.id), ()) if row["images"] >= least]
                    part.errors.extend(pb.ErrorCount(image_count=row.pop("images"), **row) for row in map(dict, rows))
                yield part


def _least_images(challenge: schema.Challenge, account: Account) -> int:
    """Return how many images must have an error that a caller may see."""
    if account.may(MemberRole.VIEWER, challenge):
        return 0
    least = challenge.settings.error_images
    return sys.maxsize if least == NO_ERRORS else least


def _origin(run: schema.ScoringRun, workers: WorkerInfo | None) -> pb.ScoreOrigin:
    return pb.ScoreOrigin(
        version=run.version,
        signatures=[scores_pb2.MetricSignature(metric=name, fields=fields) for name, fields in run.signatures.items()],
        score_time=timestamp(run.created),
        outdated=workers is not None and not is_current(run, workers),
    )


def leaderboard_message(
    standing: Standing, account: Account, now: datetime, *, workers: WorkerInfo | None
) -> pb.GetLeaderboardResponse:
    """Return a leaderboard."""
    challenge = standing.reference_set.split.challenge
    return pb.GetLeaderboardResponse(
        title=challenge.settings.title,
        challenge=challenge.name,
        split=standing.reference_set.split.name,
        reference_set=standing.reference_set.name,
        domain=standing.domain,
        domains=shown_domains(standing.reference_set, challenge, account),
        score=standing.score,
        rows=[
            pb.LeaderboardRow(
                rank=row.rank,
                user=row.submission.user.entrant,
                method=row.submission.method,
                create_time=timestamp(row.submission.created),
                scores=shown_scores(row.scores, challenge, account),
                origin=_origin(row.submission.runs[-1], workers),
                submission=row.submission.id if account.may(MemberRole.VIEWER, challenge) else "",
                team=row.submission.team,
                paper_url=row.submission.paper_url,
                code_url=row.submission.code_url,
            )
            for row in standing.rows
        ],
        create_time=timestamp(now),
        lower_is_better=sorted(lower_is_better(challenge.settings.metrics)),
        history=[
            pb.LeaderboardPoint(user=entry.user.entrant, create_time=timestamp(entry.created), value=value)
            for entry, value in standing.history
        ],
    )
