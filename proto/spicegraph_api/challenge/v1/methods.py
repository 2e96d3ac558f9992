"""The methods of the evaluation server: users have roles instead of scopes; which calls may be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_api.v1.methods import Method

if TYPE_CHECKING:
    from collections.abc import Mapping

PUBLIC_SCOPE = "public"
"""Callers without a token may make the call, and see what is public."""

METHODS: Mapping[str, Mapping[str, Method]] = {
    "spicegraph.challenge.v1.ChallengeService": {
        "CreateChallenge": Method(repeatable=False),
        "UpdateChallenge": Method(repeatable=False),
        "GetChallenge": Method(PUBLIC_SCOPE),
        "ListChallenges": Method(),
        "DeleteChallenge": Method(repeatable=False),
        "UploadReferences": Method(),
        "SetChallengeMember": Method(),
        "ListChallengeMembers": Method(),
        "CreateUser": Method(repeatable=False),
        "ListUsers": Method(repeatable=False),
        "SetUserTeam": Method(),
        "DeleteUser": Method(repeatable=False),
        "CreateUserToken": Method(repeatable=False),
        "RevokeUserToken": Method(repeatable=False),
        "CreateSubmission": Method(),
        "GetSubmission": Method(),
        "ListSubmissions": Method(),
        "WatchSubmission": Method(),
        "ListSubmissionFaults": Method(),
        "CancelSubmission": Method(),
        "ChooseSubmission": Method(),
        "GetLeaderboard": Method(PUBLIC_SCOPE),
        "GetImageInfo": Method(),
        "RescoreChallenge": Method(repeatable=False),
        "GetSubmissionReport": Method(repeatable=False),
    }
}
"""Every method of every service, by the service's full name."""
