"""What a caption is expected to take of a worker, before it is parsed; the unit is a caption of usual length."""
# Words take alike, in sentences, lists or a heap: long sentences are parsed in parts (``caption_pipeline/network.py``).
# The figure is a measured one (``bench/slowest_item.py``).

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_USUAL_CHARACTERS = 120
_WORDS = re.compile(r"\w+|[^\w\s]")
_WORDS_OF_USUAL = 10


def text_cost(text: str) -> int:
    """Return a text's expected parsing cost."""
    return 1 if len(text) <= _USUAL_CHARACTERS else _long_cost(text)


@lru_cache(maxsize=1024)  # it is asked for the call's room, its chunks and each of its turns
def _long_cost(text: str) -> int:
    return max(1, round(len(_WORDS.findall(text)) / _WORDS_OF_USUAL))


def texts_cost(texts: Iterable[str]) -> int:
    """Return the total expected parsing cost of texts."""
    return sum(map(text_cost, texts))
