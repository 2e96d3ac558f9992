"""A challenge on a server with vectors of its own: scores and reports have them, and older scores say they lack them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spicegraph_graded.spice_g.building import build_table
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from arenas import Arena
    from spicegraph_api.challenge.v1 import challenge_pb2 as pb
    from spicegraph_challenge.client import ChallengeClient

pytestmark = pytest.mark.model


def vectors_of(found: pb.Submission) -> str:
    (signature,) = found.origin.signatures
    return signature.fields["vectors"]


def test_other_vectors_are_another_scorer(
    sqlite_arena: Arena, tools: type, connect: Callable[..., ChallengeClient]
) -> None:
    arena = sqlite_arena
    table = arena.folder / "own.npz"
    words = [[frozenset(text.split()) for text in texts] for texts in tools.small.values()] * 3
    made = build_table(words, name="own", dimensions=4, fewest=2, order=None)
    made.write(table)
    token = arena.organiser()
    server = arena.start()
    client = connect(server, token)
    client.create_challenge(tools.challenge("graded", metrics=["spice-g"]))
    client.upload_references("graded", "val", "c5", arena.write("references.json", tools.annotations(tools.small)))
    results = arena.write("captions_val_mine_results.json", tools.results("x"))
    *_, first = client.watch(client.submit("graded", results)[0].id)
    assert vectors_of(first).startswith("coco-train2014-")
    assert not first.origin.outdated
    assert server.stop() == 0

    client = connect(arena.start(f"--vectors={table}"), token)
    old = client.get_submission(first.id)
    assert old.origin.outdated
    assert vectors_of(old) == vectors_of(first)
    assert client.rescore("graded") == 1
    wait_until(lambda: not client.get_submission(first.id).origin.outdated)
    new = client.get_submission(first.id)
    assert vectors_of(new) == made.signature
    assert new.scores[0].scores[0].value != first.scores[0].scores[0].value
    assert made.signature in b"".join(client.report(first.id)).decode()
