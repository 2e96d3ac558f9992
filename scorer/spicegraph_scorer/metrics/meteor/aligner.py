"""METEOR's alignment: which matches are possible, and which of them are chosen."""
# The search keeps the best 40 partial alignments, weighs matches differently from the score, truncates, and charges a
# choice for the distances of its siblings, as the original does: each of these changes results.

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_scorer.metrics.meteor.paraphrases import BACK
from spicegraph_scorer.metrics.meteor.text import Module, Sentence, TextWords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


BEAM = 40

# A state's rank in one number: more weight, then fewer chunks, then less distance. Sums of distances stay
# below the first bound for texts of tens of thousands of words.
_CHUNK = 1 << 48
_WEIGHT = 1 << 72
_WORST = 1 << 144
_CLOSED = -1
_MANY = 4 * BEAM
_LONG = 64  # matches of a reference word from which on it pays to look for those that cannot be among the best


class WordMatch(NamedTuple):
    """Words of the reference and of the candidate that were found equal, and by which module."""

    reference_start: int
    reference_length: int
    candidate_start: int
    candidate_length: int
    module: Module


Possible = tuple[int, int, int, int, Module]  # A match that could be chosen, as :class:`WordMatch`.

# rank, the candidate's used words as bits, the first reference word not yet passed, the candidate word
# after the open chunk, and the choices so far as a chain
_Chain = tuple["_Chain | None", Possible]
_State = tuple[int, int, int, int, _Chain | None]

# the match, its words in the candidate as bits, rank gained, distance, the candidate's and the reference's
# next words
_Option = tuple[Possible, int, int, int, int, int]

_rank = itemgetter(0)


def _option(match: Possible) -> _Option:
    """Return a match with its worth in the search: all but exact ones count half, rounded down per side."""
    start, length, other, other_length, module = match
    worth = length + other_length if module is Module.EXACT else length // 2 + other_length // 2
    bits = ((1 << other_length) - 1) << other
    return match, bits, -worth * _WEIGHT, abs(start - other), other + other_length, start + length


def _definite(possible: Sequence[Sequence[Possible]], size: int) -> list[Possible | None]:
    """Return, for each reference word, its match where the words on neither side have any other."""
    # In how many matches each word of the reference and of the candidate is.
    reference_cover, candidate_cover = [0] * len(possible), [0] * size
    for row in possible:
        for start, length, other, other_length, _ in row:
            reference_cover[start] += 1
            candidate_cover[other] += 1
            for word in range(start + 1, start + length):
                reference_cover[word] += 1
            for word in range(other + 1, other + other_length):
                candidate_cover[word] += 1
    definite: list[Possible | None] = []
    for row in possible:
        only = row[0] if len(row) == 1 else None
        if only is not None:
            start, length, other, other_length, _ = only
            words = reference_cover[start : start + length] + candidate_cover[other : other + other_length]
            if words.count(1) != length + other_length:
                only = None
        definite.append(only)
    return definite


def _pass(states: list[_State], position: int) -> list[_State]:
    """Leave a reference word unmatched: its chunk, if one is open, ends here."""
    return [
        state
        if position < state[2]
        else (state[0] + (_CHUNK if state[3] >= 0 else 0), state[1], position + 1, _CLOSED, state[4])
        for state in states
    ]


def _take(states: list[_State], match: Possible) -> list[_State]:
    """Add a definite match. Its weight and distance are the same for all states, so they are left out."""
    start, length, other, other_length, _ = match
    return [
        (rank + (_CHUNK if end >= 0 and end != other else 0), used, start + length, other + other_length, chain)
        for rank, used, _, end, chain in states
    ]


def _branch(states: list[_State], options: Sequence[_Option], position: int) -> list[_State]:
    """Try every match that starts at a reference word, and leaving it out."""
    states.sort(key=_rank)
    grown: list[_State] = []
    worst = _WORST  # a state that ranks no better will not be among the best
    for state in states[:BEAM]:
        rank, used, following, end, chain = state
        if position < following:  # inside a longer match
            grown.append(state)
            continue
        for match, bits, gain, distance, other_end, reference_end in options:
            if not used & bits:
                jump = _CHUNK if end >= 0 and end != match[2] else 0
                if rank + gain + jump < worst:
                    grown.append((rank + gain + jump, used | bits, reference_end, other_end, (chain, match)))
                rank += distance  # paid by the later siblings, not by the match itself
        grown.append((rank + (_CHUNK if end >= 0 else 0), used, position + 1, _CLOSED, chain))
        if len(grown) > _MANY:
            grown = _best(grown)
            worst = grown[-1][0]
    return grown


class _LongRow(NamedTuple):
    """The matches of a reference word that has very many, such as a word that both texts repeat."""

    options: Sequence[_Option]
    least: Sequence[int]  # the least rank that an option from here on gains, with 0 behind the last
    last: dict[int, int]  # the last option by its first candidate word
    run: dict[int, int]  # the leading options of one candidate word each, by that word, in order
    bits: int  # the candidate words of the run

    @classmethod
    def of(cls, options: Sequence[_Option]) -> _LongRow:
        least = [0]
        for option in reversed(options):
            least.append(min(least[-1], option[2]))
        run: dict[int, int] = {}
        bits = before = 0
        for index, (match, length, *_) in enumerate(options):
            if match[3] != 1 or length <= before:
                break
            run[match[2]] = index
            bits, before = bits | length, length
        last = {option[0][2]: index for index, option in enumerate(options)}
        return cls(options, least[::-1], last, run, bits)


def _planes(size: int) -> list[int]:
    """Return, for each binary digit of a number below ``size``, the numbers that have it, as bits."""
    planes = []
    for digit in range(size.bit_length()):
        width = 2 << digit
        block = ((1 << (1 << digit)) - 1) << (1 << digit)
        repeats = -(-size // width)
        planes.append(((1 << (repeats * width)) - 1) // ((1 << width) - 1) * block)
    return planes


def _sum_of_numbers(bits: int, planes: Sequence[int]) -> int:
    """Return the sum of the numbers of the set bits."""
    return sum((bits & plane).bit_count() << digit for digit, plane in enumerate(planes))


def _sum_of_distances(bits: int, position: int, planes: Sequence[int]) -> int:
    """Return the sum of the set bits' distances from a position."""
    below, above = bits & ((1 << position) - 1), bits >> position
    return position * below.bit_count() - _sum_of_numbers(below, planes) + _sum_of_numbers(above, planes)


def _branch_long(states: list[_State], row: _LongRow, position: int, planes: Sequence[int]) -> list[_State]:
    """Do the same as :func:`_branch`, skipping options that cannot be among the best."""
    # Distances only add to a state's rank. So when even the greatest gain of the options that are left is too little,
    # the state is done; and when it is enough only without a new chunk, the next option is the one that continues the
    # chunk.
    options, least, last, run, run_bits = row
    states.sort(key=_rank)
    grown: list[_State] = []
    worst = _WORST
    for state in states[:BEAM]:
        rank, used, following, end, chain = state
        if position < following:
            grown.append(state)
            continue
        jump = _CHUNK if end >= 0 else 0
        continued = last.get(end, -1) if jump else -1
        index = 0
        while index < len(options):
            bound = rank + least[index]
            if bound + (jump if index > continued else 0) >= worst:
                break
            following_index = run.get(end, -1)
            if bound + jump >= worst and index < following_index:
                start = options[index][0][2]
                between = (run_bits & ~used & ((1 << end) - 1)) >> start << start
                rank += _sum_of_distances(between, position, planes)
                index = following_index
                continue
            match, bits, gain, distance, other_end, reference_end = options[index]
            if not used & bits:
                gained = rank + gain + (0 if end == match[2] else jump)
                if gained < worst:
                    grown.append((gained, used | bits, reference_end, other_end, (chain, match)))
                rank += distance
            index += 1
        else:
            grown.append((rank + jump, used, position + 1, _CLOSED, chain))
        if len(grown) > _MANY:
            grown = _best(grown)
            worst = grown[-1][0]
    return grown


def _search(possible: Sequence[Sequence[Possible]], definite: Sequence[Possible | None], size: int) -> list[Possible]:
    """Return the matches chosen beside the definite ones."""
    planes = _planes(max(size, len(possible)))
    states: list[_State] = [(0, 0, 0, _CLOSED, None)]
    open_words = 0  # reference words before this one may lie inside a chosen match
    inside = 0  # reference words before this one lie inside a definite match
    closed = True
    for position, (row, sure) in enumerate(zip(possible, definite, strict=True)):
        if sure is not None:
            states = _take(_best(states), sure)
            inside = position + sure[1]
            closed = False
        elif position < inside:
            continue
        elif row:
            options = [_option(match) for match in row]
            if len(options) > _LONG:
                states = _branch_long(states, _LongRow.of(options), position, planes)
            else:
                states = _branch(states, options, position)
            open_words = max(open_words, *(option[5] for option in options))
            closed = False
        elif not closed or position < open_words:
            states = _pass(_best(states), position)
            closed = position >= open_words
    best = min(_best(states), key=lambda state: state[0] + (_CHUNK if state[3] >= 0 else 0))
    chosen: list[Possible] = []
    chain = best[4]
    while chain is not None:
        chain, match = chain
        chosen.append(match)
    return chosen


def _best(states: list[_State]) -> list[_State]:
    states.sort(key=_rank)
    return states[:BEAM]


def align(possible: Sequence[Sequence[Possible]], size: int) -> list[WordMatch]:
    """Choose matches so that every word is in at most one, in the order of the reference, as METEOR 1.5 searches."""
    # ``possible``: for each reference word the matches that start there, in METEOR's order (duplicates count);
    # ``size``: the candidate's words. Source: Denkowski and Lavie 2014.
    definite = _definite(possible, size)
    chosen: list[Possible] = [match for match in definite if match is not None]
    if any(row and sure is None for row, sure in zip(possible, definite, strict=True)):
        chosen += _search(possible, definite, size)
        chosen.sort()
    return [WordMatch(*match) for match in chosen]


_AHEAD = (1 << BACK) - 1

_Spot = tuple[int, int]  # A phrase of the candidate: first word and number of words.

_Reverse = tuple[int, int, int]  # A candidate's phrase, and the place of the reference's among its paraphrases.

_NO_PARAPHRASES: tuple[list[_Spot], list[_Reverse]] = ([], [])


class Probe:
    """A candidate, ready to be held against its references; it remembers words and phrases, which these share."""

    def __init__(self, candidate: Sentence, words: TextWords, links: Sequence[Mapping[int, int]]) -> None:
        self.candidate = candidate
        self._words = words
        self._links = links
        self._places: dict[int, list[int]] = {}
        for position, word in enumerate(candidate.words):
            self._places.setdefault(word, []).append(position)
        self._spots: dict[int, list[_Spot]] = {}
        for start, length, phrase in candidate.phrases:
            self._spots.setdefault(phrase, []).append((start, length))
        self._word_set = frozenset(self._places)
        self._phrase_set = frozenset(self._spots)
        self._near: dict[int, list[tuple[int, Module]]] = {}
        self._paraphrases: dict[int, tuple[list[_Spot], list[_Reverse]]] = {}

    def count(self, reference: Sentence) -> int:
        """Return how many matches of single words there are with a reference."""
        return sum(len(self._near_words(word)) for word in reference.words)

    def possible(self, reference: Sentence) -> list[list[Possible]]:
        """Return, for each word of the reference, the matches that start there, in METEOR's order."""
        rows: list[list[Possible]] = []
        for start, word in enumerate(reference.words):
            rows.append([(start, 1, position, 1, module) for position, module in self._near_words(word)])
        if reference.hashes == self.candidate.hashes:  # METEOR takes a short way when both sides are equal
            return [[match for match in row if match[4] is Module.EXACT] for row in rows]
        self._add_paraphrases(reference, rows)
        return rows

    def _near_words(self, word: int) -> list[tuple[int, Module]]:
        """Return the places where the candidate matches a reference word: by module, then in order."""
        near = self._near.get(word)
        if near is None:
            matches = self._words.matches(word)
            hits = matches.keys() & self._word_set
            modules = [(module, position) for hit in hits for module in matches[hit] for position in self._places[hit]]
            near = self._near[word] = [(position, module) for module, position in sorted(modules)]
        return near

    def _add_paraphrases(self, reference: Sentence, rows: list[list[Possible]]) -> None:
        """Add the paraphrases: first those listed for the reference's phrases."""
        reverse: list[tuple[_Reverse, _Spot]] = []
        for start, length, phrase in reference.phrases:
            linked = self._paraphrases.get(phrase)
            if linked is None:
                linked = self._paraphrases[phrase] = self._linked(self._links[phrase])
            ahead, back = linked
            if ahead:
                rows[start] += [(start, length, spot, size, Module.PARAPHRASE) for spot, size in ahead]
            if back:
                reverse += [(way, (start, length)) for way in back]
        if reverse:
            reverse.sort()
            for (spot, size, _), (start, length) in reverse:
                rows[start].append((start, length, spot, size, Module.PARAPHRASE))

    def _linked(self, links: Mapping[int, int]) -> tuple[list[_Spot], list[_Reverse]]:
        """Return the candidate's phrases that are paraphrases of a phrase of the reference."""
        # First those in its list, in the list's order, then those that have it in theirs, with its place there.
        hits = links.keys() & self._phrase_set
        if not hits:
            return _NO_PARAPHRASES
        listed = sorted((links[hit] & _AHEAD, hit) for hit in hits)
        ahead = [spot for index, hit in listed if index for spot in self._spots[hit]]
        back = [(*spot, links[hit] >> BACK) for hit in hits if links[hit] >> BACK for spot in self._spots[hit]]
        return ahead, back
