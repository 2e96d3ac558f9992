"""What a finding is, and how rules find them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.graph import SceneTuple
from spicegraph_scorer.studies.errors.view import MatchView

if TYPE_CHECKING:
    from spicegraph_scorer.studies.errors.near import Near

__all__ = ["Explanation", "Finding", "Kind", "Rule", "Side"]


class Side(StrEnum):
    """Whose tuple is without a partner."""

    INVENTED = "invented"
    MISSED = "missed"


class Explanation(NamedTuple):
    """What a rule says of a tuple: the words under which it is counted, and its counterpart, if any.

    ``counterpart`` is an index into the other side's tuples; ``near`` says how a near miss is near it.
    """

    words: tuple[str, ...]
    counterpart: int | None = None
    near: Near | None = None


Rule = Callable[[MatchView, SceneTuple], Explanation | None]
"""Explains a tuple without a partner, or says that it can't."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of error: the tuples that it may explain, and the rule that does.

    ``title`` names it; ``columns`` name what ``Explanation.words`` hold; ``primary`` is false for errors that
    follow from another one (an attribute of an object that is itself invented).
    """

    side: Side
    length: int
    title: str
    columns: tuple[str, ...]
    rule: Rule
    primary: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """The explanation of one tuple without a partner.

    ``tuple`` is its index among the tuples of its side, ``agreeing`` the number of captions that say it.
    """

    kind: str
    words: tuple[str, ...]
    tuple: int
    counterpart: int | None
    agreeing: int
    near: Near | None = None
