"""Whether times of calls tell a tenant what another one has parsed, scored or stored.

One tenant parses captions, scores items and stores reference sets. Another one then times calls with the same texts
and ids, and with texts and ids that nobody has used, in random order. For each kind: the medians, and how often a call
of the first group took longer than one of the second (ties count half; .5 where the times are alike). The last line
shows that the measurement would see a cache: the caller's own texts, again.
Usage: python bench/tenant_timing.py [--calls N]
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from load.captions import REFERENCES, new_candidates
from load.server import server
from spicegraph_service.client import Client, item
from spicegraph_service.rpc.auth import create_token
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    with suppress(grpc.RpcError):
        call()
    return time.perf_counter() - began


def longer(used: Sequence[float], fresh: Sequence[float]) -> float:
    """Return the share of pairs in which the first took longer."""
    pairs = itertools.product(used, fresh)
    return sum((a > b) + (a == b) / 2 for a, b in pairs) / (len(used) * len(fresh))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--calls", type=int, default=200, help="calls of each kind with used values, and as many with new"
    )
    count = parser.parse_args().calls
    chance = random.Random(0)
    supply = new_candidates()

    def texts() -> list[str]:
        return [next(supply).text for _ in range(count)]

    def ids() -> list[str]:
        return [f"{chance.getrandbits(128):032x}" for _ in range(count)]

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "tenants.db"
        with closing(open_store(str(store))) as opened:
            first, second = (create_token(opened, name, ("score", "references"))[0] for name in ("first", "second"))
        with (
            server(f"--store={store}", "--tokens=always") as running,
            Client(running.address, token=first) as other,
            Client(running.address, token=second) as caller,
        ):

            def parse(client: Client) -> Callable[[str], object]:
                return lambda text: list(client.parse([text]))

            def score(client: Client) -> Callable[[str], object]:
                return lambda text: client.score([item("1", text, REFERENCES[0])])

            def same_references(client: Client) -> Callable[[str], object]:
                return lambda text: client.score([item("1", "a dog", [text, f"{text} again"])])

            def probe(client: Client) -> Callable[[str], object]:
                return lambda set_id: client.score([item("1", "a dog")], reference_set=set_id)

            sets = [other.create_reference_set({"1": [text]}).id for text in texts()]
            kinds = {
                "captions that another tenant has parsed": (texts(), texts(), parse, other),
                "candidates that another tenant has scored": (texts(), texts(), score, other),
                "references that another tenant has scored against": (texts(), texts(), same_references, other),
                "ids of another tenant's reference sets": (sets, ids(), probe, other),
                "captions that the caller has parsed": (texts(), texts(), parse, caller),
            }
            worst = 0.0
            deviation = math.sqrt((2 * count + 1) / (12 * count * count))  # of the share, where the groups are alike
            for name, (used, fresh, make, user) in kinds.items():
                of_user, own = make(user), make(caller)
                for value in used:
                    of_user(value)
                for value in texts()[:20]:  # the caller's connection, and its parses of what all items share
                    timed(lambda value=value, own=own: own(value))  # type: ignore[misc]
                order = [(value, True) for value in used] + [(value, False) for value in fresh]
                chance.shuffle(order)
                times: dict[bool, list[float]] = {True: [], False: []}
                for value, known in order:
                    times[known].append(timed(lambda value=value, own=own: own(value)))  # type: ignore[misc]
                share = longer(times[True], times[False])
                medians = [1000 * statistics.median(times[known]) for known in (True, False)]
                print(f"{name}: {medians[0]:.2f} ms, new {medians[1]:.2f} ms; longer in {share:.3f} of pairs")
                if user is other:
                    worst = max(worst, abs(share - 0.5) / deviation)
    print(f"farthest from .5: {worst:.1f} standard deviations (of {len(kinds) - 1} kinds); target: <= 3")
    return 0 if worst <= 3 else 1


if __name__ == "__main__":
    raise SystemExit(main())
