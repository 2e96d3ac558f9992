"""What does SPICE-G cost where the tuples are given, and beside SPICE?

    python bench/spice_g_speed.py [--images 2000] [--rounds 5]

Prints items a second, one candidate and five references each, in processor time of one core, the best of several
rounds: SPICE and SPICE-G from the captions' tuples (merging included), as scores alone need it and with the evidence
for explanations; SPICE-G from merged graphs, and explaining.
The captions are val2014's, from the installed pycocoevalcap wheel.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING

from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_parser.runtime import rare_collections
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.metric import Spice
from val2014 import distinct, items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from spicegraph_parser.spice.rules import Fact

EXPLAINED = 100


@dataclass(frozen=True)
class Known:
    """The facts of captions that were parsed before."""

    known: Mapping[str, tuple[Fact, ...]]
    signature: str = "known"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        return map(self.known.__getitem__, texts)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    arguments.add_argument("--images", type=int, default=2000)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    items = items_of(options.images)
    texts = distinct(items)
    known = Known(dict(zip(texts, load_pipeline().facts(texts), strict=True)))
    corpus, spice, graded = Corpus(tuple(items)), Spice(known), SpiceG(known)
    bare_spice, bare = Spice(known, evidence=False), SpiceG(known, evidence=False)
    pairs = [
        (graded.graph([known.known[item.candidate]]), graded.graph([known.known[text] for text in item.references]))
        for item in items
    ]
    statistics = graded.collect(corpus)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "SPICE, tuples given": (lambda: bare_spice.collect(corpus), len(items)),
        "SPICE-G, tuples given": (lambda: bare.collect(corpus), len(items)),
        "SPICE with evidence": (lambda: spice.collect(corpus), len(items)),
        "SPICE-G with evidence": (lambda: graded.collect(corpus), len(items)),
        "SPICE-G, merged graphs given": (lambda: list(graded.compare_all(pairs)), len(items)),
        "SPICE-G, explaining": (lambda: [graded.explain(one) for one in statistics[:EXPLAINED]], EXPLAINED),
    }
    best = dict.fromkeys(ways, float("inf"))
    with rare_collections():
        for _ in range(options.rounds):
            for name, (way, _) in ways.items():
                start = process_time()
                way()
                best[name] = min(best[name], process_time() - start)
    for name, (_, count) in ways.items():
        print(f"{name:30} {1e6 * best[name] / count:8.1f} us  {count / best[name]:8,.0f} items a second")


if __name__ == "__main__":
    main()
