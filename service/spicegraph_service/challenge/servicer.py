"""The ``ChallengeService`` of the contract: every call is one transaction, or a stream around one."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_api.v1.challenge_pb2_grpc import ChallengeServiceServicer
from spicegraph_parser.scenes import SCENE
from spicegraph_service.challenge import accounts, catalogue, leaderboard, messages, submissions
from spicegraph_service.challenge.accounts import Account
from spicegraph_service.challenge.files import image_info, read_faults
from spicegraph_service.challenge.sandbox import Allowance
from spicegraph_service.challenge.schema import MemberRole, State, Submission
from spicegraph_service.challenge.tasks import Prepare, Prepared, Report, Reported
from spicegraph_service.server import validation
from spicegraph_service.server.interceptor import current_call
from spicegraph_service.server.status import not_found, refused, unauthenticated, unavailable, wrong, wrong_references

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy.orm import Session

    from spicegraph_service.challenge.files import FaultRow
    from spicegraph_service.challenge.leaderboard import ScorerVersion
    from spicegraph_service.challenge.runner import ChallengeState
    from spicegraph_service.challenge.schema import Submission
    from spicegraph_service.server.interceptor import Context

_UPLOADS_AT_ONCE = 4  # of one user; others wait
_SHOWN = 60
_PREPARING = Allowance(memory_bytes=8 << 30, seconds=600)
_LOOK_EVERY_S = 0.5
_LOOK_SELDOM_S = 2.0
_PATIENCE_S = 60.0
_REPORTING = Allowance(memory_bytes=0, seconds=3600)
_REPORT_IMAGES = 500
_MOST_REPORT_IMAGES = 5_000
_CHUNK = 1 << 20
_Row = TypeVar("_Row")


class ChallengeServicer(ChallengeServiceServicer):
    """Answers organisers and participants."""

    def __init__(self, state: ChallengeState) -> None:
        self._state = state
        self._files = state.files
        self._uploads: defaultdict[int, asyncio.Semaphore] = defaultdict(_turns)

    def _scorer(self) -> ScorerVersion:
        if self._state.scorer is None:
            raise unavailable("LOADING", "the server is not ready: its workers are loading", 1.0)
        return self._state.scorer

    async def CreateChallenge(self, request: pb.CreateChallengeRequest, context: Context) -> pb.CreateChallengeResponse:
        """Create a challenge."""
        del context
        account = account_of_call()
        if not account.creates:
            account.check_organises()
        new = messages.new_challenge(request.challenge, self._scorer().workers)
        self._check_metrics(new.metrics)
        self._check_score(new.primary_score, new.metrics)

        def create(session: Session, now: datetime) -> pb.Challenge:
            return messages.challenge_message(catalogue.add_challenge(session, account, new, now))

        return pb.CreateChallengeResponse(challenge=await self._state.transactions.write(create))

    def _check_metrics(self, metrics: tuple[str, ...]) -> None:
        known = self._scorer().signatures
        if not metrics or len(set(metrics)) < len(metrics):
            raise wrong("challenge.metrics", "at least one metric, each once")
        validation.check_metrics(metrics, list(known))

    def _check_score(self, score: str, metrics: Sequence[str]) -> None:
        """Refuse a score to rank by that no submission will have."""
        known = self._scorer().scores
        names = [name for metric in metrics for name in known.get(metric, ())]
        if score and score not in names:
            shown = score if len(score) <= _SHOWN else score[:_SHOWN] + "..."
            raise wrong("challenge.primary_score", f"there is no score {shown!a}; the metrics give {', '.join(names)}")

    async def UpdateChallenge(self, request: pb.UpdateChallengeRequest, context: Context) -> pb.UpdateChallengeResponse:
        """Change a challenge."""
        del context
        account = account_of_call()

        def update(session: Session, _now: datetime) -> pb.Challenge:
            challenge = catalogue.find_challenge(session, request.name, lock=True)
            account.check_may(MemberRole.ORGANISER, challenge)
            messages.change_challenge(challenge, request)
            if request.HasField("primary_score"):
                self._check_score(challenge.primary_score, challenge.metrics)
            return messages.challenge_message(challenge)

        return pb.UpdateChallengeResponse(challenge=await self._state.transactions.write(update))

    async def GetChallenge(self, request: pb.GetChallengeRequest, context: Context) -> pb.GetChallengeResponse:
        """Return a challenge, and what the caller may still submit."""
        del context
        account = account_of_call()

        def get(session: Session, now: datetime) -> pb.GetChallengeResponse:
            challenge = catalogue.find_challenge(session, request.name)
            used = submissions.usage(session, challenge, account.user_id, now)
            return pb.GetChallengeResponse(
                challenge=messages.challenge_message(challenge),
                quota=pb.Quota(used_today=used.today, used_total=used.total, left=used.left(challenge)),
                role=messages.member_role_value(account.role_in(challenge)),
            )

        return await self._state.transactions.read(get)

    async def ListChallenges(self, request: pb.ListChallengesRequest, context: Context) -> pb.ListChallengesResponse:
        """List the challenges."""
        del context
        size = validation.check_page_size(request.page_size)

        def find(session: Session, _now: datetime) -> list[pb.Challenge]:
            validation.check_page_token(request.page_token, accounts.NAME)
            found = catalogue.list_challenges(session, request.page_token, size + 1)
            return [messages.challenge_message(challenge) for challenge in found]

        found, more = _page(await self._state.transactions.read(find), size)
        return pb.ListChallengesResponse(challenges=found, next_page_token=found[-1].name if more else "")

    async def DeleteChallenge(self, request: pb.DeleteChallengeRequest, context: Context) -> pb.DeleteChallengeResponse:
        """Delete a challenge without submissions."""
        del context
        account = account_of_call()
        await self._state.transactions.write(
            lambda session, _now: catalogue.remove_challenge(session, account, request.name)
        )
        return pb.DeleteChallengeResponse()

    async def SetChallengeMember(
        self, request: pb.SetChallengeMemberRequest, context: Context
    ) -> pb.SetChallengeMemberResponse:
        """Say what a user may do in a challenge."""
        del context
        account = account_of_call()
        role = messages.member_role_of(request.role)

        def place(session: Session, _now: datetime) -> None:
            challenge = catalogue.find_challenge(session, request.challenge)
            if request.user != account.name:  # who may not, does not learn which users there are
                account.check_may(MemberRole.OWNER, challenge)
            user = accounts.find_user(session, request.user)
            catalogue.set_member(session, account, request.challenge, user, role)

        await self._state.transactions.write(place)
        return pb.SetChallengeMemberResponse()

    async def ListChallengeMembers(
        self, request: pb.ListChallengeMembersRequest, context: Context
    ) -> pb.ListChallengeMembersResponse:
        """List the members of a challenge."""
        del context
        account = account_of_call()

        def find(session: Session, _now: datetime) -> list[pb.ChallengeMember]:
            challenge = catalogue.find_challenge(session, request.challenge)
            account.check_may(MemberRole.VIEWER, challenge)
            return [
                pb.ChallengeMember(user=one.user.name, role=messages.member_role_value(one.role))
                for one in sorted(challenge.members, key=lambda one: one.user.name)
            ]

        return pb.ListChallengeMembersResponse(members=await self._state.transactions.read(find))

    async def UploadReferences(
        self, request_iterator: AsyncIterator[pb.UploadReferencesRequest], context: Context
    ) -> pb.UploadReferencesResponse:
        """Take COCO annotations as references."""
        del context
        account = account_of_call()
        target, chunks = await messages.first(request_iterator, "target")
        transactions = self._state.transactions
        await transactions.read(lambda session, _now: messages.check_target(session, target, account))
        async with self._uploads[account.user_id]:
            with self._files.incoming() as incoming, self._files.workspace() as folder:
                most = self._state.config.reference_bytes
                key = await messages.receive(chunks, incoming, transactions, most_bytes=most)
                output = folder / "references"
                prepared = await self._state.sandbox.run(Prepare(str(incoming.path), str(output)), Prepared, _PREPARING)
                if prepared.faults:
                    raise wrong_references(prepared.faults)
                file = await transactions.thread(lambda: self._files.adopt(output))
                new = catalogue.NewReferences(key, file, prepared.image_count, prepared.caption_count)

                def place(session: Session, _now: datetime) -> pb.Challenge:
                    found = catalogue.place_references(
                        session, target.challenge, target.split, target.reference_set, new
                    )
                    self._files.keep(incoming, key)
                    session.flush()
                    return messages.challenge_message(found)

                challenge = await transactions.write(place)
        self._state.nudge()
        return pb.UploadReferencesResponse(challenge=challenge)

    async def CreateUser(self, request: pb.CreateUserRequest, context: Context) -> pb.CreateUserResponse:
        """Add a user."""
        del context
        organiser()
        role = messages.role_of(request.role)
        expires = messages.moment_of("expire_time", request.expire_time)

        def create(session: Session, now: datetime) -> pb.CreateUserResponse:
            user, secret = accounts.add_user(session, request.name, role, now, expires=expires)
            return pb.CreateUserResponse(user=messages.user_message(user), secret=secret)

        return await self._state.transactions.write(create)

    async def ListUsers(self, request: pb.ListUsersRequest, context: Context) -> pb.ListUsersResponse:
        """List the users."""
        del context
        organiser()
        size = validation.check_page_size(request.page_size)

        def find(session: Session, _now: datetime) -> list[pb.User]:
            validation.check_page_token(request.page_token, accounts.NAME)
            found = accounts.list_users(session, request.page_token, size + 1)
            return [messages.user_message(user) for user in found]

        found, more = _page(await self._state.transactions.read(find), size)
        return pb.ListUsersResponse(users=found, next_page_token=found[-1].name if more else "")

    async def DeleteUser(self, request: pb.DeleteUserRequest, context: Context) -> pb.DeleteUserResponse:
        """Shut a user out."""
        del context
        if organiser().name == request.name:
            raise wrong("name", "is your own: another organiser must do that")
        await self._state.transactions.write(lambda session, now: accounts.remove_user(session, request.name, now))
        return pb.DeleteUserResponse()

    async def CreateUserToken(self, request: pb.CreateUserTokenRequest, context: Context) -> pb.CreateUserTokenResponse:
        """Make a token."""
        del context
        account = account_of_call()
        expires = messages.moment_of("expire_time", request.expire_time)

        def create(session: Session, now: datetime) -> pb.CreateUserTokenResponse:
            token, secret = accounts.add_token(session, account, request.user, request.name, now, expires=expires)
            return pb.CreateUserTokenResponse(token=messages.token_message(token), secret=secret)

        return await self._state.transactions.write(create)

    async def RevokeUserToken(self, request: pb.RevokeUserTokenRequest, context: Context) -> pb.RevokeUserTokenResponse:
        """Revoke a token."""
        del context
        account = account_of_call()
        await self._state.transactions.write(lambda session, _now: accounts.revoke_token(session, account, request.id))
        return pb.RevokeUserTokenResponse()

    async def CreateSubmission(
        self, request_iterator: AsyncIterator[pb.CreateSubmissionRequest], context: Context
    ) -> pb.CreateSubmissionResponse:
        """Take a submission."""
        del context
        account = account_of_call()
        settings, chunks = await messages.first(request_iterator, "settings")
        messages.check_settings(settings)
        transactions = self._state.transactions
        splits = await transactions.read(lambda session, _now: messages.split_names(session, settings))
        async with self._uploads[account.user_id]:
            with self._files.incoming() as incoming:
                most = self._state.config.submission_bytes
                key = await messages.receive(chunks, incoming, transactions, most_bytes=most)
                new = submissions.NewSubmission(
                    settings.challenge,
                    messages.method_name(settings, splits),
                    settings.description,
                    settings.file_name,
                    settings.split,
                    key,
                    incoming.size,
                    settings.idempotency_key or None,
                )

                def accept(session: Session, now: datetime) -> pb.CreateSubmissionResponse:
                    found, existed = submissions.accept(session, account, new, now)
                    if not existed:
                        self._files.keep(incoming, key)
                    return pb.CreateSubmissionResponse(
                        submission=self._message(session, found, account, now), existed=existed
                    )

                # A client that goes away at this moment leaves all of it or nothing: without the file, no commit.
                response = await transactions.write(accept)
        self._state.nudge()
        return response

    async def GetSubmission(self, request: pb.GetSubmissionRequest, context: Context) -> pb.GetSubmissionResponse:
        """Return a submission."""
        del context
        return pb.GetSubmissionResponse(submission=await self._submission(account_of_call(), request.id))

    async def ListSubmissions(self, request: pb.ListSubmissionsRequest, context: Context) -> pb.ListSubmissionsResponse:
        """List submissions."""
        del context
        account = account_of_call()
        size = validation.check_page_size(request.page_size)

        validation.check_page_token(request.page_token, submissions.ID)

        def find(session: Session, now: datetime) -> list[pb.Submission]:
            challenge = catalogue.find_challenge(session, request.challenge)
            if request.user not in {"", account.name}:
                account.check_may(MemberRole.VIEWER, challenge)
            found = submissions.list_submissions(
                session, account, challenge, user=request.user, after=request.page_token, count=size + 1
            )
            return [self._message(session, submission, account, now) for submission in found]

        found, more = _page(await self._state.transactions.read(find), size)
        return pb.ListSubmissionsResponse(submissions=found, next_page_token=found[-1].id if more else "")

    async def WatchSubmission(
        self, request: pb.WatchSubmissionRequest, context: Context
    ) -> AsyncIterator[pb.WatchSubmissionResponse]:
        """Return a submission whenever it has changed."""
        del context
        account = account_of_call()
        shown: pb.Submission | None = None
        changed = time.monotonic()
        while shown is None or not shown.HasField("end_time"):
            now = await self._submission(account, request.id)
            if now != shown:
                shown, changed = now, time.monotonic()
                yield pb.WatchSubmissionResponse(submission=now)
                continue
            waited = time.monotonic() - changed
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S if waited < _PATIENCE_S else _LOOK_SELDOM_S):
                    await self._state.leaving.wait()
                    raise unavailable("STOPPING", "the server stops; watch again", 1.0)

    async def ListSubmissionFaults(
        self, request: pb.ListSubmissionFaultsRequest, context: Context
    ) -> pb.ListSubmissionFaultsResponse:
        """List the faults of a refused file."""
        del context
        account = account_of_call()
        size = validation.check_page_size(request.page_size)
        start = _place(request.page_token)

        def find(session: Session, _now: datetime) -> list[FaultRow]:
            return self._faults(submissions.find_submission(session, account, request.id))

        rows = await self._state.transactions.read(find)
        found, more = _page(rows[start:], size)
        return pb.ListSubmissionFaultsResponse(
            faults=map(messages.fault_message, found), next_page_token=str(start + size) if more else ""
        )

    async def CancelSubmission(
        self, request: pb.CancelSubmissionRequest, context: Context
    ) -> pb.CancelSubmissionResponse:
        """Cancel a submission."""
        del context
        account = account_of_call()

        def cancel(session: Session, now: datetime) -> pb.Submission:
            found = submissions.cancel(session, account, request.id, now)
            return self._message(session, found, account, now)

        return pb.CancelSubmissionResponse(submission=await self._state.transactions.write(cancel))

    async def ChooseSubmission(
        self, request: pb.ChooseSubmissionRequest, context: Context
    ) -> pb.ChooseSubmissionResponse:
        """Choose the submission that stands on the leaderboard."""
        del context
        account = account_of_call()
        chosen = request.submission if request.HasField("submission") else None
        await self._state.transactions.write(
            lambda session, _now: submissions.choose(session, account, request.challenge, chosen)
        )
        return pb.ChooseSubmissionResponse()

    async def _submission(self, account: Account, submission_id: str) -> pb.Submission:
        def find(session: Session, now: datetime) -> pb.Submission:
            return self._message(session, submissions.find_submission(session, account, submission_id), account, now)

        return await self._state.transactions.read(find)

    def _message(self, session: Session, submission: Submission, account: Account, now: datetime) -> pb.Submission:
        faults = self._faults(submission) if submission.state is State.FAILED else []
        return messages.submission_message(session, submission, account, now, scorer=self._state.scorer, faults=faults)

    def _faults(self, submission: Submission) -> list[FaultRow]:
        return read_faults(self._files.path(submission.faults)) if submission.faults else []

    async def GetLeaderboard(self, request: pb.GetLeaderboardRequest, context: Context) -> pb.GetLeaderboardResponse:
        """Return a leaderboard."""
        del context
        account = account_of_call()

        def find(session: Session, now: datetime) -> pb.GetLeaderboardResponse:
            challenge = catalogue.find_challenge(session, request.challenge)
            split = catalogue.find_split(challenge, request.split)
            leaderboard.check_visible(split, challenge, account, now)
            reference_set = catalogue.find_reference_set(split, request.reference_set)
            found = leaderboard.standing(session, split, reference_set, request.score, account)
            return messages.leaderboard_message(found, account, now, scorer=self._state.scorer)

        return await self._state.transactions.read(find)

    async def GetImageInfo(
        self, request: pb.GetImageInfoRequest, context: Context
    ) -> AsyncIterator[pb.GetImageInfoResponse]:
        """Return the images of a split."""
        del context
        account = account_of_call()

        def find(session: Session, now: datetime) -> list[Path]:
            challenge = catalogue.find_challenge(session, request.challenge)
            split = catalogue.find_split(challenge, request.split)
            if not account.may(MemberRole.VIEWER, challenge):
                submissions.check_opened(challenge, now)
            return [self._files.path(one.file) for one in split.reference_sets if one.file]

        paths = await self._state.transactions.read(find)
        content = await self._state.transactions.thread(lambda: image_info(paths))
        for start in range(0, len(content), _CHUNK):
            yield pb.GetImageInfoResponse(chunk=content[start : start + _CHUNK])

    async def RescoreChallenge(
        self, request: pb.RescoreChallengeRequest, context: Context
    ) -> pb.RescoreChallengeResponse:
        """Have submissions scored again."""
        del context
        account = account_of_call()
        scorer = self._scorer()

        def rescore(session: Session, _now: datetime) -> int:
            challenge = catalogue.find_challenge(session, request.challenge, lock=True)
            account.check_may(MemberRole.ORGANISER, challenge)
            return leaderboard.rescore(session, challenge, scorer, everything=request.all)

        count = await self._state.transactions.write(rescore)
        self._state.nudge()
        return pb.RescoreChallengeResponse(submission_count=count)

    async def GetSubmissionReport(
        self, request: pb.GetSubmissionReportRequest, context: Context
    ) -> AsyncIterator[pb.GetSubmissionReportResponse]:
        """Make an error report."""
        del context
        account = account_of_call()
        if not account.members:
            account.check_organises()
        limit = request.image_limit or _REPORT_IMAGES
        if not 1 <= limit <= _MOST_REPORT_IMAGES:
            raise wrong("image_limit", f"1 to {_MOST_REPORT_IMAGES:,}, or 0 for {_REPORT_IMAGES}")
        with self._files.workspace() as folder:
            output = folder / "report"

            def plan(session: Session, _now: datetime) -> Report:
                submission = submissions.find_submission(session, account, request.id)
                account.check_may(MemberRole.VIEWER, submission.challenge)
                return self._report(submission, request, limit=limit, output=output)

            task = await self._state.transactions.read(plan)
            await self._state.reports.run(task, Reported, _REPORTING)
            with output.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    yield pb.GetSubmissionReportResponse(chunk=chunk)

    def _report(
        self, submission: Submission, request: pb.GetSubmissionReportRequest, *, limit: int, output: Path
    ) -> Report:
        for found in submission.files:
            if request.split in {found.split.name, ""}:
                reference_set = catalogue.find_reference_set(found.split, request.reference_set)
                challenge = submission.challenge
                return Report(
                    results=str(self._files.path(found.file)),
                    references=str(self._files.path(reference_set.file or "")),
                    name=submission.method,
                    title=f"{challenge.title}: {found.split.name} {reference_set.name}",
                    metrics=tuple(challenge.metrics),
                    pipeline=SCENE if challenge.graph_style == "scene" else self._state.config.pipeline,
                    limit=limit,
                    output=str(output),
                    data=self._state.data,
                    spice_text=challenge.spice_text,
                )
        if not submission.files:
            raise refused("NO_RESULTS", "the submission has no sound results", submission.id)
        raise not_found("split", request.split)


def _turns() -> asyncio.Semaphore:
    return asyncio.Semaphore(_UPLOADS_AT_ONCE)


def account_of_call() -> Account:
    """Return who makes the call under way.

    Raises:
        CallError: UNAUTHENTICATED.
    """
    caller = current_call().caller
    if not isinstance(caller, Account):
        raise unauthenticated("the call needs a user's token")
    return caller


def organiser() -> Account:
    """Return who makes the call under way, if they are an organiser.

    Raises:
        CallError: UNAUTHENTICATED, or PERMISSION_DENIED.
    """
    account = account_of_call()
    account.check_organises()
    return account


def _page(rows: list[_Row], size: int) -> tuple[list[_Row], bool]:
    """Return the rows of a page, and whether there are more; the list that they are from begins with the page."""
    return rows[:size], len(rows) > size


def _place(token: str) -> int:
    if not token:
        return 0
    if not (token.isascii() and token.isdigit() and len(token) < 10):
        raise wrong("page_token", "is not a page token of this list")
    return int(token)
