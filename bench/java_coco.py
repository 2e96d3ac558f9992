"""How close are --metrics coco and spice to COCOEvalCap and the SPICE program, both with Java?

Each FILE holds captions with their references in a format of ``spicegraph score``. For each, pycocoevalcap's tokenizer
(Java), BLEU, METEOR (Java), ROUGE-L and CIDEr score its items, and SPICE 1.0 (Java) scores them twice: from the tokens,
as COCOEvalCap does, and from the captions as written. Prints both means, their difference, and per item the largest
difference (n-grams) or Pearson's correlation (SPICE). Needs Java, Maven for CoreNLP, and the wheel of pycocoevalcap.
What SPICE gave stays in FOLDER, since it takes minutes.

    python bench/java_coco.py FOLDER FILE...
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pycocoevalcap.bleu.bleu import Bleu  # type: ignore[import-untyped]
from pycocoevalcap.cider.cider import Cider  # type: ignore[import-untyped]
from pycocoevalcap.meteor.meteor import Meteor  # type: ignore[import-untyped]
from pycocoevalcap.rouge.rouge import Rouge  # type: ignore[import-untyped]
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer  # type: ignore[import-untyped]

import java_spice
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import score

SCORERS = {
    ("Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4"): lambda: Bleu(4),
    ("METEOR",): Meteor,
    ("ROUGE_L",): Rouge,
    ("CIDEr",): Cider,
}


def their_ngrams(gts: dict[int, list[str]], res: dict[int, list[str]]) -> dict[str, tuple[float, list[float]]]:
    """Return each score's corpus value and its values by item, as pycocoevalcap gives them."""
    found: dict[str, tuple[float, list[float]]] = {}
    for names, scorer in SCORERS.items():
        with contextlib.redirect_stdout(io.StringIO()):
            value, each = scorer().compute_score(gts, res)
        values, lists = (value, each) if len(names) > 1 else ([value], [each])
        found |= {name: (float(v), list(map(float, row))) for name, v, row in zip(names, values, lists, strict=True)}
    return found


def main() -> None:
    folder, *paths = map(Path, sys.argv[1:])
    java_spice.fetch(folder)
    for path in paths:
        items = read_items(str(path)).items
        numbers = dict(enumerate(items))
        tokenizer = PTBTokenizer()
        gts = tokenizer.tokenize({n: [{"caption": text} for text in item.references] for n, item in numbers.items()})
        res = tokenizer.tokenize({n: [{"caption": item.candidate}] for n, item in numbers.items()})
        print(f"{path.name}: {len(items)} items")
        ours = score(items, ("coco",), evidence=False)
        each = ours.item_scores()
        for name, (value, theirs) in their_ngrams(gts, res).items():
            mine: list[Any] = [row[name] for row in each]
            largest = float(np.max(np.abs(np.array(mine) - np.array(theirs))))
            print(line(name, value, ours.corpus[name], f"largest difference of an item {largest:.1e}"))
        tokens = [Item(n, res[n][0], tuple(gts[n])) for n in numbers]
        written = [Item(n, item.candidate, item.references) for n, item in numbers.items()]
        alone = score(items, evidence=False)
        for name, given, own in (("SPICE, coco", tokens, ours), ("SPICE, written", written, alone)):
            theirs = java_spice.scores(folder, given)
            mine = [row["SPICE"] for row in own.item_scores()]
            pearson = float(np.corrcoef(mine, theirs)[0, 1])
            print(line(name, float(np.mean(theirs)), own.corpus["SPICE"], f"Pearson of items {pearson:.4f}"))


def line(name: str, theirs: float, ours: Any, more: str) -> str:
    return f"  {name:<14}  Java {theirs:.6f}  here {ours:.6f}  difference {ours - theirs:+.1e}  {more}"


if __name__ == "__main__":
    main()
