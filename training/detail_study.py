"""Hold ``detail`` against people's judgements of descriptions, and against descriptions of which one word was changed.

    PYTHONPATH=training python training/detail_study.py FOLDER
    PYTHONPATH=training python training/detail_study.py --changed long_mllm.txt.gz long_human.txt.gz

FOLDER has ``faithscore_half``, ``haelm_half``, ``iiw_half`` and ``msvd_half``, each ``.jsonl.gz``
(``training/detail.md`` says what they are), for ``--short`` ``capeval1k`` and ``thumb_mscoco``; none of them is part of
this repository. Prints each figure for all images and for two halves of them (by a hash of the image, so that what is
chosen on A can be tried on B), with standard errors of a jackknife by image.
With ``--changed`` the files have a description a line: how well scores tell one of which a word was changed from
unchanged ones, with the sentences as one reference and as one each.
"""

import argparse
import gzip
import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau, rankdata

from graded_study import Array, auc, error_of
from graded_study import Judged as Short
from spicegraph_graded.chair import CLASSES
from spicegraph_graded.detail.claims import Claims, sentence_spans
from spicegraph_graded.detail.metric import Detail
from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus

COLUMNS = ("correctness", "coverage", "Detail", "claim")
COLOURS = ("red", "blue", "green", "yellow", "black", "white", "brown", "orange", "pink", "purple", "gray")
COUNTS = ("two", "three", "four", "five", "six")
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "object": tuple(sorted({name for name in CLASSES if " " not in name and not name.endswith("s")})),
    "colour": COLOURS,
    "count": COUNTS,
}


class Judged(NamedTuple):
    """The items of a set, what people say of each, the length that is held constant (or nothing), and the images."""

    items: Sequence[Item]
    truth: Array
    lengths: Array | None
    images: Array


def partial_rank(scores: Array, truth: Array, lengths: Array) -> float:
    """Return the rank correlation of scores and truth with length held constant."""
    a, b, c = (rankdata(values) for values in (scores, truth, lengths))
    ab, ac, bc = (np.corrcoef(first, second)[0, 1] for first, second in ((a, b), (a, c), (b, c)))
    return float((ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2)))


def rank_correlation(scores: Array, truth: Array) -> float:
    """Return Spearman's rho."""
    return float(np.corrcoef(rankdata(scores), rankdata(truth))[0, 1])


def sets_of(folder: Path) -> dict[str, Judged]:
    """Return each figure's set."""
    rows: dict[str, list[dict]] = {}  # type: ignore[type-arg]
    for name in ("faithscore", "haelm", "iiw", "msvd"):
        with gzip.open(folder / f"{name}_half.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows[name] = [json.loads(line) for line in lines]

    def judged(
        captions: Sequence[tuple[str, Sequence[str], float, str]], length: Callable[[Item], float] | None = None
    ) -> Judged:
        items = [Item(n, text, tuple(references)) for n, (text, references, _, _) in enumerate(captions)]
        truth = np.array([value for _, _, value, _ in captions], np.float64)
        lengths = np.array([length(item) for item in items]) if length is not None else None
        return Judged(items, truth, lengths, np.array([image for *_, image in captions]))

    faith = [row for row in rows["faithscore"] if row["facts"]]
    iiw, msvd = rows["iiw"], rows["msvd"]
    ratio = lambda item: len(item.candidate.split()) / len(" ".join(item.references).split())  # noqa: E731
    return {
        "facts": judged(
            [
                (fact["text"], row["references"], float(fact["right"]), row["image_id"])
                for row in faith
                for fact in row["facts"]
            ]
        ),
        "answers": judged(
            [
                (
                    row["candidate"],
                    row["references"],
                    float(np.mean([fact["right"] for fact in row["facts"]])),
                    row["image_id"],
                )
                for row in faith
            ]
        ),
        "HaELM": judged(
            [
                (row["candidate"], row["references"], float(row["accurate"]), row["references"][0])
                for row in rows["haelm"]
            ]
        ),
        "MSVD": judged(
            [(row["candidate"], tuple(dict.fromkeys(row["references"])), row["grades"][4], row["id"]) for row in msvd],
            lambda item: len(item.candidate.split()),
        ),
        "hallucination": judged(
            [(row["candidate"], row["references"], row["grades"]["Hallucination"], row["id"]) for row in iiw], ratio
        ),
        "specificity": judged(
            [(row["candidate"], row["references"], row["grades"]["Specificity"], row["id"]) for row in iiw], ratio
        ),
    }


def figure_of(judged: Judged, scores: Array) -> Callable[[Array], float]:
    """Return what takes some lines and returns their figure."""

    def figure(lines: Array) -> float:
        if judged.lengths is not None:
            return partial_rank(scores[lines], judged.truth[lines], judged.lengths[lines])
        binary = len(np.unique(judged.truth)) == 2
        return (auc if binary else rank_correlation)(scores[lines], judged.truth[lines])

    return figure


def columns_of(metric: Detail, items: Sequence[Item]) -> Array:
    """Return (items, COLUMNS) the scores, and 1 minus the largest probability of a claim."""
    rows = []
    for statistic in metric.collect(Corpus(tuple(items))):
        assert isinstance(statistic.evidence, Claims)
        worst = max((claim.probability for claim in statistic.evidence.candidate if claim.weight), default=0.0)
        rows.append((statistic.correctness, statistic.coverage, statistic.both, 1 - worst))
    return np.array(rows)


def half_of(image: str) -> str:
    """Return the half that an image is of."""
    return "AB"[hashlib.sha256(image.encode()).digest()[0] % 2]


def report(metric: Detail, folder: Path) -> None:
    """Print a table of the four sets."""
    print("|", " | ".join(["", "lines", *COLUMNS]), "|")
    print("|", "---|" * (len(COLUMNS) + 2))
    for name, judged in sets_of(folder).items():
        columns = columns_of(metric, judged.items)
        halves = np.array([half_of(image) for image in judged.images])
        numbers = np.unique(judged.images, return_inverse=True)[1]
        for half in ("all", "A", "B"):
            lines = np.arange(len(judged.items)) if half == "all" else np.flatnonzero(halves == half)
            cells = []
            for scores in columns.T:
                figure = figure_of(judged, scores)
                error = f" ({error_of(figure, numbers):.3f})" if half == "all" else ""
                cells.append(f"{figure(lines):.3f}{error}")
            print("|", " | ".join([f"{name}, {half}", str(len(lines)), *cells]), "|", flush=True)


def report_short(metric: Detail, folder: Path) -> None:
    """Print for captions of one sentence the figures of ``Detail`` and SPICE-G, and the error of their difference."""
    print("| set | captions | Detail | SPICE-G | difference |")
    print("|---|---|---|---|---|")
    for name, coefficient in (("capeval1k", "tau-b"), ("thumb_mscoco", "Pearson")):
        judged = Short.read(folder, name)
        scores = [
            np.array(each.total(each.collect(Corpus(tuple(judged.items))))[0].each, np.float64)
            for each in (metric, SpiceG(metric.graded.source, evidence=False))
        ]

        def figure(
            lines: Array, scores: Array, truth: Array = judged.truth, tau: bool = coefficient == "tau-b"
        ) -> float:
            if tau:
                return float(kendalltau(scores[lines], truth[lines], variant="b").statistic)
            return float(np.corrcoef(scores[lines], truth[lines])[0, 1])

        lines = np.arange(len(judged.items))
        gain = lambda rows: figure(rows, scores[0]) - figure(rows, scores[1])  # noqa: B023, E731
        cells = [f"{figure(lines, column):.3f}" for column in scores]
        cells.append(f"{gain(lines):+.3f} ({error_of(gain, judged.images):.3f})")
        print("|", " | ".join([f"{name}, {coefficient}", str(len(lines)), *cells]), "|", flush=True)


def changed(text: str, dice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield for each kind a description of which one word was changed for another of its kind that it lacks."""
    words = re.findall(r"[a-z]+", text.lower())
    for kind, family in FAMILIES.items():
        places = [match for match in re.finditer(r"[A-Za-z]+", text) if match[0] in family]
        others = [word for word in family if word not in words and CLASSES.get(word) not in map(CLASSES.get, words)]
        if kind != "object":
            others = [word for word in family if word not in words]
        if places and others:
            place = dice.choice(places)
            yield kind, text[: place.start()] + dice.choice(others) + text[place.end() :]


def report_changed(metric: Detail, paths: Sequence[Path], most: int) -> None:
    """Print how well scores tell changed descriptions from unchanged ones, alone and beside their own original."""
    dice = random.Random(0)
    texts = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts += dice.sample([line.strip() for line in lines], most)
    print("| references | kind | descriptions | " + " | ".join(f"{name}: AUC | pairs" for name in COLUMNS) + " |")
    print("|", "---|" * (3 + 2 * len(COLUMNS)))
    for name, references_of in (
        ("together", lambda text: (text,)),
        ("one each", lambda text: tuple(sorted(text[a:b] for a, b in sentence_spans(text)))),
    ):
        dice = random.Random(1)
        made = [(kind, other, text) for text in texts for kind, other in changed(text, dice)]
        after = columns_of(metric, [Item(n, other, references_of(text)) for n, (_, other, text) in enumerate(made)])
        whole = dict(
            zip(
                texts,
                columns_of(metric, [Item(n, text, references_of(text)) for n, text in enumerate(texts)]),
                strict=True,
            )
        )
        before = np.array([whole[text] for _, _, text in made])
        kinds = np.array([kind for kind, *_ in made])
        for kind in ("all", *FAMILIES):
            lines = np.flatnonzero((kinds == kind) | (kind == "all"))
            cells = []
            for column in range(len(COLUMNS)):
                right, wrong = before[lines, column], after[lines, column]
                truth = np.repeat([1.0, 0.0], len(lines))
                gain = right - wrong
                pairs = 100 * float(((gain > 1e-9) + 0.5 * (np.abs(gain) <= 1e-9)).mean())
                cells += [f"{auc(np.concatenate([right, wrong]), truth):.3f}", f"{pairs:.1f}"]
            print("|", " | ".join([name, kind, str(len(lines)), *cells]), "|", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the four sets")
    parser.add_argument("--short", action="store_true", help="the captions of capeval1k and thumb_mscoco instead")
    parser.add_argument("--changed", type=Path, nargs="+", help="files of descriptions, .txt.gz")
    parser.add_argument("--most", type=int, default=150, help="descriptions of each file")
    parser.add_argument("--pipeline", default=DEFAULT_PIPELINE)
    options = parser.parse_args()
    facts = FactCache(load_pipeline(options.pipeline))
    metric = Detail.of(Resources(lambda: facts))
    began = time.process_time()
    if options.folder is not None:
        (report_short if options.short else report)(metric, options.folder)
    if options.changed is not None:
        report_changed(metric, options.changed, options.most)
    print(f"{time.process_time() - began:.0f} s of processor time; {json.dumps(dict(metric.signature()))}")


if __name__ == "__main__":
    main()
