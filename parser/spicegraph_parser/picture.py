"""A picture of scene graphs as SVG: a card for every object with its attributes, an arrow for every relation.

Text widths are estimated, so that no font is needed. Captions are untrusted: every text is escaped, and the
picture holds no script and no outside reference.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from spicegraph_parser.layout import HEADER, LINE, cut, lay_out, text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_parser.graph import SceneGraph
    from spicegraph_parser.layout import Arrow, Card, Layout

__all__ = ["to_svg"]

_MARGIN = 20.0
_TITLE = 32.0
_BETWEEN_GRAPHS = 30.0
_TITLE_CHARACTERS = 110
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
    """Return one SVG picture of titled scene graphs, below each other.

    Example:
        >>> to_svg([]).startswith("<svg")
        True
    """
    parts: list[str] = []
    top, width = _MARGIN, 0.0
    for title, graph in graphs:
        shown = cut(title, _TITLE_CHARACTERS)
        layout = lay_out(graph)
        parts += [
            f'<g transform="translate({_MARGIN:g} {top:g})"><text class="title" y="14">{_safe(shown)}</text>',
            f'<g transform="translate(0 {_TITLE:g})">',
            *_draw_arrows(layout),
            *(_draw_card(card) for card in layout.cards if card.name),
            "</g></g>",
        ]
        width = max(width, text_width(shown), layout.width + _LOOP)
        top += _TITLE + layout.height + _BETWEEN_GRAPHS
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


def _draw_arrows(layout: Layout) -> Iterator[str]:
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


def _path(layout: Layout, arrow: Arrow) -> tuple[str, float, float]:
    """Return an arrow's path and the middle of its label's foot."""
    cards = [layout.cards[index] for index in arrow.route]
    if cards[0].x == cards[-1].x:
        return _path_beside(cards[0], cards[-1])
    rightward = cards[0].x < cards[-1].x
    points = [(card.right if rightward else card.x, card.port) for card in cards[:-1]]
    points.append((cards[-1].x if rightward else cards[-1].right, cards[-1].port))
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (x1 + x2) / 2
        path += f"C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
    if len(points) > 2:  # where it passes a column there is room
        x, y = points[len(points) // 2]
        return path, x + text_width(arrow.label) / 2, y + 4
    (x1, y1), (x2, y2) = points
    return path, (x1 + x2) / 2, (y1 + y2) / 2 + 4


def _path_beside(start: Card, end: Card) -> tuple[str, float, float]:
    """Return the path of an arrow within a column or to its own card: around the right side."""
    out = max(start.right, end.right) + _LOOP
    y1, y2 = (start.port - 6, end.port + 6) if start == end else (start.port, end.port)
    path = f"M{start.right:g} {y1:g}C{out:g} {y1:g} {out:g} {y2:g} {end.right:g} {y2:g}"
    return path, out - _LOOP / 4, (y1 + y2) / 2 + 4


def _safe(text: str) -> str:
    """Return text for XML: escaped, and without the characters that XML does not allow at all."""
    return escape("".join(character for character in text if character.isprintable()))
