"""Scores as OpenTelemetry events ``gen_ai.evaluation.result``, beside the trace of the model's call.

Source: OpenTelemetry semantic conventions for generative AI, events. The event belongs to the span of the call that is
scored: emit it while that span is current, or give its context.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opentelemetry._logs import SeverityNumber, get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context

EVENT = "gen_ai.evaluation.result"


def emit_scores(
    scores: Mapping[str, float],
    *,
    response_id: str | None = None,
    context: Context | None = None,
    provider: LoggerProvider | None = None,
) -> None:
    """Emit one event per score that is defined.

    Args:
        scores: by name, as ``CaptionMetric.compute`` or ``CaptionMetric.score_one`` returns them.
        response_id: the id of the model's response, where its span is not at hand.
        context: the context with the span of the model's call; ``None``: the current one.
        provider: where events go; ``None``: the program's own.
    """
    logger = get_logger("spicegraph", logger_provider=provider)
    for name, value in scores.items():
        if math.isnan(value):
            continue
        attributes: dict[str, str | float] = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value}
        if response_id is not None:
            attributes["gen_ai.response.id"] = response_id
        logger.emit(event_name=EVENT, severity_number=SeverityNumber.INFO, context=context, attributes=attributes)
