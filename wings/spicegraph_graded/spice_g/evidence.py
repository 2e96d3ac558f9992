"""The parts of an explanation of SPICE-G: supported tuples, and changes that would raise the score."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GradedTuple:
    """A tuple of one side with its best match on the other, and its support."""

    words: tuple[str, ...]  # object; object and attribute; or subject, relation, object
    share: float  # of its side's weight, in [0, 1]
    support: float  # in [0, 1]
    partner: int | None  # index of the tuple of the other side that supports it best
    slots: tuple[float | None, ...]  # likeness to what stands there in the partner, in [0, 1]
    denied_by: int | None = None  # index of the reference attribute (another colour or count) that has cost it support


@dataclass(frozen=True, slots=True)
class Change:
    """A change: ``add`` a tuple, ``drop`` one (an object with all that is said of it) or ``replace`` one."""

    action: str
    words: tuple[str, ...]  # object; object, attribute; or subject, relation, object
    by: tuple[str, ...] | None  # what replaces it after ``replace``
    score: float  # the item's F1 after the change
    gain: float
