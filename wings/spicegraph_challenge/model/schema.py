"""The tables of the evaluation server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Enum,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_challenge.model import settings
from spicegraph_service.kit import RequestData

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Role(StrEnum):
    """A user's role on the server."""

    PARTICIPANT = "participant"
    ORGANISER = "organiser"
    HOST = "host"


class MemberRole(StrEnum):
    """A member's role in a challenge; each has the rights of those before it."""

    VIEWER = "viewer"
    ORGANISER = "organiser"
    OWNER = "owner"


class State(StrEnum):
    """The state of a submission; see the contract's ``SubmissionState``."""

    VALIDATING = "validating"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self in {State.SUCCEEDED, State.FAILED, State.CANCELLED}


UNCHARGED = (State.FAILED, State.CANCELLED)  # states that count against no limit
_CHARGED = text("state NOT IN ('failed', 'cancelled')")


class JobKind(StrEnum):
    """The kind of a job in the queue."""

    VALIDATE = "validate"
    SCORE = "score"
    RESCORE = "rescore"
    PARSE = "parse"


class Moment(TypeDecorator[datetime]):
    """A moment, stored as microseconds since 1970, UTC: both databases compare those exactly."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: object) -> int | None:
        """Return the time as microseconds since the epoch."""
        del dialect
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: object) -> datetime | None:
        """Return the moment."""
        del dialect
        return None if value is None else _EPOCH + value * _MICROSECOND


class SettingsColumn(TypeDecorator[pb.ChallengeSettings]):
    """A challenge's settings as message bytes: unknown fields are kept, defaults filled in."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: pb.ChallengeSettings | None, dialect: object) -> bytes | None:
        """Return the settings as serialised bytes."""
        del dialect
        return None if value is None else value.SerializeToString(deterministic=True)

    def process_result_value(self, value: bytes | None, dialect: object) -> pb.ChallengeSettings | None:
        """Return the message."""
        del dialect
        return None if value is None else settings.with_defaults(pb.ChallengeSettings.FromString(value))


def _words(kind: type[StrEnum]) -> Enum:
    """Return a column of an enum's values as text: neither database then needs a type of its own."""
    return Enum(kind, native_enum=False, length=20, values_callable=lambda _: [member.value for member in kind])


_BIG = BigInteger().with_variant(Integer, "sqlite")  # only an INTEGER key counts up by itself in SQLite


class Base(DeclarativeBase):
    """Base of the tables; constraints have names, so that migrations can change them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy's own convention)
        datetime: Moment,
        Role: _words(Role),
        MemberRole: _words(MemberRole),
        State: _words(State),
        JobKind: _words(JobKind),
        dict[str, Any]: JSON,
        pb.ChallengeSettings: SettingsColumn,
    }


class User(Base):
    """Somebody who may call. A user who was shut out has ``removed``; their submissions stay."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    name: Mapped[str] = mapped_column(String(40), unique=True)
    role: Mapped[Role]
    team: Mapped[str] = mapped_column(String(40), default="")
    created: Mapped[datetime]
    removed: Mapped[datetime | None]
    tokens: Mapped[list[UserToken]] = relationship(back_populates="user", order_by="UserToken.created, UserToken.id")
    memberships: Mapped[list[Member]] = relationship(back_populates="user", cascade="all, delete-orphan")

    @property
    def entrant(self) -> str:
        """Under which name they stand on leaderboards: their own, or their team's."""
        return self.team or self.name


class UserToken(Base):
    """The SHA-256 of a bearer token, or of a browser's session, which ends with the token it was begun with."""

    __tablename__ = "user_tokens"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    created: Mapped[datetime]
    expires: Mapped[datetime | None]
    used: Mapped[datetime | None]
    session_of: Mapped[str | None] = mapped_column(ForeignKey("user_tokens.id", ondelete="CASCADE"), index=True)
    user: Mapped[User] = relationship(back_populates="tokens")


class Challenge(Base):
    """A challenge: its settings as the contract has them, and columns for queries."""

    __tablename__ = "challenges"

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    name: Mapped[str] = mapped_column(String(40), unique=True)
    settings: Mapped[pb.ChallengeSettings]
    opens: Mapped[datetime | None]
    closes: Mapped[datetime | None]
    created: Mapped[datetime]
    splits: Mapped[list[Split]] = relationship(
        back_populates="challenge", order_by="Split.position", cascade="all, delete-orphan"
    )
    members: Mapped[list[Member]] = relationship(back_populates="challenge", cascade="all, delete-orphan")

    def set(self, message: pb.ChallengeSettings) -> None:
        """Store settings, and the opening and closing times for queries."""
        self.settings = message
        self.opens, self.closes = settings.moment(message.open_time), settings.moment(message.close_time)

    @property
    def given(self) -> RequestData:
        """The request data for the challenge's metrics: SPICE text and graph style."""
        return RequestData(
            spice_text="coco" if self.settings.spice_text == scores_pb2.SPICE_TEXT_COCO else "written",
            graph_style="scene" if self.settings.graph_style == scene_graph_pb2.GRAPH_STYLE_SCENE else "spice",
        )

    @property
    def ready(self) -> bool:
        """Whether all references are there."""
        return all(reference_set.file for split in self.splits for reference_set in split.reference_sets)


class Member(Base):
    """Somebody who sees or manages a challenge."""

    __tablename__ = "challenge_members"

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    role: Mapped[MemberRole]
    challenge: Mapped[Challenge] = relationship(back_populates="members")
    user: Mapped[User] = relationship(back_populates="memberships")


class Split(Base):
    """A part of a challenge."""

    __tablename__ = "splits"
    __table_args__ = (UniqueConstraint("challenge_id", "name"),)

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"))
    position: Mapped[int]
    name: Mapped[str] = mapped_column(String(40))
    challenge: Mapped[Challenge] = relationship(back_populates="splits")
    reference_sets: Mapped[list[SplitReferences]] = relationship(
        back_populates="split", order_by="SplitReferences.position", cascade="all, delete-orphan"
    )

    @property
    def settings(self) -> pb.ChallengeSplit:
        """The settings of the split."""
        return self.challenge.settings.splits[self.position]

    @property
    def opens(self) -> datetime | None:
        """From when on results for it may be submitted, if the challenge does not open later."""
        return settings.moment(self.settings.phase_open_time)

    @property
    def closes(self) -> datetime | None:
        """From when on they may no longer, if the challenge does not close earlier."""
        return settings.moment(self.settings.phase_close_time)


class SplitReferences(Base):
    """References of a split: keys of the normalised and uploaded files, and images by domain."""

    __tablename__ = "challenge_reference_sets"
    __table_args__ = (UniqueConstraint("split_id", "name"),)

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    split_id: Mapped[int] = mapped_column(ForeignKey("splits.id", ondelete="CASCADE"))
    position: Mapped[int]
    name: Mapped[str] = mapped_column(String(40))
    file: Mapped[str | None] = mapped_column(String(64))
    source: Mapped[str | None] = mapped_column(String(64))
    image_count: Mapped[int]
    caption_count: Mapped[int]
    domains: Mapped[dict[str, Any]] = mapped_column(default=dict)
    split: Mapped[Split] = relationship(back_populates="reference_sets")


class Submission(Base):
    """A submission."""

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("user_id", "challenge_id", "idempotency_key"),
        # The same bytes are one submission, but for one that has failed or was cancelled.
        Index(
            "ux_submissions_content",
            "user_id",
            "challenge_id",
            "sha256",
            unique=True,
            sqlite_where=_CHARGED,
            postgresql_where=_CHARGED,
        ),
        Index("ix_submissions_challenge_created", "challenge_id", "created", "id"),
    )

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    method: Mapped[str] = mapped_column(String(100))
    description: Mapped[str] = mapped_column(Text)
    team: Mapped[str] = mapped_column(String(200), default="")
    paper_url: Mapped[str] = mapped_column(String(300), default="")
    code_url: Mapped[str] = mapped_column(String(300), default="")
    file_name: Mapped[str] = mapped_column(String(255))
    split: Mapped[str] = mapped_column(String(40))
    sha256: Mapped[str] = mapped_column(String(64))
    file_bytes: Mapped[int] = mapped_column(BigInteger)
    idempotency_key: Mapped[str | None] = mapped_column(String(100))
    state: Mapped[State]
    created: Mapped[datetime]
    started: Mapped[datetime | None]
    ended: Mapped[datetime | None]
    failure: Mapped[str | None] = mapped_column(String(40))
    failure_message: Mapped[str] = mapped_column(Text, default="")
    faults: Mapped[str | None] = mapped_column(String(64))
    fault_count: Mapped[int] = mapped_column(default=0)
    challenge: Mapped[Challenge] = relationship()
    user: Mapped[User] = relationship()
    files: Mapped[list[SubmissionFile]] = relationship(order_by="SubmissionFile.split_id")
    runs: Mapped[list[ScoringRun]] = relationship(order_by="ScoringRun.id", back_populates="submission")
    job: Mapped[Job | None] = relationship(back_populates="submission")


class SubmissionFile(Base):
    """The sound results of a submission for one split, and how many of its captions are empty."""

    __tablename__ = "submission_files"

    submission_id: Mapped[str] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    split_id: Mapped[int] = mapped_column(ForeignKey("splits.id"), primary_key=True)
    file: Mapped[str] = mapped_column(String(64))
    empty_captions: Mapped[int] = mapped_column(default=0)
    split: Mapped[Split] = relationship()


class ScoringRun(Base):
    """One scoring of a submission, by one job; the newest counts. ``errors`` are by the id of the reference set."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    submission_id: Mapped[str] = mapped_column(ForeignKey("submissions.id"), index=True)
    job_id: Mapped[int] = mapped_column(BigInteger, unique=True)
    version: Mapped[str] = mapped_column(String(100))
    signatures: Mapped[dict[str, Any]]
    created: Mapped[datetime]
    errors: Mapped[dict[str, Any]]
    submission: Mapped[Submission] = relationship(back_populates="runs")
    scores: Mapped[list[RunScore]] = relationship(order_by="RunScore.position")


class RunScore(Base):
    """A score of a run against one reference set: of all its images, or of those of a domain."""

    __tablename__ = "run_scores"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    reference_set_id: Mapped[int] = mapped_column(ForeignKey("challenge_reference_sets.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(String(100))
    value: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    images: Mapped[int | None]  # of a domain, or that have a category in their references
    domain: Mapped[str] = mapped_column(String(40), default="")
    reference_set: Mapped[SplitReferences] = relationship()


class Choice(Base):
    """Which submission of a user stands on the leaderboard; with ``submission_id`` of ``None``, none does."""

    __tablename__ = "choices"

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    submission_id: Mapped[str | None] = mapped_column(ForeignKey("submissions.id"))


class Job(Base):
    """Work to do, held by the server ``owner`` until ``lease_end``; ``fence`` counts how often it was taken."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_kind_id", "kind", "id"),
        # Ids of finished jobs are never given again: a run remembers its job's.
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    kind: Mapped[JobKind]
    submission_id: Mapped[str | None] = mapped_column(ForeignKey("submissions.id"), unique=True)
    reference_set_id: Mapped[int | None] = mapped_column(
        ForeignKey("challenge_reference_sets.id", ondelete="CASCADE"), unique=True
    )
    owner: Mapped[str | None] = mapped_column(String(40))
    lease_end: Mapped[datetime | None]
    fence: Mapped[int] = mapped_column(default=0)
    progress: Mapped[float] = mapped_column(default=0.0)
    submission: Mapped[Submission | None] = relationship(back_populates="job")
