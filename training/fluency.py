"""Train the fluency detector: captions of people, and what is left of them when something is broken.

    python training/fluency.py JAR OUT PARSES...      # trains; prints figures of held-out captions
    python training/fluency.py JAR OUT PARSES... --real marked.jsonl.gz   # and of captions with ``fluency_issue``

JAR is spice-1.0.jar of the pycocoevalcap wheel (COCO train2014), PARSES are KIND.conllu.gz files of ``silver.sh``:
their tags say where a verb, a noun or a conjunction can be left out. Needs scipy. One thread, fixed seed.
"""

import argparse
import gzip
import json
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack

from captions import read_captions
from heldout import Hashes, add_hashes, kind_of
from spicegraph_graded.chair import CLASSES
from spicegraph_graded.fluency.detector import (
    BUCKETS,
    COUNTERS,
    KINDS,
    Detector,
    FluencyVocabulary,
    counter_places,
    features_of,
    sentences_of,
)

Tagged = list[tuple[str, str]]  # words in lower case and tags, without end punctuation
JOINTS = ("and", "while", "as", "then", "followed", "before", "after")
TAILS = ("and", "and a", "with a", "with", "in the", "on a", "of a", "as", "while", "and then a", "to a", "is", "a")
CUT_TAGS = {"DT", "IN", "CC", "TO", "PRP$", "MD"}
CUT_WORDS = {"is", "are", "being", "while", "with"}
NOUN, VERB = "NN", "VB"
FUNCTION_WORDS = frozenset(["a", "an", "the", "of", "in", "on", "with", "at", "to"])
FUNCTION_WORDS |= {"and", "near", "by", "for", "from", "while", "is", "are"}
NEEDED = FUNCTION_WORDS - {"a", "an", "the", "is", "are"}  # headlines lack those
SYNONYMS: dict[str, list[str]] = {}
for _word, _class in CLASSES.items():
    SYNONYMS.setdefault(_class, []).append(_word)
NOUNS = sorted(CLASSES)
MOST = {"coco_train_silver": 80_000, "coco_train_silver_lower": 20_000, "vg": 10_000}
COUNTED = 300_000  # captions of COCO
HELD = 20  # captions in 1,000 that are held out, by a hash of their words
FEWEST, LONGEST = 4, 40  # words of a caption that is broken
FREQUENT, ENDINGS, RARE = 5000, 400, 20
CLAUSE = 8  # words of a clause that is said of the subject of another
BATCH, PASSES, RATE = 2048, 5, 0.1


def read_tagged(path: Path) -> Iterator[Tagged]:
    """Yield the sentences of a file of parses, without punctuation but commas."""
    words: Tagged = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line[0].isdigit():
                fields = line.split("\t")
                form = fields[1].lower()
                if form in ",;:":
                    words.append((",", ","))
                elif form[0].isalnum():
                    words.append((form, fields[4]))
                elif form in ("'s", "n't") and words:
                    words[-1] = (words[-1][0] + form, words[-1][1])
            elif not line.strip() and words:
                while words and words[-1][0] == ",":
                    words.pop()
                yield words
                words = []


def unfinished(words: Tagged, dice: random.Random) -> Tagged | None:
    """Cut off behind an article, a preposition or a conjunction, or add such an end."""
    started = [
        n + 1
        for n in range(4, len(words) - 1)
        if words[n - 2][0] in JOINTS
        and words[n - 1][1] == "DT"
        and words[n][1].startswith(NOUN)
        and words[n + 1][1].startswith(VERB)
        and any(tag.startswith(VERB) for _, tag in words[: n - 2])
    ]
    if started and dice.random() < 0.5:
        return words[: dice.choice(started)]  # "a man is speaking and a door"
    places = [n + 1 for n, (word, tag) in enumerate(words) if n > 1 and (tag in CUT_TAGS or word in CUT_WORDS)]
    places = [n for n in places if n < len(words)]
    if places and dice.random() < 0.6:
        return words[: dice.choice(places)]
    return words + [(word, "") for word in dice.choice(TAILS).split()]


def reworded(words: Tagged, dice: random.Random) -> Tagged:
    """Return a clause with verbs in another form, often without what stands behind them: "is barking" for "barks"."""
    found: Tagged = []
    for word, tag in words:
        if tag == "VBZ" and word not in ("is", "has"):
            stem = word.removesuffix("s")
            found += [("is", "VBZ")] if dice.random() < 0.6 else []
            found.append((stem.removesuffix("e") + "ing", "VBG"))
        elif tag == "VBG":
            stem = word.removesuffix("ing")
            while found and found[-1][0] in ("is", "are"):
                found.pop()
            found.append((stem + dice.choice(("s", "es", "ed", "")), "VBZ"))
        elif tag == "NNS" and dice.random() < 0.5:
            found.append((word.removesuffix("s"), "NN"))
        elif tag == "NN" and word[-1] != "s" and dice.random() < 0.2:
            found.append((word + "s", "NNS"))
        else:
            found.append((word, tag))
    verbs = [n for n, (_, tag) in enumerate(found) if tag in ("VBZ", "VBG")]
    return found[: verbs[-1] + 1] if verbs and dice.random() < 0.5 else found


def clauses_of(words: Tagged) -> list[Tagged]:
    """Return what stands between what joins clauses, where it has a verb and another word."""
    starts = [0] + [n + 1 for n, (word, _) in enumerate(words[:-1]) if word in JOINTS or word in (",", "by")]
    clauses = [words[a:b] for a, b in zip(starts, [*[n - 1 for n in starts[1:]], len(words)], strict=True)]
    return [one for one in clauses if len(one) > 1 and any(tag.startswith(VERB) for _, tag in one)]


def verb_of(clause: Tagged) -> int:
    """Return where the first verb of a clause stands."""
    return next(n for n, (_, tag) in enumerate(clause) if tag.startswith(VERB))


def subject_of(clause: Tagged) -> str:
    """Return the noun before the verb of a clause, or nothing."""
    before = clause[: verb_of(clause)]
    return before[-1][0] if before and before[-1][1].startswith(NOUN) else ""


def said_by_subject(sentences: Sequence[Tagged]) -> dict[str, list[Tagged]]:
    """Return the clauses of each subject that several sentences have."""
    found: dict[str, list[Tagged]] = {}
    for words in sentences:
        for clause in clauses_of(words):
            if (subject := subject_of(clause)) and len(clause) <= CLAUSE:
                found.setdefault(subject, []).append(clause)
    return {subject: clauses for subject, clauses in found.items() if len(clauses) >= RARE}


def said_otherwise(words: Tagged, dice: random.Random) -> Tagged | None:
    """Say a clause again in other forms: "sheep bleat and a sheep bleats"."""
    clauses = clauses_of(words)
    if not clauses:
        return None
    own = dice.choice(clauses)
    again = reworded(own, dice) if dice.random() < 0.8 else own
    if dice.random() < 0.2:
        again = again[min(verb_of(own), len(again) - 1) :]  # "a baby cries and cries"
    return (own if dice.random() < 0.4 else words) + linked(dice) + again


def linked(dice: random.Random) -> Tagged:
    """Return what joins two clauses."""
    return [(word, "") for word in dice.choice(("and", "and then", "followed by", "as", "while")).split()]


def subject_again(words: Tagged, dice: random.Random, said: Mapping[str, Sequence[Tagged]]) -> Tagged | None:
    """Say something else of a subject as if it were another: "a siren rings and then a siren sounds"."""
    clauses = clauses_of(words)
    named = [one for one in clauses if subject_of(one) in said]
    if not named:
        return None
    own = dice.choice(named)
    if dice.random() < 0.5:
        other = dice.choice(clauses)  # "a man speaks and laughs and a man laughs"
        return words + linked(dice) + own[: verb_of(own)] + reworded(other[verb_of(other) :], dice)
    other = dice.choice(said[subject_of(own)])
    other = reworded(other, dice) if dice.random() < 0.5 else other
    if dice.random() < 0.2:
        other = other[: verb_of(other)]  # "a gun fires followed by a gun"
    return (own if dice.random() < 0.5 else words) + linked(dice) + other


def named_again(words: Tagged, dice: random.Random) -> Tagged | None:
    """Name things by several nouns in a row."""
    places = [n for n, (word, tag) in enumerate(words) if tag in ("NN", "NNS") and word[-1] != ","]
    if not places:
        return None
    found: Tagged = []
    chosen = set(dice.sample(places, dice.randint(1, min(3, len(places)))))
    for n, one in enumerate(words):
        found.append(one)
        if n in chosen:
            known = CLASSES.get(one[0])
            pool = SYNONYMS[known] if known and dice.random() < 0.7 else NOUNS
            found += [(word, "NN") for word in dice.sample(pool, min(dice.randint(1, 3), len(pool))) if word != one[0]]
    return found


def repetition(words: Tagged, dice: random.Random, said: Mapping[str, Sequence[Tagged]]) -> Tagged | None:
    """Say the whole, a stretch, a clause or a word twice, with or without a connective, or name things twice."""
    other = dice.random()
    if other < 0.25 and (again := subject_again(words, dice, said)):
        return again
    other = dice.random()
    if other < 0.6 and (again := (said_otherwise if other < 0.45 else named_again)(words, dice)):
        return again
    way = dice.random()
    link: Tagged = [(word, "") for word in dice.choice(("and", "followed by", "then", "with", ",", "", "")).split()]
    if way < 0.3 and len(words) < LONGEST / 2:
        return words + link + words
    if way < 0.5:
        adverbs = [n for n, (_, tag) in enumerate(words) if tag in ("RB", "JJ", "VBG", "NN")]
        if adverbs:
            place = dice.choice(adverbs)
            return words[: place + 1] + (link or [("and", "")]) + words[place:]
    if way < 0.7:
        place = dice.randrange(len(words))
        return words[: place + 1] + words[place:]
    size = dice.randint(2, 6)
    start = dice.randrange(max(len(words) - size, 1))
    return words[: start + size] + (link if dice.random() < 0.6 else []) + words[start:]


def no_conjunction(words: Tagged, dice: random.Random) -> Tagged | None:
    """Leave out what joins two clauses or nouns."""
    places = [n for n, (word, _) in enumerate(words) if word in JOINTS and 0 < n < len(words) - 1]
    if not places:
        return None
    place = dice.choice(places)
    end = place + 1 + (words[place + 1][0] in ("by", "then"))
    start = place - (words[place - 1][0] == ",")
    return words[:start] + words[end:]


def no_verb(words: Tagged, dice: random.Random) -> Tagged | None:
    """Leave out a verb, with its auxiliary, that stands between a noun and another one."""
    found = []
    for n, (word, tag) in enumerate(words):
        if not tag.startswith(VERB) or n == 0 or word in ("is", "are"):
            continue
        start = n - (words[n - 1][0] in ("is", "are"))
        after = words[n + 1][1] if n + 1 < len(words) else ""
        if start and words[start - 1][1].startswith(NOUN) and after in ("DT", "PRP$", "CD"):
            found.append((start, n + 1))
        elif start < n and n + 1 == len(words):
            found.append((n, n + 1))  # "a dog is"
        elif start < n and after in ("CC", "RB"):
            found.append((n, n + 1))
    if not found:
        return None
    start, end = dice.choice(found)
    return words[:start] + words[end:]


def no_noun(words: Tagged, dice: random.Random) -> Tagged | None:
    """Leave out a noun behind an article or an adjective, inside a caption."""
    found = [
        n
        for n in range(1, len(words) - 1)
        if words[n][1].startswith(NOUN)
        and words[n - 1][1] in ("DT", "PRP$")
        and not words[n + 1][1].startswith((NOUN, "JJ", "CD", "VBN", "VBG"))
    ]
    if not found:
        return None
    place = dice.choice(found)
    return words[:place] + words[place + 1 :]


def telegram(words: Tagged, dice: random.Random) -> Tagged | None:
    """Leave out all function words, or most."""
    kept = [one for one in words if one[0] not in FUNCTION_WORDS or dice.random() < 0.1]
    gone = sum(one[0] in NEEDED for one in words) - sum(one[0] in NEEDED for one in kept)
    return kept if gone and len(words) - len(kept) > 1 and len(kept) > 2 else None


def disorder(words: Tagged, dice: random.Random) -> Tagged | None:
    """Exchange halves, or put all words, some neighbours or the content words into another order."""
    way = dice.random()
    if way < 0.3:
        return dice.sample(words, len(words))
    if way < 0.6:
        middle = len(words) // 2
        return words[middle:] + words[:middle]
    if way < 0.8:
        size = min(dice.randint(3, 6), len(words))
        start = dice.randrange(len(words) - size + 1)
        return words[:start] + dice.sample(words[start : start + size], size) + words[start + size :]
    places = [n for n, (_, tag) in enumerate(words) if tag[:2] in (NOUN, VERB, "JJ")]
    moved = dict(zip(places, dice.sample(places, len(places)), strict=True))
    return [words[moved.get(n, n)] for n in range(len(words))]


Break = Callable[[Tagged, random.Random], Tagged | None]


def breaks_of(said: Mapping[str, Sequence[Tagged]]) -> Mapping[str, tuple[float, Break]]:
    """Return what makes an error of each kind, and which share of the errors is of it."""
    return {
        "unfinished": (0.2, unfinished),
        "repetition": (0.3, partial(repetition, said=said)),
        "conjunction": (0.1, no_conjunction),
        "verb": (0.12, no_verb),
        "noun": (0.08, no_noun),
        "function": (0.08, telegram),
        "order": (0.18, disorder),
    }


def plain_words(words: Tagged, *, commas: bool) -> tuple[str, ...]:
    """Return the words as the detector reads them."""
    found = [word for word, _ in words if commas or word != ","]
    text = " ".join(found)
    return tuple(word for sentence in sentences_of(text) for word in sentence)


def examples(sentences: Sequence[Tagged], dice: random.Random) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each sentence as it is, class 0, and most of them once more with an error of a class from 1 on."""
    breaks = breaks_of(said_by_subject(sentences))
    names, shares = list(breaks), [share for share, _ in breaks.values()]
    for words in sentences:
        commas = dice.random() < 0.7
        whole = plain_words(words, commas=commas)
        yield whole, 0
        if not FEWEST <= len(words) <= LONGEST:
            continue
        name = dice.choices(names, shares)[0]
        broken = breaks[name][1](words, dice)
        if broken and (changed := plain_words(broken, commas=commas)) != whole:
            yield changed, 1 + KINDS.index(name)


def digest(words: Tagged) -> int:
    """Return a number that depends on a caption's words alone."""
    return zlib.crc32(" ".join(word for word, _ in words if word != ",").encode())


def learn_vocabulary(sentences: Sequence[Tagged]) -> FluencyVocabulary:
    """Return frequent words and endings, each with its most frequent tag, or two where they share it."""
    counts = Counter(word for words in sentences for word, _ in words)
    frequent = [word for word, count in counts.most_common(FREQUENT) if count >= RARE]
    known = set(frequent)
    endings = Counter[str]()
    tags: dict[str, Counter[str]] = {}
    for words in sentences:
        for word, tag in words:
            kind = word if word in known else "-" + word[-3:]
            if word not in known:
                endings[kind] += 1
            tags.setdefault(kind, Counter())[tag] += 1
    kinds = ["", "-", *sorted(frequent), *sorted(kind for kind, _ in endings.most_common(ENDINGS))]
    named = []
    for kind in kinds:
        common = tags.get(kind, Counter({"NN": 1})).most_common(2)
        several = len(common) > 1 and common[1][1] > 0.25 * common[0][1]
        named.append("edge" if not kind else "|".join(sorted(tag for tag, _ in common)) if several else common[0][0])
    most = {name: place for place, (name, _) in enumerate(Counter(named).most_common(254), start=1)}
    return FluencyVocabulary(tuple(kinds), np.array([most.get(name, 0) for name in named], np.int64))


def learn_levels(vocabulary: FluencyVocabulary, sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Return how often n-grams stand in captions, 0 (fewer than 3 times) to 7, on a scale of powers of two."""
    counts = np.zeros(COUNTERS, np.int64)
    for start in range(0, len(sentences), 20_000):
        kinds, rows = vocabulary.laid_out(sentences[start : start + 20_000])
        for _, counters, _ in counter_places(kinds, vocabulary.tags[kinds], rows):
            counts += np.bincount(counters, minlength=COUNTERS)
    return np.clip(np.floor(np.log2(np.maximum(counts, 1) / 1.5)), 0, 7).astype(np.uint8)


def matrix(features: tuple[np.ndarray, np.ndarray], size: int) -> csr_matrix:
    """Return the features as a matrix of counts."""
    buckets, rows = features
    starts = np.searchsorted(rows, np.arange(size + 1))
    return csr_matrix((np.ones(len(buckets), np.float32), buckets, starts), shape=(size, BUCKETS))


def train(made: csr_matrix, classes: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and bias of a softmax regression, by Adagrad; the mean over the last pass."""
    rng = np.random.default_rng(seed)
    size = 1 + len(KINDS)
    weights, squares, mean = (np.zeros((BUCKETS, size), np.float32) for _ in range(3))
    squares += 0.01
    bias, steps = np.zeros(size, np.float32), 0
    for number in range(PASSES):
        order = rng.permutation(len(classes))
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            rows = made[chosen]
            logits = rows @ weights + bias
            logits = np.exp(logits - logits.max(axis=1, keepdims=True))
            slope = logits / logits.sum(axis=1, keepdims=True)
            slope[np.arange(len(chosen)), classes[chosen]] -= 1
            gradient = (rows.T @ slope) + 1e-4 * weights * len(chosen) / 100
            squares += gradient**2
            weights -= RATE * gradient / np.sqrt(squares)
            bias -= 0.001 * slope.sum(axis=0)
            if number == PASSES - 1:
                mean += weights
                steps += 1
        print(f"pass {number + 1}", flush=True)
    return mean / steps, bias


def figures(name: str, wrong: np.ndarray, truth: np.ndarray) -> None:
    """Print precision, recall and F1 at both thresholds."""
    for limit in (0.5, 0.9):
        said = wrong > limit
        right = (said & truth).sum()
        precision, recall = right / max(said.sum(), 1), right / max(truth.sum(), 1)
        f1 = 2 * right / max(said.sum() + truth.sum(), 1)
        print(f"{name}\t{len(truth)}\tp > {limit}\tP {precision:.3f}\tR {recall:.3f}\tF1 {f1:.3f}")


def report(path: Path, held: Mapping[str, Sequence[Tagged]], real: Path | None, seed: int, *, all_marked: bool) -> None:
    """Print the figures of held-out captions, and of captions that people marked."""
    detector = Detector.load(path)
    print(f"{path.stat().st_size} bytes")
    everything: list[tuple[tuple[str, ...], int]] = []
    for kind, sentences in held.items():
        tested = list(examples(sentences, random.Random(seed)))
        everything += tested
        wrong = 1 - detector.probabilities([words for words, _ in tested])[:, 0]
        figures(kind, wrong, np.array([one > 0 for _, one in tested]))
    shares = detector.probabilities([words for words, _ in everything])
    truth = np.array([one for _, one in everything])
    figures("all", 1 - shares[:, 0], truth > 0)
    for number, kind in enumerate(KINDS, start=1):
        own = shares[truth == number]
        named = (own[:, 1:].argmax(axis=1) + 1 == number).mean()
        print(f"  {kind}\t{len(own)}\tfound {(own[:, 0] < 0.5).mean():.3f}\tnamed {named:.3f}")
    if real:
        with gzip.open(real, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        wrong = np.array([1 - detector.probabilities(sentences_of(row["caption"]))[:, 0].min() for row in rows])
        truth = np.array([row["fluency_issue"] in (1, "1") for row in rows])
        chooses = np.array([not zlib.crc32(row["caption"].encode()) % 2 for row in rows])
        figures("the half that chooses", wrong[chooses], truth[chooses])
        if all_marked:
            figures("the other half", wrong[~chooses], truth[~chooses])
            figures("marked by people", wrong, truth)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jar", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("parses", type=Path, nargs="+")
    parser.add_argument("--real", type=Path)
    parser.add_argument("--all-marked", action="store_true", help="figures of the half that chooses nothing, too")
    parser.add_argument("--evaluate", action="store_true", help="evaluate OUT, train nothing")
    parser.add_argument("--seed", type=int, default=1)
    add_hashes(parser)
    options = parser.parse_args()
    hashes = Hashes.read(options.held_out_hashes)
    dice = random.Random(options.seed)
    learned: list[Tagged] = []
    counted: list[Tagged] = []
    held: dict[str, list[Tagged]] = {}
    for path in options.parses:
        kind, seen = kind_of(path), 0
        for words in read_tagged(path):
            if hashes.covers(" ".join(word for word, _ in words)):
                continue
            number = digest(words)
            if number % 1000 < HELD:
                held.setdefault(kind, []).append(words)
            elif "coco" in kind or number // 1000 % 3:
                learned.append(words)
                seen += 1
                if seen == MOST.get(kind):
                    break
            else:
                counted.append(words)
    if not options.evaluate:
        used = {digest(words) for part in (learned, *held.values()) for words in part}
        vocabulary = learn_vocabulary(learned)
        raw = [
            tuple(words) for text in hashes.kept(read_captions(options.jar))[:COUNTED] for words in sentences_of(text)
        ]
        raw = [words for words in raw if digest([(word, "") for word in words]) not in used]
        raw += [plain_words(words, commas=True) for words in counted]
        levels = learn_levels(vocabulary, raw)
        print(f"{len(learned)} captions to break, {len(raw)} to count in, {len(vocabulary.kinds)} kinds", flush=True)
        made = list(examples(learned, dice))
        parts = [
            matrix(
                features_of(vocabulary, levels, [words for words, _ in made[start : start + 20_000]]),
                len(made[start : start + 20_000]),
            )
            for start in range(0, len(made), 20_000)
        ]
        weights, bias = train(vstack(parts).tocsr(), np.array([one for _, one in made]), options.seed)
        weights -= weights.mean(axis=1, keepdims=True)
        scales = np.abs(weights).max(axis=0) / 127
        Detector(vocabulary, levels, np.rint(weights / scales).astype(np.int8), scales, bias, "").save(options.out)
    report(options.out, held, options.real, options.seed, all_marked=options.all_marked)


if __name__ == "__main__":
    main()
