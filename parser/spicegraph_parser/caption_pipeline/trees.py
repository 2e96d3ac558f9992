"""From scores of heads to trees.

Most often each word's best head already gives a projective tree with one root, which then is the best tree;
only the other sentences pay for a search (Eisner 1996), all sentences of one length at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def best_heads(scores: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the best projective tree of each sentence.

    Args:
        scores: (sentences, n, 1 + n); the score of word i having head j, where head 0 is the root.

    Returns:
        (sentences, n) heads, 1-based, 0 for the one root of each sentence.
    """
    heads: NDArray[np.intp] = scores.argmax(axis=2)
    wrong = np.flatnonzero(~is_projective_tree(heads))
    if wrong.size:
        heads[wrong] = projective_heads(_log_probabilities(scores[wrong]))
    return heads


def _log_probabilities(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalise each word's scores over its heads: words can then be weighed against each other."""
    shifted = scores - scores.max(axis=2, keepdims=True)
    total: NDArray[np.float32] = np.exp(shifted).sum(axis=2, keepdims=True)
    normal: NDArray[np.float32] = shifted - np.log(total)
    return normal


def is_projective_tree(heads: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which rows (sentences, n) of heads are projective trees with exactly one root."""
    sentences, length = heads.shape
    one_root: NDArray[np.bool_] = (heads == 0).sum(axis=1) == 1
    return one_root & _reaches_root(heads) & ~_crosses(heads) if length > 1 and sentences else one_root


def _reaches_root(heads: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which rows have no cycle: following heads from any word ends at the root."""
    sentences, length = heads.shape
    up = np.zeros((sentences, length + 1), dtype=np.intp)
    up[:, 1:] = heads
    for _ in range(length.bit_length()):
        up = np.take_along_axis(up, up, axis=1)
    lost: NDArray[np.bool_] = np.any(up, axis=1)
    return ~lost


def _crosses(heads: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which rows have two edges that cross (an edge from the root spans all words before its child)."""
    words = np.arange(1, heads.shape[1] + 1)
    low = np.minimum(heads, words)
    high = np.maximum(heads, words)
    inside = (low[:, :, None] < low[:, None, :]) & (low[:, None, :] < high[:, :, None])
    crossing: NDArray[np.bool_] = np.any(inside & (high[:, None, :] > high[:, :, None]), axis=(1, 2))
    return crossing


def projective_heads(scores: NDArray[np.float32]) -> NDArray[np.intp]:
    """Search the best projective tree with one root for each sentence (Eisner's algorithm, batched).

    Args:
        scores: (sentences, n, 1 + n) as for :func:`best_heads`.
    """
    sentences, length, _ = scores.shape
    arc = scores[:, :, 1:].transpose(0, 2, 1)  # arc[b, head, child]
    right = np.zeros((sentences, length, length), dtype=np.float32)  # complete, head at the left end
    left = np.zeros_like(right)  # complete, head at the right end
    to_right = np.zeros_like(right)  # incomplete, edge from the left end to the right end
    to_left = np.zeros_like(right)
    split = np.zeros((3, sentences, length, length), dtype=np.intp)  # of: incomplete, right, left
    for width in range(1, length):
        start = np.arange(length - width)
        end = start + width
        near = start[:, None] + np.arange(width)
        s, e = start[:, None], end[:, None]
        joined = right[:, s, near] + left[:, near + 1, e]
        split[0][:, start, end] = start + joined.argmax(axis=2)
        best = joined.max(axis=2)
        to_right[:, start, end] = best + arc[:, start, end]
        to_left[:, start, end] = best + arc[:, end, start]
        opened = to_right[:, s, near + 1] + right[:, near + 1, e]
        split[1][:, start, end] = start + 1 + opened.argmax(axis=2)
        right[:, start, end] = opened.max(axis=2)
        closed = left[:, s, near] + to_left[:, near, e]
        split[2][:, start, end] = start + closed.argmax(axis=2)
        left[:, start, end] = closed.max(axis=2)
    root = (left[:, 0, :] + right[:, :, length - 1] + scores[:, :, 0]).argmax(axis=1)
    heads = np.zeros((sentences, length), dtype=np.intp)
    for row in range(sentences):
        _follow(split[:, row], int(root[row]), heads[row])
    return heads


def _follow(split: NDArray[np.intp], root: int, heads: NDArray[np.intp]) -> None:
    """Write the heads (1-based) of the best tree under the given root word (0-based)."""
    # Each entry: (start, end, head is at the left end, span is complete).
    open_spans = [(0, root, False, True), (root, len(heads) - 1, True, True)]
    while open_spans:
        start, end, at_left, complete = open_spans.pop()
        if start == end:
            continue
        if not complete:
            child, head = (end, start) if at_left else (start, end)
            heads[child] = head + 1
            middle = int(split[0, start, end])
            open_spans += [(start, middle, True, True), (middle + 1, end, False, True)]
        elif at_left:
            middle = int(split[1, start, end])
            open_spans += [(start, middle, True, False), (middle, end, True, True)]
        else:
            middle = int(split[2, start, end])
            open_spans += [(start, middle, False, True), (middle, end, False, False)]
