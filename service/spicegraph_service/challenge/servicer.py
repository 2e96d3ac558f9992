"""The ``ChallengeService`` of the contract, put together from the modules of ``calls``."""

from __future__ import annotations

from spicegraph_service.challenge.calls.challenges import ChallengeCalls
from spicegraph_service.challenge.calls.standing import StandingCalls
from spicegraph_service.challenge.calls.submissions import SubmissionCalls
from spicegraph_service.challenge.calls.users import UserCalls

__all__ = ["ChallengeServicer"]


class ChallengeServicer(ChallengeCalls, UserCalls, SubmissionCalls, StandingCalls):
    """Answers organisers and participants."""
