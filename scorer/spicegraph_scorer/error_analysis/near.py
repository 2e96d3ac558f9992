"""Near misses: words that mean almost the same, but that neither a string nor a synset connects.

The bundled WordNet index knows synonyms only, no broader and narrower words. So nearness has two grounds: a
common stem, and a third word of the corpus that is a synonym of both (two steps in WordNet's synonym graph;
one step is a match).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from spicegraph_scorer.ngram.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.spice.match import Match

__all__ = ["Near", "Vocabulary"]

_stem = lru_cache(maxsize=50_000)(stem)


@dataclass(frozen=True, slots=True)
class Near:
    """Why two concepts are near: ``ground`` is ``stem`` or ``synonym``, ``link`` the stem or the third word.

    ``distance`` counts steps between synonyms: 2 for a third word, ``None`` for a stem.
    """

    ground: str
    link: str
    distance: int | None


class Vocabulary:
    """The words of a corpus by synset. Without words, only stems make concepts near."""

    __slots__ = ("_by_synset",)

    def __init__(self, matches: Iterable[Match] = ()) -> None:
        words: defaultdict[int, set[str]] = defaultdict(set)
        seen: set[tuple[str, ...]] = set()
        self._by_synset: Mapping[int, set[str]] = words
        for match in matches:
            for scene_tuple in (*match.candidate, *match.reference):
                for concept in scene_tuple.concepts:
                    # A merged concept's synsets belong to several words: only plain ones say whose they are.
                    if len(concept.strings) == 1 and concept.strings not in seen:
                        seen.add(concept.strings)
                        for synset in concept.synsets:
                            words[synset].add(concept.strings[0])

    def near(self, mine: Concept, theirs: Concept) -> Near | None:
        """Return why two concepts that do not match are near, if they are."""
        stems = {_stem(w) for w in mine.strings} & {_stem(w) for w in theirs.strings}
        if stems:
            return Near("stem", min(stems), None)
        links = self._synonyms(mine) & self._synonyms(theirs)
        return Near("synonym", min(links), 2) if links else None

    def _synonyms(self, concept: Concept) -> set[str]:
        return {word for synset in concept.synsets for word in self._by_synset.get(synset, ())}
