"""A picture of scene graphs as SVG: a card for every object with its attributes, an arrow for every relation.

A small form of the layered drawing of Sugiyama, Tagawa and Toda (1981): columns by longest path; an arrow that passes a
column keeps a place free in it; each column is ordered by the mean place of its neighbours. Text widths are estimated,
so that no font is needed. Captions are untrusted: every text is escaped, and nothing from outside is named.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.spice.graph import SceneGraph

LINE = 20.0  # height of a line of text, in pixels
HEADER = 32.0  # height of the part of a card that holds the object's name
_BETWEEN = 26.0
_PASSAGE = 14.0
_CARD_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Card:
    """An object's box: name, attributes, upper left corner; without a name it is a passage for an arrow."""

    name: str = ""
    attributes: tuple[str, ...] = ()
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Width in pixels."""
        return max(map(text_width, (self.name, *self.attributes))) + 24.0 if self.name else 0.0

    @property
    def height(self) -> float:
        """Height in pixels, attributes included."""
        attributes = LINE * len(self.attributes) + 4 if self.attributes else 0.0
        return HEADER + attributes if self.name else _PASSAGE

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def port(self) -> float:
        """The height at which arrows begin and end."""
        return self.y + (HEADER if self.name else _PASSAGE) / 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """All relations from one object to another under one label; ``route``: the subject, passages, the object."""

    label: str
    route: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """Placed cards, the objects first and in the graph's order, and the arrows between them."""

    cards: tuple[Card, ...]
    arrows: tuple[Arrow, ...]

    @property
    def width(self) -> float:
        """Width of all cards in pixels, without the room for arrows beside them."""
        return max([0.0, *(card.right for card in self.cards)])

    @property
    def height(self) -> float:
        """Height of all cards in pixels."""
        return max([0.0, *(card.y + card.height for card in self.cards)])


def lay_out(graph: SceneGraph) -> PictureLayout:
    """Place the objects and relations of a scene graph."""
    cards = [
        Card(
            cut(node.concept.label, _CARD_CHARACTERS),
            tuple(cut(a.concept.label, _CARD_CHARACTERS) for a in graph.attributes if a.object == index),
        )
        for index, node in enumerate(graph.objects)
    ]
    labels: dict[tuple[int, int], list[str]] = {}
    for relation in graph.relations:
        labels.setdefault((relation.subject, relation.object), []).append(relation.concept.label)
    column = _columns(len(cards), list(labels))
    arrows = []
    for (subject, target), texts in labels.items():
        start, end = column[subject], column[target]
        step = 1 if start < end else -1
        passages = list(range(start + step, end, step))
        between = range(len(cards), len(cards) + len(passages))
        cards += [Card()] * len(passages)
        column += passages
        arrows.append(Arrow(cut(", ".join(texts), 60), (subject, *between, target)))
    return PictureLayout(_placed(cards, _ordered(column, arrows), arrows), tuple(arrows))


def _columns(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return each object's column: right of all that leads to it; a relation that closes a circle is ignored."""
    before: dict[int, set[int]] = {index: set() for index in range(count)}
    for subject, target in pairs:
        leading, waiting = {subject}, [subject]  # the subject and all that lead to it
        while waiting:
            new = before[waiting.pop()] - leading
            leading |= new
            waiting += new
        if target not in leading:
            before[target].add(subject)
    order = TopologicalSorter(before)
    order.prepare()
    columns = [0] * count
    column = 0
    while members := order.get_ready():
        for index in members:
            columns[index] = column
        order.done(*members)
        column += 1
    return columns


def _neighbours(arrows: Sequence[Arrow]) -> defaultdict[int, list[int]]:
    near: defaultdict[int, list[int]] = defaultdict(list)
    for arrow in arrows:
        for node, other in pairwise(arrow.route):
            near[node].append(other)
            near[other].append(node)
    return near


def _ordered(column: Sequence[int], arrows: Sequence[Arrow]) -> list[list[int]]:
    """Order each column by the mean place of the neighbours in the columns beside it, back and forth."""
    columns: list[list[int]] = [[] for _ in range(max(column, default=-1) + 1)]
    for index, rank in enumerate(column):
        columns[rank].append(index)
    near = _neighbours(arrows)
    row = {index: float(rank) for members in columns for rank, index in enumerate(members)}

    def pull(index: int) -> tuple[bool, float]:
        """Return a sort key: the mean row of the neighbours, with unconnected nodes last."""
        beside = [row[other] for other in near[index] if column[other] != column[index]]
        return not near[index], sum(beside) / len(beside) if beside else row[index]

    for sweep in range(8):
        for members in columns if sweep % 2 else columns[::-1]:
            members.sort(key=pull)
            row.update((index, float(rank)) for rank, index in enumerate(members))
    return columns


def _placed(cards: Sequence[Card], columns: Sequence[Sequence[int]], arrows: Sequence[Arrow]) -> tuple[Card, ...]:
    """Give every card its corner: columns from left to right, each in the middle of the height."""
    heights = [sum(cards[index].height + _BETWEEN for index in members) - _BETWEEN for members in columns]
    placed = list(cards)
    x = 0.0
    for number, members in enumerate(columns):
        y = (max(heights) - heights[number]) / 2
        for index in members:
            placed[index] = replace(cards[index], x=x, y=y)
            y += cards[index].height + _BETWEEN
        # To the right of a column is room for the labels of the arrows that touch it.
        labels = [arrow.label for arrow in arrows if not set(members).isdisjoint(arrow.route)]
        room = max([60.0, *(text_width(label) + 40.0 for label in labels)])
        x += max(cards[index].width for index in members) + room
    return tuple(placed)


def text_width(text: str) -> float:
    """Estimate the width of a text in pixels: 8.2 a character at 14 px, a little generous."""
    return 8.2 * len(text)


def cut(text: str, limit: int) -> str:
    """Return text on one line, with at most so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


_MARGIN = 20.0
_TITLE = 32.0
_LOOP = 40.0  # how far an arrow within a column swings out

_HEAD = (
    "<style>"
    "text{font:14px Helvetica,Arial,sans-serif;fill:#1f2933}"
    ".title{font-weight:bold}"
    ".object{fill:#fde2e4;stroke:#c9184a}"
    ".attribute{fill:#e2f0d9;stroke:#588157}"
    ".arrow{fill:none;stroke:#4a5568;stroke-width:1.4}"
    ".relation{font-style:italic;paint-order:stroke;stroke:#fff;stroke-width:5px;stroke-linejoin:round}"
    "</style>"
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto">'
    '<path d="M0 0 10 5 0 10z" fill="#4a5568"/></marker></defs>'
    '<rect width="100%" height="100%" fill="#fff"/>'
)


def to_svg(graphs: Iterable[tuple[str, SceneGraph]]) -> str:
    """Return one SVG picture of titled scene graphs, below each other."""
    parts: list[str] = []
    top, width = _MARGIN, 0.0
    for title, graph in graphs:
        shown = cut(title, 110)
        layout = lay_out(graph)
        parts += [
            f'<g transform="translate({_MARGIN:g} {top:g})"><text class="title" y="14">{_safe(shown)}</text>',
            f'<g transform="translate(0 {_TITLE:g})">',
            *_draw_arrows(layout),
            *(_draw_card(card) for card in layout.cards if card.name),
            "</g></g>",
        ]
        width = max(width, text_width(shown), layout.width + _LOOP)
        top += _TITLE + layout.height + 30.0
    size = f"{width + 2 * _MARGIN:.0f}", f"{top:.0f}"
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}">'
    )
    return "\n".join([root, _HEAD, *parts, "</svg>\n"])


def _draw_card(card: Card) -> str:
    rows = [_box("object", card.x, card.y, card.width, HEADER)]
    if card.attributes:
        rows.append(_box("attribute", card.x + 6, card.y + HEADER, card.width - 12, card.height - HEADER))
    lines = [(card.name, card.y + 21)]
    lines += [(text, card.y + HEADER + LINE * row + 16) for row, text in enumerate(card.attributes)]
    rows += [_text("", line, card.x + card.width / 2, y) for line, y in lines]
    return "".join(rows)


def _box(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'


def _text(kind: str, text: str, x: float, y: float) -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<text{attribute} x="{x:g}" y="{y:g}" text-anchor="middle">{_safe(text)}</text>'


def _draw_arrows(layout: PictureLayout) -> Iterator[str]:
    """Draw lines first and labels over them; labels that would collide move down."""
    taken: list[tuple[float, float, float]] = []
    texts: list[str] = []
    for arrow in layout.arrows:
        path, x, y = _path(layout, arrow)
        yield f'<path class="arrow" d="{path}" marker-end="url(#tip)"/>'
        half = text_width(arrow.label) / 2
        while any(abs(y - v) < LINE - 2 and abs(x - u) < half + other for u, v, other in taken):
            y += 4
        taken.append((x, y, half))
        texts.append(_text("relation", arrow.label, x, y))
    yield from texts


def _path(layout: PictureLayout, arrow: Arrow) -> tuple[str, float, float]:
    """Return an arrow's path and the middle of its label's foot."""
    cards = [layout.cards[index] for index in arrow.route]
    start, end = cards[0], cards[-1]
    if start.x == end.x:  # within a column, or to its own card: around the right side
        out = max(start.right, end.right) + _LOOP
        y1, y2 = (start.port - 6, end.port + 6) if start == end else (start.port, end.port)
        path = f"M{start.right:g} {y1:g}C{out:g} {y1:g} {out:g} {y2:g} {end.right:g} {y2:g}"
        return path, out - _LOOP / 4, (y1 + y2) / 2 + 4
    rightward = start.x < end.x
    points = [(card.right if rightward else card.x, card.port) for card in cards[:-1]]
    points.append((end.x if rightward else end.right, end.port))
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (x1 + x2) / 2
        path += f"C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
    if len(points) > 2:  # where it passes a column there is room
        x, y = points[len(points) // 2]
        return path, x + text_width(arrow.label) / 2, y + 4
    (x1, y1), (x2, y2) = points
    return path, (x1 + x2) / 2, (y1 + y2) / 2 + 4


def _safe(text: str) -> str:
    """Return text for XML: escaped, and without the characters that XML does not allow at all."""
    return escape("".join(character for character in text if character.isprintable()))
