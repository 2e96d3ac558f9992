"""Whether credit is faithful: how often a caption without the word of its lowest credit scores higher.

Over the captions of the golden SPICE scores, of those whose lowest credit is below 0. The word is deleted from the
text, which is then parsed anew; or the facts that name it are, so that nothing depends on what a parser makes of a text
with a hole in it. "Content" looks at content words alone: without a function word a caption is no longer a sentence.
Usage: python bench/credit.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from load.captions import CANDIDATES, REFERENCES
from spicegraph_parser import load_pipeline
from spicegraph_scorer import Corpus, Item
from spicegraph_scorer.core.credit import Credit, WordCredit, Words
from spicegraph_scorer.core.facts import FactCache, FactTable
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.metrics.graded.order import weighted_stem
from spicegraph_scorer.metrics.ngram import frequencies_of
from spicegraph_scorer.scoring import resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer import Metric

LEAST = -1e-9


def lowest(found: Credit, *, content: bool) -> WordCredit | None:
    words = [word for word in found.words if not content or weighted_stem(word.text.lower())[1] == 1]
    word = min(words, key=lambda one: one.credit, default=None)
    return word if word is not None and word.credit < LEAST else None


def without(item: Item, word: WordCredit, number: int) -> Item:
    """Return an item without a word; ``number`` spaces at its end make the text its own."""
    text = f"{item.candidate[: word.start]} {item.candidate[word.end :]}"
    return replace(item, candidate=" ".join(text.split()) + " " * number)


def facts_without(facts: Sequence[Fact], text: str, word: WordCredit) -> tuple[Fact, ...]:
    words = Words(text)
    number = list(words.spans).index((word.start, word.end))
    return tuple(fact for fact in facts if not any(number in words.find((string,)) for string in fact.words))


def share(metric: Metric[Any], cases: Sequence[tuple[Item, float]]) -> float:
    after = metric.total(metric.collect(Corpus(tuple(item for item, _ in cases))))[0].each
    return sum((value or 0) > before for value, (_, before) in zip(after, cases, strict=True)) / len(cases)


def main() -> None:
    items = tuple(Item(n, one.text, REFERENCES[one.image]) for n, one in enumerate(CANDIDATES))
    corpus, facts = Corpus(items), FactCache(load_pipeline())
    print(f"{'metric':>8} {'words':>8} {'cases':>6} {'from the text':>14} {'from the facts':>15}")
    for name, made in make_metrics(("spice", "spice-g", "cider-d", "spider"), resources(facts)).items():
        metric = made if made.weigh is None else made.weighted(frequencies_of(corpus))
        credits_of = metric.credit(corpus, metric.collect(corpus))
        for content in (False, True):
            found = [
                (item, credit.score, word)
                for item, credit in zip(items, credits_of, strict=True)
                if (word := lowest(credit, content=content)) is not None
            ]
            cut = [(without(item, word, n), score) for n, (item, score, word) in enumerate(found)]
            line = f"{name:>8} {'content' if content else 'all':>8} {len(found):>6} {share(metric, cut):>14.1%}"
            if name.startswith("spice"):
                known = dict(facts.known)
                for (item, _, word), (shorter, _) in zip(found, cut, strict=True):
                    known[shorter.candidate] = facts_without(known[item.candidate], item.candidate, word)
                line += f" {share(replace(metric, source=FactTable(facts.signature, known)), cut):>15.1%}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
