"""Hold tables of meanings, and what formula 5 takes G' to be, against people's judgements and changes of captions.

    PYTHONPATH=training:bench python training/meaning_study.py FOLDER --table TABLE... --keep PARTS

FOLDER is that of ``graded_study.py``. The parts of scores that no table changes are computed once and kept in PARTS.
Prints for each table and formula: the gain over formula 4 on every set, its standard error by image, and what changes
of captions (denials, other colours and counts, exchanged nouns; COCO val2014) cost. Needs the wheel of pycocoevalcap.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from graded_study import (
    ALIGNED_SHARE,
    BY_KIND,
    EMPTY,
    SETS,
    TAGS,
    Array,
    Judged,
    accuracy,
    error_of,
    gain_of,
    likenesses,
    word_scores,
)
from spicegraph_graded.spice_g.facts import FAMILIES
from spicegraph_graded.spice_g.matching import MEANING_SHARE, cells_of
from spicegraph_graded.spice_g.metric import SpiceG, plain_f1
from spicegraph_graded.spice_g.texts import Meaning
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus
from val2014 import captions_by_image

HONEST = 1500
COLUMNS = ("G", "order", "aligned", "plain", "plain words", "words")
FORMULAS = ("W", "A", "V")
KINDS = ("swap_obj", "swap_att", "replace_att")
COLOURS = re.compile(r"\b(black|brown|blue|red|yellow|pink|gray|grey|green|white|orange|purple)\b")
COUNTS = re.compile(r"\b(two|three|four|five|six)\b")


class Parts(SpiceG):
    """SPICE-G that gives the parts of each score in place of statistics."""

    def _statistics(self, pairs, texts):  # type: ignore[no-untyped-def]
        graphs, words, candidates, references, rows = self._laid_out(pairs)
        both = [(sides, cells_of(sides, candidates, references, rows)) for sides in (graphs, words)]
        of_graph = [statistic.weights[ALL].f1 for statistic in super()._statistics(pairs, texts)]
        order, aligned = [text.order for text in texts], [text.aligned for text in texts]
        plain, of_words = plain_f1(both[0], both[1]).tolist(), plain_f1(both[1], both[1]).tolist()
        return list(zip(of_graph, order, aligned, plain, of_words, strict=True))


def changed_captions() -> Iterator[tuple[str, Item, str]]:
    """Yield kind, honest item and changed caption."""
    dice = random.Random(0)
    images = [captions for captions in captions_by_image().values() if len(captions) > 1][:HONEST]
    for number, (text, *others) in enumerate(images):
        item = Item(number, text.strip(), tuple(others[:4]))
        words = item.candidate.split()
        if re.search(r"\b(a|an|the) ", item.candidate, re.IGNORECASE):
            yield "denial", item, re.sub(r"\b(a|an|the) ", "no ", item.candidate, count=1, flags=re.IGNORECASE)
        bare = re.sub(r"^(a|an|the) ", "", item.candidate, flags=re.IGNORECASE)
        yield "there is no", item, f"There is no {bare[0].lower()}{bare[1:]}"
        for kind, pattern in (("colour", COLOURS), ("count", COUNTS)):
            match = pattern.search(item.candidate.lower())
            if match is not None:
                said = {word for other in item.references for word in pattern.findall(other.lower())}
                family = ["colour", "count"].index(kind)
                names = (COLOURS, COUNTS)[family].pattern[3:-3].split("|")
                gray = {"gray", "grey"}
                rest = [
                    name for name in names if name != match[0] and name not in said and not {name, match[0]} <= gray
                ]
                other = dice.choice(rest)
                changed = item.candidate[: match.start()] + other + item.candidate[match.end() :]
                yield f"any {kind}", item, changed
                if match[0] in said:
                    yield f"contradicted {kind}", item, changed
        nouns = _nouns(item.candidate)
        if len(nouns) > 1:
            first, last = nouns[0], nouns[-1]
            words[first], words[last] = words[last].rstrip("."), words[first]
            yield "nouns exchanged", item, " ".join(words)


def _nouns(text: str) -> list[int]:
    [caption] = load_pipeline().captions([text])
    nouns = {
        form
        for parse in caption.sentences
        for form, tag in zip(parse.forms, parse.tags, strict=True)
        if tag[:2] == "NN"
    }
    return [place for place, word in enumerate(text.split()) if word.strip(".,") in nouns]


def parts_of(items: Mapping[str, Sequence[Item]]) -> dict[str, Array]:
    """Return (items, COLUMNS) the parts of each set's scores."""
    texts = list(dict.fromkeys(t for some in items.values() for i in some for t in (i.candidate, *i.references)))
    facts, words, pipeline = {}, {}, load_pipeline()
    for text, caption in zip(texts, pipeline.captions(texts), strict=True):
        facts[text] = caption.every_fact
        words[text] = frozenset(
            lemma
            for parse in caption.sentences
            for tag, lemma in zip(parse.tags, parse.lemmas, strict=True)
            if tag[:2] in TAGS and lemma not in EMPTY
        )
    metric = Parts(FunctionSource.of_table(pipeline.signature, facts), evidence=False, meaning=None)
    parts = {}
    for name, some in items.items():
        rows = metric.collect(Corpus(tuple(some)))
        control = word_scores(some, words, metric.vectors, 0.75)
        parts[name] = np.column_stack([np.array(rows, np.float64), control])
    return parts


def without_values(meaning: Meaning) -> Meaning:
    """Return the table with all colours at one point, and all counts."""
    vectors = meaning.vectors.copy()
    for words in FAMILIES.values():
        places = [meaning.places[word] for word in re.split("[ /]", words) if word in meaning.places]
        vectors[places] = vectors[places].mean(axis=0)
    return Meaning(meaning.signature, meaning.places, vectors)


def formula(parts: Array, meant: Array, letters: str) -> Array:
    """Return the scores: G + .4 (m - G'), with G' as the letters say."""
    whole, order, aligned, plain, plain_words, _ = parts.T
    said = plain_words if "W" in letters else plain
    if "A" not in letters:
        said = said + ALIGNED_SHARE * (aligned - said)
    return np.clip(whole + MEANING_SHARE * order * (meant - said), 0, 1)


def main() -> None:
    """Print a block of lines for each table and formula."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", default=[])
    parser.add_argument("--formulas", action="store_true", help="all eight, not the shipped one alone")
    parser.add_argument("--keep", type=Path, required=True, help="file for the parts (.npz)")
    options = parser.parse_args()
    sets = {name: Judged.read(options.folder, name) for name in SETS}
    listed = options.keep.with_suffix(".changes.json")
    if not listed.exists():
        rows = [(kind, i.id, i.candidate, i.references, changed) for kind, i, changed in changed_captions()]
        listed.write_text(json.dumps(rows), encoding="utf-8")
    changes = json.loads(listed.read_text(encoding="utf-8"))
    pairs = [
        Item(n, text, tuple(own))
        for n, (_, _, honest, own, changed) in enumerate(changes)
        for text in (honest, changed)
    ]
    items = {**{name: judged.items for name, judged in sets.items()}, "changes": pairs}
    if not options.keep.exists():
        np.savez(options.keep, **parts_of(items))
    parts = dict(np.load(options.keep))
    kinds = np.array([kind for kind, *_ in changes])
    for path in options.table:
        meaning = Meaning.read(path)
        tables = {"": meaning, "V": without_values(meaning)}
        meant = {v: {name: likenesses(some, table) for name, some in items.items()} for v, table in tables.items()}
        for picked in product((0, 1), repeat=3) if options.formulas else [(0, 0, 0)]:
            letters = "".join(letter for letter, taken in zip(FORMULAS, picked, strict=True) if taken)
            print(f"\n{path.stem} {meaning.signature} {path.stat().st_size:,} bytes, formula {letters or 'as shipped'}")
            report(sets, parts, meant["V" if "V" in letters else ""], letters, kinds)


def report(
    sets: Mapping[str, Judged], parts: Mapping[str, Array], meant: Mapping[str, Array], letters: str, kinds: Array
) -> None:
    """Print the figures of a table and a formula."""
    gains = []
    for name, judged in sets.items():
        figure = SETS[name]
        whole, words = parts[name][:, 0], parts[name][:, 5]
        aligned = words + ALIGNED_SHARE * (parts[name][:, 2] - words)
        control = judged.shaped(aligned + MEANING_SHARE * (meant[name] - aligned))
        before, after = judged.shaped(whole), judged.shaped(formula(parts[name], meant[name], letters))
        rows = np.arange(len(judged.truth))
        shown = [f"{100 * figure(of, judged.truth):.1f}" for of in (before, control, after)]
        for other in (before, control):
            gain = gain_of(figure, judged.truth, after, other)
            shown.append(f"{gain(rows):+.2f} ({error_of(gain, judged.images):.2f})")
        gains.append(gain_of(figure, judged.truth, after, before)(rows))
        print("|", " | ".join([name, *shown]), "|", flush=True)
        for kind in KINDS if name in BY_KIND else ():
            own = np.flatnonzero(judged.truth == kind)
            if own.size:
                gain = gain_of(accuracy, judged.truth, after, before)
                of_kind = error_of(lambda r, gain=gain, own=own: gain(np.intersect1d(r, own)), judged.images)
                print(f"|   {kind} | {gain(own):+.2f} ({of_kind:.2f}) |")
    print(f"mean gain {np.mean(gains):+.3f}")
    honest, changed = slice(0, None, 2), slice(1, None, 2)
    scores = parts["changes"][:, 0], formula(parts["changes"], meant["changes"], letters)
    for kind in dict.fromkeys(kinds.tolist()):
        costs = [(score[honest] - score[changed])[kinds == kind] for score in scores]
        told = [100 * float((cost > 1e-9).mean()) for cost in costs]
        means = " | ".join(f"{cost.mean():.4f}" for cost in costs)
        print(f"|   {kind} | {len(costs[0])} | {means} | {told[0]:.1f} | {told[1]:.1f} |")


if __name__ == "__main__":
    main()
