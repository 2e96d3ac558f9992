"""Pages in one look: a base template, one style sheet, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import jinja2
import msgspec
from markupsafe import Markup

from spicegraph_parser.errors import counted
from spicegraph_service.output.charts import UNDEFINED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.core.items import ItemId


_HERE = "spicegraph_service.output"
_NUMBER = re.compile(r"-?\d+")
_TRUSTS = "'strict-dynamic'"  # what a trusted script adds is trusted

PAGE_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}  # What every page that a server answers with is sent with: no other site shows it or reads it.
REPORT_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts; frame-ancestors 'none'"
}  # A report, which shows strangers' captions, has nothing of the site that it is sent by.


def render_page(
    template: str,
    values: Mapping[str, object],
    *,
    script: str | None = None,
    style: str = "",
    images: bool = False,
    parts: bool = False,
    served: bool = False,
    package: str = _HERE,
) -> str:
    """Return one self-contained page: no network, no font, and no script but its own, which its policy names.

    The template (in ``templates`` of the package, which may use ours) extends ``base.html.j2`` and fills the blocks
    ``title``, ``header``, ``sections`` (a list of links), ``main`` and ``footer``. All ``values`` are escaped but
    ``Markup``. The filters ``number``, ``signed``, ``percent`` and ``p`` write numbers, ``counted`` one with its noun.
    ``images``: pictures from elsewhere; ``parts``: scripts from beside the page; ``served``: forms for the server.
    """
    style = static("style.css") + style
    policy = [
        "default-src 'none'",
        "img-src http: https: file: data:" if images else "img-src data:",
        f"style-src '{digest(style)}'",
        f"script-src '{digest(script)}'{' ' + _TRUSTS if parts else ''}" if script else "script-src 'none'",
        "base-uri 'none'",
        "form-action 'self'" if served else "form-action 'none'",
        *(["connect-src 'self'"] if served else []),
    ]
    return (
        environment(package)
        .get_template(template)
        .render(values, policy=_ours("; ".join(policy)), style=_ours(style), script=_ours(script or ""))
    )


def _ours(text: str) -> Markup:
    """Mark a text of the package, which holds nothing of a caption's, as markup."""
    return Markup(text)  # noqa: S704


@cache
def environment(package: str = _HERE) -> jinja2.Environment:
    """Return the templates of a package's pages, and ours."""
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in dict.fromkeys((package, _HERE))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(counted=counted, number=number, percent=percent, signed=signed, p=number, permalink=permalink)
    return made


def static(name: str, package: str = _HERE) -> str:
    """Return one of the files that go into pages: from a package's folder ``static``, or from ours."""
    file = files(package) / "static" / name
    return (file if file.is_file() else files(_HERE) / "static" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return a text's hash as a page's policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def permalink(image_id: ItemId) -> str:
    """Return an image's id for URLs, quoted if it is a numeric-looking string."""
    text = str(image_id)
    quoted = isinstance(image_id, str) and (_NUMBER.fullmatch(text) or text.startswith('"'))
    return msgspec.json.encode(text).decode() if quoted else text


def number(value: float | None) -> str:
    """Format a number with three decimals; ``None`` is a dash."""
    return UNDEFINED if value is None else f"{value:.3f}"


def signed(value: float | None) -> str:
    """Format a difference with its sign and three decimals; ``None`` is a dash."""
    return UNDEFINED if value is None else f"{value:+z.3f}".replace("-", "−")


def percent(value: float | None) -> str:
    """Return a share in per cent; 0 % and 100 % are never rounded to."""
    if value is None:
        return UNDEFINED
    if value in {0.0, 1.0}:
        return f"{100 * value:.0f} %"
    return f"{min(max(100 * value, 0.1), 99.9):.1f} %"
