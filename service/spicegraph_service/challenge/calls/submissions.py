"""Calls about submissions."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_service.challenge import catalogue, convert, submissions, uploads
from spicegraph_service.challenge.calls.shared import Calls, account_of_call
from spicegraph_service.challenge.errors import wrong
from spicegraph_service.challenge.frames import read_faults
from spicegraph_service.challenge.schema import State, Submission
from spicegraph_service.server import validation
from spicegraph_service.server.status import unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_service.challenge.accounts import Account
    from spicegraph_service.challenge.frames import FaultRow
    from spicegraph_service.server.gate import Context

__all__ = ["SubmissionCalls"]

_LOOK_EVERY_S = 0.5
_LOOK_SELDOM_S = 2.0
_PATIENCE_S = 60.0


class SubmissionCalls(Calls):
    """Submissions: sent, watched, listed, cancelled, chosen."""

    async def CreateSubmission(
        self, request_iterator: AsyncIterator[pb.CreateSubmissionRequest], context: Context
    ) -> pb.CreateSubmissionResponse:
        """Take a submission."""
        del context
        account = account_of_call()
        settings, chunks = await uploads.first(request_iterator, "settings")
        uploads.check_settings(settings)
        transactions = self._host.transactions
        splits = await transactions.read(lambda session, _now: _split_names(session, settings))
        async with self._uploads[account.user_id]:
            with self._files.incoming() as incoming:
                most = self._host.config.submission_bytes
                key = await uploads.receive(chunks, incoming, transactions, most_bytes=most)
                new = submissions.NewSubmission(
                    settings.challenge,
                    uploads.method_name(settings, splits),
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
        self._host.nudge()
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

        def find(session: Session, now: datetime) -> list[pb.Submission]:
            challenge = catalogue.find_challenge(session, request.challenge)
            found = submissions.list_submissions(
                session, account, challenge, user=request.user, after=request.page_token, count=size + 1
            )
            return [self._message(session, submission, account, now) for submission in found]

        found = await self._host.transactions.read(find)
        return pb.ListSubmissionsResponse(
            submissions=found[:size], next_page_token=found[size - 1].id if len(found) > size else ""
        )

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
                    await self._host.leaving.wait()
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

        rows = await self._host.transactions.read(find)
        end = start + size
        return pb.ListSubmissionFaultsResponse(
            faults=[convert.fault_message(row) for row in rows[start:end]],
            next_page_token=str(end) if len(rows) > end else "",
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

        return pb.CancelSubmissionResponse(submission=await self._host.transactions.write(cancel))

    async def ChooseSubmission(
        self, request: pb.ChooseSubmissionRequest, context: Context
    ) -> pb.ChooseSubmissionResponse:
        """Choose the submission that stands on the leaderboard."""
        del context
        account = account_of_call()
        chosen = request.submission if request.HasField("submission") else None
        await self._host.transactions.write(
            lambda session, _now: submissions.choose(session, account, request.challenge, chosen)
        )
        return pb.ChooseSubmissionResponse()

    async def _submission(self, account: Account, submission_id: str) -> pb.Submission:
        def find(session: Session, now: datetime) -> pb.Submission:
            return self._message(session, submissions.find_submission(session, account, submission_id), account, now)

        return await self._host.transactions.read(find)

    def _message(self, session: Session, submission: Submission, account: Account, now: datetime) -> pb.Submission:
        faults = self._faults(submission) if submission.state is State.FAILED else []
        return convert.submission_message(session, submission, account, now, scorer=self._host.scorer, faults=faults)

    def _faults(self, submission: Submission) -> list[FaultRow]:
        return read_faults(self._files.path(submission.faults)) if submission.faults else []


def _split_names(session: Session, settings: pb.SubmissionSettings) -> list[str]:
    challenge = catalogue.find_challenge(session, settings.challenge)
    names = [split.name for split in challenge.splits]
    if settings.split and settings.split not in names:
        raise wrong("settings.split", f"is no split of this challenge; there are {', '.join(names)}")
    return names


def _place(token: str) -> int:
    if not token:
        return 0
    if not (token.isascii() and token.isdigit() and len(token) < 10):
        raise wrong("page_token", "is no token of this list")
    return int(token)
