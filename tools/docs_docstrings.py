"""How the API reference reads this package's docstrings: a griffe extension, named in mkdocs.yml.

They are written for ``help()``: references to other names in Sphinx's form, and one ``Example:`` a docstring.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from griffe import Object

_REFERENCE = re.compile(r":[a-z]+:`(?:~(?:[\w.]*\.)?)?([\w.]+)`")
_EXAMPLE = re.compile(r"^Example:$(?=\n+ +>>>)", re.MULTILINE)


def readable(docstring: str) -> str:
    """Return a docstring with plain names, and examples where griffe looks for them.

    Example:
        >>> readable("As :func:`~spicegraph_scorer.score` does.")
        'As `score` does.'
    """
    return _EXAMPLE.sub("Examples:", _REFERENCE.sub(r"`\1`", docstring))


class ReadableDocstrings(griffe.Extension):
    """Make every docstring readable before mkdocstrings shows it."""

    def on_object(self, *, obj: Object, **_loading: Any) -> None:
        """Change an object's docstring; griffe calls this by name."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
