"""Parsing many texts so that a fault of ours in one of them costs its passes, and not the others' graphs.

The fault is logged with a hash of its text, never with the text. Tests turn the warning into an error, as
``python -W error`` does; a strict parser raises the fault itself.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from typing import TYPE_CHECKING, Final, Protocol

from spicegraph_parser.errors import SpicegraphError, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.spice.extraction import ParsedCaption

_log: Final = logging.getLogger(__name__)


class SceneFaultWarning(UserWarning):
    """Some texts have the network's graph, without passes, for a fault of the scene parser."""


class ParseTexts(Protocol):
    """Function that parses texts, the first with the given number; ``is_plain`` leaves out passes."""

    def __call__(self, texts: Sequence[str], first: int, *, is_plain: bool = False) -> Sequence[ParsedCaption]:
        """Return the parsed texts."""


class Guard:
    """Parses batches of texts and counts the faults; a strict one raises them."""

    def __init__(self, parse: ParseTexts, *, is_strict: bool) -> None:
        self._parse, self._is_strict = parse, is_strict
        self._faults = 0

    def parse(self, texts: Sequence[str], first: int) -> Sequence[ParsedCaption]:
        """Return parsed texts; raises SpicegraphError where the user has to do something."""
        try:
            return self._parse(texts, first)
        except (SpicegraphError, MemoryError):
            raise
        except Exception as error:
            if self._is_strict:
                raise
            fault = error
        if len(texts) > 1:
            middle = len(texts) // 2
            return [*self.parse(texts[:middle], first), *self.parse(texts[middle:], first + middle)]
        digest = hashlib.sha256(texts[0].encode(errors="surrogatepass")).hexdigest()
        _log.error("the scene parser failed on the text with SHA-256 %s", digest, exc_info=fault)
        self._faults += 1
        return self._parse(texts, first, is_plain=True)

    def warn(self) -> None:
        """Warn of the faults, if there were any."""
        if self._faults:
            drawn = f"the scene parser drew {counted(self._faults, 'text')} without passes for faults of its own"
            warnings.warn(f"{drawn}; report what it logged", SceneFaultWarning, stacklevel=2)
