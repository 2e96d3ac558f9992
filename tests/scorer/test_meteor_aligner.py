"""METEOR's search against a literal, slow telling of its steps, and against hand-made cases."""

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_scorer.metrics.meteor import aligner
from spicegraph_scorer.metrics.meteor.aligner import Possible, WordMatch, align
from spicegraph_scorer.metrics.meteor.text import Module

BEAM = 40


@dataclass
class State:
    """A partial alignment with every quantity that METEOR 1.5 keeps."""

    chosen: dict[int, Possible] = field(default_factory=dict)
    reference_used: frozenset[int] = frozenset()
    candidate_used: frozenset[int] = frozenset()
    candidate_weight: int = 0
    reference_weight: int = 0
    chunks: int = 0
    following: int = 0
    end: int | None = None
    distance: int = 0

    def order(self) -> tuple[int, int, int]:
        return -(self.candidate_weight + self.reference_weight), self.chunks, self.distance

    def apply(self, match: Possible) -> None:
        start, length, other, other_length, module = match
        factor = 1.0 if module is Module.EXACT else 0.5
        self.candidate_weight = int(self.candidate_weight + other_length * factor)
        self.reference_weight = int(self.reference_weight + length * factor)
        if self.end is not None and other != self.end:
            self.chunks += 1
        self.following, self.end = start + length, other + other_length


def words(match: Possible) -> tuple[frozenset[int], frozenset[int]]:
    start, length, other, other_length, _ = match
    return frozenset(range(start, start + length)), frozenset(range(other, other + other_length))


def first_state(rows: list[list[Possible]], size: int) -> State:
    everything = [words(match) for row in rows for match in row]
    covers = (
        [sum(word in both[0] for both in everything) for word in range(len(rows))],
        [sum(word in both[1] for both in everything) for word in range(size)],
    )
    state = State()
    for start, row in enumerate(rows):
        if len(row) == 1:
            sides = words(row[0])
            if all(cover[word] == 1 for cover, side in zip(covers, sides, strict=True) for word in side):
                state.chosen[start] = row[0]
                state.reference_used |= sides[0]
                state.candidate_used |= sides[1]
    return state


def step(state: State, position: int, row: list[Possible]) -> list[State]:
    if position in state.reference_used:
        if position >= state.following:
            match = state.chosen[state.following]
            state.apply(match)
            state.distance += abs(match[0] - match[2])
        return [state]
    grown = []
    for match in row:
        reference, candidate = words(match)
        if reference & state.reference_used or candidate & state.candidate_used:
            continue
        child = replace(
            state,
            chosen={**state.chosen, match[0]: match},
            reference_used=state.reference_used | reference,
            candidate_used=state.candidate_used | candidate,
        )
        child.apply(match)
        grown.append(child)
        state.distance += abs(match[0] - match[2])
    if state.end is not None:
        state.chunks += 1
        state.end = None
    state.following += 1
    return [*grown, state]


def literal_align(rows: list[list[Possible]], size: int) -> list[WordMatch]:
    queue = [first_state(rows, size)]
    for position, row in enumerate(rows):
        queue.sort(key=State.order)
        queue = [new for state in queue[:BEAM] for new in step(state, position, row)]
    queue.sort(key=State.order)
    queue = queue[:BEAM]
    for state in queue:
        state.chunks += state.end is not None
    queue.sort(key=State.order)
    return [WordMatch(*match) for _, match in sorted(queue[0].chosen.items())]


@st.composite
def puzzles(draw: st.DrawFn) -> tuple[list[list[Possible]], int]:
    """Return random possible matches; duplicates and long ones included."""
    reference, candidate = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rows: list[list[Possible]] = [[] for _ in range(reference)]
    for start in draw(st.lists(st.integers(0, reference - 1), max_size=24)):
        module = draw(st.sampled_from(Module))
        long = module is Module.PARAPHRASE
        length = draw(st.integers(1, min(4, reference - start))) if long else 1
        other = draw(st.integers(0, candidate - 1))
        other_length = draw(st.integers(1, min(4, candidate - other))) if long else 1
        rows[start].append((start, length, other, other_length, module))
    return rows, candidate


@given(puzzles())
def test_search_finds_what_the_literal_search_finds(puzzle: tuple[list[list[Possible]], int]) -> None:
    rows, size = puzzle
    assert align(rows, size) == literal_align(rows, size)


@pytest.mark.parametrize("module", [Module.EXACT, Module.STEM])
@pytest.mark.parametrize(("reference", "candidate"), [(8, 8), (9, 6), (5, 12)])
def test_search_forgets_what_the_literal_search_forgets(reference: int, candidate: int, module: Module) -> None:
    # one word over and over: far more than 40 partial alignments
    rows = [[(start, 1, other, 1, module) for other in range(candidate)] for start in range(reference)]
    assert align(rows, candidate) == literal_align(rows, candidate)


@given(puzzles())
def test_the_search_of_long_rows_finds_what_the_literal_search_finds(puzzle: tuple[list[list[Possible]], int]) -> None:
    rows, size = puzzle
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligner, "_LONG", 0)
        assert align(rows, size) == literal_align(rows, size)


@pytest.mark.parametrize("module", [Module.EXACT, Module.STEM])
@pytest.mark.parametrize("skipped", [0, 3])
def test_long_rows_with_a_beam_that_is_full(module: Module, skipped: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few words over and over, with others between: chunks that go on, break off and leave gaps."""
    texts = [
        ["a", "b", "a", "c", "a", "a", "b", "d", "a", "b"] * 8,
        ["a", "b", "c", "a", "b", "a", "a", "x", "b", "a"] * (8 - skipped),
    ]
    reference, candidate = texts
    rows = [
        [(start, 1, other, 1, module) for other, its in enumerate(candidate) if its == word]
        for start, word in enumerate(reference)
    ]
    expected = align(rows, len(candidate))
    monkeypatch.setattr(aligner, "_LONG", 0)
    assert align(rows, len(candidate)) == expected
    assert len(expected) > 10 or module is Module.STEM


def lines_of(size: int) -> int:
    """Return how many lines run while a word that stands ``size`` times on both sides is aligned."""
    rows = [[exact(start, other) for other in range(size)] for start in range(size + 1)]
    lines = 0

    def count(_frame: object, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        aligned = align(rows, size)
    finally:
        sys.settrace(before)
    assert len(aligned) == size
    return lines


@pytest.mark.slow
def test_a_word_over_and_over_takes_few_steps_a_match() -> None:
    """The plain search tries 40 partial alignments with each match, which takes 155 lines for each."""
    assert lines_of(200) < 100 * 200**2


@given(puzzles())
def test_no_word_is_in_two_matches(puzzle: tuple[list[list[Possible]], int]) -> None:
    matches = align(*puzzle)
    for side in (0, 1):
        used = [word for match in matches for word in words(match)[side]]
        assert len(used) == len(set(used))
    assert matches == sorted(matches)


def exact(start: int, other: int) -> Possible:
    return start, 1, other, 1, Module.EXACT


def test_fewer_chunks_win() -> None:
    # "the dog the" in "the the dog": the second "the" stands next to "dog"
    rows = [[exact(0, 0), exact(0, 1)], [exact(1, 2)], [exact(2, 0), exact(2, 1)]]
    assert [(m.reference_start, m.candidate_start) for m in align(rows, 3)] == [(0, 1), (1, 2), (2, 0)]


def test_an_ambiguous_stem_is_dropped_because_it_weighs_nothing() -> None:
    rows = [[(start, 1, 0, 1, Module.STEM)] for start in range(3)]
    assert align(rows, 1) == []


def test_an_unambiguous_stem_is_kept() -> None:
    assert align([[(0, 1, 0, 1, Module.STEM)]], 1) == [WordMatch(0, 1, 0, 1, Module.STEM)]


def test_nothing_to_choose_from_chooses_nothing() -> None:
    assert align([], 0) == []
    assert align([[], []], 2) == []
