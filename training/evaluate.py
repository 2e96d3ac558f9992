"""Compare a pipeline with the reference: tokens, tags, lemmas, edges, tuples, and SPICE per item."""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import silver
from heldout import is_held_out, kind_of
from spicegraph_parser import Caption, CaptionPipeline, extract, load_pipeline, read_conllu
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.metric import Spice

KINDS = {1: "object", 2: "attribute", 3: "relation"}


def read(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_silver(path: Path, *, held_out: bool) -> list[dict[str, Any]]:
    """Read the reference's parses in the shape of golden ones; the tuples are what our rules make of them.

    ``held_out``: only those of captions that training holds out.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        blocks = silver.blocks(lines)
        if held_out:
            kind = kind_of(path)
            blocks = (block for block in blocks if is_held_out(silver.text(block), kind))
        chosen = [f"{line}\n" for block in blocks if not block[-1] for line in ("# newdoc", *block)]
    return [
        {
            "text": caption.text,
            "sentences": [
                {
                    "words": [word.form for word in parse.words],
                    "tags": [word.tag for word in parse.words],
                    "lemmas": [word.lemma for word in parse.words],
                    "basic": [tuple(edge) for edge in parse.edges],
                }
                for parse in caption.sentences
            ],
            "tuples": extract(caption).tuples,
        }
        for caption in read_conllu(chosen, source=path.name)
    ]


def percent(part: int, whole: int) -> float:
    """Return a percentage with two digits."""
    return round(100 * part / whole, 2)


def edges(words: int, triples: Sequence[tuple[str, int, int]]) -> list[tuple[str, int]]:
    """Return label and head of every word, from triples of label, head and dependent."""
    by_word = {dependent: (label, head) for label, head, dependent in triples}
    return [by_word.get(position, ("", -1)) for position in range(1, words + 1)]


def parses(captions: Sequence[Caption], golden: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return agreement with the golden parses, over the captions with the same tokens and sentences."""
    hits: Counter[str] = Counter()
    for caption, gold in zip(captions, golden, strict=True):
        mine = [len(parse.words) for parse in caption.sentences]
        hits["captions"] += 1
        if mine != [len(sentence["words"]) for sentence in gold["sentences"]]:
            continue
        hits["same"] += 1
        for parse, sentence in zip(caption.sentences, gold["sentences"], strict=True):
            here = edges(len(parse.words), [(edge.label, edge.head, edge.dependent) for edge in parse.edges])
            there = edges(len(parse.words), sentence["basic"])
            hits["words"] += len(here)
            hits["tag"] += sum(word.tag == tag for word, tag in zip(parse.words, sentence["tags"], strict=True))
            hits["lemma"] += sum(
                word.lemma == lemma.lower() for word, lemma in zip(parse.words, sentence["lemmas"], strict=True)
            )
            hits["uas"] += sum(a[1] == b[1] for a, b in zip(here, there, strict=True))
            hits["las"] += sum(a == b for a, b in zip(here, there, strict=True))
    figures = {name: percent(hits[name], hits["words"]) for name in ("tag", "lemma", "uas", "las")}
    return {"tokens": percent(hits["same"], hits["captions"]), **figures}


def tuple_f1(found: Sequence[Sequence[Sequence[str]]], golden: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the micro F1 of captions' tuples (with repeats) against the golden ones, also by length.

    ``same set``: the share of captions with the same set of tuples.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("all", *KINDS.values())}
    for tuples, gold in zip(found, golden, strict=True):
        mine, theirs = Counter(map(tuple, tuples)), Counter(map(tuple, gold["tuples"]))
        for side, bag in (("mine", mine), ("theirs", theirs), ("both", mine & theirs)):
            for words, count in bag.items():
                for name in ("all", KINDS[len(words)]):
                    counts[name][side] += count
    scores = {name: round(2 * c["both"] / (c["mine"] + c["theirs"]), 4) for name, c in counts.items()}
    same = sum(
        set(map(tuple, tuples)) == set(map(tuple, gold["tuples"])) for tuples, gold in zip(found, golden, strict=True)
    )
    return {**scores, "same set": round(same / len(golden), 4)}


def spice(pipeline: CaptionPipeline, golden: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the correlation of per-item SPICE with the reference's, and the systems' mean differences."""
    items = tuple(Item(f"{g['system']}-{g['image_id']}", g["candidate"], tuple(g["references"])) for g in golden)
    statistics = Spice(pipeline).collect(Corpus(items))
    mine = np.array([statistic.counts["All"].f1 for statistic in statistics])
    theirs = np.array([g["scores"]["All"]["f"] for g in golden])
    systems = np.array([g["system"] for g in golden])
    return {
        "items": len(items),
        "pearson": round(float(np.corrcoef(mine, theirs)[0, 1]), 4),
        "same": round(float((np.abs(mine - theirs) < 1e-9).mean()), 4),
        "mean difference": {s: round(float((mine - theirs)[systems == s].mean()), 5) for s in np.unique(systems)},
        "mean": {s: round(float(theirs[systems == s].mean()), 5) for s in np.unique(systems)},
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pipeline", help="name or folder")
    parser.add_argument("--parses", type=Path, nargs="*", default=[], help="golden parses (jsonl.gz)")
    parser.add_argument(
        "--silver", type=Path, nargs="*", default=[], help="the reference's parses (conllu, gzipped or not)"
    )
    parser.add_argument("--held-out", type=Path, nargs="*", default=[], help="the same, of held-out captions alone")
    parser.add_argument("--scores", type=Path, help="golden scores (jsonl.gz)")
    options = parser.parse_args()
    pipeline = load_pipeline(options.pipeline)
    sets = {path.name: read(path) for path in options.parses}
    sets |= {path.name: read_silver(path, held_out=False) for path in options.silver}
    held = {path.name: read_silver(path, held_out=True) for path in options.held_out}
    scores = []
    for name, golden in {**sets, **held}.items():
        found = list(pipeline.captions(g["text"] for g in golden))
        captions = [Caption(c.text, c.sentences) for c in found]
        tuples = tuple_f1([c.tuples for c in found], golden)
        figures = {**parses(captions, golden), "tuples": tuples}
        print(name, len(golden), json.dumps(figures))
        if name in held:
            scores.append(tuples["all"])
    if scores:
        print("mean tuple F1 over held-out kinds", round(sum(scores) / len(scores), 4))
    if options.scores:
        print(options.scores.name, json.dumps(spice(pipeline, read(options.scores))))


if __name__ == "__main__":
    main()
