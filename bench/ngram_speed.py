"""How much faster are the COCO n-gram metrics than pycocoevalcap with its Java tokenizer?

Tokenizes and scores the same 5,000 images of COCO val2014 (five references each; the candidate is another
image's caption) with both, in one process and one after the other, checks that the numbers agree, and
prints the times and their ratios. Needs Java and the ``pycocoevalcap`` wheel, which also holds the
captions.

    python bench/ngram_speed.py [IMAGES]
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from typing import TYPE_CHECKING, TypeVar

from pycocoevalcap.bleu.bleu import Bleu as TheirBleu  # type: ignore[import-untyped]
from pycocoevalcap.cider.cider import Cider as TheirCider  # type: ignore[import-untyped]
from pycocoevalcap.rouge.rouge import Rouge as TheirRouge  # type: ignore[import-untyped]
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer  # type: ignore[import-untyped]

from spicegraph_scorer.core.tokens import tokenize_items
from spicegraph_scorer.metrics.bleu import Bleu, bleu_statistics
from spicegraph_scorer.metrics.cider import COCO_CIDER, cider_statistics
from spicegraph_scorer.metrics.rouge import RougeL, rouge_l_statistic
from val2014 import REFERENCES, items_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from spicegraph_scorer.core.items import Item

IMAGES = 5000
Value = TypeVar("Value")


def timed(name: str, times: dict[str, float], function: Callable[[], Value]) -> Value:
    """Call a function and keep how long it took."""
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        value = function()
    times[name] = time.perf_counter() - start
    return value


def their_scores(items: list[Item], times: dict[str, float]) -> list[float]:
    """Score with pycocoevalcap."""
    tokenizer = PTBTokenizer()
    references = {item.id: [{"caption": text} for text in item.references] for item in items}
    candidates = {item.id: [{"caption": item.candidate}] for item in items}
    gts, res = timed("tokenizer", times, lambda: (tokenizer.tokenize(references), tokenizer.tokenize(candidates)))
    bleu = timed("BLEU", times, lambda: TheirBleu(4).compute_score(gts, res, verbose=0)[0])
    rouge = timed("ROUGE-L", times, lambda: TheirRouge().compute_score(gts, res)[0])
    cider = timed("CIDEr-D", times, lambda: TheirCider().compute_score(gts, res)[0])
    return [*bleu, rouge, cider]


def our_scores(items: list[Item], times: dict[str, float]) -> list[float | None]:
    """Score with spicegraph."""
    tokens = timed("tokenizer", times, lambda: tokenize_items(items, together=True))
    bleu = timed("BLEU", times, lambda: Bleu().total(bleu_statistics(tokens)))
    rouge = timed("ROUGE-L", times, lambda: RougeL().total([rouge_l_statistic(item) for item in tokens]))
    cider = timed("CIDEr-D", times, lambda: COCO_CIDER.total(cider_statistics(tokens)))
    return [score.value for score in (*bleu, *rouge, *cider)]


def main() -> None:
    items = items_of(int(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    our_values = our_scores(items, ours)
    their_values = their_scores(items, theirs)
    largest = max(abs(a - b) for a, b in zip(our_values, their_values, strict=True) if a is not None)
    print(f"{len(items)} images x {REFERENCES} references; largest difference of a score {largest:.1e}")
    for name in [*ours, "all"]:
        one, other = (sum(t.values()) if name == "all" else t[name] for t in (ours, theirs))
        print(f"{name:<10} {one:7.2f} s   pycocoevalcap {other:7.2f} s   ratio {other / one:6.1f}")


if __name__ == "__main__":
    main()
