"""Hold SPICE-G against people's judgements on ten sets, beside SPICE and formula 4, and beside words without a graph.

The control of formula 5 has the same tables: .6 of the words' F1, aligned, and .4 of the meaning.

    python training/graded_study.py FOLDER

Reads ``SETS`` from a folder, each ``.jsonl.gz``: lines with ``candidate``, ``references`` and ``score``, or with
``captions`` (two), ``label`` (the right one's place) and ``references``; ``image_id``, ``category``. None of them is
part of this repository. Standard errors are those of a jackknife that leaves out groups of images.
"""

import argparse
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau, rankdata

from spicegraph_graded.spice_g.matching import MEANING_SHARE, cells_of, precision_weights, word_sides
from spicegraph_graded.spice_g.metric import SpiceG, TextArrays
from spicegraph_graded.spice_g.texts import Meaning, cosines, load_meaning
from spicegraph_graded.spice_g.vectors import Vectors, load_vectors
from spicegraph_parser.pipelines import SCENE, load_pipeline
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.metric import Metric
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.metric import Spice

TAGS = ("NN", "VB", "JJ", "CD")
EMPTY = frozenset({"be", "have", "do", "a"})
EQUAL = 1e-12
GROUPS = 100
BATCH = 512
ALIGNED_SHARE = 0.2
CONTROLS = ("SPICE-G-4", "meaning", "words with the same tables")

Array = np.ndarray[Any, np.dtype[Any]]


def pearson(scores: Array, truth: Array) -> float:
    """Return Pearson's r."""
    return float(np.corrcoef(scores, truth)[0, 1])


def tau_c(scores: Array, truth: Array) -> float:
    """Return Kendall's (Stuart's) tau-c."""
    return float(kendalltau(scores, truth, variant="c").statistic)


def auc(scores: Array, truth: Array) -> float:
    """Return the area under the ROC curve of telling 1 from 0."""
    ranks, right = rankdata(scores), truth > 0
    return float((ranks[right].mean() - (right.sum() + 1) / 2) / (~right).sum())


def accuracy(scores: Array, truth: Array) -> float:
    """Return the mean over kinds of the share of pairs whose right caption (first) has more; ties count half."""
    gain = scores[:, 0] - scores[:, 1]
    points = (gain > EQUAL) + 0.5 * (np.abs(gain) <= EQUAL)
    return float(np.mean([points[truth == kind].mean() for kind in np.unique(truth)]))


SETS: Mapping[str, Callable[[Array, Array], float]] = {
    "thumb_mscoco": pearson,
    "capeval1k": tau_c,
    "composite": tau_c,
    "nebula": tau_c,
    "trecvid_2019": pearson,
    "hat": auc,
    "audiocaps_eval_pairs": accuracy,
    "nocaps_foil_pairs_half": accuracy,
    "valse_foilit_pairs": accuracy,
    "sugarcrepe_pairs": accuracy,
}
BY_KIND = ("audiocaps_eval_pairs", "sugarcrepe_pairs")


@dataclass(frozen=True)
class Judged:
    """The items of a set, of pairs the right ones before the wrong ones, and what people say of each line."""

    items: Sequence[Item]
    truth: Array
    images: Array

    @classmethod
    def read(cls, folder: Path, name: str) -> "Judged":
        """Read a set, without captions by people where its figure is Pearson's r."""
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        if SETS[name] is pearson:
            rows = [row for row in rows if row["system"] != "Human" and not row.get("human")]
        images = np.unique([row["image_id"] for row in rows], return_inverse=True)[1]
        if "captions" not in rows[0]:
            captions = [(row["candidate"], row["references"]) for row in rows]
            truth = np.array([row["score"] for row in rows], np.float64)
        else:  # the second caption of an audio pair has references of its own
            captions = [
                (row["captions"][place], row["references_b"] if place and "references_b" in row else row["references"])
                for right in (True, False)
                for row in rows
                for place in [row["label"] if right else 1 - row["label"]]
            ]
            truth = np.array([row["category"] if name in BY_KIND else "" for row in rows])
        return cls([Item(n, text, tuple(own)) for n, (text, own) in enumerate(captions)], truth, images)

    def shaped(self, scores: Array) -> Array:
        """Return the items' scores by line: one, or those of the right and the wrong caption."""
        return scores.reshape(-1, len(self.truth)).T.squeeze()


def gain_of(
    figure: Callable[[Array, Array], float], truth: Array, scores: Array, control: Array
) -> Callable[[Array], float]:
    """Return what takes some of the lines and returns by how much scores are ahead of a control's, times 100."""
    return lambda rows: 100 * (figure(scores[rows], truth[rows]) - figure(control[rows], truth[rows]))


def error_of(figure: Callable[[Array], float], images: Array) -> float:
    """Return the standard error of a figure of lines, from a jackknife over groups of images."""
    group = np.random.default_rng(0).permutation(int(images.max()) + 1)[images] % GROUPS
    values = np.array([figure(np.flatnonzero(group != one)) for one in range(GROUPS)])
    return float(np.sqrt((GROUPS - 1) / GROUPS * ((values - values.mean()) ** 2).sum()))


def word_scores(items: Sequence[Item], words: Mapping[str, frozenset[str]], vectors: Vectors, exponent: float) -> Array:
    """Return F1 of the captions' words: compared as SPICE-G compares objects, with colours and counts, no graph."""
    found = []
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        readings = [[words[text] for text in own] for item in batch for own in ((item.candidate,), item.references)]
        vocabulary = sorted(frozenset().union(*(caption for reading in readings for caption in reading)))
        rows = vectors.rows([(word,) for word in vocabulary])
        sides = word_sides(readings, vocabulary, rows)
        places = range(0, len(readings), 2), range(1, len(readings), 2)
        precision, recall = cells_of(sides, *places, rows).supports(partners=False)
        shares = []
        for side, weights, power in (
            (precision, precision_weights(sides, precision), exponent),
            (recall, sides.weights[recall.tuples], 1.0),
        ):
            comparison = np.repeat(np.arange(len(batch)), side.counts)
            part, whole = (
                np.bincount(comparison, values, len(batch)) for values in (weights * side.support**power, weights)
            )
            shares.append(np.divide(part, whole, out=np.zeros(len(batch)), where=whole > 0) ** (1 / power))
        both = shares[0] + shares[1]
        found.append(np.divide(2 * shares[0] * shares[1], both, out=np.zeros(len(batch)), where=both > 0))
    return np.concatenate(found)


def likenesses(items: Sequence[Item], meaning: Meaning) -> Array:
    """Return the cosine of each candidate and the sum of its references by a table of meanings."""
    texts = list(dict.fromkeys(text for item in items for text in (item.candidate, *item.references)))
    places, vectors = {text: place for place, text in enumerate(texts)}, meaning.of_texts(texts)
    candidates = vectors[[places[item.candidate] for item in items]]
    references = vectors[[places[text] for item in items for text in item.references]]
    starts = np.cumsum([0, *[len(item.references) for item in items]])[:-1]
    return cosines(candidates, np.add.reduceat(references, starts)).astype(np.float64)


def main() -> None:
    """Print a line for each set, with the figures times 100, and the kinds of pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the ten sets")
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS), help="some of the sets")
    parser.add_argument("--scenes", action="store_true", help="SPICE-G on scene graphs, too")
    options = parser.parse_args()
    sets = {name: Judged.read(options.folder, name) for name in options.only}
    texts = list(
        dict.fromkeys(t for one in sets.values() for item in one.items for t in (item.candidate, *item.references))
    )
    facts, words = {}, {}
    pipeline, vectors, meaning = load_pipeline(), load_vectors(), load_meaning()
    for text, caption in zip(texts, pipeline.captions(texts), strict=True):
        facts[text] = caption.every_fact
        words[text] = frozenset(
            lemma
            for parse in caption.sentences
            for tag, lemma in zip(parse.tags, parse.lemmas, strict=True)
            if tag[:2] in TAGS and lemma not in EMPTY
        )
    source = FunctionSource.of_table(pipeline.signature, facts)

    def scores_of(metric: Metric[Any], items: Sequence[Item]) -> Array:
        return np.array(metric.total(metric.collect(Corpus(tuple(items))))[0].each, np.float64)

    def aligned_words(items: Sequence[Item]) -> Array:
        aligned = np.array(TextArrays.of([(item.candidate, item.references) for item in items]).alignments())
        return word_scores(items, words, vectors, 0.75) * (1 - ALIGNED_SHARE) + ALIGNED_SHARE * aligned

    ways: Mapping[str, Callable[[Sequence[Item]], Array]] = {
        "SPICE": lambda items: scores_of(Spice(source, evidence=False), items),
        "words": lambda items: word_scores(items, words, vectors, 0.5),
        "words, aligned": aligned_words,
        "meaning": lambda items: likenesses(items, meaning),
        "words with the same tables": lambda items: (
            aligned_words(items) * (1 - MEANING_SHARE) + MEANING_SHARE * likenesses(items, meaning)
        ),
        "SPICE-G-4": lambda items: scores_of(SpiceG(source, evidence=False, meaning=None), items),
        "SPICE-G": lambda items: scores_of(SpiceG(source, evidence=False), items),
    }
    gains = [("SPICE-G", control) for control in CONTROLS]
    if options.scenes:
        scenes = load_pipeline(SCENE)
        scene_facts = {t: caption.every_fact for t, caption in zip(texts, scenes.captions(texts), strict=True)}
        of_scenes = SpiceG(FunctionSource.of_table(scenes.signature, scene_facts), evidence=False)
        ways = {**ways, scenes.signature: lambda items: scores_of(of_scenes, items)}
        gains.append((scenes.signature, "SPICE-G"))
    print(f"{pipeline.signature}, {vectors.signature}; in brackets the standard error by image\n")
    print("|", " | ".join(["", "figure", *ways, *(f"{one} minus {other}" for one, other in gains)]), "|")
    print("|", "---|" * (len(ways) + 2 + len(gains)))
    kinds = []
    for name, judged in sets.items():
        figure = SETS[name]
        scores = {way: judged.shaped(score(judged.items)) for way, score in ways.items()}
        line = [name, figure.__name__, *(f"{100 * figure(of, judged.truth):.1f}" for of in scores.values())]
        for one, other in gains:
            gain = gain_of(figure, judged.truth, scores[one], scores[other])
            line.append(f"{gain(np.arange(len(judged.truth))):+.2f} ({error_of(gain, judged.images):.2f})")
        print("|", " | ".join(line), "|", flush=True)
        if name in BY_KIND:
            kinds += [
                " | ".join(
                    [str(kind), *(f"{100 * accuracy(of[own], judged.truth[own]):.1f}" for of in scores.values())]
                )
                for kind in np.unique(judged.truth)
                for own in [judged.truth == kind]
            ]
    print(*[f"\n| kind of pair | {' | '.join(ways)} |\n|{'---|' * (len(ways) + 1)}"] if kinds else [], sep="")
    print("\n".join(f"| {kind} |" for kind in kinds))


if __name__ == "__main__":
    main()
