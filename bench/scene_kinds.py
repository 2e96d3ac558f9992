"""How well scene graphs of captions of kinds that nobody trained on agree with graphs made by hand, by kind.

The captions and graphs are ours (``tests/golden/scenes``); ``docs/how-to/scenes.md`` states their conventions.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from spicegraph_parser import load_pipeline
from spicegraph_parser.export.graph_text import read_graph_text
from spicegraph_scorer import score_tuples

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "scenes"
ACCEPTED = 0.8
"""Least F1 of a graph that counts as accepted."""
LEVELS = {1: "objects", 2: "attributes", 3: "relations"}


def rows(path: Path) -> list[Mapping[str, str]]:
    """Read captions with their kind and graph (``kind``, ``caption``, ``scene_graph``), one JSON object per line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def facts(graph: str) -> set[tuple[str, ...]]:
    """Return the facts of a graph by hand; a caption that denies all has none."""
    return {fact.words for fact in read_graph_text(graph)} if graph else set()


def f1(ours: set[tuple[str, ...]], gold: set[tuple[str, ...]]) -> float:
    """Return SPICE's F1; two empty graphs agree."""
    if not ours or not gold:
        return float(ours == gold)
    return score_tuples(sorted(ours), [sorted(gold)]).scores["All"]["f"] or 0.0


def shares(pairs: Iterable[tuple[set[tuple[str, ...]], set[tuple[str, ...]]]]) -> Iterator[str]:
    """Yield F1, shares of accepted and of equal graphs, and recall and precision of equal facts by their length."""
    both = list(pairs)
    scores = [f1(*pair) for pair in both]
    yield f"{fmean(scores):.3f}"
    yield f"{fmean(score >= ACCEPTED for score in scores):.2f}"
    yield f"{fmean(ours == gold for ours, gold in both):.2f}"
    for size in LEVELS:
        found, wanted, right = (
            sum(len(word) == size for pair in both for word in pick(*pair))
            for pick in (lambda ours, _: ours, lambda _, gold: gold, lambda ours, gold: ours & gold)
        )
        yield f"{right / max(1, found):.2f}/{right / max(1, wanted):.2f}"


def table(cells: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as aligned text."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def joined(by_hand: Sequence[Mapping[str, str]], count: int) -> list[Mapping[str, str]]:
    """Return captions of one kind, several as the sentences of one text, with the facts of all."""
    kinds: dict[str, list[Mapping[str, str]]] = {}
    for row in by_hand:
        kinds.setdefault(row["kind"], []).append(row)
    parts = [own[at : at + count] for own in kinds.values() for at in range(0, len(own) - count + 1, count)]
    return [
        {
            "kind": part[0]["kind"],
            "caption": " ".join(
                f"{text[:1].upper()}{text[1:]}." for row in part for text in [row["caption"].rstrip(". ")]
            ),
            "scene_graph": " , ".join(row["scene_graph"] for row in part if row["scene_graph"]),
        }
        for part in parts
    ]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", type=Path, nargs="*", default=[GOLDEN / "kinds.jsonl"])
    parser.add_argument("--joined", type=int, default=1, help="captions of one kind that are one text (1)")
    parser.add_argument("--differences", action="store_true", help="print every graph that differs")
    arguments = parser.parse_args()
    by_hand = [row for path in arguments.graphs for row in rows(path)]
    by_hand = joined(by_hand, arguments.joined) if arguments.joined > 1 else by_hand
    parsed = load_pipeline("scene").captions(row["caption"] for row in by_hand)
    graphs = [{fact.words for fact in caption.facts} for caption in parsed]
    pairs = [(ours, facts(row["scene_graph"])) for ours, row in zip(graphs, by_hand, strict=True)]
    kinds: dict[str, list[tuple[set[tuple[str, ...]], set[tuple[str, ...]]]]] = {}
    for row, pair in zip(by_hand, pairs, strict=True):
        kinds.setdefault(row["kind"], []).append(pair)
        if arguments.differences and pair[0] != pair[1]:
            print(f"{row['kind']}: {row['caption']}")
            print(f"  lacks {sorted(pair[1] - pair[0])}\n  adds {sorted(pair[0] - pair[1])}")
    head = ["kind", "captions", "F1", "accepted", "equal", *(f"{name} P/R" for name in LEVELS.values())]
    body = [[kind, str(len(own)), *shares(own)] for kind, own in (*kinds.items(), ("all", pairs))]
    print(table([head, *body]))


if __name__ == "__main__":
    main()
