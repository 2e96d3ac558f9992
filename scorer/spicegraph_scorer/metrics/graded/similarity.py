"""How much each tuple of a candidate and of its references is supported by the other side.

Two tuples are alike as far as the words are that they add (the object, the attribute, the relation's label), and as
far as these stand in the same place: at the same object, between the same two objects the same way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spicegraph_scorer.metrics.graded.contradiction import verdicts

if TYPE_CHECKING:
    from spicegraph_scorer.metrics.graded.sides import Side
    from spicegraph_scorer.metrics.graded.vectors import Rows

__all__ = ["NO_PARTNER", "Support", "degrees", "supports"]

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float32]

NO_PARTNER: Final = -1


class Support(NamedTuple):
    """One side's tuples: how well each is supported, by which tuple of the other side, and why so.

    ``support``, ``word`` and ``place`` are in [0, 1]: the whole, the likeness of the words, and how far word and
    place are both alike (the least of the similarities slot by slot). ``contradicted`` says that the other side has
    another colour or count for the same object. ``partner`` is -1 where nothing supports the tuple.
    """

    support: Floats
    partner: npt.NDArray[np.intp]
    word: Floats
    place: Floats
    contradicted: npt.NDArray[np.bool_]


def supports(candidate: Side, reference: Side, rows: Rows) -> tuple[Support, Support]:
    """Return how the tuples of a candidate are supported by those of its references, and the other way round."""
    words, places, forward, backward, excess = _compared(candidate, reference, rows)
    mine = _best(forward, 1, words, places)
    if excess is not None:
        mine = _contradict(mine, candidate, excess)
    return mine, _best(backward, 0, words, places)


def degrees(candidate: Side, reference: Side, rows: Rows) -> tuple[Floats, Floats]:
    """Return how far the tuples of each side are supported: what :func:`supports` finds, without saying by what."""
    _, _, forward, backward, excess = _compared(candidate, reference, rows)
    mine: Floats = forward.max(axis=1, initial=0)
    if excess is not None:
        objects, attributes, _ = candidate.sizes
        own = mine[objects : objects + attributes]
        np.maximum(0, own - excess, out=own)
    return mine, backward.max(axis=0, initial=0)


class _Comparison(NamedTuple):
    """Every tuple of a candidate against every one of the references: word, place, support on either side.

    ``excess`` is what the references deny of each attribute of the candidate, if they deny any.
    """

    words: Matrix
    places: Matrix
    forward: Matrix
    backward: Matrix
    excess: Floats | None


def _compared(candidate: Side, reference: Side, rows: Rows) -> _Comparison:
    words = _words(candidate, reference, rows)
    excluded = _judged(words, candidate, reference)
    places = _places(candidate, reference, words)
    apart = places - words
    forward = words + candidate.bound[0][:, None] * apart
    excess = None if excluded is None else _excess(candidate, reference, words, excluded)
    return _Comparison(words, places, forward, words + reference.bound[1] * apart, excess)


def _words(candidate: Side, reference: Side, rows: Rows) -> Matrix:
    """Return the similarities of the words that tuples add: positive cosines, 1 for equal concepts."""
    words: Matrix = rows.vectors.take(candidate.heads, axis=0) @ rows.vectors.take(reference.heads, axis=0).T
    np.minimum(np.maximum(words, 0, out=words), 1, out=words)
    words[candidate.heads[:, None] == reference.heads] = 1
    return words


def _judged(words: Matrix, candidate: Side, reference: Side) -> npt.NDArray[np.bool_] | None:
    """Make words with the same value alike, and those that exclude each other unlike; return the latter, if any."""
    excluded, agreed = verdicts(candidate.values, reference.values)
    if agreed:
        words[tuple(zip(*agreed, strict=True))] = 1
    if not excluded:
        return None
    denied = np.zeros(words.shape, np.bool_)
    denied[tuple(zip(*excluded, strict=True))] = True
    words[denied] = 0
    return denied


def _places(candidate: Side, reference: Side, words: Matrix) -> Matrix:
    """Return how far tuples are alike in every slot: the least of the slots' similarities; 0 across types.

    An attribute has a place at a plain object too, as far as the object's own word suggests it ("tall" at "tower").
    """
    (objects, attributes, relations), (others, their_attributes, _) = candidate.sizes, reference.sizes
    nodes = words[:objects, :others]
    places = np.zeros(words.shape, np.float32)
    places[:objects] = words[:objects]
    mine = slice(objects, objects + attributes)
    theirs = slice(others, others + their_attributes)
    owners = nodes.take(candidate.owners, axis=0)
    if attributes:
        of_attributes = owners[:attributes]
        np.minimum(words[mine, :others], of_attributes, out=places[mine, :others])
        at_attributes = of_attributes.take(reference.owners[:their_attributes], axis=1)
        np.minimum(words[mine, theirs], at_attributes, out=places[mine, theirs])
    if relations:
        starts = owners[attributes:].take(reference.owners[their_attributes:], axis=1)
        ends = nodes.take(candidate.targets, axis=0).take(reference.targets, axis=1)
        here = np.minimum(starts, ends, out=starts)
        np.minimum(words[mine.stop :, theirs.stop :], here, out=places[mine.stop :, theirs.stop :])
    return places


def _best(similar: Matrix, axis: int, words: Matrix, places: Matrix) -> Support:
    """Return the best partner of each row (axis 1), or of each column (axis 0)."""
    count, others = similar.shape[1 - axis], similar.shape[axis]
    if not others:
        nothing = np.zeros(count, np.float32)
        return Support(nothing, np.full(count, NO_PARTNER, np.intp), nothing, nothing, np.zeros(count, np.bool_))
    partner = similar.argmax(axis=axis)
    own = np.arange(count)
    at = own * others + partner if axis else partner * count + own  # in the matrix as it lies in memory
    support = similar.take(at)
    partner[support <= 0] = NO_PARTNER
    return Support(support, partner, words.take(at), places.take(at), np.zeros(count, np.bool_))


def _excess(candidate: Side, reference: Side, words: Matrix, excluded: npt.NDArray[np.bool_]) -> Floats | None:
    """Return how much more the references deny each attribute of a candidate than they say it; nothing: of none.

    They deny it by another colour or count of an object that is as similar.
    """
    (objects, attributes, _), (others, their_attributes, _) = candidate.sizes, reference.sizes
    mine, theirs = slice(objects, objects + attributes), slice(others, others + their_attributes)
    denied = excluded[mine, theirs]
    if not denied.any():
        return None
    owners = words[:objects, :others][candidate.owners[:attributes]][:, reference.owners[:their_attributes]]
    against = (owners * denied).max(axis=1)
    agreed = np.minimum(owners, words[mine, theirs]).max(axis=1)
    excess: Floats = np.maximum(0, against - agreed)
    return excess


def _contradict(found: Support, candidate: Side, excess: Floats) -> Support:
    """Take from the support of a candidate's attributes what the references deny."""
    objects, attributes, _ = candidate.sizes
    mine = slice(objects, objects + attributes)
    support, contradicted = found.support.copy(), found.contradicted.copy()
    support[mine] = np.maximum(0, support[mine] - excess)
    contradicted[mine] = excess > 0
    partner = np.where(support > 0, found.partner, NO_PARTNER)
    return Support(support, partner, found.word, found.place, contradicted)
