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
    spans = _best_spans(np.ascontiguousarray(scores[:, :, 1:].transpose(1, 2, 0)))
    words = np.arange(length)
    root = (spans[:, _LEFT, 0] + spans[words[::-1], _RIGHT, words] + scores[:, :, 0].T).argmax(axis=0)
    is_chosen = np.zeros(spans.shape, dtype=np.bool_)
    row = np.arange(sentences)
    is_chosen[root, _LEFT, 0, row] = is_chosen[length - 1 - root, _RIGHT, root, row] = True
    _divide(spans, is_chosen)
    width, is_left, start, row = is_chosen[:, _TO_RIGHT:].nonzero()
    end = start + width
    heads = np.zeros((sentences, length), dtype=np.intp)
    heads[row, np.where(is_left, start, end)] = np.where(is_left, end, start) + 1
    return heads


# Spans of words are complete, with the head at the left or the right end and all others below it, or they have an edge
# from that end to the other. They stand by width (less one), kind, first word and sentence: the parts into which spans
# of one width fall are then rows of memory, for all first words and sentences at once.
_RIGHT, _LEFT, _TO_RIGHT, _TO_LEFT = range(4)
# By kind: the kinds of its parts, the first one's least width, and where the second one begins behind the first one.
_PARTS = np.array([[_TO_RIGHT, _RIGHT, 1, 0], [_LEFT, _TO_LEFT, 0, 0], [_RIGHT, _LEFT, 0, 1], [_RIGHT, _LEFT, 0, 1]])


def _best_spans(edges: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores of the best trees over all spans, from those of edges (child, head, sentence)."""
    length, _, sentences = edges.shape
    spans = np.zeros((length, 4, length, sentences), dtype=np.float32)
    right, left, to_right, to_left = spans.transpose(1, 0, 2, 3)
    space = np.empty((length // 2) * (length - length // 2) * sentences, dtype=np.float32)
    for width in range(1, length):
        starts = length - width
        sums = space[: width * starts * sentences].reshape(width, starts, sentences)
        best = np.add(right[:width, :starts], _second_parts(spans, _LEFT, width - 1, 1, width), out=sums).max(axis=0)
        np.add(best, edges.diagonal(-width).T, out=to_right[width, :starts])
        np.add(best, edges.diagonal(width).T, out=to_left[width, :starts])
        np.add(to_right[1 : width + 1, :starts], _second_parts(spans, _RIGHT, width - 1, 1, width), out=sums)
        sums.max(axis=0, out=right[width, :starts])
        np.add(left[:width, :starts], _second_parts(spans, _TO_LEFT, width, 0, width), out=sums)
        sums.max(axis=0, out=left[width, :starts])
    return spans


def _second_parts(spans: NDArray[np.float32], kind: int, widest: int, start: int, width: int) -> NDArray[np.float32]:
    """Return a view of spans' second parts (width, starts, sentences), each narrower and later."""
    length, _, _, sentences = spans.shape
    by_width, by_kind, by_start, by_sentence = spans.strides
    shape, strides = (width, length - width, sentences), (by_start - by_width, by_start, by_sentence)
    return np.ndarray(shape, spans.dtype, spans.data, widest * by_width + kind * by_kind + start * by_start, strides)


def _divide(spans: NDArray[np.float32], is_chosen: NDArray[np.bool_]) -> None:
    """Choose also all parts of chosen spans, the widest ones first."""
    length, kinds, _, sentences = spans.shape
    by_kind = length * sentences
    by_width = kinds * by_kind
    first_kind, second_kind, least, behind = _PARTS.T
    later = sentences - by_width  # from a second part to the next one
    to_first = (first_kind - range(kinds)) * by_kind + least * by_width
    to_second = (second_kind - range(kinds)) * by_kind + (least + behind) * later
    scores, chosen = spans.reshape(-1), is_chosen.reshape(-1)
    splits = np.arange(length)[:, None]
    first_steps, second_steps = splits * by_width, splits * later
    for width in range(length - 1, 0, -1):
        for kind in (_RIGHT, _TO_RIGHT):
            begin = width * by_width + kind * by_kind
            some = chosen[begin : begin + 2 * by_kind].nonzero()[0]
            if not some.size:
                continue
            own = (some >= by_kind) + kind
            some += begin
            second = some + to_second.take(own)
            some += to_first.take(own) - width * by_width
            sums = scores.take(some + first_steps[:width])
            sums += scores.take(second + second_steps[:width])
            best = sums.argmax(axis=0)
            chosen[some + best * by_width] = True
            chosen[second + best * later] = True
