"""From scores of heads to trees.

Most often each word's best head gives a projective tree; only other sentences pay for a search (Eisner 1996).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def best_heads(scores: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the best projective tree of each sentence: its heads (sentences, n), 1-based, 0 for the one root."""
    # ``scores``: (sentences, n, 1 + n); the score of word i having head j, where head 0 is the root.
    heads: NDArray[np.intp] = scores.argmax(axis=2)
    wrong = np.flatnonzero(~is_projective_tree(heads))
    if wrong.size:
        heads[wrong] = projective_heads(log_probabilities(scores[wrong]))
    return heads


def log_probabilities(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalise scores (..., choices), of a word's heads say: words can then be weighed against each other."""
    shifted = scores - best_choices(scores)[1][..., None]
    total: NDArray[np.float32] = np.exp(shifted).sum(axis=-1, keepdims=True)
    normal: NDArray[np.float32] = shifted - np.log(total)
    return normal


def best_choices(scores: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return where scores (..., choices) are greatest, and these scores (...,)."""
    # numpy finds the place of a maximum several times faster than the maximum, where choices are few.
    best: NDArray[np.intp] = scores.argmax(axis=-1)
    rows = np.arange(0, scores.size, scores.shape[-1]).reshape(best.shape)
    return best, scores.take(rows + best)


def is_projective_tree(heads: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which rows (sentences, n) of heads are projective trees with exactly one root."""
    sentences, length = heads.shape
    one_root: NDArray[np.bool_] = (heads == 0).sum(axis=1) == 1
    if length == 1 or not sentences:
        return one_root
    # Where there is no cycle, following heads from any word ends at the root.
    up = np.zeros((sentences, length + 1), dtype=np.intp)
    up[:, 1:] = heads
    for _ in range(length.bit_length()):
        up = np.take_along_axis(up, up, axis=1)
    # Two edges cross where one begins inside of the other and ends outside of it. An edge from the root spans all words
    # before its child.
    words = np.arange(1, length + 1)
    low = np.minimum(heads, words)
    high = np.maximum(heads, words)
    inside = (low[:, :, None] < low[:, None, :]) & (low[:, None, :] < high[:, :, None])
    crossing = np.any(inside & (high[:, None, :] > high[:, :, None]), axis=(1, 2))
    is_tree: NDArray[np.bool_] = one_root & ~crossing & ~np.any(up, axis=1)
    return is_tree


def projective_heads(scores: NDArray[np.float32]) -> NDArray[np.intp]:
    """Search the trees of :func:`best_heads` for the same scores (Eisner's algorithm, batched)."""
    sentences, length, _ = scores.shape
    arc = np.ascontiguousarray(scores[:, :, 1:].transpose(0, 2, 1))  # arc[b, head, child]
    # Spans [b, start, end] by their start, and [b, end, start] by their end: what is added up lies in rows then.
    right, left, to_right, right_ends, left_ends, to_left_ends = np.zeros(
        (6, sentences, length, length), dtype=np.float32
    )  # complete, head at the left end, at the right end; incomplete, with an edge between the ends
    split = np.zeros((3, sentences, length, length), dtype=np.int64)  # of: incomplete, right, left
    starts = np.arange(length)
    for width in range(1, length):
        start = starts[: length - width]
        middle, best = best_choices(_windows(right, 0, 0, width) + _windows(left_ends, width, 1, width))
        np.add(start, middle, out=_diagonal(split[0], 0, width))
        np.add(best, _diagonal(arc, 0, width), out=_diagonal(to_right, 0, width))
        np.add(best, _diagonal(arc, width, 0), out=_diagonal(to_left_ends, width, 0))
        middle, best = best_choices(_windows(to_right, 0, 1, width) + _windows(right_ends, width, 1, width))
        np.add(start + 1, middle, out=_diagonal(split[1], 0, width))
        _diagonal(right, 0, width)[:] = _diagonal(right_ends, width, 0)[:] = best
        middle, best = best_choices(_windows(left, 0, 0, width) + _windows(to_left_ends, width, 0, width))
        np.add(start, middle, out=_diagonal(split[2], 0, width))
        _diagonal(left, 0, width)[:] = _diagonal(left_ends, width, 0)[:] = best
    root = (left[:, 0, :] + right[:, :, length - 1] + scores[:, :, 0]).argmax(axis=1)
    heads = np.zeros((sentences, length), dtype=np.intp)
    for row in range(sentences):
        heads[row] = _follow(split[:, row], int(root[row]))
    return heads


def _diagonal(table: NDArray[T], row: int, column: int) -> NDArray[T]:
    """Return the diagonals of tables (sentences, n, n) that begin in a row or a column; writing to them is allowed."""
    sentences, length, _ = table.shape
    by_sentence, by_row, by_column = table.strides
    offset = row * by_row + column * by_column
    strides = by_sentence, by_row + by_column
    return np.ndarray((sentences, length - row - column), table.dtype, table.data, offset, strides)


def _windows(table: NDArray[np.float32], row: int, column: int, width: int) -> NDArray[np.float32]:
    """Return ``width`` values from each place of a diagonal of tables (sentences, n, n): (sentences, places, width)."""
    sentences, length, _ = table.shape
    by_sentence, by_row, by_column = table.strides
    offset = row * by_row + column * by_column
    strides = by_sentence, by_row + by_column, by_column
    return np.ndarray((sentences, length - width, width), table.dtype, table.data, offset, strides)


def _follow(split: NDArray[np.int64], root: int) -> list[int]:
    """Return the heads (1-based) of the best tree under the given root word (0-based)."""
    length = split.shape[-1]
    heads = [0] * length
    middle_of = split.item  # plain numbers, which an index into an array would give more slowly
    # Each entry: (start, end, head is at the left end, span is complete).
    open_spans = [(0, root, False, True), (root, length - 1, True, True)]
    while open_spans:
        start, end, at_left, complete = open_spans.pop()
        if start == end:
            continue
        if not complete:
            child, head = (end, start) if at_left else (start, end)
            heads[child] = head + 1
            middle = middle_of(0, start, end)
            open_spans += [(start, middle, True, True), (middle + 1, end, False, True)]
        elif at_left:
            middle = middle_of(1, start, end)
            open_spans += [(start, middle, True, False), (middle, end, True, True)]
        else:
            middle = middle_of(2, start, end)
            open_spans += [(start, middle, False, True), (middle, end, False, False)]
    return heads
