"""The methods of the contract: which scope a token needs for each, and which calls may be repeated.

The server admits calls by this table, and the clients build their retry policy from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SCORE_SCOPE = "score"
REFERENCES_SCOPE = "references"


class Method(NamedTuple):
    """A method of a service.

    Attributes:
        scope: the scope that the caller's token needs; ``None``: any caller of the service. Users of the evaluation
            server have roles instead of scopes.
        repeatable: whether a call that is made twice has the effect of one, so that a client may retry it.
    """

    scope: str | None = None
    repeatable: bool = True


METHODS: Mapping[str, Mapping[str, Method]] = {
    "spicegraph.v1.EvaluationService": {
        "ParseCaptions": Method(SCORE_SCOPE),
        "Score": Method(SCORE_SCOPE),
        "ScoreStream": Method(SCORE_SCOPE),
        "GetServerInfo": Method(),
    },
    "spicegraph.v1.ReferenceService": {
        "CreateReferenceSet": Method(REFERENCES_SCOPE),
        "GetReferenceSet": Method(REFERENCES_SCOPE),
        "ListReferenceSets": Method(REFERENCES_SCOPE),
        "DeleteReferenceSet": Method(REFERENCES_SCOPE),
        "ShareReferenceSet": Method(REFERENCES_SCOPE),
    },
    "spicegraph.report.v1.ReportService": {"Analyze": Method(SCORE_SCOPE), "RenderReport": Method(SCORE_SCOPE)},
}
"""Every method of every service, by the service's full name."""
