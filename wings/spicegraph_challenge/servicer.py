"""The ``ChallengeService`` of the contract: every call is one transaction, or a stream around one.

What one transaction does is a method that gets its :class:`Turn`; ``_reads`` and ``_writes`` make the call of it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import grpc

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.challenge.v1.challenge_pb2_grpc import ChallengeServiceServicer
from spicegraph_challenge import messages
from spicegraph_challenge.model import accounts, catalogue, leaderboard
from spicegraph_challenge.model.accounts import Account
from spicegraph_challenge.model.schema import MemberRole, Role, State, Submission
from spicegraph_challenge.queue import submissions
from spicegraph_challenge.sandbox.files import FaultRow, image_info, read_faults
from spicegraph_challenge.sandbox.tasks import Prepare, Prepared, ReportTask
from spicegraph_parser.errors import counted
from spicegraph_parser.pipelines import SCENE
from spicegraph_service import kit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy.orm import Session

    from spicegraph_challenge.queue.runner import ChallengeState

_PLACE = re.compile("[0-9]{1,9}")
_UPLOADS_AT_ONCE = 4  # of one user; others wait
_SHOWN = 60
_REFERENCE_BYTES = 1 << 30
_LOOK_EVERY_S = 0.5
_LOOK_SELDOM_S = 2.0
_PATIENCE_S = 60.0
_REPORT_IMAGES = 500
_MOST_REPORT_IMAGES = 5_000
_CHUNK = 1 << 20
_Row = TypeVar("_Row")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Turn(NamedTuple):
    """A call's transaction: who makes the call, the session, and the time that all servers share."""

    account: Account
    session: Session
    now: datetime


if TYPE_CHECKING:
    _Work = Callable[["ChallengeServicer", _Request, Turn], _Response]
    _Call = Callable[["ChallengeServicer", _Request, kit.Context], Awaitable[_Response]]


def _reads(work: _Work[_Request, _Response]) -> _Call[_Request, _Response]:
    """Make a call from a read-only transaction."""
    return _call(work, writes=False)


def _writes(work: _Work[_Request, _Response]) -> _Call[_Request, _Response]:
    """Make a call from a writing transaction."""
    return _call(work, writes=True)


def _call(work: _Work[_Request, _Response], *, writes: bool) -> _Call[_Request, _Response]:
    @wraps(work)
    async def call(self: ChallengeServicer, request: _Request, context: kit.Context) -> _Response:
        del context
        account, transactions = account_of_call(), self._state.transactions
        run = transactions.write if writes else transactions.read
        return await run(lambda session, now: work(self, request, Turn(account, session, now)))

    return call


class ChallengeServicer(ChallengeServiceServicer):
    """Answers organisers and participants."""

    def __init__(self, state: ChallengeState) -> None:
        self._state = state
        self._files = state.files
        self._uploads: defaultdict[int, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_UPLOADS_AT_ONCE))

    def _workers(self) -> kit.WorkerInfo:
        if self._state.workers is None:
            raise kit.unavailable("LOADING", "the server is not ready: its workers are loading", 1.0)
        return self._state.workers

    @_writes
    def CreateChallenge(self, request: pb.CreateChallengeRequest, at: Turn) -> pb.CreateChallengeResponse:
        """Create a challenge."""
        if not at.account.creates:
            at.account.check_organises()
        settings = messages.new_settings(request.challenge.settings, self._workers())
        if not settings.metrics or len(set(settings.metrics)) < len(settings.metrics):
            raise kit.wrong("challenge.settings.metrics", "at least one metric, each once")
        kit.check_metrics(settings.metrics, [metric.name for metric in self._workers().metrics])
        self._check_score("challenge.settings", settings)
        challenge = catalogue.add_challenge(at.session, at.account, request.challenge.name, settings, at.now)
        return pb.CreateChallengeResponse(challenge=messages.challenge_message(challenge))

    def _check_score(self, path: str, settings: pb.ChallengeSettings) -> None:
        """Refuse a score to rank by that no submission will have."""
        scores = {metric.name: metric.scores for metric in self._workers().metrics}
        names = [name for metric in settings.metrics for name in scores.get(metric, ())]
        for field in ("primary_score", "secondary_score"):
            score = getattr(settings, field)
            if score and score not in names:
                shown = score if len(score) <= _SHOWN else score[:_SHOWN] + "..."
                raise kit.wrong(f"{path}.{field}", f"there is no score {shown!a}; the metrics give {', '.join(names)}")

    @_writes
    def UpdateChallenge(self, request: pb.UpdateChallengeRequest, at: Turn) -> pb.UpdateChallengeResponse:
        """Change a challenge."""
        challenge = catalogue.find_challenge(at.session, request.name, lock=True)
        at.account.check_may(MemberRole.ORGANISER, challenge)
        catalogue.change_challenge(challenge, request.settings, request.update_mask.paths)
        if request.settings.HasField("primary_score") or request.settings.HasField("secondary_score"):
            self._check_score("settings", challenge.settings)
        return pb.UpdateChallengeResponse(challenge=messages.challenge_message(challenge))

    @_reads
    def GetChallenge(self, request: pb.GetChallengeRequest, at: Turn) -> pb.GetChallengeResponse:
        """Return a challenge, and the caller's quota."""
        challenge = catalogue.find_shown(at.session, at.account, request.name)
        used = submissions.usage(at.session, challenge, at.account, at.now)
        of_splits = {split.name: submissions.usage(at.session, split, at.account, at.now) for split in challenge.splits}
        return pb.GetChallengeResponse(
            challenge=messages.challenge_message(challenge),
            quota=pb.Quota(
                used_today=used.today,
                used_total=used.total,
                left=used.left,
                phases=[
                    pb.PhaseQuota(split=name, used_today=part.today, used_total=part.total, left=part.left)
                    for name, part in of_splits.items()
                    if part.left is not None
                ],
            ),
            role=_role_value(at.account.role_in(challenge)),
        )

    @_reads
    def ListChallenges(self, request: pb.ListChallengesRequest, at: Turn) -> pb.ListChallengesResponse:
        """List the challenges."""
        size = kit.check_page_size(request.page_size)
        kit.check_page_token(request.page_token, accounts.NAME)
        challenges, more = _page(catalogue.list_challenges(at.session, request.page_token, size + 1), size)
        return pb.ListChallengesResponse(
            challenges=map(messages.challenge_message, challenges), next_page_token=challenges[-1].name if more else ""
        )

    @_writes
    def DeleteChallenge(self, request: pb.DeleteChallengeRequest, at: Turn) -> pb.DeleteChallengeResponse:
        """Delete a challenge without submissions."""
        catalogue.remove_challenge(at.session, at.account, request.name)
        return pb.DeleteChallengeResponse()

    @_writes
    def SetChallengeMember(self, request: pb.SetChallengeMemberRequest, at: Turn) -> pb.SetChallengeMemberResponse:
        """Set a user's role in a challenge."""
        role = messages.word_of("role", pb.ChallengeRole.DESCRIPTOR, request.role, MemberRole)
        challenge = catalogue.find_challenge(at.session, request.challenge)
        if request.user != at.account.name:  # who may not, does not learn which users there are
            at.account.check_may(MemberRole.OWNER, challenge)
        user = accounts.find_user(at.session, request.user)
        catalogue.set_member(at.session, at.account, request.challenge, user, role)
        return pb.SetChallengeMemberResponse()

    @_reads
    def ListChallengeMembers(
        self, request: pb.ListChallengeMembersRequest, at: Turn
    ) -> pb.ListChallengeMembersResponse:
        """List the members of a challenge."""
        challenge = catalogue.find_challenge(at.session, request.challenge)
        at.account.check_may(MemberRole.VIEWER, challenge)
        return pb.ListChallengeMembersResponse(
            members=(
                pb.ChallengeMember(user=member.user.name, role=_role_value(member.role))
                for member in sorted(challenge.members, key=lambda member: member.user.name)
            )
        )

    async def UploadReferences(
        self, request_iterator: AsyncIterator[pb.UploadReferencesRequest], context: kit.Context
    ) -> pb.UploadReferencesResponse:
        """Take COCO annotations as references."""
        del context
        account = account_of_call()
        target, chunks = await messages.first(request_iterator, "target")
        transactions = self._state.transactions
        await transactions.read(lambda session, _now: messages.check_target(session, target, account))
        async with self._uploads[account.user_id]:
            with self._files.incoming() as incoming, self._files.workspace() as folder:
                most = _REFERENCE_BYTES
                key = await messages.receive(chunks, incoming, transactions, most_bytes=most)
                output = folder / "references"
                prepared = await self._state.sandbox.run(Prepare(str(incoming.path), str(output)), Prepared)
                if prepared.faults:
                    # Messages are logged, and faults quote the private file: they are in the details alone.
                    details = kit.invalid([kit.Violation("chunk", fault) for fault in prepared.faults]).details
                    message = f"chunk: the annotations cannot be used ({counted(len(prepared.faults), 'fault')})"
                    raise kit.CallError(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELDS", message, *details)
                file = await transactions.thread(lambda: self._files.adopt(output))

                def place(session: Session, _now: datetime) -> pb.Challenge:
                    challenge = catalogue.place_references(session, target, key, file, prepared)
                    self._files.keep(incoming, key)
                    session.flush()
                    return messages.challenge_message(challenge)

                challenge = await transactions.write(place)
        self._state.nudge()
        return pb.UploadReferencesResponse(challenge=challenge)

    @_writes
    def CreateUser(self, request: pb.CreateUserRequest, at: Turn) -> pb.CreateUserResponse:
        """Add a user."""
        at.account.check_organises()
        role = messages.word_of("role", pb.UserRole.DESCRIPTOR, request.role, Role) or Role.PARTICIPANT
        expires = messages.moment_of("expire_time", request.expire_time)
        user, secret = accounts.add_user(at.session, request.name, role, at.now, expires=expires, team=request.team)
        return pb.CreateUserResponse(user=messages.user_message(user), secret=secret)

    @_reads
    def ListUsers(self, request: pb.ListUsersRequest, at: Turn) -> pb.ListUsersResponse:
        """List the users."""
        at.account.check_organises()
        size = kit.check_page_size(request.page_size)
        kit.check_page_token(request.page_token, accounts.NAME)
        users, more = _page(accounts.list_users(at.session, request.page_token, size + 1), size)
        return pb.ListUsersResponse(
            users=map(messages.user_message, users), next_page_token=users[-1].name if more else ""
        )

    @_writes
    def SetUserTeam(self, request: pb.SetUserTeamRequest, at: Turn) -> pb.SetUserTeamResponse:
        """Put a user into a team, or out of it."""
        at.account.check_organises()
        user = accounts.set_team(at.session, request.user, request.team)
        return pb.SetUserTeamResponse(user=messages.user_message(user))

    @_writes
    def DeleteUser(self, request: pb.DeleteUserRequest, at: Turn) -> pb.DeleteUserResponse:
        """Shut a user out."""
        at.account.check_organises()
        if at.account.name == request.name:
            raise kit.wrong("name", "is your own: another organiser must do that")
        accounts.remove_user(at.session, request.name, at.now)
        return pb.DeleteUserResponse()

    @_writes
    def CreateUserToken(self, request: pb.CreateUserTokenRequest, at: Turn) -> pb.CreateUserTokenResponse:
        """Make a token."""
        expires = messages.moment_of("expire_time", request.expire_time)
        token, secret = accounts.add_token(at.session, at.account, request.user, request.name, at.now, expires=expires)
        return pb.CreateUserTokenResponse(token=messages.token_message(token), secret=secret)

    @_writes
    def RevokeUserToken(self, request: pb.RevokeUserTokenRequest, at: Turn) -> pb.RevokeUserTokenResponse:
        """Revoke a token."""
        accounts.revoke_token(at.session, at.account, request.id)
        return pb.RevokeUserTokenResponse()

    async def CreateSubmission(
        self, request_iterator: AsyncIterator[pb.CreateSubmissionRequest], context: kit.Context
    ) -> pb.CreateSubmissionResponse:
        """Take a submission."""
        del context
        account = account_of_call()
        settings, chunks = await messages.first(request_iterator, "settings")
        messages.check_settings(settings)
        transactions = self._state.transactions
        most = self._state.options.max_submission << 20
        splits = await transactions.read(lambda session, _now: messages.split_names(session, settings))
        async with self._uploads[account.user_id]:
            await transactions.read(lambda session, now: submissions.check_refused(session, account, now, most=most))
            with self._files.incoming() as incoming:
                key = await messages.receive(chunks, incoming, transactions, most_bytes=most)
                settings.method = messages.method_name(settings, splits)

                def accept(session: Session, now: datetime) -> pb.CreateSubmissionResponse:
                    submission, existed = submissions.accept(
                        session, account, settings, (key, incoming.size), now, most_bytes=most
                    )
                    if not existed:
                        self._files.keep(incoming, key)
                    message = self._message(submission, Turn(account, session, now))
                    return pb.CreateSubmissionResponse(submission=message, existed=existed)

                # A client that goes away at this moment leaves all of it or nothing: without the file, no commit.
                response = await transactions.write(accept)
        self._state.nudge()
        return response

    @_reads
    def GetSubmission(self, request: pb.GetSubmissionRequest, at: Turn) -> pb.GetSubmissionResponse:
        """Return a submission."""
        submission = submissions.find_submission(at.session, at.account, request.id)
        message = self._message(submission, at)
        message.on_leaderboard = leaderboard.stands(at.session, submission)
        return pb.GetSubmissionResponse(submission=message)

    @_reads
    def ListSubmissions(self, request: pb.ListSubmissionsRequest, at: Turn) -> pb.ListSubmissionsResponse:
        """List submissions."""
        size = kit.check_page_size(request.page_size)
        kit.check_page_token(request.page_token, submissions.ID)
        challenge = catalogue.find_challenge(at.session, request.challenge)
        if request.user not in {"", at.account.name} and not accounts.in_team(at.session, at.account, request.user):
            at.account.check_may(MemberRole.VIEWER, challenge)
        listed = submissions.list_submissions(
            at.session, at.account, challenge, user=request.user, after=request.page_token, count=size + 1
        )
        page, more = _page(listed, size)
        return pb.ListSubmissionsResponse(
            submissions=(self._message(submission, at) for submission in page),
            next_page_token=page[-1].id if more else "",
        )

    async def WatchSubmission(
        self, request: pb.WatchSubmissionRequest, context: kit.Context
    ) -> AsyncIterator[pb.WatchSubmissionResponse]:
        """Return a submission whenever it has changed."""
        shown: pb.Submission | None = None
        wanted = pb.GetSubmissionRequest(id=request.id)
        changed = time.monotonic()
        while shown is None or not shown.HasField("end_time"):
            now = (await self.GetSubmission(wanted, context)).submission
            if now != shown:
                shown, changed = now, time.monotonic()
                yield pb.WatchSubmissionResponse(submission=now)
                continue
            if self._state.leaving:
                raise kit.unavailable("STOPPING", "the server stops; watch again", 1.0)
            waited = time.monotonic() - changed
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S if waited < _PATIENCE_S else _LOOK_SELDOM_S):
                    await self._state.moved.wait()  # or another server has done it

    @_reads
    def ListSubmissionFaults(
        self, request: pb.ListSubmissionFaultsRequest, at: Turn
    ) -> pb.ListSubmissionFaultsResponse:
        """List the faults of a refused file."""
        size = kit.check_page_size(request.page_size)
        kit.check_page_token(request.page_token, _PLACE)
        start = int(request.page_token or 0)
        rows = self._faults(submissions.find_submission(at.session, at.account, request.id))
        faults, more = _page(rows[start:], size)
        return pb.ListSubmissionFaultsResponse(
            faults=(pb.SubmissionFault(**row._asdict()) for row in faults),
            next_page_token=str(start + size) if more else "",
        )

    @_writes
    def CancelSubmission(self, request: pb.CancelSubmissionRequest, at: Turn) -> pb.CancelSubmissionResponse:
        """Cancel a submission."""
        submission = submissions.cancel(at.session, at.account, request.id, at.now)
        return pb.CancelSubmissionResponse(submission=self._message(submission, at))

    @_writes
    def ChooseSubmission(self, request: pb.ChooseSubmissionRequest, at: Turn) -> pb.ChooseSubmissionResponse:
        """Choose the submission that stands on the leaderboard."""
        chosen = request.submission if request.HasField("submission") else None
        submissions.choose(at.session, at.account, request.challenge, chosen, at.now)
        return pb.ChooseSubmissionResponse()

    def _message(self, submission: Submission, at: Turn) -> pb.Submission:
        faults = self._faults(submission) if submission.state is State.FAILED else []
        return messages.submission_message(
            at.session, submission, at.account, at.now, workers=self._state.workers, faults=faults
        )

    def _faults(self, submission: Submission) -> list[FaultRow]:
        return read_faults(self._files.path(submission.faults)) if submission.faults else []

    @_reads
    def GetLeaderboard(self, request: pb.GetLeaderboardRequest, at: Turn) -> pb.GetLeaderboardResponse:
        """Return a leaderboard."""
        challenge = catalogue.find_shown(at.session, at.account, request.challenge)
        split = catalogue.find_split(challenge, request.split)
        leaderboard.check_visible(split, at.account, at.now)
        reference_set = catalogue.find_reference_set(split, request.reference_set)
        kit.check_page_token(request.page_token, _PLACE)
        start = int(request.page_token or 0)
        end = start + kit.check_page_size(request.page_size) if request.page_size else None
        standing = leaderboard.standing(at.session, reference_set, request, at.account, at.now)
        page = replace(standing, rows=standing.rows[start:end])
        reply = messages.leaderboard_message(page, at.account, at.now, workers=self._state.workers)
        reply.next_page_token = str(end) if end is not None and end < len(standing.rows) else ""
        return reply

    async def GetImageInfo(
        self, request: pb.GetImageInfoRequest, context: kit.Context
    ) -> AsyncIterator[pb.GetImageInfoResponse]:
        """Return the images of a split."""
        del context
        account = account_of_call()

        def find(session: Session, now: datetime) -> list[Path]:
            challenge = catalogue.find_challenge(session, request.challenge)
            split = catalogue.find_split(challenge, request.split)
            if not account.may(MemberRole.VIEWER, challenge):
                submissions.check_opened(challenge, now)
                submissions.check_opened(split, now)
            return [
                self._files.path(reference_set.file) for reference_set in split.reference_sets if reference_set.file
            ]

        paths = await self._state.transactions.read(find)
        content = await self._state.transactions.thread(lambda: image_info(paths))
        for start in range(0, len(content), _CHUNK):
            yield pb.GetImageInfoResponse(chunk=content[start : start + _CHUNK])

    async def RescoreChallenge(
        self, request: pb.RescoreChallengeRequest, context: kit.Context
    ) -> pb.RescoreChallengeResponse:
        """Have submissions scored again."""
        del context
        account = account_of_call()
        workers = self._workers()

        def rescore(session: Session, _now: datetime) -> int:
            challenge = catalogue.find_challenge(session, request.challenge, lock=True)
            account.check_may(MemberRole.ORGANISER, challenge)
            return leaderboard.rescore(session, challenge, workers, everything=request.all)

        count = await self._state.transactions.write(rescore)
        self._state.nudge()
        return pb.RescoreChallengeResponse(submission_count=count)

    async def GetSubmissionReport(
        self, request: pb.GetSubmissionReportRequest, context: kit.Context
    ) -> AsyncIterator[pb.GetSubmissionReportResponse]:
        """Make an error report."""
        del context
        account = account_of_call()
        if not account.members:
            account.check_organises()
        limit = request.image_limit or _REPORT_IMAGES
        if not 1 <= limit <= _MOST_REPORT_IMAGES:
            raise kit.wrong("image_limit", f"1 to {_MOST_REPORT_IMAGES:,}, or 0 for {_REPORT_IMAGES}")
        with self._files.workspace() as folder:
            output = folder / "report"

            def plan(session: Session, _now: datetime) -> ReportTask:
                submission = submissions.find_submission(session, account, request.id)
                challenge = submission.challenge
                account.check_may(MemberRole.VIEWER, challenge)
                if not submission.files:
                    raise kit.refused("NO_RESULTS", "the submission has no sound results", submission.id)
                results = next((each for each in submission.files if request.split in {each.split.name, ""}), None)
                if results is None:
                    raise kit.not_found("split", request.split)
                reference_set = catalogue.find_reference_set(results.split, request.reference_set)
                return ReportTask(
                    results=str(self._files.path(results.file)),
                    references=str(self._files.path(reference_set.file or "")),
                    name=submission.method,
                    title=f"{challenge.settings.title}: {results.split.name} {reference_set.name}",
                    metrics=tuple(challenge.settings.metrics),
                    pipeline=SCENE if challenge.given.graph_style == "scene" else self._state.pipeline,
                    limit=limit,
                    output=str(output),
                    data=self._state.data,
                    spice_text=challenge.given.spice_text,
                )

            task = await self._state.transactions.read(plan)
            await self._state.reports.run(task, type(None))
            with output.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    yield pb.GetSubmissionReportResponse(chunk=chunk)


def account_of_call() -> Account:
    """Return who makes the call under way."""
    caller = kit.current_call().caller
    if not isinstance(caller, Account):
        raise kit.unauthenticated("the call needs a user's token")
    return caller


def _role_value(role: MemberRole | None) -> pb.ChallengeRole.ValueType:
    return cast("pb.ChallengeRole.ValueType", messages.value_of(pb.ChallengeRole.DESCRIPTOR, role))


def _page(rows: Sequence[_Row], size: int) -> tuple[Sequence[_Row], bool]:
    """Return the rows of a page, and whether there are more; the list that they are from begins with the page."""
    return rows[:size], len(rows) > size
