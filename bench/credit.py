"""Whether credit is faithful: how often a caption without the word of its lowest credit scores higher.

Over the captions of the golden SPICE scores, of those whose lowest credit is below 0. The word is deleted from the
text, which is then parsed anew; or the facts that name it are, so that nothing depends on what a parser makes of a text
with a hole in it. "Content" looks at content words alone: without a function word a caption is no longer a sentence.
"Phrase" deletes content words with the function words before them, those of the lowest sum: "on a red couch".
Usage: python bench/credit.py
"""

from __future__ import annotations

import argparse
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from load.captions import CANDIDATES, REFERENCES
from spicegraph_graded.spice_g.texts import weighted_stem
from spicegraph_parser import load_pipeline
from spicegraph_scorer import Corpus, Item
from spicegraph_scorer.core.credit import Credit, Span, Words
from spicegraph_scorer.core.facts import FactCache, FunctionSource
from spicegraph_scorer.core.ngrams import frequencies_of
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.scoring import resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer import Metric

LEAST = -1e-9


def lowest(found: Credit, unit: str) -> Span | None:
    """Return where the word or phrase of the lowest credit stands; ``None`` where no credit is below 0."""
    units = found.of_phrases() if unit == "phrase" else [((word.start, word.end), word.credit) for word in found.words]
    if unit == "content":
        words = [word.text.lower() for word in found.words]
        units = [one for one, word in zip(units, words, strict=True) if weighted_stem(word)[1] == 1]
    span, credit = min(units, key=lambda one: one[1], default=((0, 0), 0.0))
    return span if credit < LEAST else None


def without(item: Item, span: Span, number: int) -> Item:
    """Return an item without a part of its text; ``number`` spaces at its end make the text its own."""
    text = f"{item.candidate[: span[0]]} {item.candidate[span[1] :]}"
    return replace(item, candidate=" ".join(text.split()) + " " * number)


def facts_without(facts: Sequence[Fact], text: str, span: Span) -> tuple[Fact, ...]:
    words = Words(text)
    gone = set(words.overlapping(*span))
    return tuple(fact for fact in facts if not any(gone.intersection(words.find((one,))) for one in fact.words))


def share(metric: Metric[Any], cases: Sequence[tuple[Item, float]]) -> float:
    after = metric.total(metric.collect(Corpus(tuple(item for item, _ in cases))))[0].each
    return sum((value or 0) > before for value, (_, before) in zip(after, cases, strict=True)) / len(cases)


def read(path: Path | None) -> list[tuple[str, Sequence[str]]]:
    """Return candidates with their references, each candidate once."""
    if path is None:
        return [(one.text, REFERENCES[one.image]) for one in CANDIDATES]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [(row["candidate"], row["references"]) for row in {row["candidate"]: row for row in rows}.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="?")
    parser.add_argument("--metrics", default="spice,spice-g,cider,spider")
    options = parser.parse_args()
    items = tuple(Item(n, text, tuple(references)) for n, (text, references) in enumerate(read(options.rows)))
    corpus, facts = Corpus(items), FactCache(load_pipeline())
    print(f"{'metric':>8} {'words':>8} {'cases':>6} {'from the text':>14} {'from the facts':>15} {'a caption':>10}")
    for name, made in make_metrics(options.metrics.split(","), resources(facts)).items():
        metric = made if made.weigh is None else made.weighted(frequencies_of(corpus))
        credits_of = metric.credit(corpus, metric.collect(corpus))
        for unit in ("all", "content", "phrase"):
            found = [
                (item, credit.score, span)
                for item, credit in zip(items, credits_of, strict=True)
                if (span := lowest(credit, unit)) is not None
            ]
            cut = [(without(item, span, n), score) for n, (item, score, span) in enumerate(found)]
            count = sum(len(one.of_phrases() if unit == "phrase" else one.words) for one in credits_of) / len(items)
            line = f"{name:>8} {unit:>8} {len(found):>6} {share(metric, cut):>14.1%}"
            if name.startswith("spice"):
                known = dict(facts.known)
                for (item, _, span), (shorter, _) in zip(found, cut, strict=True):
                    known[shorter.candidate] = facts_without(known[item.candidate], item.candidate, span)
                line += f" {share(replace(metric, source=FunctionSource.of_table(facts.signature, known)), cut):>15.1%}"
            print(f"{line:<56} {count:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
