"""How much many submissions, or many accounts, tell of one word in private references: group testing.

Each submission says "a man" of a random half of the images, and of each other image a word of its own that no reference
has. Scores that are means over images are then random sums of what the word adds to each image, and ridge regression
over the submissions solves for the images whose references hold the word. Rounding hides one image, not a sum: other
subsets work as a dither. The attacker reads value and both ends of the interval of seven scores, and how many images
miss the word or have it invented, as a participant sees them.
Usage: python bench/group_testing.py [--word WORD] [--seeds N] [--count N ...]

Printed are the area under the ROC curve for "the word is in the references of image i", and the bits that calibrated
claims hold beyond the word's frequency, in a cross-validation over images (of all bits that there are): for the mean
over all numbers, and for the best direction through them, were it known how much the word moves each.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.accounts import Account
from spicegraph_challenge.model.leaderboard import shown_scores
from spicegraph_challenge.model.schema import Challenge, Role, RunScore, SplitReferences
from spicegraph_challenge.model.settings import with_defaults
from spicegraph_challenge.sandbox.files import Image
from spicegraph_challenge.sandbox.tasks import error_rows
from spicegraph_challenge.sandbox.validation import read_submission, split_images
from spicegraph_parser.ptb import tokenize
from spicegraph_scorer import Item, score
from spicegraph_scorer.errors import error_words

EXAMPLES = Path(__file__).parents[1] / "examples" / "coco"
SCORES = ("SPICE", "SPICE_Object", "ROUGE_L", "METEOR", "CIDEr", "Bleu_1", "Bleu_2")
METRICS = ("spice", "rouge", "meteor", "cider", "bleu")
SUBMISSIONS = (20, 50, 100, 200, 400, 1_000)
DEFENCES = {
    "nine places": pb.ChallengeSettings(digits=9),
    "three places": pb.ChallengeSettings(digits=3),
    "two places (default)": pb.ChallengeSettings(),
    "one place": pb.ChallengeSettings(digits=1),
}
RIDGE = 3.0
FOLDS = 10


class Side(NamedTuple):
    """What a kind of caption gets on every image: its scores, shape (images,) by name, and the words of its errors."""

    each: dict[str, np.ndarray]
    errors: list[list[tuple[str, tuple[str, ...]]]]


def side(captions: dict[int, str], references: dict[int, tuple[str, ...]]) -> Side:
    """Score a file in which every image has such a caption."""
    result = score([Item(key, captions[key], texts) for key, texts in references.items()], METRICS)
    named = {row.name: row.each for run in result.runs for row in run.scores}
    spice = result.runs[0]
    return Side(
        {name: np.array([value or 0.0 for value in named[name]], dtype=float) for name in SCORES},
        [list(error_words(statistic.match)) for statistic in spice.statistics],
    )


def shown_numbers(each: dict[str, np.ndarray], challenge: Challenge) -> dict[str, list[float]]:
    """Return value and ends of every score as a participant sees them."""
    rows = []
    for name in SCORES:
        images = len(each[name])
        half = 1.96 * float(each[name].std()) / math.sqrt(images)
        value = float(each[name].mean())
        rows.append(
            RunScore(
                name=name,
                value=value,
                low=value - half,
                high=value + half,
                reference_set=SplitReferences(image_count=images),
            )
        )
    shown = shown_scores(rows, challenge, Account(1, "attacker", Role.PARTICIPANT))
    return {row.name: [end for end in (row.value, row.low, row.high) if end is not None] for row in shown}


def attack(
    said: Side,
    other: Side,
    settings: pb.ChallengeSettings,
    submissions: int,
    *,
    rng: np.random.Generator,
    truth: np.ndarray,
    word: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return two claims for each image, by the mean over numbers and by the best direction: larger is likelier."""
    images = len(truth)
    halves = np.zeros((submissions, images))
    for row in halves:
        row[rng.permutation(images)[: images // 2]] = 1.0
    challenge = Challenge(settings=with_defaults(settings))
    moved = [float((said.each[name] - other.each[name])[truth].mean()) for name in SCORES for _ in range(3)]
    seen: list[list[float]] = []
    for half in halves:
        each = {name: np.where(half > 0, said.each[name], other.each[name]) for name in SCORES}
        seen.append([end for ends in shown_numbers(each, challenge).values() for end in ends])
        errors = [(said if on else other).errors[place] for place, on in enumerate(half)]
        told = {row.kind: row.images for row in error_rows(errors) if row.words == (word,)}
        seen[-1] += [float(told.get(kind, 0)) for kind in ("object_missed", "object_invented")]
    observed = np.array(seen)
    moves = np.array(moved + [-images] * (observed.shape[1] - len(moved)))
    spread = observed.std(axis=0)
    kept = spread > 0
    if not kept.any():
        return np.zeros(images), np.zeros(images)
    observed = (observed - observed.mean(axis=0))[:, kept] / spread[kept]
    design = halves - 0.5
    # One ridge regression for each column of numbers; columns that tell more about images count for more.
    normal = design.T @ design + RIDGE * submissions / 4 * np.eye(images)
    solved = np.linalg.solve(normal, design.T @ observed)
    average = (solved / solved.std(axis=0) * np.where(moves[kept] < 0, -1, 1)).mean(axis=1)
    covariance = np.atleast_2d(np.cov(observed.T)) + 0.05 * np.eye(observed.shape[1])
    return average, solved @ np.linalg.solve(covariance, moves[kept] / spread[kept])


def check_accepted(captions: dict[int, str], references: dict[int, tuple[str, ...]]) -> None:
    """Stop where the server would refuse a file of the attack at its defaults."""
    images = split_images([[Image(key, "", len(texts)) for key, texts in references.items()]])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([{"image_id": key, "caption": text} for key, text in captions.items()], file)
        file.flush()
        _, faults = read_submission(file.name, "r.json", "val", {"val": images}, with_defaults(pb.ChallengeSettings()))
    if faults:
        raise SystemExit(f"the server refuses the attack's files: {faults[0].reason}")


def read_references(name: str) -> dict[int, tuple[str, ...]]:
    """Return the captions of a file of COCO annotations, by image."""
    references: dict[int, tuple[str, ...]] = {}
    for row in json.loads((EXAMPLES / name).read_text())["annotations"]:
        references[row["image_id"]] = (*references.get(row["image_id"], ()), row["caption"])
    return references


def area(claims: np.ndarray, truth: np.ndarray) -> float:
    """Return the probability that an image with the word has the larger claim than one without; ties count half."""
    positive, negative = claims[truth], claims[~truth]
    above = (positive[:, None] > negative).mean() + 0.5 * (positive[:, None] == negative).mean()
    return float(above)


def bits(claims: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> float:
    """Return what calibrated claims hold beyond the word's frequency, on images that did not calibrate them."""
    base = truth.mean()
    order = rng.permutation(len(truth))
    gained = 0.0
    for fold in np.array_split(order, FOLDS):
        rest = np.setdiff1d(order, fold)
        weight, bias = logistic(claims[rest], truth[rest])
        chance = 1 / (1 + np.exp(-(weight * claims[fold] + bias)))
        likely = np.where(truth[fold], chance, 1 - chance)
        frequency = np.where(truth[fold], base, 1 - base)
        gained += float(np.log2(likely / frequency).sum())
    return gained


def logistic(claims: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Fit a logistic curve with a little shrinkage, by Newton's method."""
    columns = np.stack([claims, np.ones_like(claims)], axis=1)
    weights = np.zeros(2)
    for _ in range(30):
        chance = 1 / (1 + np.exp(-(columns @ weights)))
        slope = columns.T @ (truth - chance) - np.array([0.5, 0.0]) * weights
        curve = columns.T @ (columns * (chance * (1 - chance))[:, None]) + np.diag([0.5, 1e-9])
        weights += np.linalg.solve(curve, slope)
    return float(weights[0]), float(weights[1])


def main() -> None:
    """Print a table of defences and numbers of submissions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--word", default="man")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--count", type=int, nargs="+", default=SUBMISSIONS, help="numbers of submissions")
    parser.add_argument("--defence", nargs="+", choices=DEFENCES, default=list(DEFENCES))
    options = parser.parse_args()
    references = read_references("captions.json")
    truth = np.array(
        [
            any(options.word in {t.text.lower() for t in tokenize(text)} for text in texts)
            for texts in references.values()
        ]
    )
    same = dict.fromkeys(references, f"a {options.word}")
    nonsense = {key: "a q" + "".join("bcdfgjkxvz"[int(digit)] for digit in f"{key:012}") for key in references}
    check_accepted({key: (same if place % 2 else nonsense)[key] for place, key in enumerate(references)}, references)
    said, other = side(same, references), side(nonsense, references)
    base = truth.mean()
    entropy = -len(truth) * (base * math.log2(base) + (1 - base) * math.log2(1 - base))
    print(
        f"{len(truth)} images, {truth.sum()} with {options.word!r}, {entropy:.0f} bits; mean of {options.seeds} seeds"
    )
    print(f"{'':32} {'average':>14} {'best direction':>14}")
    print(f"{'defences':20} {'submissions':>11} {'AUC':>6} {'bits':>7} {'AUC':>6} {'bits':>7}")
    for name, count in product(options.defence, options.count):
        outcomes = []
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            claims = attack(said, other, DEFENCES[name], count, rng=rng, truth=truth, word=options.word)
            outcomes.append([number for row in claims for number in (area(row, truth), bits(row, truth, rng))])
        first, gained, best, most = np.mean(outcomes, axis=0)
        print(f"{name:20} {count:11} {first:6.3f} {gained:7.1f} {best:6.3f} {most:7.1f}", flush=True)


if __name__ == "__main__":
    main()
