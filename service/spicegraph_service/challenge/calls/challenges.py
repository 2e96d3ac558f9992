"""Calls about challenges and their references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_service.challenge import catalogue, convert, submissions, uploads
from spicegraph_service.challenge.calls.shared import Calls, account_of_call, organiser
from spicegraph_service.challenge.children import Allowance
from spicegraph_service.challenge.errors import wrong, wrong_references
from spicegraph_service.challenge.tasks import Prepare, Prepared
from spicegraph_service.server import validation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_service.challenge.schema import Challenge
    from spicegraph_service.server.gate import Context

__all__ = ["ChallengeCalls"]

_SHOWN = 60
_PREPARING = Allowance(memory_bytes=8 << 30, seconds=600)


class ChallengeCalls(Calls):
    """Challenges: created, changed, listed, deleted, given references."""

    async def CreateChallenge(self, request: pb.CreateChallengeRequest, context: Context) -> pb.CreateChallengeResponse:
        """Create a challenge."""
        del context
        organiser()
        new = convert.new_challenge(request.challenge)
        self._check_metrics(new.metrics)
        self._check_score(new.primary_score, new.metrics)

        def create(session: Session, now: datetime) -> pb.Challenge:
            return convert.challenge_message(catalogue.add_challenge(session, new, now))

        return pb.CreateChallengeResponse(challenge=await self._host.transactions.write(create))

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
        organiser()

        def update(session: Session, _now: datetime) -> pb.Challenge:
            challenge = catalogue.find_challenge(session, request.name, lock=True)
            _change(challenge, request)
            if request.HasField("primary_score"):
                self._check_score(challenge.primary_score, challenge.metrics)
            return convert.challenge_message(challenge)

        return pb.UpdateChallengeResponse(challenge=await self._host.transactions.write(update))

    async def GetChallenge(self, request: pb.GetChallengeRequest, context: Context) -> pb.GetChallengeResponse:
        """Return a challenge, and what the caller may still submit."""
        del context
        account = account_of_call()

        def get(session: Session, now: datetime) -> pb.GetChallengeResponse:
            challenge = catalogue.find_challenge(session, request.name)
            used = submissions.usage(session, challenge, account.user_id, now)
            return pb.GetChallengeResponse(
                challenge=convert.challenge_message(challenge),
                quota=pb.Quota(used_today=used.today, used_total=used.total, left=used.left(challenge)),
            )

        return await self._host.transactions.read(get)

    async def ListChallenges(self, request: pb.ListChallengesRequest, context: Context) -> pb.ListChallengesResponse:
        """List the challenges."""
        del context
        size = validation.check_page_size(request.page_size)

        def find(session: Session, _now: datetime) -> list[pb.Challenge]:
            found = catalogue.list_challenges(session, request.page_token, size + 1)
            return [convert.challenge_message(challenge) for challenge in found]

        found = await self._host.transactions.read(find)
        return pb.ListChallengesResponse(
            challenges=found[:size], next_page_token=found[size - 1].name if len(found) > size else ""
        )

    async def DeleteChallenge(self, request: pb.DeleteChallengeRequest, context: Context) -> pb.DeleteChallengeResponse:
        """Delete a challenge without submissions."""
        del context
        organiser()
        await self._host.transactions.write(lambda session, _now: catalogue.remove_challenge(session, request.name))
        return pb.DeleteChallengeResponse()

    async def UploadReferences(
        self, request_iterator: AsyncIterator[pb.UploadReferencesRequest], context: Context
    ) -> pb.UploadReferencesResponse:
        """Take COCO annotations as references."""
        del context
        account = organiser()
        target, chunks = await uploads.first(request_iterator, "target")
        transactions = self._host.transactions
        await transactions.read(lambda session, _now: _check_target(session, target))
        async with self._uploads[account.user_id]:
            with self._files.incoming() as incoming, self._files.workspace() as folder:
                most = self._host.config.reference_bytes
                key = await uploads.receive(chunks, incoming, transactions, most_bytes=most)
                output = folder / "references"
                prepared = await self._host.children.run(Prepare(str(incoming.path), str(output)), Prepared, _PREPARING)
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
                    return convert.challenge_message(found)

                challenge = await transactions.write(place)
        self._host.nudge()
        return pb.UploadReferencesResponse(challenge=challenge)


def _check_target(session: Session, target: pb.ReferencesTarget) -> None:
    challenge = catalogue.find_challenge(session, target.challenge)
    for field in ("split", "reference_set"):
        if not getattr(target, field):
            raise wrong(f"target.{field}", "is empty")
    catalogue.find_reference_set(catalogue.find_split(challenge, target.split), target.reference_set)


def _change(challenge: Challenge, request: pb.UpdateChallengeRequest) -> None:
    """Change what a request names."""
    for field in ("title", "description", "primary_score", "daily_limit", "total_limit"):
        if request.HasField(field):
            setattr(challenge, field, getattr(request, field))
    if request.HasField("open_time"):
        challenge.opens = convert.moment_of("open_time", request.open_time)
    if request.HasField("close_time"):
        challenge.closes = convert.moment_of("close_time", request.close_time)
    catalogue.check_texts(challenge.title, challenge.description, challenge.primary_score)
    catalogue.check_limits(challenge.daily_limit, challenge.total_limit)
    catalogue.check_times(challenge.opens, challenge.closes)
    for place, change in enumerate(request.visibilities):
        split = catalogue.find_split(challenge, change.split)
        path = f"visibilities[{place}]"
        if change.score_visibility:
            split.score_visibility = convert.visibility_of(f"{path}.score_visibility", change.score_visibility)
        if change.leaderboard_visibility:
            split.leaderboard_visibility = convert.visibility_of(
                f"{path}.leaderboard_visibility", change.leaderboard_visibility
            )
