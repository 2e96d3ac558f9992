"""The candidate's scene graph laid over that of the references, from one match."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from spicegraph_parser.graph import Attribute, Relation, SceneGraph, SceneObject
from spicegraph_parser.layout import lay_out

if TYPE_CHECKING:
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.metrics.spice.match import Match

__all__ = ["Box", "Line", "Picture", "State", "overlay"]


class State(IntEnum):
    """Whose a part of the picture is."""

    MATCHED = 0
    MISSED = 1
    INVENTED = 2


@dataclass(frozen=True, slots=True)
class Box:
    """An object's card: name, state, corner and size in pixels, attributes with their states."""

    name: str
    state: State
    x: int
    y: int
    width: int
    height: int
    attributes: tuple[tuple[str, State], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """All relations from one object to another, and the points that the arrow leads through."""

    labels: tuple[tuple[str, State], ...]
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Cards and arrows, and the size of the whole in pixels."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


class _Overlay:
    """A graph that holds the references' objects and, of the candidate's, those that they lack."""

    def __init__(self, match: Match) -> None:
        self.match = match
        self.objects: list[tuple[Concept, State]] = []
        self.attributes: list[tuple[int, Concept, State]] = []
        self.relations: list[tuple[int, int, Concept, State]] = []
        self._theirs: dict[Concept, int] = {}
        self._mine: dict[Concept, int] = {}

    def build(self) -> None:
        """Place every tuple: objects before what refers to them."""
        for length in (1, 2, 3):
            for index, theirs in enumerate(self.match.reference):
                if len(theirs.concepts) == length:
                    found = bool(self.match.reference_partners[index])
                    self._add(theirs.concepts, self._theirs, State.MATCHED if found else State.MISSED)
            for index, mine in enumerate(self.match.candidate):
                partners = self.match.candidate_partners[index]
                if len(mine.concepts) == length and not partners:
                    self._add(mine.concepts, self._mine, State.INVENTED)
                elif length == 1 and partners:
                    partner = self.match.reference[partners[0]].concepts[0]
                    self._mine[mine.concepts[0]] = self._theirs[partner]

    def _add(self, concepts: tuple[Concept, ...], nodes: dict[Concept, int], state: State) -> None:
        if len(concepts) == 1:
            nodes[concepts[0]] = len(self.objects)
            self.objects.append((concepts[0], state))
        elif len(concepts) == 2:
            self.attributes.append((nodes[concepts[0]], concepts[1], state))
        else:
            self.relations.append((nodes[concepts[0]], nodes[concepts[2]], concepts[1], state))


def overlay(match: Match) -> Picture:
    """Lay both graphs of a match over each other and place their parts.

    Example:
        >>> from spicegraph_scorer import score_tuples
        >>> result = score_tuples([["cat"]], [[["cat"], ["mat"]]])
        >>> [(box.name, box.state.name) for box in overlay(result.statistic.match).boxes]
        [('cat', 'MATCHED'), ('mat', 'MISSED')]
    """
    both = _Overlay(match)
    both.build()
    layout = lay_out(
        SceneGraph(
            tuple(SceneObject(concept, ()) for concept, _ in both.objects),
            tuple(Attribute(of, concept, ()) for of, concept, _ in both.attributes),
            tuple(Relation(a, b, concept, ()) for a, b, concept, _ in both.relations),
        )
    )
    boxes = []
    for index, (_, state) in enumerate(both.objects):
        card = layout.cards[index]
        states = [state for of, _, state in both.attributes if of == index]
        attributes = tuple(zip(card.attributes, states, strict=True))
        boxes.append(Box(card.name, state, int(card.x), int(card.y), int(card.width), int(card.height), attributes))
    lines = []
    for arrow in layout.arrows:
        cards = [layout.cards[index] for index in arrow.route]
        rightward = cards[0].x <= cards[-1].x
        first, *between, last = cards
        ends = (first.right, last.x) if rightward else (first.x, last.right)
        if first.x == last.x:
            ends = first.right, last.right
        points = [(ends[0], first.port), *((card.x, card.port) for card in between), (ends[1], last.port)]
        labels = tuple(
            (concept.label, state)
            for a, b, concept, state in both.relations
            if (a, b) == (arrow.route[0], arrow.route[-1])
        )
        lines.append(Line(labels, tuple((int(x), int(y)) for x, y in points)))
    return Picture(int(layout.width), int(layout.height), tuple(boxes), tuple(lines))
