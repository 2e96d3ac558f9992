"""Every metric in a real challenge: scored in parts by workers, finished in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_scorer.metrics import METRICS
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import score

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Arena

    from spicegraph_service.client import ChallengeClient

pytestmark = pytest.mark.model


def test_every_metric_is_scored_as_by_the_library(
    sqlite_arena: Arena, tools: type, connect: Callable[..., ChallengeClient]
) -> None:
    """A challenge with every metric prints the corpus scores of `spicegraph score --metrics all`, to the bit."""
    arena, names = sqlite_arena, list(METRICS)
    token = arena.organiser()
    client = connect(arena.start(), token)
    references = arena.write("references.json", tools.annotations(tools.small))
    results = arena.write("captions_val_mine_results.json", tools.results("x"))
    client.create_challenge(tools.challenge("all", metrics=names))
    client.upload_references("all", "val", "c5", references)
    *_, last = client.watch(client.submit("all", results)[0].id)
    assert last.state == pb.SubmissionState.SUBMISSION_STATE_SUCCEEDED, last
    found = {row.name: row.value if row.HasField("value") else None for row in last.scores[0].scores}
    items = read_items(str(results), references=[str(references)]).items
    result = score(items, names)
    assert found == {each.name: each.value for run in result.runs for each in run.scores}
    assert found["SPIDEr"] is not None
