"""Head scores become trees: always a projective tree with one root, and the best one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.caption_pipeline.trees import best_heads, is_projective_tree, projective_heads

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _scores(sentences: int, length: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(sentences, length, length + 1)).astype(np.float32)


def _all_trees(length: int) -> NDArray[np.intp]:
    heads = np.array(list(itertools.product(range(length + 1), repeat=length)), dtype=np.intp)
    return heads[is_projective_tree(heads)]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([2, 0, 2], True),
        ([0], True),
        ([1], False),  # its own head
        ([0, 0], False),  # two roots
        ([2, 1, 0], False),  # a cycle
        ([3, 4, 0, 3], False),  # 1-3 and 2-4 cross
        ([2, 4, 0, 3], False),  # the root's edge to 3 is crossed by 2-4
    ],
)
def test_projective_trees_are_told_from_others(heads: list[int], expected: bool) -> None:
    assert is_projective_tree(np.array([heads])).tolist() == [expected]


def test_number_of_projective_trees() -> None:
    """There are C(3n - 2, n - 1) / n projective trees with one root over n words: 1, 2, 7, 30, 143."""
    assert [len(_all_trees(length)) for length in range(1, 6)] == [1, 2, 7, 30, 143]


@given(length=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_search_finds_the_best_of_all_trees(length: int, seed: int) -> None:
    scores = _scores(3, length, seed)
    trees = _all_trees(length)
    words = np.arange(length)
    for row, heads in enumerate(projective_heads(scores)):
        best = scores[row][words, trees].sum(axis=1).max()
        assert scores[row][words, heads].sum() == pytest.approx(best, abs=1e-4)


@given(length=st.integers(1, 30), sentences=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_best_heads_are_trees_and_kept_where_they_were(length: int, sentences: int, seed: int) -> None:
    scores = _scores(sentences, length, seed)
    heads = best_heads(scores)
    greedy = scores.argmax(axis=2)
    assert is_projective_tree(heads).all()
    kept = is_projective_tree(greedy)
    assert (heads[kept] == greedy[kept]).all()
