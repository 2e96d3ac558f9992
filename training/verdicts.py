"""Fit the models of verdicts, for both graph styles: coefficients, average precision, localisation, false alarms.

    python training/verdicts.py FOLDER

Reads ``hat`` (``words`` and which of them are ``hallucinated``), ``nocaps_foil_pairs_half``, ``valse_foilit_pairs`` and
``sugarcrepe_pairs`` (``captions``, ``label`` the right one's place, ``category``), each ``.jsonl.gz``. None of them is
part of this repository. Every set weighs the same. Figures are of images that the model was not fitted on (five folds).
"""

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_graded.spice_g.verdicts import FEATURES, Observed, observe
from spicegraph_parser.pipelines import SCENE, load_pipeline
from spicegraph_scorer.core.facts import FactSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import conformal_threshold
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_studies.agreement.hallucinations import Span, average_precision, changed_spans, marked_spans

SETS = ("hat", "nocaps_foil_pairs_half", "valse_foilit_pairs", "sugarcrepe_pairs")
FOLDS = 5
RATES = (0.05, 0.1, 0.2)
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Caption:
    """A caption with its words, which of them are wrong, and the fold of its image."""

    seen: Sequence[Observed]
    wrong: Array
    faulty: bool
    fold: int

    @property
    def features(self) -> Array:
        """One row per word."""
        return np.array([one.features for one in self.seen], np.float64).reshape(len(self.seen), len(FEATURES))


def rows_of(folder: Path, name: str) -> Iterator[tuple[str, str, Sequence[str], list[Span], bool]]:
    """Yield image, caption, references, the spans that are wrong, and whether anything is."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if "words" in row:
                yield (
                    row["image_id"],
                    row["candidate"],
                    row["references"],
                    list(marked_spans(row["candidate"], row["words"], row["hallucinated"])),
                    any(row["hallucinated"]),
                )
            elif name != "sugarcrepe_pairs" or row["category"].startswith("replace"):
                right, foil = row["captions"][row["label"]], row["captions"][1 - row["label"]]
                yield row["image_id"], right, row["references"], [], False
                yield row["image_id"], foil, row["references"], list(changed_spans(right, foil)), True


def captions_of(folder: Path, name: str, source: FactSource) -> list[Caption]:
    """Return the captions of a set."""
    rows = list(rows_of(folder, name))
    metric = SpiceG(source, categories={}, texts=False, meaning=None)
    statistics = metric.collect(Corpus(tuple(Item(n, row[1], tuple(row[2])) for n, row in enumerate(rows))))
    images = {image: n % FOLDS for n, image in enumerate(sorted({row[0] for row in rows}))}
    found = []
    for (image, text, _, spans, faulty), statistic in zip(rows, statistics, strict=True):
        assert statistic.match is not None
        seen = observe(statistic.match, text, metric.vectors)
        wrong = [any(s < end and start < e for s, e in one.spans for start, end in spans) for one in seen]
        found.append(Caption(seen, np.array(wrong, np.float64), faulty, images[image]))
    return found


def fit(sets: Sequence[Sequence[Caption]], ridge: float = 1e-3) -> Array:
    """Return intercept and coefficients of a logistic model in which every set weighs the same (Newton's method)."""
    parts = [np.concatenate([caption.features for caption in captions]) for captions in sets]
    labels = [np.concatenate([caption.wrong for caption in captions]) for captions in sets]
    x = np.column_stack([np.ones(sum(map(len, parts))), np.concatenate(parts)])
    y = np.concatenate(labels)
    weights = np.concatenate([np.full(len(part), 1 / len(part) / len(parts)) for part in parts])
    penalty = ridge * np.diag([0.0, *np.maximum(x[:, 1:].var(axis=0), 1e-3)])
    found = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (weights * (y - p)) - penalty @ found
        found += np.linalg.solve((x * (weights * p * (1 - p))[:, None]).T @ x + penalty, slope)
    return found


def predicted(model: Array, caption: Caption) -> Array:
    """Return the probability of each word that it is wrong."""
    found: Array = 1 / (1 + np.exp(-(model[0] + caption.features @ model[1:])))
    return found


def precision_of(scores: Array, labels: Array) -> float:
    """Return the average precision in per cent."""
    return 100 * float(average_precision(scores, labels, np.ones((1, len(labels))))[0])


def main() -> None:
    """Print for each graph style the figures, then the coefficients of all sets together and the thresholds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the four sets")
    options = parser.parse_args()
    for style, pipeline in (("spice", load_pipeline()), ("scene", load_pipeline(SCENE))):
        print(f"{style}: {pipeline.signature}")
        report({name: captions_of(options.folder, name, pipeline) for name in SETS})


def report(sets: dict[str, list[Caption]]) -> None:
    """Print everything."""
    models = [fit([[c for c in captions if c.fold != k] for captions in sets.values()]) for k in range(FOLDS)]
    right: list[tuple[int, Array]] = []
    for name, captions in sets.items():
        others = fit([rest for other, rest in sets.items() if other != name])
        line = [name]
        for way in ("folds", "other sets"):
            chosen = [predicted(models[c.fold] if way == "folds" else others, c) for c in captions]
            worst = np.array([p.max(initial=0) for p in chosen])
            mean = np.array([p.mean() if len(p) else 0 for p in chosen])
            faulty = np.array([c.faulty for c in captions], np.float64)
            places = [bool(len(p) and c.wrong[p.argmax()]) for p, c in zip(chosen, captions, strict=True) if c.faulty]
            line.append(
                f"{way}: AP worst word {precision_of(worst, faulty):.1f},"
                f" mean {precision_of(mean, faulty):.1f}, localisation {100 * np.mean(places):.1f}"
            )
            if way == "folds":
                right += [(c.fold, p[c.wrong == 0]) for p, c in zip(chosen, captions, strict=True)]
        print(*line, sep=" | ", flush=True)
    for rate in RATES:
        alarms = []
        for k in range(FOLDS):
            known = np.concatenate([p for fold, p in right if fold != k])
            alarms.append(
                (np.concatenate([p for fold, p in right if fold == k]) > conformal_threshold(known, rate)).mean()
            )
        print(f"false alarms at {rate:.0%}: {100 * np.mean(alarms):.2f} %, folds", *(f"{100 * a:.2f}" for a in alarms))
    model = fit(list(sets.values()))
    print("INTERCEPT", round(float(model[0]), 3))
    for name, weight in zip(FEATURES, model[1:], strict=True):
        print(f"    {name}: {weight:.3f}")
    everything = np.concatenate([p for _, p in right])
    print("THRESHOLDS", {rate: round(conformal_threshold(everything, rate), 4) for rate in RATES})


if __name__ == "__main__":
    main()
