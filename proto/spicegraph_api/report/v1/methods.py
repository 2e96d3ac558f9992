"""The methods of reports: which scope a token needs, and which calls may be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_api.v1.methods import SCORE_SCOPE, Method

if TYPE_CHECKING:
    from collections.abc import Mapping

METHODS: Mapping[str, Mapping[str, Method]] = {
    "spicegraph.report.v1.ReportService": {"Analyze": Method(SCORE_SCOPE), "RenderReport": Method(SCORE_SCOPE)}
}
"""Every method of every service, by the service's full name."""
