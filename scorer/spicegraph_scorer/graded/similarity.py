"""How much each tuple of a candidate and of its references is supported by the other side.

Two tuples are alike as far as the words are that they add (the object, the attribute, the relation's label), and as
far as these stand in the same place: at the same object, between the same two objects the same way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_scorer.graded.contradiction import exclusions

if TYPE_CHECKING:
    from spicegraph_scorer.graded.sides import Side
    from spicegraph_scorer.graded.vectors import Rows

__all__ = ["NO_PARTNER", "Support", "supports"]

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float32]

NO_PARTNER: Final = -1
_OWNER_SHARE: Final = 0.5
"""How much of an attribute's similarity depends on its object; on the candidate's side only."""
_ENDS_SHARE: Final = 0.7
"""How much of a relation's similarity depends on its two objects."""


@dataclass(frozen=True, slots=True, eq=False)
class Support:
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
    words = _words(candidate, reference, rows)
    excluded = exclusions(candidate.values, reference.values)
    if excluded is not None:
        words[excluded] = 0
    places = _places(candidate, reference, words)
    shares = np.repeat(np.array((0, _OWNER_SHARE, _ENDS_SHARE), np.float32), candidate.sizes)[:, None]
    forward = _best(words + shares * (places - words), words, places)
    if excluded is not None:
        forward = _contradict(forward, candidate, reference, words, excluded)
    # What references say is found wherever the candidate says it: a wrong owner is one fault, not two.
    shares = np.repeat(np.array((0, 0, _ENDS_SHARE), np.float32), reference.sizes)[:, None]
    backward = _best((words.T + shares * (places - words).T), words.T, places.T)
    return forward, backward


def _words(candidate: Side, reference: Side, rows: Rows) -> Matrix:
    """Return the similarities of the words that tuples add: positive cosines, 1 for equal concepts."""
    words: Matrix = rows.vectors[candidate.heads] @ rows.vectors[reference.heads].T
    np.clip(words, 0, 1, out=words)
    words[candidate.heads[:, None] == reference.heads] = 1
    return words


def _places(candidate: Side, reference: Side, words: Matrix) -> Matrix:
    """Return how far tuples are alike in every slot: the least of the slots' similarities; 0 across types.

    An attribute has a place at a plain object too, as far as the object's own word suggests it ("tall" at "tower").
    """
    (objects, attributes, _), (others, their_attributes, _) = candidate.sizes, reference.sizes
    nodes = words[:objects, :others]
    places = np.zeros_like(words)
    places[:objects] = words[:objects]
    mine = slice(objects, objects + attributes)
    theirs = slice(others, others + their_attributes)
    owners = nodes[candidate.owners]
    of_attributes, of_relations = owners[:attributes], owners[attributes:]
    places[mine, :others] = np.minimum(words[mine, :others], of_attributes)
    places[mine, theirs] = np.minimum(words[mine, theirs], of_attributes[:, reference.owners[:their_attributes]])
    ends = np.minimum(
        of_relations[:, reference.owners[their_attributes:]], nodes[candidate.targets][:, reference.targets]
    )
    places[mine.stop :, theirs.stop :] = np.minimum(words[mine.stop :, theirs.stop :], ends)
    return places


def _best(similarities: Matrix, words: Matrix, places: Matrix) -> Support:
    """Return each row's best partner."""
    count, others = similarities.shape
    if not others:
        nothing = np.zeros(count, np.float32)
        return Support(nothing, np.full(count, NO_PARTNER, np.intp), nothing, nothing, np.zeros(count, np.bool_))
    partner = similarities.argmax(axis=1)
    row = np.arange(count)
    support = similarities[row, partner]
    return Support(
        support,
        np.where(support > 0, partner, NO_PARTNER),
        words[row, partner],
        places[row, partner],
        np.zeros(count, np.bool_),
    )


def _contradict(
    found: Support, candidate: Side, reference: Side, words: Matrix, excluded: npt.NDArray[np.bool_]
) -> Support:
    """Take from attributes what the references deny: another colour or count of an object that is as similar."""
    (objects, attributes, _), (others, their_attributes, _) = candidate.sizes, reference.sizes
    mine, theirs = slice(objects, objects + attributes), slice(others, others + their_attributes)
    denied = excluded[mine, theirs]
    if not denied.any():
        return found
    owners = words[:objects, :others][candidate.owners[:attributes]][:, reference.owners[:their_attributes]]
    against = (owners * denied).max(axis=1)
    agreed = np.minimum(owners, words[mine, theirs]).max(axis=1)
    excess = np.maximum(0, against - agreed)
    support, contradicted = found.support.copy(), found.contradicted.copy()
    support[mine] = np.maximum(0, support[mine] - excess)
    contradicted[mine] = excess > 0
    partner = np.where(support > 0, found.partner, NO_PARTNER)
    return Support(support, partner, found.word, found.place, contradicted)
