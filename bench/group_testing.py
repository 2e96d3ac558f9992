"""How much many submissions, or many accounts, tell of one word in private references: group testing.

Each submission says "a man" of a random half of the images, and words that no reference has of the other half. Scores
that are means over images are then random sums of what the word adds to each image, and ridge regression over the
submissions solves for the images whose references hold the word. Rounding hides one image, not a sum: other subsets
work as a dither. The attacker reads value and both ends of the interval of six scores, as a participant sees them.
Usage: python bench/group_testing.py [--word WORD] [--seeds N]

Printed are the area under the ROC curve for "the word is in the references of image i", and the bits that calibrated
claims hold beyond the word's frequency, in a cross-validation over images (of all bits that there are).
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.accounts import Account
from spicegraph_challenge.model.leaderboard import shown_scores
from spicegraph_challenge.model.schema import Challenge, Role, RunScore
from spicegraph_challenge.model.settings import ALL_DIGITS, with_defaults
from spicegraph_challenge.sandbox.tasks import decimal_places, noise_of
from spicegraph_parser.ptb import tokenize
from spicegraph_scorer import Item, score

CAPTIONS = Path(__file__).parents[1] / "examples" / "coco" / "captions.json"
SCORES = {"SPICE": 1.0, "SPICE_Object": 1.0, "ROUGE_L": 1.0, "METEOR": 1.0, "CIDEr": 10.0, "Bleu_1": 1.0}
SUBMISSIONS = (20, 50, 100, 200, 400, 1_000)
DEFENCES = {
    "exact": pb.ChallengeSettings(digits=ALL_DIGITS),
    "rounding": pb.ChallengeSettings(noise=False),
    "rounding and noise": pb.ChallengeSettings(),
}
RIDGE = 3.0
FOLDS = 10


def each_score(captions: dict[int, str], references: dict[int, tuple[str, ...]]) -> dict[str, np.ndarray]:
    """Return every image's scores of a file in which all images have such captions."""
    items = [Item(key, captions[key], texts) for key, texts in references.items()]
    result = score(items, ("spice", "rouge", "meteor", "cider", "bleu"))
    named = {row.name: row.each for run in result.runs for row in run.scores}
    return {name: np.array([value or 0.0 for value in named[name]], dtype=float) for name in SCORES}


def attack(
    said: dict[str, np.ndarray],
    other: dict[str, np.ndarray],
    settings: pb.ChallengeSettings,
    submissions: int,
    *,
    rng: np.random.Generator,
    truth: np.ndarray,
    oracle: bool,
) -> np.ndarray:
    """Return a claim for each image: the larger, the likelier it holds the word."""
    images = len(next(iter(said.values())))
    halves = np.zeros((submissions, images))
    for row in halves:
        row[rng.permutation(images)[: images // 2]] = 1.0
    challenge = Challenge(settings=with_defaults(settings))
    seen: list[list[float]] = []
    for number, half in enumerate(halves):
        rows = []
        for name, highest in SCORES.items():
            each = np.where(half > 0, said[name], other[name])
            spread = 1.96 * each.std() / math.sqrt(images)
            value = float(each.mean())
            draw = noise_of(f"what nobody knows {number} {rng.integers(1 << 60)}", name)
            places = decimal_places(images, highest=highest)
            rows.append(
                RunScore(name=name, value=value, low=value - spread, high=value + spread, places=places, draw=draw)
            )
        shown = shown_scores(rows, challenge, Account(1, "attacker", Role.PARTICIPANT))
        seen.append([end for row in shown for end in (row.value, row.low, row.high) if end is not None])
    observed = np.array(seen)
    spread = observed.std(axis=0)
    observed = (observed - observed.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    design = halves - 0.5
    # One ridge regression for each column of numbers; columns that tell more about images count for more.
    normal = design.T @ design + RIDGE * submissions / 4 * np.eye(images)
    solved = np.linalg.solve(normal, design.T @ observed)
    if not solved.size:
        return np.zeros(images)
    average = (solved / solved.std(axis=0)).mean(axis=1)
    # The best direction through the numbers, were it known how much the word moves each of them.
    moved = (
        np.repeat([float((said[name] - other[name])[truth].mean()) for name in SCORES], 3)[spread > 0]
        / spread[spread > 0]
    )
    covariance = np.atleast_2d(np.cov(observed.T)) + 0.05 * np.eye(observed.shape[1])
    best = solved @ np.linalg.solve(covariance, moved)
    return np.asarray(best if oracle else average)


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
    options = parser.parse_args()
    references: dict[int, tuple[str, ...]] = {}
    for row in json.loads(CAPTIONS.read_text())["annotations"]:
        references[row["image_id"]] = (*references.get(row["image_id"], ()), row["caption"])
    truth = np.array(
        [
            any(options.word in {t.text.lower() for t in tokenize(text)} for text in texts)
            for texts in references.values()
        ]
    )
    said = each_score(dict.fromkeys(references, f"a {options.word}"), references)
    other = each_score(dict.fromkeys(references, "a qqq"), references)
    base = truth.mean()
    entropy = -len(truth) * (base * math.log2(base) + (1 - base) * math.log2(1 - base))
    print(
        f"{len(truth)} images, {truth.sum()} with {options.word!r}, {entropy:.0f} bits; mean of {options.seeds} seeds"
    )
    print(f"{'':32} {'average':>14} {'best direction':>14}")
    print(f"{'defences':20} {'submissions':>11} {'AUC':>6} {'bits':>7} {'AUC':>6} {'bits':>7}")
    for name, settings in DEFENCES.items():
        for count in SUBMISSIONS:
            shown = []
            for oracle in (False, True):
                areas, gained = [], []
                for seed in range(options.seeds):
                    rng = np.random.default_rng(seed)
                    claims = attack(said, other, settings, count, rng=rng, truth=truth, oracle=oracle)
                    areas.append(area(claims, truth))
                    gained.append(bits(claims, truth, rng))
                shown.append(f"{np.mean(areas):6.3f} {np.mean(gained):7.1f}")
            print(f"{name:20} {count:11} {shown[0]} {shown[1]}", flush=True)


if __name__ == "__main__":
    main()
