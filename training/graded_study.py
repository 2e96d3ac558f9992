"""Hold SPICE-G against people's ratings and foils, beside SPICE and beside the same vectors without a graph.

Reads a folder with ``thumb_mscoco``, ``capeval1k`` (lines with ``candidate``, ``references``, ``score``; THumB also
``system``), ``valse_foilit_pairs`` and ``sugarcrepe_pairs`` (``captions``, two, ``references``, ``label`` the right
one's place, ``category``), each ``.jsonl.gz``. None of them is part of this repository.
"""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from spicegraph_parser.pipelines import CaptionPipeline, load_pipeline
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.metric import Metric
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.graded.vectors import Vectors, load_vectors
from spicegraph_scorer.metrics.spice.metric import Spice

RATED, PAIRED = ("thumb_mscoco", "capeval1k"), ("valse_foilit_pairs", "sugarcrepe_pairs")
EMPTY = frozenset({"be", "have", "do", "a"})
EQUAL = 1e-12

Scores = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Words:
    """The control: content words of the captions, weighted and compared like SPICE-G's objects, without a graph."""

    pipeline: CaptionPipeline
    vectors: Vectors
    tags: tuple[str, ...]

    def score(self, items: Sequence[Item]) -> Scores:
        """Return F1 of every item."""
        texts = list(dict.fromkeys(text for item in items for text in (item.candidate, *item.references)))
        known = {
            caption.text: frozenset(
                lemma
                for parse in caption.sentences
                for tag, lemma in zip(parse.tags, parse.lemmas, strict=True)
                if tag[:2] in self.tags and lemma not in EMPTY
            )
            for caption in self.pipeline.captions(texts)
        }
        return np.array([self._f1(known[i.candidate], [known[text] for text in i.references]) for i in items])

    def _f1(self, candidate: Iterable[str], references: Iterable[Iterable[str]]) -> float:
        said = Counter(word for words in references for word in words)
        mine, theirs = sorted(candidate), sorted(said)
        if not mine or not theirs:
            return 0.0
        rows = self.vectors.rows([(word,) for word in (*mine, *theirs)])
        one, other = ([rows.places[word,] for word in words] for words in (mine, theirs))
        alike = np.clip(rows.vectors[one] @ rows.vectors[other].T, 0, 1)
        alike[np.array(one)[:, None] == np.array(other)] = 1
        idf = np.array(rows.idf) ** 0.75
        precision = np.average(np.sqrt(alike.max(axis=1)), weights=idf[one]) ** 2
        recall = np.average(alike.max(axis=0), weights=idf[other] * [said[word] for word in theirs])
        return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a set."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def study(score: Callable[[Sequence[Item]], Scores], rows: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return Pearson and tau-c with ratings, and the accuracy on pairs in per cent, ties as half."""
    found = {}
    for name in RATED:
        scores = score([Item(n, r["candidate"], tuple(r["references"])) for n, r in enumerate(rows[name])])
        rated = np.array([row["score"] for row in rows[name]])
        machine = np.array([row.get("system") != "Human" for row in rows[name]])
        found[f"{name} r"] = float(np.corrcoef(scores[machine], rated[machine])[0, 1])
        found[f"{name} tau-c"] = 100 * float(kendalltau(scores, rated, variant="c").statistic)
    for name in PAIRED:
        right, wrong = (
            score(
                [Item(n, r["captions"][abs(r["label"] - k)], tuple(r["references"])) for n, r in enumerate(rows[name])]
            )
            for k in (0, 1)
        )
        points = (right > wrong + EQUAL) + 0.5 * (np.abs(right - wrong) <= EQUAL)
        kinds = np.array([row.get("category", "foil-it") if name != PAIRED[0] else "foil-it" for row in rows[name]])
        found |= {str(kind): 100 * float(points[kinds == kind].mean()) for kind in dict.fromkeys(kinds)}
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the four sets")
    options = parser.parse_args()
    rows = {name: read(options.folder, name) for name in (*RATED, *PAIRED)}
    pipeline, vectors = load_pipeline(), load_vectors()
    facts = FactCache(pipeline)

    def scores_of(metric: Metric[Any]) -> Callable[[Sequence[Item]], Scores]:
        return lambda items: np.array(metric.total(metric.collect(Corpus(tuple(items))))[0].each, np.float64)

    ways = {
        "SPICE": scores_of(Spice(facts)),
        "words (nouns, verbs, adjectives)": Words(pipeline, vectors, ("NN", "VB", "JJ")).score,
        "words and numerals": Words(pipeline, vectors, ("NN", "VB", "JJ", "CD")).score,
        "SPICE-G": scores_of(SpiceG(facts)),
    }
    for name, way in ways.items():
        found = study(way, rows)
        print(name, *(f"{key} {value:.3f}" for key, value in found.items()), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
