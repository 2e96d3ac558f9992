"""Pages in one look: a base template, one style sheet, a policy that lets nothing else in, and figures as inline SVG.

A figure of matplotlib takes the colours and the font of the page, and has no style of its own.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import warnings
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jinja2
import msgspec
from markupsafe import Markup

from spicegraph_scorer.core.wording import counted
from spicegraph_service.output.charts import TIP, VARIABLES, Color, page_style, writable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.figure import Figure

    from spicegraph_scorer.core.items import ItemId


UNDEFINED = "–"
_HERE = "spicegraph_service.output"
_NUMBER = re.compile(r"-?\d+")
_TRUSTS = "'strict-dynamic'"  # what a trusted script adds is trusted
_PICTURES = "http: https: file: data:"


def render_page(
    template: str,
    values: Mapping[str, object],
    *,
    script: str | None = None,
    style: str = "",
    images: bool = False,
    parts: bool = False,
) -> str:
    """Return one self-contained page: no network, no font, and no script but its own, which its policy names.

    The template begins with ``{% extends "base.html.j2" %}`` and fills the blocks ``title``, ``header``,
    ``sections`` (a list of links), ``main`` and ``footer``. Everything in ``values`` is escaped unless it is
    ``Markup``, such as a chart of :func:`spicegraph_service.output.pages.to_svg`. The filters ``number``, ``signed``,
    ``percent`` and ``p`` write numbers, ``None`` as a dash, and ``counted`` a number with its noun.

    Args:
        template: its name in the folder ``templates``.
        values: what the template shows.
        script: the text of the page's script.
        style: rules of the page's own, after ``style.css``, which all pages share and which documents its tokens.
        images: let the page show pictures from elsewhere.
        parts: let the page's script load others, from files beside the page.
    """
    style = static("style.css") + style
    policy = [
        "default-src 'none'",
        f"img-src {_PICTURES}" if images else "img-src data:",
        f"style-src '{digest(style)}'",
        f"script-src '{digest(script)}'{' ' + _TRUSTS if parts else ''}" if script else "script-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return (
        environment()
        .get_template(template)
        .render(values, policy=_ours("; ".join(policy)), style=_ours(style), script=_ours(script or ""))
    )


def _ours(text: str) -> Markup:
    """Mark a text of the package, which holds nothing of a caption's, as markup."""
    return Markup(text)  # noqa: S704


@cache
def environment() -> jinja2.Environment:
    """Return the templates of all pages."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(_HERE),
        # Markdown has no markup to escape for; its cells go through a filter of their own.
        autoescape=jinja2.select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(
        counted=counted, number=_number, percent=_percent, signed=_signed, p=_number, cell=_cell, permalink=permalink
    )
    return made


def static(name: str) -> str:
    """Return one of the files that go into pages."""
    return (files(_HERE) / "static" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return a text's hash as a page's policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def permalink(image_id: ItemId) -> str:
    """Return what stands for an image in an address: its id, in quotes where a string looks like a number.

    Example:
        >>> permalink(1), permalink("1"), permalink("cat")
        ('1', '"1"', 'cat')
    """
    text = str(image_id)
    quoted = isinstance(image_id, str) and (_NUMBER.fullmatch(text) or text.startswith('"'))
    return msgspec.json.encode(text).decode() if quoted else text


def _number(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:+.3f}".replace("-", "−")


def _percent(value: float | None) -> str:
    """Return a share in per cent; 0 % and 100 % are never rounded to.

    Example:
        >>> _percent(0.9999), _percent(1.0)
        ('99.9 %', '100 %')
    """
    if value is None:
        return UNDEFINED
    if value in {0.0, 1.0}:
        return f"{100 * value:.0f} %"
    return f"{min(max(100 * value, 0.1), 99.9):.1f} %"


def _cell(text: object) -> str:
    """Return text that stays in its cell of a Markdown table and is not read as markup."""
    flat = " ".join(str(text).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+!|~" else c for c in flat).replace("&", "&amp;")


_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
_LEFT_OUT = frozenset({"metadata", "style"})
_REFERENCE = re.compile(r"(?:url\()?#([\w.-]+)\)?$")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_NO_TURN = re.compile(r"rotate\(-?0 [^)]*\)")
_FONT = re.compile(r"(?P<before>.*?)(?P<size>[\d.]+)px")
_COLORED = frozenset({"fill", "stroke"})
_NUMERIC = frozenset({"d", "x", "y", "width", "height", "transform", "points", "stroke-dasharray"})
_HASH_CHARACTERS = 10


def to_svg(figure: Figure, *, title: str, description: str) -> Markup:
    """Return a figure as an ``<svg>`` element for a page whose style sheet is ``style.css``.

    The same figure gives the same text. Colours are CSS variables, text keeps to the page's font, ids differ
    between figures, and there is no ``style`` attribute, which the pages' security policy would refuse.

    Args:
        figure: drawn with the colours of ``Color`` alone, best begun by ``new_figure``.
        title: what the chart is, for those who can't see it.
        description: what it shows; where the numbers stand if a table has them.

    Raises:
        ValueError: the figure has another colour, or a raster image.
    """
    drawn = _drawn(figure)
    root = ET.fromstring(drawn)  # noqa: S314 (our own figure's; matplotlib escapes all texts)
    prefix = "c" + hashlib.sha256(f"{title}\0{description}\0{drawn}".encode()).hexdigest()[:_HASH_CHARACTERS] + "-"
    names = f"{prefix}title", f"{prefix}description"
    svg = ET.Element(
        "svg",
        {
            "class": "chart",
            "viewBox": root.get("viewBox", ""),
            "role": "img",
            "fill": VARIABLES[Color.TEXT],  # matplotlib leaves out what is black
            "aria-labelledby": " ".join(names),
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
        },
    )
    for tag, name, text in zip(("title", "desc"), names, (title, description), strict=True):
        ET.SubElement(svg, tag, {"id": name}).text = writable(text)
    used = {match[1] for node in root.iter() for value in node.attrib.values() if (match := _REFERENCE.match(value))}
    for child in root:
        svg.extend(list(_cleaned(child, used, prefix)))
    return Markup(ET.tostring(svg, encoding="unicode"))  # noqa: S704 (ElementTree has escaped every text)


def _drawn(figure: Figure) -> str:
    """Return what matplotlib writes, with characters replaced that XML can't hold."""
    from matplotlib.text import Text  # noqa: PLC0415 (an extra, and slow to load)

    buffer = io.StringIO()
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a system may be called $1
        text.set_text(writable(text.get_text()))
    with page_style(), warnings.catch_warnings():
        # The page's fonts may well have what matplotlib's own, used for measuring only, lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return writable(buffer.getvalue())


def _cleaned(node: ET.Element, used: set[str], prefix: str) -> Iterator[ET.Element]:
    """Yield the element without what a page has no use for; groups that say nothing give way to their parts."""
    tag = node.tag.rpartition("}")[2]
    if tag in _LEFT_OUT:
        return
    if tag == "image":
        raise ValueError("the figure contains a raster image, whose colours can't follow the page: draw it as shapes")
    attributes = dict(_attributes(node, used, prefix))
    children = [part for child in node for part in _cleaned(child, used, prefix)]
    tip = node.get("id", "")
    if tip.startswith(TIP):
        title = ET.Element("title")
        title.text = tip.removeprefix(TIP)
        children.insert(0, title)
    elif tag in {"g", "defs"} and not attributes and (tag == "g" or not children):
        yield from children
        return
    element = ET.Element(tag, attributes)
    element.text = node.text if tag in {"text", "tspan"} else None
    element.extend(children)
    yield element


def _attributes(node: ET.Element, used: set[str], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in node.attrib.items():
        name = key.rpartition("}")[2]
        if name == "style":
            for declaration in filter(None, map(str.strip, value.split(";"))):
                prop, _, setting = declaration.partition(":")
                yield from _property(prop.strip(), setting.strip())
        elif name == "id":
            if value in used:
                yield name, prefix + value
        elif name == "transform" and _NO_TURN.fullmatch(value):
            continue
        elif match := _REFERENCE.match(value):
            yield name, value.replace(f"#{match[1]}", f"#{prefix}{match[1]}")
        else:
            yield name, _rounded(value) if name in _NUMERIC else value


def _property(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield a CSS property as SVG attributes; the page's font stands."""
    if name == "font-family":
        return
    if name == "font":
        match = _FONT.match(value)
        if match:
            yield "font-size", match["size"]
            for word in match["before"].split():
                yield ("font-style" if word in {"italic", "oblique"} else "font-weight"), word
    elif name in _COLORED and value != "none":
        if value not in VARIABLES:
            raise ValueError(f"the figure has a {name} of {value}, which is not a Color")
        yield name, VARIABLES[value]
    else:
        yield name, _rounded(value) if name in _NUMERIC else value.removesuffix("px")


def _rounded(value: str) -> str:
    return _LONG_NUMBER.sub(_two_digits, " ".join(value.split()))


def _two_digits(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
