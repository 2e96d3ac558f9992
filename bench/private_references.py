"""How many words of private references a participant learns from scores, with the defences of a challenge and without.

The attacker knows the images, how metrics work, and which words are frequent; a word is learned when the scores tell
that it stands in the references of an image. The evaluation server's own functions check the files, make the scores
and round them, and count kinds of errors. With --pages the attacker reads all of them from the page of a submission,
not from the calls. Without defences the numbers of errors are exact, and of all words.
Usage: python bench/private_references.py [--submissions N] [--seed N] [--pages]
"""

from __future__ import annotations

import argparse
import html
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

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.accounts import Account
from spicegraph_challenge.model.leaderboard import shown_scores
from spicegraph_challenge.model.schema import Challenge, Role, RunScore, SplitReferences
from spicegraph_challenge.model.settings import with_defaults
from spicegraph_challenge.pages import views
from spicegraph_challenge.pages.visit import PACKAGE
from spicegraph_challenge.sandbox.files import Image
from spicegraph_challenge.sandbox.tasks import Finish, error_rows, finish
from spicegraph_challenge.sandbox.validation import read_submission, split_images
from spicegraph_parser import load_pipeline
from spicegraph_parser.ptb import tokenize
from spicegraph_scorer import Item
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.errors import error_words
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.scoring import resources
from spicegraph_service.kit import ChunkStatistics
from spicegraph_service.output.pages import render_page
from spicegraph_service.pool.processes import frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CAPTIONS = Path(__file__).parent.parent / "examples" / "coco" / "captions.json"
METRICS = ("bleu", "rouge", "cider", "spice")
NONE = pb.ChallengeSettings(category_images=1, equal_percent=100)  # and all that organisers see
DEFAULT = with_defaults(pb.ChallengeSettings())
BETA = 1.2  # ROUGE-L's
LENGTHS = range(5, 26)  # of references, in words
COMMON = 0.5  # of the images; words that more have, such as "a", are not content
RELATION = 3  # words of a fact
METRIC_SCORES = ("Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "ROUGE_L", "CIDEr", "SPICE")
PACKED = 8  # images that one score in full distinguishes
ASSERTED = 10  # images that the statistical attack names
ASKED = 12  # words whose errors are counted at once: as many as the server shows
MISSED = "object_missed"


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

    def scores(
        self, captions: Mapping[int, str], disclosure: pb.ChallengeSettings, *, errors: bool = False
    ) -> dict[str, float] | None:
        """What a participant sees of a submission; ``None``: it is refused.

        With ``errors`` these are the numbers of images with an error, by its kind and words: ``object_missed dog``.
        """
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "results.json"
            path.write_text(json.dumps([{"image_id": key, "caption": text} for key, text in captions.items()]))
            images = split_images([[Image(key, "", len(texts)) for key, texts in self.references.items()]])
            _, faults = read_submission(str(path), path.name, "val", {"val": images}, disclosure)
            if faults:
                return None
            corpus = Corpus(tuple(Item(key, captions[key], texts) for key, texts in self.references.items()))
            metrics = make_metrics(METRICS, resources(self.cache, metrics=METRICS, evidence=False))
            statistics = Path(name) / "statistics"
            if errors:
                return self._error_counts(corpus, disclosure)
            collected = {key: made.defer(corpus) for key, made in metrics.items()}
            statistics.write_bytes(frame(pickle.dumps(ChunkStatistics(collected, []))))
            rows = [
                RunScore(**row._asdict(), reference_set=SplitReferences(image_count=len(captions)))
                for row in finish(Finish(METRICS, str(statistics))).scores
            ]
        challenge = Challenge(settings=disclosure)
        role = Role.ORGANISER if disclosure == NONE else Role.PARTICIPANT
        shown = shown_scores(rows, challenge, Account(0, "attacker", role))
        if self.pages:
            return on_page(shown, len(self.references))
        return {row.name: row.value for row in shown if row.value is not None}

    def _error_counts(self, corpus: Corpus, disclosure: pb.ChallengeSettings) -> dict[str, float]:
        spice = make_metrics(("spice",), resources(self.cache, metrics=("spice",), evidence=True))["spice"]
        found = [error_words(row.match) for row in spice.collect(corpus)]
        if disclosure == NONE:
            counted = Counter(error for errors in found for error in errors)
            return {" ".join((kind, *words)): count for (kind, words), count in counted.items()}
        told = [row for row in error_rows(found) if row.images >= disclosure.error_images]
        if not self.pages:
            return {" ".join((row.kind, *row.words)): row.images for row in told}
        counts = [
            pb.ErrorCount(kind=row.kind, title=row.title, words=row.words, columns=row.columns, image_count=row.images)
            for row in told
        ]
        titles = {row.title: row.kind for row in told}
        cells = re.findall(
            r'<td class="left">([^<]+)</td>(?:<td class="left"><bdi>([^<]*)</bdi></td>)?<td>([\d,]+)</td>',
            page_of(len(self.references), errors=counts),
        )
        words = [[part.partition(": ")[2] for part in html.unescape(text).split("; ") if text] for _, text, _ in cells]
        return {
            " ".join((titles[html.unescape(title)], *own)): float(count.replace(",", ""))
            for (title, _, count), own in zip(cells, words, strict=True)
        }


def page_of(images: int, *, scores: Sequence[pb.CorpusScore] = (), errors: Sequence[pb.ErrorCount] = ()) -> str:
    """Return a participant's page of a submission."""
    part = pb.SplitScores(split="val", reference_set="c5", image_count=images, scores=scores, errors=errors)
    submission = pb.Submission(id="x", challenge="c", user="u", state=pb.SUBMISSION_STATE_SUCCEEDED, scores=[part])
    view = views.submission_page(submission, None, own=True)
    me = Account(0, "u", Role.PARTICIPANT)
    values: dict[str, object] = {"me": me, "proof": "", "submission": view, "faults": (), "fault_count": 0, "next": ""}
    values["may"] = views.rights(pb.CHALLENGE_ROLE_UNSPECIFIED)
    return render_page("submission.html.j2", values, package=PACKAGE)


def on_page(shown: Iterable[pb.CorpusScore], images: int) -> dict[str, float]:
    """Return the scores that stand on a participant's page of a submission."""
    scores = [
        pb.CorpusScore(name=row.name, value=row.value, low=row.low, high=row.high, digits=row.digits) for row in shown
    ]
    page = page_of(images, scores=scores)
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
    disclosure: pb.ChallengeSettings
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
        is_exact = self.disclosure == NONE
        tolerance = 1e-13 if is_exact else 0.5 * 10.0**-self.disclosure.digits * len(self.target.references)
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

    def errors_by_halves(self) -> Iterator[Claim]:
        """Frequent words, each on a random half of the images of its own: how many still miss it, by least squares."""
        words, keys = self.frequent()[:ASKED], list(self.target.references)
        design: dict[str, list[np.ndarray]] = {word: [] for word in words}
        seen: dict[str, list[float]] = {word: [] for word in words}
        for _ in range(self.submissions):
            chosen = {word: self.rng.random(len(keys)) < 0.5 for word in words}
            told = self._missed(
                {key: [word for word in words if chosen[word][place]] for place, key in enumerate(keys)}
            )
            if told is None:
                continue
            for word in words:
                if (count := told.get(word)) is not None:
                    design[word].append(0.5 - chosen[word])
                    seen[word].append(count)
        for word in words:
            if len(set(seen[word])) > 1:
                values = np.array(seen[word]) - np.mean(seen[word])
                effects = np.linalg.lstsq(np.array(design[word]), values, rcond=None)[0]
                yield from (Claim(keys[place], word) for place in np.argsort(-effects)[:ASSERTED])

    def errors_by_edges(self) -> Iterator[Claim]:
        """Frequent words, each on the first images: where the number that miss it drops, an image has the word.

        The place is found by halving, for all words at once; then the next drop behind it.
        """
        words, keys = self.frequent()[:ASKED], list(self.target.references)
        spans = dict.fromkeys(words, (0, len(keys)))
        ends: dict[str, float] = {}
        for number in range(self.submissions):
            middle = {word: 0 if not number else (low + high) // 2 for word, (low, high) in spans.items()}
            told = self._missed(
                {key: [word for word in words if place < middle[word]] for place, key in enumerate(keys)}
            )
            if told is None:
                continue
            for word, place in middle.items():
                count = told.get(word, 0.0)
                if not number:
                    ends[word] = count
                    continue
                low, high = spans[word]
                low, high = (place, high) if count >= ends[word] else (low, place)
                if high - low <= 1:
                    if low < len(keys):
                        yield Claim(keys[low], word)
                    low, high, ends[word] = high, len(keys), min(count, ends[word] - 1)
                spans[word] = (low, high)

    def _missed(self, said: Mapping[int, Sequence[str]]) -> dict[str, float] | None:
        """How many images are shown to miss each word, for captions with some; ``None``: the file is refused."""
        captions = {
            key: " and ".join(f"a {word}" for word in words) + f" {gibberish(self.rng, 3)}"
            for key, words in said.items()
        }
        told = self.target.scores(captions, self.disclosure, errors=True)
        if told is None:
            self.refused += 1
            return None
        return {name.removeprefix(f"{MISSED} "): count for name, count in told.items() if name.startswith(MISSED + " ")}


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
    "errors, random halves": Attack.errors_by_halves,
    "errors, edges": Attack.errors_by_edges,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=DEFAULT.total_limit, help="the default limit of a challenge")
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
        made = Attack(target, DEFAULT if defended else NONE, options.submissions, np.random.default_rng(options.seed))
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
