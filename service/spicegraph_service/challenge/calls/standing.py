"""Calls about scores: leaderboards, scoring again, error reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_service.challenge import catalogue, convert, leaderboard, submissions
from spicegraph_service.challenge.calls.shared import Calls, account_of_call, organiser
from spicegraph_service.challenge.children import Allowance
from spicegraph_service.challenge.errors import refused, wrong
from spicegraph_service.challenge.tasks import Report, Reported
from spicegraph_service.server.status import not_found

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy.orm import Session

    from spicegraph_service.challenge.schema import Submission
    from spicegraph_service.server.gate import Context

__all__ = ["StandingCalls"]

_REPORTING = Allowance(memory_bytes=0, seconds=3600)
_REPORT_IMAGES = 500
_MOST_REPORT_IMAGES = 5_000
_CHUNK = 1 << 20


class StandingCalls(Calls):
    """Leaderboards and error reports: shown; scores: made again."""

    async def GetLeaderboard(self, request: pb.GetLeaderboardRequest, context: Context) -> pb.GetLeaderboardResponse:
        """Return a leaderboard."""
        del context
        account = account_of_call()

        def find(session: Session, now: datetime) -> pb.GetLeaderboardResponse:
            challenge = catalogue.find_challenge(session, request.challenge)
            split = catalogue.find_split(challenge, request.split)
            leaderboard.check_visible(split, challenge, account, now)
            reference_set = catalogue.find_reference_set(split, request.reference_set)
            found = leaderboard.standing(session, split, reference_set, request.score)
            return convert.leaderboard_message(found, account, now, scorer=self._host.scorer)

        return await self._host.transactions.read(find)

    async def RescoreChallenge(
        self, request: pb.RescoreChallengeRequest, context: Context
    ) -> pb.RescoreChallengeResponse:
        """Have submissions scored again."""
        del context
        organiser()
        scorer = self._scorer()

        def rescore(session: Session, _now: datetime) -> int:
            challenge = catalogue.find_challenge(session, request.challenge, lock=True)
            return leaderboard.rescore(session, challenge, scorer, everything=request.all)

        count = await self._host.transactions.write(rescore)
        self._host.nudge()
        return pb.RescoreChallengeResponse(submission_count=count)

    async def GetSubmissionReport(
        self, request: pb.GetSubmissionReportRequest, context: Context
    ) -> AsyncIterator[pb.GetSubmissionReportResponse]:
        """Make an error report."""
        del context
        account = organiser()
        limit = request.image_limit or _REPORT_IMAGES
        if not 1 <= limit <= _MOST_REPORT_IMAGES:
            raise wrong("image_limit", f"1 to {_MOST_REPORT_IMAGES:,}, or 0 for {_REPORT_IMAGES}")
        with self._files.workspace() as folder:
            output = folder / "report"

            def plan(session: Session, _now: datetime) -> Report:
                submission = submissions.find_submission(session, account, request.id)
                return self._report(submission, request, limit=limit, output=output)

            task = await self._host.transactions.read(plan)
            await self._host.reports.run(task, Reported, _REPORTING)
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
                    pipeline=self._host.config.pipeline,
                    limit=limit,
                    output=str(output),
                    vectors=self._host.vectors,
                )
        if not submission.files:
            raise refused("NO_RESULTS", "the submission has no sound results", submission.id)
        raise not_found("split", request.split)
