"""What all calls share: who calls, and what scores."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from spicegraph_api.v1.challenge_pb2_grpc import ChallengeServiceServicer
from spicegraph_service.server.gate import current_call
from spicegraph_service.server.status import unauthenticated, unavailable

if TYPE_CHECKING:
    from spicegraph_service.challenge.accounts import Account
    from spicegraph_service.challenge.host import ChallengeHost
    from spicegraph_service.challenge.leaderboard import ScorerVersion

__all__ = ["Calls", "account_of_call", "organiser"]

_UPLOADS_AT_ONCE = 4  # of one user; others wait


class Calls(ChallengeServiceServicer):
    """The server's side of some calls; those of all modules are joined in ``ChallengeServicer``."""

    def __init__(self, host: ChallengeHost) -> None:
        self._host = host
        self._files = host.files
        self._uploads: defaultdict[int, asyncio.Semaphore] = defaultdict(_turns)

    def _scorer(self) -> ScorerVersion:
        if self._host.scorer is None:
            raise unavailable("LOADING", "the server is not ready: its workers are loading", 1.0)
        return self._host.scorer


def _turns() -> asyncio.Semaphore:
    return asyncio.Semaphore(_UPLOADS_AT_ONCE)


def account_of_call() -> Account:
    """Return who makes the call under way.

    Raises:
        CallError: UNAUTHENTICATED.
    """
    caller = current_call().caller
    if caller is None or caller.account is None:
        raise unauthenticated("the call needs a user's token")
    return caller.account


def organiser() -> Account:
    """Return who makes the call under way, if they are an organiser.

    Raises:
        CallError: UNAUTHENTICATED, or PERMISSION_DENIED.
    """
    account = account_of_call()
    account.check_organises()
    return account
