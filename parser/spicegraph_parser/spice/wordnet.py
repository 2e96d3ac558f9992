"""WordNet 3.0 beyond synonyms: which synset is a kind of which, how far two are apart, and what they mean.

SPICE itself knows synonyms alone (``lexicon``); nothing here changes a score. Built by ``tools/build_wordnet.py``.
"""

from __future__ import annotations

import gzip
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_parser.errors import DataError, InputError
from spicegraph_parser.spice.index import Lexicon, data_file
from spicegraph_parser.spice.lexicon import load_lexicon

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
PARTS = "nvar"  # noun, verb, adjective, adverb: the order in which the synsets stand in the files
_REMEMBERED = 50_000


class Synset(NamedTuple):
    """A synset: part of speech (``n``, ``v``, ``a`` or ``r``) and number, which SPICE compares alone."""

    part: str
    number: int


class _WordNetFile(msgspec.Struct):
    format: int
    source: str
    lexicon: str
    parts: list[int]
    numbers: bytes
    heads: bytes
    broader_counts: bytes
    broader: bytes
    instances: bytes
    senses: bytes


class WordNet:
    """The synsets with their broader ones. A frozen value: every method is a pure function of its arguments."""

    # Broader are hypernyms, those of named individuals included, and for a satellite adjective ("huge") the head that
    # it is similar to ("large").

    def __init__(self, data: bytes, lexicon: Lexicon) -> None:
        try:
            table = msgspec.msgpack.decode(gzip.decompress(data), type=_WordNetFile)
        except (OSError, EOFError, msgspec.DecodeError) as error:
            raise DataError(f"WordNet's relations are damaged ({error}); reinstall spicegraph") from error
        if table.format != FORMAT or table.lexicon != lexicon.signature:
            raise DataError("WordNet's relations and the word index are of different versions; reinstall spicegraph")
        self._lexicon = lexicon
        self._starts = list(accumulate(table.parts, initial=0))
        self._numbers = array("I", table.numbers)
        self._heads = array("I", table.heads)
        self._ends = array("I", accumulate(table.broader_counts, initial=0))
        self._broader = array("I", table.broader)
        self._instances = table.instances
        self._senses = table.senses
        self.common_sense = lru_cache(maxsize=_REMEMBERED)(self._common_sense)
        self.ancestors = lru_cache(maxsize=_REMEMBERED)(self._ancestors)
        self.broader = lru_cache(maxsize=_REMEMBERED)(self._next_broader)

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return load_wordnet, ()  # worker processes load their own copy

    def readings(self, number: int) -> tuple[Synset, ...]:
        """Return the synsets that a number may stand for: up to three, of different parts of speech."""
        return tuple(Synset(part, number) for part in PARTS if self._place(Synset(part, number)) is not None)

    def senses(self, phrase: str, parts: str = PARTS) -> tuple[Synset, ...]:
        """Return the synsets of a word or phrase and its base form, part by part, the most frequent sense first."""
        ranked = sorted(
            (order, parts.index(part), rank, number)
            for order, form in enumerate(self._lexicon.forms(phrase))
            for part, rank, number in self._entries(form)
            if part in parts
        )
        return tuple(dict.fromkeys(Synset(parts[part], number) for _, part, _, number in ranked))

    def _common_sense(self, phrase: str, part: str = "n") -> Synset | None:
        """Return a lower-cased word's most frequent sense that names no individual ("crane": not Stephen Crane)."""
        for form in self._lexicon.forms(phrase):
            senses = [(rank, number) for p, rank, number in self._entries(form) if p == part]
            common = [(rank, n) for rank, n in senses if not self._instances[self._require(Synset(part, n))]]
            if common:
                return Synset(part, min(common)[1])
        return None

    def find(self, name: str, part: str = "n") -> Synset:
        """Return the synset that NLTK names so (``animal.n.01``), or a word's common sense as that ``part``."""
        word, _, rest = name.lower().replace(" ", "_").rpartition(".")
        word, _, wanted = word.rpartition(".")
        if word and wanted.replace("s", "a") in PARTS and rest.isdecimal():
            for part_of_entry, rank, number in self._entries(word):
                if part_of_entry == wanted.replace("s", "a") and rank == int(rest):
                    return Synset(part_of_entry, number)
        else:
            sense = self.common_sense(name.lower(), part)
            if sense is not None:
                return sense
        raise InputError(f"WordNet 3.0 has no synset {name!a}; expected a word, or a name such as animal.n.01")

    def name(self, synset: Synset) -> str:
        """Return the name of a synset, such as ``sofa.n.01``: its first word, and which of that word's senses it is."""
        word = self._words[self._heads[self._require(synset)]]
        ranks = {Synset(part, number): rank for part, rank, number in self._entries(word)}
        return f"{word}.{synset.part}.{ranks[synset]:02d}"

    def gloss(self, synset: Synset) -> str:
        """Return the definition of a synset, without examples."""
        return self._glosses[self._require(synset)]

    def glosses(self) -> tuple[str, ...]:
        """Return the definitions of all synsets."""
        return tuple(self._glosses)

    def _next_broader(self, synset: Synset) -> tuple[Synset, ...]:
        index = self._require(synset)
        broader = self._broader[self._ends[index] : self._ends[index + 1]]
        return tuple([Synset(PARTS[bisect_right(self._starts, at) - 1], self._numbers[at]) for at in broader])

    def _ancestors(self, synset: Synset) -> dict[Synset, int]:
        """Return a synset and everything broader, with the number of steps to each."""
        steps = {synset: 0}
        waiting = deque([synset])
        while waiting:
            here = waiting.popleft()
            for above in self.broader(here):
                if above not in steps:
                    steps[above] = steps[here] + 1
                    waiting.append(above)
        return steps

    def distance(self, first: Synset, second: Synset) -> int | None:
        """Return the length of the shortest path over broader synsets; ``None`` where nothing is broader than both."""
        above_first, above_second = self.ancestors(first), self.ancestors(second)
        return min(
            (steps + above_second[above] for above, steps in above_first.items() if above in above_second), default=None
        )

    def is_kind_of(self, phrase: str, root: Synset) -> bool:
        """Say whether a word, in its common sense as that part of speech, is in the subtree of a synset."""
        sense = self.common_sense(phrase, root.part)
        return sense is not None and root in self.ancestors(sense)

    def _entries(self, word: str) -> Iterator[tuple[str, int, int]]:
        """Yield part of speech, rank among the word's senses of that part, and number."""
        for entry in self._lexicon.entries(word.replace(" ", "_")):
            rank, part = divmod(self._senses[entry], len(PARTS))
            yield PARTS[part], rank, self._lexicon.synset_at(entry)

    def _place(self, synset: Synset) -> int | None:
        part = PARTS.index(synset.part)
        start, end = self._starts[part : part + 2]
        index = bisect_left(self._numbers, synset.number, start, end)
        return index if index < end and self._numbers[index] == synset.number else None

    def _require(self, synset: Synset) -> int:
        index = self._place(synset)
        if index is None:
            raise InputError(f"WordNet 3.0 has no {synset}")
        return index

    @cached_property
    def _words(self) -> tuple[str, ...]:
        return self._lexicon.words()

    @cached_property
    def _glosses(self) -> list[str]:
        lines = gzip.decompress(data_file("wordnet-glosses.txt.gz")).decode("utf-8").split("\n")
        if len(lines) != len(self._numbers):
            raise DataError("WordNet's definitions are of another version; reinstall spicegraph")
        return lines


@lru_cache(maxsize=1)
def load_wordnet() -> WordNet:
    """Return the bundled WordNet, loaded once per process."""
    return WordNet(data_file("wordnet-relations.msgpack.gz"), load_lexicon())
