"""Near misses: words that mean almost the same, but that neither a string nor a synset connects.

The bundled WordNet index knows synonyms only, no broader and narrower words, so there is no distance to give.
Two steps through its synonyms were tried and left out: on captions they connect "runway" with "dog" (over
"track") and "blanket" with "top" (over "cover"), because frequent words have many senses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from spicegraph_scorer.ngram.porter import stem

if TYPE_CHECKING:
    from spicegraph_parser.lexicon import Concept

__all__ = ["near_concepts"]

_stem = lru_cache(maxsize=50_000)(stem)


def near_concepts(mine: Concept, theirs: Concept) -> str | None:
    """Return a Porter stem that two concepts have in common, if there is one."""
    return min({_stem(w) for w in mine.strings} & {_stem(w) for w in theirs.strings}, default=None)
