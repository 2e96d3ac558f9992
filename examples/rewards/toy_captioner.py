"""Train a toy captioner with a reward: word pairs of all captions, and for each image how much it likes each word.

The pairs are counted in the references (a fluent start that knows nothing of images). What an image likes begins at 0
and is learned from rewards alone, by policy gradients over samples of the image (GRPO's advantages, on policy).

Run with: python toy_captioner.py [captions.json]        numpy alone; about a minute on two cores.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from spicegraph_graded import RewardModel
from spicegraph_scorer.core.tokens import tokenize_texts

IMAGES, SAMPLES, STEPS, LONGEST, RATE = 24, 12, 50, 14, 2.0
REWARD = "spice-g=1,cider=.05,length=-.01,repetition=-.1"
COCO = Path(__file__).parents[1] / "coco" / "captions.json"


class Captioner:
    """Chooses words one after another: by the word before and by the image."""

    def __init__(self, captions: list[tuple[str, ...]], images: int) -> None:
        self.words = ["", *sorted({word for caption in captions for word in caption})]
        number = {word: place for place, word in enumerate(self.words)}
        pairs = np.full((len(self.words), len(self.words)), 1e-3)
        for caption in captions:
            for before, after in zip(("", *caption), (*caption, ""), strict=True):
                pairs[number[before], number[after]] += 1
        self.pairs = np.log(pairs / pairs.sum(axis=1, keepdims=True))
        self.likes = np.zeros((images, len(self.words)))

    def chances(self, image: int, before: int) -> np.ndarray:
        """Return the probability of each next word; the empty word is the end."""
        logits = self.pairs[before] + self.likes[image]
        exponentials = np.exp(logits - logits.max())
        return exponentials / exponentials.sum()

    def sample(self, image: int, chance: np.random.Generator) -> list[int]:
        """Return the numbers of a caption's words."""
        chosen = [0]
        while len(chosen) <= LONGEST:
            chosen.append(int(chance.choice(len(self.words), p=self.chances(image, chosen[-1]))))
            if not chosen[-1]:
                break
        return chosen

    def learn(self, image: int, chosen: list[int], advantage: float) -> None:
        """Make a caption likelier, or less likely: a step along the gradient of its log probability."""
        for before, after in itertools.pairwise(chosen):
            self.likes[image] -= RATE / SAMPLES * advantage * self.chances(image, before)
            self.likes[image, after] += RATE / SAMPLES * advantage


def main(path: Path) -> None:
    """Train, and print the mean reward of each fifth step, and captions from before and after."""
    references: defaultdict[int, list[str]] = defaultdict(list)
    for row in json.loads(path.read_text(encoding="utf-8"))["annotations"]:
        references[row["image_id"]].append(row["caption"])
    images = list(references)[:IMAGES]
    captioner = Captioner([text for image in images for text in tokenize_texts(references[image])], len(images))
    model = RewardModel(REWARD, references)
    chance = np.random.default_rng(0)
    shown: list[str] = []
    for step in range(STEPS + 1):
        places = [place for place in range(len(images)) for _ in range(SAMPLES)]
        samples = [captioner.sample(place, chance) for place in places]
        captions = [" ".join(captioner.words[number] for number in chosen if number) for chosen in samples]
        own = [images[place] for place in places]
        if step in (0, STEPS):
            shown += [captions[place * SAMPLES] for place in range(3)]
        if step % 5 == 0:
            mean = float(np.mean(model.rewards(own, captions)))
            sys.stdout.write(f"{step:3} {mean:+.3f} {'#' * max(0, round(60 * mean))}\n")
        for place, chosen, advantage in zip(places, samples, model.advantages(own, captions), strict=True):
            captioner.learn(place, chosen, advantage)
    for before, after, image in zip(shown[:3], shown[3:], images, strict=False):
        sys.stdout.write(f"{image}: {before} -> {after}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else COCO)
