"""How many words of private references a participant learns from scores, with the defences of a challenge and without.

The attacker knows the images, how metrics work, and which words are frequent; a word is learned when the scores tell
that it stands in the references of an image. The evaluation server's own functions check the files, make the scores
and round them. With --pages the attacker reads the numbers from the page of a submission, not from the calls.
Usage: python bench/private_references.py [--submissions N] [--seed N] [--pages]
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_parser import load_pipeline
from spicegraph_parser.ptb import tokenize
from spicegraph_scorer import Item
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.scoring import resources
from spicegraph_service.challenge.accounts import Account
from spicegraph_service.challenge.catalogue import ALL_DIGITS, TOTAL_LIMIT, Disclosure
from spicegraph_service.challenge.files import Image
from spicegraph_service.challenge.leaderboard import shown_scores
from spicegraph_service.challenge.schema import Challenge, Role, RunScore
from spicegraph_service.challenge.tasks import Finish, finish
from spicegraph_service.challenge.validation import read_submission, split_images
from spicegraph_service.output.pages import render_page
from spicegraph_service.server.processes import frame
from spicegraph_service.web import views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CAPTIONS = Path(__file__).parent.parent / "examples" / "coco" / "captions.json"
METRICS = ("bleu", "rouge", "cider", "spice")
NONE = Disclosure(digits=ALL_DIGITS, category_images=1, equal_percent=100)
BETA = 1.2  # ROUGE-L's
LENGTHS = range(5, 26)  # of references, in words
COMMON = 0.5  # of the images; words that more have, such as "a", are not content
RELATION = 3  # words of a fact
METRIC_SCORES = ("Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "ROUGE_L", "CIDEr", "SPICE")
PACKED = 8  # images that one score in full distinguishes
ASSERTED = 10  # images that the statistical attack names


class Claim(NamedTuple):
    """The attacker says that a word stands in the references of an image."""

    image: int
    word: str


@dataclass
class Target:
    """The private references, and the server that scores against them.

    Content words are those that name an object or an attribute in any of the references.
    """

    references: Mapping[int, tuple[str, ...]]
    pages: bool = False
    tokens: Mapping[int, frozenset[str]] = field(init=False)
    content: frozenset[Claim] = field(init=False)
    cache: FactCache = field(init=False)

    def __post_init__(self) -> None:
        self.cache = FactCache(load_pipeline(), places=False)
        self.tokens = {
            key: frozenset(token.text.lower() for text in texts for token in tokenize(text))
            for key, texts in self.references.items()
        }
        facts = self.cache.facts([text for texts in self.references.values() for text in texts])
        vocabulary = {word for parsed in facts for fact in parsed if len(fact.words) < RELATION for word in fact.words}
        images = Counter(word for tokens in self.tokens.values() for word in tokens)
        vocabulary = {word for word in vocabulary if images[word] <= COMMON * len(self.references)}
        self.content = frozenset(
            Claim(key, word) for key, tokens in self.tokens.items() for word in tokens & vocabulary
        )

    def scores(self, captions: Mapping[int, str], disclosure: Disclosure) -> dict[str, float] | None:
        """What a participant sees of a submission; ``None``: it is refused."""
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "results.json"
            path.write_text(json.dumps([{"image_id": key, "caption": text} for key, text in captions.items()]))
            images = split_images([[Image(key, "", len(texts)) for key, texts in self.references.items()]])
            checked = read_submission(
                str(path), path.name, "val", {"val": images}, equal_percent=disclosure.equal_percent
            )
            if checked.faults:
                return None
            corpus = Corpus(tuple(Item(key, captions[key], texts) for key, texts in self.references.items()))
            metrics = make_metrics(METRICS, resources(self.cache, metrics=METRICS, evidence=False))
            statistics = Path(name) / "statistics"
            statistics.write_bytes(frame(pickle.dumps({key: made.defer(corpus) for key, made in metrics.items()})))
            rows = [RunScore(**row._asdict()) for row in finish(Finish(METRICS, str(statistics))).scores]
        challenge = Challenge(score_digits=disclosure.digits, category_images=disclosure.category_images)
        shown = shown_scores(rows, challenge, Account(0, "attacker", Role.PARTICIPANT))
        if self.pages:
            return on_page(shown, len(self.references))
        return {row.name: row.value for row in shown if row.value is not None}


def on_page(shown: Iterable[RunScore], images: int) -> dict[str, float]:
    """Return the numbers that stand on a participant's page of a submission."""
    scores = [pb.CorpusScore(name=row.name, value=row.value, low=row.low, high=row.high) for row in shown]
    part = pb.SplitScores(split="val", reference_set="c5", image_count=images, scores=scores)
    submission = pb.Submission(id="x", challenge="c", user="u", state=pb.SUBMISSION_STATE_SUCCEEDED, scores=[part])
    view = views.submission_page(submission, None, full=False, own=True)
    me = Account(0, "u", Role.PARTICIPANT)
    values = {"me": me, "proof": "", "submission": view, "faults": (), "fault_count": 0, "next": ""}
    page = render_page("web/submission.html.j2", values)
    cells = re.findall(r'<td class="left">([^<]+)</td><td>([-\d.e]+)', page)
    names = {name: name if name in METRIC_SCORES else f"SPICE_{name}" for name, _ in cells}
    return {names[name]: float(value) for name, value in cells}


def gibberish(rng: np.random.Generator, words: int) -> str:
    """Words that no reference holds."""
    return " ".join("q" + "".join(rng.choice(list("bcdfgjkxvz"), 7)) for _ in range(words))


def rouge(length: int, reference: int) -> float:
    """ROUGE-L of a caption with one word of a reference."""
    precision, recall = 1 / length, 1 / reference
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


@dataclass
class Attack:
    """One attacker: what they submit, and what they conclude."""

    target: Target
    disclosure: Disclosure
    submissions: int
    rng: np.random.Generator
    refused: int = 0

    def frequent(self) -> list[str]:
        """Content words by frequency: known from any captions of the same kind."""
        return [word for word, _ in Counter(claim.word for claim in self.target.content).most_common(30)]

    def noise(self) -> dict[int, str]:
        """Nonsense for every image, never the same twice."""
        return {key: gibberish(self.rng, 10) for key in self.target.references}

    def packed(self, at_once: int) -> Iterator[Claim]:
        """Nonsense everywhere but on a few images, each with one word and a length of its own: sums tell them apart."""
        tests = [Claim(key, word) for word in self.frequent() for key in self.target.references]
        for number in range(self.submissions):
            asked = tests[number * at_once : (number + 1) * at_once]
            captions = self.noise()
            for place, claim in enumerate(asked):
                captions[claim.image] = f"{claim.word} {gibberish(self.rng, 3 * place + 1)}"
            seen = self.target.scores(captions, self.disclosure)
            if seen is None:
                self.refused += 1
                continue
            total = seen["ROUGE_L"] * len(captions)
            yield from (asked[place] for place in self._explained(total, len(asked)))

    def _explained(self, total: float, asked: int) -> set[int]:
        """The words that every explanation of a sum of ROUGE-L has."""
        options = [
            np.array([0.0, *(rouge(3 * place + 2, reference) for reference in LENGTHS)]) for place in range(asked)
        ]
        half = asked // 2
        sides = [_sums(options[:half]), _sums(options[half:])]
        order = np.argsort(sides[1])
        ordered = sides[1][order]
        digits = self.disclosure.digits
        tolerance = 1e-13 if digits == ALL_DIGITS else 0.5 * 10.0**-2 * len(self.target.references)
        start = np.searchsorted(ordered, total - sides[0] - tolerance)
        end = np.searchsorted(ordered, total - sides[0] + tolerance)
        common: set[int] | None = None
        for left in np.flatnonzero(end > start):
            for right in order[start[left] : end[left]]:
                hits = _hits(int(left), options[:half]) | {half + hit for hit in _hits(int(right), options[half:])}
                common = hits if common is None else common & hits
                if not common:
                    return set()
        return common or set()

    def halves(self) -> Iterator[Claim]:
        """The most frequent word on random halves of the images; which images raise the scores, by least squares."""
        word, keys = self.frequent()[0], list(self.target.references)
        design, seen = [], []
        for _ in range(self.submissions):
            chosen = self.rng.random(len(keys)) < 0.5
            captions = self.noise() | {
                key: f"{word} {gibberish(self.rng, 1)}" for key, on in zip(keys, chosen, strict=True) if on
            }
            scores = self.target.scores(captions, self.disclosure)
            if scores is None:
                self.refused += 1
                continue
            design.append(chosen - 0.5)
            seen.append([scores.get(name, 0.0) for name in ("SPICE", "ROUGE_L", "CIDEr", "Bleu_1")])
        if not design:
            return
        values = np.array(seen)
        spread = values.std(axis=0)
        values = (values - values.mean(axis=0))[:, spread > 0] / spread[spread > 0]
        effects = np.linalg.lstsq(np.array(design), values, rcond=None)[0].sum(axis=1)
        yield from (Claim(keys[place], word) for place in np.argsort(-effects)[:ASSERTED])


def _sums(options: Sequence[np.ndarray]) -> np.ndarray:
    total = np.zeros(1)
    for values in options:
        total = (total[:, None] + values[None, :]).ravel()
    return total


def _hits(index: int, options: Sequence[np.ndarray]) -> set[int]:
    """The places that are not 0 in the combination with this number."""
    places = np.unravel_index(index, [len(values) for values in options]) if options else ()
    return {place for place, chosen in enumerate(places) if chosen}


def learned(target: Target, claims: Sequence[Claim]) -> float:
    """Correct claims, less those that guessing by the words' frequency would give."""
    share = Counter(claim.word for claim in target.content)
    right = sum(claim in target.content for claim in claims)
    return right - sum(share[claim.word] / len(target.references) for claim in claims)


ATTACKS: Mapping[str, Callable[[Attack], Iterator[Claim]]] = {
    "one image a submission": lambda attack: attack.packed(1),
    f"{PACKED} images a submission": lambda attack: attack.packed(PACKED),
    "random halves, least squares": Attack.halves,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=TOTAL_LIMIT, help="the default limit of a challenge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pages", action="store_true", help="read the numbers from the page of a submission")
    options = parser.parse_args()
    references: dict[int, tuple[str, ...]] = {}
    for row in json.loads(CAPTIONS.read_text())["annotations"]:
        references[row["image_id"]] = (*references.get(row["image_id"], ()), row["caption"])
    target = Target(references, options.pages)
    print(f"{len(references)} images, {len(target.content):,} content words; {options.submissions} submissions")
    print("attack                          defences  refused  claimed  right  learned  per cent of all")
    for (name, attack), defended in product(ATTACKS.items(), (False, True)):
        made = Attack(
            target,
            Disclosure() if defended else NONE,
            options.submissions,
            np.random.default_rng(options.seed),
        )
        claims = list(attack(made))
        right = sum(claim in target.content for claim in claims)
        words = learned(target, claims)
        print(
            f"{name:31} {'default' if defended else 'none':8} {made.refused:8} {len(claims):8} {right:6} {words:8.1f}"
            f" {100 * words / len(target.content):12.2f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
